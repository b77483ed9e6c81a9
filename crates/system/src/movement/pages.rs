//! Where pages are: as hints say, or at the latest writer.
//!
//! | way | home of a page |
//! | --- | --- |
//! | hints | the only module that touches it in the kernel at hand, else its only writer there, else where it is; at first who writes it first, else who touches it first |
//! | latest writer | for a module that writes it in the kernel at hand that module, else who wrote it last in an earlier launch; at first who touches it first |

use super::{Movement, PageUse};
use rustc_hash::FxHashMap;
use tombolo_model::page_table::PageTable;
use tombolo_model::schedule::{Around, PageMove, Remap, Schedule};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Line, ModuleId, Page};

impl Movement {
    /// Unified memory with hints: pages that move before each launch, in ascending order, and where each is at first. The
    /// preferred home of a page is that of the module that writes it first; all others reach it from afar.
    pub fn hints(&self, program: &dyn Program) -> (Schedule, PageTable) {
        let preferred = self.written.iter().chain(&self.touched).copied();
        let table = PageTable::from_first_touch(preferred, self.lines_per_page);
        let wanted: Vec<Vec<PageMove>> =
            self.by_kernel(|uses| uses.chunk_by(|one, other| one.page == other.page).filter_map(hinted).collect());
        let mut moved: FxHashMap<Page, ModuleId> = FxHashMap::default();
        let schedule = schedule(program, |kernel| {
            let moves = wanted[kernel as usize].iter().copied().filter(|&PageMove { page, to }| {
                let now = moved.get(&page).copied().unwrap_or_else(|| self.home(&table, page));
                let moves = now != to;
                if moves {
                    moved.insert(page, to);
                }
                moves
            });
            Around { moves: moves.collect(), ..Around::default() }
        });
        (schedule, table)
    }

    /// Remote demand loads: pages that modules find elsewhere as a kernel is launched, by page and module, and where each is
    /// at first. A module is told of a page when it next touches it.
    ///
    /// The home of a page as its home sees it is itself: who wrote it last found it at itself, and is told otherwise only
    /// when another has written it since.
    pub fn latest_writers(&self, program: &dyn Program) -> (Schedule, PageTable) {
        let table = PageTable::from_first_touch(self.touched.iter().copied(), self.lines_per_page);
        let uses = self.by_kernel(<[PageUse]>::to_vec);
        let mut latest: FxHashMap<Page, ModuleId> = FxHashMap::default();
        let mut told: FxHashMap<(Page, ModuleId), ModuleId> = FxHashMap::default();
        let schedule = schedule(program, |kernel| {
            let uses = &uses[kernel as usize];
            let mut remaps = Vec::new();
            for &PageUse { page, module: at, writes } in uses {
                let first = self.home(&table, page);
                let home = if writes { at } else { latest.get(&page).copied().unwrap_or(first) };
                let now = told.get(&(page, at)).copied().unwrap_or(first);
                if home != now {
                    told.insert((page, at), home);
                    remaps.push(Remap { at, page, home });
                }
            }
            // Ascending modules: of several that write a page in one launch the last one counts.
            latest.extend(uses.iter().filter(|used| used.writes).map(|used| (used.page, used.module)));
            Around { remaps, ..Around::default() }
        });
        (schedule, table)
    }

    fn by_kernel<T>(&self, made: impl Fn(&[PageUse]) -> T) -> Vec<T> {
        (0..self.kernels.len() as u32).map(|kernel| made(&self.page_uses(kernel))).collect()
    }

    fn home(&self, table: &PageTable, page: Page) -> ModuleId {
        let first = Line(page.0 * self.lines_per_page);
        table.home(ModuleId(0), first).expect("a page that is used is placed")
    }
}

/// Where hints want a page of which these are the uses in one kernel; `None`: where it is.
fn hinted(uses: &[PageUse]) -> Option<PageMove> {
    let only = |uses: &mut dyn Iterator<Item = &PageUse>| {
        let first = uses.next()?;
        uses.next().is_none().then_some(PageMove { page: first.page, to: first.module })
    };
    only(&mut uses.iter()).or_else(|| only(&mut uses.iter().filter(|used| used.writes)))
}

/// What is done around each launch.
fn schedule(program: &dyn Program, mut around: impl FnMut(u32) -> Around) -> Schedule {
    let around = program.commands().iter().map(|command| match *command {
        Command::Launch { kernel, .. } => around(kernel),
        Command::Copy { .. } | Command::Host { .. } => Around::default(),
    });
    Schedule { around: around.collect(), copies: Vec::new() }
}
