//! Page homes: directed by hints, or at the latest writer. Both policies are evaluated before the run, from the
//! recorded streams; changes take effect at launches.
//!
//! | policy | home of a page |
//! | --- | --- |
//! | hints | the only module that touches the page in the current kernel; otherwise its only writer there; otherwise unchanged. Initially its first writer, or its first toucher without a writer |
//! | latest writer | a module that writes the page in the current kernel sees itself; otherwise the last writer in earlier launches. Initially the first toucher |

use super::{Movement, PageUse};
use rustc_hash::FxHashMap;
use tombolo_model::front_end::{CommandTasks, PageMove, PageTable, Remap, Schedule};
use tombolo_protocol::copies::loads_from;
use tombolo_types::stream::{Command, Program};
use tombolo_types::{Line, ModuleId, Page};

impl Movement {
    /// Unified memory with hints: page moves before each launch, in ascending order, and the initial homes. A page's
    /// preferred home is its first writer; all remaining modules access the page remotely.
    pub fn hints(&self, program: &dyn Program) -> (Schedule, PageTable) {
        let preferred = self.written.iter().chain(&self.touched).copied();
        let table = PageTable::from_first_touch(preferred, self.lines_per_page);
        let wanted: Vec<Vec<PageMove>> =
            self.by_kernel(|uses| uses.chunk_by(|one, other| one.page == other.page).filter_map(hinted).collect());
        let mut moved: FxHashMap<Page, ModuleId> = FxHashMap::default();
        let schedule = self.schedule(program, |kernel| {
            let moves = wanted[kernel as usize].iter().copied().filter(|&PageMove { page, to }| {
                let now = moved.get(&page).copied().unwrap_or_else(|| self.home(&table, page));
                let moves = now != to;
                if moves {
                    moved.insert(page, to);
                }
                moves
            });
            CommandTasks { moves: moves.collect(), ..CommandTasks::default() }
        });
        (schedule, table)
    }

    /// Remote demand loads: remappings before each launch, sorted by page and module, and the initial homes. A module
    /// learns a page's new home when it next touches the page.
    ///
    /// A page's home always maps the page to itself: the last writer found the page at itself, and is remapped only
    /// after another module has written it.
    pub fn latest_writers(&self, program: &dyn Program) -> (Schedule, PageTable) {
        let table = PageTable::from_first_touch(self.touched.iter().copied(), self.lines_per_page);
        let uses = self.by_kernel(<[PageUse]>::to_vec);
        let mut latest: FxHashMap<Page, ModuleId> = FxHashMap::default();
        let mut told: FxHashMap<(Page, ModuleId), ModuleId> = FxHashMap::default();
        let schedule = self.schedule(program, |kernel| {
            let uses = &uses[kernel as usize];
            let mut remaps = Vec::new();
            for &PageUse { page, module: at, writes } in uses {
                let first = self.home(&table, page);
                let latest_writer = latest.get(&page).copied().unwrap_or(first);
                let home = loads_from(at, writes, latest_writer);
                let now = told.get(&(page, at)).copied().unwrap_or(first);
                if home != now {
                    told.insert((page, at), home);
                    remaps.push(Remap { at, page, home });
                }
            }
            // Modules ascend: among several writers to a page in one launch, the last one counts.
            latest.extend(uses.iter().filter(|used| used.writes).map(|used| (used.page, used.module)));
            CommandTasks { remaps, ..CommandTasks::default() }
        });
        (schedule, table)
    }

    fn by_kernel<T>(&self, made: impl Fn(&[PageUse]) -> T) -> Vec<T> {
        (0..self.kernels.len() as u32).map(|kernel| made(&self.page_uses(kernel))).collect()
    }

    /// Builds a schedule with the actions around each launch; `around` receives the number of the launch's kernel.
    fn schedule(&self, program: &dyn Program, mut around: impl FnMut(u32) -> CommandTasks) -> Schedule {
        let around = program.commands().iter().map(|command| match *command {
            Command::Launch { kernel, on, .. } => around(self.number(kernel, on)),
            Command::Copy { .. } | Command::Host { .. } | Command::Barrier => CommandTasks::default(),
        });
        Schedule { tasks: around.collect(), ..Schedule::default() }
    }

    fn home(&self, table: &PageTable, page: Page) -> ModuleId {
        let first = Line(page.0 * self.lines_per_page);
        table.home(ModuleId(0), first).expect("a page that is used is placed")
    }
}

/// Page move requested by hints, given a page's uses in one kernel; `None` if the page stays.
fn hinted(uses: &[PageUse]) -> Option<PageMove> {
    let only = |uses: &mut dyn Iterator<Item = &PageUse>| {
        let first = uses.next()?;
        uses.next().is_none().then_some(PageMove { page: first.page, to: first.module })
    };
    only(&mut uses.iter()).or_else(|| only(&mut uses.iter().filter(|used| used.writes)))
}
