//! The state of one resident warp.

use crate::kernel_slot::KernelSlot;
use crate::stall::Stall;
use tombolo_types::Ps;

/// What a warp that is not ready waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: it issues when its sub-core picks it.
    Nothing,
    /// The result in this slot.
    Result(u8),
    /// Any result: as many are outstanding as may be.
    AnyResult,
    /// All its results.
    AllResults,
    /// A miss register.
    MissRegister,
    /// A pending miss of a line it must not use.
    Line,
    /// A store credit.
    StoreCredit,
    /// The other warps of its CTA.
    Barrier,
    /// What its SM has posted.
    Drain,
    /// A plan that its controller runs.
    Sync,
    /// A page that its module may not use so.
    Page,
    /// A flag that so many polls have not found that it will not be seen any more.
    Flag,
}

/// Results that can be outstanding: one bit each.
pub(super) const RESULTS: u8 = 64;

/// One resident warp, in one cache line of the host. When it is ready stands apart, in an array that the scheduler scans.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Warp {
    /// Next instruction, as an index into the CTA's stream.
    pub(super) pc: u32,
    /// One past its last.
    pub(super) end: u32,
    /// Bit `i`: result slot `i` is outstanding.
    pub(super) pending: u64,
    /// Bit `i`: result slot `i` is made of other than one transaction, and its count stands apart.
    pub(super) several: u64,
    /// When the latest L1 hit has its data.
    pub(super) hit_at: Ps,
    /// When the latest scratchpad access has its data.
    pub(super) shared_at: Ps,
    /// The transaction after those of its last memory instruction: the first of its next, where its stream is canonical.
    pub(super) next_access: u32,
    /// CTA slot.
    pub(super) cta: u8,
    /// The kernel of its CTA.
    pub(super) kernel: KernelSlot,
    /// The sub-core of its slot.
    pub(super) sub_core: u8,
    /// The result slot that the next load takes, modulo 64.
    pub(super) next_result: u8,
    /// Transactions of the instruction at hand already issued.
    pub(super) issued: u8,
    /// Polls of the instruction at hand that have failed.
    pub(super) polls: u32,
    /// Stage of the instruction at hand.
    pub(super) stage: u8,
    /// What it waits for.
    pub(super) wait: Wait,
    /// Whether the instruction at hand has taken its result slot.
    pub(super) has_slot: bool,
    /// Whether it is called up by what freed its place: it takes that before those that still queue.
    pub(super) called: bool,
    /// Whether its latest poll found the flag set.
    pub(super) flag_seen: bool,
    /// Whether the plan of the stage at hand has been run.
    pub(super) synced: bool,
    /// What its time counts as until it is ready.
    pub(super) stall: Stall,
    /// Whether an access of its waits for a translation.
    pub(super) translates: bool,
    /// Whether its arithmetic may hold it up.
    pub(super) computes: bool,
}

const _: () = assert!(size_of::<Warp>() == 64);

impl Warp {
    /// A warp in a slot of `sub_core`, about to run instructions `pc..end` of the stream in `cta`, of a kernel.
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
            wait: Wait::Nothing,
            has_slot: false,
            called: false,
            flag_seen: false,
            synced: false,
            stall: Stall::Issue,
            translates: false,
            computes: false,
        }
    }

    /// The slot of the result `distance` results ago (1 is the latest).
    pub(super) fn slot(&self, distance: u8) -> u8 {
        self.next_result.wrapping_sub(distance) % RESULTS
    }

    /// The slot of the instruction at hand, once taken.
    pub(super) fn current_slot(&self) -> u8 {
        self.slot(1)
    }

    /// Takes back the number of the latest result, which has come.
    pub(super) fn forget_latest_result(&mut self) {
        self.next_result = self.next_result.wrapping_sub(1);
    }

    /// Whether a result is outstanding.
    pub(super) fn is_pending(&self, slot: u8) -> bool {
        self.pending >> slot & 1 != 0
    }
}
