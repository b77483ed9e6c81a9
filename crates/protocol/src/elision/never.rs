//! No elision: every kernel boundary flushes and invalidates the L2s in the kernel's modules. Host actions between
//! kernels need neither, except for a release still outstanding: host writes reach memory immediately.
//!
//! If a kernel's end releases, its own modules are enough on both sides. Its stores are in their L2s, or have been
//! written through and are awaited. Outdated lines in their L2s are never supplied to another L2, because each L2
//! invalidates before its own kernel. If the next launch releases, the location of outstanding stores is unknown:
//! every L2 acts.

use super::{
    Account, BoundaryOperations, DecisionReason, Elision, Extent, InvalidationTurn, KernelId, L2Operation, ModuleSet,
    Packet,
};
use tombolo_types::{ModuleId, choice};

choice! {
    /// The time at which a kernel's stores are released.
    pub enum ReleaseTime: Default {
        /// At its end; the next launch acquires. Source: CPElide, section I.
        EndThenLaunch = "end-then-launch",
        /// At the next launch, after its acquire, and at the program's end. Source: CPElide's public simulator.
        Launch = "launch",
    }
}

/// No table; only the running kernels are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Never {
    when: ReleaseTime,
    modules: u8,
    running: Vec<(KernelId, ModuleSet)>,
}

impl Never {
    /// For a machine with `modules` modules.
    pub fn new(when: ReleaseTime, modules: u8) -> Never {
        Never { when, modules, running: Vec::new() }
    }

    /// A boundary in which each module performs the `operation` chosen for it.
    fn all(&self, why: &mut dyn FnMut(&Account), operation: impl Fn(ModuleId) -> L2Operation) -> BoundaryOperations {
        let modules = (0..self.modules).map(ModuleId).map(|module| {
            let operation = operation(module);
            let reason = |done: bool, otherwise: DecisionReason| if done { DecisionReason::Always } else { otherwise };
            let invalidate = reason(operation.invalidate.is_some(), DecisionReason::StaleUnused);
            why(&Account::of_cache(module, invalidate, reason(operation.flush.is_some(), DecisionReason::Clean)));
            operation
        });
        BoundaryOperations { modules: modules.collect() }
    }

    /// A boundary in which the modules selected by `flushes` flush.
    fn release(&self, why: &mut dyn FnMut(&Account), flushes: impl Fn(ModuleId) -> bool) -> BoundaryOperations {
        self.all(why, |module| L2Operation {
            flush: flushes(module).then_some(Extent::Cache),
            ..L2Operation::default()
        })
    }
}

impl Elision for Never {
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        let busy = self.running.iter().fold(ModuleSet::NONE, |busy, &(_, on)| busy.union(on));
        let flush = match self.when {
            ReleaseTime::EndThenLaunch => None,
            ReleaseTime::Launch => Some(Extent::Cache),
        };
        let on = packet.modules;
        let invalidates = |module| match self.when {
            ReleaseTime::EndThenLaunch => on.contains(module),
            ReleaseTime::Launch => !on.is_empty(),
        };
        let boundary = self.all(why, |module| L2Operation {
            invalidate: invalidates(module).then_some(Extent::Cache),
            flush: flush.clone(),
            turn: if busy.contains(module) { InvalidationTurn::AfterFlushes } else { InvalidationTurn::BeforeFlushes },
        });
        self.running.push((packet.kernel, packet.modules));
        boundary
    }

    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        let at = self.running.iter().position(|&(running, _)| running == kernel);
        let (_, on) = self.running.remove(at.unwrap_or_else(|| panic!("{kernel:?} ends and was not running")));
        match self.when {
            ReleaseTime::EndThenLaunch if !on.is_empty() => self.release(why, |module| on.contains(module)),
            ReleaseTime::EndThenLaunch | ReleaseTime::Launch => BoundaryOperations::nothing(self.modules),
        }
    }

    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        assert!(self.running.is_empty(), "the program ends while {:?} run", self.running);
        match self.when {
            ReleaseTime::EndThenLaunch => BoundaryOperations::nothing(self.modules),
            ReleaseTime::Launch => self.release(why, |_| true),
        }
    }
}
