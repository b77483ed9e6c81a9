//! Statistics about a kernel's instructions beyond its streams: what was executed, and what is not simulated.

use super::instruction::Instruction;
use super::opcode::OpcodeKind;
use crate::trace::info::Spaces;
use std::collections::BTreeMap;

/// Maximum number of distinct unknown operations counted by name.
const MOST_NAMES: usize = 256;

/// Counts for an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OperationCount {
    /// Warp instructions.
    pub(super) instructions: u64,
    /// Bytes that lanes read or write in memory, before coalescing.
    pub(super) bytes: u64,
    /// Memory instructions with active lanes but no addresses: their traffic is unknown.
    pub(super) addressless: u64,
    /// Instructions with a memory operand that is not simulated.
    pub(super) operands: u64,
}

/// Statistics about a kernel's instructions.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    /// Counts by operation, in the order of the parser's names.
    pub(super) operations: Vec<OperationCount>,
    /// Memory instructions by space.
    pub(super) spaces: Spaces,
    /// Generic accesses treated as global because the header lacks base addresses.
    pub(super) unresolved: u64,
    /// Generic accesses with lanes in the scratchpad and in device memory.
    pub(super) mixed: u64,
    /// Accesses to the scratchpad of another thread block of the cluster.
    pub(super) distributed: u64,
    /// Thread blocks with a rank above 0 in their cluster.
    pub(super) ranked: u64,
    /// Lanes of copies to the scratchpad without an address in device memory.
    pub(super) null_lanes: u64,
    /// Barriers with a number or a count of threads.
    pub(super) named_barriers: u64,
    /// Spin loops that the tracer marked.
    pub(super) replays: u64,
    /// Lanes' addresses in device memory, and those of them that are 0.
    pub(super) addresses: u64,
    pub(super) zeros: u64,
    /// Waits for copies to the scratchpad without a stated limit for outstanding groups.
    pub(super) blind_waits: u64,
    /// Unknown operations by name.
    pub(super) unknown: BTreeMap<String, u64>,
    /// Unknown operations whose names did not fit in `unknown`.
    pub(super) unnamed: u64,
}

impl Census {
    /// Counts an instruction.
    #[inline]
    pub(super) fn count(&mut self, instruction: &Instruction<'_>) {
        let opcode = instruction.code.opcode;
        if opcode.kind == OpcodeKind::Marker {
            self.replays += u64::from(&*instruction.code.name == "REPLAY_START");
            return;
        }
        if !opcode.known {
            self.count_unknown(&instruction.code.name);
        }
        let count = self.operation(instruction);
        count.instructions += 1;
        let lanes = instruction.addresses.map_or(0, <[u64]>::len);
        match opcode.kind {
            OpcodeKind::Load(_)
            | OpcodeKind::Store(_)
            | OpcodeKind::Atomic(_)
            | OpcodeKind::Reduction(_)
            | OpcodeKind::CopyToShared
            | OpcodeKind::Prefetch => {
                count.bytes += lanes.min(usize::from(opcode.lanes)) as u64 * u64::from(opcode.width)
            }
            OpcodeKind::BulkCopy => {
                let bulk = instruction.bulk.filter(|_| instruction.mask != 0);
                count.bytes = count.bytes.saturating_add(bulk.map_or(0, |bulk| bulk.bytes));
            }
            _ => count.operands += u64::from(lanes > 0),
        }
    }

    /// The counts of the instruction's operation.
    #[inline]
    fn operation(&mut self, instruction: &Instruction<'_>) -> &mut OperationCount {
        let index = usize::from(instruction.code.operation);
        if index >= self.operations.len() {
            self.operations.resize(index + 1, OperationCount::default());
        }
        &mut self.operations[index]
    }

    /// Counts a memory instruction whose line has no addresses.
    pub(super) fn addressless(&mut self, instruction: &Instruction<'_>) {
        self.operation(instruction).addressless += u64::from(instruction.mask != 0);
    }

    /// Counts addresses in device memory.
    #[inline]
    pub(super) fn count_zeros(&mut self, addresses: &[u64]) {
        self.addresses += addresses.len() as u64;
        self.zeros += addresses.iter().filter(|address| **address == 0).count() as u64;
    }

    /// Counts a barrier if it has a number or a count of threads: as an immediate, or its number as a register.
    pub(super) fn count_barrier(&mut self, instruction: &Instruction<'_>) {
        let stated = |immediate: Option<i64>| immediate.is_some_and(|value| value != 0);
        let registers = !instruction.code.destinations.as_slice().is_empty();
        let named = registers || stated(instruction.immediate) || stated(instruction.second_immediate);
        self.named_barriers += u64::from(named);
    }

    #[cold]
    fn count_unknown(&mut self, name: &str) {
        let operation = name.split('.').next().unwrap_or(name);
        if let Some(count) = self.unknown.get_mut(operation) {
            *count += 1;
        } else if self.unknown.len() < MOST_NAMES {
            self.unknown.insert(operation.to_owned(), 1);
        } else {
            self.unnamed += 1;
        }
    }
}
