//! Per-warp state for resident warps.

use crate::observe::stall::Stall;
use crate::sm::kernel_slot::KernelSlot;
use tombolo_types::Ps;

/// Condition awaited by a warp before it can issue again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// No condition: the warp issues when selected by its sub-core.
    Nothing,
    /// Result in this slot.
    Result(u8),
    /// Any result: the maximum number of outstanding results is reached.
    AnyResult,
    /// All outstanding results.
    AllResults,
    /// A free MSHR.
    MissRegister,
    /// Completion of a pending miss on a line not usable by this warp yet.
    Line,
    /// A store credit.
    StoreCredit,
    /// Arrival of the remaining warps in the CTA at their barrier.
    Barrier,
    /// Acknowledgement for all stores posted by the SM.
    Drain,
    /// Completion of the controller's synchronization plan.
    Sync,
    /// A page mapping that permits the access.
    Page,
    /// A flag considered lost after too many unsuccessful polls.
    Flag,
}

/// Maximum number of outstanding results: each is a bit in a word.
pub(super) const RESULTS: u8 = 64;

/// Resident warp, in a single host cache line. Ready times are kept in a separate array for the scheduler's scan.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Warp {
    /// Index of the next instruction in the CTA's stream.
    pub(super) pc: u32,
    /// End index: past the last instruction.
    pub(super) end: u32,
    /// Bit `i`: result slot `i` is outstanding.
    pub(super) pending: u64,
    /// Bit `i`: result slot `i` depends on several transactions (or none); a separate counter tracks the outstanding
    /// transactions.
    pub(super) several: u64,
    /// Data arrival time for the latest L1 hit.
    pub(super) hit_at: Ps,
    /// Data arrival time for the latest scratchpad access.
    pub(super) shared_at: Ps,
    /// Index of the transaction after the last memory instruction's transactions: the next instruction's first
    /// transaction if the stream is canonical.
    pub(super) next_access: u32,
    /// CTA slot.
    pub(super) cta: u8,
    /// Slot for the CTA's kernel.
    pub(super) kernel: KernelSlot,
    /// Sub-core index for this warp.
    pub(super) sub_core: u8,
    /// Result slot for the next load, modulo 64.
    pub(super) next_result: u8,
    /// Number of transactions already issued for the current instruction.
    pub(super) issued: u8,
    /// Failed poll count for the current instruction.
    pub(super) polls: u32,
    /// Stage of the current instruction.
    pub(super) stage: u8,
    /// Condition awaited by the warp.
    pub(super) wait: WaitReason,
    /// True if the current instruction has allocated its result slot.
    pub(super) has_slot: bool,
    /// True while the warp is resumed by a freed resource: the resource is reserved ahead of queued warps.
    pub(super) has_priority: bool,
    /// True if the latest poll found the flag set.
    pub(super) flag_seen: bool,
    /// True if the current stage's synchronization plan has completed.
    pub(super) synced: bool,
    /// Stall category for the warp's time until ready.
    pub(super) stall: Stall,
    /// True if an access of this warp waits for a translation.
    pub(super) translates: bool,
    /// True if unfinished arithmetic may delay the warp.
    pub(super) computes: bool,
}

const _: () = assert!(size_of::<Warp>() == 64);

impl Warp {
    /// Creates a warp in a slot of `sub_core`, ready to run instructions `pc..end` in CTA slot `cta` for a kernel.
    pub(super) fn new(sub_core: u8, (cta, kernel): (u8, KernelSlot), pc: u32, end: u32) -> Warp {
        Warp {
            pc,
            end,
            pending: 0,
            several: 0,
            hit_at: Ps::ZERO,
            shared_at: Ps::ZERO,
            next_access: 0,
            cta,
            kernel,
            sub_core,
            next_result: 0,
            issued: 0,
            polls: 0,
            stage: 0,
            wait: WaitReason::Nothing,
            has_slot: false,
            has_priority: false,
            flag_seen: false,
            synced: false,
            stall: Stall::Issue,
            translates: false,
            computes: false,
        }
    }

    /// Slot of the result `distance` results ago (1 is the latest).
    pub(super) fn slot(&self, distance: u8) -> u8 {
        self.next_result.wrapping_sub(distance) % RESULTS
    }

    /// Result slot for the current instruction, after allocation.
    pub(super) fn current_slot(&self) -> u8 {
        self.slot(1)
    }

    /// Releases the latest result number after the result has been consumed.
    pub(super) fn forget_latest_result(&mut self) {
        self.next_result = self.next_result.wrapping_sub(1);
    }

    /// True if the result in `slot` is outstanding.
    pub(super) fn is_pending(&self, slot: u8) -> bool {
        self.pending >> slot & 1 != 0
    }
}
