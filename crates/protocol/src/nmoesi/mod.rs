//! NMOESI: clients that hold blocks from host memory, and homes next to it. Source: UMH, section 4 and Table II.
//!
//! A *client* is a GPU's cache for host memory: an L2 above a DRAM stack with a directory of its blocks. The host's
//! last-level cache is also a client. A *home* is a directory next to host memory, which never bypasses it. L1s
//! above a client are write-through and dropped at an acquire ([`crate::l1`]); this protocol does not involve them.
//!
//! | state | load | coherent store, atomic | store | eviction | read by another client | write by another client |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | N | hit | requests exclusive access, M | hit | its bytes are merged, I | - | sends its bytes, I |
//! | M | hit | hit | hit | writes back, I | sends the block, O | sends its bytes, I |
//! | O | hit | requests exclusive access, M | hit | its bytes are merged, I | sends the block | sends its bytes, I |
//! | E | hit | hit, M | hit, M | I | sends the block, S | I |
//! | S | hit | requests exclusive access, M | hit, N | I | - | I |
//! | I | requests, S or E | requests exclusive access, M | requests, then as S or E | - | - | - |
//!
//! Differences from Table II, with reasons:
//! - A store (the paper's n-store: a weak store, or a store with `.cta` scope) that finds E makes it M. An
//!   n-store's flag travels a single hop: the home treats the requesting client as the owner, so the block is
//!   coherent, and clean-up at a kernel's end is free. N is for blocks shared by several clients.
//! - A block in O keeps its ownership when read. Without transfers between peers, M and O send their bytes down and
//!   become S; E only acknowledges, and memory supplies the block.
//! - A store to I fetches the block (write allocate). Stores without a fetch, and N in L1s, are not modelled.
//! - Bytes that leave N or O are *merged*: the remaining sharers give up their copies, which lack these bytes.
//! - A coherent load (with `.sys` scope, or any load by the host) hits in M and E alone, and otherwise requests
//!   exclusive access: it is section 4.2.1's store without bytes.
//!
//! **Merging.** The owner's bytes come first, the remaining clients' bytes on top, whatever their arrival order. A
//! client in N has written its bytes since the last merge, so none is older. A client that requests exclusive
//! access keeps its own bytes on top of all if it is in N, and below the remaining clients' if it is in O. A
//! release with `.sys` scope owes a merge for its GPU's blocks in N or O, and a kernel launch owes a merge for all
//! GPUs. M stays: the home names it. Before host code nothing is merged. O is merged whether or not other clients
//! still share the block, because the client cannot know.
//!
//! Bytes given up by a client in N or O are not merged yet: another sharer may be the last to receive the home's
//! message. The home reports when all have answered, and a release waits for this report too.
//!
//! **In flight.** A client has a single transaction per block at a time, and meanwhile takes part in other clients'
//! transactions. It keeps a written-back block until the home acknowledges it, and answers for the block until
//! then. A client no longer named by the home has given its bytes to another node: its write-back counts for
//! nothing. A block from a peer that arrives after the home has taken it away again does not install; the client
//! requests it again, with exclusive access. The home itself then sends the block, so no peer with repeated
//! requests can overtake the client forever.
//!
//! Two kinds of bytes are sent twice, so that no reply waits for a request. If the home takes a block during its
//! write-back, the client also sends the bytes as a reply: at a launch all GPUs merge at once. A client that
//! silently left S and requests the block again may still receive a take for its old copy; a block that a peer
//! sends it then counts as overtaken.

mod broken;
mod client;
mod home;
#[cfg(test)]
mod tests;

use crate::block::{BlockData, ByteSet};
use crate::client_home::{
    BlockEvent, Carried, Channels, ClientHomeTypes, ClientView, HomeView, MessageClass, Node, Nodes,
};
use crate::coherence::{Protocol, Refusal};
use crate::effects::{Delivery, Effects};
use crate::elision::RetainedLines;
use crate::options::{Choice, ProtocolFacts, ProtocolOptions};
use crate::plan::{Action, Members, Phase, Sync};
pub use broken::BrokenNmoesi;
pub use client::{ClientBlock, ClientState, PendingTransaction};
pub use home::{DirtyBytes, HomeEntry, Recall, RecallPurpose, Transaction};
use tombolo_types::{ModuleId, Promise, Scope, choice};

/// The protocol's name in the [catalogue](crate::catalogue).
pub const NAME: &str = "nmoesi";

/// Design choices within NMOESI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NmoesiOptions {
    /// Set when an owner sends a block directly to the requesting client, bypassing the home. Source: UMH, section
    /// 4.1.1.
    pub peer_transfer: bool,
    /// Set when E and S are evicted without a message. Source: UMH, Table II; Multi2Sim 4.2 sends a message.
    pub silent_eviction: bool,
    /// The messages sent at a kernel's end.
    pub kernel_end: KernelEnd,
    /// The broken rule, if any.
    pub broken: Option<BrokenNmoesi>,
}

impl Default for NmoesiOptions {
    fn default() -> NmoesiOptions {
        NmoesiOptions { peer_transfer: true, silent_eviction: true, kernel_end: KernelEnd::MergeShared, broken: None }
    }
}

choice! {
    /// Treatment of the bytes written by a kernel.
    pub enum KernelEnd: Default {
        /// The next launch merges blocks shared by several GPUs. Host code synchronises block by block (section
        /// 4.2.1).
        MergeShared = "merge-shared",
        /// The kernel's end writes everything back: section 4.2's "easy way", Figure 6a.
        FlushAll = "flush-all",
        /// Nothing: kernels load old values from blocks that several GPUs have written. It promises nothing, and shows what
        /// merges at launches cost.
        Nothing = "none",
    }
}

/// A message between nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message<B: BlockData> {
    /// Client to home: requests the block.
    Read,
    /// Client to home: requests exclusive access to the block.
    Write {
        /// Set when the client holds the block, so it lacks only bytes written by other clients.
        holds: bool,
    },
    /// Client to home: writes bytes back.
    Back {
        /// Bytes written back.
        set: B::Set,
        /// Contents in `set`.
        data: B,
        /// Set when the client would keep the block, clean.
        keep: bool,
    },
    /// Client to home: the reply to [`Message::Take`] and [`Message::Share`].
    Bytes {
        /// Bytes that memory lacks.
        set: B::Set,
        /// Contents in `set`.
        data: B,
        /// Set when the client still holds the block.
        stays: bool,
        /// Set when the client requests a report once no client holds the block without these bytes.
        waits: bool,
    },
    /// Client to home: the reply to [`Message::Forward`]: the block is in flight.
    Sent {
        /// Set when the client still owns the block and answers for it.
        owns: bool,
    },
    /// Client to home: the reply to [`Message::Forward`]: the client no longer has the block.
    Refused,
    /// Client to client: the block.
    Peer {
        /// Contents.
        data: B,
    },
    /// Home to client: the block, shared with other clients.
    Shared {
        /// Contents.
        data: B,
    },
    /// Home to client: the block, held by no other client.
    Exclusive {
        /// Contents.
        data: B,
    },
    /// Home to client: exclusive access to a block the client already holds, with the bytes written by other
    /// clients.
    Alone {
        /// Bytes carried.
        set: B::Set,
        /// Contents in `set`.
        data: B,
    },
    /// Home to client: acknowledges a write-back.
    Taken {
        /// Set when the client keeps the block, clean.
        kept: bool,
    },
    /// Home to client: no client holds the block any more without the bytes given up by this client.
    Merged,
    /// Home to client: give up the block.
    Take,
    /// Home to owner: send down the bytes that memory lacks.
    Share,
    /// Home to owner: send the block to this client.
    Forward {
        /// The client that receives the block.
        to: ModuleId,
    },
}

/// A node's state for a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slot<B: BlockData> {
    /// A client.
    Client(ClientBlock<B>),
    /// A home.
    Home(HomeEntry<B>),
}

/// The NMOESI protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nmoesi<const BREAKABLE: bool = true> {
    options: ProtocolOptions,
}

impl Nmoesi {
    /// Creates the protocol with the given options, which may include a broken rule.
    pub fn new(options: ProtocolOptions) -> Nmoesi {
        Nmoesi::with(options)
    }
}

impl<const BREAKABLE: bool> Nmoesi<BREAKABLE> {
    /// Creates the protocol with the given options.
    pub(crate) fn with(options: ProtocolOptions) -> Nmoesi<BREAKABLE> {
        let is_whole = options.broken_rule.is_none() && options.nmoesi.broken.is_none();
        assert!(BREAKABLE || is_whole, "a protocol that cannot break has no broken rule");
        Nmoesi { options }
    }

    /// True if `rule` is the broken rule.
    pub fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        BREAKABLE && self.options.nmoesi.broken == Some(rule)
    }

    fn nmoesi(&self) -> NmoesiOptions {
        self.options.nmoesi
    }
}

/// The action for a release with `.sys` scope, and for a launch at every GPU.
const MERGE: Action = Action::Merge { all: false };

impl<const BREAKABLE: bool> Protocol for Nmoesi<BREAKABLE> {
    type Types = ClientHomeTypes<Self>;

    const FACTS: ProtocolFacts = ProtocolFacts {
        about: "Host memory cached in GPU memory: owners, peers, masks. Source: UMH, section 4.",
        promise: Promise::Ptx,
        directory: true,
        host: true,
        hierarchical: false,
        caches: |_, _| true,
        // The host's memory holds every page.
        pages_may_move: |_| false,
        holds: |_| RetainedLines::Nothing,
        choices: &[Choice::WriteBack, Choice::PeerTransfer, Choice::SilentEviction, Choice::KernelEnd],
    };

    const BREAKABLE: bool = BREAKABLE;

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn acquire(&self, sync: Sync) -> &'static [Phase] {
        const MERGE_ALL: &[Phase] = &[Phase::new(Members::All, MERGE)];
        match (sync, self.nmoesi().kernel_end) {
            (Sync::Kernel, _) if self.is_broken(BrokenNmoesi::LaunchSkipsMerge) => &[],
            (Sync::Kernel, KernelEnd::MergeShared) => MERGE_ALL,
            (Sync::Kernel, KernelEnd::FlushAll | KernelEnd::Nothing) | (Sync::Thread(_), _) => &[],
        }
    }

    fn release(&self, sync: Sync) -> &'static [Phase] {
        const MERGE_OWN: &[Phase] = &[Phase::new(Members::Gpu, MERGE)];
        const FLUSH_ALL: &[Phase] = &[Phase::new(Members::All, Action::Merge { all: true })];
        match (sync, self.nmoesi().kernel_end) {
            (Sync::Thread(_), _) if self.is_broken(BrokenNmoesi::ReleaseSkipsMerge) => &[],
            (Sync::Thread(Scope::Sys), _) => MERGE_OWN,
            (Sync::Kernel, KernelEnd::FlushAll) => FLUSH_ALL,
            (Sync::Thread(Scope::Cta | Scope::Gpu), _)
            | (Sync::Kernel, KernelEnd::MergeShared | KernelEnd::Nothing) => &[],
        }
    }
}

impl<const BREAKABLE: bool> Nodes for Nmoesi<BREAKABLE> {
    type Slot<B: BlockData> = Slot<B>;
    type Message<B: BlockData> = Message<B>;
    type State = ClientState;

    const STATES: &'static [ClientState] = &ClientState::ALL;

    /// A home's takes never overtake its earlier grants. A client's replies and its requests may overtake each
    /// other.
    const CHANNELS: Channels = Channels {
        request: Delivery::FifoPerRegion,
        down: Delivery::FifoPerRegion,
        answer: Delivery::Unordered,
        peer: Delivery::Unordered,
    };

    fn empty<B: BlockData>(at: Node) -> Slot<B> {
        match at {
            Node::Client(_) => Slot::Client(ClientBlock::default()),
            Node::Home => Slot::Home(HomeEntry::default()),
        }
    }

    fn step<B: BlockData>(
        &self,
        _: Node,
        slot: &mut Slot<B>,
        event: BlockEvent<Message<B>, B>,
        effects: &mut impl Effects<ClientHomeTypes<Self>, B>,
    ) -> Result<(), Refusal> {
        match slot {
            Slot::Client(block) => client::step(self, block, event, effects),
            Slot::Home(entry) => home::step(self, entry, event, effects),
        }
    }

    fn class<B: BlockData>(message: &Message<B>) -> MessageClass {
        match message {
            Message::Read | Message::Write { .. } | Message::Back { .. } => MessageClass::Request,
            Message::Shared { .. }
            | Message::Exclusive { .. }
            | Message::Alone { .. }
            | Message::Taken { .. }
            | Message::Merged
            | Message::Take
            | Message::Share
            | Message::Forward { .. } => MessageClass::Down,
            Message::Bytes { .. } | Message::Sent { .. } | Message::Refused => MessageClass::Answer,
            Message::Peer { .. } => MessageClass::Peer,
        }
    }

    fn carries<B: BlockData>(message: &Message<B>) -> Carried<'_, B::Set> {
        match message {
            Message::Back { set, .. } | Message::Bytes { set, .. } | Message::Alone { set, .. } => {
                if set.is_empty() {
                    Carried::Nothing
                } else {
                    Carried::Masked(set)
                }
            }
            Message::Peer { .. } | Message::Shared { .. } | Message::Exclusive { .. } => Carried::Block,
            Message::Read
            | Message::Write { .. }
            | Message::Sent { .. }
            | Message::Refused
            | Message::Taken { .. }
            | Message::Merged
            | Message::Take
            | Message::Share
            | Message::Forward { .. } => Carried::Nothing,
        }
    }

    fn only_notifies<B: BlockData>(message: &Message<B>) -> bool {
        matches!(message, Message::Merged)
    }

    fn is_busy<B: BlockData>(slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => block.waiting.is_some(),
            Slot::Home(entry) => entry.transaction.is_some(),
        }
    }

    fn owes<B: BlockData>(&self, slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => block.owes(self),
            Slot::Home(_) => false,
        }
    }

    fn awaits_merges(&self) -> bool {
        !self.is_broken(BrokenNmoesi::EndsWithoutMerge)
    }

    fn evicts_silently<B: BlockData>(&self, slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => {
                self.nmoesi().silent_eviction && matches!(block.state, ClientState::E | ClientState::S)
            }
            Slot::Home(_) => false,
        }
    }

    fn state<B: BlockData>(slot: &Slot<B>) -> Option<ClientState> {
        match slot {
            Slot::Client(block) => Some(block.state),
            Slot::Home(_) => None,
        }
    }

    fn above<B: BlockData>(slot: &Slot<B>) -> Option<&B::Set> {
        match slot {
            Slot::Client(block) => Some(&block.above),
            Slot::Home(_) => None,
        }
    }

    fn fresh<B: BlockData>(slot: &Slot<B>) -> Option<&B::Set> {
        match slot {
            Slot::Client(block) => Some(&block.fresh),
            Slot::Home(_) => None,
        }
    }

    fn holds<B: BlockData>(slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => block.state != ClientState::I,
            Slot::Home(_) => false,
        }
    }

    fn is_dirty<B: BlockData>(slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => block.is_dirty(),
            Slot::Home(_) => false,
        }
    }

    fn client_view<B: BlockData>(slot: &Slot<B>) -> ClientView<B::Set> {
        match slot {
            Slot::Client(block) => block.standing(),
            Slot::Home(_) => ClientView::default(),
        }
    }

    fn contents<B: BlockData>(slot: &Slot<B>) -> B {
        match slot {
            Slot::Client(block) => block.contents(),
            Slot::Home(_) => B::default(),
        }
    }

    fn known<B: BlockData>(slot: &Slot<B>) -> HomeView {
        match slot {
            Slot::Client(_) => HomeView::default(),
            Slot::Home(entry) => HomeView { holders: entry.holders, owner: entry.owner },
        }
    }
}
