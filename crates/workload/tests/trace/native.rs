//! The native format: damage shows, and a file is written whole or not at all.

use super::kit::{WARP, block, folder, header, open, streams};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tombolo_types::LineSize;
use tombolo_types::stream::{
    Access, Accesses, Command, CtaStream, KernelClass, KernelInfo, Op, Program, StreamError, Token,
};
use tombolo_types::{Line, Mask, Order, Scope};
use tombolo_workload::bench::{self, Mode, Request};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;
use tombolo_workload::trace;

/// A cooperative program with every kind of operation that traces of hardware lack; `bad` cannot be decoded.
struct Handmade {
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    bad: Option<u32>,
}

impl Handmade {
    fn new(ctas: u32, bad: Option<u32>) -> Handmade {
        let class = KernelClass::Cooperative;
        let info =
            KernelInfo { name: "handmade\n\"é".to_owned(), ctas, threads_per_cta: 64, class, ..KernelInfo::default() };
        let commands = vec![
            Command::Launch { kernel: 0, stream: 2 },
            Command::Copy { address: u64::MAX, bytes: 1, to_device: false },
        ];
        Handmade { kernels: vec![info], commands, bad }
    }
}

impl Program for Handmade {
    fn name(&self) -> &str {
        "handmade"
    }
    fn line_size(&self) -> LineSize {
        LineSize::B128
    }
    fn warp_width(&self) -> u32 {
        WARP
    }
    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }
    fn commands(&self) -> &[Command] {
        &self.commands
    }
    fn cta(&self, _: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        if self.bad == Some(cta) {
            return Err(StreamError { message: "lost".to_owned() });
        }
        into.clear();
        let order = Order::acquire(Scope::Sys).into();
        let access = |line, mask| Access { line: Line(line), mask: Mask(mask) };
        into.accesses = vec![access(u64::from(cta), 0b10), access(u64::MAX, u32::MAX)];
        into.tokens = vec![Token(cta)];
        into.ops = vec![
            Op::WaitUntil { order, access: 0, token: 0 },
            Op::Store { order: Order::WEAK.into(), accesses: Accesses { start: 1, len: 1 } },
            Op::Signal { token: 0 },
        ];
        into.warps = vec![0..1, 1..3];
        Ok(())
    }
}

fn written(program: &dyn Program) -> (TempDir, PathBuf) {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("program.tombolo");
    trace::write(program, &file).unwrap();
    (out, file)
}

/// Opens and decodes everything; the message of what fails first.
fn outcome(path: &Path) -> Result<(), String> {
    trace::info(path).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn any_program_survives_writing() {
    let program = Handmade::new(5000, None);
    let (_out, file) = written(&program);
    let read = open(&file).unwrap();
    assert_eq!(read.kernels(), program.kernels());
    assert_eq!(read.commands(), program.commands());
    assert_eq!(streams(&*read), streams(&program));
    let mut stream = CtaStream::default();
    assert!(read.cta(0, 5000, &mut stream).unwrap_err().message.contains("there is no CTA 5000 of kernel 0"));
    assert!(read.cta(1, 0, &mut stream).is_err());
    let info = trace::info(&file).unwrap();
    assert_eq!((info.format.as_str(), info.kernels[0].ctas, info.copies_to_host.bytes), ("native", 5000, 1));
    serde_json::to_string(&info).unwrap();
}

#[test]
fn every_workload_survives_writing() {
    for workload in bench::list() {
        let request = Request::new(*workload, Scale::new(1, 1024).unwrap(), &[], 1).unwrap();
        let recording = bench::record(*workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let (_out, file) = written(&recording);
        let read = open(&file).unwrap();
        assert_eq!(read.kernels(), recording.kernels());
        assert_eq!(read.commands(), recording.commands());
        let (mut expected, mut stream) = (CtaStream::default(), CtaStream::default());
        for (kernel, info) in recording.kernels().iter().enumerate() {
            for cta in 0..info.ctas {
                recording.cta(kernel as u32, cta, &mut expected).unwrap();
                read.cta(kernel as u32, cta, &mut stream).unwrap();
                assert_eq!(stream, expected, "{} CTA {cta} of kernel {kernel}", workload.name());
            }
        }
    }
}

#[test]
fn kernels_and_programs_may_be_empty() {
    let mut program = Handmade::new(0, None);
    let (_out, file) = written(&program);
    assert_eq!(outcome(&file), Ok(()));
    program.kernels.clear();
    program.commands.clear();
    let (_out, file) = written(&program);
    assert_eq!(outcome(&file), Ok(()));
}

#[test]
fn a_change_of_any_byte_shows() {
    let (_out, file) = written(&Handmade::new(40, None));
    let bytes = std::fs::read(&file).unwrap();
    for at in 8..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        std::fs::write(&file, changed).unwrap();
        let message = outcome(&file).err().unwrap_or_else(|| panic!("a change of byte {at} of {}", bytes.len()));
        let named = message.contains("program.tombolo");
        assert!(named && (message.contains("damaged at byte") || message.contains("of version")), "{message}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (_out, file) = written(&Handmade::new(40, None));
    let bytes = std::fs::read(&file).unwrap();
    for cut in 0..bytes.len() {
        std::fs::write(&file, &bytes[..cut]).unwrap();
        assert!(outcome(&file).is_err(), "cut at byte {cut}");
    }
    std::fs::write(&file, [&bytes[..], b"x"].concat()).unwrap();
    assert!(outcome(&file).unwrap_err().contains("does not end with a footer"));
}

#[test]
fn a_failed_write_leaves_what_was_there() {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("program.tombolo");
    let failing = Handmade::new(3, Some(2));
    let error = trace::write(&failing, &file).unwrap_err().to_string();
    assert_eq!(error, "thread block 2 of kernel 0: lost");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
    std::fs::write(&file, "before").unwrap();
    assert!(trace::write(&failing, &file).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 1);
    let nowhere = out.path().join("none/program.tombolo");
    assert!(trace::write(&Handmade::new(1, None), &nowhere).unwrap_err().to_string().contains("cannot create"));
    let folder = out.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    assert!(trace::write(&Handmade::new(1, None), &folder).unwrap_err().to_string().contains("cannot put in place"));
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 2);
}

#[test]
fn an_import_keeps_what_only_the_trace_knows() {
    let text = header(4, "2,1,1", 32) + &block("0,0,0", &[&["0 1 0 FROB 0 0"]]) + &block("1,0,0", &[&[]]);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes())]);
    let file = trace.path().join("sample.tombolo");
    trace::import(trace.path(), &file).unwrap();
    let info = trace::info(&file).unwrap();
    assert_eq!(info, trace::info(trace.path()).unwrap());
    assert_eq!((info.tracer_version, info.unknown_opcodes[0].name.as_str()), (Some(4), "FROB"));
}
