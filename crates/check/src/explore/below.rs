//! What is below the L1s, as threads and SMs see it: whatever protocol a machine runs there.

use super::scene::Scene;
use super::state::{FlatRegister, Fronts, Violation};
use super::values::Values;
use tombolo_protocol::{Action, Plan, Protocol, Request};
use tombolo_types::ModuleId;

/// A machine with something below its L1s.
pub(super) trait Below: Sized {
    /// What it runs.
    type Protocol: Protocol;
    /// Its states.
    type State;

    fn protocol(&self) -> &Self::Protocol;

    fn scene(&self) -> &Scene<'_>;

    fn fronts<'s>(&self, state: &'s Self::State) -> &'s Fronts;

    fn fronts_mut<'s>(&self, state: &'s mut Self::State) -> &'s mut Fronts;

    /// Notes the first thing that went wrong.
    fn wrong(&self, state: &mut Self::State, violation: Violation);

    /// An SM sends a request of a line down; the result of an atomic goes to a register.
    fn post(&self, state: &mut Self::State, sm: u8, line: u8, request: Request<Values>, result: Option<FlatRegister>);

    /// Has the release of `thread` wait for all that `sm` has posted.
    fn await_posted(&self, state: &mut Self::State, thread: usize, sm: u8);

    /// Whether something that `sm` has posted is waited for by the release of `thread` still.
    fn awaits_posted(&self, state: &Self::State, thread: usize, sm: u8) -> bool;

    /// Asks `member` for its part of the phase at hand of the plan of `thread`.
    fn ask(&self, state: &mut Self::State, thread: usize, member: ModuleId, action: Action);

    /// Whether `member`, which was asked, cannot acknowledge yet.
    fn owes(&self, state: &Self::State, thread: usize, member: ModuleId) -> bool;

    /// The plan at `index` of those at a kernel boundary, numbered from 0; `None` past the last.
    fn plan_at_boundary(&self, number: usize, index: u8) -> Option<Plan>;
}
