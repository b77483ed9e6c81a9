//! Block contents and byte sets, for protocols between clients and homes.
//!
//! A block is far longer than a line: up to 16 KB, with a bit for every 2 or 4 bytes. The host chooses the
//! representation of these bits. The explorer keeps a [`Mask`]; a timing host may store bits only for the few
//! written lines.
//!
//! Protocols are frugal, so a sparse set costs only its named bytes. They subtract a block's sets from a request's
//! set, which lies in a single line, for example `set.without(&above)`. The interface has neither a set with all
//! bytes nor a complement.

use crate::data::Data;
use std::fmt::Debug;
use std::hash::Hash;
use tombolo_types::Mask;

/// A set of bytes within a block; empty by default.
///
/// The cost of [`add`](ByteSet::add) and [`remove`](ByteSet::remove) is proportional to `other`, the smaller side.
/// For [`within`](ByteSet::within) and [`without`](ByteSet::without) it is proportional to `self`.
pub trait ByteSet: Clone + Debug + Default + PartialEq + Eq + Hash + Send + 'static {
    /// True if the set is empty.
    fn is_empty(&self) -> bool;

    /// Adds all bytes in `other`.
    fn add(&mut self, other: &Self);

    /// Removes all bytes in `other`.
    fn remove(&mut self, other: &Self);

    /// Returns the intersection with `other`.
    fn within(&self, other: &Self) -> Self;

    /// Returns the difference: bytes absent from `other`.
    fn without(&self, other: &Self) -> Self;
}

impl ByteSet for Mask {
    #[inline]
    fn is_empty(&self) -> bool {
        Mask::is_empty(*self)
    }

    #[inline]
    fn add(&mut self, other: &Mask) {
        *self |= *other;
    }

    #[inline]
    fn remove(&mut self, other: &Mask) {
        *self = *self & !*other;
    }

    #[inline]
    fn within(&self, other: &Mask) -> Mask {
        *self & *other
    }

    #[inline]
    fn without(&self, other: &Mask) -> Mask {
        *self & !*other
    }
}

/// Block contents: nothing when timing, values or versions when checking.
///
/// Every [`Data`] type is block data, with a mask as its byte set. A host with longer blocks implements the trait
/// for its own type. The cost of merging and updating is proportional to the number of bytes in the set.
pub trait BlockData: Clone + Debug + Default + PartialEq + Eq + Hash + Send + 'static {
    /// Set type for some bytes within the block.
    type Set: ByteSet;
    /// The atomic's operation.
    type Update: Copy + Default + PartialEq + Eq + Debug + Send;

    /// Overwrites the bytes in `set` with the corresponding bytes from `from`.
    fn merge(&mut self, from: &Self, set: &Self::Set);

    /// Performs `update` on the bytes in `set`. Returns the previous contents in `set`; the remaining bytes are
    /// unspecified.
    fn update(&mut self, update: Self::Update, set: &Self::Set) -> Self;

    /// Returns the bytes in `set`, for a message or a reply. The remaining bytes are unspecified.
    fn only(&self, set: &Self::Set) -> Self;
}

impl<D: Data> BlockData for D {
    type Set = Mask;
    type Update = D::Update;

    #[inline]
    fn merge(&mut self, from: &D, set: &Mask) {
        Data::merge(self, *from, *set);
    }

    #[inline]
    fn update(&mut self, update: D::Update, set: &Mask) -> D {
        Data::update(self, update, *set)
    }

    #[inline]
    fn only(&self, _: &Mask) -> D {
        *self
    }
}
