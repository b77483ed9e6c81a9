//! Caches in NUMA-GPU: write-back under software coherence, memory-side L2 caches, ways shared between local and remote
//! lines. Micro-programs predict bytes and hits in closed form, in addition to the mechanisms named by the papers'
//! claims (crate `experiment`, `mechanism`). CTA `i` among four runs on socket `i`; the first kernel places pages by
//! touching them.

use crate::common::{design, machine, simulate, simulate_on};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunRecord, RunSpec, run_checked};
use tombolo_types::{Line, Mask, Order, Scope};

/// Four GPUs with a single module each: sockets. `settings` as in [`machine`].
fn sockets(settings: &[&str]) -> Arc<MachineConfig> {
    let mut all = vec!["topology.modules_per_gpu=1"];
    all.extend(settings);
    machine(&all)
}

/// A kernel with four CTAs; each CTA in `active` runs one warp.
fn kernel(active: impl IntoIterator<Item = usize>, write: impl Fn(usize, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    for socket in active {
        ctas[socket] = CtaBuilder::new().warp(|warp| write(socket, warp));
    }
    ctas
}

/// Sockets in `active` read `lines`, one after another.
fn reads(active: impl IntoIterator<Item = usize>, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    kernel(active, |_, warp| lines.clone().for_each(|line| _ = warp.read([line])))
}

/// Socket `socket` writes the bytes in `mask` in each line of `lines`.
fn writes(socket: usize, lines: std::ops::Range<u64>, mask: Mask) -> Vec<CtaBuilder> {
    kernel([socket], |_, warp| lines.clone().for_each(|line| _ = warp.store([line], mask, Order::WEAK)))
}

fn link<'a>(record: &'a RunRecord, name: &str) -> &'a tombolo_system::record::LinkRecord {
    record.links.iter().find(|link| link.name == name).expect("a link of the machine")
}

/// Every design with these mechanisms.
const DESIGNS: [(&str, &[&str]); 10] = [
    ("numa-memory-side", &[]),
    ("numa-traditional", &[]),
    ("numa-static-halves", &[]),
    ("numa-coherent", &[]),
    ("numa-coherent-write-through", &[]),
    ("numa-no-invalidation", &[]),
    ("numa-aware-cache", &["design.capacity.sample_time=500"]),
    ("software-hierarchical", &["design.l2_write=back"]),
    ("no-remote-caching", &["design.l2_write=back"]),
    ("hmg", &["design.l2_write=back", "design.capacity=numa-aware"]),
];

/// The software designs with write-back L2 caches.
const WRITING_BACK: [(&str, &[&str]); 3] = [
    ("software-flat", &["design.l2_write=back"]),
    ("software-hierarchical", &["design.l2_write=back"]),
    ("no-remote-caching", &["design.l2_write=back"]),
];

#[test]
fn dirty_remote_bytes_cross_once_at_the_boundary_with_their_masks() {
    let machine = sockets(&[]);
    // Socket 1 writes the first quarter in 24 lines of socket 0 five times, and the whole of 8 more lines.
    let kernels = || {
        let store = |warp: &mut WarpBuilder<'_>| {
            for _ in 0..5 {
                (0..24).for_each(|line| _ = warp.store([line], Mask(0xff), Order::WEAK));
            }
            (24..32).for_each(|line| _ = warp.write([line]));
        };
        vec![reads([0], 0..32), kernel([1], |_, warp| store(warp))]
    };
    let sent = |design_name: &str, write: &str| {
        let design = design(design_name, &[&format!("design.l2_write={write}")]);
        link(&simulate(&machine, design, DirectedProgram::new(kernels())), "gpu1.out").clone()
    };
    let (part, whole) = (32, 128);
    // A header, the bytes, and a mask that marks the valid bytes.
    let sizes = &machine.messages;
    let message = (sizes.header_bytes.0 + part + sizes.mask_bytes.0).next_multiple_of(sizes.flit_bytes);
    for name in ["software-flat", "software-hierarchical"] {
        let (back, through) = (sent(name, "back"), sent(name, "through"));
        assert_eq!(back.data_bytes, 24 * part + 8 * whole, "{name}");
        assert_eq!(through.data_bytes, 5 * 24 * part + 8 * whole, "{name}");
        assert_eq!(through.bytes - back.bytes, 4 * 24 * message, "{name}");
    }
    let bypassing = sent("no-remote-caching", "back").data_bytes;
    assert_eq!(bypassing, 5 * 24 * part + 8 * whole, "it holds no line of another GPU");
}

#[test]
fn a_boundary_writes_local_dirty_lines_to_memory_and_drops_them_unless_told_to_spare_them() {
    let machine = sockets(&[]);
    let lines = 256;
    let kernels = || vec![writes(0, 0..lines, Mask::ALL), reads([0], 0..lines)];
    let run = |invalidate: &str| {
        let settings = ["design.l2_write=back", &format!("design.coherence.invalidate={invalidate}")];
        let record = simulate(&machine, design("software-flat", &settings), DirectedProgram::new(kernels()));
        (record.dram.write_bytes, record.dram.read_bytes, record.l2.hits)
    };
    assert_eq!(run("all"), (lines * 128, lines * 128, 0));
    assert_eq!(run("remote"), (0, 0, lines));
}

#[test]
fn the_time_to_write_back_at_a_boundary_is_that_of_the_link() {
    // A slow link, so that no other delay matters: 1024 lines at 10 GB/s take 14.7 us.
    let machine = sockets(&["gpu_link.rate=10GB/s", "l2.mshrs=1024"]);
    let lines = 1024;
    let time = |mask: Mask, write: &str| {
        let kernels = vec![reads([0], 0..lines), writes(1, 0..lines, mask)];
        let design = design("software-flat", &[&format!("design.l2_write={write}")]);
        let record = simulate(&machine, design, DirectedProgram::new(kernels));
        assert_eq!(record.kernels.len(), 2);
        record.kernels[1].end_s - record.kernels[1].start_s
    };
    let expected = (lines * machine.line.bytes()) as f64 / 10e9;
    let (back, through) = (time(Mask::ALL, "back"), time(Mask::ALL, "through"));
    assert!(back > expected && back < 1.35 * expected, "{back} s, the link alone {expected} s");
    // With write-through, most data crosses while the kernel still writes.
    assert!(through > expected && through < 1.2 * back, "{through} s and {back} s");
}

#[test]
fn a_release_inside_a_kernel_writes_back_what_other_warps_wrote() {
    let machine = sockets(&[]);
    for (name, settings) in WRITING_BACK {
        let mut ctas = vec![CtaBuilder::new(); 4];
        ctas[1] = CtaBuilder::new()
            .warp(|warp| (0..8).for_each(|line| _ = warp.write([line])))
            .warp(|warp| _ = warp.compute(20_000).fence(Order::release(Scope::Sys)).compute(20_000));
        let program = || DirectedProgram::new(vec![reads([0], 0..8), ctas.clone()]);
        let record = simulate(&machine, design(name, settings), program());
        assert_eq!(link(&record, "gpu1.out").data_bytes, 8 * machine.line.bytes(), "{name}");
        for threads in 2..=4 {
            let again = simulate_on(threads, &machine, design(name, settings), program());
            assert_eq!(again.digest, record.digest, "{name} on {threads} threads");
        }
    }
}

/// Sockets with single-slice caches: an L2 with 32 sets and 16 ways, an L1 with one set and at most 24 misses in
/// flight; a 2.5 GB/s link. A window with 5000 cycles admits 67 lines.
fn small(settings: &[&str]) -> Arc<MachineConfig> {
    let mut all = vec!["l2.slices=1", "l2.bytes=64KB", "l1.bytes=512B", "gpu_link.rate=2.5GB/s", "page_bytes=64KB"];
    all.push("l1.mshrs=24");
    all.extend(settings);
    sockets(&all)
}

/// Capacity per L2 way, in lines.
const WAY: u64 = 32;

/// Bytes that socket 0 sends, counted in lines, while socket 1 reads lines homed on socket 0.
fn crossing(name: &str, read: Vec<CtaBuilder>) -> u64 {
    let machine = small(&[]);
    let program = DirectedProgram::new(vec![reads([0], 0..18 * WAY), read]);
    let record = simulate(&machine, design(name, &[]), program);
    let bytes = link(&record, "gpu0.out").data_bytes;
    assert_eq!(bytes % machine.line.bytes(), 0, "whole lines");
    bytes / machine.line.bytes()
}

#[test]
fn what_crosses_when_remote_data_is_read_again() {
    let passes = 5;
    for (ways, memory_side, halves, coherent) in [
        (4, passes, 1, 1),
        (8, passes, 1, 1),
        // One more line than fits: the oldest is evicted just before it is read again.
        (9, passes, passes, 1),
        (16, passes, passes, 1),
        (17, passes, passes, passes),
    ] {
        let lines = ways * WAY;
        let one_by_one = kernel([1], |_, warp| (0..lines * passes).for_each(|i| _ = warp.read([i % lines])));
        let crossed = |name| {
            let crossed = crossing(name, one_by_one.clone());
            assert_eq!(crossed % lines, 0, "{name}: each line as often as every other");
            crossed / lines
        };
        assert_eq!(crossed("numa-memory-side"), memory_side, "{ways} ways, beside memory");
        assert_eq!(crossed("numa-static-halves"), halves, "{ways} ways, halves");
        assert_eq!(crossed("numa-coherent"), coherent, "{ways} ways, shared");
    }
}

#[test]
fn reads_of_one_remote_line_share_a_crossing_only_where_the_l2_may_hold_it() {
    let machine = small(&["topology.sms_per_module=2"]);
    let lines = 64;
    // CTAs 2 and 3 run concurrently on socket 1.
    let mut ctas = vec![CtaBuilder::new(); 8];
    let all_at_once = || CtaBuilder::new().warp(|warp| _ = warp.load(0..lines, Order::WEAK));
    (ctas[2], ctas[3]) = (all_at_once(), all_at_once());
    let mut touch = vec![CtaBuilder::new(); 8];
    touch[0] = CtaBuilder::new().warp(|warp| (0..lines).for_each(|line| _ = warp.read([line])));
    let crossed = |name| {
        let program = DirectedProgram::new(vec![touch.clone(), ctas.clone()]);
        let record = simulate(&machine, design(name, &[]), program);
        link(&record, "gpu0.out").data_bytes / machine.line.bytes()
    };
    assert_eq!(crossed("numa-memory-side"), 2 * lines);
    assert_eq!(crossed("numa-coherent"), lines);
}

#[test]
fn ways_reckon_with_the_lanes_that_come_in() {
    // Socket 1 writes to remote sockets at the outgoing lanes' full rate, and reads data over a few incoming lanes.
    // This is a small share on a link with fixed lanes; once lanes have turned towards the writes, it fills all
    // incoming lanes.
    let machine = small(&["l2.posted_stores=48"]);
    let (readers, read, written) = (12, 600, 12_000);
    let touch = reads([0], 0..readers * read + written);
    let body = || {
        let cta = (0..readers).fold(CtaBuilder::new(), |cta, reader| {
            cta.warp(|warp| (0..read).for_each(|line| _ = warp.read([reader * read + line])))
        });
        let lines = readers * read..readers * read + written;
        let mut ctas = vec![CtaBuilder::new(); 4];
        ctas[1] = cta.warp(|warp| lines.clone().for_each(|line| _ = warp.write([line])));
        ctas
    };
    // Samples are long enough that a single read is far below a hundredth.
    let samples = ["design.capacity.sample_time=20000", "design.l2_write=through"];
    let to_remote = |links: &[&str]| {
        let settings = [&samples, links].concat();
        let record =
            simulate(&machine, design("numa-aware", &settings), DirectedProgram::new(vec![touch.clone(), body()]));
        (record.ways.to_remote, link(&record, "gpu1.out").lanes_turned > 0)
    };
    assert_eq!(to_remote(&["links=static"]), (0, false));
    let (moved, turned) = to_remote(&["links.sample_time=20000"]);
    assert!(turned && moved > 0, "{moved} moves");
}

#[test]
fn one_socket_is_not_split() {
    let machine = machine(&["topology.modules_per_gpu=1", "topology.gpus=1", "l2.slices=1", "l2.bytes=64KB"]);
    let run = |name: &str| {
        let mut ctas = kernel([1], |_, warp| _ = warp.sweep(0..16 * WAY, 3));
        ctas.truncate(2);
        simulate(&machine, design(name, &[]), DirectedProgram::new(vec![ctas]))
    };
    let whole = run("numa-coherent");
    assert_eq!(run("numa-aware-cache").digest, whole.digest);
    assert_eq!(whole.dram.read_bytes, 16 * WAY * 128, "every way holds a line");
}

#[test]
fn only_l2_caches_beside_memory_keep_their_lines_between_kernels() {
    let machine = small(&[]);
    let lines = 4 * WAY;
    for (name, local, remote) in [
        ("numa-memory-side", 1, 2),
        ("numa-static-halves", 1, 2),
        ("numa-coherent", 2, 2),
        ("numa-coherent-write-through", 2, 2),
        ("numa-aware-cache", 2, 2),
        ("numa-no-invalidation", 1, 1),
    ] {
        let once = |socket| reads([socket], 0..lines);
        let own = simulate(&machine, design(name, &[]), DirectedProgram::new(vec![once(0), once(0)]));
        assert_eq!(own.dram.read_bytes, local * lines * 128, "{name}: from memory");
        let other = simulate(&machine, design(name, &[]), DirectedProgram::new(vec![once(0), once(1), once(1)]));
        let line = machine.line.bytes();
        assert_eq!(link(&other, "gpu0.out").data_bytes, remote * lines * line, "{name}: over the link");
    }
}

#[test]
fn the_bound_without_invalidations_writes_nothing_back_at_boundaries() {
    let machine = small(&[]);
    let sent = |name: &str| {
        let program = vec![reads([0], 0..WAY), writes(1, 0..WAY, Mask::ALL), writes(1, 0..WAY, Mask::ALL)];
        link(&simulate(&machine, design(name, &[]), DirectedProgram::new(program)), "gpu1.out").data_bytes
    };
    let line = machine.line.bytes();
    assert_eq!(sent("numa-coherent"), 2 * WAY * line, "each boundary writes them back");
    assert_eq!(sent("numa-no-invalidation"), 0, "they stay");
}

#[test]
fn lines_are_interleaved_one_by_one_where_no_directory_holds_them_together() {
    let machine = sockets(&[]);
    let home = |name: &str, line: u64| {
        let design = design(name, &["design.placement=interleaved-line"]);
        let program = DirectedProgram::new(vec![reads([0], 0..1)]);
        let table = tombolo_system::place(&machine, &design, &*program).expect("a whole program");
        table.home(tombolo_types::ModuleId(0), Line(line)).expect("every line has one").0
    };
    assert_eq!(machine.directory.lines_per_entry, 4);
    assert_eq!([0, 1, 2, 3, 4].map(|line| home("numa-memory-side", line)), [0, 1, 2, 3, 0]);
    assert_eq!([0, 3, 4, 8, 16].map(|line| home("hmg", line)), [0, 0, 1, 2, 0]);
}

#[test]
fn a_line_stays_where_it_is_when_its_way_changes_sides() {
    // The set is full of local lines; then the link saturates and ways move to remote lines, which fill them one by
    // one. A local line not yet replaced by a remote line still hits.
    let machine = small(&[]);
    let remote = 12 * WAY;
    let page = machine.page_bytes / machine.line.bytes();
    let local = page..page + 8 * WAY;
    let touch = kernel(0..2, |socket, warp| {
        let lines = if socket == 0 { 0..remote } else { local.clone() };
        lines.for_each(|line| _ = warp.read([line]));
    });
    let body = kernel([1], |_, warp| {
        local.clone().for_each(|line| _ = warp.read([line]));
        warp.sweep(0..WAY, 6).compute(60_000);
        local.clone().for_each(|line| _ = warp.read([line]));
    });
    let record = simulate(&machine, design("numa-aware-cache", &[]), DirectedProgram::new(vec![touch, body]));
    // Memory reads: the touches, and the local lines once in the second kernel.
    assert_eq!(record.dram.read_bytes, (remote + 2 * 8 * WAY + WAY) * 128);
}

#[test]
fn every_design_gives_one_digest_at_every_thread_count() {
    let machine = small(&[]);
    let cta = |socket: u64| {
        CtaBuilder::new().warp(|warp| {
            for step in 0..40 {
                let first = (socket + step) % 4 * 512 + step * 8;
                warp.load(first..first + 8, Order::WEAK).store([first], Mask(0xf), Order::WEAK);
            }
            warp.store([4096 + socket], Mask(1), Order::release(Scope::Sys));
            warp.load([4096 + (socket + 1) % 4], Order::acquire(Scope::Sys)).use_result(1).read([socket * 64]);
        })
    };
    let touch = kernel(0..4, |socket, warp| {
        (0..64).for_each(|line| _ = warp.read([socket as u64 * 512 + line * 8]));
    });
    for (name, settings) in DESIGNS {
        let program =
            || DirectedProgram::new(vec![touch.clone(), (0..4).map(cta).collect(), (0..4).map(cta).collect()]);
        let one = simulate(&machine, design(name, settings), program());
        assert!(one.inter_gpu_bytes > 0 && one.cycles > 5_000, "{name}: the program ran");
        for threads in 2..=4 {
            let many = simulate_on(threads, &machine, design(name, settings), program());
            assert_eq!((&many.digest, &many.local_ways), (&one.digest, &one.local_ways), "{name} on {threads} threads");
        }
        if one.design != "numa-no-invalidation" {
            let spec = RunSpec {
                machine: Arc::clone(&machine),
                design: design(name, settings),
                program: program(),
                pages: None,
                threads: 1,
            };
            let checked = run_checked(&spec, None).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(checked.digest, one.digest, "{name}");
            let found = checked.check.expect("it was checked");
            assert!(found.loads > 500 && found.violations == 0, "{name}: {:?}", found.first);
        }
    }
}
