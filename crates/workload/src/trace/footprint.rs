//! The set of lines accessed by a program, stored in a bit map per run of consecutive lines; empty runs are not stored.

use rustc_hash::FxHashMap;
use tombolo_types::Line;

/// Lines per run, with a bit for each line: 512 bytes.
const RUN: u64 = 4096;

/// A set of lines. Dense data costs a bit per line.
#[derive(Default)]
pub(super) struct Footprint {
    runs: FxHashMap<u64, Box<[u64; (RUN / 64) as usize]>>,
    lines: u64,
}

impl Footprint {
    /// Adds a line to the set.
    pub(super) fn add(&mut self, line: Line) {
        let run = self.runs.entry(line.0 / RUN).or_insert_with(|| Box::new([0; (RUN / 64) as usize]));
        let place = line.0 % RUN;
        let word = &mut run[(place / 64) as usize];
        let bit = 1 << (place % 64);
        self.lines += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Line count of the set.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_once() {
        let mut footprint = Footprint::default();
        for line in [0, 1, 4095, 4096, u64::MAX, 1, u64::MAX] {
            footprint.add(Line(line));
        }
        assert_eq!(footprint.lines(), 5);
    }
}
