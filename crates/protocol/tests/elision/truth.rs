//! Ground truth for elision: memory and N write-back L2s, without time, tags or capacity.
//!
//! For each grain (a part of a line), only a single property matters about a copy: equality with the value stored
//! last. An outdated copy becomes current again only by replacement. A world is therefore finite, and a search can
//! visit all states.

use tombolo_protocol::elision::{
    BoundaryOperations, Extent, InvalidationTurn, L2Operation, LineRange, ModuleSet, User,
};
use tombolo_types::{Line, ModuleId};

/// The location that serves a remote access, and the L2's possible contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteAccess {
    /// H: at the home's memory, bypassing both L2s. An L2 holds lines homed at its module.
    HomeMemory,
    /// P: an L2 holds all lines touched by its module. A miss goes to the home's L2, then to memory. A write-back
    /// updates the home L2's clean copy on its path.
    Cached,
}

/// An L2 that violates an operation's guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An invalidation also drops dirty bytes.
    InvalidationDropsDirty,
    /// A flush marks partially written lines as entirely valid. Source: the authors' public simulator.
    FlushMakesLineValid,
}

/// The machine's constant properties.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) reading: RemoteAccess,
    pub(crate) modules: u8,
    /// The home for each line.
    pub(crate) homes: Vec<ModuleId>,
    /// Grains per line.
    pub(crate) grains: usize,
    /// Set when a missing store fetches the rest of its line.
    pub(crate) store_fetches: bool,
    pub(crate) fault: Option<Fault>,
}

/// A single access to a single grain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    pub(crate) user: User,
    pub(crate) grain: usize,
    pub(crate) write: bool,
}

/// A copy of a grain in an L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GrainCopy {
    Absent,
    Clean {
        current: bool,
    },
    /// Always current: no user may store to a grain that is dirty in another L2.
    Dirty,
}

/// The contents of memory and L2s.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// Per grain: true if memory holds the value stored last.
    memory: Vec<bool>,
    /// Copies, indexed by module, then grain.
    copies: Vec<Vec<GrainCopy>>,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A load returned an outdated value.
    Stale(User, usize),
    /// A store finds an older value dirty in another L2, whose write-back would overwrite it.
    Overwrites(ModuleId, usize),
    /// After the program's end, memory lacks the value stored last.
    Lost(usize),
    /// A required operation was missing. A load that exposes the failure would follow.
    NotDone(ModuleId),
}

impl World {
    pub(crate) fn new(machine: &Machine) -> World {
        let grains = machine.homes.len() * machine.grains;
        World {
            memory: vec![true; grains],
            copies: vec![vec![GrainCopy::Absent; grains]; usize::from(machine.modules)],
        }
    }

    /// Performs an access.
    pub(crate) fn access(&mut self, machine: &Machine, access: Access) -> Result<(), Violation> {
        if access.write { self.store(machine, access) } else { self.load(machine, access) }
    }

    fn load(&mut self, machine: &Machine, Access { user, grain, .. }: Access) -> Result<(), Violation> {
        let current = match user {
            User::Module(module) if machine.caches(module, grain) => {
                if self.copies[index(module)][grain] == GrainCopy::Absent {
                    self.fetch(machine, module, grain);
                }
                self.copies[index(module)][grain] != GrainCopy::Clean { current: false }
            }
            User::Module(_) | User::Host => self.memory[grain],
        };
        if current { Ok(()) } else { Err(Violation::Stale(user, grain)) }
    }

    fn store(&mut self, machine: &Machine, Access { user, grain, .. }: Access) -> Result<(), Violation> {
        if let User::Module(module) = user
            && machine.store_fetches
            && machine.caches(module, grain)
        {
            self.fetch(machine, module, grain);
        }
        self.memory[grain] = false;
        for (module, copies) in (0..).map(ModuleId).zip(&mut self.copies) {
            copies[grain] = match copies[grain] {
                GrainCopy::Absent => GrainCopy::Absent,
                GrainCopy::Clean { .. } => GrainCopy::Clean { current: false },
                GrainCopy::Dirty if user == User::Module(module) => GrainCopy::Dirty,
                // The dirty grain may be written back at any later time.
                GrainCopy::Dirty => return Err(Violation::Overwrites(module, grain)),
            };
        }
        match user {
            User::Module(module) if machine.caches(module, grain) => {
                self.copies[index(module)][grain] = GrainCopy::Dirty
            }
            User::Module(_) | User::Host => self.write_memory(machine, None, grain),
        }
        Ok(())
    }

    /// Fills the absent grains in the grain's line.
    fn fetch(&mut self, machine: &Machine, module: ModuleId, grain: usize) {
        for grain in machine.line_of(grain) {
            let home = machine.home(grain);
            let served = match self.copies[index(home)][grain] {
                GrainCopy::Clean { current } if home != module => current,
                GrainCopy::Dirty if home != module => true,
                GrainCopy::Clean { .. } | GrainCopy::Dirty | GrainCopy::Absent => self.memory[grain],
            };
            let copy = &mut self.copies[index(module)][grain];
            if *copy == GrainCopy::Absent {
                *copy = GrainCopy::Clean { current: served };
            }
        }
    }

    /// Writes the last stored value to memory; if L2s hold remote lines, on a path through the home's L2.
    fn write_memory(&mut self, machine: &Machine, from: Option<ModuleId>, grain: usize) {
        self.memory[grain] = true;
        let home = machine.home(grain);
        if machine.reading == RemoteAccess::Cached && from != Some(home) {
            let copy = &mut self.copies[index(home)][grain];
            if let GrainCopy::Clean { .. } = copy {
                *copy = GrainCopy::Clean { current: true };
            }
        }
    }

    /// Performs a boundary's operations. `between` may act before the flushes and before the last invalidations.
    pub(crate) fn perform(
        &mut self,
        machine: &Machine,
        boundary: &BoundaryOperations,
        mut between: impl FnMut(&mut World) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        self.invalidate(machine, boundary, InvalidationTurn::BeforeFlushes);
        between(self)?;
        for (module, operation) in boundary.iter() {
            let grains = machine.reached(operation.flush.as_ref());
            grains.into_iter().for_each(|grain| self.flush(machine, module, grain));
        }
        between(self)?;
        self.invalidate(machine, boundary, InvalidationTurn::AfterFlushes);
        Ok(())
    }

    fn invalidate(&mut self, machine: &Machine, boundary: &BoundaryOperations, turn: InvalidationTurn) {
        for (module, L2Operation { invalidate, .. }) in boundary.iter().filter(|(_, operation)| operation.turn == turn)
        {
            for grain in machine.reached(invalidate.as_ref()) {
                let copy = &mut self.copies[index(module)][grain];
                *copy = match *copy {
                    GrainCopy::Dirty if machine.fault != Some(Fault::InvalidationDropsDirty) => GrainCopy::Dirty,
                    GrainCopy::Absent | GrainCopy::Clean { .. } | GrainCopy::Dirty => GrainCopy::Absent,
                };
            }
        }
    }

    fn flush(&mut self, machine: &Machine, module: ModuleId, grain: usize) {
        if self.copies[index(module)][grain] == GrainCopy::Dirty {
            self.copies[index(module)][grain] = GrainCopy::Clean { current: true };
            self.write_memory(machine, Some(module), grain);
            if machine.fault == Some(Fault::FlushMakesLineValid) {
                for grain in machine.line_of(grain) {
                    let copy = &mut self.copies[index(module)][grain];
                    if *copy == GrainCopy::Absent {
                        *copy = GrainCopy::Clean { current: false };
                    }
                }
            }
        }
    }

    /// Checks that memory holds all stored values.
    pub(crate) fn is_whole(&self) -> Result<(), Violation> {
        self.memory.iter().position(|current| !current).map_or(Ok(()), |grain| Err(Violation::Lost(grain)))
    }

    /// Number of dirty grains in the module's L2.
    pub(crate) fn dirty(&self, module: ModuleId) -> usize {
        self.copies[index(module)].iter().filter(|copy| **copy == GrainCopy::Dirty).count()
    }

    /// Number of valid grains in the module's L2.
    pub(crate) fn valid(&self, module: ModuleId) -> usize {
        self.copies[index(module)].iter().filter(|copy| **copy != GrainCopy::Absent).count()
    }

    /// The modules whose L2s must be invalidated, and flushed, so that these accesses find the values stored last.
    pub(crate) fn needed(&self, machine: &Machine, accesses: &[Access]) -> (ModuleSet, ModuleSet) {
        let (mut invalidate, mut flush) = (ModuleSet::NONE, ModuleSet::NONE);
        for access in accesses.iter().filter(|access| !access.write) {
            let Access { user, grain, .. } = *access;
            if let User::Module(module) = user
                && machine.caches(module, grain)
                && self.copies[index(module)][grain] == (GrainCopy::Clean { current: false })
            {
                invalidate = invalidate.union(ModuleSet::only(module));
            }
            for module in (0..machine.modules).map(ModuleId).filter(|&module| user != User::Module(module)) {
                let serves =
                    user != User::Host && machine.reading == RemoteAccess::Cached && machine.home(grain) == module;
                if self.copies[index(module)][grain] == GrainCopy::Dirty && !serves {
                    flush = flush.union(ModuleSet::only(module));
                }
            }
        }
        (invalidate, flush)
    }
}

impl Machine {
    fn home(&self, grain: usize) -> ModuleId {
        self.homes[grain / self.grains]
    }

    fn line_of(&self, grain: usize) -> std::ops::Range<usize> {
        let first = grain / self.grains * self.grains;
        first..first + self.grains
    }

    /// True if the module's access to the grain goes through its L2.
    fn caches(&self, module: ModuleId, grain: usize) -> bool {
        self.reading == RemoteAccess::Cached || self.home(grain) == module
    }

    /// The grains reached by an operation.
    fn reached(&self, extent: Option<&Extent>) -> Vec<usize> {
        let all = self.homes.len();
        let lines: Vec<usize> = match extent {
            None => Vec::new(),
            Some(Extent::Cache) => (0..all).collect(),
            Some(Extent::Lines(set)) => {
                let ranges = set.ranges().iter();
                ranges.flat_map(|range| range.first.0 as usize..(range.end.0 as usize).min(all)).collect()
            }
        };
        lines.into_iter().flat_map(|line| line * self.grains..(line + 1) * self.grains).collect()
    }

    /// The line that holds a grain.
    pub(crate) fn lines(&self, grain: usize) -> LineRange {
        let line = (grain / self.grains) as u64;
        LineRange::new(Line(line), Line(line + 1))
    }
}

fn index(module: ModuleId) -> usize {
    usize::from(module.0)
}
