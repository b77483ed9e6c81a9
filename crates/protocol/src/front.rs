//! Waiting rules for a thread (a warp, when timing): loads do not block, stores are posted, synchronisation waits.
//!
//! An operation is a sequence of [`Stage`]s. The host runs the stages in sequence, in program order. Each thread
//! has at most a single operation between its first and last stage, and issues the next operation when the last
//! stage is done. Loads without acquire semantics are done when issued.

use crate::broken_rule::BrokenRule;
use crate::sm_rules::L1Protocol;
use tombolo_types::{Order, Scope};

/// A single action or wait within an operation, before the thread proceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Waits until every load and returning atomic issued by the thread has its result.
    AwaitLoads,
    /// Runs the protocol's release plan for the scope. Before the plan starts, the L2 must have accepted everything
    /// the SM has posted.
    Release(Scope),
    /// Issues the access itself. Posted stores and non-blocking loads are done at this stage.
    Issue,
    /// Waits for the access's own result.
    AwaitResult,
    /// Runs the protocol's acquire plan for the scope, then invalidates the L1.
    Acquire(Scope),
}

/// The kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadOperation {
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic whose result returns.
    Atomic,
    /// An atomic whose result is discarded.
    Reduction,
    /// A fence.
    Fence,
    /// Successive loads from a flag until a load sees the awaited value. The thread learns this before it proceeds.
    Wait,
    /// Arrival at a CTA barrier, which orders its threads' earlier actions before their later actions.
    Barrier,
}

/// The maximum number of stages.
pub const MAX_STAGES: usize = 5;

/// An operation's stages, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stages {
    stages: [Stage; MAX_STAGES],
    len: u8,
}

impl Stages {
    fn push(&mut self, stage: Stage) {
        self.stages[self.len as usize] = stage;
        self.len += 1;
    }

    /// Stage `index`, or `None` past the last.
    pub fn get(&self, index: usize) -> Option<Stage> {
        (index < self.len as usize).then(|| self.stages[index])
    }
}

/// The order for all accesses by a host core, weak or strong: all host accesses are coherent. A core has a single
/// access in flight at a time, so no access needs an acquire or a release. Source: UMH, section 4 (a CPU is
/// sequentially consistent at most).
pub const ON_HOST: Order = Order::relaxed(Scope::Sys);

/// True if an operation's only stage is [`Stage::Issue`]: this holds for nearly all operations, so a host may skip
/// the rest.
pub fn only_issues(operation: ThreadOperation, order: Order) -> bool {
    !matches!(operation, ThreadOperation::Fence | ThreadOperation::Wait | ThreadOperation::Barrier)
        && !order.semantics.acquires()
        && !order.semantics.releases()
}

/// The stages for `operation` with `order` under `protocol`, which matters only if a related rule is broken.
///
/// A release also waits for the thread's earlier loads. At `.cta` scope neither release nor acquire leaves the SM:
/// the L1 orders its own SM. A reduction has no result to wait for: before it acquires, a release at its scope
/// proves that the reduction has been performed.
pub fn stages(protocol: &impl L1Protocol, operation: ThreadOperation, order: Order) -> Stages {
    let mut stages = Stages { stages: [Stage::Issue; MAX_STAGES], len: 0 };
    let beyond_cta = order.scope != Scope::Cta;
    if order.semantics.releases() {
        if !skips_loads(protocol, operation) {
            stages.push(Stage::AwaitLoads);
        }
        if beyond_cta {
            stages.push(Stage::Release(order.scope));
        }
    }
    match operation {
        ThreadOperation::Load | ThreadOperation::Store | ThreadOperation::Atomic | ThreadOperation::Reduction => {
            stages.push(Stage::Issue)
        }
        ThreadOperation::Wait => {
            stages.push(Stage::Issue);
            stages.push(Stage::AwaitResult);
        }
        ThreadOperation::Fence => {
            if !order.semantics.releases() {
                stages.push(Stage::AwaitLoads);
            }
        }
        ThreadOperation::Barrier => {
            if !protocol.broken(BrokenRule::BarrierSkipsLoads) {
                stages.push(Stage::AwaitLoads);
            }
            stages.push(Stage::Issue);
        }
    }
    if order.semantics.acquires() {
        match operation {
            ThreadOperation::Load | ThreadOperation::Atomic => stages.push(Stage::AwaitResult),
            ThreadOperation::Reduction if beyond_cta => stages.push(Stage::Release(order.scope)),
            ThreadOperation::Reduction
            | ThreadOperation::Store
            | ThreadOperation::Fence
            | ThreadOperation::Wait
            | ThreadOperation::Barrier => {}
        }
        if beyond_cta {
            stages.push(Stage::Acquire(order.scope));
        }
    }
    stages
}

/// True if a CTA barrier opens, with `arrived` arrivals since it last opened.
///
/// `count` is the number of arrivals in the barrier's instructions. Without a count, the barrier waits for the `alive`
/// threads in the CTA, which have not ended the kernel.
pub fn barrier_opens(protocol: &impl L1Protocol, arrived: u32, count: Option<u32>, alive: u32) -> bool {
    let missing = u32::from(protocol.broken(BrokenRule::BarrierOpensEarly));
    arrived > 0 && arrived + missing >= count.unwrap_or(alive)
}

/// True if a broken rule lets a releasing `operation` overtake earlier loads.
fn skips_loads(protocol: &impl L1Protocol, operation: ThreadOperation) -> bool {
    match operation {
        ThreadOperation::Store => protocol.broken(BrokenRule::StoreReleaseSkipsLoads),
        ThreadOperation::Atomic | ThreadOperation::Reduction => protocol.broken(BrokenRule::AtomicReleaseSkipsLoads),
        ThreadOperation::Load | ThreadOperation::Fence | ThreadOperation::Wait | ThreadOperation::Barrier => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmg::Hmg;
    use crate::options::ProtocolOptions;
    use tombolo_types::Semantics;

    fn list_with(rule: Option<BrokenRule>, operation: ThreadOperation, order: Order) -> Vec<Stage> {
        let protocol = Hmg::new(ProtocolOptions { broken_rule: rule, ..ProtocolOptions::default() });
        let stages = stages(&protocol, operation, order);
        (0..MAX_STAGES).map_while(|i| stages.get(i)).collect()
    }

    fn list(operation: ThreadOperation, semantics: Semantics, scope: Scope) -> Vec<Stage> {
        list_with(None, operation, Order { semantics, scope })
    }

    #[test]
    fn a_broken_rule_removes_the_wait_for_loads_only_from_its_own_operations() {
        let release = Order::new(Semantics::Release, Scope::Gpu);
        let awaits = |rule, operation| list_with(Some(rule), operation, release).contains(&Stage::AwaitLoads);
        let of = |rule| {
            [ThreadOperation::Store, ThreadOperation::Atomic, ThreadOperation::Reduction, ThreadOperation::Fence]
                .map(|it| awaits(rule, it))
        };
        assert_eq!(of(BrokenRule::StoreReleaseSkipsLoads), [false, true, true, true]);
        assert_eq!(of(BrokenRule::AtomicReleaseSkipsLoads), [true, false, false, true]);
    }

    #[test]
    fn a_weak_access_only_issues() {
        assert_eq!(list(ThreadOperation::Load, Semantics::Weak, Scope::Cta), [Stage::Issue]);
        assert_eq!(list(ThreadOperation::Store, Semantics::Relaxed, Scope::Sys), [Stage::Issue]);
    }

    #[test]
    fn an_operation_that_only_issues_has_one_stage() {
        use Semantics::{Acquire, AcquireRelease, Relaxed, Release, SequentiallyConsistent, Weak};
        for semantics in [Weak, Relaxed, Acquire, Release, AcquireRelease, SequentiallyConsistent] {
            for scope in Scope::ALL {
                use ThreadOperation::{Atomic, Barrier, Fence, Load, Reduction, Store, Wait};
                for operation in [Load, Store, Atomic, Reduction, Fence, Wait, Barrier] {
                    let order = Order { semantics, scope };
                    let alone = list(operation, semantics, scope) == [Stage::Issue];
                    if only_issues(operation, order) {
                        assert!(alone, "{operation:?} {order:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_barrier_waits_for_the_loads_before_it() {
        assert_eq!(list(ThreadOperation::Barrier, Semantics::Weak, Scope::Cta), [Stage::AwaitLoads, Stage::Issue]);
    }

    #[test]
    fn a_barrier_opens_when_all_that_it_waits_for_have_arrived() {
        let opens = |rule, arrived, count, alive| {
            let protocol = Hmg::new(ProtocolOptions { broken_rule: rule, ..ProtocolOptions::default() });
            barrier_opens(&protocol, arrived, count, alive)
        };
        assert!(!opens(None, 2, None, 3) && opens(None, 3, None, 3));
        assert!(!opens(None, 0, None, 0), "nobody waits");
        assert!(opens(None, 2, Some(2), 5));
        assert!(!opens(None, 2, Some(4), 2), "a count includes threads that have ended");
        let early = Some(BrokenRule::BarrierOpensEarly);
        assert!(opens(early, 2, Some(3), 5) && !opens(early, 1, Some(3), 5));
    }

    #[test]
    fn an_acquire_invalidates_after_its_result() {
        assert_eq!(
            list(ThreadOperation::Load, Semantics::Acquire, Scope::Gpu),
            [Stage::Issue, Stage::AwaitResult, Stage::Acquire(Scope::Gpu)]
        );
    }

    #[test]
    fn a_wait_acquires_only_with_acquire_semantics() {
        assert_eq!(list(ThreadOperation::Wait, Semantics::Relaxed, Scope::Sys), [Stage::Issue, Stage::AwaitResult]);
        assert_eq!(
            list(ThreadOperation::Wait, Semantics::Acquire, Scope::Sys),
            [Stage::Issue, Stage::AwaitResult, Stage::Acquire(Scope::Sys)]
        );
    }

    #[test]
    fn a_reduction_is_performed_before_it_acquires() {
        let performed = [Stage::Issue, Stage::Release(Scope::Sys), Stage::Acquire(Scope::Sys)];
        assert_eq!(list(ThreadOperation::Reduction, Semantics::Acquire, Scope::Sys), performed);
        let both = list(ThreadOperation::Reduction, Semantics::AcquireRelease, Scope::Sys);
        assert_eq!(both, [&[Stage::AwaitLoads, Stage::Release(Scope::Sys)], &performed[..]].concat());
    }

    #[test]
    fn a_fence_releases_then_acquires() {
        assert_eq!(
            list(ThreadOperation::Fence, Semantics::SequentiallyConsistent, Scope::Sys),
            [Stage::AwaitLoads, Stage::Release(Scope::Sys), Stage::Acquire(Scope::Sys)]
        );
    }

    #[test]
    fn a_cta_release_waits_for_loads_only() {
        assert_eq!(list(ThreadOperation::Store, Semantics::Release, Scope::Cta), [Stage::AwaitLoads, Stage::Issue]);
    }
}
