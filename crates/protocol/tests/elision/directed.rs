//! Directed programs: a machine on which a test launches kernels in sequence and inspects the operations.

use crate::cases::{AnyElision, Kind, module};
use crate::kernel::{Kernel, OwnedLabel, homes};
use crate::search::{Order, perform};
use crate::truth::{Access, Machine, RemoteAccess, World};
use std::ops::Range;
use tombolo_protocol::elision::{
    AccessMode, Account, BoundaryOperations, BrokenElision, Elision, KernelId, LineRange, StructureUse, TableConfig,
    User,
};
use tombolo_types::{Line, ModuleId};

pub(crate) const R: AccessMode = AccessMode::Read;
pub(crate) const RW: AccessMode = AccessMode::ReadWrite;

/// User, mode, and line range relative to the structure's first line.
pub(crate) type DirectedUse = (User, AccessMode, Range<u64>);

/// Structures with `lines` lines per module, in which each module is home to its own part.
pub(crate) struct DirectedProgram {
    pub(crate) machine: Machine,
    pub(crate) world: World,
    pub(crate) elision: AnyElision,
    /// Lines per structure.
    pub(crate) lines: u64,
    /// Number of dirty lines flushed by the last boundary.
    pub(crate) flushed: usize,
    /// Accounts reported by the last boundary.
    pub(crate) accounts: Vec<Account>,
}

/// A boundary's operations: modules invalidated, modules flushed.
pub(crate) type BoundaryEffect = (Vec<u8>, Vec<u8>);

impl DirectedProgram {
    pub(crate) fn new(kind: Kind, modules: u8, structures: u64, lines: u64) -> DirectedProgram {
        DirectedProgram::with(kind, modules, structures, lines, TableConfig::default(), None)
    }

    pub(crate) fn with(
        kind: Kind,
        modules: u8,
        structures: u64,
        lines: u64,
        config: TableConfig,
        broken: Option<BrokenElision>,
    ) -> DirectedProgram {
        let all = 0..structures * lines * u64::from(modules);
        let homes = all.map(|line| ModuleId((line / lines % u64::from(modules)) as u8)).collect();
        let reading = RemoteAccess::HomeMemory;
        let machine = Machine { reading, modules, homes, grains: 1, store_fetches: false, fault: None };
        let (world, elision) = (World::new(&machine), AnyElision::new(kind, config, &machine, broken));
        let lines = lines * u64::from(modules);
        DirectedProgram { machine, world, elision, lines, flushed: 0, accounts: Vec::new() }
    }

    /// The part of a structure homed at a module.
    pub(crate) fn own(&self, module: u8) -> Range<u64> {
        let part = self.lines / u64::from(self.machine.modules);
        u64::from(module) * part..(u64::from(module) + 1) * part
    }

    /// `own`, extended by `halo` lines at each end.
    pub(crate) fn around(&self, module: u8, halo: u64) -> Range<u64> {
        let own = self.own(module);
        own.start.saturating_sub(halo)..(own.end + halo).min(self.lines)
    }

    /// A part for each module.
    pub(crate) fn each(&self, mode: AccessMode, range: impl Fn(u8) -> Range<u64>) -> Vec<DirectedUse> {
        (0..self.machine.modules).map(|at| (module(at), mode, range(at))).collect()
    }

    /// The whole structure for each module.
    pub(crate) fn all(&self, mode: AccessMode) -> Vec<DirectedUse> {
        self.each(mode, |_| 0..self.lines)
    }

    /// Runs a kernel with the given uses for each structure. R/W labels are written if no other part names the
    /// line, and never read.
    pub(crate) fn run(&mut self, structures: &[(u64, Vec<DirectedUse>)]) -> BoundaryEffect {
        let kernel = self.kernel(structures);
        self.launch(&kernel)
    }

    /// Builds the kernel for these uses.
    pub(crate) fn kernel(&self, structures: &[(u64, Vec<DirectedUse>)]) -> Kernel {
        let labels: Vec<OwnedLabel> = structures.iter().map(|(number, parts)| self.label(*number, parts)).collect();
        let accesses = structures.iter().flat_map(|(number, parts)| self.accesses(*number, parts)).collect();
        Kernel { accesses, labels: Some(labels) }
    }

    pub(crate) fn launch(&mut self, kernel: &Kernel) -> BoundaryEffect {
        let mut accounts = Vec::new();
        let launched = kernel
            .with_packet(KernelId(0), |packet| self.elision.launch(packet, &mut |account| accounts.push(*account)));
        self.accounts = accounts;
        let done = self.perform(&launched);
        perform(&self.machine, &mut self.world, &kernel.accesses, Order::LoadsFirst)
            .expect("what is labelled is current");
        let ended = self.elision.finish(KernelId(0), &mut |_| {});
        let flushed = self.flushed;
        self.perform(&ended);
        self.flushed += flushed;
        done
    }

    pub(crate) fn end(&mut self) -> BoundaryEffect {
        let boundary = self.elision.end(&mut |_| {});
        let done = self.perform(&boundary);
        self.world.is_whole().expect("all is written back");
        done
    }

    fn perform(&mut self, boundary: &BoundaryOperations) -> BoundaryEffect {
        let dirty = |world: &World| (0..self.machine.modules).map(|at| world.dirty(ModuleId(at))).sum::<usize>();
        let before = dirty(&self.world);
        self.world.perform(&self.machine, boundary, |_| Ok(())).expect("nothing is accessed");
        self.flushed = before - dirty(&self.world);
        let invalidated = boundary.iter().filter(|(_, operation)| operation.invalidate.is_some());
        let flushed = boundary.iter().filter(|(_, operation)| operation.flush.is_some());
        (invalidated.map(|(at, _)| at.0).collect(), flushed.map(|(at, _)| at.0).collect())
    }

    pub(crate) fn structure(&self, number: u64) -> LineRange {
        LineRange::new(Line(number * self.lines), Line((number + 1) * self.lines))
    }

    fn label(&self, number: u64, parts: &[DirectedUse]) -> OwnedLabel {
        let structure = self.structure(number);
        let lines = |range: &Range<u64>| {
            LineRange::new(Line(structure.first.0 + range.start), Line(structure.first.0 + range.end)).into()
        };
        let uses =
            parts.iter().map(|(user, mode, range)| StructureUse { user: *user, mode: *mode, lines: lines(range) });
        OwnedLabel { structure, homes: homes(&self.machine, structure), asserted: false, uses: uses.collect() }
    }

    fn accesses(&self, number: u64, parts: &[DirectedUse]) -> Vec<Access> {
        let alone = |user, line| !parts.iter().any(|(other, _, range)| *other != user && range.contains(&line));
        let first = number * self.lines;
        let of = |(user, mode, range): &DirectedUse| {
            let write = *mode == RW;
            let shared = parts.iter().any(|(_, mode, _)| *mode == RW);
            let user = *user;
            let own = range.clone().filter(move |&line| !shared || alone(user, line));
            own.map(|line| Access { user, grain: (first + line) as usize, write }).collect::<Vec<_>>()
        };
        parts.iter().flat_map(of).collect()
    }
}
