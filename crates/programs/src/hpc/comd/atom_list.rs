//! Atom list: a thread or a warp per atom, in place of a thread per cell slot.
//!
//! Source: CoMD's CUDA version, methods `thread_atom` and `warp_atom`. The kernels that advance atoms, and the force
//! kernel, read their atoms' slots from a list. The list is rebuilt whenever atoms change cells.

use super::{CellGrid, RecordResult, SLOTS, Simulation, THREADS};
use crate::prelude::*;

/// Lanes that share an atom's neighbours. Source: CoMD's CUDA version: an NVIDIA warp.
const GROUP: i32 = 32;

/// Device arrays for the atom list, and its mapping.
pub(super) struct AtomList {
    /// Slot per atom.
    slot: Array<u32>,
    /// Number of atoms listed already.
    count: Array<u32>,
    /// Set if a group with [`GROUP`] lanes shares an atom's neighbours.
    by_warp: bool,
    /// Threads per CTA in the force kernel.
    threads: u32,
}

impl AtomList {
    /// Lays out a list with `atoms` atoms if the parameters select one.
    pub(super) fn lay_out(values: &ParameterValues, memory: &mut Memory, atoms: u64) -> Option<AtomList> {
        let by_warp = match values.text("mapping") {
            "thread" => false,
            "warp" => true,
            _ => return None,
        };
        Some(AtomList {
            slot: memory.array("list", atoms, Scaling::Scales),
            count: memory.array("listed", 1, Scaling::Fixed),
            by_warp,
            threads: values.count("threads") as u32,
        })
    }

    /// Runs `body(warp, slot)` with one thread for each atom.
    fn each_atom(
        &self,
        host: &mut Host<'_>,
        name: &str,
        threads: u32,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let atoms = self.slot.len();
        host.launch(Grid::new(name, atoms.div_ceil(u64::from(threads)), threads), |cta| {
            cta.each_warp(|warp| {
                let atom = warp.compute(ComputeClass::Int, 2, warp.global_thread());
                warp.when(atom.lt(atoms as i32), |warp| {
                    let slot = warp.load(self.slot, atom).cast::<i32>();
                    body(warp, slot);
                });
            });
        })
    }
}

impl Simulation {
    /// Lists the atoms inside the halo if the mapping needs a list.
    pub(super) fn list_atoms(&self, host: &mut Host<'_>) -> RecordResult {
        let Some(list) = &self.listed else { return Ok(()) };
        host.memory().write(list.count, 0, 0);
        host.copy_to_device(list.count);
        host.launch_ordered(self.grid("list-atoms", self.inner), |cta| {
            self.each_atom(cta, &self.atoms, |warp, slot| {
                let order = Order::relaxed(Scope::Sys);
                let place = warp.atomic(Reduction::Add, list.count, Lanes::all(0), 1, order);
                warp.store(list.slot, place, slot.cast::<u32>());
            });
        })
    }

    /// Runs `body(warp, slot)` for each atom, through the list if present.
    pub(super) fn advance(
        &self,
        host: &mut Host<'_>,
        name: &str,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        match &self.listed {
            Some(list) => list.each_atom(host, name, THREADS, body),
            None => {
                let grid = self.grid(name, self.inner);
                host.launch(grid, |cta| self.each_atom(cta, &self.atoms, |warp, slot| body(warp, slot)))
            }
        }
    }

    /// Launches the force kernel.
    pub(super) fn launch_force(&self, host: &mut Host<'_>) -> RecordResult {
        match &self.listed {
            None => host.launch(self.grid("force", self.inner), |cta| self.find_force(cta)),
            Some(list) if !list.by_warp => list.each_atom(host, "force", list.threads, |warp, slot| {
                let cell = self.outer.lane_coordinates(warp, slot / SLOTS);
                self.gather_force(warp, slot, cell);
            }),
            Some(list) => {
                let ctas = (list.slot.len() * GROUP as u64).div_ceil(u64::from(list.threads));
                host.launch(Grid::new("force", ctas, list.threads), |cta| {
                    cta.each_warp(|warp| self.share_force(warp, list));
                })
            }
        }
    }

    /// Computes force and energy for an atom; the lanes in its group share its neighbours.
    fn share_force(&self, warp: &mut Warp<'_>, list: &AtomList) {
        let atoms = &self.atoms;
        let thread = warp.compute(ComputeClass::Int, 4, warp.global_thread());
        let (atom, lane) = (thread / GROUP, thread % GROUP);
        warp.when(atom.lt(list.slot.len() as i32), |warp| {
            let slot = warp.load(list.slot, atom).cast::<i32>();
            let cell = self.outer.lane_coordinates(warp, slot / SLOTS);
            let own = atoms.position.map(|array| warp.load(array, slot));
            let mut sums = [Lanes::all(0.0); 4];
            for neighbour in 0..27 {
                let offset = CellGrid { x: 3, y: 3, z: 3 }.coordinates(neighbour);
                let near = self.outer.indices(warp, [0, 1, 2].map(|axis| cell[axis] + (offset[axis] - 1)));
                let count = warp.load(atoms.count, near).cast::<i32>();
                let rounds = (count - lane + (GROUP - 1)).max(Lanes::all(0)) / GROUP;
                warp.repeat(rounds.cast(), |warp, round| {
                    let other = near * SLOTS + lane + round as i32 * GROUP;
                    let other = warp.compute(ComputeClass::Int, 1, other);
                    self.add_pair(warp, &own, other, &mut sums);
                });
            }
            let sums = sums.map(|sum| warp.sum_lanes(ComputeClass::Fp64, sum, GROUP as u32));
            warp.when(lane.eq(0), |warp| {
                for (array, sum) in self.force.into_iter().chain([self.energy]).zip(sums) {
                    warp.store(array, slot, sum);
                }
            });
        });
    }
}
