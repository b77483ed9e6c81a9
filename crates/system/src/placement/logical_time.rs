//! Logical times for the touches in a launch: an order that no SM, no link and no competing touch influences.
//!
//! | step in a warp | logical time |
//! | --- | --- |
//! | the first | the CTA's wave, with no instruction before it |
//! | an instruction | one after the warp's preceding instruction |
//! | after a wait for a flag | at least one after the store or atomic that sets the flag |
//! | after a CTA barrier | the latest time among the CTA's warps |
//!
//! CTAs are visited module by module, so that a CTA may wait for a flag set by a CTA visited later. Such a CTA is
//! suspended. From its remaining instructions, only first page touches, flags, waits and barriers are kept. The CTA
//! resumes when its flags are set.
//!
//! A wait for a flag that no CTA in the launch sets causes no delay: the run itself reports such a deadlock.

use crate::survey::{Touch, touch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::slice;
use tombolo_types::stream::{Access, CtaStream, Op, Token};
use tombolo_types::{ModuleId, Page};

/// Logical time of a touch within a launch. Earlier touches compare as less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TouchTime {
    /// CTA's rank within its module, divided by the number of CTAs resident on a module.
    wave: u32,
    /// Instructions before the touch, in the touching warp and in all warps awaited by this warp.
    step: u32,
}

impl TouchTime {
    /// First moment in a wave.
    pub(super) fn of_wave(wave: u32) -> TouchTime {
        TouchTime { wave, step: 0 }
    }

    /// The moment `instructions` instructions later.
    fn later(self, instructions: u32) -> TouchTime {
        TouchTime { step: self.step.saturating_add(instructions), ..self }
    }
}

/// A step in a warp that matters for the order between touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarpStep {
    /// A touch to a page.
    Touch(Page),
    /// A store or atomic sets a flag.
    Signal(Token),
    /// The warp waits for a flag.
    Wait(Token),
    /// The warp waits for its CTA.
    Barrier,
    /// The warp ends.
    End,
}

/// A step, with the number of preceding instructions in its warp.
type NumberedStep = (WarpStep, u32);

/// Iterator over a warp's steps, derived from its instructions.
struct WarpSteps<'a> {
    stream: &'a CtaStream,
    touches: TouchFilter,
    ops: slice::Iter<'a, Op>,
    /// Line transactions left to visit in the latest instruction.
    accesses: slice::Iter<'a, Access>,
    /// Page in the latest touch: another touch to this page is no first touch.
    latest: Option<Page>,
    /// The next step after the last pending transaction.
    behind: Option<WarpStep>,
    /// Number of instructions so far, including the latest.
    instructions: u32,
    ended: bool,
}

/// The relevant touches, and the page size.
#[derive(Clone, Copy, Debug)]
pub(super) struct TouchFilter {
    /// Binary logarithm of the lines per page.
    pub(super) page_shift: u32,
    /// True for each kind of touch that counts.
    pub(super) counts: fn(Touch) -> bool,
}

impl<'a> WarpSteps<'a> {
    fn new(stream: &'a CtaStream, ops: &'a [Op], touches: TouchFilter) -> WarpSteps<'a> {
        let accesses = [].iter();
        let (latest, behind) = (None, None);
        WarpSteps { stream, touches, ops: ops.iter(), accesses, latest, behind, instructions: 0, ended: false }
    }

    /// Index of the latest instruction.
    fn number(&self) -> u32 {
        self.instructions.saturating_sub(1)
    }
}

impl Iterator for WarpSteps<'_> {
    type Item = NumberedStep;

    #[inline]
    fn next(&mut self) -> Option<NumberedStep> {
        loop {
            for access in self.accesses.by_ref() {
                let page = Page({ access.line }.0 >> self.touches.page_shift);
                if self.latest.replace(page) != Some(page) {
                    return Some((WarpStep::Touch(page), self.number()));
                }
            }
            if let Some(step) = self.behind.take() {
                return Some((step, self.number()));
            }
            let Some(op) = self.ops.next() else {
                let ends = !std::mem::replace(&mut self.ended, true);
                return ends.then_some((WarpStep::End, self.instructions));
            };
            self.instructions = self.instructions.saturating_add(op.instructions() as u32);
            if let Some((touch, accesses)) = touch(op)
                && (self.touches.counts)(touch)
            {
                self.accesses = self.stream.accesses[accesses.range()].iter();
            }
            self.behind = match *op {
                Op::Signal { token } => Some(WarpStep::Signal(self.stream.tokens[usize::from(token)])),
                Op::WaitUntil { token, .. } => Some(WarpStep::Wait(self.stream.tokens[usize::from(token)])),
                Op::Barrier => Some(WarpStep::Barrier),
                Op::Compute { .. } | Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => None,
                Op::Fence { .. } | Op::Shared { .. } | Op::Use { .. } => None,
            };
        }
    }
}

/// Progress of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarpProgress {
    Running,
    /// Waiting for a flag.
    Waiting(Token),
    AtBarrier,
    Ended,
}

/// A warp, stopped between two steps.
struct SuspendedWarp<I> {
    steps: I,
    state: WarpProgress,
    /// Moment of instruction number `from`; later instructions follow at consecutive moments.
    moment: TouchTime,
    from: u32,
}

impl<I> SuspendedWarp<I> {
    /// Moment of instruction number `number`.
    fn at(&self, number: u32) -> TouchTime {
        self.moment.later(number - self.from)
    }

    /// Sets the moment of instruction number `number` to `moment`, or later.
    fn resume(&mut self, number: u32, moment: TouchTime) {
        self.moment = self.at(number).max(moment);
        self.from = number;
    }
}

/// A CTA, suspended while some warps wait.
struct SuspendedCta<I> {
    module: ModuleId,
    warps: Vec<SuspendedWarp<I>>,
}

impl<I: Iterator<Item = NumberedStep>> SuspendedCta<I> {
    /// Runs until every warp has ended or waits for a flag. Returns true if all have ended.
    fn run(&mut self, flags: &mut LaunchFlags, touch: &mut impl FnMut(Page, TouchTime, ModuleId)) -> bool {
        loop {
            let known = flags.left.len();
            let mut touch = |page, moment| touch(page, moment, self.module);
            self.warps.iter_mut().for_each(|warp| warp.run(flags, &mut touch));
            let is = |state| move |warp: &SuspendedWarp<I>| warp.state == state;
            let passes = self.warps.iter().any(is(WarpProgress::AtBarrier))
                && self.warps.iter().all(|warp| matches!(warp.state, WarpProgress::AtBarrier | WarpProgress::Ended));
            if passes {
                let latest = self.warps.iter().map(|warp| warp.moment).fold(TouchTime::default(), TouchTime::max);
                for warp in self.warps.iter_mut().filter(|warp| warp.state == WarpProgress::AtBarrier) {
                    (warp.moment, warp.state) = (latest, WarpProgress::Running);
                }
            } else if flags.left.len() == known {
                return self.warps.iter().all(is(WarpProgress::Ended));
            }
        }
    }
}

impl<I: Iterator<Item = NumberedStep>> SuspendedWarp<I> {
    /// Runs until the warp ends or waits.
    fn run(&mut self, flags: &mut LaunchFlags, touch: &mut impl FnMut(Page, TouchTime)) {
        if let WarpProgress::Waiting(token) = self.state
            && let Some(&left) = flags.left.get(&token)
        {
            self.resume(self.from, left.later(1));
            self.state = WarpProgress::Running;
        }
        while self.state == WarpProgress::Running
            && let Some((step, number)) = self.steps.next()
        {
            match step {
                WarpStep::Touch(page) => touch(page, self.at(number)),
                WarpStep::Signal(token) => flags.leave(token, self.at(number)),
                WarpStep::Wait(token) => {
                    let left = flags.get_or_wait(token);
                    self.resume(number + 1, left.map_or(TouchTime::default(), |left| left.later(1)));
                    self.state = if left.is_some() { WarpProgress::Running } else { WarpProgress::Waiting(token) };
                }
                WarpStep::Barrier => {
                    self.resume(number + 1, TouchTime::default());
                    self.state = WarpProgress::AtBarrier;
                }
                WarpStep::End => {
                    self.resume(number, TouchTime::default());
                    self.state = WarpProgress::Ended;
                }
            }
        }
    }
}

/// Flags in a launch.
#[derive(Default)]
struct LaunchFlags {
    /// Moments at which stores or atomics set the flags.
    left: FxHashMap<Token, TouchTime>,
    /// Waiting CTAs by flag, as indices into the list of suspended CTAs.
    waiting: FxHashMap<Token, Vec<usize>>,
    /// Suspended CTAs that may resume.
    woken: Vec<usize>,
    /// Index of the current CTA.
    cta: usize,
}

impl LaunchFlags {
    /// Records a store or atomic that sets a flag, and wakes waiting CTAs.
    fn leave(&mut self, token: Token, at: TouchTime) {
        self.left.entry(token).and_modify(|first| *first = at.min(*first)).or_insert(at);
        self.woken.extend(self.waiting.remove(&token).unwrap_or_default());
    }

    /// Moment at which a flag is set; if it is not known yet, the current CTA waits.
    fn get_or_wait(&mut self, token: Token) -> Option<TouchTime> {
        let left = self.left.get(&token).copied();
        if left.is_none() {
            self.waiting.entry(token).or_default().push(self.cta);
        }
        left
    }
}

/// Logical times for the touches in one launch.
#[derive(Default)]
pub(super) struct LogicalTime {
    flags: LaunchFlags,
    /// Suspended CTAs: each waits for flags that no CTA so far has set.
    aside: Vec<Option<SuspendedCta<std::vec::IntoIter<NumberedStep>>>>,
}

impl LogicalTime {
    /// Calls `touch` for the touches in a CTA that a module starts in a wave, and in all suspended CTAs that it wakes.
    pub(super) fn cta(
        &mut self,
        (module, wave): (ModuleId, u32),
        stream: &CtaStream,
        touches: TouchFilter,
        touch: &mut impl FnMut(Page, TouchTime, ModuleId),
    ) {
        self.flags.cta = self.aside.len();
        let moment = TouchTime::of_wave(wave);
        let warp = |ops: &std::ops::Range<u32>| {
            let steps = WarpSteps::new(stream, &stream.ops[ops.start as usize..ops.end as usize], touches);
            SuspendedWarp { steps, state: WarpProgress::Running, moment, from: 0 }
        };
        let mut cta = SuspendedCta { module, warps: stream.warps.iter().map(warp).collect() };
        if !cta.run(&mut self.flags, touch) {
            self.aside.push(Some(cta.kept()));
        }
        self.go_on(touch);
    }

    /// Ends the launch: CTAs that still wait resume without their flags.
    pub(super) fn end(&mut self, touch: &mut impl FnMut(Page, TouchTime, ModuleId)) {
        for place in 0..self.aside.len() {
            let waits = |warp: &SuspendedWarp<_>| matches!(warp.state, WarpProgress::Waiting(_));
            while let Some(cta) = &mut self.aside[place]
                && cta.warps.iter().any(waits)
            {
                cta.warps.iter_mut().filter(|warp| waits(warp)).for_each(|warp| warp.state = WarpProgress::Running);
                self.flags.woken.push(place);
                self.go_on(touch);
            }
        }
        *self = LogicalTime::default();
    }

    /// Resumes suspended CTAs with flags that have been set.
    fn go_on(&mut self, touch: &mut impl FnMut(Page, TouchTime, ModuleId)) {
        while let Some(place) = self.flags.woken.pop() {
            self.flags.cta = place;
            // A CTA with all awaited flags set by its own warps was never suspended.
            if let Some(waiting) = self.aside.get_mut(place)
                && let Some(cta) = waiting
                && cta.run(&mut self.flags, touch)
            {
                *waiting = None;
            }
        }
    }
}

impl SuspendedCta<WarpSteps<'_>> {
    /// Detaches the CTA's remaining steps from its stream. For each warp, only the first touch to each page is kept.
    fn kept(self) -> SuspendedCta<std::vec::IntoIter<NumberedStep>> {
        let mut touched = FxHashSet::default();
        let mut kept = |SuspendedWarp { steps, state, moment, from }: SuspendedWarp<WarpSteps<'_>>| {
            touched.clear();
            let is_first = |(step, _): &NumberedStep| match step {
                WarpStep::Touch(page) => touched.insert(*page),
                WarpStep::Signal(_) | WarpStep::Wait(_) | WarpStep::Barrier | WarpStep::End => true,
            };
            let steps: Vec<NumberedStep> = steps.filter(is_first).collect();
            SuspendedWarp { steps: steps.into_iter(), state, moment, from }
        };
        SuspendedCta { module: self.module, warps: self.warps.into_iter().map(&mut kept).collect() }
    }
}
