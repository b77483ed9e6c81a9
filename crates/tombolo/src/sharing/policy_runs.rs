//! Runs for a comparison of sharing policies: every policy on the given machine, a reference run on a single GPU, and
//! any two policies at a different link rate.

use super::host::{HOST_POLICIES, HostPolicy};
use super::policies::{PLAIN, SharingPolicy, policies};
use crate::failure::CommandFailure;
use crate::hardware::{MachineArguments, print_notes};
use crate::progress::Progress;
use crate::threads::each;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_experiment::campaign::run_one;
use tombolo_experiment::workload::PreparedProgram;
use tombolo_machine::quantity::Quantity;
use tombolo_machine::{Description, MachineConfig, MachineScale};
use tombolo_system::RunRecord;
use tombolo_system::host::PhasesRecord;
use tombolo_types::Rate;

/// Setting that lets multi-GPU programs keep their own work division under every policy.
const AS_CUT: &str = "design.scheduling=program";

/// A policy to compare, together with the checked design after user settings.
#[derive(Clone)]
pub(crate) struct PolicyDesign {
    pub(crate) policy: SharingPolicy,
    pub(crate) design: Arc<DesignConfig>,
}

/// Machine and policies, checked. Their settings are final, except for link rate and number of GPUs.
pub(crate) struct PolicyRuns {
    described: Description<MachineConfig>,
    scale: MachineScale,
    /// The scaled machine.
    pub(crate) machine: Arc<MachineConfig>,
    /// Link rate before scaling, comparable with the setting `gpu_link.rate`.
    pub(crate) rate: Rate,
    pub(crate) policies: Vec<PolicyDesign>,
    /// Policies for host memory with their designs; empty for a machine without a host.
    pub(crate) host_policies: Vec<(HostPolicy, Arc<DesignConfig>)>,
    /// Reasons for excluded policies, and notes about the design settings.
    pub(crate) notes: Vec<String>,
}

/// A finished run with its record, together with the policy's entry.
pub(crate) struct PolicyRun {
    pub(crate) policy: SharingPolicy,
    pub(crate) record: RunRecord,
}

impl PolicyRuns {
    /// Builds the machine requested on the command line, with all policies whose designs accept the settings.
    pub(crate) fn new(arguments: &MachineArguments) -> Result<PolicyRuns, CommandFailure> {
        let all = policies();
        let names: Vec<String> = all.iter().map(|policy| policy.design.to_owned()).collect();
        let (described, designs) = arguments.described_from(&names, &[AS_CUT])?;
        let whole = described.check()?;
        let machine = Arc::new(arguments.scaled(&whole)?);
        if machine.topology.gpus < 2 {
            let reason = "it has one GPU, which shares with nobody; --set topology.gpus=4 gives it four".to_owned();
            return Err(CommandFailure::Argument { flag: "--machine", value: arguments.machine().to_owned(), reason });
        }
        let mut notes = print_notes(&designs);
        let mut policies = Vec::new();
        for (policy, design) in all.into_iter().zip(&designs) {
            match design.check() {
                Ok(design) => policies.push(PolicyDesign { policy, design: Arc::new(design) }),
                // Every policy is compared with the plain design.
                Err(error) if policy.design == PLAIN => return Err(error.into()),
                Err(error) => notes.push(left_out(policy, &error.to_string())),
            }
        }
        let host_policies = host_policies(arguments, &machine, &mut notes)?;
        Ok(PolicyRuns {
            described,
            scale: machine.scale,
            machine,
            rate: whole.gpu_link.rate,
            policies,
            host_policies,
            notes,
        })
    }

    /// Runs every policy with up to `threads` threads, and returns the successful runs in order. The failing policies
    /// are noted.
    pub(crate) fn run(
        &mut self,
        source: &PreparedProgram,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<PolicyRun>, CommandFailure> {
        let share = (threads / self.policies.len()).max(1);
        let machine = &self.machine;
        let run = |PolicyDesign { policy, design }: &PolicyDesign| {
            let record = progress.during(policy.design, || run_one(machine, design, source, share));
            Ok((*policy, record))
        };
        let mut ran = Vec::new();
        for (policy, record) in each(&self.policies, threads, run)? {
            match record {
                Ok(record) => ran.push(PolicyRun { policy, record }),
                Err(error) if policy.design == PLAIN => return Err(error.into()),
                Err(error) => self.notes.push(left_out(policy, &error.to_string())),
            }
        }
        Ok(ran)
    }

    /// Runs the policies for host memory, and returns the time by phase for each. Policies not supported on the machine
    /// are noted.
    pub(crate) fn run_hosted(
        &mut self,
        source: &PreparedProgram,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<(HostPolicy, PhasesRecord)>, CommandFailure> {
        let (machine, mut ran) = (&self.machine, Vec::new());
        for (policy, design) in &self.host_policies {
            match progress.during(policy.design, || run_one(machine, design, source, threads)) {
                Ok(RunRecord { phases: Some(phases), .. }) => ran.push((*policy, phases)),
                Ok(_) => unreachable!("a host takes part under {}", policy.design),
                Err(error) => self.notes.push(format!("{} is left out: {error}", policy.design)),
            }
        }
        Ok(ran)
    }

    /// Returns the machine reduced to a single GPU, at an unchanged scale.
    pub(crate) fn single(&self) -> Result<Arc<MachineConfig>, CommandFailure> {
        let mut described = self.described.clone();
        described.set("topology.gpus", "1")?;
        Ok(Arc::new(described.check()?.scaled(self.scale)?))
    }

    /// Runs a program on [`PolicyRuns::single`], under the plain design.
    pub(crate) fn alone(&self, source: &PreparedProgram, threads: usize) -> Result<RunRecord, CommandFailure> {
        let machine = self.single()?;
        let plain = self.policies.iter().find(|entry| entry.policy.design == PLAIN).expect("it is among the ways");
        Ok(run_one(&machine, &plain.design, source, threads)?)
    }

    /// Returns the times of two policies at a link rate, given like the setting `gpu_link.rate`.
    pub(crate) fn times_at(
        &self,
        rate: Rate,
        pair: [SharingPolicy; 2],
        source: &PreparedProgram,
        threads: usize,
    ) -> Result<[f64; 2], CommandFailure> {
        let mut described = self.described.clone();
        described.set("gpu_link.rate", &rate.print().to_string())?;
        let machine = Arc::new(described.check()?.scaled(self.scale)?);
        let share = (threads / pair.len()).max(1);
        let times = each(&pair, threads, |policy| {
            let entry = self.policies.iter().find(|entry| entry.policy == *policy).expect("it was run before");
            Ok(run_one(&machine, &entry.design, source, share)?.time.region_s)
        })?;
        Ok([times[0], times[1]])
    }
}

/// Returns the host-memory policies, if the machine has a host.
fn host_policies(
    arguments: &MachineArguments,
    machine: &MachineConfig,
    notes: &mut Vec<String>,
) -> Result<Vec<(HostPolicy, Arc<DesignConfig>)>, CommandFailure> {
    if machine.coherent_host().is_none() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = HOST_POLICIES.iter().map(|policy| policy.design.to_owned()).collect();
    let (_, designs) = arguments.described_from(&names, &[])?;
    let mut host_policies = Vec::new();
    for (policy, design) in HOST_POLICIES.into_iter().zip(&designs) {
        match design.check() {
            Ok(design) => host_policies.push((policy, Arc::new(design))),
            Err(error) => notes.push(format!("{} is left out: {error}", policy.design)),
        }
    }
    Ok(host_policies)
}

fn left_out(policy: SharingPolicy, reason: &str) -> String {
    format!("{} is left out: {reason}", policy.design)
}
