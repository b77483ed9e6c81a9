//! Data banks in the L1: if loads in a single instruction hit several words in a bank, these words are read serially.
//!
//! A bank reads a 4-byte word per cycle. An instruction takes as many cycles as the most heavily used bank has words,
//! and starts after the previous instruction has finished. Not modelled: bank conflicts with fills and stores.

use tombolo_machine::MachineConfig;
use tombolo_types::{Line, Mask, Ps};

/// Maximum number of banks.
const MOST: usize = 64;

/// Word size in bytes.
const WORD: u64 = 4;

/// Bank state in an L1: availability, and the current instruction's word count per bank.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    /// Number of banks less one; `None` if only the lookup rate limits reads.
    mask: Option<u8>,
    /// Words per line.
    words: u64,
    /// Binary logarithm of grains per word, less the logarithm for words per grain. At least one count is 1.
    grains_of_word: i8,
    cycle: Ps,
    /// Earliest start time for the next instruction.
    free: Ps,
    /// Start time of the current instruction; `None` before its first hit.
    begun: Option<Ps>,
    /// Words that each bank reads for complete lines in the current instruction.
    of_lines: u32,
    /// Words per bank that the current instruction reads from partial lines.
    words_read: [u8; MOST],
    /// Maximum over `words_read`.
    most: u8,
}

impl Banks {
    /// Creates idle banks for an L1 as described in `machine`.
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

    /// Earliest start time for the next instruction.
    #[inline]
    pub(super) fn free(&self) -> Ps {
        self.free
    }

    /// Starts an instruction, or resumes an instruction after a wait.
    #[inline]
    pub(super) fn begin(&mut self) {
        if self.begun.take().is_some() {
            self.of_lines = 0;
            self.words_read = [0; MOST];
            self.most = 0;
        }
    }

    /// Reads bytes of a line looked up at `at`, for the current instruction. Returns the completion time, without the
    /// hit latency.
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

    /// Counts the words for an incompletely read line.
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

    /// Test banks: 32 banks, 128-byte lines, and a cycle time of 1 ns.
    fn banks() -> Banks {
        let mut machine = tombolo_machine::machine("hmg-4x4").expect("a preset");
        tombolo_design::apply(&["l1.banks=32", "sm.clock=1GHz"], &mut machine, &mut []).expect("keys of a machine");
        Banks::new(&machine.check().expect("a machine that fits"))
    }

    /// Completion time, in nanoseconds, of an instruction whose loads are looked up simultaneously.
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
        assert_eq!(read(&mut banks, &[(0, u32::MAX)]), 2, "the previous instruction took two cycles");
        assert_eq!(banks.free(), Ps(3000));
    }
}
