//! Reductions: fewer states, the same outcomes.

use super::machine::Machine;
use super::state::State;
use super::step::Step;
use tombolo_protocol::Coherence;

impl<P: Coherence> Machine<'_, P> {
    /// A step that may be taken alone.
    pub(super) fn eager_step(&self, _state: &State, _scratch: &mut Vec<Step>) -> Option<Vec<Step>> {
        None
    }

    /// Forgets copies that no remaining access can see.
    pub(super) fn forget(&self, _state: &mut State) {}
}
