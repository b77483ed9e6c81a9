//! Estimate for a program whose copies overlap its kernels: the longer of two times, of kernels without copies, and of the
//! required exchanges on the busiest link.
//!
//! Each line goes from its writer to each reader directly and whole. A design that passes lines on at a third GPU, sends parts
//! of lines, or multicasts, may need less of that link.

use super::exchange::ExchangeRow;
use crate::table::{bytes, seconds};
use serde::Serialize;
use std::collections::BTreeMap;
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::FabricShape;
use tombolo_types::{GpuId, Rate};

/// Times of a program whose copies overlap its kernels.
#[derive(Debug, Serialize)]
pub(crate) struct OverlappedCopies {
    /// Seconds of the region with copies that take no time (`infinite-bandwidth`).
    pub(crate) kernels_s: f64,
    /// Bytes of the required exchanges on the link that takes longest, in one direction.
    pub(crate) exchange_bytes: u64,
    /// Seconds that these bytes take at the link's rate.
    pub(crate) exchange_s: f64,
    /// The longer of both times.
    pub(crate) time_s: f64,
    /// Speed-up over one GPU in this time.
    pub(crate) speedup: f64,
}

impl OverlappedCopies {
    /// Estimate for a program that takes `alone_s` on one GPU, `kernels_s` without copies, and must exchange `rows`.
    pub(crate) fn new(machine: &MachineConfig, rows: &[ExchangeRow], kernels_s: f64, alone_s: f64) -> OverlappedCopies {
        let (exchange_s, exchange_bytes) = slowest_link(machine, rows);
        let time_s = exchange_s.max(kernels_s);
        OverlappedCopies { kernels_s, exchange_bytes, exchange_s, time_s, speedup: alone_s / time_s }
    }

    /// A sentence for people.
    pub(crate) fn text(&self) -> String {
        let OverlappedCopies { kernels_s, exchange_bytes, exchange_s, speedup, .. } = self;
        let kernels =
            format!("speed-up with copies behind kernels: {speedup:.2}; kernels take {}", seconds(*kernels_s));
        if *exchange_bytes == 0 {
            return format!("{kernels}\n");
        }
        format!("{kernels}, {} on the busiest link {}\n", bytes(*exchange_bytes), seconds(*exchange_s))
    }
}

/// A direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    Out(u8),
    In(u8),
    Pair(u8, u8),
    Medium,
    Up(u8),
    Down(u8),
    /// A link between two GPUs that pass packets on, by its index.
    Hop(usize),
}

/// Seconds and bytes of the link whose exchanges take longest.
fn slowest_link(machine: &MachineConfig, rows: &[ExchangeRow]) -> (f64, u64) {
    let mut links = BTreeMap::<Link, u64>::new();
    let routes = machine.routes();
    for &ExchangeRow { writer, reader, bytes, .. } in rows {
        let mut used = match machine.fabric.shape {
            FabricShape::Switch | FabricShape::Tree => vec![Link::Out(writer), Link::In(reader)],
            FabricShape::Pairs => vec![Link::Pair(writer, reader)],
            FabricShape::Shared => vec![Link::Medium],
            FabricShape::Ring | FabricShape::Torus | FabricShape::Links => {
                let path = routes.iter().flat_map(|routes| routes.path(GpuId(writer), GpuId(reader)));
                path.map(|(index, _)| Link::Hop(index)).collect()
            }
        };
        let [from, to] = [writer, reader].map(|gpu| machine.fabric.leaf_of(GpuId(gpu)));
        if from != to {
            used.extend([Link::Up(from), Link::Down(to)]);
        }
        used.into_iter().for_each(|link| *links.entry(link).or_default() += bytes);
    }
    let time = |link: Link, bytes: u64| {
        match (link, &routes) {
            (Link::Hop(index), Some(routes)) => seconds_at(routes.links()[index].rate, bytes),
            // Pairs of a leaf are taken to be spread over its uplinks.
            (Link::Up(_) | Link::Down(_), _) => {
                seconds_at(machine.fabric.uplink_rate, bytes) / f64::from(machine.fabric.uplinks)
            }
            _ => seconds_at(machine.gpu_link.rate, bytes),
        }
    };
    let times = links.into_iter().map(|(link, bytes)| (time(link, bytes), bytes));
    times.max_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))).unwrap_or_default()
}

fn seconds_at(rate: Rate, bytes: u64) -> f64 {
    if rate.is_infinite() { 0.0 } else { bytes as f64 / rate.0 as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(writer: u8, reader: u8, bytes: u64) -> ExchangeRow {
        ExchangeRow { array: None, writer, reader, bytes }
    }

    fn machine(shape: FabricShape) -> MachineConfig {
        let mut machine = tombolo_machine::machine("gps-4-pcie3").unwrap().check().unwrap();
        machine.gpu_link.rate = Rate(1_000_000);
        machine.fabric.shape = shape;
        machine.fabric.gpus_per_leaf = 2;
        machine.fabric.uplink_rate = Rate(500_000);
        machine
    }

    #[test]
    fn the_slowest_link_is_a_port_an_uplink_a_pair_or_the_medium() {
        // GPU 0 sends 300, GPU 2 receives 500, and 500 go from GPUs 0 and 1 to GPUs 2 and 3.
        let rows = [row(0, 1, 100), row(0, 2, 200), row(1, 2, 300)];
        let of = |shape| slowest_link(&machine(shape), &rows);
        assert_eq!(of(FabricShape::Switch), (500e-6, 500));
        assert_eq!(of(FabricShape::Tree), (1000e-6, 500));
        assert_eq!(of(FabricShape::Pairs), (300e-6, 300));
        assert_eq!(of(FabricShape::Shared), (600e-6, 600));
        // In a ring, what goes from GPU 0 to GPU 2 passes GPU 1: 300 from 0 to 1, and 500 from 1 to 2.
        assert_eq!(of(FabricShape::Ring), (500e-6, 500));
        assert_eq!(slowest_link(&machine(FabricShape::Switch), &[]), (0.0, 0));
    }

    #[test]
    fn the_longer_of_kernels_and_exchange_counts() {
        let rows = [row(0, 1, 1000)];
        let of = |kernels_s| OverlappedCopies::new(&machine(FabricShape::Switch), &rows, kernels_s, 6e-3);
        let (long, short) = (of(2e-3), of(0.5e-3));
        assert_eq!((long.exchange_bytes, long.time_s, short.time_s), (1000, 2e-3, 1e-3));
        assert!((long.speedup - 3.0).abs() < 1e-9 && (short.speedup - 6.0).abs() < 1e-9);
        assert!(
            short.text().contains("6.00; kernels take 500.00 us, 1 kB on the busiest link 1.00 ms"),
            "{}",
            short.text()
        );
    }
}
