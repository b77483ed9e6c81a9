//! The object of verification: a protocol with options and a promise.

use super::coverage::MachineConstraints;
use crate::explore::{BoundaryPolicy, Config, ReplicaUpdate, UnrequestedChanges};
use crate::litmus::Program;
use tombolo_protocol::catalogue::{UnknownProtocol, facts, names};
use tombolo_protocol::choice::KEYWORDS;
use tombolo_protocol::copies::{BrokenCopies, Copies};
use tombolo_protocol::elision::{BrokenElision, ReleaseTime, TableKind};
use tombolo_protocol::paging::{BrokenPaging, OnFault, Paging, Start, pages_may_move_under};
use tombolo_protocol::publication::Publication;
use tombolo_protocol::vi::{Polls, ProtocolOptions};
use tombolo_types::Promise;

/// A protocol configuration to verify.
#[derive(Clone, Debug)]
pub struct Design {
    /// Name of the design.
    pub name: String,
    /// Protocol, from the catalogue.
    pub(super) protocol: &'static str,
    /// The protocol's options.
    pub(super) options: ProtocolOptions,
    /// Policy for the actions at kernel boundaries.
    pub(super) boundary_policy: BoundaryPolicy,
    /// Broken rule in the policy's elision table, if any.
    pub(super) broken_elision: Option<BrokenElision>,
    /// Rules for page moves, if pages move, including the broken rule if any.
    pub(super) paging: Option<Paging>,
    /// Rules for copies behind kernels, including the broken rule if any, and the copied bytes, if memory is copied.
    pub(super) copies: Option<(Copies, ReplicaUpdate)>,
    /// The strongest guarantee that the design promises to programs.
    promise: Promise,
}

/// Reason why a text names no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The part before the first `+` is not a protocol.
    #[error(transparent)]
    Protocol(#[from] UnknownProtocol),
    /// A part behind a `+` is not an option.
    #[error("no option is called {word:?}; there are {}", keywords().join(", "))]
    Option {
        /// Keyword as given.
        word: String,
    },
    /// Pages move under a protocol that does not allow page moves.
    #[error("pages move only where an L2 holds lines of its own memory alone; not under {protocol}")]
    Paging {
        /// The protocol.
        protocol: String,
    },
}

/// Boundary policies, by keyword.
const BOUNDARY_POLICIES: [(&str, BoundaryPolicy); 3] = [
    ("at-launch", BoundaryPolicy::Release(ReleaseTime::Launch)),
    (TableKind::Cpelide.word(), BoundaryPolicy::Table(TableKind::Cpelide)),
    (TableKind::HomeAware.word(), BoundaryPolicy::Table(TableKind::HomeAware)),
];

/// Rules for page moves, by keyword.
const PAGING: [(&str, Paging); 6] = [
    ("paging", FAULTS),
    ("paging-remote", Paging { on_fault: OnFault::MapRemotely, ..FAULTS }),
    ("paging-duplicates", Paging { duplicates: true, ..FAULTS }),
    ("paging-everybody", Paging { everybody: true, ..FAULTS }),
    ("published", Paging { everybody: true, start: Start::PublishedToAll, ..FAULTS }),
    ("published-on-read", Paging { everybody: true, start: Start::PublishedToHome, subscribes: true, ..FAULTS }),
];

/// Bytes copied behind kernels, by keyword.
const COPIES: [(&str, ReplicaUpdate); 4] = [
    ("copied", ReplicaUpdate::Written),
    ("copied-needed", ReplicaUpdate::Needed),
    ("copied-nothing", ReplicaUpdate::Nothing),
    ("latest-writer", ReplicaUpdate::LatestWriter),
];

/// Every module has a copy of all memory, and uses its own.
const DUPLICATED: Paging = Paging { everybody: true, start: Start::PublishedToAll, ..FAULTS };

/// A page moves to the faulting module.
const FAULTS: Paging = Paging {
    on_fault: OnFault::Migrate,
    duplicates: false,
    everybody: false,
    start: Start::OneCopy,
    subscribes: false,
    broken: None,
};

/// All keywords in [`Design::configured`] syntax.
fn keywords() -> Vec<&'static str> {
    let options = KEYWORDS.iter().map(|keyword| keyword.word);
    let policies = BOUNDARY_POLICIES.iter().map(|(word, _)| *word);
    let pages = PAGING.iter().map(|(word, _)| *word).chain(COPIES.iter().map(|(word, _)| *word));
    options.chain(policies).chain(pages).collect()
}

impl Design {
    /// A design called `name` that runs `protocol`. Boundary policy, page rules and broken rules start with defaults,
    /// and can be changed by the methods below.
    ///
    /// # Errors
    /// If no protocol has this name.
    pub fn new(
        name: &str,
        protocol: &str,
        options: ProtocolOptions,
        promise: Promise,
    ) -> Result<Design, UnknownProtocol> {
        let known = names().into_iter().find(|known| *known == protocol);
        let protocol = known.ok_or_else(|| UnknownProtocol { name: protocol.to_owned() })?;
        Ok(Design {
            name: name.to_owned(),
            protocol,
            // A poll is explored as the acquiring load that it is: each poll drops the L1, regardless of the option.
            options: ProtocolOptions { polls: Polls::default(), ..options },
            boundary_policy: BoundaryPolicy::default(),
            broken_elision: None,
            paging: None,
            copies: None,
            promise,
        })
    }

    /// Properties that determine the machines for the design's programs.
    pub(super) fn machines(&self, gpu_homes: bool) -> MachineConstraints {
        let host_memory = facts(self.protocol).is_some_and(|facts| facts.host);
        MachineConstraints { gpu_homes, pages_move: self.paging.is_some(), copied: self.copies.is_some(), host_memory }
    }

    /// Sets the policy for kernel boundaries.
    pub fn with_boundary_policy(self, boundary_policy: BoundaryPolicy) -> Design {
        Design { boundary_policy, ..self }
    }

    /// Sets the rules for page moves.
    pub fn moving(self, paging: Paging) -> Design {
        Design { paging: Some(paging), ..self }
    }

    /// Sets the bytes that are copied behind kernels: each module has its own copy of all memory.
    pub fn copying(self, bytes: ReplicaUpdate) -> Design {
        Design { paging: Some(DUPLICATED), copies: Some((Copies::default(), bytes)), ..self }
    }

    /// Sets a broken rule for copies.
    pub fn breaking_copies(self, rule: BrokenCopies) -> Design {
        let copies = self.copies.map(|(_, bytes)| (Copies { broken: Some(rule) }, bytes));
        Design { copies, ..self }
    }

    /// Sets a broken rule in the elision table.
    pub fn breaking(self, rule: BrokenElision) -> Design {
        Design { broken_elision: Some(rule), ..self }
    }

    /// Sets a broken rule for page moves.
    pub fn breaking_paging(self, rule: BrokenPaging) -> Design {
        let paging = self.paging.map(|rules| Paging { broken: Some(rule), ..rules });
        Design { paging, ..self }
    }

    /// The design that `configuration` spells: a protocol, followed by keywords for its options ([`KEYWORDS`]) and
    /// for its boundaries and pages. `+at-launch`: a kernel's stores are released at the next launch. `+cpelide` and
    /// `+home-aware`: tables that elide boundaries. `+paging`: pages move to the faulting module. `+paging-remote`:
    /// pages are accessed remotely. `+paging-duplicates`: readers get copies. `+paging-everybody`: no module faults.
    /// `+published`: pages are published to all modules and a subscriber leaves. `+published-on-read`: readers
    /// subscribe. `+copied`: each module has its own copy of all memory, and sends what it has written to all others
    /// behind each kernel; `+copied-needed`: what others read later; `+copied-nothing`: nothing. `+latest-writer`: nothing, and loads
    /// go to a page's latest writer. The design's promise is the protocol's promise.
    ///
    /// # Errors
    /// If the text names an unknown protocol or option, or page moves are not allowed under the protocol.
    pub fn configured(configuration: &str) -> Result<Design, ConfigurationError> {
        let mut words = configuration.split('+');
        let protocol = words.next().unwrap_or_default();
        let mut options = ProtocolOptions::default();
        let (mut boundary_policy, mut paging, mut copied) = (BoundaryPolicy::default(), None, None);
        for word in words {
            if let Some((_, by)) = BOUNDARY_POLICIES.iter().find(|(known, _)| *known == word) {
                boundary_policy = *by;
                continue;
            }
            if let Some((_, rules)) = PAGING.iter().find(|(known, _)| *known == word) {
                paging = Some(*rules);
                continue;
            }
            if let Some((_, bytes)) = COPIES.iter().find(|(known, _)| *known == word) {
                copied = Some(*bytes);
                continue;
            }
            let keyword = KEYWORDS.iter().find(|keyword| keyword.word == word);
            let keyword = keyword.ok_or_else(|| ConfigurationError::Option { word: word.to_owned() })?;
            (keyword.set)(&mut options);
        }
        let unknown = || UnknownProtocol { name: protocol.to_owned() };
        let promise = facts(protocol).ok_or_else(unknown)?.promise_with(&options);
        if (paging.is_some() || copied.is_some()) && !pages_may_move_under(protocol, options)? {
            return Err(ConfigurationError::Paging { protocol: protocol.to_owned() });
        }
        // Stores of other modules arrive behind kernels alone.
        let promise = match copied {
            None => promise,
            Some(ReplicaUpdate::Nothing | ReplicaUpdate::LatestWriter) => Promise::Nothing,
            Some(ReplicaUpdate::Written | ReplicaUpdate::Needed) => Promise::KernelBoundary,
        };
        let design = Design { boundary_policy, paging, ..Design::new(configuration, protocol, options, promise)? };
        Ok(match copied {
            Some(bytes) => design.copying(bytes),
            None => design,
        })
    }

    /// Configuration text for the explored properties, in [`Design::configured`] syntax.
    pub fn configuration(&self) -> String {
        let boundary_policy =
            BOUNDARY_POLICIES.iter().find(|(_, boundary_policy)| *boundary_policy == self.boundary_policy);
        let word = boundary_policy.map_or_else(String::new, |(word, _)| format!("+{word}"));
        let rules = self.paging.map(|rules| Paging { broken: None, ..rules });
        let copied = COPIES.iter().find(|(_, bytes)| self.copies.is_some_and(|(_, known)| known == *bytes));
        let pages = PAGING.iter().find(|(_, known)| Some(*known) == rules).map(|(word, _)| *word);
        let pages = copied.map(|(word, _)| *word).or(pages);
        let pages = pages.map_or_else(String::new, |word| format!("+{word}"));
        configuration(self.protocol, self.options) + &word + &pages
    }

    /// Rules for published pages, if pages are published.
    pub(super) fn publication(&self) -> Option<Publication> {
        let published = self.paging.filter(|rules| self.copies.is_none() && rules.start != Start::OneCopy);
        published.map(|_| Publication::default())
    }

    /// Budget for page changes without a requesting access: moving pages are sent elsewhere, subscribers leave.
    pub(super) fn unrequested(&self) -> UnrequestedChanges {
        if self.copies.is_some() {
            return UnrequestedChanges::default();
        }
        let moves = Config::new(self.protocol).unrequested;
        self.publication().map_or(moves, |_| UnrequestedChanges { leaves: 1, ..UnrequestedChanges::default() })
    }

    /// True if the explorations cannot distinguish this design from `other`.
    pub(super) fn is_explored_as(&self, other: &Design) -> bool {
        let explored = |design: &Design| {
            let Design { protocol, options, boundary_policy, broken_elision, paging, copies, promise, .. } = *design;
            (protocol, options, boundary_policy, broken_elision, paging, copies, promise)
        };
        explored(self) == explored(other)
    }

    /// Name of the protocol.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// True if the design promises the memory model to `program`. A promise at kernel boundaries covers only programs
    /// with threads that communicate across boundaries alone.
    pub fn promises(&self, program: &Program) -> bool {
        match self.promise {
            Promise::Ptx => true,
            Promise::KernelBoundary => program.meets_at_boundaries_alone(),
            Promise::Nothing => false,
        }
    }
}

/// A protocol with the keywords for its options, in [`Design::configured`] syntax. Broken rules have no keyword.
pub(super) fn configuration(protocol: &str, chosen: ProtocolOptions) -> String {
    let described = KEYWORDS.iter().filter(|keyword| keyword.describes(&chosen));
    described.fold(protocol.to_owned(), |text, keyword| text + "+" + keyword.word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_written_as_it_is_read() {
        for text in [
            "hmg",
            "hmg+downgrade",
            "software-flat+back+remote",
            "software-flat+back+never",
            "ideal+keep-l1",
            "viper+back+cached",
            "hmg+back+downgrade+track-all",
            "memory-side+back+paging-duplicates",
            "memory-side+back+published",
            "memory-side+back+copied",
            "memory-side+copied-needed",
        ] {
            assert_eq!(Design::configured(text).unwrap().configuration(), text);
        }
    }

    #[test]
    fn a_configuration_promises_what_its_protocol_does() {
        let promise = |text| Design::configured(text).unwrap().promise;
        assert_eq!(promise("hmg+back"), Promise::Ptx);
        assert_eq!((promise("ideal"), promise("software-flat+never")), (Promise::Nothing, Promise::Nothing));
    }

    #[test]
    fn words_that_are_no_protocol_or_option_are_refused_with_what_there_is() {
        let refusal = |text| Design::configured(text).unwrap_err().to_string();
        assert!(refusal("mesi").contains("\"mesi\"") && refusal("mesi").contains("hmg"));
        assert!(refusal("hmg+forth").contains("\"forth\"") && refusal("hmg+forth").contains("back"));
    }

    #[test]
    fn pages_move_beside_memory_alone() {
        for protocol in names() {
            let moves = Design::configured(&format!("{protocol}+paging")).is_ok();
            assert_eq!(moves, ["memory-side", "peer"].contains(&protocol), "{protocol}");
        }
        assert!(
            Design::configured("hmg+paging").unwrap_err().to_string().contains("its own memory alone; not under hmg")
        );
    }
}
