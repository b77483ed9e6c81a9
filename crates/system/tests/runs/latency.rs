//! Load latencies, leg by leg, tested with directed programs for which times are known in closed form. CTA `i` among
//! sixteen runs on module `i`; the SM clock is 1 GHz: a cycle is a nanosecond.

use crate::common::{self, design, follow_on, machine, simulate};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::RunRecord;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::latency::{LatencyRecord, LegsRecord, ServedRecord};
use tombolo_system::stalls::StallRecord;
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Order, Ps, Rate, Scope};

/// The clock for closed forms, with free translations.
const PLAIN: [&str; 3] = ["sm.clock=1GHz", "tlb.walk_latency=0ns", "tlb.l2_latency=0ns"];

fn plain(settings: &[&str]) -> Arc<MachineConfig> {
    machine(&[&PLAIN, settings].concat())
}

/// A kernel with sixteen CTAs; the CTA on `module` reads lines, one after another.
fn reads(module: usize, lines: impl IntoIterator<Item = u64>) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[module] = CtaBuilder::new().warp(|warp| lines.into_iter().for_each(|line| _ = warp.read([line])));
    ctas
}

/// Module 0 reads lines, and then module `module` reads them.
fn after_home(machine: &Arc<MachineConfig>, name: &str, module: usize, lines: u64) -> RunRecord {
    let program = DirectedProgram::new(vec![reads(0, 0..lines), reads(module, 0..lines)]);
    follow_on(1, machine, design(name, &[]), program)
}

fn ns(time: Ps) -> f64 {
    time.0 as f64 / 1000.0
}

fn span(rate: Rate, bytes: u64) -> f64 {
    bytes as f64 * 1e9 / rate.0 as f64
}

/// Zero-load times for parts of the machine, in nanoseconds.
struct Idle {
    machine: Arc<MachineConfig>,
}

impl Idle {
    fn new(machine: &Arc<MachineConfig>) -> Idle {
        Idle { machine: Arc::clone(machine) }
    }

    fn l1(&self) -> f64 {
        ns(self.machine.l1.hit_latency)
    }

    /// To a slice, and back with a line.
    fn crossbar(&self) -> f64 {
        2.0 * ns(self.machine.crossbar.latency) + self.line(self.machine.crossbar.rate)
    }

    fn line(&self, rate: Rate) -> f64 {
        span(rate, self.machine.line.bytes())
    }

    /// A slice that misses: one cycle for the request, a lookup, and the incoming line.
    fn miss(&self) -> f64 {
        1.0 + ns(self.machine.l2.hit_latency) + self.line(self.machine.l2.rate)
    }

    fn hit(&self) -> f64 {
        ns(self.machine.l2.hit_latency) + self.line(self.machine.l2.rate).max(1.0)
    }

    /// A slice that forwards a read and never sees the reply.
    fn passes(&self) -> f64 {
        1.0 + ns(self.machine.l2.hit_latency)
    }

    /// A request and a line between modules in a GPU: through the sender's output port and the receiver's input port.
    fn module_trip(&self) -> f64 {
        let link = &self.machine.module_link;
        2.0 * ns(link.latency) + 2.0 * self.packets(link.rate)
    }

    /// A request and a line between GPUs: additionally over the outgoing and incoming GPU links, and on to the module
    /// behind them.
    fn gpu_trip(&self) -> f64 {
        let link = &self.machine.gpu_link;
        let behind = 2.0 * ns(self.machine.module_link.latency);
        self.module_trip() + behind + 2.0 * ns(link.latency) + 2.0 * self.packets(link.rate)
    }

    fn packets(&self, rate: Rate) -> f64 {
        let sizes = &self.machine.messages;
        span(rate, sizes.request_bytes.0 + sizes.header_bytes.0 + self.machine.line.bytes())
    }

    /// A bank with no row open.
    fn bank(&self) -> f64 {
        let dram = &self.machine.dram;
        let burst = self.line(dram.rate) * f64::from(dram.channels);
        let bursts = self.machine.line.bytes() / dram.burst_bytes;
        // The bursts of a line come from one bank group: tCCD_L is two bursts.
        let apart = burst / bursts as f64 * (2 * bursts - 1) as f64;
        ns(dram.activate) + ns(dram.column) + apart + ns(dram.base_latency)
    }
}

fn loads(record: &RunRecord) -> &LatencyRecord {
    record.latency.as_ref().expect("loads are followed")
}

#[track_caller]
fn is(served: &ServedRecord, count: u64, expected: LegsRecord) {
    assert_eq!(served.count, count, "{served:?}");
    for ((name, measured), (_, expected)) in served.legs_ns.named().into_iter().zip(expected.named()) {
        assert!((measured - expected).abs() < 0.01, "{name}: {measured}, not {expected}: {served:?}");
    }
}

#[track_caller]
fn adds_up(record: &RunRecord) {
    let mut count = 0;
    for (name, served) in loads(record).named() {
        let sum: f64 = served.legs_ns.named().iter().map(|(_, leg)| leg).sum();
        assert!((sum - served.mean_ns).abs() <= 1e-9 * served.mean_ns, "{name}: {sum} in {served:?}");
        assert!(served.p50_ns <= served.p99_ns, "{name}: {served:?}");
        count += served.count;
    }
    assert_eq!(count, record.l1.loads, "{:?}", loads(record));
}

#[test]
fn a_load_of_ones_own_module_takes_what_the_machine_states() {
    let machine = plain(&[]);
    let idle = Idle::new(&machine);
    let record = after_home(&machine, "hmg", 0, 1);
    let above = LegsRecord { l1: idle.l1(), crossbar: idle.crossbar(), ..LegsRecord::default() };
    is(&loads(&record).own_l2, 1, LegsRecord { slice: idle.hit(), ..above });
    is(&loads(&record).dram, 1, LegsRecord { slice: idle.miss(), bank: idle.bank(), ..above });
    let all = LegsRecord { slice: idle.hit(), ..above }.named().iter().map(|(_, leg)| leg).sum::<f64>();
    let ServedRecord { p50_ns, p99_ns, .. } = loads(&record).own_l2;
    assert!((p50_ns - all).abs() < 0.01 && p50_ns == p99_ns, "of one load: {p50_ns} and {p99_ns}, not {all}");
    adds_up(&record);
}

#[test]
fn a_hit_of_the_l1_takes_its_latency() {
    let machine = plain(&[]);
    let record = follow_on(1, &machine, design("hmg", &[]), DirectedProgram::new(vec![reads(0, [7; 5])]));
    let l1 = Idle::new(&machine).l1();
    is(&loads(&record).l1, 4, LegsRecord { l1, ..LegsRecord::default() });
    adds_up(&record);
}

/// The home has the line, and no other cache does.
#[test]
fn a_load_of_another_module_takes_one_trip_and_two_slices() {
    let machine = plain(&[]);
    let idle = Idle::new(&machine);
    let above = LegsRecord { l1: idle.l1(), crossbar: idle.crossbar(), ..LegsRecord::default() };
    let slice = idle.miss() + idle.hit();
    for name in ["hmg", "nhcc"] {
        let record = after_home(&machine, name, 1, 1);
        is(&loads(&record).module, 1, LegsRecord { slice, link_wire: idle.module_trip(), ..above });
        adds_up(&record);
    }
    let record = after_home(&machine, "nhcc", 5, 1);
    is(&loads(&record).gpu, 1, LegsRecord { slice, link_wire: idle.gpu_trip(), ..above });
    adds_up(&record);
}

/// An L2 that caches no remote lines forwards a read, and the reply bypasses it.
#[test]
fn a_load_that_is_passed_on_has_its_links_found_at_the_sm() {
    let machine = plain(&[]);
    let idle = Idle::new(&machine);
    let record = after_home(&machine, "numa-memory-side", 5, 1);
    let (slice, link_wire) = (idle.passes() + idle.hit(), idle.gpu_trip());
    let legs = LegsRecord { l1: idle.l1(), crossbar: idle.crossbar(), slice, link_wire, ..LegsRecord::default() };
    is(&loads(&record).gpu, 1, legs);
    adds_up(&record);
}

/// Among the four modules in a GPU, one is the GPU home for a line; the remaining modules send requests to the GPU home
/// first.
#[test]
fn a_load_over_two_hops_has_the_legs_of_both() {
    let machine = plain(&[]);
    let idle = Idle::new(&machine);
    let above = LegsRecord { l1: idle.l1(), crossbar: idle.crossbar(), ..LegsRecord::default() };
    let direct = LegsRecord { slice: idle.miss() + idle.hit(), link_wire: idle.gpu_trip(), ..above };
    let by_home =
        LegsRecord { slice: 2.0 * idle.miss() + idle.hit(), link_wire: idle.module_trip() + idle.gpu_trip(), ..above };
    let mut hops = Vec::new();
    for module in 4..8 {
        let record = after_home(&machine, "hmg", module, 1);
        let served = loads(&record).gpu;
        let is_direct = served.mean_ns < direct.named().iter().map(|(_, leg)| leg).sum::<f64>() + 1.0;
        is(&served, 1, if is_direct { direct } else { by_home });
        adds_up(&record);
        hops.push(if is_direct { 1 } else { 2 });
    }
    hops.sort_unstable();
    assert_eq!(hops, [1, 2, 2, 2]);
}

/// Lines from a single load, all over a single link: each waits for all earlier lines.
#[test]
fn a_saturated_link_has_its_queue_in_its_leg() {
    let lines = 32;
    for name in ["nhcc", "numa-memory-side"] {
        let machine = plain(&["gpu_link.rate=1GB/s", "l1.mshrs=64", "page_bytes=64MB"]);
        let idle = Idle::new(&machine);
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[5] = CtaBuilder::new().warp(|warp| _ = warp.read(0..lines));
        let record = follow_on(1, &machine, design(name, &[]), DirectedProgram::new(vec![reads(0, 0..lines), ctas]));
        let ServedRecord { count, legs_ns, .. } = loads(&record).gpu;
        assert_eq!(count, lines);
        // Lines pass the outgoing GPU link one after another.
        let queue = (lines - 1) as f64 / 2.0 * span(machine.gpu_link.rate, 128 + 16);
        let part = legs_ns.link_queue / queue;
        assert!((part - 1.0).abs() < 0.02, "{name}: {legs_ns:?}, a queue of {queue} expected");
        assert!((legs_ns.link_wire - idle.gpu_trip()).abs() < 0.01, "{name}: {legs_ns:?}");
        assert!(legs_ns.slice_queue < 40.0 && legs_ns.dram_queue == 0.0, "{name}: {legs_ns:?}");
        adds_up(&record);
    }
}

/// Lines in one bank, each in a different row.
#[test]
fn banks_that_turn_rows_have_their_queue_in_the_leg_of_memory() {
    let settings = ["dram.channels=1", "dram.banks=1", "dram.row_bytes=2KB", "l1.mshrs=64"];
    let machine = plain(&settings);
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[0] = CtaBuilder::new().warp(|warp| _ = warp.read((0..16).map(|row| 16 * row)));
    let record = follow_on(1, &machine, design("hmg", &[]), DirectedProgram::new(vec![ctas]));
    let ServedRecord { count, legs_ns, .. } = loads(&record).dram;
    let row = ns(machine.dram.row_active) + ns(machine.dram.precharge);
    assert_eq!(count, 16);
    assert!((legs_ns.dram_queue / (7.5 * row) - 1.0).abs() < 0.1, "{legs_ns:?}, {row} a row");
    adds_up(&record);
}

/// Each of sixteen modules reads remote lines, with misses to join and too few miss registers; polls, atomics and
/// stores in between.
fn mixed() -> Arc<DirectedProgram> {
    let cta = |id: u64| {
        (0..8).fold(CtaBuilder::new(), |cta, warp| {
            cta.warp(|w| {
                let base = (id * 8 + warp) * 64;
                w.load(base..base + 8, Order::WEAK).load([warp, 9000, 9001 + id % 3], Order::WEAK).use_result(2);
                w.write(4096 + base..4096 + base + 4).read([warp, 8192 + id]);
                w.atomic([16_384 + warp], Order::relaxed(Scope::Sys), AtomicResult::Returned).use_result(1);
                w.store([32_768 + base], tombolo_types::Mask(1), Order::release(Scope::Sys)).read([base]);
                w.load((0..24).map(|line| 64 * line + warp), Order::acquire(Scope::Gpu)).use_result(1);
            })
        })
    };
    DirectedProgram::new(vec![(0..16).map(cta).collect(), (0..16).map(cta).collect()])
}

#[test]
fn legs_add_up_to_latencies_under_every_design_and_thread_count() {
    let machine = machine(&["sm.clock=1GHz", "l1.mshrs=8", "l2.mshrs=32", "sm.posted_stores=8", "l1.sector_bytes=32"]);
    for name in common::DESIGNS {
        let record = follow_on(1, &machine, design(name, &[]), mixed());
        adds_up(&record);
        assert!(loads(&record).gpu.count > 0 && loads(&record).dram.count > 0, "{name}: {:?}", loads(&record));
        for threads in [2, 3] {
            let many = follow_on(threads, &machine, design(name, &[]), mixed());
            assert_eq!(many.latency, record.latency, "{name} on {threads} threads");
            assert_eq!(many.statistics_digest, record.statistics_digest, "{name} on {threads} threads");
        }
    }
}

#[test]
fn following_loads_changes_nothing_of_what_is_simulated() {
    let machine = machine(&["l1.mshrs=8"]);
    for name in common::DESIGNS {
        let plain = simulate(&machine, design(name, &[]), mixed());
        let followed = follow_on(1, &machine, design(name, &[]), mixed());
        assert_eq!((&plain.digest, plain.host.events), (&followed.digest, followed.host.events), "{name}");
        assert_eq!((plain.latency, plain.stalls.queued), (None, None), "{name}");
        assert_eq!(StallRecord { queued: None, ..followed.stalls }, plain.stalls, "{name}");
    }
}

/// Without competing traffic, a load meets no queue on any fabric.
#[test]
fn a_lone_load_meets_no_queue_on_any_fabric() {
    let fabrics: [&[&str]; 4] = [
        &["fabric.shape=switch"],
        &["fabric.shape=shared"],
        &["fabric.shape=pairs"],
        &["fabric.shape=tree", "fabric.gpus_per_leaf=2", "fabric.uplink_rate=50GB/s", "fabric.uplink_latency=70ns"],
    ];
    for settings in fabrics {
        let machine = plain(settings);
        for (name, module) in [("nhcc", 4), ("nhcc", 8), ("numa-memory-side", 12)] {
            let legs = loads(&after_home(&machine, name, module, 1)).gpu.legs_ns;
            assert!(legs.link_queue == 0.0 && legs.slice_queue == 0.0, "{name}, {settings:?}: {legs:?}");
            assert!(legs.link_wire > 2.0 * ns(machine.gpu_link.latency), "{name}, {settings:?}: {legs:?}");
        }
    }
}
