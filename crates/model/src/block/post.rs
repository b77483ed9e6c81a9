//! What slices tell each other of blocks, while it is on its way. A packet on the links carries its weight and the name of a
//! letter here: what a block holds is too much for an event.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tombolo_types::ComponentId;

/// The name of a letter: its sender, and which of that sender's it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Letter {
    /// Who has sent it.
    pub from: ComponentId,
    /// Its number, modulo 2^32.
    pub number: u32,
}

/// All letters on their way. Names alone find them, so partitions that run side by side change nothing.
#[derive(Debug)]
pub struct Post<M>(Arc<Mutex<FxHashMap<Letter, M>>>);

impl<M> Default for Post<M> {
    fn default() -> Post<M> {
        Post(Arc::default())
    }
}

impl<M> Clone for Post<M> {
    fn clone(&self) -> Post<M> {
        Post(Arc::clone(&self.0))
    }
}

impl<M> Post<M> {
    /// Sends a letter.
    pub fn send(&self, letter: Letter, message: M) {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(letter, message);
        debug_assert!(before.is_none(), "{letter:?} was on its way");
    }

    /// Takes a letter that has come.
    ///
    /// # Panics
    /// Where nobody has sent it.
    pub fn take(&self, letter: Letter) -> M {
        let message = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&letter);
        message.unwrap_or_else(|| panic!("{letter:?} came, and nobody had sent it"))
    }
}
