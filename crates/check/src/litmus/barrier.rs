//! Parser for barriers of a CTA.

use super::error::LitmusError;
use super::lexer::TokenKind;
use super::parser::{Parser, is_register};
use super::program::{BarrierRole, Instruction, WARP};
use super::ptx;
use super::value_type::ValueType;

/// Parts of PTX's names for barriers.
const BARRIER_PARTS: [&str; 15] = [
    "cta", "cluster", "warp", "sync", "arrive", "wait", "red", "aligned", "acquire", "release", "relaxed", "popc",
    "pred", "and", "or",
];
/// Spellings for barriers of a CTA with their roles. Source: PTX ISA, bar and barrier: `.cta` may be omitted, and `bar`
/// is `barrier` with `.aligned`.
const CTA_BARRIERS: [(&str, BarrierRole); 12] = [
    ("bar.cta.sync", BarrierRole::Sync),
    ("bar.sync", BarrierRole::Sync),
    ("barrier.cta.sync", BarrierRole::Sync),
    ("barrier.sync", BarrierRole::Sync),
    ("barrier.cta.sync.aligned", BarrierRole::Sync),
    ("barrier.sync.aligned", BarrierRole::Sync),
    ("bar.cta.arrive", BarrierRole::Arrive),
    ("bar.arrive", BarrierRole::Arrive),
    ("barrier.cta.arrive", BarrierRole::Arrive),
    ("barrier.arrive", BarrierRole::Arrive),
    ("barrier.cta.arrive.aligned", BarrierRole::Arrive),
    ("barrier.arrive.aligned", BarrierRole::Arrive),
];
/// Reason why other barriers are rejected.
const CTA_BARRIER: &str = "a barrier is one of a CTA, `bar.cta.sync` or `bar.cta.arrive` and its number";
/// Reason why registers are rejected as a barrier's operands.
const CONSTANT: &str = "the number and the count of a barrier are constants";
/// Reason why a barrier with different counts is rejected.
const ONE_COUNT: &str = "all threads of a CTA name an equal count at a barrier";
/// Largest count of a barrier. Source: PTX ISA, the maximum number of threads per CTA.
const MOST_THREADS: u32 = 1024;
/// A barrier in the text.
pub(super) struct BarrierUse {
    thread: usize,
    id: u32,
    count: Option<u32>,
    /// Token index of the instruction.
    at: usize,
}

impl Parser {
    /// Parses a barrier behind `name`, its first word at token `at`.
    pub(super) fn barrier(&mut self, thread: usize, mut name: String, at: usize) -> Result<Instruction, LitmusError> {
        if self.is_on_host(thread) {
            return Err(self.expected_at(at, "no barrier: a host thread has no CTA to meet"));
        }
        while self.take(".") {
            let part_at = self.at;
            let part = self.word("a part of `bar.cta.sync`")?;
            let is_known = BARRIER_PARTS.contains(&part.as_str()) || ValueType::named(&part).is_some();
            if !is_known && ptx::modifier(&part).is_none() {
                return Err(self.expected_at(part_at, "a part of `bar.cta.sync`"));
            }
            name = format!("{name}.{part}");
        }
        let Some((_, role)) = CTA_BARRIERS.iter().find(|(known, _)| *known == name) else {
            return Err(self.unsupported(at, &name, CTA_BARRIER));
        };
        // Source: PTX ISA, bar: a CTA has sixteen barriers.
        const LAST: u32 = 15;
        const EXPECTED: &str = "a barrier of 0 to 15";
        let id_at = self.at;
        let id = Some(self.barrier_operand(&name, EXPECTED)?).filter(|id| *id <= LAST);
        let id = id.ok_or_else(|| self.expected_at(id_at, EXPECTED))?;
        // ptxas 13.5 reads a count of zero as no count.
        let count = if self.take(",") { Some(self.barrier_count(&name)?).filter(|count| *count > 0) } else { None };
        if count.is_none() && *role == BarrierRole::Arrive {
            return Err(self.illegal(at, &name, "an arrival names the barrier's count of threads"));
        }
        self.barriers.push(BarrierUse { thread, id, count, at });
        Ok(Instruction::Barrier { id, role: *role, count })
    }

    /// Checks that all uses of a CTA's barrier name an equal count. PTX leaves other uses undefined.
    pub(super) fn check_barriers(&self) -> Result<(), LitmusError> {
        let placement = |used: &BarrierUse| self.program.threads[used.thread].placement;
        for (index, used) in self.barriers.iter().enumerate() {
            let differs = |earlier: &BarrierUse| {
                let is_same = placement(earlier).shares_cta(placement(used)) && earlier.id == used.id;
                is_same && earlier.count != used.count
            };
            if self.barriers[..index].iter().any(differs) {
                return Err(self.unsupported(used.at, &format!("barrier {} with two counts", used.id), ONE_COUNT));
            }
        }
        Ok(())
    }

    /// Parses a count of threads, and returns the count of warps.
    fn barrier_count(&mut self, name: &str) -> Result<u32, LitmusError> {
        const EXPECTED: &str = "a count of threads, a multiple of 32 up to 1024";
        let at = self.at;
        let threads = self.barrier_operand(name, EXPECTED)?;
        let fits = threads <= MOST_THREADS && threads.is_multiple_of(WARP);
        if fits { Ok(threads / WARP) } else { Err(self.expected_at(at, EXPECTED)) }
    }

    fn barrier_operand(&mut self, name: &str, expected: &str) -> Result<u32, LitmusError> {
        let at = self.at;
        if matches!(self.peek(), TokenKind::Word(word) if is_register(word)) {
            return Err(self.unsupported(at, &format!("{name} with a register"), CONSTANT));
        }
        u32::try_from(self.integer(expected)?).map_err(|_| self.expected_at(at, expected))
    }
}
