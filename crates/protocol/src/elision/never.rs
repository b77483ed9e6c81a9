//! No elision: every kernel's boundary flushes and invalidates the L2s of the modules that it runs on. What the host does
//! between kernels needs neither, but for a release that is still outstanding: its writes reach memory at once.
//!
//! Where a kernel's end releases, its own modules are enough on both sides. What it has stored is in their L2s, or has
//! passed them and is waited for; what they hold that is old no other L2 gives them, for each invalidates before its own
//! kernel. Where the next launch releases, nobody says what is outstanding where: every L2 acts.

use super::{Account, Boundary, Elision, Extent, KernelId, ModuleSet, Operation, Packet, Turn, Why};
use tombolo_types::ModuleId;

/// When a kernel's stores are released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum When {
    /// At its end; the next launch invalidates. Source: CPElide, section I ("implicit release at kernel completion").
    #[default]
    EndThenLaunch,
    /// At the next launch, after its invalidations. Source: the baseline of the authors' public simulator.
    Launch,
}

/// No table; only what runs is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Never {
    when: When,
    modules: u8,
    running: Vec<(KernelId, ModuleSet)>,
}

impl Never {
    /// For a machine of `modules` modules.
    pub fn new(when: When, modules: u8) -> Never {
        Never { when, modules, running: Vec::new() }
    }

    /// The boundary at which every module does what `operation` says of it.
    fn all(&self, why: &mut dyn FnMut(&Account), operation: impl Fn(ModuleId) -> Operation) -> Boundary {
        let modules = (0..self.modules).map(ModuleId).map(|module| {
            let operation = operation(module);
            let reason = |done: bool, otherwise: Why| if done { Why::Always } else { otherwise };
            let invalidate = reason(operation.invalidate.is_some(), Why::StaleUnused);
            why(&Account::of_cache(module, invalidate, reason(operation.flush.is_some(), Why::Clean)));
            operation
        });
        Boundary { modules: modules.collect() }
    }

    /// The boundary at which the modules that `flushes` names flush.
    fn release(&self, why: &mut dyn FnMut(&Account), flushes: impl Fn(ModuleId) -> bool) -> Boundary {
        self.all(why, |module| Operation { flush: flushes(module).then_some(Extent::Cache), ..Operation::default() })
    }
}

impl Elision for Never {
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> Boundary {
        let busy = self.running.iter().fold(ModuleSet::NONE, |busy, &(_, on)| busy.and(on));
        let flush = match self.when {
            When::EndThenLaunch => None,
            When::Launch => Some(Extent::Cache),
        };
        let on = packet.on;
        let invalidates = |module| match self.when {
            When::EndThenLaunch => on.contains(module),
            When::Launch => !on.is_empty(),
        };
        let boundary = self.all(why, |module| Operation {
            invalidate: invalidates(module).then_some(Extent::Cache),
            flush: flush.clone(),
            turn: if busy.contains(module) { Turn::AfterFlushes } else { Turn::BeforeFlushes },
        });
        self.running.push((packet.kernel, packet.on));
        boundary
    }

    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> Boundary {
        let at = self.running.iter().position(|&(running, _)| running == kernel);
        let (_, on) = self.running.remove(at.unwrap_or_else(|| panic!("{kernel:?} ends and was not running")));
        match self.when {
            When::EndThenLaunch if !on.is_empty() => self.release(why, |module| on.contains(module)),
            When::EndThenLaunch | When::Launch => Boundary::nothing(self.modules),
        }
    }

    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> Boundary {
        assert!(self.running.is_empty(), "the program ends while {:?} run", self.running);
        match self.when {
            When::EndThenLaunch => Boundary::nothing(self.modules),
            When::Launch => self.release(why, |_| true),
        }
    }
}
