//! The stream of warp instructions: what a workload or a trace produces and an SM consumes.
//!
//! A program is a list of commands (kernel launches, copies, accesses of the host); a kernel is a grid of CTAs; a CTA is decoded
//! into a [`CtaStream`], an arena of compact instructions for each of its warps. Addresses are virtual and
//! already coalesced into lines of the machine the stream was made for, so one instruction carries the
//! line transactions that leave the coalescer.

use crate::address::{Line, LineSize, Mask};
use crate::array::{ArrayInfo, HostPhase};
use crate::devices::On;
use crate::scope::{Order, Scope, Semantics};
use std::fmt;
use std::ops::Range;

/// One line transaction of a warp instruction. In 12 bytes, for thousands of warps are resident at once; so fields are
/// copied (`{ access.line } == line`) where a comparison would borrow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(Rust, packed(4))]
pub struct Access {
    /// The line.
    pub line: Line,
    /// The bytes of it that some lane touches.
    pub mask: Mask,
}

/// The pipeline an arithmetic instruction occupies.
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
    /// Control flow, predicates, everything that only takes an issue slot.
    Other,
}

impl ComputeClass {
    /// Every class, in the order of their discriminants.
    pub const ALL: [ComputeClass; 6] = [
        ComputeClass::Fp32,
        ComputeClass::Int,
        ComputeClass::Fp64,
        ComputeClass::Special,
        ComputeClass::Tensor,
        ComputeClass::Other,
    ];
}

/// Where an atomic's result goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicResult {
    /// `atom`: the old value returns to a register; counts as a load for [`Op::Use`].
    Returned,
    /// `red`: nothing returns; posted like a store.
    Discarded,
}

/// A flag event that a waiting CTA can depend on: dense from 0 within one kernel, assigned by the workload
/// in canonical order. See [`Op::WaitUntil`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

impl Token {
    /// The largest: who keeps a bit for each needs 8 MiB. Source: assumed, far more than the flags a recorded kernel sets.
    pub const MAX: Token = Token(1 << 26);
}

/// The accesses of one instruction: a range of [`CtaStream::accesses`]. In 5 bytes, so that an [`Op`] takes 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(Rust, packed)]
pub struct Accesses {
    /// Index of the first.
    pub start: u32,
    /// How many: 0 (all lanes off) to 255.
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

    /// The order a byte stands for, or `None` where it stands for none.
    pub fn from_byte(byte: u8) -> Option<PackedOrder> {
        (byte / 4 <= Semantics::SequentiallyConsistent as u8 && byte % 4 <= Scope::Sys as u8)
            .then_some(PackedOrder(byte))
    }

    /// The order.
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

/// How a run of arithmetic hangs together with its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Links {
    /// Its chain goes on where the path before it ends. Otherwise it starts when its first instruction issues.
    pub joins: bool,
    /// The instruction behind it that is no arithmetic needs the path's result.
    pub awaited: bool,
}

/// One warp instruction, or a marker between two (`Use`, `Signal`) that takes no issue slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `count` arithmetic instructions of one class, back to back, with the dependences among them.
    ///
    /// The path of a warp's arithmetic is its longest chain of dependent instructions since its latest instruction of
    /// another kind. A run that fits beside it has a `chain` of 0.
    Compute {
        /// Pipeline.
        class: ComputeClass,
        /// Warp instructions, at least 1.
        count: u16,
        /// Instructions by which the run lengthens the path, 0 to `count`. All of them follow one another.
        chain: u16,
        /// How it hangs together with what stands around it.
        links: Links,
    },
    /// A load from global or local memory. Does not block its warp. `accesses` of length 0 completes at once.
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
    /// A read-modify-write at the home of its scope.
    Atomic {
        /// Semantics and scope.
        order: PackedOrder,
        /// Whether the warp can wait for the old value.
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
    /// CTA barrier: waits for every warp of the CTA that has not ended.
    Barrier,
    /// Not an instruction: the next instruction needs the result of the load or returning atomic issued
    /// `distance` such operations ago (1 = the latest). Up to 64; older ones are complete by rule: a warp
    /// with 64 results outstanding waits for the oldest before it issues another.
    Use {
        /// 1 to 64; 0: the results of all arithmetic before it.
        distance: u8,
    },
    /// Spins with loads of one line until the store that left `token` is visible. One that acquires does so once, when
    /// it has seen it; behind relaxed ones a fence may acquire for all. No [`Op::Use`] counts it, however often it polls.
    WaitUntil {
        /// Semantics (acquire or relaxed) and scope of the polling loads.
        order: PackedOrder,
        /// Index of the flag's line in [`CtaStream::accesses`].
        access: u32,
        /// What it waits for: an index into [`CtaStream::tokens`].
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
    /// `count` arithmetic instructions that only occupy their pipeline: nothing waits for one of them.
    pub fn occupy(class: ComputeClass, count: u16) -> Op {
        Op::Compute { class, count, chain: 0, links: Links::default() }
    }

    /// Warp instructions it stands for.
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

/// The decoded instructions of one CTA. Reused from CTA to CTA: [`CtaStream::clear`] keeps the allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CtaStream {
    /// All instructions, warp after warp.
    pub ops: Vec<Op>,
    /// The range of `ops` of each warp, indexed by warp of the CTA.
    pub warps: Vec<Range<u32>>,
    /// All line transactions.
    pub accesses: Vec<Access>,
    /// Tokens named by `WaitUntil` and `Signal`.
    pub tokens: Vec<Token>,
}

impl CtaStream {
    /// Empties it.
    pub fn clear(&mut self) {
        self.ops.clear();
        self.warps.clear();
        self.accesses.clear();
        self.tokens.clear();
    }

    /// Warp instructions of all warps.
    pub fn instructions(&self) -> u64 {
        self.ops.iter().map(Op::instructions).sum()
    }
}

/// Whether CTAs of a kernel may see each other's writes while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelClass {
    /// No CTA reads what another writes within the kernel; reductions commute.
    #[default]
    Independent,
    /// CTAs wait for each other: all must be resident at once.
    Cooperative,
}

/// What the hardware needs to know of a kernel before it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelInfo {
    /// Name, for reports.
    pub name: String,
    /// CTAs of the grid.
    pub ctas: u32,
    /// Threads of a CTA.
    pub threads_per_cta: u32,
    /// Scratchpad bytes of a CTA.
    pub shared_bytes: u32,
    /// Registers of a thread; 0 where unknown.
    pub registers: u32,
    /// Whether its CTAs wait for each other.
    pub class: KernelClass,
    /// How the program cuts the grid over GPUs: the first CTA of each of those it is launched on, ascending from 0. Empty
    /// where it does not say.
    pub parts: Vec<u32>,
}

impl KernelInfo {
    /// Warps of a CTA, of `width` lanes each.
    pub fn warps(&self, width: u32) -> u32 {
        self.threads_per_cta.div_ceil(width).max(1)
    }
}

/// One entry of a program, in the order the host issues them.
///
/// - A launch waits for the launches of its stream before it. Streams are equal: number 0 waits for no other.
/// - All else is the host's, which waits for it: it comes behind every command before it, of whatever stream, and every
///   command behind it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Run kernel `kernel` (an index into [`Program::kernels`]).
    Launch {
        /// Index of the kernel.
        kernel: u32,
        /// Stream of the host program.
        stream: u32,
        /// Where it runs.
        on: On,
    },
    /// Copy `bytes` between host and device memory.
    Copy {
        /// Device address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Whether device memory is the destination.
        to_device: bool,
    },
    /// The host program reads and writes arrays. It takes no time: the host's own work is not modelled.
    Host {
        /// Index into [`Program::host_phases`].
        phase: u32,
    },
    /// The host waits for all streams (`cudaDeviceSynchronize` on every device). It takes no time of its own.
    Barrier,
}

impl Command {
    /// A launch on the whole machine.
    pub fn launch(kernel: u32, stream: u32) -> Command {
        Command::Launch { kernel, stream, on: On::All }
    }

    /// The kernel, where it launches one.
    pub fn kernel(&self) -> Option<u32> {
        match *self {
            Command::Launch { kernel, .. } => Some(kernel),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => None,
        }
    }
}

/// A CTA could not be decoded: the recording is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// What is wrong, with file and position where there is one.
    pub message: String,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StreamError {}

/// A host that does nothing.
static NOTHING: HostPhase = HostPhase { reads: Vec::new(), writes: Vec::new() };

/// A recorded program: the same stream for every design, thread count and run.
///
/// `cta` may be called from any thread, in any order, any number of times, and returns the same stream.
pub trait Program: Send + Sync {
    /// Name, for reports.
    fn name(&self) -> &str;
    /// Line size that addresses were coalesced for.
    fn line_size(&self) -> LineSize;
    /// Lanes of a warp.
    fn warp_width(&self) -> u32;
    /// Kernels, each launched once or more by a command.
    fn kernels(&self) -> &[KernelInfo];
    /// Commands in host order.
    fn commands(&self) -> &[Command];
    /// Arrays in order of address, no two of which share a line. Empty where nobody named them: in traces of hardware,
    /// and in programs written line by line.
    fn arrays(&self) -> &[ArrayInfo] {
        &[]
    }
    /// What the host does between other commands, each named once or more by a [`Command::Host`]. What it does before the
    /// first command and behind the last is not there: see [`Program::setup`] and [`Program::results`]. A program that
    /// copies names both: what its host touches, and what a copy moves.
    fn host_phases(&self) -> &[HostPhase] {
        &[]
    }
    /// What the host does before the first command: it writes what arrays hold then. That is what its code sets, and what it
    /// copies to the device before the first launch, for what is copied has contents. Arrays that nobody sets are not there:
    /// outputs, scratch, and what the device itself clears. Nor is what a phase before the first launch writes.
    ///
    /// Empty where nobody knows: in programs written line by line, and in old native traces. In traces of hardware it is
    /// the copies before the first launch.
    fn setup(&self) -> &HostPhase {
        &NOTHING
    }
    /// What the host does behind the last command: it reads results. The rule: what it copies from the device behind the
    /// last launch, but for what a phase behind that launch reads. It is the same for a workload recorded with contents or
    /// without, in whole or in part, and for a trace.
    ///
    /// A check of a workload against its reference reads more, inputs among it, and only in tests: it does not count.
    /// Empty where a program copies nothing back.
    fn results(&self) -> &HostPhase {
        &NOTHING
    }
    /// Decodes CTA `cta` of kernel `kernel` into `into`, which is cleared first.
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
