//! Minimises a failing run: each part that the failure does not need is removed.

use crate::setup::{NoiseOp, Pacing, Setup};
use crate::trial::{RunFailure, TrialContext, expressible, trial};
use tombolo_check::axiomatic::{Limits, Outcomes, outcomes};
use tombolo_check::litmus::Instruction;

/// Maximum number of runs per failure.
const TRIES: usize = 400;
/// Maximum number of candidate executions examined by the model for a smaller program.
const CANDIDATES: u64 = 1_000_000;

/// Minimises failing setups.
struct Minimiser<'a> {
    judge: TrialContext<'a>,
    best: Setup,
    /// Outcomes that the model allows for the best setup's program.
    allowed: Outcomes,
    failure: RunFailure,
    tries: usize,
}

/// Finds a smaller setup with a similar failure, and returns the failure.
pub fn shrink(setup: &Setup, failure: &RunFailure, judge: TrialContext<'_>) -> (Setup, RunFailure) {
    let (best, allowed) = (setup.clone(), judge.allowed.clone());
    let mut shrinking = Minimiser { judge, best, allowed, failure: failure.clone(), tries: TRIES };
    while shrinking.pass() {}
    (shrinking.best, shrinking.failure)
}

impl Minimiser<'_> {
    /// Tries every removal once; returns true if any succeeded.
    fn pass(&mut self) -> bool {
        let before = self.tries;
        let mut smaller = self.each(
            |setup| setup.noise.len(),
            |setup, at| {
                setup.noise.remove(at);
            },
        );
        smaller |= self.each(
            |setup| setup.skews.len(),
            |setup, at| {
                setup.skews.remove(at);
            },
        );
        smaller |= self.each(
            |setup| setup.slow.len(),
            |setup, at| {
                setup.slow.remove(at);
            },
        );
        smaller |= self.each(|setup| usize::from(setup.subscribers.is_some()), |setup, _| setup.subscribers = None);
        smaller |= self.each(
            |setup| setup.settings.len(),
            |setup, at| {
                setup.settings.remove(at);
            },
        );
        smaller |= self.each(|setup| setup.program.threads.len(), remove_thread);
        smaller |= self.each(instructions, remove_instruction);
        smaller |= self.each(instructions, |setup, at| *pacing(setup, at) = Pacing::default());
        smaller |= self.each(noise_ops, remove_noise_op);
        smaller |= self.attempt(remove_lead);
        smaller && self.tries < before && self.tries > 0
    }

    /// Tries to remove each of `count` elements, last first.
    fn each(&mut self, count: impl Fn(&Setup) -> usize, leave_out: impl Fn(&mut Setup, usize)) -> bool {
        let mut smaller = false;
        for at in (0..count(&self.best)).rev() {
            if at < count(&self.best) {
                smaller |= self.attempt(|setup| leave_out(setup, at));
            }
        }
        smaller
    }

    /// Keeps a change if the run still fails similarly.
    fn attempt(&mut self, change: impl FnOnce(&mut Setup)) -> bool {
        let mut setup = self.best.clone();
        change(&mut setup);
        if self.tries == 0 || setup == self.best || setup.program.threads.is_empty() {
            return false;
        }
        self.tries -= 1;
        let Some((failure, allowed)) = self.fails(&setup) else { return false };
        (self.best, self.failure, self.allowed) = (setup, failure, allowed);
        true
    }

    /// Failure of a setup, if similar to the original failure, and the outcomes allowed by the model for the setup's
    /// program.
    fn fails(&self, setup: &Setup) -> Option<(RunFailure, Outcomes)> {
        expressible(&setup.program).ok()?;
        setup.machine().ok()?;
        let allowed = if setup.program == self.best.program {
            self.allowed.clone()
        } else {
            outcomes(&setup.program, &Limits { candidates: CANDIDATES }).ok()?
        };
        let failure = trial(setup, TrialContext { allowed: &allowed, ..self.judge }).err()?;
        failure.is_like(&self.failure).then_some((failure, allowed))
    }
}

fn instructions(setup: &Setup) -> usize {
    setup.program.threads.iter().map(|thread| thread.code.len()).sum()
}

/// Thread and position for an instruction number counted over all threads.
fn place(setup: &Setup, mut number: usize) -> (usize, usize) {
    for (thread, one) in setup.program.threads.iter().enumerate() {
        if number < one.code.len() {
            return (thread, number);
        }
        number -= one.code.len();
    }
    unreachable!("numbers count instructions")
}

fn pacing(setup: &mut Setup, number: usize) -> &mut Pacing {
    let (thread, at) = place(setup, number);
    &mut setup.pacings[thread][at]
}

fn remove_instruction(setup: &mut Setup, number: usize) {
    let (thread, at) = place(setup, number);
    // Every thread must reach every boundary.
    if !matches!(setup.program.threads[thread].code[at], Instruction::KernelBoundary) {
        setup.program.threads[thread].code.remove(at);
        setup.pacings[thread].remove(at);
    }
}

fn remove_thread(setup: &mut Setup, thread: usize) {
    let before = Setup::ctas(&setup.program);
    setup.program.threads.remove(thread);
    setup.pacings.remove(thread);
    setup.ranks.remove(thread);
    let after = Setup::ctas(&setup.program);
    for slots in &mut setup.slots {
        let kept = before.iter().zip(slots.iter()).filter(|(cta, _)| after.contains(cta));
        *slots = kept.map(|(_, slot)| *slot).collect();
    }
}

fn noise_ops(setup: &Setup) -> usize {
    setup.noise.iter().map(|noise| noise.ops.len()).sum()
}

fn remove_noise_op(setup: &mut Setup, mut number: usize) {
    for noise in &mut setup.noise {
        if number < noise.ops.len() {
            let _: NoiseOp = noise.ops.remove(number);
            return;
        }
        number -= noise.ops.len();
    }
}

/// Removes the kernels before the test.
fn remove_lead(setup: &mut Setup) {
    let lead = std::mem::take(&mut setup.lead);
    setup.noise.retain(|noise| noise.kernel >= lead);
    setup.noise.iter_mut().for_each(|noise| noise.kernel -= lead);
}
