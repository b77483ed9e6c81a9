//! The native format: damage is detected, and a file is written completely or not at all.

use super::kit::{WARP, block, folder, header, open, streams};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tombolo_types::stream::{
    Access, Accesses, Command, CtaStream, KernelClass, KernelInfo, Op, Program, StreamError, Token,
};
use tombolo_types::{
    ArrayInfo, GpuId, GpuSet, HostPhase, LaunchDevices, Line, LineSize, Mask, ModuleSet, Order, Scope,
};
use tombolo_workload::bench::{self, Mode, Request};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;
use tombolo_workload::trace;

/// A cooperative program with every kind of operation that hardware traces lack; the CTA `bad` cannot be decoded.
struct Handmade {
    kernels: Vec<KernelInfo>,
    commands: Vec<Command>,
    arrays: Vec<ArrayInfo>,
    phases: Vec<HostPhase>,
    setup: HostPhase,
    results: HostPhase,
    bad: Option<u32>,
}

impl Handmade {
    fn new(ctas: u32, bad: Option<u32>) -> Handmade {
        let class = KernelClass::Cooperative;
        let parts = vec![0, ctas / 2, ctas];
        let info = KernelInfo {
            parts,
            name: "handmade\n\"é".to_owned(),
            ctas,
            threads_per_cta: 64,
            class,
            ..KernelInfo::default()
        };
        let commands = vec![
            Command::launch(0, 2),
            Command::Launch { kernel: 0, stream: 1, on: LaunchDevices::Gpus(GpuSet::from_bits(0b101)) },
            Command::Barrier,
            Command::Launch { kernel: 0, stream: 0, on: LaunchDevices::Modules(ModuleSet::from_bits(1 << 63)) },
            Command::Copy { address: u64::MAX, bytes: 1, to_device: false },
            Command::Host { phase: 1 },
            Command::Host { phase: 0 },
            Command::Launch {
                kernel: 0,
                stream: 0,
                on: LaunchDevices::Gpus([GpuId(3), GpuId(254)].into_iter().collect()),
            },
        ];
        let array = |name: &str, base, bytes, element| ArrayInfo { name: name.to_owned(), base, bytes, element };
        let arrays =
            vec![array("a\n", 0, 640_000, Some(8)), array("", 1 << 40, 0, None), array("last", u64::MAX - 9, 9, None)];
        let phases = vec![
            HostPhase { reads: vec![0..8, 9..11], writes: vec![] },
            HostPhase { reads: vec![0..1, 7..8], writes: vec![0..1, 2..u64::MAX] },
        ];
        let setup = HostPhase { reads: vec![0..1, 3..4], writes: vec![16..32, 40..48] };
        let results = HostPhase { reads: vec![0..1, 2..u64::MAX], writes: vec![] };
        Handmade { kernels: vec![info], commands, arrays, phases, setup, results, bad }
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
    fn arrays(&self) -> &[ArrayInfo] {
        &self.arrays
    }
    fn host_phases(&self) -> &[HostPhase] {
        &self.phases
    }
    fn setup(&self) -> &HostPhase {
        &self.setup
    }
    fn results(&self) -> &HostPhase {
        &self.results
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

/// Opens and decodes a whole trace; returns the first error's message.
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
    assert_eq!((read.arrays(), read.host_phases()), (program.arrays(), program.host_phases()));
    assert_eq!((read.setup(), read.results()), (program.setup(), program.results()));
    assert_eq!(streams(&*read), streams(&program));
    let mut stream = CtaStream::default();
    assert!(read.cta(0, 5000, &mut stream).unwrap_err().message.contains("there is no CTA 5000 of kernel 0"));
    assert!(read.cta(1, 0, &mut stream).is_err());
    let info = trace::info(&file).unwrap();
    assert_eq!((info.format.as_str(), info.kernels[0].ctas, info.copies_to_host.bytes), ("native", 5000, 1));
    let json = serde_json::to_value(&info).unwrap();
    assert_eq!(json["setup"], serde_json::json!({"read_bytes": 2, "written_bytes": 24}));
    assert_eq!(json["results"], serde_json::json!({"read_bytes": u64::MAX - 1, "written_bytes": 0}));
}

#[test]
#[ignore = "deep: every workload at the size of its paper over 1024; a test of every recording has small ones"]
fn every_workload_survives_writing() {
    for workload in tombolo_programs::list() {
        // Multi-GPU programs keep the dimension that GPUs divide, and stages are alike: a single iteration is enough.
        let repeats = |name: &&&str| workload.parameters().iter().any(|known| known.name == **name);
        let of_gpus = ["iterations", "steps", "rounds"].iter().filter(|_| workload.partitioned_by_gpus()).find(repeats);
        let repeated = of_gpus.into_iter().chain(["stages"].iter().filter(repeats));
        let once: Vec<_> = repeated.map(|name| ((*name).to_owned(), "1".to_owned())).collect();
        let request = Request::new(*workload, Scale::new(1, 1024).unwrap(), &once, 1).unwrap();
        let recording = bench::record(*workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let (_out, file) = written(&recording);
        let read = open(&file).unwrap();
        assert_eq!(read.kernels(), recording.kernels());
        assert_eq!(read.commands(), recording.commands());
        assert_eq!((read.arrays(), read.host_phases()), (recording.arrays(), recording.host_phases()));
        assert_eq!((read.setup(), read.results()), (recording.setup(), recording.results()));
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
    program.arrays.clear();
    program.phases.clear();
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

/// The format's checksum, needed for writing a modified header.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |state: u64, word: u64| (state ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    let mut words = bytes.chunks_exact(8);
    let whole = words
        .by_ref()
        .fold(0xcbf2_9ce4_8422_2325, |state, word| step(state, u64::from_le_bytes(word.try_into().unwrap())));
    let rest = words.remainder().iter().fold(whole, |state, byte| step(state, u64::from(*byte)));
    step(rest, bytes.len() as u64)
}

/// Result of opening an empty program whose header has `from` replaced by `to`, as a file of `version`.
fn with_header(version: u32, from: &str, to: &str) -> Result<(), String> {
    let mut program = Handmade::new(0, None);
    program.kernels.clear();
    program.commands.retain(|command| matches!(command, Command::Host { .. } | Command::Barrier));
    let (_out, file) = written(&program);
    let bytes = std::fs::read(&file).unwrap();
    let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[24..24 + length]).unwrap();
    assert!(header.contains(from), "{from} is not in {header}");
    let header = header.replacen(from, to, 1);
    // Nothing lies between the header and an empty index: the footer's first number is the start of the index.
    let mut footer = ((24 + header.len()) as u64).to_le_bytes().to_vec();
    footer.extend(0_u64.to_le_bytes());
    footer.extend(checksum(&[]).to_le_bytes());
    footer.extend(checksum(&footer).to_le_bytes());
    let mut changed = bytes[..8].to_vec();
    changed.extend(version.to_le_bytes());
    changed.extend((header.len() as u32).to_le_bytes());
    changed.extend(checksum(header.as_bytes()).to_le_bytes());
    changed.extend(header.as_bytes());
    changed.extend(&footer);
    changed.extend(&bytes[..8]);
    std::fs::write(&file, changed).unwrap();
    outcome(&file)
}

#[test]
fn a_header_whose_parts_do_not_fit_is_refused() {
    assert_eq!(with_header(2, "handmade", "renamed"), Ok(()), "only what is wrong is refused");
    for (from, to, message) in [
        ("{\"phase\":1}", "{\"phase\":2}", "host phase 2 of 2"),
        ("\"base\":0", "\"base\":1099511627770", "array \"\" at byte 1099511627776, where another ends"),
        ("\"bytes\":9", "\"bytes\":10", "beyond the last address"),
        ("[[0,8],[9,11]]", "[[0,9],[9,11]]", "addresses of a host phase that do not ascend"),
        ("[[0,1],", "[[1,1],", "addresses of a host phase that do not ascend"),
        ("[[0,1],", "[[0,1,2],", "the header: "),
        ("[[16,32],", "[[16,40],", "addresses of a host phase that do not ascend"),
        ("\"element\":8", "\"elements\":8", "unknown field `elements`"),
    ] {
        let refused = with_header(2, from, to).unwrap_err();
        assert!(refused.contains(message), "{from} as {to}: {refused}");
    }
}

#[test]
fn arrays_that_share_a_line_of_the_machine_are_refused() {
    let mut program = Handmade::new(1, None);
    program.arrays[1] = ArrayInfo { base: 640_128, bytes: 4, ..program.arrays[1].clone() };
    program.arrays[0].bytes = 640_004;
    let (_out, file) = written(&program);
    assert_eq!(outcome(&file), Ok(()), "they do not share one of 128 bytes");
    let longer = trace::open(&file, LineSize::new(256).unwrap(), WARP).err().unwrap().to_string();
    assert!(longer.contains("arrays \"a\\n\" and \"\" share a line of 256 bytes"), "{longer}");
}

#[test]
fn parts_and_places_that_make_no_sense_are_refused() {
    let refused = |change: &dyn Fn(&mut Handmade)| {
        let mut program = Handmade::new(3, None);
        change(&mut program);
        let (_out, file) = written(&program);
        outcome(&file).unwrap_err()
    };
    for parts in [[1, 2], [0, 4]] {
        let message = refused(&|it| it.kernels[0].parts = parts.to_vec());
        assert!(message.contains("that do not ascend from 0 to its CTAs"), "{message}");
    }
    let message =
        refused(&|it| it.commands[1] = Command::Launch { kernel: 0, stream: 1, on: LaunchDevices::Gpus(GpuSet::NONE) });
    assert!(message.contains("a launch of kernel 0 on no device"), "{message}");
}

#[test]
fn a_feature_that_is_not_known_is_named_and_refused() {
    let refused = with_header(2, "[\"arrays\",\"host\",", "[\"arrays\",\"peers\",").unwrap_err();
    let known = "this program reads arrays, host, devices, device-lists, barriers, ends, chains";
    assert!(refused.contains("the feature \"peers\"; ") && refused.contains(known), "{refused}");
    let with_more = with_header(2, "\"chains\"],", "\"peers\"],\"peers\":[],").unwrap_err();
    assert!(with_more.contains("the feature \"peers\""), "before what it adds is found strange: {with_more}");
}

#[test]
fn a_version_is_not_taken_for_another() {
    let refused = |version, from, to| with_header(version, from, to).unwrap_err();
    assert!(refused(1, "handmade", "handmade").contains("features, which version 1 does not have"));
    assert!(
        refused(2, "\"features\":[\"arrays\",\"host\",\"barriers\",\"ends\",\"chains\"],", "")
            .contains("no features, which version 2 has")
    );
    assert!(refused(3, "handmade", "handmade").contains("of version 3; this program reads versions 1 to 2"));
}

#[test]
fn a_file_that_says_nothing_of_the_ends_of_a_program_has_none() {
    let silent = Handmade { setup: HostPhase::default(), results: HostPhase::default(), ..Handmade::new(3, None) };
    let (_out, file) = written(&silent);
    let bytes = std::fs::read(&file).unwrap();
    let header = String::from_utf8_lossy(&bytes);
    assert!(
        ["\"ends\"", "\"setup\"", "\"results\""].iter().all(|key| !header.contains(key)),
        "as before they were kept"
    );
    let read = open(&file).unwrap();
    assert!(read.setup().is_empty() && read.results().is_empty() && !read.host_phases().is_empty());
}

/// Parameters of a workload.
type GivenParameters = &'static [(&'static str, &'static str)];

/// Files written before the format had features, with their programs and parameters.
const VERSION_1: [(&str, &str, GivenParameters); 1] =
    [("stencil2d", "stencil2d-version-1.tombolo", &[("columns", "128"), ("rows", "40"), ("iterations", "2")])];

/// Returns a stream whose arithmetic has no chain information.
fn unchained(mut stream: CtaStream) -> CtaStream {
    let (ops, warps) = (std::mem::take(&mut stream.ops), std::mem::take(&mut stream.warps));
    for warp in warps {
        let start = stream.ops.len() as u32;
        for op in &ops[warp.start as usize..warp.end as usize] {
            match *op {
                Op::Use { distance: 0 } => {}
                Op::Compute { class, count, .. } => stream.ops.push(Op::occupy(class, count)),
                other => stream.ops.push(other),
            }
        }
        stream.warps.push(start..stream.ops.len() as u32);
    }
    stream
}

/// The program in this file is a search that no longer ships: seven launches, a launch per level of a random graph.
#[test]
fn a_file_of_version_1_outlives_its_program() {
    let read = open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/native/bfs-version-1.tombolo")).unwrap();
    let kernels: Vec<_> = read.kernels().iter().map(|kernel| (kernel.name.as_str(), kernel.ctas)).collect();
    assert_eq!(kernels, [("bfs-level", 3); 7]);
    let (mut loads, mut others) = (0, 0);
    for op in streams(&*read).iter().flat_map(|stream| &stream.ops) {
        match op {
            Op::Load { accesses, .. } => loads += u32::from(accesses.len),
            Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => others += u32::from(accesses.len),
            _ => {}
        }
    }
    assert_eq!((loads, others), (3418, 819), "line transactions, as `trace info` says");
}

#[test]
fn files_of_version_1_are_still_read() {
    for (name, file, given) in VERSION_1 {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/native").join(file);
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let workload = tombolo_programs::find(name).unwrap();
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap();
        let recording = bench::record(workload, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let read = open(&path).unwrap();
        assert_eq!(read.kernels(), recording.kernels());
        let unchained: Vec<_> = streams(&recording).into_iter().map(unchained).collect();
        assert_eq!(streams(&*read), unchained, "{file}");
        let timed = recording.commands().iter().filter(|command| !matches!(command, Command::Host { .. }));
        assert!(read.commands().iter().eq(timed), "{file}: what takes time is the same");
        assert!(read.arrays().is_empty() && read.host_phases().is_empty());
        assert!(read.setup().is_empty() && read.results().is_empty());
        assert!(super::kit::notes(&path).iter().any(|note| note.contains("names neither arrays")));
    }
}
