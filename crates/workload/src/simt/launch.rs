//! Context shared by every CTA in a kernel launch.

use super::independence::IndependenceChecker;
use super::memory::{Backing, Memory};
use crate::record::{CtaSelection, Trips};
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
    /// A grid with `ctas` CTAs and `threads` threads per CTA.
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

    /// CTAs of the grid.
    pub fn ctas(&self) -> u64 {
        self.ctas
    }

    /// Sets the scratchpad bytes per CTA, a limit on resident CTAs per SM.
    pub fn shared_bytes(self, shared_bytes: u32) -> Grid {
        Grid { shared_bytes, ..self }
    }

    /// Sets the registers per thread, a limit on resident CTAs per SM. A kernel without this value is assumed to need
    /// at most 32, enough room for every thread on NVIDIA's SMs.
    pub fn registers(self, registers: u32) -> Grid {
        Grid { registers, ..self }
    }

    /// Sets the kernel's outer loop, which iterates over [`Cta::trips`](super::Cta::trips): all of `trips`, or a part
    /// in a sample.
    pub fn trips(self, trips: Trips) -> Grid {
        Grid { trips, ..self }
    }

    /// Sets the first CTA for each GPU, ascending from 0: the program's own division of the grid, for designs with
    /// program-controlled scheduling. These designs refuse the grid on a machine with a different GPU count.
    pub fn parts(self, parts: Vec<u32>) -> Grid {
        Grid { parts, ..self }
    }

    /// The part of the grid formed by the CTAs in `ctas`; each CTA stays on the original GPU.
    pub(crate) fn of(&self, ctas: &CtaSelection) -> Grid {
        let parts = self.parts.iter().map(|first| ctas.before(u64::from(*first)) as u32).collect();
        Grid { ctas: ctas.count(), parts, ..self.clone() }
    }

    /// Describes a defect in the grid, if any.
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

/// Visibility of writes between a kernel's CTAs during recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// No visibility: any order, any thread.
    Independent,
    /// CTAs race, and the CTA id order decides.
    Ordered,
    /// CTAs wait for each other.
    Cooperative,
}

/// A kernel launch during recording, as seen by all CTAs.
pub(crate) struct Launch<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) info: &'a KernelInfo,
    /// CTA count in the whole grid, including unrecorded CTAs.
    pub(crate) grid: u32,
    /// The recorded CTAs.
    pub(crate) picked: &'a CtaSelection,
    /// Recorded range of trips through the kernel's outer loop.
    pub(crate) trips: Range<u64>,
    pub(crate) discipline: Discipline,
    /// Lanes per warp.
    pub(crate) width: u32,
    pub(crate) line: LineSize,
    /// Checker for the independence of a kernel declared independent.
    pub(crate) shadow: Option<&'a IndependenceChecker>,
}

impl Launch<'_> {
    /// True if values are left out.
    pub(crate) fn address_only(&self) -> bool {
        self.memory.backing() == Backing::AddressOnly
    }

    /// Warps per CTA, including a last warp that is only partly filled.
    pub(crate) fn warps(&self) -> u32 {
        self.info.threads_per_cta.div_ceil(self.width)
    }
}
