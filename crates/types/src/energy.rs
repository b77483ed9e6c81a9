//! Energies of single events: per access, or per bit moved.

/// An energy in attojoules: published values in picojoules, divided down to one bit in a word, are whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attojoules(pub u64);

impl Attojoules {
    /// No energy.
    pub const ZERO: Attojoules = Attojoules(0);

    /// An energy given in whole femtojoules.
    pub const fn from_fj(femtojoules: u64) -> Attojoules {
        Attojoules(femtojoules * 1000)
    }

    /// Total energy for `count` events, in picojoules. Exact up to the last division if the sum is below 2^53 fJ.
    pub fn picojoules_of(self, count: u64) -> f64 {
        count as f64 * (self.0 as f64 / 1e3) / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_femtojoule_are_not_lost() {
        // Five picojoules per 32-bit word.
        assert_eq!(Attojoules(156_250).picojoules_of(32), 5.0);
        assert_eq!(Attojoules::from_fj(3920).picojoules_of(512), 2007.04);
    }
}
