//! What a message carries besides its route.

use std::fmt::Debug;
use std::hash::Hash;
use tombolo_types::Mask;

/// The contents of a line: `()` when timing, values or versions when checking. Protocols only move it,
/// merge it by mask and update it atomically; they never look inside.
pub trait Data: Copy + Default + PartialEq + Eq + Hash + Debug + Send + 'static {
    /// The operation of an atomic.
    type Update: Copy + Default + PartialEq + Eq + Debug + Send;

    /// Overwrites the bytes of `mask` with those of `from`.
    fn merge(&mut self, from: Self, mask: Mask);

    /// Performs `update` on the bytes of `mask`; returns the contents before.
    fn update(&mut self, update: Self::Update, mask: Mask) -> Self;
}

impl Data for () {
    type Update = ();

    fn merge(&mut self, (): (), _: Mask) {}

    fn update(&mut self, (): (), _: Mask) {}
}
