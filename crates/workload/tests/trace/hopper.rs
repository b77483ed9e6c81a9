//! Instructions of Hopper in traces of Accel-Sim 2, each for a single behaviour.

use super::kit::{block, folder, folder_with_list, header, memory, notes, open, open_text, refusal, stream, streams};
use tombolo_types::stream::{Accesses, AtomicResult, Command, CtaStream, Op};
use tombolo_types::{Order, Scope};

fn load(order: Order, start: u32, len: u8) -> Op {
    Op::Load { order: order.into(), accesses: Accesses { start, len } }
}

/// Notes about a warp with the given lines, on a GPU of the given generation.
fn told(binary: u32, version: u32, lines: &[&str]) -> Vec<String> {
    let header = header(version, "1,1,1", 32).replace("-nregs", &format!("-binary version = {binary}\n-nregs"));
    let text = header + &block("0,0,0", &[lines]);
    notes(folder(&[("kernel-1.traceg", text.as_bytes())]).path())
}

fn has(notes: &[String], expected: &str) -> bool {
    notes.iter().any(|note| note == expected)
}

/// Stream of a warp with the given lines, on a GPU of the given generation. Unlike [`stream`], lines may give more or
/// fewer operations than one.
fn stream_on(binary: u32, version: u32, lines: &[&str]) -> CtaStream {
    let header = header(version, "1,1,1", 32).replace("-nregs", &format!("-binary version = {binary}\n-nregs"));
    streams(&*open_text(&(header + &block("0,0,0", &[lines]))).unwrap()).remove(0)
}

/// A mode 0 list of 32 addresses.
fn list(address: impl Fn(u64) -> u64) -> String {
    (0..32).map(|lane| format!("0x{:x}", address(lane))).collect::<Vec<_>>().join(" ")
}

#[test]
fn matrix_operations_have_a_flag_that_other_lines_lack() {
    let lines = [
        "08 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f6000000000 4 0 0 NoVal",
        "10 ffffffff 1 R24 HGMMA.64x128x16.F32.BF16 2 R24 UR4 0 0 0 0 NoVal",
        "20 ffffffff 1 R24 QGMMA.64x256x32.F32.E4M3.E4M3 2 R24 UR4 1 0 0 0 Val 1 0x0 1 0x0 1 0x4000",
        "30 ffffffff 0 EXIT 0 0 0 0 NoVal",
    ];
    assert_eq!(memory(6, &lines), [load(Order::WEAK, 0, 1)]);
    let expected = "not simulated: operands that matrix units read from the scratchpad: HGMMA 1, QGMMA 1";
    assert!(has(&told(90, 6, &lines), expected));
}

#[test]
fn bulk_copies_are_counted_with_their_bytes() {
    let list = list(|lane| 0x7f60_0000_0000 + lane * 4096);
    let deltas = "16 ".repeat(31);
    let lines = [
        &format!("10 1 0 UTMALDG.2D 2 UR8 UR4 128 0x7f2000000400 1 0x3 4096 0 3 32 {list} 0 0 NoVal"),
        &format!("20 1 0 UBLKPF.L2 2 UR8 UR4 16 0x0 0 512 0 4 0x7f6000000000 32 {deltas} 0 0 NoVal"),
        "20 0 0 UBLKPF.L2 2 UR8 UR4 16 0x0 0 512 0 3 0 0 0 NoVal",
        "30 1 0 UTMASTG.2D 0 0 0 NoVal",
    ];
    let notes = told(90, 6, &lines);
    let copies = "3 bulk copies of 4608 bytes in all are not simulated, neither their traffic nor their completion: \
                  UBLKPF 2, UTMALDG 1";
    assert!(has(&notes, copies), "{notes:?}");
    let older = "1 memory instructions come without addresses: their traffic is not simulated: UTMASTG 1";
    assert!(has(&notes, older), "{notes:?}");
}

#[test]
fn a_null_lane_of_a_copy_to_the_scratchpad_reads_nothing() {
    let addresses = list(|lane| if lane == 7 { 0 } else { 0x7f60_0000_0000 + lane * 16 });
    let copy = format!("20 ffffffff 0 LDGSTS.E.BYPASS.128.ZFILL 2 R6 R4 16 0 {addresses} 0");
    let lines = ["10 ffffffff 0 LDGSTS.E.BYPASS.128.ZFILL 2 R6 R4 16 1 0x400 16 0", &copy];
    let stream = stream(5, &lines);
    assert_eq!(stream.ops, [Op::Shared { passes: 4 }, load(Order::relaxed(Scope::Gpu), 0, 4)]);
    let bytes: u32 = stream.accesses.iter().map(|access| { access.mask }.grains() * 4).sum();
    assert_eq!(bytes, 31 * 16);
    assert!(has(
        &told(80, 5, &lines),
        "1 lanes of copies to the scratchpad have no address in device memory: they read nothing"
    ));
}

#[test]
fn lanes_of_two_spaces_are_an_operation_each() {
    let half = |shared: u64, other: u64| list(move |lane| if lane < 16 { shared + lane * 4 } else { other + lane * 4 });
    let (scratch, device, stack) = (0x7f13_0000_0100, 0x7f60_0000_0000, 0x7f12_00ff_0000);
    for (first, second) in [(device, scratch), (scratch, device)] {
        let line = format!("0 ffffffff 1 R2 LD.E 1 R4 4 0 {}", half(first, second));
        assert_eq!(stream_on(80, 4, &[&line]).ops, [Op::Shared { passes: 1 }, load(Order::WEAK, 0, 1)], "{line}");
    }
    let store = format!("0 ffffffff 0 ST.E 2 R4 R2 4 0 {}", half(scratch, device));
    let stored = Op::Store { order: Order::WEAK.into(), accesses: Accesses { start: 0, len: 1 } };
    let stream = stream_on(80, 4, &[&store]);
    assert_eq!(stream.ops, [Op::Shared { passes: 1 }, stored]);
    assert_eq!({ stream.accesses[0].mask }.0, 0xffff_0000, "the lanes in device memory alone");
    let expected =
        "1 generic accesses have lanes in the scratchpad and in device memory: each part is an instruction of its own";
    assert!(has(&told(80, 4, &[&store]), expected));
    let both = format!("0 ffffffff 1 R2 LD.E 1 R4 4 0 {}", half(stack, device));
    assert_eq!(memory(4, &[&both]), [load(Order::WEAK, 0, 16 + 1)], "one load of stack words and device memory");
}

#[test]
fn loads_past_the_l1_are_read_at_the_l2() {
    let past = Order::relaxed(Scope::Gpu);
    for (line, order) in [
        ("0 ffffffff 1 R2 LDG.E.NA 1 R4 4 1 0x1000 4 0", past),
        ("0 ffffffff 0 LDGSTS.E.BYPASS 2 R6 R4 4 1 0x7f6000000000 4 0", past),
        ("0 ffffffff 0 LDGSTS.E 2 R6 R4 4 1 0x7f6000000000 4 0", Order::WEAK),
        ("0 ffffffff 1 R2 LDG.E.NA.STRONG.SYS 1 R4 4 1 0x1000 4 0", Order::relaxed(Scope::Sys)),
        ("0 ffffffff 0 CCTL.E.PF2 1 R4 1 1 0x1000 0 0", past),
        ("0 ffffffff 0 CCTL.E.PF1 1 R4 1 1 0x1000 0 0", Order::WEAK),
    ] {
        assert_eq!(memory(5, &[line]), [load(order, 0, 1)], "{line}");
    }
}

#[test]
fn a_prefetch_reads_a_sector_for_each_lane_and_nothing_waits() {
    let stream = stream(5, &["0 ffffffff 0 CCTL.E.PF2 1 R4 1 1 0x7f6000000000 128 0", "10 1 1 R4 MOV 0 0 0"]);
    assert_eq!(stream.ops.len(), 2, "no wait");
    assert_eq!(stream.accesses.len(), 32);
    let scratch = "0 1 0 CCTL.E.PF2 1 R4 1 1 0x7f1300000000 0 0";
    assert_eq!(memory(5, &[scratch]), [], "there is no prefetch of a scratchpad");
}

#[test]
fn multicast_and_uniform_operations_are_memory_operations() {
    let sys = Order::relaxed(Scope::Sys);
    let accesses = Accesses { start: 0, len: 1 };
    for (line, op) in [
        ("0 ffffffff 1 R2 LDGMC.E.ADD.F32.STRONG.SYS 1 R4 4 1 0x1000 4 0", load(sys, 0, 1)),
        (
            "0 1 0 UREDGR.E.ADD.STRONG.GPU 2 R4 R6 4 0 0x1000 0",
            Op::Atomic { order: Order::relaxed(Scope::Gpu).into(), result: AtomicResult::Discarded, accesses },
        ),
        ("0 1 0 USTGR.E 2 R4 R6 4 0 0x1000 0", Op::Store { order: Order::WEAK.into(), accesses }),
        ("0 ffffffff 0 STAS 2 R4 R6 4 1 0x1000400 4 0", Op::Shared { passes: 1 }),
    ] {
        assert_eq!(memory(5, &[line]), [op], "{line}");
    }
}

#[test]
fn scratchpad_atomics_of_one_word_follow_each_other() {
    for (line, passes) in [
        ("0 ffffffff 1 R2 ATOMS.ADD 2 R4 R6 4 1 0x400 0 0", 32),
        ("0 ffffffff 1 R2 ATOMS.ADD 2 R4 R6 4 1 0x400 4 0", 1),
        ("0 ffff 1 R2 ATOMS.CAS 3 R4 R6 R7 4 1 0x400 0 0", 16),
        ("0 ffffffff 1 R2 ATOM.E.ADD 2 R4 R6 4 1 0x7f1300000010 0 0", 32),
        ("0 ffffffff 1 R2 LDS 1 R4 4 1 0x400 0 0", 1),
        ("0 ffffffff 0 SYNCS.PHASECHK.TRANS64.TRYWAIT 1 R7 8 1 0x8 0 0", 1),
    ] {
        assert_eq!(memory(5, &[line]), [Op::Shared { passes }], "{line}");
    }
}

#[test]
fn the_scratchpad_of_another_rank_is_no_device_memory() {
    let lines = ["0 ffffffff 1 R8 LD.E.128 1 R4 16 1 0x7f1307000000 16 0"];
    assert_eq!(stream_on(90, 5, &lines).ops, [Op::Shared { passes: 4 }]);
    let expected = "1 accesses to the scratchpad of another thread block take a pass over the own scratchpad: distributed \
                    shared memory is not simulated";
    assert!(has(&told(90, 5, &lines), expected));
    assert_eq!(memory(5, &lines), [load(Order::WEAK, 0, 4)], "before Hopper there are no clusters");
}

#[test]
fn a_rank_tells_the_own_scratchpad() {
    let line = "0 1 1 R8 LDS 1 R4 4 1 0x3000400 0 0 0 NoVal";
    let of_rank = |rank: &str| {
        let name = format!("0,0,0\ncluster id = 0,0,0\ncluster cta = 0,0,0\ncluster rank = {rank}");
        let header = header(6, "1,1,1", 32).replace("-nregs", "-binary version = 90\n-nregs");
        header + &block(&name, &[&[line]])
    };
    for (rank, remote) in [("3", false), ("0", true)] {
        let notes = notes(folder(&[("kernel-1.traceg", of_rank(rank).as_bytes())]).path());
        assert_eq!(notes.iter().any(|note| note.contains("distributed shared memory")), remote, "rank {rank}");
        assert_eq!(notes.iter().any(|note| note.contains("clusters are not kept together")), rank != "0");
    }
    assert!(refusal(&of_rank("x")).contains("expected `cluster rank = <number>`"));
}

#[test]
fn barriers_with_numbers_or_counts_are_counted() {
    let lines = [
        "10 ffffffff 0 BAR.SYNC 0 0 3 128 NoVal",
        "10 ffffffff 1 R5 BAR.SYNC 0 0 256 0 Val 1 0x2",
        "10 ffffffff 0 BAR.SYNC.DEFER_BLOCKING 0 0 0 0 NoVal",
        "20 ffffffff 0 BAR.ARV 0 0 2 128 NoVal",
        "30 ffffffff 0 UCGABAR_WAIT 0 0 0 0 NoVal",
    ];
    let notes = told(90, 6, &lines);
    for expected in [
        "2 barriers have a number or a count of threads: each waits for all warps of its thread block",
        "not simulated: arrivals at barriers without a wait: BAR.ARV 1",
        "not simulated: barriers of clusters: UCGABAR_WAIT 1",
    ] {
        assert!(has(&notes, expected), "{expected}: {notes:?}");
    }
}

#[test]
fn marks_around_spin_loops_are_no_instructions() {
    let wait = "20 1 0 SYNCS.PHASECHK.TRANS64.TRYWAIT 1 R7 8 0 0x8 0 0 NoVal";
    let lines = ["10 0 0 REPLAY_START 0 0 0 0 NoVal", wait, wait, "30 0 0 REPLAY_END 0 0 0 0 NoVal"];
    assert_eq!(stream_on(90, 6, &lines).ops, [Op::Shared { passes: 1 }; 2]);
    assert!(has(&told(90, 6, &lines), "1 spin loops that the tracer marked are replayed as they were recorded"));
}

#[test]
fn asynchronous_copies_are_read_in_any_order_of_their_names() {
    let text = header(5, "1,1,1", 32) + &block("0,0,0", &[&[]]);
    let list = "MemcpyAsyncHtoD,0x7f6000000000,4096\nkernel-1.traceg\ncudaMemcpyAsyncDtoH,0x7f6000000000,4096\n";
    let trace = folder_with_list(list, &[("kernel-1.traceg", text.as_bytes())]);
    let copy = |to_device| Command::Copy { address: 0x7f60_0000_0000, bytes: 4096, to_device };
    assert_eq!(open(trace.path()).unwrap().commands(), [copy(true), Command::launch(0, 3), copy(false)]);
}
