//! Rules of a protocol for SMs, as values in [`SmRules`]. The code of SMs does not depend on the protocol's type, and is
//! compiled once for all protocols.

use crate::broken_rule::BrokenRule;
use crate::coherence::Protocol;
use crate::options::ProtocolOptions;
use crate::plan::Sync;
use tombolo_types::Scope;

/// Rules for an L1 and the threads above the L1. Implemented by every [`Protocol`] and by [`SmRules`].
pub trait L1Protocol {
    /// The chosen options.
    fn options(&self) -> &ProtocolOptions;

    /// True if `rule` is the broken rule.
    fn broken(&self, rule: BrokenRule) -> bool;

    /// True if an acquire beyond the CTA invalidates the L1.
    #[inline]
    fn invalidates_l1(&self) -> bool {
        self.options().l1_coherent
    }
}

impl<P: Protocol> L1Protocol for P {
    #[inline]
    fn options(&self) -> &ProtocolOptions {
        Protocol::options(self)
    }

    #[inline]
    fn broken(&self, rule: BrokenRule) -> bool {
        Protocol::broken(self, rule)
    }
}

/// A protocol's rules for SMs.
#[derive(Clone, Copy, Debug)]
pub struct SmRules {
    options: ProtocolOptions,
    broken_rule: Option<BrokenRule>,
    /// By scope: true if a release has no phase beyond the SM.
    releases_end: [bool; Scope::ALL.len()],
    /// By scope: true if an acquire has no phase beyond the L1.
    acquires_end: [bool; Scope::ALL.len()],
}

impl SmRules {
    /// Rules of `protocol`.
    pub fn of(protocol: &impl Protocol) -> SmRules {
        SmRules {
            options: *protocol.options(),
            broken_rule: protocol.broken_rule(),
            releases_end: Scope::ALL.map(|scope| protocol.release(Sync::Thread(scope)).is_empty()),
            acquires_end: Scope::ALL.map(|scope| protocol.acquire(Sync::Thread(scope)).is_empty()),
        }
    }

    /// True if a thread's release at `scope` is over when the L2 has accepted what the SM has posted.
    #[inline]
    pub fn release_ends_in_sm(&self, scope: Scope) -> bool {
        self.releases_end[scope as usize]
    }

    /// True if a thread's acquire at `scope` involves no L2.
    #[inline]
    pub fn acquire_ends_in_sm(&self, scope: Scope) -> bool {
        self.acquires_end[scope as usize]
    }
}

impl L1Protocol for SmRules {
    #[inline]
    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    #[inline]
    fn broken(&self, rule: BrokenRule) -> bool {
        self.broken_rule == Some(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hmg::Hmg;
    use crate::software_flat::SoftwareFlat;

    fn ends(rules: SmRules) -> [(bool, bool); 3] {
        Scope::ALL.map(|scope| (rules.release_ends_in_sm(scope), rules.acquire_ends_in_sm(scope)))
    }

    #[test]
    fn plans_are_those_of_the_protocol() {
        let options = ProtocolOptions::default();
        assert!(Scope::ALL.into_iter().enumerate().all(|(index, scope)| scope as usize == index));
        let (software, hmg) =
            (SmRules::of(&SoftwareFlat::<true>::new(options)), SmRules::of(&Hmg::<true>::new(options)));
        // Under software coherence an acquire beyond the CTA drops remote lines of the L2; under HMG directories invalidate lines.
        assert_eq!(ends(software).map(|(_, acquire)| acquire), [true, false, false]);
        assert_eq!(ends(hmg), [(true, true), (false, true), (false, true)]);
    }

    #[test]
    fn options_and_the_broken_rule_are_those_of_the_protocol() {
        let rule = BrokenRule::AcquireKeepsL1;
        let options = ProtocolOptions { broken_rule: Some(rule), l1_coherent: false, ..ProtocolOptions::default() };
        let rules = SmRules::of(&Hmg::<true>::new(options));
        assert!(rules.broken(rule) && !rules.broken(BrokenRule::StoreKeepsFill) && !rules.invalidates_l1());
        let whole = SmRules::of(&Hmg::<false>::with(ProtocolOptions::default()));
        assert!(!whole.broken(rule) && whole.invalidates_l1());
    }
}
