//! Payload carried by a message besides its route.

use std::fmt::Debug;
use std::hash::Hash;
use tombolo_types::Mask;

/// Line contents: `()` when timing, values or versions when checking. Protocols only move contents, merge them by
/// mask and update them atomically; they never inspect the values.
pub trait Data: Copy + Default + PartialEq + Eq + Hash + Debug + Send + 'static {
    /// The atomic's operation.
    type Update: Copy + Default + PartialEq + Eq + Debug + Send;

    /// Overwrites the bytes in `mask` with the corresponding bytes from `from`.
    fn merge(&mut self, from: Self, mask: Mask);

    /// Performs `update` on the bytes in `mask`; returns the previous contents.
    fn update(&mut self, update: Self::Update, mask: Mask) -> Self;
}

impl Data for () {
    type Update = ();

    fn merge(&mut self, (): (), _: Mask) {}

    fn update(&mut self, (): (), _: Mask) {}
}

/// Contents of lines in this crate's tests.
#[cfg(test)]
pub(crate) mod test_bytes {
    use super::Data;
    use tombolo_types::Mask;

    /// A line with four bytes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub(crate) struct Bytes(pub(crate) [u8; 4]);

    impl Data for Bytes {
        type Update = ();

        fn merge(&mut self, from: Bytes, mask: Mask) {
            (0..4).filter(|byte| mask.0 >> byte & 1 != 0).for_each(|byte| self.0[byte] = from.0[byte]);
        }

        fn update(&mut self, (): (), _: Mask) -> Bytes {
            *self
        }
    }
}
