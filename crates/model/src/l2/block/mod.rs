//! L2 slice for a protocol with clients and homes: it serves requests at block granularity, for host memory.
//!
//! On a GPU a slice is a client: its share of the L2 above a DRAM stack, with a directory for the stack's blocks
//! (UMH's SMD). On the host it is a client as well, the last-level cache above host memory, and also the home for its
//! blocks (UMH's HMD). The protocol keeps each block's state in a slot per node; all rules for values live in the
//! protocol.
//!
//! - `geometry`: mapping between lines and blocks. `bytes`: byte sets and contents. `mailbox`: messages in flight between
//!   slices.
//! - `client`: requests from arrival to reply, and requests from the home. `turn`: the order in which requests run.
//!   `frames`: frame allocation and eviction.
//! - `merge`: merges for releases and launches. `home`: the directory beside host memory.
//!
//! Timing: a request occupies the slice's port and takes its access latency. If its bytes are only in the stack, the
//! request pays a directory lookup (`stack.lookup_latency`) and a DRAM read. A block is usable after it has arrived
//! completely. A home's request probes every line of the block in the L2, in parallel with regular accesses. Not
//! modelled: queue capacity between slices, and directory energy.

mod bytes;
mod client;
mod effects;
mod frames;
mod geometry;
mod home;
mod mailbox;
mod merge;
mod stats;
mod turn;

pub(crate) use bytes::{BlockBytes, BlockContents};
pub(crate) use mailbox::{Mailbox, MessageId};
pub use stats::BlockStats;

use crate::fabric::packet::{BlockMessage, Packet};
use crate::l2::backend::{L2Design, L2Slice};
use crate::l2::departure::Departure;
use crate::memory::Memory;
use crate::message::Message;
use crate::module::config::{ModuleConfig, Routing};
use crate::module::context::{SliceContext, SliceView};
use crate::observe::value_probe::Contents;
use crate::sm::flags::VisibleFlag;
use client::Client;
use geometry::Geometry;
use home::Home;
use std::ops::Range;
use tombolo_protocol::client_home::{Carried, MessageClass, Node, Nodes};
use tombolo_protocol::elision::LineSet;
use tombolo_protocol::options::{ProtocolFacts, ProtocolOptions};
use tombolo_protocol::plan::{Phase, Sync};
use tombolo_protocol::{Action, Protocol, Refusal};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps};

/// Protocol adapter for clients and homes, served by slices at block granularity.
#[derive(Clone, Copy, Debug)]
pub struct BlockDesign<N>(pub N);

impl<N: Nodes> Protocol for BlockDesign<N> {
    type Types = N::Types;

    const FACTS: ProtocolFacts = N::FACTS;
    const BREAKABLE: bool = N::BREAKABLE;

    fn acquire(&self, sync: Sync) -> &'static [Phase] {
        self.0.acquire(sync)
    }

    fn release(&self, sync: Sync) -> &'static [Phase] {
        self.0.release(sync)
    }

    fn options(&self) -> &ProtocolOptions {
        self.0.options()
    }
}

/// Block message between slices, and the flags visible in its bytes.
#[derive(Clone, Debug)]
pub struct Envelope<M> {
    message: M,
    flags: Vec<VisibleFlag>,
}

type MessageOf<N, D> = <N as Nodes>::Message<BlockContents<D>>;

impl<N: Nodes, D: Contents> L2Design<D> for BlockDesign<N> {
    type Slice = BlockSlice<N, D>;
    type SharedBySlices = Mailbox<Envelope<MessageOf<N, D>>>;

    fn routing(&self) -> Routing {
        Routing { hierarchical: false, fills_stay_ahead: true }
    }
}

/// Block number in the address space. If blocks are split over slices, the number of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Block(u64);

/// Checks that a protocol step was accepted. The caller must first ensure that no transaction is in flight.
fn expect_accepted(step: Result<(), Refusal>, node: Node, block: Block) {
    match step {
        Ok(()) => {}
        Err(Refusal::Stall) => panic!("{node:?} was handed an event of {block:?} while one was under way there"),
        Err(Refusal::Unexpected(what)) => panic!("{node:?}, {block:?}: {what}"),
    }
}

/// L2 slice that serves requests at block granularity.
pub struct BlockSlice<N: Nodes, D: Contents> {
    id: ComponentId,
    geometry: Geometry,
    client: Client<N, D>,
    /// Home directory; present on the host only.
    home: Option<Home<N, D>>,
    mailbox: Mailbox<Envelope<MessageOf<N, D>>>,
    /// Number of messages sent.
    sent: u32,
    /// Latest arrival time among messages to this slice itself.
    heard: Ps,
    stats: BlockStats,
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// Sends a protocol step's message to another node, at the given departure time.
    fn send_to_node(
        &mut self,
        to: Node,
        block: Block,
        message: MessageOf<N, D>,
        departs: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let config = here.config;
        let host = config.layout.host().expect("blocks are of host memory, and the host is a module");
        let target = match to {
            Node::Home => host,
            Node::Client(module) => module,
        };
        let class = N::class(&message);
        let (grains, masks) = self.payload_size(&message, here);
        self.stats.count(class, u64::from(grains) * config.machine.line.grain(), target != config.module);
        let flags = if grains > 0 { self.flags(block, here) } else { Vec::new() };
        let message_id = MessageId { from: self.id, number: self.sent };
        self.sent = self.sent.wrapping_add(1);
        self.mailbox.send(message_id, Envelope { message, flags });
        let line = self.geometry.line(block, 0);
        let packet = Packet::BlockMessage(BlockMessage { line, id: message_id, class, grains, masks });
        if target == config.module {
            let at = departs.time().max(self.heard).max(here.out.now() + Ps(1));
            self.heard = at;
            here.out.send(at, self.id, self.id, Message::Enter { source: target, packet });
        } else {
            here.send(departs, target, packet);
        }
    }

    /// Returns a message's payload size: grains (line data) and mask bytes.
    fn payload_size(&self, message: &MessageOf<N, D>, here: &SliceContext<'_, '_, BlockDesign<N>, D>) -> (u32, u16) {
        match N::carries(message) {
            Carried::Nothing => (0, 0),
            Carried::Block => (u32::from(self.geometry.lines()) * Mask::ALL.grains(), 0),
            Carried::Masked(bytes) => {
                let masks = bytes.lines() as u64 * here.config.machine.messages.mask_bytes.0;
                (bytes.grains(), masks as u16)
            }
        }
    }

    /// Returns the flags visible in a block's lines at this slice.
    fn flags(&self, block: Block, here: &SliceContext<'_, '_, BlockDesign<N>, D>) -> Vec<VisibleFlag> {
        let flags = here.flags();
        if flags.is_empty() {
            return Vec::new();
        }
        let lines = (0..self.geometry.lines()).map(|place| self.geometry.line(block, place));
        lines.flat_map(|line| flags.shown(line)).collect()
    }

    /// Handles a block message from another slice, or from this slice itself.
    fn receive(
        &mut self,
        source: ModuleId,
        BlockMessage { line, id: message_id, .. }: BlockMessage,
        ready: Ps,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let Envelope { message, flags } = self.mailbox.take(message_id);
        for shown in flags {
            here.flags_mut().learn_shown(shown);
        }
        let block = self.geometry.block(line);
        match N::class(&message) {
            MessageClass::Request | MessageClass::Answer => {
                self.home_receive(Node::Client(source), block, message, ready, here)
            }
            MessageClass::Down => self.client_receive(Node::Home, block, message, ready, here),
            MessageClass::Peer => self.client_receive(Node::Client(source), block, message, ready, here),
        }
    }
}

impl<N: Nodes, D: Contents> L2Slice<BlockDesign<N>, D> for BlockSlice<N, D> {
    fn new(
        id: ComponentId,
        config: &ModuleConfig<BlockDesign<N>, D>,
        mailbox: &Mailbox<Envelope<MessageOf<N, D>>>,
    ) -> BlockSlice<N, D> {
        let machine = &config.machine;
        let stack = machine.stack.as_ref().expect("a design of blocks is built for machines that have stacks");
        let geometry = Geometry::new(stack, machine.line, config.map.most_slices());
        BlockSlice {
            id,
            geometry,
            client: Client::new(config, geometry),
            home: (config.layout.host() == Some(config.module)).then(|| Home::new(config)),
            mailbox: mailbox.clone(),
            sent: 0,
            heard: Ps::ZERO,
            stats: BlockStats::default(),
        }
    }

    fn id(&self) -> ComponentId {
        self.id
    }

    fn prefetch(&self, _: &Message<D>, _: SliceView<'_, BlockDesign<N>, D>) {}

    fn prefetch_found(&self, _: &Message<D>, _: SliceView<'_, BlockDesign<N>, D>) {}

    fn handle(&mut self, message: &Message<D>, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        match *message {
            Message::Local(request) => self.local(request, here),
            Message::Memory { line, .. } => self.home_read(self.geometry.block(line), here),
            other => panic!("{}, {:?}: a slice of blocks got {other:?}", here.config.module, self.id),
        }
    }

    fn arrive(
        &mut self,
        source: ModuleId,
        packet: &Packet<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        match *packet {
            Packet::BlockMessage(told) => self.receive(source, told, ready, here),
            other => panic!("{}, {:?}: a slice of blocks got {other:?}", here.config.module, self.id),
        }
    }

    fn has_queued(&self) -> bool {
        // The controller never waits for a reply that depends on queued requests.
        false
    }

    fn serve_queues(&mut self, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        self.serve(here);
    }

    fn is_walked(_: &BlockDesign<N>, _: Action) -> bool {
        false
    }

    fn act(&mut self, _: Action, _: Option<&LineSet>, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) -> Ps {
        // Caches are coherent except for unmerged bytes: nothing is invalidated, and no posted store is in flight.
        here.out.now()
    }

    fn merge(&mut self, all: bool, join: u32, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        self.merge_all(all, join, here);
    }

    fn line_counts(&mut self) -> (u32, u32) {
        self.client.lines()
    }

    fn release_line(&mut self, line: Line, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) -> Ps {
        panic!("{}: the page of {line} is to move, and pages of blocks are the host's for good", here.config.module)
    }

    fn read_for_copy(
        &mut self,
        line: Line,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> Option<(Mask, D, Departure)> {
        panic!("{}: {line} is to be copied, and blocks come by themselves", here.config.module)
    }

    fn overwrite_by_copy(&mut self, line: Line, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        panic!("{}: a copy writes {line}, and blocks come by themselves", here.config.module)
    }

    fn host_wrote(&mut self, _: &[Range<u64>], here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        panic!("{}: a host writes past its cache, and blocks come by it", here.config.module)
    }

    fn host_reads(&self, line: Line, _: &Memory<D>, config: &ModuleConfig<BlockDesign<N>, D>) -> D {
        panic!("{}: a host reads {line} past its cache, and blocks come by it", config.module)
    }

    fn warm(&mut self, _: Line, _: Mask, _: SliceView<'_, BlockDesign<N>, D>) {}

    fn busy(&self) -> Ps {
        self.client.port.busy()
    }

    fn blocks(&self) -> Option<(BlockStats, Vec<(String, u64)>)> {
        let states = self.client.states().into_iter().map(|(state, count)| (state.to_string(), count));
        let mut stats = self.stats;
        stats.used_lines += self.client.lines_used();
        (stats.requested_blocks, stats.requesting_gpus) = self.home.as_ref().map_or((0, 0), Home::requested);
        Some((stats, states.collect()))
    }

    fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_ {
        let lines = |block: Block| self.geometry.line(block, 0);
        let clients = self.client.waiting(self.geometry).map(move |(what, block)| (what, lines(block)));
        let homes = self.home.iter().flat_map(Home::waiting);
        clients.chain(homes.map(move |block| ("a transaction of its block", lines(block))))
    }
}
