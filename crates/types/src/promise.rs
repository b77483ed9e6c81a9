//! Guarantees from a memory system to programs.

/// The strongest guarantee of a memory system, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// No coherence at all.
    Nothing,
    /// Visibility at kernel boundaries only: the memory model for programs whose threads synchronise only at
    /// boundaries.
    KernelBoundary,
    /// The PTX memory model with scopes.
    Ptx,
}

impl Promise {
    /// Every promise, from most to least.
    pub const ALL: [Promise; 3] = [Promise::Ptx, Promise::KernelBoundary, Promise::Nothing];

    /// The promise's word in a file.
    pub const fn word(self) -> &'static str {
        match self {
            Promise::Ptx => "ptx",
            Promise::KernelBoundary => "kernel-boundary",
            Promise::Nothing => "nothing",
        }
    }

    /// The promise with this word.
    pub fn of(word: &str) -> Option<Promise> {
        Promise::ALL.into_iter().find(|promise| promise.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_is_written() {
        for promise in Promise::ALL {
            assert_eq!(Promise::of(promise.word()), Some(promise));
        }
        assert_eq!(Promise::of("all"), None);
    }

    #[test]
    fn the_memory_model_is_more_than_kernel_boundaries_and_these_more_than_nothing() {
        assert!(Promise::ALL.is_sorted_by(|more, less| more > less));
    }
}
