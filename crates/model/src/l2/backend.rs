//! L2 slices below a module's SMs, in the form needed by the protocol. Protocols with valid and invalid lines use
//! slices that track lines ([`mod@crate::l2::slice`]). Protocols with clients and homes use slices that track blocks
//! ([`mod@crate::l2::block`]).

use crate::fabric::packet::Packet;
use crate::l2::block::BlockStats;
use crate::l2::departure::Departure;
use crate::l2::slice::{DramFetch, Slice};
use crate::memory::Memory;
use crate::message::Message;
use crate::module::config::{ModuleConfig, Routing};
use crate::module::context::{SliceContext, SliceView};
use crate::observe::latency::{ModuleLatency, Note};
use crate::observe::value_probe::Contents;
use std::ops::Range;
use tombolo_protocol::effects::Delivery;
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::{Action, Class, Coherence, Protocol};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps};

/// A protocol together with the L2 slices it uses below a module's SMs.
pub trait L2Design<D: Contents>: Protocol {
    /// Type of an L2 slice.
    type Slice: L2Slice<Self, D>;
    /// State shared between the slices of all modules.
    type SharedBySlices: Clone + Default + Send + 'static;

    /// Routing rules for the protocol's messages.
    fn routing(&self) -> Routing;
}

/// Interface to an L2 slice, for use by the module and the module's controller.
pub trait L2Slice<C: L2Design<D>, D: Contents>: Sized + Send {
    /// An empty slice.
    fn new(id: ComponentId, config: &ModuleConfig<C, D>, between: &C::SharedBySlices) -> Self;

    /// Id of the slice.
    fn id(&self) -> ComponentId;

    /// Prefetches into the host's caches the first data that an event reads.
    fn prefetch(&self, message: &Message<D>, view: SliceView<'_, C, D>);

    /// Prefetches data found through pointers that [`L2Slice::prefetch`] has loaded.
    fn prefetch_found(&self, message: &Message<D>, view: SliceView<'_, C, D>);

    /// Handles a message sent within the module.
    fn handle(&mut self, message: &Message<D>, here: &mut SliceContext<'_, '_, C, D>);

    /// Handles a packet received over the links, complete at `ready`.
    fn arrive(&mut self, source: ModuleId, packet: &Packet<D>, ready: Ps, here: &mut SliceContext<'_, '_, C, D>);

    /// True if requests wait in the slice's input queues.
    fn has_queued(&self) -> bool;

    /// Retries queued requests whose resource may have become free.
    fn serve_queues(&mut self, here: &mut SliceContext<'_, '_, C, D>);

    /// True if `action` walks all slices.
    fn is_walked(protocol: &C, action: Action) -> bool;

    /// Carries out the slice's part in an action, restricted to the lines in `extent` if given. Returns when memory has
    /// accepted all written bytes.
    fn act(&mut self, action: Action, extent: Option<&LineSet>, here: &mut SliceContext<'_, '_, C, D>) -> Ps;

    /// Carries out the slice's part of [`Action::Merge`]. When done, it notifies the controller by [`Message::Written`]
    /// with `join`.
    fn merge(&mut self, all: bool, join: u32, here: &mut SliceContext<'_, '_, C, D>);

    /// Number of lines present, and number of dirty lines among these.
    fn line_counts(&mut self) -> (u32, u32);

    /// Gives up a line whose page moves elsewhere: dirty bytes go to memory, and the line is dropped. Returns when
    /// memory has accepted the bytes.
    fn release_line(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps;

    /// Bytes and contents that a copy reads from a cached line, and their departure time; `None` if the line is absent.
    fn read_for_copy(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Option<(Mask, D, Departure)>;

    /// A copy writes the line to memory, so any cached bytes are stale.
    fn overwrite_by_copy(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>);

    /// The host has written these addresses: ranges in ascending order, without overlaps, each with at least one byte.
    fn host_wrote(&mut self, ranges: &[Range<u64>], here: &mut SliceContext<'_, '_, C, D>);

    /// Contents of a line in the module's memory, from the host's viewpoint.
    fn host_reads(&self, line: Line, memory: &Memory<D>, config: &ModuleConfig<C, D>) -> D;

    /// Installs bytes of a line from the module's memory, clean, before time zero. Does nothing in slices with blocks.
    fn warm(&mut self, line: Line, mask: Mask, view: SliceView<'_, C, D>);

    /// Total time during which the slice's port was in use.
    fn busy(&self) -> Ps;

    /// Block statistics, and the number of blocks in each state by name; `None` for slices with lines.
    fn blocks(&self) -> Option<(BlockStats, Vec<(String, u64)>)>;

    /// Requests that wait for a resource, for the deadlock report.
    fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_;
}

impl<C: Coherence, D: Contents> L2Design<D> for C {
    type Slice = Slice<D>;
    type SharedBySlices = ();

    fn routing(&self) -> Routing {
        Routing { hierarchical: self.is_hierarchical(), fills_stay_ahead: self.channels().fills_stay_ahead }
    }
}

impl<C: Coherence, D: Contents> L2Slice<C, D> for Slice<D> {
    fn new(id: ComponentId, config: &ModuleConfig<C, D>, (): &()) -> Slice<D> {
        let channels = config.protocol.channels();
        // One slice handles all requests for a line or a region, and a port keeps each slice's packets in order.
        let ordered = [channels.up, channels.down];
        assert!(!ordered.contains(&Delivery::Fifo), "a port orders what one slice sends, not what others do");
        Slice::new(id, config)
    }

    fn id(&self) -> ComponentId {
        self.id()
    }

    #[inline]
    fn prefetch(&self, message: &Message<D>, view: SliceView<'_, C, D>) {
        self.prefetch(message, view);
    }

    #[inline]
    fn prefetch_found(&self, message: &Message<D>, view: SliceView<'_, C, D>) {
        self.prefetch_found(message, view);
    }

    #[inline]
    fn handle(&mut self, message: &Message<D>, here: &mut SliceContext<'_, '_, C, D>) {
        match *message {
            Message::Local(request) => self.local(request, here),
            Message::Fetch { line, mask, register } => {
                self.fetch_later(DramFetch { line, mask, register, latency: ModuleLatency::default() }, here);
            }
            Message::Memory { line, mask, register, latency: time } => {
                self.memory(DramFetch { line, mask, register, latency: time.read() }, here);
            }
            Message::BypassReply { target, packet } => self.send_bypass_reply(target, packet, here),
            other => panic!("{}, {:?}: a slice got {other:?}", here.config.module, self.id()),
        }
    }

    #[inline]
    fn arrive(&mut self, source: ModuleId, packet: &Packet<D>, ready: Ps, here: &mut SliceContext<'_, '_, C, D>) {
        self.arrive(source, packet, ready, here);
    }

    fn has_queued(&self) -> bool {
        self.has_queued()
    }

    fn serve_queues(&mut self, here: &mut SliceContext<'_, '_, C, D>) {
        self.serve_queues(here);
    }

    fn is_walked(protocol: &C, action: Action) -> bool {
        let writes_back = Class::ALL.into_iter().any(|one| action.writes_back().contains(one));
        matches!(action, Action::Invalidate(_)) || writes_back && protocol.writes_back()
    }

    fn act(&mut self, action: Action, extent: Option<&LineSet>, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        match action {
            Action::Invalidate(classes) => self.invalidate_classes(classes, extent, here),
            Action::DrainStores(_)
            | Action::ForwardStores
            | Action::DrainInvalidations(_)
            | Action::Flush
            | Action::AwaitStores
            | Action::Merge { .. } => self.flush(action.writes_back(), extent, here),
        }
    }

    fn merge(&mut self, _: bool, join: u32, here: &mut SliceContext<'_, '_, C, D>) {
        // A slice of lines holds no blocks, so nothing must be merged.
        let controller = here.config.layout.controller(here.config.module);
        here.out.send(here.out.now() + Ps(1), here.id, controller, Message::Written { join });
    }

    fn line_counts(&mut self) -> (u32, u32) {
        self.held()
    }

    fn release_line(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        self.give_up(line, here)
    }

    fn read_for_copy(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Option<(Mask, D, Departure)> {
        self.copied_from(line, here)
    }

    fn overwrite_by_copy(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) {
        self.copied_to(line, here);
    }

    fn host_wrote(&mut self, ranges: &[Range<u64>], here: &mut SliceContext<'_, '_, C, D>) {
        self.host_wrote(ranges, here);
    }

    fn host_reads(&self, line: Line, memory: &Memory<D>, config: &ModuleConfig<C, D>) -> D {
        self.host_reads(line, memory, config)
    }

    fn warm(&mut self, line: Line, mask: Mask, view: SliceView<'_, C, D>) {
        self.warm(line, mask, view);
    }

    fn busy(&self) -> Ps {
        self.busy()
    }

    fn blocks(&self) -> Option<(BlockStats, Vec<(String, u64)>)> {
        None
    }

    fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_ {
        self.waiting()
    }
}
