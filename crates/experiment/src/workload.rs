//! Workloads and traces by user-visible name, and the programs built from them.

use crate::error::PointError;
use crate::word_list::{WordItem, parts, quoted};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;
use tombolo_machine::MachineConfig;
use tombolo_machine::error::near;
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, KernelInfo, Program};
use tombolo_workload::bench::{Mode, Request, Workload, layout, plan, record};
use tombolo_workload::parameter::{AdjustedParameter, ParameterKind};
use tombolo_workload::record::{RecordOptions, Recording};
use tombolo_workload::scale::Scale;
use tombolo_workload::simt::{ArrayInfo, Scaling};
use tombolo_workload::trace;

/// Default seed for generated inputs: any number, equal for everyone.
pub const SEED: u64 = 1;

/// Prefix in the name of a trace.
const TRACE: &str = "trace:";

/// A program, ready to run.
#[derive(Clone)]
pub struct PreparedProgram {
    /// Name given by the user.
    pub label: String,
    /// The recorded program.
    pub program: Arc<dyn Program>,
    /// Notes for the reader about this result.
    pub notes: Vec<String>,
    /// Parameters adjusted to a value different from the request, with the adjusted value: `kib=144`.
    pub adjusted: Vec<String>,
    /// Total bytes in its arrays; 0 if unknown.
    pub bytes: u64,
}

impl PreparedProgram {
    /// Returns a note if the arrays exceed the memory of `machine`.
    pub(crate) fn too_large(&self, machine: &MachineConfig) -> Option<String> {
        let has = machine.dram.bytes.saturating_mul(machine.topology.modules() as u64);
        let PreparedProgram { label, bytes: needs, .. } = self;
        (*needs > has).then(|| {
            format!("{label}: its arrays take {needs} bytes and the memory has {has}: it is run as if all fitted")
        })
    }
}

/// A workload with parameters and seed, or a trace.
#[derive(Clone)]
pub struct WorkloadChoice {
    chosen: WorkloadKind,
    /// Spelling given by the user.
    pub label: String,
    /// Seed for generated inputs.
    pub seed: u64,
    /// Cached result from the first call to [`WorkloadChoice::parameters`].
    known: OnceLock<Vec<(&'static str, String)>>,
}

#[derive(Clone)]
enum WorkloadKind {
    /// A shipped workload with its parameters: key and value, in the given order.
    Shipped { workload: &'static dyn Workload, given: Vec<(String, String)> },
    /// The trace at a path.
    Trace(PathBuf),
}

/// Parses `W[,key=value…]` and `trace:PATH`. Several items are separated by commas, or given in several words: a part
/// without `=` begins the next workload. Within double quotes, commas, equals signs and blanks are plain text, and two
/// quotes represent a single quote: `trace:"a, b"`.
///
/// # Errors
/// Returns an error for an unknown workload, a parameter before any workload or after a trace, or a quote that is not
/// closed.
pub fn workloads(words: &[String]) -> Result<Vec<WorkloadChoice>, PointError> {
    let mut choices: Vec<WorkloadChoice> = Vec::new();
    for word in words {
        // A parameter belongs to a workload in its own word.
        let first = choices.len();
        let parts = parts(word).ok_or_else(|| refused(word, "a double quote is not closed"))?;
        for WordItem { written, text, equals } in parts {
            match equals {
                _ if text.starts_with(TRACE) => choices.push(WorkloadChoice::of_trace(written, &text[TRACE.len()..])?),
                None => choices.push(WorkloadChoice {
                    chosen: WorkloadKind::Shipped { workload: find(&text)?, given: Vec::new() },
                    label: written.to_owned(),
                    seed: SEED,
                    known: OnceLock::new(),
                }),
                Some(at) => {
                    let owner = choices[first..].last_mut();
                    let owner =
                        owner.ok_or_else(|| refused(written, "a parameter follows its workload: W,key=value"))?;
                    let WorkloadKind::Shipped { given, .. } = &mut owner.chosen else {
                        return Err(refused(written, "a trace takes no parameters: it stays as it was recorded"));
                    };
                    given.push((text[..at].trim().to_owned(), text[at + 1..].trim().to_owned()));
                    owner.label = format!("{},{written}", owner.label);
                }
            }
        }
    }
    Ok(choices)
}

/// Parses a word with exactly one workload.
///
/// # Errors
/// Returns the errors of [`workloads`], and an error for several workloads.
pub fn only(word: &str) -> Result<WorkloadChoice, PointError> {
    let mut chosen = workloads(&[word.to_owned()])?;
    match (chosen.pop(), chosen.is_empty()) {
        (Some(choice), true) => Ok(choice),
        _ => Err(refused(word, "one workload is expected here")),
    }
}

fn refused(value: &str, reason: &'static str) -> PointError {
    PointError::Workloads { value: value.to_owned(), reason }
}

fn find(name: &str) -> Result<&'static dyn Workload, PointError> {
    tombolo_programs::find(name).map_err(|_| PointError::UnknownWorkload {
        name: name.to_owned(),
        near: near(name, tombolo_programs::names()),
        known: tombolo_programs::names().collect(),
    })
}

/// Machine properties that a program is recorded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    line: LineSize,
    warp_width: u32,
    scale: Scale,
    /// GPU count, used by multi-GPU programs to divide their work.
    gpus: u8,
}

impl Target {
    /// Target for machines with the line size, warp width and GPU count of `machine`, and the input at `scale`.
    pub fn new(machine: &MachineConfig, scale: tombolo_machine::MachineScale) -> Target {
        let input = Scale::new(scale.numerator(), scale.denominator()).expect("its parts have 16 bits");
        Target { line: machine.line, warp_width: machine.sm.warp_width, scale: input, gpus: machine.topology.gpus }
    }

    /// Target for `machine`. The input uses the machine's own scale, which keeps the ratio between footprint and
    /// capacity.
    pub fn of(machine: &MachineConfig) -> Target {
        Target::new(machine, machine.scale)
    }

    /// Returns the input's scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }
}

impl WorkloadChoice {
    /// Returns the trace at `path`.
    pub fn trace(path: &Path) -> WorkloadChoice {
        let label = format!("{TRACE}{}", quoted(&path.display().to_string()));
        WorkloadChoice { chosen: WorkloadKind::Trace(path.to_owned()), label, seed: SEED, known: OnceLock::new() }
    }

    fn of_trace(written: &str, path: &str) -> Result<WorkloadChoice, PointError> {
        match path {
            "" => {
                Err(refused(written, "a path follows: a folder with a kernelslist.g, such a list, or a native trace"))
            }
            path => Ok(WorkloadChoice { label: written.to_owned(), ..WorkloadChoice::trace(Path::new(path)) }),
        }
    }

    /// Returns the workload name without parameters; `trace` for a trace.
    pub fn name(&self) -> &'static str {
        match &self.chosen {
            WorkloadKind::Shipped { workload, .. } => workload.name(),
            WorkloadKind::Trace(_) => "trace",
        }
    }

    /// True for a trace.
    pub fn is_trace(&self) -> bool {
        matches!(self.chosen, WorkloadKind::Trace(_))
    }

    /// Returns the workload, if it ships with the program.
    pub fn shipped(&self) -> Option<&'static dyn Workload> {
        match &self.chosen {
            WorkloadKind::Shipped { workload, .. } => Some(*workload),
            WorkloadKind::Trace(_) => None,
        }
    }

    /// True if parameters were given.
    pub fn has_parameters(&self) -> bool {
        matches!(&self.chosen, WorkloadKind::Shipped { given, .. } if !given.is_empty())
    }

    /// True if a recording depends on the number of GPUs: see [`Workload::partitioned_by_gpus`].
    pub fn partitioned_by_gpus(&self) -> bool {
        self.shipped().is_some_and(Workload::partitioned_by_gpus)
    }

    /// Returns the arrays at an input scale on `gpus` GPUs, each with its scaling rule, without running the workload.
    /// Empty for a trace.
    ///
    /// # Errors
    /// Returns an error if the workload does not accept its parameters, or not at this scale.
    pub fn arrays(&self, scale: Scale, gpus: u8) -> Result<Vec<(ArrayInfo, Scaling)>, PointError> {
        match &self.chosen {
            WorkloadKind::Shipped { workload, given } => {
                let request = Request::new(*workload, scale, given, self.seed)?.with_gpus(gpus);
                let memory = layout(*workload, &request)?;
                Ok(memory.arrays().iter().cloned().zip(memory.scalings().iter().copied()).collect())
            }
            WorkloadKind::Trace(_) => Ok(Vec::new()),
        }
    }

    /// Returns the launches in order. They are planned if no address depends on data, and otherwise taken from a
    /// recording.
    ///
    /// # Errors
    /// Returns the errors of [`WorkloadChoice::record`].
    pub fn launches(&self, target: Target) -> Result<Vec<KernelInfo>, PointError> {
        if let WorkloadKind::Shipped { workload, given } = &self.chosen
            && workload.data_independent()
        {
            let request = Request::new(*workload, target.scale, given, self.seed)?.with_gpus(target.gpus);
            return Ok(plan(*workload, &request)?);
        }
        let program = self.record(target, 1)?.program;
        let kernel = |command: &Command| match *command {
            Command::Launch { kernel, .. } => Some(program.kernels()[kernel as usize].clone()),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
        };
        Ok(program.commands().iter().filter_map(kernel).collect())
    }

    /// Returns the input files.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.chosen {
            WorkloadKind::Shipped { workload, given } => {
                let is_file = |key: &str| {
                    workload
                        .parameters()
                        .iter()
                        .any(|known| known.name == key && matches!(known.kind, ParameterKind::File))
                };
                let files = given.iter().filter(|(key, value)| is_file(key) && !value.is_empty());
                files.map(|(_, value)| PathBuf::from(value)).collect()
            }
            WorkloadKind::Trace(path) => trace::files(path),
        }
    }

    /// Checks that the workload can be laid out, before any large amount of work.
    ///
    /// # Errors
    /// Returns an error if the workload does not accept its parameters, or not at this scale, or if the trace does not
    /// exist.
    pub fn check(&self, target: Target) -> Result<(), PointError> {
        match &self.chosen {
            WorkloadKind::Shipped { .. } => self.arrays(target.scale, target.gpus).map(drop),
            WorkloadKind::Trace(path) => trace_hash(path).map(drop),
        }
    }

    /// Checks that the parameters are acceptable to the workload, without laying out any arrays.
    ///
    /// # Errors
    /// Returns an error for unacceptable parameters, or for a trace that does not exist.
    pub fn check_parameters(&self) -> Result<(), PointError> {
        match &self.chosen {
            WorkloadKind::Shipped { workload, given } => {
                Ok(Request::new(*workload, Scale::FULL, given, self.seed).map(drop)?)
            }
            WorkloadKind::Trace(path) => trace_hash(path).map(drop),
        }
    }

    /// Returns every parameter with its value, explicit or default, in the workload's order. A file or trace is
    /// represented by a hash over its contents at the first call: a point's key remains valid even if input files
    /// change later. A registered program has one parameter more, `program`: a hash over this executable.
    ///
    /// # Errors
    /// Returns an error if the workload does not accept its parameters, or if a file cannot be read.
    pub fn parameters(&self) -> Result<Vec<(&'static str, String)>, PointError> {
        if let Some(known) = self.known.get() {
            return Ok(known.clone());
        }
        let now = self.parameters_now()?;
        Ok(self.known.get_or_init(|| now).clone())
    }

    fn parameters_now(&self) -> Result<Vec<(&'static str, String)>, PointError> {
        let (workload, given) = match &self.chosen {
            WorkloadKind::Shipped { workload, given } => (*workload, given),
            WorkloadKind::Trace(path) => return Ok(vec![("content", trace_hash(path)?)]),
        };
        let request = Request::new(workload, Scale::FULL, given, self.seed)?;
        let of = |parameter: &tombolo_workload::parameter::Parameter| {
            let value = request.values.text(parameter.name);
            let value = match parameter.kind {
                ParameterKind::File if !value.is_empty() => file_hash(Path::new(value))?,
                ParameterKind::File | ParameterKind::Count { .. } | ParameterKind::Choice(_) | ParameterKind::Flag => {
                    value.to_owned()
                }
            };
            Ok((parameter.name, value))
        };
        let parameters = workload.parameters().iter().map(of);
        // A registered program may change, and its streams with it: the executable that contains it stands for it.
        let program = (tombolo_programs::suite(workload) == tombolo_programs::REGISTERED)
            .then(|| Ok(("program", executable_hash()?)));
        parameters.chain(program).collect()
    }

    /// Runs the program once with up to `threads` threads, and stores its streams. A trace is opened instead.
    ///
    /// # Errors
    /// Returns an error for unsuitable parameters, an unreadable trace, a program that breaks a rule of the language,
    /// or a file changed since the first call to [`WorkloadChoice::parameters`].
    pub fn record(&self, target: Target, threads: usize) -> Result<PreparedProgram, PointError> {
        let (workload, given) = match &self.chosen {
            WorkloadKind::Shipped { workload, given } => (*workload, given),
            WorkloadKind::Trace(path) => return self.open(path, target),
        };
        let options = RecordOptions {
            warp_width: target.warp_width,
            line: target.line,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            ..RecordOptions::default()
        };
        let request = Request::new(workload, target.scale, given, self.seed)?.with_gpus(target.gpus);
        let recording = record(workload, &request, &options, Mode::Auto)?;
        self.refuse_changes()?;
        let notes = self.notes(target, workload, &recording);
        let setting = |adjusted: &AdjustedParameter| format!("{}={}", adjusted.parameter, adjusted.used);
        let adjusted = recording.adjusted().iter().map(setting).collect();
        let bytes = recording.arrays().iter().map(|array| array.bytes).sum();
        Ok(PreparedProgram { label: self.label.clone(), program: Arc::new(recording), notes, adjusted, bytes })
    }

    fn open(&self, path: &Path, target: Target) -> Result<PreparedProgram, PointError> {
        let (program, mut notes) = trace::open_with_notes(path, target.line, target.warp_width)?;
        self.refuse_changes()?;
        if target.scale != Scale::FULL {
            notes.push(format!("the machine is scaled by {}; a trace stays as it was recorded", target.scale));
        }
        let (label, adjusted) = (self.label.clone(), Vec::new());
        Ok(PreparedProgram { label, program: Arc::from(program), notes, adjusted, bytes: 0 })
    }

    /// Returns an error if a file has changed since the parameters were read; a trace is read during the run.
    pub(crate) fn refuse_changes(&self) -> Result<(), PointError> {
        let Some(known) = self.known.get() else { return Ok(()) };
        if self.parameters_now()? == *known {
            return Ok(());
        }
        let paths: Vec<String> = match &self.chosen {
            WorkloadKind::Shipped { .. } => self.files().iter().map(|path| path.display().to_string()).collect(),
            WorkloadKind::Trace(path) => vec![path.display().to_string()],
        };
        let error = io::Error::other("it has changed since its points were listed; the same command takes it as it is");
        Err(PointError::File { path: paths.join(", "), error })
    }

    /// Returns notes about the layout, and about effects of scaling beyond a smaller size.
    fn notes(&self, target: Target, workload: &dyn Workload, recording: &Recording) -> Vec<String> {
        let (label, scale) = (&self.label, target.scale);
        let mut notes: Vec<_> = recording.notes().iter().map(|note| format!("{label}: {note}")).collect();
        if scale == Scale::FULL {
            return notes;
        }
        if workload.nonlinear() {
            notes.push(format!("{label}: its work does not follow its footprint; at scale {scale} compare with care"));
        }
        if !recording.scales() || !self.files().is_empty() {
            notes.push(format!("{label}: the machine is scaled by {scale}, its input cannot be"));
        }
        notes
    }
}

/// Returns a hash over the contents of a trace: its list or its single file, and each kernel file in the list, in
/// order.
fn trace_hash(path: &Path) -> Result<String, PointError> {
    let hashes: Result<Vec<String>, _> = trace::files(path).iter().map(|file| file_hash(file)).collect();
    match hashes {
        Ok(hashes) => Ok(blake3::hash(hashes.concat().as_bytes()).to_hex().to_string()),
        // For an invalid trace, the trace reader gives a better error message.
        Err(error) => Err(trace::info(path).err().map_or(error, PointError::from)),
    }
}

/// Returns a hash over a file's bytes. Hashes are cached for later points: a file is read again only if the file's
/// length or modification time changes.
fn file_hash(path: &Path) -> Result<String, PointError> {
    hashed(path).map_err(|error| PointError::File { path: path.display().to_string(), error })
}

/// Returns a hash over the executable of this process.
pub(crate) fn executable_hash() -> Result<String, PointError> {
    let path =
        std::env::current_exe().map_err(|error| PointError::File { path: "the executable".to_owned(), error })?;
    file_hash(&path)
}

fn hashed(path: &Path) -> io::Result<String> {
    static KNOWN: Mutex<BTreeMap<(PathBuf, u64, SystemTime), String>> = Mutex::new(BTreeMap::new());
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
    fn a_trace_that_changes_is_no_longer_the_workload_of_its_points() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a,b.tombolo");
        let machine = tombolo_machine::machine("hmg-1x4").unwrap().check().unwrap();
        let write = |word: &str| {
            let source = only(word).unwrap().record(Target::of(&machine), 1).unwrap();
            trace::write(&*source.program, &path).unwrap();
        };
        write("triad,elements=4096,iterations=1");
        let choice = WorkloadChoice::trace(&path);
        let before = choice.parameters().unwrap();
        assert!(choice.record(Target::of(&machine), 1).is_ok_and(|source| source.label == choice.label));
        write("triad,elements=8192,iterations=1");
        let refused = choice.record(Target::of(&machine), 1).map(|source| source.label).unwrap_err().to_string();
        assert!(refused.contains("a,b.tombolo: it has changed"), "{refused}");
        assert_ne!(only(&choice.label).unwrap().parameters().unwrap(), before, "the next command takes it as it is");
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
