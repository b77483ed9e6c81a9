//! Translation of a warp's instructions into stream operations.

use super::census::Census;
use super::coalescer::{Coalescer, LocalMemory, bank_passes, lane_passes};
use super::header::Header;
use super::instruction::Instruction;
use super::lanes::{LaneSubset, Windows};
use super::opcode::{MemorySpace, OpcodeKind};
use super::scoreboard::{Scoreboard, ZERO_REGISTER};
use crate::chains::{Arithmetic, Chains, Depth};
use crate::trace::error::Mismatch;
use tombolo_types::stream::{Accesses, AtomicResult, ComputeClass, CtaStream, Op, PackedOrder};
use tombolo_types::{LineSize, Order, Scope, Semantics};

/// First byte of the local memory laid out by [`LocalMemory`]: above every process address, because addresses lie below
/// 2^47. Each stream has a region of this size, and concurrent kernels never share local memory.
const LOCAL_REGION: u64 = 1 << 48;
/// Streams with a separate region.
const LOCAL_REGIONS: u64 = 1 << 12;

/// Translates a kernel's warps in sequence.
pub(super) struct Translator {
    line_size: LineSize,
    windows: Windows,
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
            windows: Windows::new(header),
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

    /// Begins a thread block with the given rank in its cluster.
    pub(super) fn begin_block(&mut self, rank: u32) {
        self.windows.rank = rank;
        self.census.ranked += u64::from(rank > 0);
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
        self.census.count(instruction);
        if code.opcode.kind == OpcodeKind::Marker {
            return Ok(());
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
                if instruction.bulk.is_none() {
                    self.census.addressless(instruction);
                }
                self.compute(ComputeClass::Other, instruction, &mut stream.ops);
            }
            OpcodeKind::Prefetch => self.prefetch(instruction, stream)?,
            OpcodeKind::Marker => {}
            // Instructions that are predicated off do nothing.
            OpcodeKind::Fence | OpcodeKind::InvalidateL1 | OpcodeKind::Barrier if off => {
                self.compute(ComputeClass::Other, instruction, &mut stream.ops)
            }
            OpcodeKind::Fence => self.fence(code.opcode.order, stream),
            OpcodeKind::InvalidateL1 => self.invalidate_l1(instruction, stream),
            OpcodeKind::Barrier => {
                self.census.count_barrier(instruction);
                stream.ops.push(Op::Barrier);
            }
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
        self.by_space(space, instruction, stream, |this, space, instruction, stream| {
            match space {
                MemorySpace::Shared => this.shared(instruction, &mut stream.ops),
                MemorySpace::Constant => {
                    this.census.spaces.constant += 1;
                    this.compute(ComputeClass::Other, instruction, &mut stream.ops);
                }
                space => {
                    let accesses = this.coalesce(space, instruction, stream)?;
                    this.note_order(instruction.code.opcode.order);
                    this.acquired = false;
                    stream.ops.push(Op::Load { order: load_order(instruction), accesses });
                    this.issue(instruction);
                }
            }
            Ok(())
        })
    }

    fn store(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        self.by_space(space, instruction, stream, |this, space, instruction, stream| {
            let order = instruction.code.opcode.order;
            match space {
                MemorySpace::Shared => this.shared(instruction, &mut stream.ops),
                space => {
                    let accesses = this.coalesce(space, instruction, stream)?;
                    this.note_order(order);
                    stream.ops.push(Op::Store { order, accesses });
                }
            }
            Ok(())
        })
    }

    fn atomic(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        self.by_space(space, instruction, stream, |this, space, instruction, stream| {
            let order = instruction.code.opcode.order;
            match space {
                MemorySpace::Shared => this.shared(instruction, &mut stream.ops),
                space => {
                    let accesses = this.coalesce(space, instruction, stream)?;
                    this.note_order(order);
                    this.acquired = false;
                    let destinations = instruction.code.destinations.as_slice();
                    let returned = destinations.iter().any(|register| *register != ZERO_REGISTER);
                    let result = if returned { AtomicResult::Returned } else { AtomicResult::Discarded };
                    stream.ops.push(Op::Atomic { order, result, accesses });
                    if returned {
                        this.issue(instruction);
                    }
                }
            }
            Ok(())
        })
    }

    fn reduction(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
    ) -> Result<(), Mismatch> {
        self.by_space(space, instruction, stream, |this, space, instruction, stream| {
            let order = instruction.code.opcode.order;
            match space {
                MemorySpace::Shared => this.shared(instruction, &mut stream.ops),
                space => {
                    let accesses = this.coalesce(space, instruction, stream)?;
                    this.note_order(order);
                    stream.ops.push(Op::Atomic { order, result: AtomicResult::Discarded, accesses });
                }
            }
            Ok(())
        })
    }

    /// Translates a prefetch: a load for which nothing waits.
    fn prefetch(&mut self, instruction: &Instruction<'_>, stream: &mut CtaStream) -> Result<(), Mismatch> {
        self.by_space(MemorySpace::Generic, instruction, stream, |this, space, instruction, stream| {
            match space {
                MemorySpace::Shared => this.compute(ComputeClass::Other, instruction, &mut stream.ops),
                space => {
                    let accesses = this.coalesce(space, instruction, stream)?;
                    stream.ops.push(Op::Load { order: load_order(instruction), accesses });
                    this.board.issue(None);
                }
            }
            Ok(())
        })
    }

    /// Translates `LDGSTS`, an instruction with two addresses; tracers write a line for each or only the global
    /// address. All addresses of the line for the scratchpad are in its window. In the line for device memory, a lane
    /// with such an address (null, with a size of 0) reads nothing. Source: PTX ISA, `cp.async`.
    fn copy_to_shared(&mut self, instruction: &Instruction<'_>, stream: &mut CtaStream) -> Result<(), Mismatch> {
        let addresses = instruction.addresses.unwrap_or(&[]);
        let windows = self.windows;
        let readable = LaneSubset::of(instruction.mask, addresses, |address| !windows.in_scratchpad(address));
        if readable.is_empty() && !addresses.is_empty() {
            self.shared(instruction, &mut stream.ops);
            return Ok(());
        }
        self.census.null_lanes += (addresses.len() - readable.len()) as u64;
        let device = readable.within(instruction);
        let accesses = self.coalesce(MemorySpace::Global, &device, stream)?;
        self.acquired = false;
        stream.ops.push(Op::Load { order: load_order(instruction), accesses });
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
        let counted = &addresses[..addresses.len().min(usize::from(opcode.lanes))];
        self.census.distributed += u64::from(counted.iter().any(|address| self.windows.is_remote(*address)));
        let passes = if opcode.lanes_in_turn { lane_passes } else { bank_passes };
        ops.push(Op::Shared { passes: passes(counted, u64::from(opcode.width)) });
        for register in instruction.code.destinations.as_slice() {
            self.board.compute(*register, opcode.value_registers, Depth::NONE);
        }
    }

    /// Calls `part` for the accesses of an instruction by memory space. The address of each lane decides the space of a
    /// generic access: lanes in the scratchpad and lanes in device memory become an operation each. Source: PTX ISA,
    /// "Generic Addressing".
    #[inline]
    fn by_space(
        &mut self,
        space: MemorySpace,
        instruction: &Instruction<'_>,
        stream: &mut CtaStream,
        mut part: impl FnMut(&mut Translator, MemorySpace, &Instruction<'_>, &mut CtaStream) -> Result<(), Mismatch>,
    ) -> Result<(), Mismatch> {
        if space != MemorySpace::Generic {
            return part(self, space, instruction, stream);
        }
        let windows = self.windows;
        let addresses = instruction.addresses.unwrap_or(&[]);
        let any = |space| addresses.iter().any(|address| windows.space(*address) == space);
        let (shared, local, global) =
            (any(MemorySpace::Shared), any(MemorySpace::Local), any(MemorySpace::Global) || addresses.is_empty());
        self.census.unresolved += u64::from(global && !addresses.is_empty() && !windows.known());
        let device = match (local, global) {
            (true, false) => MemorySpace::Local,
            (false, true) => MemorySpace::Global,
            _ => MemorySpace::Generic,
        };
        if !(shared && (local || global)) {
            return part(self, if shared { MemorySpace::Shared } else { device }, instruction, stream);
        }
        self.census.mixed += 1;
        let is_shared = |address| windows.space(address) == MemorySpace::Shared;
        let (ours, theirs) = (
            LaneSubset::of(instruction.mask, addresses, is_shared),
            LaneSubset::of(instruction.mask, addresses, |address| !is_shared(address)),
        );
        part(self, MemorySpace::Shared, &ours.within(instruction), stream)?;
        part(self, device, &theirs.within(instruction), stream)
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
            None => self.census.addressless(instruction),
            Some(addresses) if space == MemorySpace::Local => {
                self.local.touch(self.warp, instruction.mask, addresses, bytes, &mut coalescer);
            }
            Some(addresses) if space == MemorySpace::Generic => {
                let is_local = |address| self.windows.space(address) == MemorySpace::Local;
                let local = LaneSubset::of(instruction.mask, addresses, is_local);
                self.local.touch(self.warp, local.mask(), local.addresses(), bytes, &mut coalescer);
                let global = addresses.iter().filter(|address| !is_local(**address));
                global.for_each(|address| coalescer.touch(*address, bytes));
            }
            Some(addresses) => {
                self.census.count_zeros(addresses);
                addresses.iter().for_each(|address| coalescer.touch(*address, bytes));
            }
        }
        coalescer
            .finish()
            .ok_or_else(|| Mismatch::new("an access to at most 255 lines", instruction.code.name.as_bytes()))
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

/// Order of a load. A plain load that the L1 does not keep is read at the GPU's L2, like a relaxed load at GPU scope.
fn load_order(instruction: &Instruction<'_>) -> PackedOrder {
    let opcode = instruction.code.opcode;
    if opcode.past_l1 && opcode.order.order() == Order::WEAK {
        return Order::relaxed(Scope::Gpu).into();
    }
    opcode.order
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
