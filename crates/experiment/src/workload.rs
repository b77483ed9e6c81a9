//! Workloads as users name them, and the programs they become.

use crate::error::PointError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;
use tombolo_machine::MachineConfig;
use tombolo_machine::error::near;
use tombolo_system::SampleInfo;
use tombolo_types::LineSize;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{self, Mode, Request, Workload, footprint, record};
use tombolo_workload::parameter::{Adjusted, Kind};
use tombolo_workload::record::{RecordOptions, Recording, Sample};
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::Scaling;

/// Seed of generated inputs where none is asked for: any number, the same for everyone.
pub const SEED: u64 = 1;

/// A program, ready to run.
#[derive(Clone)]
pub struct Source {
    /// As the user named it.
    pub label: String,
    /// What runs.
    pub program: Arc<dyn Program>,
    /// What a reader of the result should know.
    pub notes: Vec<String>,
    /// Parameters that are taken at other values than asked for, with these: `kib=144`.
    pub adjusted: Vec<String>,
    /// What of it was recorded, where that is not all.
    pub sample: Option<SampleInfo>,
    /// Bytes of its arrays; 0 where they are not known.
    pub bytes: u64,
}

impl Source {
    /// A note where `machine` does not hold its arrays.
    pub(crate) fn too_large(&self, machine: &MachineConfig) -> Option<String> {
        let has = machine.dram.bytes.saturating_mul(machine.topology.modules() as u64);
        let Source { label, bytes: needs, .. } = self;
        (*needs > has).then(|| {
            format!("{label}: its arrays take {needs} bytes and the memory has {has}: it is run as if all fitted")
        })
    }
}

/// A workload with its parameters and its seed.
#[derive(Clone)]
pub struct WorkloadChoice {
    workload: &'static dyn Workload,
    /// Key and value, in the order given.
    given: Vec<(String, String)>,
    /// As given.
    pub label: String,
    /// Of generated inputs.
    pub seed: u64,
    /// [`WorkloadChoice::parameters`] as they were when they were first asked for.
    known: OnceLock<Vec<(&'static str, String)>>,
}

/// Reads `W[,key=value…]`, several of them separated by commas or as several words: a part without `=` begins
/// the next workload.
///
/// # Errors
/// A workload that does not exist, or a parameter before any workload.
pub fn workloads(words: &[String]) -> Result<Vec<WorkloadChoice>, PointError> {
    let mut choices: Vec<WorkloadChoice> = Vec::new();
    for word in words {
        // A parameter belongs to a workload of its own word.
        let first = choices.len();
        for part in word.split(',').map(str::trim) {
            match part.split_once('=') {
                None => choices.push(WorkloadChoice {
                    workload: find(part)?,
                    given: Vec::new(),
                    label: part.into(),
                    seed: SEED,
                    known: OnceLock::new(),
                }),
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
///
/// # Errors
/// As [`workloads`], or several.
pub fn only(word: &str) -> Result<WorkloadChoice, PointError> {
    let mut chosen = workloads(&[word.to_owned()])?;
    match (chosen.pop(), chosen.is_empty()) {
        (Some(choice), true) => Ok(choice),
        _ => Err(PointError::Workloads { value: word.to_owned(), reason: "one workload is expected here" }),
    }
}

fn orphan(part: &str) -> PointError {
    PointError::Workloads { value: part.to_owned(), reason: "a parameter follows its workload: W,key=value" }
}

fn find(name: &str) -> Result<&'static dyn Workload, PointError> {
    bench::find(name).map_err(|_| PointError::UnknownWorkload {
        name: name.to_owned(),
        near: near(name, bench::names()),
        known: bench::names().collect(),
    })
}

/// For what a program is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    line: LineSize,
    warp_width: u32,
    scale: Scale,
}

impl Target {
    /// For machines with lines and warps like those of `machine`; the input at `scale`.
    pub fn new(machine: &MachineConfig, scale: tombolo_machine::Scale) -> Target {
        let input = Scale::new(scale.numerator(), scale.denominator()).expect("its parts have 16 bits");
        Target { line: machine.line, warp_width: machine.sm.warp_width, scale: input }
    }

    /// For `machine`, whose own scale the input takes, so that footprint to capacity stays.
    pub fn of(machine: &MachineConfig) -> Target {
        Target::new(machine, machine.scale)
    }

    /// Scale of the input.
    pub fn scale(&self) -> Scale {
        self.scale
    }
}

impl WorkloadChoice {
    /// Name of the workload, without parameters.
    pub fn name(&self) -> &'static str {
        self.workload.name()
    }

    /// The files that it reads.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let is_file = |key: &str| {
            self.workload.parameters().iter().any(|known| known.name == key && matches!(known.kind, Kind::File))
        };
        self.given.iter().filter(move |(key, value)| is_file(key) && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// An error where it cannot be laid out, before anything large is done.
    ///
    /// # Errors
    /// Parameters that the workload does not take, or not at this scale.
    pub fn check(&self, target: Target) -> Result<(), PointError> {
        footprint(self.workload, &self.request(target)?)?;
        Ok(())
    }

    /// An error where a parameter is not what the workload takes. Lays nothing out.
    ///
    /// # Errors
    /// Parameters that the workload does not take.
    pub fn check_parameters(&self) -> Result<(), PointError> {
        Request::new(self.workload, Scale::FULL, &self.given, self.seed).map(drop).map_err(PointError::from)
    }

    /// Every parameter with its value, given or not, in the order of the workload; of a file, a hash of what it
    /// held when this was first asked: a point keeps its key, whatever becomes of its files.
    ///
    /// # Errors
    /// Parameters that the workload does not take, or a file that cannot be read.
    pub fn parameters(&self) -> Result<Vec<(&'static str, String)>, PointError> {
        if let Some(known) = self.known.get() {
            return Ok(known.clone());
        }
        let now = self.parameters_now()?;
        Ok(self.known.get_or_init(|| now).clone())
    }

    fn parameters_now(&self) -> Result<Vec<(&'static str, String)>, PointError> {
        let request = Request::new(self.workload, Scale::FULL, &self.given, self.seed)?;
        let of = |parameter: &tombolo_workload::parameter::Parameter| {
            let value = request.values.text(parameter.name);
            let value = match parameter.kind {
                Kind::File if !value.is_empty() => file_hash(value)?,
                Kind::File | Kind::Count { .. } | Kind::Choice(_) | Kind::Flag => value.to_owned(),
            };
            Ok((parameter.name, value))
        };
        self.workload.parameters().iter().map(of).collect()
    }

    /// Runs it once with up to `threads` threads, and keeps its streams.
    ///
    /// # Errors
    /// Parameters that do not fit, a program that breaks a rule of the language, or a file that is no longer what
    /// [`WorkloadChoice::parameters`] says.
    pub fn record(&self, target: Target, threads: usize) -> Result<Source, PointError> {
        self.record_part(target, threads, None)
    }

    /// [`WorkloadChoice::record`], or a sample of it.
    ///
    /// # Errors
    /// As [`WorkloadChoice::record`].
    pub fn record_part(&self, target: Target, threads: usize, sample: Option<Sample>) -> Result<Source, PointError> {
        let options = RecordOptions {
            warp_width: target.warp_width,
            line: target.line,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            sample,
            ..RecordOptions::default()
        };
        let recording = record(self.workload, &self.request(target)?, &options, Mode::Auto)?;
        self.refuse_changes()?;
        let notes = self.notes(target, &recording);
        let taken = |adjusted: &Adjusted| format!("{}={}", adjusted.parameter, adjusted.taken);
        let adjusted = recording.adjusted().iter().map(taken).collect();
        let bytes = recording.arrays().iter().map(|array| array.bytes).sum();
        let info = || SampleInfo { parts: recording.parts().to_vec(), launches: recording.launches() };
        let sample = recording.is_sampled().then(info);
        Ok(Source { label: self.label.clone(), program: Arc::new(recording), notes, adjusted, sample, bytes })
    }

    /// An error where a file is no longer what it was when the parameters were asked for.
    fn refuse_changes(&self) -> Result<(), PointError> {
        let Some(known) = self.known.get() else { return Ok(()) };
        if self.parameters_now()? == *known {
            return Ok(());
        }
        let paths: Vec<&str> = self.files().collect();
        let error = io::Error::other("it has changed since its points were listed; the same command takes it as it is");
        Err(PointError::File { path: paths.join(", "), error })
    }

    fn request(&self, target: Target) -> Result<Request, PointError> {
        Ok(Request::new(self.workload, target.scale, &self.given, self.seed)?)
    }

    /// What its layout says, and what scaling does to it beyond making it smaller.
    fn notes(&self, target: Target, recording: &Recording) -> Vec<String> {
        let (label, scale) = (&self.label, target.scale);
        let mut notes: Vec<_> = recording.notes().iter().map(|note| format!("{label}: {note}")).collect();
        if scale == Scale::FULL {
            return notes;
        }
        if self.workload.nonlinear() {
            notes.push(format!("{label}: its work does not follow its footprint; at scale {scale} compare with care"));
        }
        let is_fixed = recording.arrays().iter().all(|array| array.scaling == Scaling::Fixed);
        if is_fixed || self.files().next().is_some() {
            notes.push(format!("{label}: the machine is scaled by {scale}, its input cannot be"));
        }
        notes
    }
}

/// Hash of a file's bytes, which many points ask for: a file is read again only where its length or its time is another.
fn file_hash(path: &str) -> Result<String, PointError> {
    hashed(path).map_err(|error| PointError::File { path: path.to_owned(), error })
}

fn hashed(path: &str) -> io::Result<String> {
    static KNOWN: Mutex<BTreeMap<(String, u64, SystemTime), String>> = Mutex::new(BTreeMap::new());
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = (path.to_owned(), found.len(), found.modified()?);
    if let Some(hash) = known.get(&asked) {
        return Ok(hash.clone());
    }
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    let hash = hasher.finalize().to_hex().to_string();
    known.insert(asked, hash.clone());
    Ok(hash)
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
        assert!(labels(&["elements=64"]).unwrap_err().contains("workload elements=64: a parameter follows"));
        assert!(labels(&["triad", "elements=64"]).unwrap_err().contains("follows its workload"));
    }

    #[test]
    fn a_convolution_is_refused_by_the_size_that_it_has_at_its_scale() {
        let machine = tombolo_machine::machine("hmg-1x4").unwrap().check().unwrap();
        let choice = only("googlenet-conv2,batch=4096").unwrap();
        let at = |scale: &str| {
            choice.check(Target::new(&machine, scale.parse().unwrap())).map_err(|error| error.to_string())
        };
        assert_eq!(at("1/32"), Ok(()));
        assert!(at("1").unwrap_err().contains("2466250752 elements exceed 2^31 - 1"));
    }

    #[test]
    fn an_unknown_workload_gets_a_suggestion() {
        let message = labels(&["tria"]).unwrap_err();
        assert!(message.contains("\"tria\" (did you mean triad?)"), "{message}");
    }

    #[test]
    fn a_file_that_changes_keeps_its_points_and_is_not_recorded_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roads.gr");
        std::fs::write(&path, "p sp 3 2\na 1 2 5\na 2 3 7\n").unwrap();
        let choice = only(&format!("bfs,graph={}", path.display())).unwrap();
        let machine = tombolo_machine::machine("hmg-1x4").unwrap().check().unwrap();
        let before = choice.parameters().unwrap();
        assert!(choice.record(Target::of(&machine), 1).is_ok());
        std::fs::write(&path, "p sp 4 2\na 1 2 5\na 3 4 7\n").unwrap();
        assert_eq!(choice.parameters().unwrap(), before);
        let refused = choice.record(Target::of(&machine), 1).map(|source| source.label).unwrap_err().to_string();
        assert!(refused.contains("roads.gr") && refused.contains("it has changed"), "{refused}");
        assert_ne!(only(&choice.label).unwrap().parameters().unwrap(), before, "the next command takes it as it is");
    }

    #[test]
    fn parameters_are_told_with_their_defaults() {
        let choice = only("triad,iterations=2").unwrap();
        let expected =
            [("elements", "33554432".to_owned()), ("iterations", "2".to_owned()), ("threads", "1024".to_owned())];
        assert_eq!(choice.parameters().unwrap(), expected);
        assert!(only("triad,iterations=0").unwrap().check_parameters().is_err());
    }
}
