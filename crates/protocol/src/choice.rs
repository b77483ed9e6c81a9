//! Options open to the user, each declared once: its key in a design, if the coherence axis reads it there, and the
//! keywords for its other values in a configuration of the explorer (`hmg+back`).

use crate::nmoesi::KernelEnd;
use crate::options::{BulkInvalidation, HomeL2, ProtocolOptions, Remote, StoreMiss, Tracks, WritePolicy};
use tombolo_types::Key;
use tombolo_types::quantity::{Clock, Quantity, RecordValue};

/// A key of the coherence axis.
#[derive(Clone, Copy, Debug)]
pub struct OptionKey {
    /// The choice that a protocol must offer, or the key has no effect.
    pub choice: Choice,
    /// The key, with the option's default.
    pub key: Key,
    /// The option's value.
    pub value: fn(&ProtocolOptions) -> RecordValue,
    /// Sets the option to the value of a text; `None` if the key does not accept the text.
    pub set: fn(&mut ProtocolOptions, &str, Clock) -> Option<()>,
}

/// A keyword for an option's value other than the default.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    /// The keyword.
    pub word: &'static str,
    /// Sets the option to the value.
    pub set: fn(&mut ProtocolOptions),
}

impl Keyword {
    /// True if the option has the value.
    pub fn describes(&self, options: &ProtocolOptions) -> bool {
        let mut set = *options;
        (self.set)(&mut set);
        set == *options
    }
}

/// Declares the choices: each with its description, its field, its key if any, and its keywords.
macro_rules! choices {
    (|$options:ident| $(
        $(#[doc = $doc:literal])+
        $Choice:ident: $Type:ty = $field:expr $(, key $key:literal)? $(, $word:literal for $value:expr)+;
    )+) => {
        /// A protocol option open to the user, if it has any effect on the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Choice { $( $(#[doc = $doc])+ $Choice ),+ }

        impl Choice {
            /// A one-line description for lists.
            pub const fn about(self) -> &'static str {
                match self { $(Choice::$Choice => concat!($($doc),+).trim_ascii_start()),+ }
            }
        }

        /// The keys of the coherence axis, in the order of its documentation.
        pub const KEYS: &[OptionKey] = &[$($(OptionKey {
            choice: Choice::$Choice,
            key: Key::optional::<$Type>($key, Choice::$Choice.about(), || {
                let $options = ProtocolOptions::default();
                Some($field.print())
            }),
            value: |$options| $field.print(),
            set: |$options, text, clock| {
                $field = Quantity::parse(text, clock)?;
                Some(())
            },
        },)?)+];

        /// The keywords, in the order of a configuration's text.
        pub const KEYWORDS: &[Keyword] = &[$($(Keyword {
            word: $word,
            set: |$options| $field = $value,
        }),+),+];
    };
}

choices! { |options|
    /// Time at which an L2 forwards a store.
    WriteBack: WritePolicy = options.write,
        "back" for WritePolicy::Back;
    /// L2 lines that a bulk invalidation drops.
    BulkInvalidation: BulkInvalidation = options.bulk, key "invalidate",
        "remote" for BulkInvalidation::Remote, "never" for BulkInvalidation::None;
    /// Notice from an L2 to the home at the eviction of the last clean line in a region.
    Downgrade: bool = options.downgrade, key "downgrade",
        "downgrade" for true;
    /// True if L1 caches obey acquires, like under HMG.
    L1Coherent: bool = options.l1_coherent, key "l1_coherent",
        "keep-l1" for false;
    /// Place for reads and writes to lines from other modules: the home's memory, or L2 caches.
    Remote: Remote = options.remote, key "remote",
        "cached" for Remote::Cached, "home-l2" for Remote::Home;
    /// Requests from other modules at the L2 of their line's home: served there, or by memory behind it.
    HomeL2: HomeL2 = options.home_l2, key "home_l2",
        "snooped" for HomeL2::Snooped;
    /// Effect of a store that misses in a write-back L2: the rest of the written sectors is fetched or not.
    StoreMiss: StoreMiss = options.store_miss, key "store_miss",
        "fetch" for StoreMiss::Fetch;
    /// Regions with entries in a directory.
    Tracks: Tracks = options.tracks,
        "track-all" for Tracks::All;
    /// True if an owner sends a block directly to the requesting GPU or host, past the home.
    PeerTransfer: bool = options.nmoesi.peer_transfer, key "peer_transfer",
        "no-peers" for false;
    /// True if clean blocks are evicted without a message to the home.
    SilentEviction: bool = options.nmoesi.silent_eviction, key "silent_eviction",
        "told-evictions" for false;
    /// Treatment of bytes written by a kernel: the next launch merges blocks shared by GPUs, all are written back, or
    /// neither (wrong values).
    KernelEnd: KernelEnd = options.nmoesi.kernel_end, key "kernel_end",
        "flush-all" for KernelEnd::FlushAll, "keep-blocks" for KernelEnd::Nothing;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_printed_as_it_is_read() {
        let clock = Clock::from_hz(1_000_000_000);
        for OptionKey { key, value, set, .. } in KEYS {
            let mut options = ProtocolOptions::default();
            assert_eq!(Some(value(&options)), (key.default)(), "{}", key.name);
            for keyword in KEYWORDS {
                let mut other = options;
                (keyword.set)(&mut other);
                set(&mut options, &value(&other).to_string(), clock).expect("a printed value is accepted");
                assert_eq!(value(&options), value(&other), "{} and {}", key.name, keyword.word);
            }
            assert_eq!(set(&mut options, "unknown", clock), None);
        }
    }

    #[test]
    fn no_keyword_is_a_default() {
        assert!(KEYWORDS.iter().all(|keyword| !keyword.describes(&ProtocolOptions::default())));
    }
}
