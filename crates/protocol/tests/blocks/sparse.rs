//! Block contents and byte sets for tests of a protocol's cost: both store only the bytes present, and count every line
//! or byte that an operation inspects.

use super::world::{BYTES, Bytewise};
use std::cell::Cell;
use std::collections::BTreeMap;
use tombolo_protocol::{BlockData, ByteSet};

/// Bytes per line.
const LINE: usize = 4;

/// Value read from absent bytes; no test writes this value.
const NOTHING: u8 = 0xEE;

thread_local! {
    static COST: Cell<u64> = const { Cell::new(0) };
}

/// Number of items inspected by this thread so far: lines of byte sets, and bytes of contents.
pub(super) fn cost() -> u64 {
    COST.get()
}

fn pay(for_what: usize) {
    COST.set(COST.get() + for_what as u64);
}

/// A set of bytes: a mask per line with a bit for each byte. Lines without bytes in the set are absent.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LineBits(BTreeMap<u16, u8>);

impl LineBits {
    /// All bytes in the given line.
    pub(super) fn of_line(line: u16) -> LineBits {
        LineBits(BTreeMap::from([(line, 0b1111)]))
    }

    fn bytes(&self) -> impl Iterator<Item = usize> {
        let of_line = |(line, bits): (&u16, &u8)| {
            let (line, bits) = (usize::from(*line), *bits);
            (0..LINE).filter(move |at| bits >> at & 1 != 0).map(move |at| line * LINE + at)
        };
        self.0.iter().flat_map(of_line)
    }

    /// Applies `chosen` to the masks of each line in `self` and in `other`; empty results are dropped.
    fn of_each(&self, other: &LineBits, chosen: fn(u8, u8) -> u8) -> LineBits {
        pay(self.0.len());
        let bits = |line: &u16| other.0.get(line).copied().unwrap_or(0);
        let left = self.0.iter().map(|(line, own)| (*line, chosen(*own, bits(line))));
        LineBits(left.filter(|(_, bits)| *bits != 0).collect())
    }
}

impl Clone for LineBits {
    fn clone(&self) -> LineBits {
        pay(self.0.len());
        LineBits(self.0.clone())
    }
}

impl ByteSet for LineBits {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, other: &LineBits) {
        pay(other.0.len());
        for (line, bits) in &other.0 {
            *self.0.entry(*line).or_default() |= bits;
        }
    }

    fn remove(&mut self, other: &LineBits) {
        pay(other.0.len());
        for (line, bits) in &other.0 {
            if let Some(own) = self.0.get_mut(line) {
                *own &= !bits;
                if *own == 0 {
                    self.0.remove(line);
                }
            }
        }
    }

    fn within(&self, other: &LineBits) -> LineBits {
        self.of_each(other, |own, others| own & others)
    }

    fn without(&self, other: &LineBits) -> LineBits {
        self.of_each(other, |own, others| own & !others)
    }
}

/// Contents of a block: values by byte index, without the absent bytes.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sparse(BTreeMap<usize, u8>);

impl Sparse {
    /// Zero contents for this number of lines.
    pub(super) fn of_lines(lines: u16) -> Sparse {
        Sparse((0..usize::from(lines) * LINE).map(|byte| (byte, 0)).collect())
    }

    /// A single line filled with this value.
    pub(super) fn of_line(line: u16, value: u8) -> Sparse {
        Sparse(LineBits::of_line(line).bytes().map(|byte| (byte, value)).collect())
    }
}

impl Clone for Sparse {
    fn clone(&self) -> Sparse {
        pay(self.0.len());
        Sparse(self.0.clone())
    }
}

impl BlockData for Sparse {
    type Set = LineBits;
    type Update = u8;

    fn merge(&mut self, from: &Sparse, set: &LineBits) {
        for byte in set.bytes() {
            pay(1);
            self.0.insert(byte, from.byte(byte));
        }
    }

    fn update(&mut self, add: u8, set: &LineBits) -> Sparse {
        let before = self.only(set);
        for byte in set.bytes() {
            self.0.insert(byte, before.byte(byte).wrapping_add(add));
        }
        before
    }

    fn only(&self, set: &LineBits) -> Sparse {
        let bytes: Vec<usize> = set.bytes().collect();
        pay(bytes.len());
        Sparse(bytes.into_iter().map(|byte| (byte, self.byte(byte))).collect())
    }
}

impl Bytewise for Sparse {
    fn set(bytes: &[usize]) -> LineBits {
        let mut lines = LineBits::default();
        for byte in bytes {
            *lines.0.entry((byte / LINE) as u16).or_default() |= 1 << (byte % LINE);
        }
        lines
    }

    fn bytes(set: &LineBits) -> Vec<usize> {
        set.bytes().collect()
    }

    fn filled(value: u8) -> Sparse {
        Sparse((0..BYTES).map(|byte| (byte, value)).collect())
    }

    fn byte(&self, byte: usize) -> u8 {
        self.0.get(&byte).copied().unwrap_or(NOTHING)
    }
}
