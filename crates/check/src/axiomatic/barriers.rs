//! Openings of barriers: the groups of arrivals that open each barrier of a CTA, on one path for each thread.
//!
//! Arrivals are executed in every order. Several groupings exist if more threads arrive at a barrier than its count. The
//! model judges protocols, and therefore shares no code with `tombolo_protocol::front::barrier_opens`.

use super::ModelError;
use super::paths::{LIMIT, PathStep};
use crate::litmus::{BarrierRole, Instruction, Program, Thread};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Arrival of a thread at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Arrival {
    /// Index of the thread.
    pub(super) thread: usize,
    /// Number of the thread's earlier arrivals, at any barrier, in any kernel.
    pub(super) rank: usize,
    pub(super) role: BarrierRole,
}

/// Arrivals between two openings of a barrier.
pub(super) type Group = BTreeSet<Arrival>;

/// Every group of an execution.
pub(super) type Grouping = BTreeSet<Group>;

/// Ways in which the barriers can open on one combination of paths.
pub(super) struct Groupings {
    /// The groupings of executions in which every thread ends.
    pub(super) complete: Vec<Grouping>,
    /// True if some order of arrivals leaves a thread waiting for ever.
    pub(super) can_hang: bool,
}

/// Maximum number of states of a CTA's arrivals. Source: assumed, some tens of megabytes; a test has a few hundred.
const STATES: usize = 100_000;

/// Computes the groupings with each thread on a path from `paths`.
///
/// # Errors
/// More than [`LIMIT`] groupings, or too many orders of arrival.
pub(super) fn groupings(program: &Program, paths: &[&[PathStep]]) -> Result<Groupings, ModelError> {
    let threads = program.threads.iter().zip(paths).enumerate();
    let kernels: Vec<Vec<Vec<BarrierStep>>> =
        threads.map(|(index, (thread, path))| steps((index, thread), path)).collect();
    let last = kernels.iter().map(Vec::len).max().unwrap_or(0);
    let mut all = Groupings { complete: vec![Grouping::new()], can_hang: false };
    for kernel in 0..last {
        for first in 0..program.threads.len() {
            let placement = program.threads[first].placement;
            let mates: Vec<usize> = (0..program.threads.len())
                .filter(|&mate| mate == first || program.threads[mate].placement.shares_cta(placement))
                .collect();
            let of_mate = |mate: &usize| kernels[*mate].get(kernel).map_or(&[][..], Vec::as_slice);
            let arriving: Vec<&[BarrierStep]> = mates.iter().map(of_mate).collect();
            if mates[0] != first || arriving.iter().all(|steps| steps.is_empty()) {
                continue;
            }
            let of_cta = groupings_of_cta(&arriving)?;
            all.can_hang |= of_cta.can_hang;
            let combine = |known: &Grouping| {
                let known = known.clone();
                of_cta.complete.iter().map(move |more| known.union(more).cloned().collect()).collect::<Vec<Grouping>>()
            };
            all.complete = all.complete.iter().flat_map(combine).collect();
            within_limit(all.complete.len())?;
        }
    }
    Ok(all)
}

fn within_limit(groupings: usize) -> Result<(), ModelError> {
    if groupings > LIMIT { Err(ModelError::Paths { limit: LIMIT }) } else { Ok(()) }
}

/// A barrier instruction on a thread's path.
#[derive(Clone, Copy)]
struct BarrierStep {
    id: u32,
    count: Option<u32>,
    arrival: Arrival,
}

/// The barrier instructions that a thread executes along `path`, by kernel.
fn steps((index, thread): (usize, &Thread), path: &[PathStep]) -> Vec<Vec<BarrierStep>> {
    let mut kernels = vec![Vec::new()];
    let mut rank = 0;
    for step in path {
        match thread.code[step.at] {
            Instruction::Barrier { id, role, count } => {
                let arrival = Arrival { thread: index, rank, role };
                kernels.last_mut().expect("a thread has a first kernel").push(BarrierStep { id, count, arrival });
                rank += 1;
            }
            Instruction::KernelBoundary => kernels.push(Vec::new()),
            _ => {}
        }
    }
    kernels
}

/// A barrier with arrivals since it last opened.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PendingBarrier {
    count: Option<u32>,
    arrived: Group,
}

/// The threads of a CTA within a kernel.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CtaState {
    /// Per thread: steps passed.
    passed: Vec<usize>,
    /// Per thread: true if it waits at its next step.
    waits: Vec<bool>,
    barriers: BTreeMap<u32, PendingBarrier>,
    groups: Grouping,
}

/// Executes the arrivals of a CTA's threads in one kernel in every order.
fn groupings_of_cta(threads: &[&[BarrierStep]]) -> Result<Groupings, ModelError> {
    let start = CtaState {
        passed: vec![0; threads.len()],
        waits: vec![false; threads.len()],
        barriers: BTreeMap::new(),
        groups: Grouping::new(),
    };
    let mut seen = FxHashSet::from_iter([start.clone()]);
    let mut open = vec![start];
    let mut complete = BTreeSet::new();
    let mut can_hang = false;
    while let Some(state) = open.pop() {
        let next: Vec<CtaState> = (0..threads.len()).filter_map(|thread| state.arrive(threads, thread)).collect();
        if next.is_empty() {
            if state.waits.contains(&true) {
                can_hang = true;
            } else {
                complete.insert(state.with_leftovers());
                within_limit(complete.len())?;
            }
        }
        open.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
        if seen.len() > STATES {
            return Err(ModelError::Arrivals { limit: STATES });
        }
    }
    Ok(Groupings { complete: complete.into_iter().collect(), can_hang })
}

impl CtaState {
    /// Lets `thread` arrive at its next step; `None` if it waits or has ended the kernel.
    fn arrive(&self, threads: &[&[BarrierStep]], thread: usize) -> Option<CtaState> {
        let step = threads[thread].get(self.passed[thread]).filter(|_| !self.waits[thread])?;
        let mut next = self.clone();
        let barrier =
            next.barriers.entry(step.id).or_insert_with(|| PendingBarrier { count: step.count, arrived: Group::new() });
        barrier.arrived.insert(step.arrival);
        match step.arrival.role {
            BarrierRole::Sync => next.waits[thread] = true,
            BarrierRole::Arrive => next.passed[thread] += 1,
        }
        while next.open_one(threads) {}
        Some(next)
    }

    /// Opens a barrier with all its arrivals, if there is one.
    fn open_one(&mut self, threads: &[&[BarrierStep]]) -> bool {
        let alive = (0..threads.len()).filter(|&thread| self.passed[thread] < threads[thread].len()).count() as u32;
        let opens = |barrier: &PendingBarrier| barrier.arrived.len() as u32 >= barrier.count.unwrap_or(alive);
        let Some(id) = self.barriers.iter().find(|(_, barrier)| opens(barrier)).map(|(id, _)| *id) else {
            return false;
        };
        let opened = self.barriers.remove(&id).expect("it was found");
        for (thread, steps) in threads.iter().enumerate() {
            let arrived = |step: &BarrierStep| opened.arrived.contains(&step.arrival);
            if self.waits[thread] && steps.get(self.passed[thread]).is_some_and(arrived) {
                self.waits[thread] = false;
                self.passed[thread] += 1;
            }
        }
        self.groups.insert(opened.arrived);
        true
    }

    /// The groups, including arrivals at barriers that never opened and at which no thread waits.
    fn with_leftovers(self) -> Grouping {
        let CtaState { mut groups, barriers, .. } = self;
        groups.extend(barriers.into_values().map(|barrier| barrier.arrived));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axiomatic::paths;
    use crate::litmus::parse;

    /// Parses two threads: P0 in CTA 0 and P1 in CTA `cta`.
    fn program(cta: u32, rows: &str) -> Program {
        let text = format!("PTX test {{ x=0; }} P0@cta 0,gpu 0 | P1@cta {cta},gpu 0 ; {rows} exists x=0");
        parse("test", &text).unwrap_or_else(|error| panic!("{error}")).program
    }

    /// True if no order of arrivals on any path leaves a thread waiting.
    fn meet(cta: u32, rows: &str) -> bool {
        let (program, mut meet) = (program(cta, rows), true);
        paths::for_each(&program, 0, |paths| {
            meet &= !groupings(&program, paths)?.can_hang;
            Ok(())
        })
        .unwrap();
        meet
    }

    #[test]
    fn barriers_meet_within_a_cta_in_one_order() {
        assert!(meet(0, "bar.cta.sync 3 | bar.cta.sync 3 ; bar.cta.sync 2 | bar.cta.sync 2 ;"));
        assert!(!meet(0, "bar.cta.sync 3 | bar.cta.sync 2 ; bar.cta.sync 2 | bar.cta.sync 3 ;"));
        assert!(!meet(0, "bar.cta.sync 3 | bar.cta.sync 2 ;"));
        assert!(meet(1, "bar.cta.sync 3 | bar.cta.sync 2 ;"));
    }

    #[test]
    fn who_has_ended_its_kernel_is_not_waited_for() {
        assert!(meet(0, "bar.cta.sync 3 | bar.cta.sync 3 ; bar.cta.sync 2 | ;"));
        assert!(meet(0, "bar.cta.sync 3 | kernel.boundary ; kernel.boundary | bar.cta.sync 2 ;"));
        assert!(!meet(0, "kernel.boundary | kernel.boundary ; bar.cta.sync 3 | bar.cta.sync 2 ;"));
    }

    #[test]
    fn barriers_meet_only_if_they_do_on_every_path() {
        let skips = "ld.weak r0, x | bar.cta.sync 0 ; beq r0, 0, LC00 | ; bar.cta.sync 0 | ; LC00: | ;";
        assert!(meet(0, skips), "P0 may end before its barrier");
        assert!(!meet(0, &format!("{skips} bar.cta.sync 1 | ;")), "P0 may come to barrier 1 first");
    }

    #[test]
    fn a_count_is_awaited_even_of_threads_that_have_ended() {
        assert!(meet(0, "bar.cta.sync 0, 64 | bar.cta.sync 0, 64 ;"));
        assert!(meet(0, "bar.cta.sync 0, 32 | st.weak x, 1 ;"));
        assert!(!meet(0, "bar.cta.sync 0, 64 | st.weak x, 1 ;"));
    }

    #[test]
    fn who_arrives_does_not_wait() {
        assert!(meet(0, "bar.cta.arrive 0, 64 | bar.cta.sync 0, 64 ; bar.cta.sync 1 | bar.cta.sync 1 ;"));
        assert!(meet(0, "bar.cta.arrive 0, 64 | bar.cta.sync 1 ; bar.cta.sync 1 | bar.cta.sync 0, 64 ;"));
        assert!(!meet(0, "bar.cta.sync 0, 64 | bar.cta.sync 1 ; bar.cta.sync 1 | bar.cta.sync 0, 64 ;"));
    }

    #[test]
    fn more_arrivals_than_the_count_give_several_groupings() {
        let text = "PTX test { x=0; } P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 | P3@cta 0,gpu 0 ;
            bar.sync 0, 64 | bar.sync 0, 64 | bar.sync 0, 64 | bar.sync 0, 64 ; exists x=0";
        let program = parse("test", text).unwrap().program;
        let mut pairs = Vec::new();
        paths::for_each(&program, 0, |paths| {
            let found = groupings(&program, paths)?;
            assert!(!found.can_hang);
            let threads = |group: &Group| group.iter().map(|arrival| arrival.thread).collect::<Vec<_>>();
            pairs = found.complete.iter().map(|groups| groups.iter().map(threads).collect::<Vec<_>>()).collect();
            Ok(())
        })
        .unwrap();
        assert_eq!(pairs, [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]]);
    }
}
