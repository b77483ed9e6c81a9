//! Coherence axis: the protocol from the catalogue, with the options it offers to the user.

use crate::DesignConfig;
use crate::axis::DesignAxis;
use tombolo_machine::quantity::RecordValue;
use tombolo_machine::section::Reader;
use tombolo_machine::spelling::OptionInfo;
use tombolo_machine::{ConfigError, Conflict, Key};
use tombolo_protocol::catalogue;
use tombolo_protocol::choice::{KEYS, OptionKey};
use tombolo_protocol::options::{BulkInvalidation, ProtocolFacts, ProtocolOptions};

/// The coherence protocol, together with its user-selectable options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coherence {
    protocol: &'static str,
    options: ProtocolOptions,
}

/// The keys with an effect on a protocol.
fn keys_of(facts: &ProtocolFacts) -> impl Iterator<Item = &'static OptionKey> {
    KEYS.iter().filter(|key| facts.offers(key.choice))
}

impl Coherence {
    /// The protocol's name in the catalogue.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// Static facts about the protocol.
    pub fn facts(&self) -> &'static ProtocolFacts {
        catalogue::facts(self.protocol).expect("it is one of the catalogue")
    }

    /// True if the protocol belongs to the program that uses this library, and not to the library.
    pub fn is_registered(&self) -> bool {
        catalogue::is_registered(self.protocol)
    }

    /// The protocol's options, as far as this axis decides their values.
    pub(crate) fn options(&self) -> ProtocolOptions {
        self.options
    }

    /// The reason for which the protocol cannot promise more.
    pub(crate) fn weakness(&self) -> String {
        if self.options.bulk == BulkInvalidation::None {
            return "L2 caches that ignore bulk invalidations keep stale lines".to_owned();
        }
        format!("{} gives no stronger guarantee", self.protocol)
    }
}

impl DesignAxis for Coherence {
    fn options() -> Vec<OptionInfo> {
        let option = |(word, facts): (&'static str, &ProtocolFacts)| OptionInfo {
            word,
            about: facts.about,
            keys: keys_of(facts).map(|key| key.key.name).collect(),
        };
        catalogue::all().into_iter().map(option).collect()
    }

    fn keys() -> Vec<Key> {
        KEYS.iter().map(|key| key.key).collect()
    }

    fn expected() -> &'static str {
        catalogue::expected()
    }

    fn read(word: &str, reader: &Reader<'_>) -> Result<Option<Coherence>, ConfigError> {
        let Some(protocol) = catalogue::names().into_iter().find(|protocol| *protocol == word) else { return Ok(None) };
        let mut options = ProtocolOptions::default();
        for OptionKey { key, set, .. } in KEYS {
            reader.given(key.name, key.expected, |text| set(&mut options, text, reader.clock))?;
        }
        Ok(Some(Coherence { protocol, options }))
    }

    fn written(&self) -> (&'static str, Vec<(&'static str, RecordValue)>) {
        let keys = keys_of(self.facts()).map(|key| (key.key.name, (key.value)(&self.options)));
        (self.protocol, keys.collect())
    }

    fn conflict(&self, _: &'static str, _: &DesignConfig) -> Option<Conflict> {
        None
    }
}
