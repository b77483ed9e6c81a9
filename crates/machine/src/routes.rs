//! Paths between GPUs in a fabric whose GPUs pass packets on: a ring, a torus, or listed links.
//!
//! A path is fixed for each pair of GPUs, so that packets of a pair stay in order. It is found hop by hop: the next link
//! depends on the current GPU and the destination alone.

use crate::fabric::{FabricShape, ListedLink};
use crate::machine::MachineConfig;
use std::collections::BTreeMap;
use tombolo_types::{GpuId, Ps, Rate};

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectedLink {
    /// The sender.
    pub from: GpuId,
    /// The receiver.
    pub to: GpuId,
    /// Bandwidth.
    pub rate: Rate,
    /// Latency, without queueing or serialisation.
    pub latency: Ps,
}

/// All links in a fabric, and the paths over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    gpus: usize,
    links: Vec<DirectedLink>,
    /// Index of the next link, by current GPU, then destination; meaningless where both are equal.
    next: Vec<u16>,
}

/// A pair of GPUs without a path.
pub(crate) struct Unreachable {
    pub(crate) from: GpuId,
    pub(crate) to: GpuId,
}

impl MachineConfig {
    /// Links and paths in the machine's fabric; `None` if no GPU passes packets on.
    pub fn routes(&self) -> Option<Routes> {
        let reached = self.find_routes()?;
        Some(reached.unwrap_or_else(|pair| panic!("{} cannot reach {}: the machine is checked", pair.from, pair.to)))
    }

    /// Like [`MachineConfig::routes`], before the machine is checked.
    pub(crate) fn find_routes(&self) -> Option<Result<Routes, Unreachable>> {
        let (gpus, fabric) = (self.topology.gpus, &self.fabric);
        let columns = match fabric.shape {
            FabricShape::Switch | FabricShape::Tree | FabricShape::Shared | FabricShape::Pairs => return None,
            // A lone GPU has no link to anyone.
            _ if gpus == 1 => 1,
            FabricShape::Links => return Some(Routes::listed(gpus, &fabric.links.0)),
            FabricShape::Ring => gpus,
            FabricShape::Torus => fabric.columns,
        };
        let torus = Torus { rows: gpus / columns, columns };
        let (rate, latency) = (self.gpu_link.rate, self.gpu_link.latency);
        let links: Vec<ListedLink> = torus.pairs().map(|ends| ListedLink { ends, rate, latency }).collect();
        Some(Routes::new(gpus, &links, |from, to| Some(torus.next(from, to))))
    }
}

/// GPUs in rows and columns, each of them a ring.
#[derive(Clone, Copy)]
struct Torus {
    rows: u8,
    columns: u8,
}

impl Torus {
    fn at(self, row: u8, column: u8) -> GpuId {
        GpuId(row * self.columns + column)
    }

    /// Pairs of neighbours. Two members of a ring share one link.
    fn pairs(self) -> impl Iterator<Item = (GpuId, GpuId)> {
        let of_ring = |size: u8| match size {
            0 | 1 => 0,
            2 => 1,
            _ => size,
        };
        let along_rows = (0..self.rows).flat_map(move |row| {
            (0..of_ring(self.columns))
                .map(move |column| (self.at(row, column), self.at(row, (column + 1) % self.columns)))
        });
        let along_columns = (0..self.columns).flat_map(move |column| {
            (0..of_ring(self.rows)).map(move |row| (self.at(row, column), self.at((row + 1) % self.rows, column)))
        });
        along_rows.chain(along_columns)
    }

    /// The next GPU on the path: along the row first, in the shorter direction. If both directions are equally long,
    /// neighbouring GPUs choose opposite directions.
    fn next(self, from: GpuId, to: GpuId) -> GpuId {
        let [(row, column), (to_row, to_column)] = [from, to].map(|gpu| (gpu.0 / self.columns, gpu.0 % self.columns));
        let is_even = (row + column).is_multiple_of(2);
        if column == to_column {
            self.at(step(row, to_row, self.rows, is_even), column)
        } else {
            self.at(row, step(column, to_column, self.columns, is_even))
        }
    }
}

/// The member of a ring after `from` on the shorter way to `to`; of equal ways, upwards if `up`.
fn step(from: u8, to: u8, size: u8, up: bool) -> u8 {
    let [from, to, size] = [from, to, size].map(u16::from);
    let distance = (to + size - from) % size;
    let upwards = 2 * distance < size || 2 * distance == size && up;
    ((from + if upwards { 1 } else { size - 1 }) % size) as u8
}

impl Routes {
    /// Paths over `links`, in both directions of each. `next`: the next GPU on the path from one GPU to another, if there
    /// is a path.
    fn new(
        gpus: u8,
        links: &[ListedLink],
        next: impl Fn(GpuId, GpuId) -> Option<GpuId>,
    ) -> Result<Routes, Unreachable> {
        let directions = |&ListedLink { ends: (one, other), rate, latency }: &ListedLink| {
            [(one, other), (other, one)].map(|(from, to)| DirectedLink { from, to, rate, latency })
        };
        let links: Vec<DirectedLink> = links.iter().flat_map(directions).collect();
        let indices: BTreeMap<(GpuId, GpuId), u16> = links.iter().map(|link| (link.from, link.to)).zip(0..).collect();
        let mut routes = Routes { gpus: gpus.into(), links, next: Vec::new() };
        for (from, to) in (0..gpus).flat_map(|from| (0..gpus).map(move |to| (GpuId(from), GpuId(to)))) {
            let after = if from == to { Some(from) } else { next(from, to) };
            let after = after.ok_or(Unreachable { from, to })?;
            routes.next.push(indices.get(&(from, after)).copied().unwrap_or(u16::MAX));
        }
        Ok(routes)
    }

    /// Paths of fewest links, and of least latency among these. Of equal paths, pairs take different ones.
    fn listed(gpus: u8, links: &[ListedLink]) -> Result<Routes, Unreachable> {
        let neighbours = |gpu: GpuId| {
            links.iter().filter_map(move |&ListedLink { ends: (one, other), latency, .. }| match gpu {
                gpu if gpu == one => Some((other, latency)),
                gpu if gpu == other => Some((one, latency)),
                _ => None,
            })
        };
        // Number of links and total latency to each GPU, by destination.
        let distances = |to: GpuId| {
            let mut distances = vec![None; usize::from(gpus)];
            distances[usize::from(to.0)] = Some((0, Ps::ZERO));
            let mut reached = vec![to];
            for hops in 1.. {
                let mut found = BTreeMap::<GpuId, Ps>::new();
                for gpu in reached {
                    let so_far = distances[usize::from(gpu.0)].map_or(Ps::ZERO, |(_, latency)| latency);
                    for (next, latency) in neighbours(gpu).filter(|(next, _)| distances[usize::from(next.0)].is_none())
                    {
                        let least = found.entry(next).or_insert(Ps::NEVER);
                        *least = (*least).min(so_far + latency);
                    }
                }
                found.iter().for_each(|(gpu, latency)| distances[usize::from(gpu.0)] = Some((hops, *latency)));
                reached = found.into_keys().collect();
                if reached.is_empty() {
                    break;
                }
            }
            distances
        };
        let distances: Vec<Vec<Option<(u32, Ps)>>> = (0..gpus).map(|to| distances(GpuId(to))).collect();
        Routes::new(gpus, links, |from, to| {
            let to_here = |gpu: GpuId| distances[usize::from(to.0)][usize::from(gpu.0)];
            let own = to_here(from)?;
            let ahead = |(next, latency): &(GpuId, Ps)| {
                to_here(*next).is_some_and(|(hops, rest)| (hops + 1, rest + *latency) == own)
            };
            let equal: Vec<GpuId> = neighbours(from).filter(ahead).map(|(next, _)| next).collect();
            equal.get((usize::from(from.0) + usize::from(to.0)) % equal.len().max(1)).copied()
        })
    }

    /// All links.
    pub fn links(&self) -> &[DirectedLink] {
        &self.links
    }

    /// The links from one GPU to another, each with its index in [`Routes::links`].
    pub fn path(&self, from: GpuId, to: GpuId) -> impl Iterator<Item = (usize, &DirectedLink)> {
        let mut at = from;
        std::iter::from_fn(move || {
            if at == to {
                return None;
            }
            let index = usize::from(self.next[usize::from(at.0) * self.gpus + usize::from(to.0)]);
            let link = &self.links[index];
            at = link.to;
            Some((index, link))
        })
    }

    /// Total latency from one GPU to another.
    pub fn latency(&self, from: GpuId, to: GpuId) -> Ps {
        self.path(from, to).fold(Ps::ZERO, |sum, (_, link)| sum + link.latency)
    }

    /// Rate at which data can enter the GPU with the slowest links, over all its links.
    pub fn least_incoming(&self) -> Rate {
        let into = |gpu: usize| {
            let own = self.links.iter().filter(|link| usize::from(link.to.0) == gpu);
            own.fold(0, |sum: u64, link| sum.saturating_add(link.rate.0))
        };
        Rate((0..self.gpus).map(into).min().unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;

    fn machine(settings: &[(&str, &str)]) -> MachineConfig {
        let mut machine = crate::machine("dgx-h100").expect("it ships");
        settings.iter().for_each(|(key, value)| machine.set(key, value).expect("a key"));
        machine.check().expect("it fits")
    }

    fn path(routes: &Routes, from: u8, to: u8) -> Vec<u8> {
        routes.path(GpuId(from), GpuId(to)).map(|(_, link)| link.to.0).collect()
    }

    #[test]
    fn a_ring_takes_the_shorter_way_and_halves_of_it_are_shared_by_both_ways() {
        let machine = machine(&[("fabric.shape", "ring")]);
        let routes = machine.routes().expect("a ring passes packets on");
        assert_eq!(routes.links().len(), 16, "two directions between any two neighbours");
        assert_eq!((path(&routes, 6, 1), path(&routes, 1, 6)), (vec![7, 0, 1], vec![0, 7, 6]));
        assert_eq!((path(&routes, 0, 4), path(&routes, 1, 5)), (vec![1, 2, 3, 4], vec![0, 7, 6, 5]));
        assert_eq!(routes.latency(GpuId(0), GpuId(3)).0, 3 * machine.gpu_link.latency.0);
        assert_eq!(routes.least_incoming().0, 2 * machine.gpu_link.rate.0);
    }

    #[test]
    fn all_to_all_loads_each_link_of_a_ring_and_of_a_torus_alike() {
        for settings in [&[("fabric.shape", "ring")][..], &[("fabric.shape", "torus"), ("fabric.columns", "4")]] {
            let sixteen = [&[("topology.gpus", "16")], settings].concat();
            let routes = machine(&sixteen).routes().expect("GPUs pass packets on");
            let mut loads = vec![0_u32; routes.links().len()];
            for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (GpuId(from), GpuId(to)))) {
                routes.path(from, to).for_each(|(link, _)| loads[link] += 1);
            }
            assert!(loads.iter().all(|load| *load == loads[0]), "{settings:?}: {loads:?}");
        }
    }

    #[test]
    fn a_torus_goes_along_its_row_first_and_two_of_a_ring_share_a_link() {
        let routes = machine(&[("fabric.shape", "torus"), ("fabric.columns", "4")]).routes().expect("a torus");
        assert_eq!(routes.links().len(), 2 * (8 + 4), "two rows of four, four columns of two");
        assert_eq!(path(&routes, 0, 5), [1, 5]);
        assert_eq!(path(&routes, 7, 0), [4, 0]);
    }

    #[test]
    fn listed_links_give_the_paths_of_fewest_links() {
        let list = "0:1:450GB/s:500ns,1:2:450GB/s:500ns,2:3:450GB/s:500ns,3:0:100GB/s:600ns";
        let four =
            [("topology.gpus", "4"), ("fabric.shape", "links"), ("gpu_link.latency", "500ns"), ("fabric.links", list)];
        let machine = machine(&four);
        let routes = machine.routes().expect("listed");
        assert_eq!((path(&routes, 0, 3), path(&routes, 0, 2)), (vec![3], vec![1, 2]), "of two links the shorter ones");
        assert_eq!(routes.latency(GpuId(1), GpuId(3)), Ps::from_ns(1000));
        assert_eq!(routes.least_incoming(), Rate(550_000_000_000));
    }

    #[test]
    fn a_lone_gpu_has_no_links() {
        let list = ("fabric.links", "0:1:450GB/s:500ns");
        for settings in [[("fabric.shape", "torus"), ("fabric.columns", "4")], [("fabric.shape", "links"), list]] {
            let alone = machine(&[&settings[..], &[("topology.gpus", "1")]].concat());
            assert_eq!(alone.routes().map(|routes| routes.links().len()), Some(0));
        }
    }

    #[test]
    fn a_list_in_a_file_reads_like_a_setting() {
        let text = "base = \"dgx-h100\"\ntopology.gpus = 2\ngpu_link.latency = \"300ns\"\nfabric.shape = \"links\"\n\
            fabric.links = [[0, 1, \"450GB/s\", \"500ns\"]]\n";
        let machine =
            crate::Description::<MachineConfig>::parse("own", text).and_then(|own| own.check()).expect("it fits");
        assert_eq!(machine.fabric.links.print().to_string(), "0:1:450GB/s:500ns");
        assert_eq!(machine.routes().expect("listed").latency(GpuId(1), GpuId(0)), Ps::from_ns(500));
    }

    #[test]
    fn links_that_leave_a_gpu_out_are_refused() {
        let refused = |settings: &[(&str, &str)]| {
            let mut machine = crate::machine("dgx-h100").expect("it ships");
            let base = [("topology.gpus", "4"), ("fabric.shape", "links"), ("gpu_link.latency", "500ns")];
            [&base, settings].concat().iter().for_each(|(key, value)| machine.set(key, value).expect("a key"));
            machine.check().expect_err("it does not fit").to_string()
        };
        let of = |list| refused(&[("fabric.links", list)]);
        assert!(of("0:1:450GB/s:500ns,2:3:450GB/s:500ns").contains("cannot reach"));
        assert!(of("0:1:450GB/s:500ns,1:4:450GB/s:500ns").contains("4 GPUs"));
        assert!(of("0:0:450GB/s:500ns").contains("two GPUs"));
        assert!(of("0:1:450GB/s:500ns,1:0:450GB/s:500ns").contains("one link"));
        assert!(of("0:1:450GB/s:400ns").contains("gpu_link.latency"));
        assert!(refused(&[("fabric.shape", "torus"), ("fabric.columns", "3")]).contains("fabric.columns"));
    }
}
