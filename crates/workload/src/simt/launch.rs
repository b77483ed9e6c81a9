//! What every CTA of one kernel launch shares.

use super::memory::{Backing, Memory};
use super::shadow::Shadow;
use crate::record::{Picked, Trips};
use std::ops::Range;
use tombolo_types::LineSize;
use tombolo_types::stream::{KernelClass, KernelInfo};

/// Shape of a kernel launch: `<<<ctas, threads, shared_bytes>>>` and the kernel's name.
#[derive(Clone, Debug)]
pub struct Grid {
    pub(crate) name: String,
    pub(crate) ctas: u64,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) registers: u32,
    pub(crate) trips: Trips,
    pub(crate) parts: Vec<u32>,
}

impl Grid {
    /// A grid of `ctas` CTAs of `threads` threads.
    pub fn new(name: &str, ctas: u64, threads: u32) -> Grid {
        Grid {
            name: name.to_owned(),
            ctas,
            threads,
            shared_bytes: 0,
            registers: 0,
            trips: Trips::NONE,
            parts: Vec::new(),
        }
    }

    /// Scratchpad bytes of a CTA, which limit how many are resident on an SM.
    pub fn shared_bytes(self, shared_bytes: u32) -> Grid {
        Grid { shared_bytes, ..self }
    }

    /// Registers of a thread, which limit how many CTAs are resident on an SM. A kernel that names none is
    /// taken to need at most the 32 that leave room for every thread of NVIDIA's SMs.
    pub fn registers(self, registers: u32) -> Grid {
        Grid { registers, ..self }
    }

    /// The kernel's outer loop, which runs over [`Cta::trips`](super::Cta::trips): all of `trips`, or some of them
    /// where a sample is recorded.
    pub fn trips(self, trips: Trips) -> Grid {
        Grid { trips, ..self }
    }

    /// The first CTA of each GPU, ascending from 0: how the program cuts the grid, for designs that schedule as the program
    /// says. On a machine of another number of GPUs these refuse it.
    pub fn parts(self, parts: Vec<u32>) -> Grid {
        Grid { parts, ..self }
    }

    /// The part of it that these CTAs are; each stays with its GPU.
    pub(crate) fn of(&self, ctas: &Picked) -> Grid {
        let parts = self.parts.iter().map(|first| ctas.before(u64::from(*first)) as u32).collect();
        Grid { ctas: ctas.count(), parts, ..self.clone() }
    }

    /// What is wrong with the grid, if anything.
    pub(crate) fn defect(&self) -> Option<String> {
        let threads = self.ctas.saturating_mul(u64::from(self.threads));
        if self.ctas == 0 || self.threads == 0 {
            return Some("it has no thread".to_owned());
        }
        let in_order = self.parts.first().is_none_or(|first| *first == 0) && self.parts.is_sorted();
        if !in_order || self.parts.last().is_some_and(|last| u64::from(*last) > self.ctas) {
            return Some(format!("its parts {:?} do not ascend from 0 to its {} CTAs", self.parts, self.ctas));
        }
        // Thread indices are 32-bit signed integers, as in CUDA sources.
        (threads > i32::MAX as u64).then(|| format!("its {threads} threads exceed 2^31 - 1"))
    }

    pub(crate) fn info(self, discipline: Discipline) -> KernelInfo {
        KernelInfo {
            name: self.name,
            ctas: self.ctas as u32,
            threads_per_cta: self.threads,
            shared_bytes: self.shared_bytes,
            registers: self.registers,
            class: match discipline {
                Discipline::Independent | Discipline::Ordered => KernelClass::Independent,
                Discipline::Cooperative => KernelClass::Cooperative,
            },
            parts: self.parts,
        }
    }
}

/// How far the CTAs of a kernel may see each other's writes while it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// Not at all: any order, any thread.
    Independent,
    /// They race, and the order of CTA ids decides.
    Ordered,
    /// They wait for each other.
    Cooperative,
}

/// One launch while it is recorded.
pub(crate) struct Launch<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) info: &'a KernelInfo,
    /// CTAs of the whole grid, of which those of `info` are recorded.
    pub(crate) grid: u32,
    /// Which these are.
    pub(crate) picked: &'a Picked,
    /// Trips of the outer loop that are recorded.
    pub(crate) trips: Range<u64>,
    pub(crate) discipline: Discipline,
    /// Lanes of a warp.
    pub(crate) width: u32,
    pub(crate) line: LineSize,
    /// Checks that an independent kernel is what it says.
    pub(crate) shadow: Option<&'a Shadow>,
}

impl Launch<'_> {
    /// Whether values are left out.
    pub(crate) fn address_only(&self) -> bool {
        self.memory.backing() == Backing::AddressOnly
    }

    /// Warps of a CTA.
    pub(crate) fn warps(&self) -> u32 {
        self.info.threads_per_cta.div_ceil(self.width)
    }
}
