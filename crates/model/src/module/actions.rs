//! Effects requested by one protocol step. All effects are collected before any is carried out, so a step without a
//! needed resource can be dropped without a trace.

use tombolo_protocol::coherence::{Hold, InvalidationCause, L2Message, MemoryAccess};
use tombolo_protocol::directory::EntrySet;
use tombolo_protocol::{Data, Effects, Reply, Request, ValidInvalid};
use tombolo_types::{Mask, ModuleId};

/// Maximum number of requests sent up by a single step: written-back bytes, then the request itself.
const MAX_FORWARDS: usize = 2;

/// Collected effects from a single protocol step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actions<D: Data> {
    /// Requests sent up to the next home, in order.
    pub(crate) forwards: [Option<(ModuleId, Request<D>)>; MAX_FORWARDS],
    /// Bytes to read from memory.
    pub(crate) fetch: Option<Mask>,
    /// Bytes to write to memory, with their contents.
    pub(crate) write: Option<(Mask, D)>,
    /// Request that bypasses the L2 and is served by memory.
    pub(crate) to_memory: Option<Request<D>>,
    /// Reply to the requester, if the step gives one.
    pub(crate) reply: Option<Reply<D>>,
    /// Bytes in the pending miss for which the request waits.
    pub(crate) wait: Option<Mask>,
    /// Set when the request parks on the pending miss until its fill.
    pub(crate) park: bool,
    /// Modules to invalidate.
    pub(crate) invalidate: EntrySet<ModuleId>,
    /// Cause for the invalidations at this module.
    pub(crate) cause: InvalidationCause,
    /// Cause at the sending home, if this module only forwards its invalidation.
    pub(crate) original: Option<InvalidationCause>,
    /// Home module to notify that this module dropped the region.
    pub(crate) downgrade: Option<ModuleId>,
}

impl<D: Data> Default for Actions<D> {
    fn default() -> Actions<D> {
        Actions {
            forwards: [None; MAX_FORWARDS],
            fetch: None,
            write: None,
            to_memory: None,
            reply: None,
            wait: None,
            park: false,
            invalidate: EntrySet::NONE,
            cause: InvalidationCause::Store,
            original: None,
            downgrade: None,
        }
    }
}

impl<D: Data> Actions<D> {
    fn forward(&mut self, to: ModuleId, request: Request<D>) {
        let free = self.forwards.iter_mut().find(|slot| slot.is_none());
        *free.expect("a step sends at most written-back bytes and one request up") = Some((to, request));
    }
}

impl<D: Data> Effects<ValidInvalid, D> for Actions<D> {
    #[inline]
    fn send(&mut self, to: ModuleId, message: L2Message<D>) {
        match message {
            L2Message::Request(request) | L2Message::Bypassed(request) => self.forward(to, request),
            L2Message::Invalidate(cause) => {
                self.invalidate.add(to);
                self.cause = cause;
            }
            L2Message::Downgrade => self.downgrade = Some(to),
        }
    }

    #[inline]
    fn answer(&mut self, reply: Reply<D>) {
        self.reply = Some(reply);
    }

    #[inline]
    fn memory(&mut self, access: MemoryAccess<D>) {
        match access {
            MemoryAccess::Read(mask) => self.fetch = Some(mask),
            MemoryAccess::Write(mask, data) => self.write = Some((mask, data)),
            MemoryAccess::Request(request) => self.to_memory = Some(request),
        }
    }

    #[inline]
    fn hold(&mut self, how: Hold) {
        match how {
            Hold::Wait(mask) => self.wait = Some(mask),
            Hold::Park => self.park = true,
        }
    }
}
