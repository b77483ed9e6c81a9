//! An oracle for kernel boundaries: the operations necessary given the kernels' actual accesses. The result bounds
//! every table that reads labels.
//!
//! The oracle assumes L2s without capacity limits, and tracks whole lines. Before a launch, a module's L2 needs a flush
//! if it holds a dirty line that any other user is about to touch. It needs an invalidation if the module is about to
//! touch a line with a possibly old copy. Only such operations are performed, each on a whole L2. If two modules touch
//! a line in one kernel and at least one writes it, both may be left with an old copy, because the order within a
//! kernel is unknown.
//!
//! Any sound table performs at least as many operations in total. Between two operations that the oracle needs,
//! something is written and then touched; a table with less knowledge must also act in between.

use crate::labels::homes;
use crate::uses::KernelUse;
use tombolo_model::front_end::PageTable;
use tombolo_protocol::elision::{LineSet, RetainedLines, User};
use tombolo_types::{Line, ModuleId};

/// Operations needed by a module's L2 at a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeededOperations {
    /// An invalidation.
    pub invalidate: bool,
    /// A flush.
    pub flush: bool,
}

/// Lines present in a module's L2, and the subsets dirty or possibly stale.
#[derive(Clone, Debug, Default)]
struct CacheContents {
    lines: LineSet,
    dirty: LineSet,
    /// Copies that may be old.
    stale: LineSet,
}

/// Lines touched by a user between two boundaries.
#[derive(Clone, Debug)]
pub struct UserAccesses {
    /// The user: a module or the host.
    pub user: User,
    /// Lines that the user touches.
    pub touched: LineSet,
    /// Touched lines with a write by the user.
    pub written: LineSet,
}

/// The oracle's state at a boundary in the program.
pub struct Oracle {
    held: Vec<CacheContents>,
    /// For each module, the lines that its L2 may hold, based on page homes; `None` if it may hold any line.
    homes: Option<Vec<LineSet>>,
    /// True if an L2 holds anything that needs boundary operations.
    holds_any: bool,
}

impl Oracle {
    /// Creates the state at a program's start, with arrays in `arrays` and page homes in `pages`, on `modules` modules.
    pub fn new(arrays: &[std::ops::Range<Line>], pages: &PageTable, modules: u8, holds: RetainedLines) -> Oracle {
        let at_homes = || {
            let mut all = vec![LineSet::default(); usize::from(modules)];
            for array in arrays {
                all.iter_mut().zip(homes(array, pages, modules)).for_each(|(all, homed)| all.add(&homed));
            }
            all
        };
        Oracle {
            held: vec![CacheContents::default(); usize::from(modules)],
            homes: (holds == RetainedLines::Own).then(at_homes),
            holds_any: holds != RetainedLines::Nothing,
        }
    }

    /// Returns the operations needed before the given accesses, by module. Performs these operations, then the
    /// accesses.
    pub fn launch(&mut self, uses: &[UserAccesses]) -> Vec<NeededOperations> {
        if !self.holds_any {
            return vec![NeededOperations::default(); self.held.len()];
        }
        let own = |module: ModuleId| uses.iter().filter(move |touching| touching.user == User::Module(module));
        let others = |module: ModuleId| uses.iter().filter(move |touching| touching.user != User::Module(module));
        let modules = || (0..=u8::MAX).map(ModuleId);
        let mut needed = Vec::new();
        for (module, held) in modules().zip(&mut self.held) {
            let invalidate = own(module).any(|touching| touching.touched.overlaps(&held.stale));
            let flush = others(module).any(|touching| touching.touched.overlaps(&held.dirty));
            if invalidate {
                (held.lines, held.stale) = (held.dirty.clone(), LineSet::default());
            }
            if flush {
                held.dirty = LineSet::default();
            }
            needed.push(NeededOperations { invalidate, flush });
        }
        for (module, held) in modules().zip(&mut self.held) {
            let keeps = |lines: &LineSet| match &self.homes {
                Some(homes) => lines.intersection(&homes[usize::from(module.0)]),
                None => lines.clone(),
            };
            for touching in own(module) {
                held.lines.add(&keeps(&touching.touched));
                held.dirty.add(&keeps(&touching.written));
            }
            for touching in others(module) {
                held.stale.add(&touching.written.intersection(&held.lines));
            }
        }
        needed
    }

    /// Operations needed at the program's end: no line stays dirty.
    pub fn end(&self) -> Vec<NeededOperations> {
        self.held.iter().map(|held| NeededOperations { invalidate: false, flush: !held.dirty.is_empty() }).collect()
    }
}

impl UserAccesses {
    /// Lines that each module touches in a kernel.
    pub fn of_kernel(kernel: &KernelUse, modules: u8) -> Vec<UserAccesses> {
        let of_module = |module: ModuleId| {
            let (mut touched, mut written) = (LineSet::default(), LineSet::default());
            for array in &kernel.arrays {
                let one = &array.modules[usize::from(module.0)];
                touched.add(&one.read);
                touched.add(&one.written);
                written.add(&one.written);
            }
            UserAccesses { user: User::Module(module), touched, written }
        };
        (0..modules).map(ModuleId).map(of_module).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_protocol::elision::LineRange;

    fn set(first: u64, end: u64) -> LineSet {
        if first == end { LineSet::default() } else { LineRange::new(Line(first), Line(end)).into() }
    }

    fn by(user: u8, touched: (u64, u64), written: (u64, u64)) -> UserAccesses {
        let user = if user == u8::MAX { User::Host } else { User::Module(ModuleId(user)) };
        UserAccesses { user, touched: set(touched.0, touched.1), written: set(written.0, written.1) }
    }

    /// For each launch, the invalidating and the flushing modules; the last entry holds the modules that flush at the
    /// end.
    fn needed(mut oracle: Oracle, launches: &[Vec<UserAccesses>]) -> Vec<(Vec<usize>, Vec<usize>)> {
        let told = |needed: Vec<NeededOperations>| {
            let those = |wanted: fn(&NeededOperations) -> bool| {
                needed.iter().enumerate().filter(|(_, one)| wanted(one)).map(|(module, _)| module).collect()
            };
            (those(|one| one.invalidate), those(|one| one.flush))
        };
        let mut all: Vec<_> = launches.iter().map(|uses| oracle.launch(uses)).map(told).collect();
        all.push(told(oracle.end()));
        all
    }

    fn oracle(holds: RetainedLines) -> Oracle {
        // Pages with four lines: module 0 has the first, module 1 the second.
        let pages = PageTable::interleaved_by_page(2, 4);
        Oracle::new(std::slice::from_ref(&(Line(0)..Line(8))), &pages, 2, holds)
    }

    #[test]
    fn a_consumer_needs_one_flush_and_a_later_reader_of_old_copies_an_invalidation() {
        let launches = [
            vec![by(0, (0, 4), (0, 4))],
            vec![by(1, (0, 4), (0, 0))],
            vec![by(1, (0, 4), (0, 4))],
            vec![by(0, (0, 4), (0, 0))],
        ];
        let done = needed(oracle(RetainedLines::All), &launches);
        assert_eq!(done, [(vec![], vec![]), (vec![], vec![0]), (vec![], vec![]), (vec![0], vec![1]), (vec![], vec![])]);
        // If an L2 holds only lines from its own module, module 1's stores reach memory at once.
        let done = needed(oracle(RetainedLines::Own), &launches);
        assert_eq!(done, [(vec![], vec![]), (vec![], vec![0]), (vec![], vec![]), (vec![0], vec![]), (vec![], vec![])]);
    }

    #[test]
    fn a_halo_makes_stale_only_where_others_lines_are_kept() {
        // Each module writes its part of one buffer and reads the other buffer with one line from its neighbour, in
        // turn.
        let step = || vec![by(0, (0, 5), (0, 4)), by(1, (3, 8), (4, 8))];
        let launches = [step(), step(), step()];
        let done = needed(oracle(RetainedLines::All), &launches);
        assert_eq!(done[1], (vec![0, 1], vec![0, 1]), "each keeps a line that the other writes");
        let done = needed(oracle(RetainedLines::Own), &launches);
        assert_eq!(done[1], (vec![], vec![0, 1]), "neither keeps a line of the other's");
        let nothing = needed(oracle(RetainedLines::Nothing), &launches);
        assert!(nothing.iter().all(|needed| *needed == (vec![], vec![])));
    }

    #[test]
    fn what_the_host_reads_is_flushed_and_what_it_writes_is_stale() {
        let host = u8::MAX;
        let launches = [
            vec![by(0, (0, 4), (0, 1))],
            vec![by(host, (0, 1), (0, 0))],
            vec![by(host, (2, 3), (2, 3))],
            vec![by(0, (2, 3), (0, 0))],
        ];
        let done = needed(oracle(RetainedLines::Own), &launches);
        assert_eq!(done, [(vec![], vec![]), (vec![], vec![0]), (vec![], vec![]), (vec![0], vec![]), (vec![], vec![])]);
    }
}
