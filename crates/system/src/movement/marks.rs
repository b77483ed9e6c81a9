//! Records the lines read and written by a module: a bit per line, and a mask if a line is not wholly written.

use rustc_hash::FxHashMap;
use tombolo_model::front_end::WrittenBytes;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::{Line, Mask};

/// Lines stored together: one for each bit in a word.
const CHUNK: u64 = u64::BITS as u64;

/// Consecutive lines, starting at a multiple of their number.
#[derive(Default)]
struct Chunk {
    read: u64,
    written: u64,
    /// Masks for the written lines, indexed by position; absent if all are wholly written.
    masks: Option<Box<[Mask; CHUNK as usize]>>,
}

/// Lines read and written by a module, stored in chunks. Programs touch tens of millions of lines, scattered over
/// arbitrary addresses.
#[derive(Default)]
pub(super) struct Marks {
    places: FxHashMap<u64, u32>,
    chunks: Vec<Chunk>,
    /// The chunk found last, with its index: the next line mostly belongs to this chunk, too.
    latest: Option<(u64, u32)>,
}

impl Marks {
    /// Marks `line` as read by the module.
    pub(super) fn read(&mut self, line: Line) {
        self.chunk(line).read |= 1 << (line.0 % CHUNK);
    }

    /// Marks bytes in `line` as written by the module.
    pub(super) fn write(&mut self, line: Line, mask: Mask) {
        if mask.is_empty() {
            return;
        }
        self.chunk(line).write((line.0 % CHUNK) as usize, mask);
    }

    fn chunk(&mut self, line: Line) -> &mut Chunk {
        let number = line.0 / CHUNK;
        let place = match self.latest {
            Some((latest, place)) if latest == number => place,
            Some(_) | None => {
                let place = *self.places.entry(number).or_insert_with(|| {
                    self.chunks.push(Chunk::default());
                    (self.chunks.len() - 1) as u32
                });
                self.latest = Some((number, place));
                place
            }
        };
        &mut self.chunks[place as usize]
    }

    /// Returns the lines read and the bytes written, and clears all marks.
    pub(super) fn take(&mut self) -> (LineSet, WrittenBytes) {
        let Marks { places, mut chunks, latest: _ } = std::mem::take(self);
        let mut places: Vec<(u64, u32)> = places.into_iter().collect();
        places.sort_unstable();
        let (mut read, mut lines, mut partly) = (Vec::new(), Vec::new(), FxHashMap::default());
        for (number, place) in places {
            let first = number * CHUNK;
            let chunk = std::mem::take(&mut chunks[place as usize]);
            runs(first, chunk.read, &mut read);
            runs(first, chunk.written, &mut lines);
            let masks = chunk.masks.iter().flat_map(|masks| (first..).map(Line).zip(**masks));
            partly.extend(masks.filter(|&(_, mask)| !mask.is_empty() && mask != Mask::ALL));
        }
        partly.shrink_to_fit();
        (read.into_iter().collect(), WrittenBytes { lines: lines.into_iter().collect(), partly })
    }
}

impl Chunk {
    fn write(&mut self, place: usize, mask: Mask) {
        let is_new = self.written & (1 << place) == 0;
        self.written |= 1 << place;
        match &mut self.masks {
            Some(masks) => masks[place] |= mask,
            None if mask == Mask::ALL || !is_new => {}
            None => {
                let before = self.written & !(1 << place);
                let whole = |line: usize| if before & (1 << line) == 0 { Mask::NONE } else { Mask::ALL };
                let mut masks = Box::new(std::array::from_fn(whole));
                masks[place] = mask;
                self.masks = Some(masks);
            }
        }
    }
}

/// Adds the lines for the bits set in a word; the lowest bit corresponds to line `first`.
fn runs(first: u64, mut bits: u64, into: &mut Vec<LineRange>) {
    while bits != 0 {
        let skip = bits.trailing_zeros();
        let run = (bits >> skip).trailing_ones();
        let start = Line(first + u64::from(skip));
        let end = Line(start.0 + u64::from(run));
        match into.last_mut() {
            Some(last) if last.end == start => last.end = end,
            Some(_) | None => into.push(LineRange::new(start, end)),
        }
        bits &= !((u64::MAX >> (u64::BITS - run)) << skip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn marks_are_those_of_a_map(
            writes in prop::collection::vec((0..200_u64, prop_oneof![Just(u32::MAX), 1..16_u32]), 0..80),
            reads in prop::collection::vec(0..400_u64, 0..80),
        ) {
            let mut marks = Marks::default();
            let mut naive: BTreeMap<u64, u32> = BTreeMap::new();
            for &(line, mask) in &writes {
                // Spread apart, so that chunks are spread, too.
                marks.write(Line(line * 7), Mask(mask));
                *naive.entry(line * 7).or_default() |= mask;
            }
            reads.iter().for_each(|&line| marks.read(Line(line)));
            let (read, written) = marks.take();
            for line in 0..1500 {
                prop_assert_eq!(written.mask(Line(line)).0, naive.get(&line).copied().unwrap_or_default());
                let is_read = tombolo_model::front_end::reaches(Some(&read), Line(line));
                prop_assert_eq!(is_read, reads.contains(&line));
            }
            prop_assert!(written.partly.values().all(|&mask| mask != Mask::ALL));
            prop_assert_eq!(marks.take(), (LineSet::default(), WrittenBytes::default()));
        }
    }
}
