//! Block messages in flight between slices. A packet on the links carries only its size and the id of a message
//! stored here: a block's contents are too large for an event.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tombolo_types::ComponentId;

/// Message id: the sender, and a sequence number from this sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageId {
    /// Sender, as a component of the model.
    pub(crate) from: ComponentId,
    /// Sequence number, modulo 2^32.
    pub(crate) number: u32,
}

/// Store for all messages in flight. Messages are found by name only, so concurrent partitions cannot affect the result.
#[derive(Debug)]
pub struct Mailbox<M>(Arc<Mutex<FxHashMap<MessageId, M>>>);

impl<M> Default for Mailbox<M> {
    fn default() -> Mailbox<M> {
        Mailbox(Arc::default())
    }
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Mailbox<M> {
        Mailbox(Arc::clone(&self.0))
    }
}

impl<M> Mailbox<M> {
    /// Stores a message under the given name until the packet arrives.
    pub(crate) fn send(&self, id: MessageId, message: M) {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, message);
        debug_assert!(before.is_none(), "{id:?} was on its way");
    }

    /// Removes and returns an arrived message.
    ///
    /// # Panics
    /// If no such message was sent.
    pub(crate) fn take(&self, id: MessageId) -> M {
        let message = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        message.unwrap_or_else(|| panic!("{id:?} came, and nobody had sent it"))
    }
}
