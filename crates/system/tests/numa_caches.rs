//! Caches of NUMA-GPU: write-back under software coherence, L2 caches beside memory, ways that are shared between
//! local and remote lines. Micro-programs whose bytes and hits are predicted in closed form. CTA `i` of four runs on
//! socket `i`; the first kernel places pages by touching them.

mod common;

use common::{design, machine, simulate, simulate_on};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::RunRecord;
use tombolo_system::directed::{Cta, Directed, Warp};
use tombolo_types::{Mask, Order, Scope};

/// Four GPUs of one module: sockets. `settings` as in [`machine`].
fn sockets(settings: &[&str]) -> Arc<MachineConfig> {
    let mut all = vec!["topology.modules_per_gpu=1"];
    all.extend(settings);
    machine(&all)
}

/// A kernel of four CTAs of which those in `active` run one warp each.
fn kernel(active: impl IntoIterator<Item = usize>, write: impl Fn(usize, &mut Warp<'_>)) -> Vec<Cta> {
    let mut ctas = vec![Cta::new(); 4];
    for socket in active {
        ctas[socket] = Cta::new().warp(|warp| write(socket, warp));
    }
    ctas
}

/// Sockets `active` read `lines`, one after the other.
fn reads(active: impl IntoIterator<Item = usize>, lines: std::ops::Range<u64>) -> Vec<Cta> {
    kernel(active, |_, warp| lines.clone().for_each(|line| _ = warp.read([line])))
}

/// Socket `socket` writes the bytes of `mask` of each of `lines`.
fn writes(socket: usize, lines: std::ops::Range<u64>, mask: Mask) -> Vec<Cta> {
    kernel([socket], |_, warp| lines.clone().for_each(|line| _ = warp.store([line], mask, Order::WEAK)))
}

fn link<'a>(record: &'a RunRecord, name: &str) -> &'a tombolo_system::record::LinkRecord {
    record.links.iter().find(|link| link.name == name).expect("a link of the machine")
}

/// Bytes of a message that carries `data` bytes, `partial` where they are not a whole line.
fn message(machine: &MachineConfig, data: u64, partial: bool) -> u64 {
    let sizes = &machine.messages;
    let mask = if partial { sizes.mask_bytes.0 } else { 0 };
    (sizes.header_bytes.0 + data + mask).next_multiple_of(sizes.flit_bytes)
}

/// The software designs with L2 caches that write back.
const WRITING_BACK: [(&str, &[&str]); 3] = [
    ("software-flat", &["design.l2_write=back"]),
    ("software-hierarchical", &["design.l2_write=back"]),
    ("no-remote-caching", &["design.l2_write=back"]),
];

#[test]
fn dirty_remote_bytes_cross_once_at_the_boundary_with_their_masks() {
    let machine = sockets(&[]);
    // Socket 1 writes the first quarter of 24 lines of socket 0 five times, and all of 8 more.
    let kernels = || {
        let store = |warp: &mut Warp<'_>| {
            for _ in 0..5 {
                (0..24).for_each(|line| _ = warp.store([line], Mask(0xff), Order::WEAK));
            }
            (24..32).for_each(|line| _ = warp.write([line]));
        };
        vec![reads([0], 0..32), kernel([1], |_, warp| store(warp))]
    };
    let sent = |design_name: &str, write: &str| {
        let design = design(design_name, &[&format!("design.l2_write={write}")]);
        link(&simulate(&machine, design, Directed::new(kernels())), "gpu1.out").data_bytes
    };
    let (part, whole) = (message(&machine, 32, true), message(&machine, 128, false));
    for name in ["software-flat", "software-hierarchical"] {
        assert_eq!(sent(name, "back"), 24 * part + 8 * whole, "{name}");
        assert_eq!(sent(name, "through"), 5 * 24 * part + 8 * whole, "{name}");
    }
    assert_eq!(sent("no-remote-caching", "back"), 5 * 24 * part + 8 * whole, "it holds no line of another GPU");
}

#[test]
fn a_boundary_writes_local_dirty_lines_to_memory_and_drops_them_unless_told_to_spare_them() {
    let machine = sockets(&[]);
    let lines = 256;
    let kernels = || vec![writes(0, 0..lines, Mask::ALL), reads([0], 0..lines)];
    let run = |invalidate: &str| {
        let settings = ["design.l2_write=back", &format!("design.invalidate={invalidate}")];
        let record = simulate(&machine, design("software-flat", &settings), Directed::new(kernels()));
        (record.dram.write_bytes, record.dram.read_bytes, record.l2.hits)
    };
    assert_eq!(run("all"), (lines * 128, lines * 128, 0));
    assert_eq!(run("remote"), (0, 0, lines));
}

#[test]
fn the_time_to_write_back_at_a_boundary_is_that_of_the_link() {
    // A slow link, so that nothing else counts: 1024 lines at 10 GB/s are 14.7 us.
    let machine = sockets(&["gpu_link.rate=10GB/s", "l2.mshrs=1024"]);
    let lines = 1024;
    let time = |mask: Mask, write: &str| {
        let kernels = vec![reads([0], 0..lines), writes(1, 0..lines, mask)];
        let design = design("software-flat", &[&format!("design.l2_write={write}")]);
        let record = simulate(&machine, design, Directed::new(kernels));
        assert_eq!(record.kernels.len(), 2);
        record.kernels[1].end_s - record.kernels[1].start_s
    };
    let expected = (lines * message(&machine, 128, false)) as f64 / 10e9;
    let (back, through) = (time(Mask::ALL, "back"), time(Mask::ALL, "through"));
    assert!(back > expected && back < 1.35 * expected, "{back} s, the link alone {expected} s");
    // Written through, most of it crosses while the kernel still writes.
    assert!(through > expected && through < 1.2 * back, "{through} s and {back} s");
}

#[test]
fn a_release_inside_a_kernel_writes_back_what_other_warps_wrote() {
    let machine = sockets(&[]);
    for (name, settings) in WRITING_BACK {
        let mut ctas = vec![Cta::new(); 4];
        ctas[1] = Cta::new()
            .warp(|warp| (0..8).for_each(|line| _ = warp.write([line])))
            .warp(|warp| _ = warp.compute(20_000).fence(Order::release(Scope::Sys)).compute(20_000));
        let program = || Directed::new(vec![reads([0], 0..8), ctas.clone()]);
        let record = simulate(&machine, design(name, settings), program());
        assert_eq!(link(&record, "gpu1.out").data_bytes, 8 * message(&machine, 128, false), "{name}");
        for threads in 2..=4 {
            let again = simulate_on(threads, &machine, design(name, settings), program());
            assert_eq!(again.digest, record.digest, "{name} on {threads} threads");
        }
    }
}
