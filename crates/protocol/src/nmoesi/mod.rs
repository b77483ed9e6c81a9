//! NMOESI: clients that hold blocks of host memory, and the homes beside it. Source: UMH, section 4 and Table II.
//!
//! A *client* is a GPU's cache of host memory: an L2 above a stack of DRAM with a directory of its blocks; or the
//! last-level cache of the host. A *home* is a directory beside host memory, which it never bypasses. L1s above a client
//! are write-through, dropped at an acquire ([`crate::l1`]); nothing of what follows is theirs.
//!
//! | state | load | coherent store, atomic | store | eviction | read by another | write by another |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | N | hit | asks for the block alone, M | hit | its bytes are merged, I | - | sends its bytes, I |
//! | M | hit | hit | hit | writes back, I | sends the block, O | sends its bytes, I |
//! | O | hit | asks for the block alone, M | hit | its bytes are merged, I | sends the block | sends its bytes, I |
//! | E | hit | hit, M | hit, M | I | sends the block, S | I |
//! | S | hit | asks for the block alone, M | hit, N | I | - | I |
//! | I | asks, S or E | asks for the block alone, M | asks, then as S or E | - | - | - |
//!
//! Where this is not Table II, and why:
//! - A store (the paper's n-store: a weak one, or one of `.cta` scope) that finds E makes it M. The flag of an n-store
//!   goes one hop: the home takes the client that asks for the owner, so the block is coherent, and free at a kernel's end.
//!   N is for blocks that several clients share.
//! - O that is read keeps its ownership. Without transfers between peers M and O send their bytes down and become S; E
//!   says only that it has heard, and memory supplies.
//! - A store to I fetches the block (write allocate). Stores that fetch no data, and N in L1s, are not here.
//! - What leaves N or O is *merged*: the others that share the block give up their copies, which lack its bytes.
//! - A coherent load (one of `.sys` scope, any load of the host) hits in M and E alone, and else asks for the block alone:
//!   it is the store of no bytes of section 4.2.1.
//!
//! **Merging.** The bytes of an owner come first, those of the others on top, whatever the order in which they arrive: a
//! client in N has written its bytes since the block was last merged, so none of them is older. A client that asks for
//! the block alone keeps its own on top of all where it is in N, and below the others' where it is in O. A merge is owed by
//! a release of `.sys` scope, for the blocks of its GPU in N or O, and by the launch of a kernel, for those of all GPUs.
//! M stays: the home names it. Before host code nothing is merged. O is merged whether or not others share the block still,
//! which a client cannot know.
//!
//! What a client in N or O has given up is not merged yet: another that shares the block may be the last to hear. The home says
//! when all have, and a release waits for that too.
//!
//! **Under way.** A client has one transaction of a block at a time, and takes part in those of others meanwhile. What
//! has been sent back is kept until the home has said so: it answers for it until then. A client that the home does not
//! name any more has given its bytes to somebody else: what it sends back counts for nothing. A block from a peer that
//! comes after the home has taken the block away again does not install; it is asked for once more, alone: then the home
//! sends it, and no peer that wants it again and again overtakes it for ever.
//!
//! Two things are sent twice, so that no answer waits for a request. Bytes on their way back are sent as an answer too where
//! the home takes the block meanwhile: at a launch all GPUs merge at once. And a client that left S in silence and asks again
//! may be taken from as what it was; a block that a peer sends it then counts as overtaken.

mod broken;
mod client;
mod home;
#[cfg(test)]
mod tests;

use crate::block::{BlockData, ByteSet};
use crate::coherence::{Protocol, Refusal};
use crate::elision::Holds;
use crate::node::{Delivery, Effects};
use crate::nodes::{Carried, Channels, Class, Event, Known, Node, Nodes, Of, Standing};
use crate::options::{Choice, Facts, Options};
use crate::plan::{Action, Members, Phase, Sync};
pub use broken::BrokenNmoesi;
pub use client::{Block, State, Waiting};
pub use home::{Bytes, Entry, Goal, Taking, Transaction};
use tombolo_types::{ModuleId, Promise, Scope};

/// What a design chooses within NMOESI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NmoesiOptions {
    /// Whether an owner sends a block to the client that asked for it, past the home. Source: UMH, section 4.1.1.
    pub peer_transfer: bool,
    /// Whether E and S leave without a word. Source: UMH, Table II; Multi2Sim 4.2 sends a message.
    pub silent_eviction: bool,
    /// What a kernel's end sends.
    pub kernel_end: KernelEnd,
    /// The broken rule, if any.
    pub broken: Option<BrokenNmoesi>,
}

impl Default for NmoesiOptions {
    fn default() -> NmoesiOptions {
        NmoesiOptions { peer_transfer: true, silent_eviction: true, kernel_end: KernelEnd::MergeShared, broken: None }
    }
}

/// What becomes of the bytes that a kernel has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelEnd {
    /// The next launch merges blocks that several GPUs share. Host code synchronises block by block (section 4.2.1).
    #[default]
    MergeShared,
    /// The kernel's end writes all of it back: the "easy way" of section 4.2, Figure 6a.
    FlushAll,
}

/// What nodes tell each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message<B: BlockData> {
    /// Client to home: the block is wanted.
    Read,
    /// Client to home: it is wanted alone.
    Write {
        /// Whether the client holds it, so that only what others have written is lacking.
        holds: bool,
    },
    /// Client to home: bytes go back.
    Back {
        /// Which.
        set: B::Set,
        /// Contents in `set`.
        data: B,
        /// Whether the client would keep the block, clean.
        keep: bool,
    },
    /// Client to home: the answer to [`Message::Take`] and [`Message::Share`].
    Bytes {
        /// What memory lacks.
        set: B::Set,
        /// Contents in `set`.
        data: B,
        /// Whether the client holds the block still.
        stays: bool,
        /// Whether the client wants to hear when nobody holds the block without them any more.
        waits: bool,
    },
    /// Client to home: the answer to [`Message::Forward`]: the block is on its way.
    Sent {
        /// Whether the client answers for the block still.
        owns: bool,
    },
    /// Client to home: the answer to [`Message::Forward`]: it has no such block any more.
    Refused,
    /// Client to client: the block.
    Peer {
        /// Contents.
        data: B,
    },
    /// Home to client: the block, which others hold too.
    Shared {
        /// Contents.
        data: B,
    },
    /// Home to client: the block, which no other holds.
    Exclusive {
        /// Contents.
        data: B,
    },
    /// Home to client: what others have written of a block that it holds, and no other any more.
    Alone {
        /// Which.
        set: B::Set,
        /// Contents in `set`.
        data: B,
    },
    /// Home to client: what went back has been taken.
    Taken {
        /// Whether the client keeps the block, clean.
        kept: bool,
    },
    /// Home to client: nobody holds the block any more without the bytes that it has given up.
    Merged,
    /// Home to client: give up the block.
    Take,
    /// Home to owner: send down what memory lacks.
    Share,
    /// Home to owner: send the block to this client.
    Forward {
        /// Which.
        to: ModuleId,
    },
}

/// What a node holds of a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slot<B: BlockData> {
    /// A client.
    Client(Block<B>),
    /// A home.
    Home(Entry<B>),
}

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nmoesi<const BREAKABLE: bool = true> {
    options: Options,
}

impl Nmoesi {
    /// The protocol with the given options, which may have a broken rule.
    pub fn new(options: Options) -> Nmoesi {
        Nmoesi::with(options)
    }
}

impl<const BREAKABLE: bool> Nmoesi<BREAKABLE> {
    /// The protocol with the given options.
    pub(crate) fn with(options: Options) -> Nmoesi<BREAKABLE> {
        let is_whole = options.broken_rule.is_none() && options.nmoesi.broken.is_none();
        assert!(BREAKABLE || is_whole, "a protocol that cannot break has no broken rule");
        Nmoesi { options }
    }

    /// Whether `rule` is the broken rule.
    pub fn is_broken(&self, rule: BrokenNmoesi) -> bool {
        BREAKABLE && self.options.nmoesi.broken == Some(rule)
    }

    fn nmoesi(&self) -> NmoesiOptions {
        self.options.nmoesi
    }
}

/// What a release of `.sys` scope does, and a launch at every GPU.
const MERGE: Action = Action::Merge { all: false };

impl<const BREAKABLE: bool> Protocol for Nmoesi<BREAKABLE> {
    type Types = Of<Self>;

    const FACTS: Facts = Facts {
        about: "Host memory cached in GPU memory: owners, peers, masks. Source: UMH, section 4.",
        promise: Promise::Ptx,
        directory: true,
        host: true,
        hierarchical: false,
        caches: |_, _| true,
        holds: |_| Holds::Nothing,
        choices: &[Choice::WriteBack, Choice::PeerTransfer, Choice::SilentEviction, Choice::KernelEnd],
    };

    const BREAKABLE: bool = BREAKABLE;

    fn options(&self) -> &Options {
        &self.options
    }

    fn acquire(&self, sync: Sync) -> &'static [Phase] {
        const MERGE_ALL: &[Phase] = &[Phase::new(Members::All, MERGE)];
        match (sync, self.nmoesi().kernel_end) {
            (Sync::Kernel, _) if self.is_broken(BrokenNmoesi::LaunchSkipsMerge) => &[],
            (Sync::Kernel, KernelEnd::MergeShared) => MERGE_ALL,
            (Sync::Kernel, KernelEnd::FlushAll) | (Sync::Thread(_), _) => &[],
        }
    }

    fn release(&self, sync: Sync) -> &'static [Phase] {
        const MERGE_OWN: &[Phase] = &[Phase::new(Members::Gpu, MERGE)];
        const FLUSH_ALL: &[Phase] = &[Phase::new(Members::All, Action::Merge { all: true })];
        match (sync, self.nmoesi().kernel_end) {
            (Sync::Thread(_), _) if self.is_broken(BrokenNmoesi::ReleaseSkipsMerge) => &[],
            (Sync::Thread(Scope::Sys), _) => MERGE_OWN,
            (Sync::Kernel, KernelEnd::FlushAll) => FLUSH_ALL,
            (Sync::Thread(Scope::Cta | Scope::Gpu), _) | (Sync::Kernel, KernelEnd::MergeShared) => &[],
        }
    }
}

impl<const BREAKABLE: bool> Nodes for Nmoesi<BREAKABLE> {
    type Slot<B: BlockData> = Slot<B>;
    type Message<B: BlockData> = Message<B>;
    type State = State;

    const STATES: &'static [State] = &State::ALL;

    /// What a home takes away never passes what it has granted before. A client's answers and its requests pass each other.
    const CHANNELS: Channels = Channels {
        request: Delivery::FifoPerRegion,
        down: Delivery::FifoPerRegion,
        answer: Delivery::Unordered,
        peer: Delivery::Unordered,
    };

    fn empty<B: BlockData>(at: Node) -> Slot<B> {
        match at {
            Node::Client(_) => Slot::Client(Block::default()),
            Node::Home => Slot::Home(Entry::default()),
        }
    }

    fn step<B: BlockData>(
        &self,
        _: Node,
        slot: &mut Slot<B>,
        event: Event<Message<B>, B>,
        effects: &mut impl Effects<Of<Self>, B>,
    ) -> Result<(), Refusal> {
        match slot {
            Slot::Client(block) => client::step(self, block, event, effects),
            Slot::Home(entry) => home::step(self, entry, event, effects),
        }
    }

    fn class<B: BlockData>(message: &Message<B>) -> Class {
        match message {
            Message::Read | Message::Write { .. } | Message::Back { .. } => Class::Request,
            Message::Shared { .. }
            | Message::Exclusive { .. }
            | Message::Alone { .. }
            | Message::Taken { .. }
            | Message::Merged
            | Message::Take
            | Message::Share
            | Message::Forward { .. } => Class::Down,
            Message::Bytes { .. } | Message::Sent { .. } | Message::Refused => Class::Answer,
            Message::Peer { .. } => Class::Peer,
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

    fn only_tells<B: BlockData>(message: &Message<B>) -> bool {
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

    fn leaves_silently<B: BlockData>(&self, slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => self.nmoesi().silent_eviction && matches!(block.state, State::E | State::S),
            Slot::Home(_) => false,
        }
    }

    fn state<B: BlockData>(slot: &Slot<B>) -> Option<State> {
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
            Slot::Client(block) => block.state != State::I,
            Slot::Home(_) => false,
        }
    }

    fn is_dirty<B: BlockData>(slot: &Slot<B>) -> bool {
        match slot {
            Slot::Client(block) => block.is_dirty(),
            Slot::Home(_) => false,
        }
    }

    fn standing<B: BlockData>(slot: &Slot<B>) -> Standing<B::Set> {
        match slot {
            Slot::Client(block) => block.standing(),
            Slot::Home(_) => Standing::default(),
        }
    }

    fn contents<B: BlockData>(slot: &Slot<B>) -> B {
        match slot {
            Slot::Client(block) => block.contents(),
            Slot::Home(_) => B::default(),
        }
    }

    fn known<B: BlockData>(slot: &Slot<B>) -> Known {
        match slot {
            Slot::Client(_) => Known::default(),
            Slot::Home(entry) => Known { holders: entry.holders, owner: entry.owner },
        }
    }
}
