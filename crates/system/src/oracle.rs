//! What boundaries would have needed, by what kernels really touched: a bound that no table which reads labels passes.
//!
//! L2s without capacity limits, whole lines. Before a launch a module's L2 needs a flush where it holds a line dirty that
//! anybody else is to touch, and an invalidation where it is to touch a line of which its copy may be old. Only such
//! operations are done here, each of a whole L2. Of two modules that touch a line in one kernel, one of which writes it, both
//! may be left with an old copy: within a kernel nobody says who was first.
//!
//! Any sound table does at least as many operations in all: between two that are needed here something is written and then
//! touched, and a table that knows less must act in between, too.

use crate::labels::homes;
use crate::uses::KernelUse;
use tombolo_model::page_table::PageTable;
use tombolo_protocol::elision::{Holds, LineSet, User};
use tombolo_types::{Line, ModuleId};

/// What one module's L2 needs at a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// An invalidation.
    pub invalidate: bool,
    /// A flush.
    pub flush: bool,
}

/// What one module's L2 holds.
#[derive(Clone, Debug, Default)]
struct Held {
    lines: LineSet,
    dirty: LineSet,
    /// Copies that may be old.
    stale: LineSet,
}

/// What somebody touches between two boundaries.
#[derive(Clone, Debug)]
pub struct Touching {
    /// Who.
    pub user: User,
    /// Lines that it touches.
    pub touched: LineSet,
    /// Of these, lines that it writes.
    pub written: LineSet,
}

/// The state at a boundary of the program.
pub struct Oracle {
    held: Vec<Held>,
    /// By module, the lines of `homes` that its L2 may hold; `None` where it may hold any.
    homes: Option<Vec<LineSet>>,
    /// Whether an L2 holds anything that operations are for.
    holds_any: bool,
}

impl Oracle {
    /// At the start of a program whose arrays lie in `arrays` and whose pages are at `pages`, on `modules` modules.
    pub fn new(arrays: &[std::ops::Range<Line>], pages: &PageTable, modules: u8, holds: Holds) -> Oracle {
        let at_homes = || {
            let mut all = vec![LineSet::default(); usize::from(modules)];
            for array in arrays {
                all.iter_mut().zip(homes(array, pages, modules)).for_each(|(all, homed)| all.add(&homed));
            }
            all
        };
        Oracle {
            held: vec![Held::default(); usize::from(modules)],
            homes: (holds == Holds::Own).then(at_homes),
            holds_any: holds != Holds::Nothing,
        }
    }

    /// What is needed before these are done, by module. Performs it, then them.
    pub fn launch(&mut self, uses: &[Touching]) -> Vec<Needed> {
        if !self.holds_any {
            return vec![Needed::default(); self.held.len()];
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
            needed.push(Needed { invalidate, flush });
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

    /// What is needed at the end of the program: nothing stays dirty.
    pub fn end(&self) -> Vec<Needed> {
        self.held.iter().map(|held| Needed { invalidate: false, flush: !held.dirty.is_empty() }).collect()
    }
}

impl Touching {
    /// What each module does in a kernel.
    pub fn of_kernel(kernel: &KernelUse, modules: u8) -> Vec<Touching> {
        let of_module = |module: ModuleId| {
            let (mut touched, mut written) = (LineSet::default(), LineSet::default());
            for array in &kernel.arrays {
                let one = &array.modules[usize::from(module.0)];
                touched.add(&one.read);
                touched.add(&one.written);
                written.add(&one.written);
            }
            Touching { user: User::Module(module), touched, written }
        };
        (0..modules).map(ModuleId).map(of_module).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_protocol::elision::Lines;

    fn set(first: u64, end: u64) -> LineSet {
        if first == end { LineSet::default() } else { Lines::new(Line(first), Line(end)).into() }
    }

    fn by(user: u8, touched: (u64, u64), written: (u64, u64)) -> Touching {
        let user = if user == u8::MAX { User::Host } else { User::Module(ModuleId(user)) };
        Touching { user, touched: set(touched.0, touched.1), written: set(written.0, written.1) }
    }

    /// For each launch the modules that invalidate and those that flush; last, those that flush at the end.
    fn needed(mut oracle: Oracle, launches: &[Vec<Touching>]) -> Vec<(Vec<usize>, Vec<usize>)> {
        let told = |needed: Vec<Needed>| {
            let those = |wanted: fn(&Needed) -> bool| {
                needed.iter().enumerate().filter(|(_, one)| wanted(one)).map(|(module, _)| module).collect()
            };
            (those(|one| one.invalidate), those(|one| one.flush))
        };
        let mut all: Vec<_> = launches.iter().map(|uses| oracle.launch(uses)).map(told).collect();
        all.push(told(oracle.end()));
        all
    }

    fn oracle(holds: Holds) -> Oracle {
        // Pages of four lines: module 0 has the first, module 1 the second.
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
        let done = needed(oracle(Holds::All), &launches);
        assert_eq!(done, [(vec![], vec![]), (vec![], vec![0]), (vec![], vec![]), (vec![0], vec![1]), (vec![], vec![])]);
        // Where an L2 holds lines of its own module alone, module 1's stores are in memory at once.
        let done = needed(oracle(Holds::Own), &launches);
        assert_eq!(done, [(vec![], vec![]), (vec![], vec![0]), (vec![], vec![]), (vec![0], vec![]), (vec![], vec![])]);
    }

    #[test]
    fn a_halo_makes_stale_only_where_others_lines_are_kept() {
        // Each writes its part of one buffer and reads the other with a line of the neighbour's, in turn.
        let step = || vec![by(0, (0, 5), (0, 4)), by(1, (3, 8), (4, 8))];
        let launches = [step(), step(), step()];
        let done = needed(oracle(Holds::All), &launches);
        assert_eq!(done[1], (vec![0, 1], vec![0, 1]), "each keeps a line that the other writes");
        let done = needed(oracle(Holds::Own), &launches);
        assert_eq!(done[1], (vec![], vec![0, 1]), "neither keeps a line of the other's");
        let nothing = needed(oracle(Holds::Nothing), &launches);
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
        let done = needed(oracle(Holds::Own), &launches);
        assert_eq!(done, [(vec![], vec![]), (vec![], vec![0]), (vec![], vec![]), (vec![0], vec![]), (vec![], vec![])]);
    }
}
