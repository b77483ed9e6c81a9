//! Interface to the memory system below the L1s, for threads and SMs, independent from the protocol.

use super::scene::Scene;
use super::state::{FlatRegister, FrontEnds, Violation};
use super::values::Values;
use tombolo_protocol::{Action, PhasePlan, Protocol, Request};
use tombolo_types::ModuleId;

/// A machine with a memory system below its L1s.
pub(super) trait MemorySystem: Sized {
    /// Protocol that the machine runs.
    type Protocol: Protocol;
    /// State type of the machine.
    type State;

    fn protocol(&self) -> &Self::Protocol;

    fn scene(&self) -> &Scene<'_>;

    fn fronts<'s>(&self, state: &'s Self::State) -> &'s FrontEnds;

    fn fronts_mut<'s>(&self, state: &'s mut Self::State) -> &'s mut FrontEnds;

    /// Records a violation; the first recorded violation wins.
    fn wrong(&self, state: &mut Self::State, violation: Violation);

    /// Sends a request for a line from an SM downwards; an atomic's result goes to a register.
    fn post(&self, state: &mut Self::State, sm: u8, line: u8, request: Request<Values>, result: Option<FlatRegister>);

    /// Makes the release by `thread` wait for every request that `sm` has posted.
    fn await_posted(&self, state: &mut Self::State, thread: usize, sm: u8);

    /// True while the release by `thread` still waits for a request posted by `sm`.
    fn awaits_posted(&self, state: &Self::State, thread: usize, sm: u8) -> bool;

    /// Requests from `member` its action in the current plan phase for `thread`.
    fn ask(&self, state: &mut Self::State, thread: usize, member: ModuleId, action: Action);

    /// True while `member`, after a plan request, cannot acknowledge yet.
    fn owes(&self, state: &Self::State, thread: usize, member: ModuleId) -> bool;

    /// Advances the copies behind the kernel that ends at boundary `number`, before the boundary's plan `index`. Returns
    /// false while this plan must wait for copies.
    fn copies_are_over(&self, state: &mut Self::State, number: usize, index: u8) -> bool;

    /// The plan at `index` for the kernel boundary `number`, both counted from 0; `None` past the last plan.
    fn plan_at_boundary(&self, number: usize, index: u8) -> Option<PhasePlan>;
}
