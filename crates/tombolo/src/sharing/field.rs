//! The runs of a comparison: every way on the machine, one GPU of it, and any two of them at another link rate.

use super::host::{HOST_WAYS, HostWay};
use super::ways::{PLAIN, Way, ways};
use crate::failure::Failure;
use crate::hardware::{MachineArguments, told};
use crate::progress::Progress;
use crate::threads::each;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_experiment::campaign::run_one;
use tombolo_experiment::workload::Source;
use tombolo_machine::quantity::Quantity;
use tombolo_machine::{Description, MachineConfig, Scale};
use tombolo_system::RunRecord;
use tombolo_system::host::PhasesRecord;
use tombolo_types::Rate;

/// Programs for several GPUs keep their own cut under every way.
const AS_CUT: &str = "design.scheduling=program";

/// A way with its design as set by the user.
#[derive(Clone)]
pub(crate) struct Entrant {
    pub(crate) way: Way,
    pub(crate) design: Arc<DesignConfig>,
}

/// Machine and ways, checked. Its settings stand; link rate and number of GPUs can still be changed.
pub(crate) struct Field {
    described: Description<MachineConfig>,
    scale: Scale,
    /// The machine, scaled.
    pub(crate) machine: Arc<MachineConfig>,
    /// Its link rate before it was scaled: what `gpu_link.rate` sets.
    pub(crate) rate: Rate,
    pub(crate) entrants: Vec<Entrant>,
    /// Ways to use the memory of the host, where the machine has one.
    pub(crate) hosted: Vec<(HostWay, Arc<DesignConfig>)>,
    /// Why ways were left out, and what there is to tell of how designs were set.
    pub(crate) notes: Vec<String>,
}

/// A run of an entrant.
pub(crate) struct Ran {
    pub(crate) way: Way,
    pub(crate) record: RunRecord,
}

impl Field {
    /// The machine as asked for, with all ways that go with it.
    pub(crate) fn new(arguments: &MachineArguments) -> Result<Field, Failure> {
        let ways = ways();
        let names: Vec<String> = ways.iter().map(|way| way.design.to_owned()).collect();
        let (described, designs) = arguments.described_from(&names, &[AS_CUT])?;
        let whole = described.check()?;
        let machine = Arc::new(arguments.scaled(&whole)?);
        if machine.topology.gpus < 2 {
            let reason = "it has one GPU, which shares with nobody; --set topology.gpus=4 gives it four".to_owned();
            return Err(Failure::Argument { flag: "--machine", value: arguments.machine().to_owned(), reason });
        }
        let mut notes = told(&designs);
        let mut entrants = Vec::new();
        for (way, design) in ways.into_iter().zip(&designs) {
            match design.check() {
                Ok(design) => entrants.push(Entrant { way, design: Arc::new(design) }),
                // Everything is compared with it.
                Err(error) if way.design == PLAIN => return Err(error.into()),
                Err(error) => notes.push(left_out(way, &error.to_string())),
            }
        }
        let hosted = hosted(arguments, &machine, &mut notes)?;
        Ok(Field { described, scale: machine.scale, machine, rate: whole.gpu_link.rate, entrants, hosted, notes })
    }

    /// Runs every way with up to `threads` threads: those that the machine can carry, in their order. The others are
    /// noted.
    pub(crate) fn run(&mut self, source: &Source, threads: usize, progress: &Progress) -> Result<Vec<Ran>, Failure> {
        let share = (threads / self.entrants.len()).max(1);
        let machine = &self.machine;
        let run = |Entrant { way, design }: &Entrant| {
            let record = progress.during(way.design, || run_one(machine, design, source, None, share, false));
            Ok((*way, record))
        };
        let mut ran = Vec::new();
        for (way, record) in each(&self.entrants, threads, run)? {
            match record {
                Ok(record) => ran.push(Ran { way, record }),
                Err(error) if way.design == PLAIN => return Err(error.into()),
                Err(error) => self.notes.push(left_out(way, &error.to_string())),
            }
        }
        Ok(ran)
    }

    /// Runs the ways to use the host's memory. Those that the machine cannot carry are noted.
    pub(crate) fn run_hosted(
        &mut self,
        source: &Source,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<(HostWay, PhasesRecord)>, Failure> {
        let (machine, mut ran) = (&self.machine, Vec::new());
        for (way, design) in &self.hosted {
            match progress.during(way.design, || run_one(machine, design, source, None, threads, false)) {
                Ok(RunRecord { phases: Some(phases), .. }) => ran.push((*way, phases)),
                Ok(_) => unreachable!("a host takes part under {}", way.design),
                Err(error) => self.notes.push(format!("{} is left out: {error}", way.design)),
            }
        }
        Ok(ran)
    }

    /// One GPU of the machine.
    pub(crate) fn single(&self) -> Result<Arc<MachineConfig>, Failure> {
        let mut described = self.described.clone();
        described.set("topology.gpus", "1")?;
        Ok(Arc::new(described.check()?.scaled(self.scale)?))
    }

    /// The run of a program on [`Field::single`], under the plain design.
    pub(crate) fn alone(&self, source: &Source, threads: usize) -> Result<RunRecord, Failure> {
        let machine = self.single()?;
        let plain = self.entrants.iter().find(|entrant| entrant.way.design == PLAIN).expect("it is among the ways");
        Ok(run_one(&machine, &plain.design, source, None, threads, false)?)
    }

    /// The times of two ways at a link rate, which is what `gpu_link.rate` would set.
    pub(crate) fn times_at(
        &self,
        rate: Rate,
        pair: [Way; 2],
        source: &Source,
        threads: usize,
    ) -> Result<[f64; 2], Failure> {
        let mut described = self.described.clone();
        described.set("gpu_link.rate", &rate.print().to_string())?;
        let machine = Arc::new(described.check()?.scaled(self.scale)?);
        let share = (threads / pair.len()).max(1);
        let times = each(&pair, threads, |way| {
            let entrant = self.entrants.iter().find(|entrant| entrant.way == *way).expect("it was run before");
            Ok(run_one(&machine, &entrant.design, source, None, share, false)?.time.region_s)
        })?;
        Ok([times[0], times[1]])
    }
}

/// The ways to use the memory of the machine's host, where it has one.
fn hosted(
    arguments: &MachineArguments,
    machine: &MachineConfig,
    notes: &mut Vec<String>,
) -> Result<Vec<(HostWay, Arc<DesignConfig>)>, Failure> {
    if machine.coherent_host().is_none() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = HOST_WAYS.iter().map(|way| way.design.to_owned()).collect();
    let (_, designs) = arguments.described_from(&names, &[])?;
    let mut hosted = Vec::new();
    for (way, design) in HOST_WAYS.into_iter().zip(&designs) {
        match design.check() {
            Ok(design) => hosted.push((way, Arc::new(design))),
            Err(error) => notes.push(format!("{} is left out: {error}", way.design)),
        }
    }
    Ok(hosted)
}

fn left_out(way: Way, reason: &str) -> String {
    format!("{} is left out: {reason}", way.design)
}
