//! Workloads, as the command line names them, and the programs they become.

use crate::failure::Failure;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_machine::error::near;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, Workload, footprint, list, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::Scaling;

/// Seed of generated inputs: any number, the same for everyone.
const SEED: u64 = 1;
/// How far a footprint may be from the scale asked for without a note. Source: readings of the papers, "within
/// 2 of F = 1".
const CLOSE: f64 = 2.0;

/// A program, ready to run.
#[derive(Clone)]
pub(crate) struct Source {
    /// As the user named it.
    pub(crate) label: String,
    /// What runs.
    pub(crate) program: Arc<dyn Program>,
    /// What a reader of the result should know.
    pub(crate) notes: Vec<String>,
}

/// A workload with its parameters, checked.
pub(crate) struct WorkloadChoice {
    workload: &'static dyn Workload,
    /// Key and value, in the order given.
    given: Vec<(String, String)>,
    /// As given.
    pub(crate) label: String,
}

/// Reads `W[,key=value…]`, several of them separated by commas or as several words: a part without `=` begins
/// the next workload.
pub(crate) fn workloads(words: &[String]) -> Result<Vec<WorkloadChoice>, Failure> {
    let mut choices: Vec<WorkloadChoice> = Vec::new();
    for word in words {
        // A parameter belongs to a workload of its own word.
        let first = choices.len();
        for part in word.split(',').map(str::trim) {
            match part.split_once('=') {
                None => choices.push(WorkloadChoice { workload: find(part)?, given: Vec::new(), label: part.into() }),
                Some((key, value)) => {
                    let owner = choices[first..].last_mut().ok_or_else(|| orphan(part))?;
                    owner.given.push((key.trim().to_owned(), value.trim().to_owned()));
                    owner.label = format!("{},{part}", owner.label);
                }
            }
        }
    }
    Ok(choices)
}

fn orphan(part: &str) -> Failure {
    let reason = "a parameter follows its workload: W,key=value".to_owned();
    Failure::Argument { flag: "--workload", value: part.to_owned(), reason }
}

fn find(name: &str) -> Result<&'static dyn Workload, Failure> {
    let known: Vec<&str> = list().iter().map(|workload| workload.name()).collect();
    list().iter().copied().find(|workload| workload.name() == name).ok_or_else(|| Failure::UnknownWorkload {
        name: name.to_owned(),
        near: near(name, known.iter().copied()),
        known,
    })
}

impl WorkloadChoice {
    /// An error where it cannot be laid out for `machine`, before anything large is done.
    pub(crate) fn check(&self, machine: &MachineConfig) -> Result<(), Failure> {
        footprint(self.workload, &self.request(input_scale(machine))?)?;
        Ok(())
    }

    /// Runs it once for `machine`, and keeps its streams.
    pub(crate) fn record(&self, machine: &MachineConfig, threads: usize) -> Result<Source, Failure> {
        let options = RecordOptions {
            warp_width: machine.sm.warp_width,
            line: machine.line,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            ..RecordOptions::default()
        };
        let request = self.request(input_scale(machine))?;
        let program = Arc::new(record(self.workload, &request, &options, Mode::Auto)?);
        Ok(Source { label: self.label.clone(), program, notes: self.notes(machine)? })
    }

    fn request(&self, scale: Scale) -> Result<Request, Failure> {
        Ok(Request::new(self.workload, scale, &self.given, SEED)?)
    }

    /// What scaling does to it beyond making it smaller.
    fn notes(&self, machine: &MachineConfig) -> Result<Vec<String>, Failure> {
        let scale = input_scale(machine);
        let mut notes = Vec::new();
        if scale == Scale::FULL {
            return Ok(notes);
        }
        if self.workload.nonlinear() {
            notes.push(format!(
                "{} does work that does not follow its footprint: at scale {scale} it answers a question of its own",
                self.label
            ));
        }
        let (small, whole) = (self.scaling_bytes(scale)?, self.scaling_bytes(Scale::FULL)?);
        let wanted = machine.scale.numerator() as f64 / machine.scale.denominator() as f64;
        let realised = small as f64 / whole.max(1) as f64;
        if whole > 0 && !(1.0 / CLOSE..=CLOSE).contains(&(realised / wanted)) {
            notes.push(format!("{}: its input is {realised:.4} of the whole, not {scale}", self.label));
        }
        Ok(notes)
    }

    /// Bytes of the arrays that follow the scale.
    fn scaling_bytes(&self, scale: Scale) -> Result<u64, Failure> {
        let arrays = footprint(self.workload, &self.request(scale)?)?;
        Ok(arrays.iter().filter(|array| array.scaling == Scaling::Scales).map(|array| array.bytes).sum())
    }
}

/// The input's scale is the machine's, so that footprint to capacity stays.
fn input_scale(machine: &MachineConfig) -> Scale {
    let scale = machine.scale;
    Scale::new(scale.numerator(), scale.denominator()).expect("a machine's scale has parts of 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let choices = workloads(&words).map_err(|failure| failure.to_string())?;
        Ok(choices.into_iter().map(|choice| choice.label).collect())
    }

    #[test]
    fn a_part_without_equals_begins_the_next_workload() {
        let both = ["triad,elements=64,iterations=2", "triad"].map(str::to_owned).to_vec();
        assert_eq!(labels(&["triad,elements=64,iterations=2,triad"]), Ok(both.clone()));
        assert_eq!(labels(&["triad,elements=64,iterations=2", "triad"]), Ok(both));
    }

    #[test]
    fn a_parameter_needs_a_workload_before_it() {
        assert!(labels(&["elements=64"]).unwrap_err().contains("--workload elements=64"));
        assert!(labels(&["triad", "elements=64"]).unwrap_err().contains("follows its workload"));
    }

    #[test]
    fn an_unknown_workload_gets_a_suggestion() {
        let message = labels(&["traid"]).unwrap_err();
        assert!(message.contains("\"traid\" (did you mean triad?)"), "{message}");
    }
}
