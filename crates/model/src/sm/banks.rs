//! Banks of an L1's data: of the loads of one instruction that hit, words of one bank are read one after the other.
//!
//! A bank reads a word of 4 bytes a cycle. An instruction takes as many cycles as the bank with most of its words, and begins
//! when the one before it is over. Not modelled: banks that fills and stores take.

use tombolo_machine::MachineConfig;
use tombolo_types::{Line, Mask, Ps};

/// Banks, at most.
const MOST: usize = 64;

/// Bytes of a word.
const WORD: u64 = 4;

/// When the data of an L1 are free, and what the instruction at hand takes of them.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    /// How many, less one; `None` where lookups alone bound what is read.
    mask: Option<u8>,
    /// Words of a line.
    words: u64,
    /// Grains of a word and words of a grain, one of which is 1: binary logarithm of the first, less that of the second.
    grains_of_word: i8,
    cycle: Ps,
    /// When the next instruction may begin.
    free: Ps,
    /// When the instruction at hand has begun; `None` before its first hit.
    begun: Option<Ps>,
    /// Words of it that a bank has, of those of whole lines.
    of_lines: u32,
    /// By bank: words of it in other lines.
    words_read: [u8; MOST],
    /// The most of them.
    most: u8,
}

impl Banks {
    /// Idle banks.
    pub(super) fn new(machine: &MachineConfig) -> Banks {
        let log = |bytes: u64| bytes.trailing_zeros() as i8;
        Banks {
            mask: machine.l1.banks.map(|banks| (banks - 1) as u8),
            words: machine.line.bytes() / WORD,
            grains_of_word: log(WORD) - log(machine.line.grain()),
            cycle: machine.sm.clock.span(1),
            free: Ps::ZERO,
            begun: None,
            of_lines: 0,
            words_read: [0; MOST],
            most: 0,
        }
    }

    /// When the next instruction may begin.
    #[inline]
    pub(super) fn free(&self) -> Ps {
        self.free
    }

    /// An instruction begins, or goes on after a wait.
    #[inline]
    pub(super) fn begin(&mut self) {
        if self.begun.take().is_some() {
            self.of_lines = 0;
            self.words_read = [0; MOST];
            self.most = 0;
        }
    }

    /// Reads bytes of a line that was looked up at `at`, for the instruction at hand; returns when they are read, but for the
    /// latency of a hit.
    #[inline]
    pub(super) fn read(&mut self, at: Ps, line: Line, mask: Mask) -> Ps {
        let Some(banks) = self.mask else { return at };
        let begun = *self.begun.get_or_insert(at.max(self.free));
        let per_bank = (self.words >> (u32::from(banks) + 1).trailing_zeros()) as u32;
        if mask == Mask::ALL && per_bank > 0 {
            self.of_lines += per_bank;
        } else {
            self.count(line, mask, banks);
        }
        let cycles = u64::from(self.of_lines + u32::from(self.most));
        self.free = self.free.max(begun + Ps(self.cycle.0 * cycles));
        at.max(self.free.saturating_sub(self.cycle))
    }

    /// Counts the words of part of a line.
    fn count(&mut self, line: Line, mask: Mask, banks: u8) {
        let first = line.0.wrapping_mul(self.words);
        let mut left = mask.0;
        let mut latest = None;
        while left != 0 {
            let grain = u64::from(left.trailing_zeros());
            left &= left - 1;
            let words = match self.grains_of_word {
                finer @ 0.. => grain >> finer..(grain >> finer) + 1,
                coarser => grain << -coarser..(grain + 1) << -coarser,
            };
            for word in words {
                if latest.replace(word) == Some(word) {
                    continue;
                }
                let bank = ((first + word) as u8 & banks) as usize;
                self.words_read[bank] = self.words_read[bank].saturating_add(1);
                self.most = self.most.max(self.words_read[bank]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 banks, lines of 128 bytes, a cycle of a nanosecond.
    fn banks() -> Banks {
        let mut machine = tombolo_machine::machine("hmg-4x4").expect("a preset");
        tombolo_design::apply(&["l1.banks=32", "sm.clock=1GHz"], &mut machine, &mut []).expect("keys of a machine");
        Banks::new(&machine.check().expect("a machine that fits"))
    }

    /// When loads of one instruction are read that are looked up at once.
    fn read(banks: &mut Banks, words: &[(u64, u32)]) -> u64 {
        banks.begin();
        words.iter().fold(0, |_, &(line, mask)| banks.read(Ps::ZERO, Line(line), Mask(mask)).0 / 1000)
    }

    #[test]
    fn words_of_different_banks_are_read_at_once_and_those_of_one_bank_in_turn() {
        let different: Vec<(u64, u32)> = (0..32_u32).map(|word| (u64::from(word), 1u32 << word)).collect();
        let same: Vec<(u64, u32)> = (0..32).map(|line| (line, 1)).collect();
        assert_eq!(read(&mut banks(), &different), 0);
        assert_eq!(read(&mut banks(), &same), 31);
    }

    #[test]
    fn a_whole_line_takes_a_cycle_and_instructions_follow_each_other() {
        let mut banks = banks();
        assert_eq!(read(&mut banks, &[(0, u32::MAX), (1, u32::MAX)]), 1);
        assert_eq!(read(&mut banks, &[(0, u32::MAX)]), 2, "the one before it has taken two cycles");
        assert_eq!(banks.free(), Ps(3000));
    }
}
