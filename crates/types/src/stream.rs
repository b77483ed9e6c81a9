//! The stream of warp instructions, produced by a workload or a trace and consumed by an SM.
//!
//! A program is a list of commands (kernel launches, copies, host accesses); a kernel is a CTA grid. A CTA is decoded
//! into a [`CtaStream`], an arena with compact instructions for each of its warps. Addresses are virtual and already
//! coalesced into lines for the target machine: an instruction carries the line transactions sent by the coalescer.

use crate::address::{Line, LineSize, Mask};
use crate::array::{ArrayInfo, HostPhase};
use crate::devices::LaunchDevices;
use crate::scope::{Order, Scope, Semantics};
use std::fmt;
use std::ops::Range;

/// A line transaction for a warp instruction. The size is 12 bytes, because thousands of warps are resident at once.
/// Fields are therefore copied (`{ access.line } == line`) in comparisons, which would otherwise borrow a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(Rust, packed(4))]
pub struct Access {
    /// The line.
    pub line: Line,
    /// Bytes touched by some lane.
    pub mask: Mask,
}

/// The pipeline occupied by an arithmetic instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ComputeClass {
    /// Single-precision and moves: full rate.
    #[default]
    Fp32,
    /// Integer and address arithmetic.
    Int,
    /// Double precision.
    Fp64,
    /// Transcendentals.
    Special,
    /// Matrix units.
    Tensor,
    /// Control flow, predicates, and all instructions that only take an issue slot.
    Other,
}

impl ComputeClass {
    /// Every class, in discriminant order.
    pub const ALL: [ComputeClass; 6] = [
        ComputeClass::Fp32,
        ComputeClass::Int,
        ComputeClass::Fp64,
        ComputeClass::Special,
        ComputeClass::Tensor,
        ComputeClass::Other,
    ];
}

/// Destination for the result of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicResult {
    /// `atom`: the old value returns to a register; treated like a load in [`Op::Use`].
    Returned,
    /// `red`: nothing returns; posted like a store.
    Discarded,
}

/// A flag event that a waiting CTA can depend on: dense from 0 within one kernel, assigned by the workload in canonical
/// order. See [`Op::WaitUntil`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

impl Token {
    /// The largest token: a table with one bit per token needs 8 MiB. Source: assumed, far more than the flags set by a
    /// recorded kernel.
    pub const MAX: Token = Token(1 << 26);
}

/// Accesses by one instruction: a range in [`CtaStream::accesses`]. The size is 5 bytes, for an [`Op`] of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(Rust, packed)]
pub struct Accesses {
    /// Index of the first access.
    pub start: u32,
    /// Number of accesses: 0 (all lanes off) to 255.
    pub len: u8,
}

impl Accesses {
    /// The range as indices.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// [`Order`] in one byte: semantics × 4 + scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PackedOrder(u8);

impl From<Order> for PackedOrder {
    fn from(order: Order) -> PackedOrder {
        PackedOrder((order.semantics as u8) * 4 + order.scope as u8)
    }
}

impl PackedOrder {
    /// The byte, for a file.
    pub fn to_byte(self) -> u8 {
        self.0
    }

    /// The order represented by a byte, or `None` if the byte is invalid.
    pub fn from_byte(byte: u8) -> Option<PackedOrder> {
        (byte / 4 <= Semantics::SequentiallyConsistent as u8 && byte % 4 <= Scope::Sys as u8)
            .then_some(PackedOrder(byte))
    }

    /// The unpacked order.
    pub fn order(self) -> Order {
        let semantics = match self.0 / 4 {
            0 => Semantics::Weak,
            1 => Semantics::Relaxed,
            2 => Semantics::Acquire,
            3 => Semantics::Release,
            4 => Semantics::AcquireRelease,
            _ => Semantics::SequentiallyConsistent,
        };
        let scope = match self.0 % 4 {
            0 => Scope::Cta,
            1 => Scope::Gpu,
            _ => Scope::Sys,
        };
        Order { semantics, scope }
    }
}

/// Dependences between a run of arithmetic instructions and the neighbouring instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChainLinks {
    /// Set if the run's chain continues the warp's path. Otherwise the chain starts when its first instruction issues.
    pub joins: bool,
    /// Set if the next non-arithmetic instruction needs the path's result.
    pub awaited: bool,
}

/// A warp instruction, or a marker between two (`Use`, `Signal`) that takes no issue slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `count` arithmetic instructions in one class, back to back, with the dependences inside the run.
    ///
    /// The path in a warp's arithmetic is the longest chain of dependent instructions since the warp's latest
    /// instruction of a different kind. A run parallel to the path has a `chain` of 0.
    Compute {
        /// Pipeline.
        class: ComputeClass,
        /// Number of warp instructions, which must be at least 1.
        count: u16,
        /// Number of instructions by which the run lengthens the path, 0 to `count`. All these instructions form a
        /// dependent chain.
        chain: u16,
        /// Dependences on the neighbouring instructions.
        links: ChainLinks,
    },
    /// A load from global or local memory. Does not block its warp. A load without `accesses` completes at once.
    Load {
        /// Semantics and scope.
        order: PackedOrder,
        /// Lines.
        accesses: Accesses,
    },
    /// A posted store.
    Store {
        /// Semantics and scope.
        order: PackedOrder,
        /// Lines with the bytes written.
        accesses: Accesses,
    },
    /// A read-modify-write at the home for its scope.
    Atomic {
        /// Semantics and scope.
        order: PackedOrder,
        /// States if the warp can wait for the old value.
        result: AtomicResult,
        /// Lines with the bytes updated.
        accesses: Accesses,
    },
    /// A memory fence.
    Fence {
        /// Semantics and scope.
        order: PackedOrder,
    },
    /// An access to the CTA's scratchpad ("shared memory", LDS).
    Shared {
        /// Passes needed because of bank conflicts, at least 1.
        passes: u16,
    },
    /// CTA barrier: waits for every warp in the CTA, except ended warps.
    Barrier,
    /// Not an instruction: the next instruction needs the result of an earlier load or returning atomic. `distance`
    /// counts back over these operations (1 = the latest), up to 64. Older results are complete by rule: a warp with 64
    /// results outstanding waits for the oldest before it issues another operation.
    Use {
        /// 1 to 64; 0 stands for the results of all previous arithmetic.
        distance: u8,
    },
    /// Spins with loads to one line until the store with `token` is visible. An acquiring wait acquires once, after it
    /// has seen the store; a fence after relaxed waits may acquire for all waits. [`Op::Use`] does not count these
    /// loads, regardless of the poll count.
    WaitUntil {
        /// Semantics (acquire or relaxed) and scope of the polling loads.
        order: PackedOrder,
        /// Index of the flag's line in [`CtaStream::accesses`].
        access: u32,
        /// Awaited token: an index into [`CtaStream::tokens`].
        token: u16,
    },
    /// Not an instruction: the store or atomic directly before leaves this token when it performs.
    Signal {
        /// Index into [`CtaStream::tokens`].
        token: u16,
    },
}

const _: () = assert!(size_of::<Op>() == 8 && size_of::<Access>() == 12);

impl Op {
    /// `count` arithmetic instructions that only occupy their pipeline: no instruction waits for their results.
    pub fn occupy(class: ComputeClass, count: u16) -> Op {
        Op::Compute { class, count, chain: 0, links: ChainLinks::default() }
    }

    /// Number of warp instructions represented.
    pub fn instructions(&self) -> u64 {
        match self {
            Op::Compute { count, .. } => u64::from(*count),
            Op::Use { .. } | Op::Signal { .. } => 0,
            Op::Load { .. }
            | Op::Store { .. }
            | Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Shared { .. }
            | Op::Barrier
            | Op::WaitUntil { .. } => 1,
        }
    }
}

/// Decoded instructions of one CTA. Reused from CTA to CTA: [`CtaStream::clear`] keeps the allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtaStream {
    /// All instructions, warp after warp.
    pub ops: Vec<Op>,
    /// Range in `ops` for each warp, indexed by warp in the CTA.
    pub warps: Vec<Range<u32>>,
    /// All line transactions.
    pub accesses: Vec<Access>,
    /// Tokens named by `WaitUntil` and `Signal`.
    pub tokens: Vec<Token>,
}

impl CtaStream {
    /// Empties the stream.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.warps.clear();
        self.accesses.clear();
        self.tokens.clear();
    }

    /// Total number of warp instructions over all warps.
    pub fn instructions(&self) -> u64 {
        self.ops.iter().map(Op::instructions).sum()
    }
}

/// Communication between a kernel's CTAs: states if CTAs may see each other's writes during the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelClass {
    /// No CTA reads data written by another CTA within the kernel; reductions commute.
    #[default]
    Independent,
    /// CTAs wait for each other: all must be resident at once.
    Cooperative,
}

/// Properties of a kernel that the hardware must know before the launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelInfo {
    /// Name, for reports.
    pub name: String,
    /// CTAs in the grid.
    pub ctas: u32,
    /// Threads per CTA.
    pub threads_per_cta: u32,
    /// Scratchpad bytes per CTA.
    pub shared_bytes: u32,
    /// Registers per thread; 0 if unknown.
    pub registers: u32,
    /// Communication between the CTAs.
    pub class: KernelClass,
    /// Program's division of the grid over GPUs: the first CTA on each GPU used by the launch, ascending from 0. Empty
    /// if the program does not specify it.
    pub parts: Vec<u32>,
}

impl KernelInfo {
    /// Warps per CTA, with `width` lanes each.
    pub fn warps(&self, width: u32) -> u32 {
        self.threads_per_cta.div_ceil(width).max(1)
    }
}

/// An entry in a program, in the order issued by the host.
///
/// - A launch waits for earlier launches in its stream. All streams are equal: number 0 is not special, and waits for
///   none.
/// - All other commands are synchronous on the host: they run after every earlier command in any stream, and every
///   later command waits for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Run kernel `kernel` (an index into [`Program::kernels`]).
    Launch {
        /// Index of the kernel.
        kernel: u32,
        /// Stream of the host program.
        stream: u32,
        /// Devices that run the kernel.
        on: LaunchDevices,
    },
    /// Copy `bytes` between host and device memory.
    Copy {
        /// Device address.
        address: u64,
        /// Number of bytes.
        bytes: u64,
        /// True if device memory is the destination.
        to_device: bool,
    },
    /// The host program reads and writes arrays. This takes no time: the host's own work is not modelled.
    Host {
        /// Index into [`Program::host_phases`].
        phase: u32,
    },
    /// The host waits for all streams (`cudaDeviceSynchronize` on every device). This takes no time by itself.
    Barrier,
}

impl Command {
    /// A launch on the whole machine.
    pub fn launch(kernel: u32, stream: u32) -> Command {
        Command::Launch { kernel, stream, on: LaunchDevices::All }
    }

    /// Index of the launched kernel, if the command is a launch.
    pub fn kernel(&self) -> Option<u32> {
        match *self {
            Command::Launch { kernel, .. } => Some(kernel),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
        }
    }
}

/// Error: a CTA could not be decoded, because the recording is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// Description of the error, with file and position if available.
    pub message: String,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StreamError {}

/// A host phase without accesses.
static NOTHING: HostPhase = HostPhase { reads: Vec::new(), writes: Vec::new() };

/// A recorded program: the same stream for every design, thread count and run.
///
/// `cta` may be called from any thread, in any order, any number of times, and returns the same stream.
pub trait Program: Send + Sync {
    /// Name, for reports.
    fn name(&self) -> &str;
    /// Line size used for coalescing the addresses.
    fn line_size(&self) -> LineSize;
    /// Lanes per warp.
    fn warp_width(&self) -> u32;
    /// Kernels, each launched once or more by a command.
    fn kernels(&self) -> &[KernelInfo];
    /// Commands in host order.
    fn commands(&self) -> &[Command];
    /// Arrays in address order, no two of which share a line. Empty if no names are known: in traces from hardware, and
    /// in programs written line by line.
    fn arrays(&self) -> &[ArrayInfo] {
        &[]
    }
    /// Host phases between commands, each referenced once or more by a [`Command::Host`]. Accesses before the first
    /// command and after the last are listed separately: see [`Program::setup`] and [`Program::results`]. A program
    /// with copies lists both the host's accesses and the copied data.
    fn host_phases(&self) -> &[HostPhase] {
        &[]
    }
    /// Host accesses before the first command: writes with the arrays' initial contents. They include the values set by
    /// the host's code, and the data copied to the device before the first launch, because copied data has contents.
    /// Arrays never set are not included: outputs, scratch, and arrays cleared by the device itself. Writes by a phase
    /// before the first launch are not included either.
    ///
    /// Empty if unknown: in programs written line by line, and in old native traces. In traces from hardware, the setup
    /// consists of the copies before the first launch.
    fn setup(&self) -> &HostPhase {
        &NOTHING
    }
    /// Host accesses after the last command: reads of results. By rule, they are the copies from the device after the
    /// last launch, except for data read by a phase after this launch. The result is equal for a workload recorded with
    /// contents or without, completely or in part, and for a trace.
    ///
    /// A check of a workload against its reference reads more, including inputs, but only in tests: it does not count.
    /// Empty if a program copies nothing back.
    fn results(&self) -> &HostPhase {
        &NOTHING
    }
    /// Decodes CTA `cta` in kernel `kernel` into `into`, which is cleared first.
    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_arithmetic_stand_at_their_discriminants() {
        assert!((0..).zip(ComputeClass::ALL).all(|(place, class)| class as usize == place));
    }

    #[test]
    fn an_order_survives_packing() {
        for byte in 0..=255 {
            if let Some(packed) = PackedOrder::from_byte(byte) {
                assert_eq!(PackedOrder::from(packed.order()).to_byte(), byte);
            }
        }
        assert_eq!(PackedOrder::from_byte(3), None);
        assert_eq!(PackedOrder::from_byte(24), None);
    }
}
