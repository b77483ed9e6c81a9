//! Small traces, each for a single behaviour.

use super::kit::{block, folder, folder_with_list, header, memory, notes, open, open_text, stream, streams};
use ComputeClass::{Fp32, Fp64, Int};
use tombolo_types::stream::{Accesses, AtomicResult, ChainLinks, Command, ComputeClass, CtaStream, Op, PackedOrder};
use tombolo_types::{Order, Scope, Semantics};
use tombolo_workload::trace;

fn weak() -> PackedOrder {
    Order::WEAK.into()
}

fn at(start: u32, len: u8) -> Accesses {
    Accesses { start, len }
}

fn load(start: u32, len: u8) -> Op {
    Op::Load { order: weak(), accesses: at(start, len) }
}

fn wait(distance: u8) -> Op {
    Op::Use { distance }
}

fn lines(stream: &CtaStream) -> Vec<u64> {
    stream.accesses.iter().map(|access| access.line.0).collect()
}

#[test]
fn every_version_and_encoding_gives_the_same_stream() {
    let third = ["0000 00000007 1 R2 LDG.E 1 R4 4 0 0x1000 0x1004 0x1008", "0010 00000007 0 EXIT 0 0"];
    let fourth = ["0000 00000007 1 R2 LDG.E 1 R4 4 1 0x1000 4", "0010 00000007 0 EXIT 0 0"];
    let fifth = ["0000 00000007 1 R2 LDG.E 1 R4 4 2 0x1000 4 4 16", "0010 00000007 0 EXIT 0 0 0"];
    let expected = stream(3, &third);
    assert_eq!(lines(&expected), [0x1000 / 128]);
    assert_eq!(stream(4, &fourth), expected);
    assert_eq!(stream(5, &fifth), expected);
    let numbered = header(4, "1,1,1", 32).replace("lineinfo = 0", "lineinfo = 1");
    let prefixed = third.map(|line| format!("21 {line}"));
    let program = open_text(&(numbered + &block("0,0,0", &[&[&prefixed[0], &prefixed[1]]]))).unwrap();
    assert_eq!(streams(&*program), [expected]);
}

#[test]
fn header_and_list_become_kernel_and_commands() {
    let text = header(5, "1,2,1", 64) + &block("0,1,0", &[&[], &[]]) + &block("0,0,0", &[&[], &["0 1 0 NOP 0 0 0"]]);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes())]);
    let list = "MemcpyHtoD,0x00007f00,256\nkernel-1.traceg.xz\nMemcpyDtoH,7f80,128\nkernel-1.traceg\n";
    std::fs::write(trace.path().join("kernelslist.g"), list).unwrap();
    let program = open(trace.path()).unwrap();
    let info = &program.kernels()[0];
    assert_eq!((info.name.as_str(), info.ctas, info.threads_per_cta), ("sample", 2, 64));
    assert_eq!((info.shared_bytes, info.registers), (64, 16));
    let launch = Command::launch(0, 3);
    let copy = |address, bytes, to_device| Command::Copy { address, bytes, to_device };
    let expected = [copy(0x7f00, 256, true), launch.clone(), copy(0x7f80, 128, false), launch];
    assert_eq!(program.commands(), expected);
    let mut stream = CtaStream::default();
    program.cta(0, 0, &mut stream).unwrap();
    assert_eq!(stream.warps, [0..0, 0..1], "block 0,0,0 is CTA 0 wherever it stands in the file");
}

#[test]
fn stream_handles_become_small_numbers() {
    let with = |stream: &str| header(5, "1,1,1", 32).replace("id = 3", stream) + &block("0,0,0", &[&[]]);
    let (first, second) = (with("id = 94325091848192"), with("id = 0"));
    let trace = folder(&[("kernel-1.traceg", first.as_bytes()), ("kernel-2.traceg", second.as_bytes())]);
    let commands = open(trace.path()).unwrap().commands().to_vec();
    let launch = |kernel, stream| Command::launch(kernel, stream);
    assert_eq!(commands, [launch(0, 0), launch(1, 1)]);
}

#[test]
fn kernels_of_several_streams_are_told_to_run_side_by_side() {
    let with = |stream: &str| header(5, "1,1,1", 32).replace("id = 3", stream) + &block("0,0,0", &[&[]]);
    let of = |first: &str, second: &str| {
        let (first, second) = (with(first), with(second));
        folder(&[("kernel-1.traceg", first.as_bytes()), ("kernel-2.traceg", second.as_bytes())])
    };
    let told = "the kernels of 2 CUDA streams run side by side";
    for (first, second, several) in [
        ("id = 1", "id = 2", true),
        ("id = 7", "id = 7", false),
        ("id = -1", "id = -2", true),
        ("id = -1", "id = -1", false),
    ] {
        let trace = of(first, second);
        let native = trace.path().join("same.tombolo");
        trace::import(trace.path(), &native).unwrap();
        for path in [trace.path(), &native] {
            let times = notes(path).iter().filter(|note| note.starts_with(told)).count();
            assert_eq!(times, usize::from(several), "{first}, {second}: {}", path.display());
        }
    }
}

#[test]
fn waits_of_a_list_hold_up_all_streams_where_there_are_several() {
    let with = |stream: &str| header(5, "1,1,1", 32).replace("id = 3", stream) + &block("0,0,0", &[&[]]);
    let list = "kernel-1.traceg\ncudaEventRecord\nkernel-2.traceg\ncudaDeviceSynchronize\nkernel-1.traceg";
    let commands = |second: &str| {
        let (first, second) = (with("id = 1"), with(second));
        let files = [("kernel-1.traceg", first.as_bytes()), ("kernel-2.traceg", second.as_bytes())];
        let trace = folder_with_list(list, &files);
        open(trace.path()).unwrap().commands().to_vec()
    };
    let launch = |kernel, stream| Command::launch(kernel, stream);
    assert_eq!(commands("id = 2"), [launch(0, 1), launch(1, 2), Command::Barrier, launch(0, 1)]);
    assert_eq!(commands("id = 1"), [launch(0, 1), launch(1, 1), launch(0, 1)]);
}

#[test]
fn a_kernel_trace_alone_is_a_program() {
    let text = header(5, "1,1,1", 32) + &block("0,0,0", &[&["0 1 0 NOP 0 0 0"]]);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes())]);
    let program = open(&trace.path().join("kernel-1.traceg")).unwrap();
    assert_eq!(program.commands(), [Command::launch(0, 3)]);
}

#[test]
fn warps_may_come_in_any_order() {
    let block = "#BEGIN_TB\nthread block = 0,0,0\nwarp = 1\ninsts = 1\n0 1 0 DADD 0 0\nwarp = 0\ninsts = 1\n0 1 0 FADD 0 0\n#END_TB\n";
    let program = open_text(&(header(4, "1,1,1", 64) + block)).unwrap();
    let [stream] = &streams(&*program)[..] else { panic!("one CTA") };
    let compute = |class| Op::Compute { class, count: 1, chain: 1, links: ChainLinks::default() };
    assert_eq!(stream.ops, [compute(ComputeClass::Fp32), compute(ComputeClass::Fp64)]);
    assert_eq!(stream.warps, [0..1, 1..2]);
}

#[test]
fn arithmetic_runs_join_within_a_warp_only() {
    let warp: &[&str] = &["0 1 0 FADD 0 0", "1 1 0 FMUL 0 0", "2 1 0 IADD3 0 0", "3 1 0 EXIT 0 0"];
    let program = open_text(&(header(4, "1,1,1", 64) + &block("0,0,0", &[warp, &warp[3..]]))).unwrap();
    let compute = |class, count, chain| Op::Compute { class, count, chain, links: ChainLinks::default() };
    let expected = [
        compute(ComputeClass::Fp32, 2, 1),
        compute(ComputeClass::Int, 1, 0),
        compute(ComputeClass::Other, 1, 0),
        compute(ComputeClass::Other, 1, 1),
    ];
    assert_eq!(streams(&*program)[0].ops, expected);
}

/// The arithmetic of a warp: class, instructions, chain, then true if it joins the path before, and true if it is
/// awaited.
fn arithmetic(lines: &[&str]) -> Vec<(ComputeClass, u16, u16, bool, bool)> {
    let ops = stream(4, lines).ops;
    let runs = ops.iter().filter_map(|op| match *op {
        Op::Compute { class, count, chain, links } => Some((class, count, chain, links.joins, links.awaited)),
        _ => None,
    });
    runs.collect()
}

#[test]
fn registers_tell_the_chains_of_arithmetic() {
    let add = "00 1 1 R2 FADD 2 R2 R3 0";
    let beside = "10 1 1 R4 FADD 2 R4 R3 0";
    assert_eq!(arithmetic(&[add, add, add]), [(Fp32, 3, 3, false, false)], "one value");
    assert_eq!(arithmetic(&[add, beside, add, beside]), [(Fp32, 4, 2, false, false)], "two values");
    let wide = "20 1 1 R6 DADD 2 R2 R2 0";
    assert_eq!(arithmetic(&[add, "00 1 1 R3 FADD 2 R2 R2 0", wide]).last(), Some(&(Fp64, 1, 1, true, false)), "a pair");
    assert_eq!(arithmetic(&["00 1 1 R255 FADD 1 R2 0", "10 1 1 R3 FADD 1 R255 0"]), [(Fp32, 2, 1, false, false)]);
}

#[test]
fn what_reads_the_result_of_arithmetic_waits_for_it() {
    let (add, address) = ("00 1 1 R2 FADD 2 R2 R3 0", "10 1 1 R8 IADD3 1 R9 0");
    let (load, other) = ("20 1 1 R3 LDG.E 1 R8 4 1 0x100 0", "20 1 1 R3 LDG.E 1 R6 4 1 0x100 0");
    assert_eq!(arithmetic(&[add, address, load]), [(Fp32, 1, 1, false, false), (Int, 1, 0, false, true)]);
    let goes_on = [(Fp32, 1, 1, false, false), (Fp32, 1, 1, true, false)];
    assert_eq!(arithmetic(&[add, other, add]), goes_on, "the load needs none of it, and the sum goes on behind it");
    let store = "30 1 0 STG.E 2 R12 R2 4 1 0x100 0";
    let ops = stream(4, &[add, other, store]).ops;
    assert_eq!(ops[2..], [wait(0), Op::Store { order: weak(), accesses: at(1, 1) }]);
}

#[test]
fn a_chain_on_a_loaded_value_starts_with_it() {
    let (add, load) = ("00 1 1 R2 FADD 2 R2 R2 0", "20 1 1 R3 LDG.E 1 R8 4 1 0x100 0");
    let ops = stream(4, &[add, load, "30 1 1 R4 FADD 1 R3 0"]).ops;
    let own = Op::Compute { class: Fp32, count: 1, chain: 1, links: ChainLinks::default() };
    assert_eq!(ops, [own, Op::Load { order: weak(), accesses: at(0, 1) }, wait(1), own]);
    let scratch = "40 1 1 R2 LDS 1 R9 4 1 0x10 0";
    assert_eq!(arithmetic(&[add, scratch, add])[1], (Fp32, 1, 1, false, false), "the scratchpad has written it");
}

#[test]
fn reading_a_loaded_register_waits_once() {
    let ops = memory(
        4,
        &[
            "00 1 1 R4 LDG.E.64 1 R2 8 1 0x1000 0",
            "10 1 1 R8 LDG.E 1 R2 4 1 0x2000 0",
            "20 1 1 R0 FADD 2 R5 R255 0",
            "30 1 1 R0 FADD 2 R4 R8 0",
            "40 1 1 R0 FADD 2 R8 R4 0",
        ],
    );
    assert_eq!(ops, [load(0, 1), load(1, 1), wait(2), wait(1)]);
}

#[test]
fn overwriting_a_loaded_register_waits() {
    let ops = memory(4, &["00 1 1 R7 LDG.E 1 R2 4 1 0x1000 0", "10 1 1 R7 MOV 0 0", "20 1 1 R7 MOV 0 0"]);
    assert_eq!(ops, [load(0, 1), wait(1)]);
}

#[test]
fn wide_addresses_data_and_doubles_read_pairs() {
    let load_high = "00 1 1 R5 LDG.E 1 R2 4 1 0x1000 0";
    for (reader, waits) in [
        ("10 1 1 R9 LDG.E 1 R4 4 1 0x2000 0", true),
        ("10 1 0 STG.E.64 2 R8 R4 8 1 0x2000 0", true),
        ("10 1 0 STG.E 2 R8 R4 4 1 0x2000 0", false),
        ("10 1 0 STL 2 R4 R8 4 1 0xfffff0 0", false),
        ("10 1 1 R8 DADD 2 R4 R10 0", true),
        ("10 1 1 R8 FADD 2 R4 R10 0", false),
        ("10 0 1 R8 FADD 2 R5 R10 0", true),
    ] {
        assert_eq!(memory(4, &[load_high, reader]).contains(&wait(1)), waits, "{reader}");
    }
}

#[test]
fn an_atomic_returns_unless_it_has_no_register() {
    let atomic = |result| Op::Atomic { order: Order::relaxed(Scope::Gpu).into(), result, accesses: at(0, 1) };
    for (line, result) in [
        ("0 1 1 R5 ATOMG.E.ADD.STRONG.GPU 2 R2 R8 4 1 0x1000 0", AtomicResult::Returned),
        ("0 1 1 R255 ATOMG.E.ADD.STRONG.GPU 2 R2 R8 4 1 0x1000 0", AtomicResult::Discarded),
        ("0 1 0 ATOM.E.ADD.STRONG.GPU 2 R2 R8 4 1 0x1000 0", AtomicResult::Discarded),
        ("0 1 0 RED.E.ADD.STRONG.GPU 2 R2 R8 4 1 0x1000 0", AtomicResult::Discarded),
        ("0 1 0 ATOMG.E.ADD.STRONG.GPU 3 R5 R2 R8 4 1 0x1000 0", AtomicResult::Returned),
        ("0 1 0 ATOMG.E.ADD.STRONG.GPU 3 R255 R2 R8 4 1 0x1000 0", AtomicResult::Discarded),
    ] {
        let ops = memory(4, &[line, "1 1 1 R0 FADD 1 R5 0"]);
        assert_eq!(ops[0], atomic(result), "{line}");
        assert_eq!(ops.len() == 2, result == AtomicResult::Returned, "{line}: {ops:?}");
    }
}

#[test]
fn generic_accesses_resolve_by_base_address() {
    let to = |address: &str| memory(4, &[&format!("0 3 1 R2 LD.E 1 R4 4 1 {address} 4")]);
    assert_eq!(to("0x7f1300000010"), [Op::Shared { passes: 1 }]);
    assert_eq!(to("0x7f1301000000"), [load(0, 1)], "behind the window");
    let local = stream(4, &["0 3 1 R2 LD.E 1 R4 4 1 0x7f1200ff0000 0"]);
    assert_eq!(local, stream(4, &["0 3 1 R2 LDL 1 R4 4 1 0xff0000 0"]));
    assert_eq!(lines(&local).len(), 1, "the words of neighbouring lanes lie in one line");
    assert!(lines(&local)[0] >= (1 << 48) / 128, "apart from all global addresses");
    let atomic = memory(4, &["0 1 1 R2 ATOM.E.ADD 2 R4 R6 4 1 0x7f1300000010 0"]);
    assert_eq!(atomic, [Op::Shared { passes: 1 }]);
    let reduction = memory(4, &["0 1 0 RED.E.ADD 2 R4 R6 4 1 0x7f1300000010 0"]);
    assert_eq!(reduction, [Op::Shared { passes: 1 }]);
}

#[test]
fn thread_blocks_of_clusters_are_thread_blocks() {
    let alone = header(5, "1,1,1", 32) + &block("0,0,0", &[&["0 1 1 R2 LDG.E 1 R4 4 1 0x1000 0 0 0"]]);
    let cluster = "thread block = 0,0,0\ncluster id = 0,0,0\ncluster cta = 0,0,0\ncluster rank = 0\n";
    let clustered = alone.replace("thread block = 0,0,0\n", cluster);
    assert_eq!(streams(&*open_text(&clustered).unwrap()), streams(&*open_text(&alone).unwrap()));
}

#[test]
fn the_global_address_of_a_copy_to_the_scratchpad_is_wide() {
    let copy = "1 1 0 LDGSTS.E 2 R8 R4 4 1 0x2000 0";
    for (loaded, waits) in [("R4", true), ("R5", true), ("R8", true), ("R9", false), ("R6", false)] {
        let load = format!("0 1 1 {loaded} LDG.E 1 R2 4 1 0x1000 0");
        assert_eq!(memory(4, &[&load, copy]).contains(&wait(1)), waits, "{loaded}");
    }
}

#[test]
fn local_memory_of_two_warps_is_apart() {
    let push: &[&str] = &["0 ffffffff 0 STL 2 R1 R4 4 1 0xfffbd0 0"];
    let text = header(4, "2,1,1", 64) + &block("0,0,0", &[push, push]) + &block("1,0,0", &[push, push]);
    let streams = streams(&*open_text(&text).unwrap());
    let mut touched: Vec<u64> = streams.iter().flat_map(lines).collect();
    assert_eq!(touched.len(), 4);
    touched.dedup();
    assert_eq!(touched.len(), 4);
    assert!(touched[3] - touched[0] < 4 * 64, "256 bytes a thread are 64 lines a warp: {touched:?}");
}

#[test]
fn bank_conflicts_take_passes() {
    let passes = |line: &str| match memory(4, &[line])[..] {
        [Op::Shared { passes }] => passes,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(passes("0 ffffffff 1 R2 LDS 1 R4 4 1 0x0 4"), 1);
    assert_eq!(passes("0 ffffffff 1 R2 LDS 1 R4 4 1 0x0 8"), 2);
    assert_eq!(passes("0 ffffffff 0 STS 2 R4 R5 4 1 0x0 128"), 32);
    assert_eq!(passes("0 ffffffff 1 R2 LDSM.16.M88.4 1 R4 4 1 0x0 16"), 4);
    assert_eq!(passes("0 ffffffff 1 R2 LDS 1 R4 0"), 1, "no addresses");
    assert_eq!(passes("0 0 1 R2 LDS 1 R4 4 1 0x0 0"), 1, "no lane");
}

#[test]
fn a_mask_of_no_lane_is_an_instruction_that_does_nothing() {
    let ops = memory(
        4,
        &[
            "0 0 1 R4 LDG.E 1 R2 4 1 0x0 0",
            "1 1 1 R0 FADD 1 R4 0",
            "2 0 0 BAR.SYNC 0 0",
            "3 0 0 MEMBAR.SC.GPU 0 0",
            "4 0 0 STG.E 2 R2 R4 4 0",
        ],
    );
    assert_eq!(ops, [load(0, 0), Op::Store { order: weak(), accesses: at(0, 0) }]);
}

#[test]
fn fences_barriers_and_scopes_are_kept() {
    let ops = memory(
        4,
        &[
            "0 1 0 MEMBAR.SC.SYS 0 0",
            "1 1 0 CCTL.IVALL 0 0",
            "2 1 0 STG.E.STRONG.GPU 2 R2 R4 4 1 0x1000 0",
            "3 1 0 BAR.SYNC.DEFER_BLOCKING 0 0",
            "4 1 0 BAR.ARV 0 0",
            "5 1 1 R4 LDG.E.STRONG.SYS 1 R2 4 1 0x1000 0",
            "6 1 0 CCTL.IVALL 0 0",
        ],
    );
    let fence = |semantics, scope| Op::Fence { order: Order::new(semantics, scope).into() };
    let expected = [
        fence(Semantics::SequentiallyConsistent, Scope::Sys),
        Op::Store { order: Order::relaxed(Scope::Gpu).into(), accesses: at(0, 1) },
        Op::Barrier,
        Op::Load { order: Order::relaxed(Scope::Sys).into(), accesses: at(1, 1) },
        fence(Semantics::Acquire, Scope::Sys),
    ];
    assert_eq!(ops, expected, "CCTL.IVALL ends an acquire behind a load and adds nothing behind a fence");
}

#[test]
fn copies_to_the_scratchpad_are_waited_for() {
    let copy = |address: &str| format!("0 ffffffff 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 {address} 16 0");
    let ops = memory(
        5,
        &[
            &copy("0x400"),
            &copy("0x7f0000001000"),
            "1 ffffffff 0 LDGDEPBAR 0 0 0",
            &copy("0x7f0000002000"),
            "1 ffffffff 0 LDGDEPBAR 0 0 0",
            "2 ffffffff 0 DEPBAR.LE 0 0 1",
            "2 ffffffff 0 DEPBAR.LE 0 0 0",
        ],
    );
    let copied = |start| Op::Load { order: Order::relaxed(Scope::Gpu).into(), accesses: at(start, 4) };
    assert_eq!(ops, [Op::Shared { passes: 4 }, copied(0), copied(4), wait(2), wait(1)]);
}

#[test]
fn unknown_and_addressless_instructions_are_reported() {
    let lines: &[&str] = &[
        "0 1 0 FROB.X 0 0",
        "1 1 0 FROB.Y 0 0",
        "2 1 0 BLIP 0 0",
        "3 1 1 R4 TEX 1 R2 0",
        "4 1 0 UTMALDG.2D 0 0",
        "5 1 0 LDC 0 0",
    ];
    let text = header(4, "1,1,1", 32) + &block("0,0,0", &[lines]);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes())]);
    let info = trace::info(trace.path()).unwrap();
    let unknown: Vec<(&str, u64)> = info.unknown_opcodes.iter().map(|op| (op.name.as_str(), op.count)).collect();
    assert_eq!(unknown, [("BLIP", 1), ("FROB", 2)]);
    assert_eq!(info.warp_instructions, 6);
    let memory = info.kernels[0].memory_instructions;
    assert_eq!((memory.texture, memory.constant, memory.global), (1, 1, 0));
    assert!(info.notes.iter().any(|note| note.starts_with("2 memory instructions come without addresses")));
}
