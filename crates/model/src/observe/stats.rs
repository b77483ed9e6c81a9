//! Digests over a run's events and counters. Crate `metrics` declares the counters.

use crate::layout::{ComponentKind, Unit};
use std::fmt;
pub use tombolo_metrics::{L2Stats, SmStats};
use tombolo_types::Ps;

/// Hash for a set of facts. It does not depend on the order in which facts are mixed in, nor on the machine part that
/// mixes them in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub(crate) u64);

impl Digest {
    /// Mixes in a word.
    #[inline]
    pub(crate) fn mix(&mut self, word: u64) {
        self.0 = self.0.wrapping_add(scramble(word));
    }

    /// Mixes in an event: its time and component.
    #[inline]
    pub fn event(&mut self, at: Ps, whom: ComponentMark) {
        self.mix(at.0.wrapping_add(whom.0));
    }

    /// Mixes in a named value. Zero changes nothing, so an additional unused value leaves every digest unchanged.
    pub fn value(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.mix(named(name) ^ scramble(value));
        }
    }

    /// Mixes in a further set of facts.
    pub fn merge(&mut self, other: Digest) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Number that represents a component in an event digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentMark(u64);

impl ComponentMark {
    /// Mark for a component.
    pub fn of(place: ComponentKind) -> ComponentMark {
        let (kind, module, index) = match place {
            ComponentKind::Module(module, Unit::Sm(sm)) => (1, module.0, sm.0),
            ComponentKind::Module(module, Unit::Slice(slice)) => (2, module.0, slice),
            ComponentKind::Module(module, Unit::Controller) => (3, module.0, 0),
            ComponentKind::Switch => (4, 0, 0),
            ComponentKind::CommandProcessor => (5, 0, 0),
            ComponentKind::Module(module, Unit::CopyEngine) => (6, module.0, 0),
            ComponentKind::Driver => (7, 0, 0),
            ComponentKind::GpuPort(gpu, direction) => (8, gpu.0, direction as u16),
        };
        let place = kind << 32 | u64::from(module) << 16 | u64::from(index);
        ComponentMark(place.wrapping_mul(SPREAD))
    }
}

/// The 64-bit golden ratio, odd: its multiples are far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Bijective scrambling of 64-bit words. Source: the finaliser in SplitMix64 (Steele, Lea, Flood, 2014).
#[inline]
fn scramble(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Hash of a name. Source: FNV-1a, 64 bits.
fn named(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::{ModuleId, SmId};

    fn of(events: &[(u64, ComponentKind)]) -> Digest {
        let mut digest = Digest::default();
        events.iter().for_each(|&(at, place)| digest.event(Ps(at), ComponentMark::of(place)));
        digest
    }

    #[test]
    fn a_digest_tells_times_places_and_names_apart_and_not_their_order() {
        let sm = |module, sm| ComponentKind::Module(ModuleId(module), Unit::Sm(SmId(sm)));
        let slice = ComponentKind::Module(ModuleId(0), Unit::Slice(1));
        assert_eq!(of(&[(1, sm(0, 1)), (2, slice)]), of(&[(2, slice), (1, sm(0, 1))]));
        let all =
            [of(&[(1, sm(0, 1))]), of(&[(2, sm(0, 1))]), of(&[(1, sm(1, 1))]), of(&[(1, sm(0, 2))]), of(&[(1, slice)])];
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one), "{index}");
        }
        assert_ne!(of(&[(1, slice), (1, slice)]), Digest::default(), "equal facts do not cancel out");
        let value = |name, value| {
            let mut digest = Digest::default();
            digest.value(name, value);
            digest
        };
        assert_ne!(value("reads", 1), value("writes", 1));
        assert_eq!(value("reads", 0), Digest::default());
    }
}
