//! What a block is to protocols of clients and homes: contents, and sets of its bytes.
//!
//! A block is far longer than a line: up to 16 KB, with a bit for every 2 or 4 bytes. How these bits are kept is the
//! host's choice. The explorer keeps a [`Mask`]; a timing host may keep those of the few lines that are written.
//!
//! Protocols are frugal, so that a sparse set costs what it names. They ask a request's set, which lies in one line, about
//! the block's sets, as in `set.without(&above)`. There is no set of all bytes, and no complement.

use crate::data::Data;
use std::fmt::Debug;
use std::hash::Hash;
use tombolo_types::Mask;

/// Some bytes of a block; none by default.
///
/// The cost of an operation is proportional to its smaller side in [`add`](ByteSet::add) and [`remove`](ByteSet::remove):
/// `other`. In [`within`](ByteSet::within) and [`without`](ByteSet::without) it is `self`.
pub trait ByteSet: Clone + Debug + Default + PartialEq + Eq + Hash + Send + 'static {
    /// Whether no byte is named.
    fn is_empty(&self) -> bool;

    /// Names those of `other` too.
    fn add(&mut self, other: &Self);

    /// Names none of `other` any more.
    fn remove(&mut self, other: &Self);

    /// Those that `other` names too.
    fn within(&self, other: &Self) -> Self;

    /// Those that `other` does not name.
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

/// The contents of a block: nothing when timing, values or versions when checking.
///
/// Every [`Data`] is one, by a mask. A host whose blocks are longer implements it for a type of its own. Merging and
/// updating cost what the set names.
pub trait BlockData: Clone + Debug + Default + PartialEq + Eq + Hash + Send + 'static {
    /// Some of its bytes.
    type Set: ByteSet;
    /// The operation of an atomic.
    type Update: Copy + Default + PartialEq + Eq + Debug + Send;

    /// Overwrites the bytes of `set` with those of `from`.
    fn merge(&mut self, from: &Self, set: &Self::Set);

    /// Performs `update` on the bytes of `set`. Returns these as they were; the rest may be anything.
    fn update(&mut self, update: Self::Update, set: &Self::Set) -> Self;

    /// The bytes of `set`, for a message or an answer. The rest may be anything.
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
