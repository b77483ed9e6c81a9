//! Workloads and traces, as the command line names them, and the programs they become.

use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_machine::error::near;
use tombolo_system::SampleInfo;
use tombolo_types::LineSize;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, Workload, footprint, list, record};
use tombolo_workload::record::{RecordOptions, Recording, Sample};
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::Scaling;
use tombolo_workload::trace;

/// Seed of generated inputs: any number, the same for everyone.
const SEED: u64 = 1;
/// A program, ready to run.
#[derive(Clone)]
pub(crate) struct Source {
    /// As the user named it.
    pub(crate) label: String,
    /// What runs.
    pub(crate) program: Arc<dyn Program>,
    /// What a reader of the result should know.
    pub(crate) notes: Vec<String>,
    /// What of it was recorded, where that is not all.
    pub(crate) sample: Option<SampleInfo>,
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

/// Reads one workload; several are an error.
pub(crate) fn only(word: &str) -> Result<WorkloadChoice, Failure> {
    let mut chosen = workloads(&[word.to_owned()])?;
    match (chosen.pop(), chosen.is_empty()) {
        (Some(choice), true) => Ok(choice),
        _ => {
            let reason = "one workload is expected here; compare takes several".to_owned();
            Err(Failure::Argument { flag: "--workload", value: word.to_owned(), reason })
        }
    }
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

/// For what a program is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    line: LineSize,
    warp_width: u32,
    scale: Scale,
}

impl Target {
    /// For machines with lines and warps like those of `machine`; the input at `scale`.
    pub(crate) fn new(machine: &MachineConfig, scale: tombolo_machine::Scale) -> Target {
        let input = Scale::new(scale.numerator(), scale.denominator()).expect("its parts have 16 bits");
        Target { line: machine.line, warp_width: machine.sm.warp_width, scale: input }
    }

    /// For `machine`, whose own scale the input takes, so that footprint to capacity stays.
    pub(crate) fn of(machine: &MachineConfig) -> Target {
        Target::new(machine, machine.scale)
    }
}

impl WorkloadChoice {
    /// An error where it cannot be laid out, before anything large is done.
    pub(crate) fn check(&self, target: Target) -> Result<(), Failure> {
        footprint(self.workload, &self.request(target)?)?;
        Ok(())
    }

    /// Runs it once with up to `threads` threads, and keeps its streams.
    pub(crate) fn record(&self, target: Target, threads: usize) -> Result<Source, Failure> {
        self.record_part(target, threads, None)
    }

    /// [`WorkloadChoice::record`], or a sample of it.
    pub(crate) fn record_part(
        &self,
        target: Target,
        threads: usize,
        sample: Option<Sample>,
    ) -> Result<Source, Failure> {
        let options = RecordOptions {
            warp_width: target.warp_width,
            line: target.line,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            sample,
            ..RecordOptions::default()
        };
        let recording = record(self.workload, &self.request(target)?, &options, Mode::Auto)?;
        let notes = self.notes(target.scale, &recording);
        let weights = recording.parts().iter().map(|part| part.weight).collect();
        let sample = recording.is_sampled().then(|| SampleInfo { weights, launches: recording.launches() });
        Ok(Source { label: self.label.clone(), program: Arc::new(recording), notes, sample })
    }

    fn request(&self, target: Target) -> Result<Request, Failure> {
        Ok(Request::new(self.workload, target.scale, &self.given, SEED)?)
    }

    /// What scaling does to it beyond making it smaller.
    fn notes(&self, scale: Scale, recording: &Recording) -> Vec<String> {
        let mut notes = Vec::new();
        if scale == Scale::FULL {
            return notes;
        }
        let label = &self.label;
        if self.workload.nonlinear() {
            notes.push(format!("{label}: its work does not follow its footprint; at scale {scale} compare with care"));
        }
        if recording.arrays().iter().all(|array| array.scaling == Scaling::Fixed) {
            notes.push(format!("{label}: the machine is scaled by {scale}, its input cannot be"));
        }
        notes
    }
}

/// The trace at `path`, for `machine`.
pub(crate) fn trace(path: &Path, machine: &MachineConfig) -> Result<Source, Failure> {
    let (program, mut notes) = trace::open_with_notes(path, machine.line, machine.sm.warp_width)?;
    if machine.scale != tombolo_machine::Scale::FULL {
        notes.push(format!("the machine is scaled by {}; a trace stays as it was recorded", machine.scale));
    }
    Ok(Source { label: program.name().to_owned(), program: Arc::from(program), notes, sample: None })
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
        let message = labels(&["tria"]).unwrap_err();
        assert!(message.contains("\"tria\" (did you mean triad?)"), "{message}");
    }
}
