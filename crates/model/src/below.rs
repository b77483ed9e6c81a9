//! What a module has below its SMs: slices of its L2, as its protocol needs them. A protocol whose lines are valid or not has
//! slices that answer for lines ([`mod@crate::slice`]); one of clients and homes has slices that answer for blocks
//! ([`mod@crate::block`]).

use crate::block::BlockStats;
use crate::context::{SliceContext, SliceView};
use crate::departure::Departure;
use crate::latency::{Inside, Note};
use crate::memory::Memory;
use crate::message::Message;
use crate::packet::Packet;
use crate::site::{Routing, Site};
use crate::slice::{Slice, Wanted};
use crate::watch::Contents;
use std::ops::Range;
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::node::Delivery;
use tombolo_protocol::{Action, Class, Coherence, Protocol};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps};

/// A protocol, and what it has below the SMs of a module.
pub trait Below<D: Contents>: Protocol {
    /// A slice of an L2.
    type Slice: L2<Self, D>;
    /// What the slices of all modules share.
    type Between: Clone + Default + Send + 'static;

    /// How its messages travel.
    fn routing(&self) -> Routing;
}

/// A slice of an L2, as its module and the controller there use it.
pub trait L2<C: Below<D>, D: Contents>: Sized + Send {
    /// An empty slice.
    fn new(id: ComponentId, site: &Site<C, D>, between: &C::Between) -> Self;

    /// Its id.
    fn id(&self) -> ComponentId;

    /// Starts to load what an event will look at first into the host's caches.
    fn prefetch(&self, message: &Message<D>, view: SliceView<'_, C, D>);

    /// Starts to load what an event finds by what [`L2::prefetch`] has loaded.
    fn prefetch_found(&self, message: &Message<D>, view: SliceView<'_, C, D>);

    /// A message of its module.
    fn handle(&mut self, message: &Message<D>, here: &mut SliceContext<'_, '_, C, D>);

    /// What came over the links, wholly inside at `ready`.
    fn arrive(&mut self, source: ModuleId, packet: &Packet<D>, ready: Ps, here: &mut SliceContext<'_, '_, C, D>);

    /// Whether requests wait in its input queues.
    fn has_queued(&self) -> bool;

    /// Runs requests that wait for what has become free.
    fn serve_queues(&mut self, here: &mut SliceContext<'_, '_, C, D>);

    /// Whether an action has all slices walked.
    fn is_walked(protocol: &C, action: Action) -> bool;

    /// Its part of an action, with the lines of an extent alone where there is one. Returns when memory has taken what was
    /// written to it.
    fn act(&mut self, action: Action, extent: Option<&LineSet>, here: &mut SliceContext<'_, '_, C, D>) -> Ps;

    /// Its part of [`Action::Merge`]. It tells the controller by [`Message::Written`] of `join` when that is done.
    fn merge(&mut self, all: bool, join: u32, here: &mut SliceContext<'_, '_, C, D>);

    /// Lines that it holds, and those of them that are dirty.
    fn held(&mut self) -> (u32, u32);

    /// The page of a line goes elsewhere: its dirty bytes go to memory, and it is dropped. Returns when memory has taken
    /// them.
    fn give_up(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps;

    /// What a copy finds of a line here, and when that leaves; `None` where the line is not here.
    fn copied_from(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Option<(Mask, D, Departure)>;

    /// A copy writes the line to memory: what is here of it is old.
    fn copied_to(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>);

    /// The host has written these addresses: ranges that ascend and do not overlap, none of them empty.
    fn host_wrote(&mut self, ranges: &[Range<u64>], here: &mut SliceContext<'_, '_, C, D>);

    /// The contents of a line of its module's memory, as the host reads them.
    fn host_reads(&self, line: Line, memory: &Memory<D>, site: &Site<C, D>) -> D;

    /// Bytes of a line of its module's memory are here before time zero, clean. Nothing where it holds blocks.
    fn warm(&mut self, line: Line, mask: Mask, view: SliceView<'_, C, D>);

    /// How long its port was in use.
    fn busy(&self) -> Ps;

    /// What happened to blocks here, and how many it holds in each state, by name; `None` of slices that answer for lines.
    fn blocks(&self) -> Option<(BlockStats, Vec<(String, u64)>)>;

    /// Requests that wait for a resource, for a report of who waits for whom.
    fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_;
}

impl<C: Coherence, D: Contents> Below<D> for C {
    type Slice = Slice<D>;
    type Between = ();

    fn routing(&self) -> Routing {
        Routing { hierarchical: self.is_hierarchical(), fills_stay_ahead: self.channels().fills_stay_ahead }
    }
}

impl<C: Coherence, D: Contents> L2<C, D> for Slice<D> {
    fn new(id: ComponentId, site: &Site<C, D>, (): &()) -> Slice<D> {
        let channels = site.protocol.channels();
        // All of a line or a region is one slice's.
        let ordered = [channels.up, channels.down];
        assert!(!ordered.contains(&Delivery::Fifo), "a port orders what one slice sends, not what others do");
        Slice::new(id, site)
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
                self.fetch_later(Wanted { line, mask, register, time: Inside::default() }, here);
            }
            Message::Memory { line, mask, register, time } => {
                self.memory(Wanted { line, mask, register, time: time.read() }, here);
            }
            Message::Past { target, packet } => self.answer_past(target, packet, here),
            other => panic!("{}, {:?}: a slice got {other:?}", here.site.module, self.id()),
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
            | Action::PassOnStores
            | Action::DrainInvalidations(_)
            | Action::Flush
            | Action::AwaitStores
            | Action::Merge { .. } => self.flush(action.writes_back(), extent, here),
        }
    }

    fn merge(&mut self, _: bool, join: u32, here: &mut SliceContext<'_, '_, C, D>) {
        // It holds no blocks.
        let controller = here.site.layout.controller(here.site.module);
        here.out.send(here.out.now() + Ps(1), here.id, controller, Message::Written { join });
    }

    fn held(&mut self) -> (u32, u32) {
        self.held()
    }

    fn give_up(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Ps {
        self.give_up(line, here)
    }

    fn copied_from(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) -> Option<(Mask, D, Departure)> {
        self.copied_from(line, here)
    }

    fn copied_to(&mut self, line: Line, here: &mut SliceContext<'_, '_, C, D>) {
        self.copied_to(line, here);
    }

    fn host_wrote(&mut self, ranges: &[Range<u64>], here: &mut SliceContext<'_, '_, C, D>) {
        self.host_wrote(ranges, here);
    }

    fn host_reads(&self, line: Line, memory: &Memory<D>, site: &Site<C, D>) -> D {
        self.host_reads(line, memory, site)
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
