//! Dependent arithmetic: the time when a warp's result is available, and when its next instruction may issue.
//!
//! A run occupies its pipeline for every instruction's issue cycles. Its result arrives after the summed latency of
//! all chained instructions, and no earlier than a latency after the last instruction's issue. Path times assume that
//! a ready warp has exclusive use of its sub-core. A sub-core interleaves its ready warps, but is simulated run by
//! run. A warp therefore continues at the later of the path's time and the sub-core's time.

use tombolo_types::Ps;
use tombolo_types::stream::ChainLinks;

/// Critical path for a warp, that is the longest chain formed by dependent arithmetic.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArithmeticPath {
    /// Time at which the path's result is available.
    pub(super) result: Ps,
    /// Earliest issue time for the warp's next instruction: in program order, and after the result if awaited.
    pub(super) next: Ps,
}

/// Issue and result timing for an instruction class, in 1024ths of a picosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassTiming {
    /// Pipeline occupancy per instruction.
    pub(super) issue: u64,
    /// Latency from issue until a dependent instruction can issue.
    pub(super) latency: u64,
}

/// Consecutive arithmetic instructions in a single class.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArithmeticRun {
    /// Earliest issue time for the first instruction if the warp had exclusive use of its sub-core.
    pub(super) from: Ps,
    /// Instruction count in this run.
    pub(super) count: u16,
    /// Number of dependent instructions added to the path.
    pub(super) chain: u16,
    /// Dependences between this run and its neighbours.
    pub(super) links: ChainLinks,
}

impl ArithmeticPath {
    /// Advances the path over a run that the warp issues.
    #[inline]
    pub(super) fn run(&mut self, pace: ClassTiming, run: ArithmeticRun) {
        let start = run.from.max(self.next);
        let from = if run.links.joins { start.max(self.result) } else { start };
        let occupied = u64::from(run.count) * pace.issue;
        self.next = start + Ps(occupied / 1024);
        self.result = self.result.max(start + Ps((occupied - pace.issue + pace.latency) / 1024));
        if let Some(before) = run.chain.checked_sub(1) {
            let last = u64::from(before) * pace.latency;
            self.next = self.next.max(from + Ps((last + pace.issue) / 1024));
            self.result = self.result.max(from + Ps((last + pace.latency) / 1024));
        }
        if run.links.awaited {
            self.next = self.result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test timing: two units per issue slot, four to a result.
    const PACE: ClassTiming = ClassTiming { issue: 2048, latency: 4096 };
    const JOINS: ChainLinks = ChainLinks { joins: true, awaited: false };

    fn run(from: u64, count: u16, chain: u16) -> ArithmeticRun {
        ArithmeticRun { from: Ps(from), count, chain, links: ChainLinks::default() }
    }

    fn after(runs: &[ArithmeticRun]) -> (u64, u64) {
        let mut path = ArithmeticPath::default();
        runs.iter().for_each(|&it| path.run(PACE, it));
        (path.next.0, path.result.0)
    }

    #[test]
    fn a_chain_takes_its_latencies_and_its_last_instruction_issues_one_before() {
        assert_eq!(after(&[run(10, 100, 100)]), (10 + 99 * 4 + 2, 10 + 400));
    }

    #[test]
    fn several_chains_overlap_until_issue_bounds_them() {
        assert_eq!(
            after(&[run(0, 100, 50)]).1,
            202,
            "two chains: issue bounds them, and the last instruction takes four"
        );
        assert_eq!(after(&[run(0, 100, 25)]).1, 202, "four chains: issue bounds them as well");
        assert_eq!(after(&[run(0, 90, 60)]).1, 240, "a longer chain among shorter ones");
    }

    #[test]
    fn a_run_that_joins_goes_on_where_the_path_ends() {
        assert_eq!(after(&[run(0, 10, 10), ArithmeticRun { links: JOINS, ..run(20, 5, 5) }]).1, 60);
    }

    #[test]
    fn a_run_of_its_own_starts_as_it_issues_in_order() {
        let (_, result) = after(&[run(0, 10, 10), run(20, 5, 5)]);
        assert_eq!(result, 9 * 4 + 2 + 5 * 4, "behind the issue of the first chain's last instruction");
    }

    #[test]
    fn what_is_awaited_keeps_the_warp_until_it_is_there() {
        let links = ChainLinks { joins: false, awaited: true };
        assert_eq!(after(&[ArithmeticRun { links, ..run(0, 3, 3) }]), (12, 12));
    }

    #[test]
    fn a_run_beside_the_path_has_its_last_result_a_latency_after_that_issues() {
        assert_eq!(after(&[run(0, 100, 0)]), (200, 202));
    }
}
