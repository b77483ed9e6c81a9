//! Translation of a warp's instructions into stream operations.

use super::coalescer::{Coalescer, LocalMemory, WINDOW, bank_passes};
use super::header::Header;
use super::instruction::Instruction;
use super::opcode::{MemorySpace, OpcodeKind};
use super::scoreboard::{Scoreboard, ZERO_REGISTER};
use crate::chains::{Arithmetic, Chains, Depth};
use crate::trace::error::Mismatch;
use crate::trace::info::Spaces;
use std::collections::BTreeMap;
use tombolo_types::stream::{Accesses, AtomicResult, ComputeClass, CtaStream, Op, PackedOrder};
use tombolo_types::{LineSize, Order, Scope, Semantics};

/// Maximum number of distinct unknown operations counted by name.
const MOST_NAMES: usize = 256;
/// First byte of the local memory laid out by [`LocalMemory`]: above every process address, because addresses lie below
/// 2^47. Each stream has a region of this size, and concurrent kernels never share local memory.
const LOCAL_REGION: u64 = 1 << 48;
/// Streams with a separate region.
const LOCAL_REGIONS: u64 = 1 << 12;

/// Statistics about a kernel's instructions beyond its streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    /// Warp instructions.
    pub(super) instructions: u64,
    /// Memory instructions by space.
    pub(super) spaces: Spaces,
    /// Memory instructions with active lanes but no addresses: their traffic is unknown.
    pub(super) addressless: u64,
    /// Generic accesses treated as global because the header lacks base addresses.
    pub(super) unresolved: u64,
    /// Waits for copies to the scratchpad without a stated limit for outstanding groups.
    pub(super) blind_waits: u64,
    /// Unknown operations by name.
    pub(super) unknown: BTreeMap<String, u64>,
    /// Unknown operations whose names did not fit in `unknown`.
    pub(super) unnamed: u64,
}

/// Translates a kernel's warps in sequence.
pub(super) struct Translator {
    line_size: LineSize,
    shared_base: u64,
    local_base: u64,
    local: LocalMemory,
    /// Warp index in the grid.
    warp: u64,
    /// First operation index for the warp.
    first: usize,
    board: Scoreboard,
    chains: Chains,
    /// Scope of the warp's latest strong access or fence.
    scope: Scope,
    /// Set when the warp has fenced and not loaded anything since.
    acquired: bool,
    pub(super) census: Census,
}

impl Translator {
    /// A translator for the kernel of `header` in the program's stream number `stream`.
    pub(super) fn new(header: &Header, stream: u64, line_size: LineSize) -> Translator {
        let warps = u64::from(header.blocks()) * u64::from(header.warps());
        let region = LOCAL_REGION * (1 + stream % LOCAL_REGIONS);
        Translator {
            line_size,
            shared_base: header.shared_base,
            local_base: header.local_base,
            local: LocalMemory { region, warps, base: header.local_base },
            warp: 0,
            first: 0,
            board: Scoreboard::new(),
            chains: Chains::default(),
            scope: Scope::Gpu,
            acquired: false,
            census: Census::default(),
        }
    }

    /// Begins the grid's warp `warp`, at the end of `stream`.
    pub(super) fn begin(&mut self, warp: u64, stream: &CtaStream) {
        self.warp = warp;
        self.first = stream.ops.len();
        self.board.clear();
        self.chains = Chains::default();
        self.scope = Scope::Gpu;
        self.acquired = false;
    }

    /// Appends an instruction to `stream`.
    pub(super) fn push(&mut self, instruction: &Instruction<'_>, stream: &mut CtaStream) -> Result<(), Mismatch> {
        let code = instruction.code;
        self.census.instructions += 1;
        if !code.opcode.known {
            self.count_unknown(&code.name);
        }
        self.wait(instruction, &mut stream.ops);
        let off = instruction.mask == 0;
        match code.opcode.kind {
            OpcodeKind::Compute(class) => self.compute(class, instruction, &mut stream.ops),
            OpcodeKind::Load(space) => self.load(space, instruction, stream)?,
            OpcodeKind::Store(space) => self.store(space, instruction, stream)?,
            OpcodeKind::Atomic(space) => self.atomic(space, instruction, stream)?,
            OpcodeKind::Reduction(space) => self.reduction(space, instruction, stream)?,
            OpcodeKind::CopyToShared => self.copy_to_shared(instruction, stream)?,
            OpcodeKind::CommitCopies => {
                self.board.commit_copies();
                self.compute(ComputeClass::Other, instruction, &mut stream.ops);
            }
            OpcodeKind::WaitCopies => {
                self.census.blind_waits += u64::from(instruction.immediate.is_none() && self.board.has_copies());
                let left = instruction.immediate.unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32;
                self.board.wait_copies(left, &mut stream.ops);
                self.compute(ComputeClass::Other, instruction, &mut stream.ops);
            }
            OpcodeKind::BulkCopy => {
                self.census.addressless += u64::from(!off);
                self.compute(ComputeClass::Other, instruction, &mut stream.ops);
            }
            // Instructions that are predicated off do nothing.
            OpcodeKind::Fence | OpcodeKind::InvalidateL1 | OpcodeKind::Barrier if off => {
                self.compute(ComputeClass::Other, instruction, &mut stream.ops)
            }
            OpcodeKind::Fence => self.fence(code.opcode.order, stream),
            OpcodeKind::InvalidateL1 => self.invalidate_l1(instruction, stream),
            OpcodeKind::Barrier => stream.ops.push(Op::Barrier),
        }
        Ok(())
    }

    /// Waits for all registers that the instruction reads or overwrites. An instruction that is predicated off waits
    /// too: the scoreboard stalls the instruction at issue.
    #[inline]
    fn wait(&mut self, instruction: &Instruction<'_>, ops: &mut Vec<Op>) {
        let code = instruction.code;
        if !matches!(code.opcode.kind, OpcodeKind::Compute(_)) {
            self.chains.wait(self.operand(instruction), ops, self.first);
        }
        for (register, count) in sources(instruction) {
            self.board.wait(register, count, ops);
        }
        for register in code.destinations.as_slice() {
            self.board.wait(*register, code.opcode.value_registers, ops);
        }
    }

    /// Depth of the deepest arithmetic among the instruction's sources.
    #[inline]
    fn operand(&self, instruction: &Instruction<'_>) -> Depth {
        let depths = sources(instruction).map(|(register, count)| self.board.depth(register, count));
        depths.max().unwrap_or(Depth::NONE)
    }

    fn load(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        let opcode = instruction.code.opcode;
        match self.resolve(space, instruction) {
            MemorySpace::Shared => self.shared(instruction, &mut stream.ops),
            MemorySpace::Constant => {
                self.census.spaces.constant += 1;
                self.compute(ComputeClass::Other, instruction, &mut stream.ops);
            }
            space => {
                let accesses = self.coalesce(space, instruction, stream)?;
                self.note_order(opcode.order);
                self.acquired = false;
                stream.ops.push(Op::Load { order: opcode.order, accesses });
                self.issue(instruction);
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        let order = instruction.code.opcode.order;
        match self.resolve(space, instruction) {
            MemorySpace::Shared => self.shared(instruction, &mut stream.ops),
            space => {
                let accesses = self.coalesce(space, instruction, stream)?;
                self.note_order(order);
                stream.ops.push(Op::Store { order, accesses });
            }
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        let order = instruction.code.opcode.order;
        match self.resolve(space, instruction) {
            MemorySpace::Shared => self.shared(instruction, &mut stream.ops),
            space => {
                let accesses = self.coalesce(space, instruction, stream)?;
                self.note_order(order);
                self.acquired = false;
                let returned =
                    instruction.code.destinations.as_slice().iter().any(|register| *register != ZERO_REGISTER);
                let result = if returned { AtomicResult::Returned } else { AtomicResult::Discarded };
                stream.ops.push(Op::Atomic { order, result, accesses });
                if returned {
                    self.issue(instruction);
                }
            }
        }
        Ok(())
    }

    fn reduction(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        let order = instruction.code.opcode.order;
        match self.resolve(space, instruction) {
            MemorySpace::Shared => self.shared(instruction, &mut stream.ops),
            space => {
                let accesses = self.coalesce(space, instruction, stream)?;
                self.note_order(order);
                stream.ops.push(Op::Atomic { order, result: AtomicResult::Discarded, accesses });
            }
        }
        Ok(())
    }

    /// Translates `LDGSTS`, an instruction with two addresses; tracers write a line for each or only the global
    /// address. The line for the scratchpad has offsets below [`WINDOW`], a range without any global address.
    fn copy_to_shared(&mut self, instruction: &Instruction<'_>, stream: &mut CtaStream) -> Result<(), Mismatch> {
        let to_shared =
            instruction.addresses.is_some_and(|addresses| addresses.iter().any(|address| *address < WINDOW));
        if to_shared || self.resolve(MemorySpace::Generic, instruction) == MemorySpace::Shared {
            self.shared(instruction, &mut stream.ops);
            return Ok(());
        }
        let accesses = self.coalesce(MemorySpace::Global, instruction, stream)?;
        self.acquired = false;
        stream.ops.push(Op::Load { order: instruction.code.opcode.order, accesses });
        self.board.issue_copy();
        Ok(())
    }

    fn issue(&mut self, instruction: &Instruction<'_>) {
        let count = instruction.code.opcode.value_registers;
        let first = instruction.code.destinations.as_slice().first();
        // A load that is predicated off changes no register, but counts in the distances.
        self.board.issue(first.filter(|_| instruction.mask != 0).map(|first| (*first, count)));
    }

    fn note_order(&mut self, order: PackedOrder) {
        let order = order.order();
        if order.semantics != Semantics::Weak {
            self.scope = order.scope;
        }
    }

    fn fence(&mut self, order: PackedOrder, stream: &mut CtaStream) {
        self.note_order(order);
        self.acquired = true;
        stream.ops.push(Op::Fence { order });
    }

    /// Translates `CCTL.IVALL`, the end of an acquire: `ld.acquire` is a strong load plus `CCTL.IVALL`, a fence is
    /// `MEMBAR` plus `CCTL.IVALL`. After a fence the instruction adds nothing; after a load it is the acquire, at the
    /// load's scope.
    fn invalidate_l1(&mut self, instruction: &Instruction<'_>, stream: &mut CtaStream) {
        if self.acquired {
            self.compute(ComputeClass::Other, instruction, &mut stream.ops);
            return;
        }
        self.acquired = true;
        stream.ops.push(Op::Fence { order: Order::acquire(self.scope).into() });
    }

    fn shared(&mut self, instruction: &Instruction<'_>, ops: &mut Vec<Op>) {
        self.census.spaces.shared += 1;
        let opcode = instruction.code.opcode;
        let addresses = instruction.addresses.unwrap_or(&[]);
        let counted = addresses.len().min(usize::from(opcode.lanes));
        ops.push(Op::Shared { passes: bank_passes(&addresses[..counted], u64::from(opcode.width)) });
        for register in instruction.code.destinations.as_slice() {
            self.board.compute(*register, opcode.value_registers, Depth::NONE);
        }
    }

    /// Memory space for a generic access, decided by the first active lane.
    fn resolve(&mut self, space: MemorySpace, instruction: &Instruction<'_>) -> MemorySpace {
        if space != MemorySpace::Generic {
            return space;
        }
        let Some(address) = instruction.addresses.and_then(<[u64]>::first) else { return MemorySpace::Global };
        let inside = |base: u64| base != 0 && address.wrapping_sub(base) < WINDOW;
        if inside(self.shared_base) {
            return MemorySpace::Shared;
        }
        if inside(self.local_base) {
            return MemorySpace::Local;
        }
        self.census.unresolved += u64::from(self.shared_base == 0 || self.local_base == 0);
        MemorySpace::Global
    }

    /// Appends the accesses of an instruction to local or device memory.
    fn coalesce(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<Accesses, Mismatch> {
        match space {
            MemorySpace::Local => self.census.spaces.local += 1,
            MemorySpace::Texture => self.census.spaces.texture += 1,
            MemorySpace::Global | MemorySpace::Generic | MemorySpace::Shared | MemorySpace::Constant => {
                self.census.spaces.global += 1
            }
        }
        let bytes = u64::from(instruction.code.opcode.width);
        let mut coalescer = Coalescer::new(&mut stream.accesses, self.line_size);
        match instruction.addresses {
            None => self.census.addressless += u64::from(instruction.mask != 0),
            Some(addresses) if space == MemorySpace::Local => {
                self.local.touch(self.warp, instruction.mask, addresses, bytes, &mut coalescer);
            }
            Some(addresses) => addresses.iter().for_each(|address| coalescer.touch(*address, bytes)),
        }
        coalescer
            .finish()
            .ok_or_else(|| Mismatch::new("an access to at most 255 lines", instruction.code.name.as_bytes()))
    }

    #[cold]
    fn count_unknown(&mut self, name: &str) {
        let operation = name.split('.').next().unwrap_or(name);
        if let Some(count) = self.census.unknown.get_mut(operation) {
            *count += 1;
        } else if self.census.unknown.len() < MOST_NAMES {
            self.census.unknown.insert(operation.to_owned(), 1);
        } else {
            self.census.unnamed += 1;
        }
    }

    /// Appends an arithmetic instruction: the registers determine the chain to lengthen.
    #[inline]
    fn compute(&mut self, class: ComputeClass, instruction: &Instruction<'_>, ops: &mut Vec<Op>) {
        let run = Arithmetic { class, count: 1, chain: 1 };
        let result = self.chains.push(run, self.operand(instruction), ops, self.first);
        let code = instruction.code;
        for register in code.destinations.as_slice() {
            self.board.compute(*register, code.opcode.value_registers, result);
        }
    }
}

/// Source registers of an instruction: the first register and the register count for each operand.
#[inline]
fn sources<'a>(instruction: &Instruction<'a>) -> impl Iterator<Item = (u8, u8)> + use<'a> {
    let code = instruction.code;
    let opcode = code.opcode;
    code.sources.as_slice().iter().enumerate().map(move |(place, register)| {
        let addresses = opcode.address_place() == Some(place);
        (*register, if addresses { opcode.address_registers } else { opcode.value_registers })
    })
}
