//! Where a line lives: its slice, its region, its homes.

use crate::page_table::PageTable;
use crate::view::View;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Topology;
use tombolo_protocol::paging::{Mapping, Paging, Wanted};
use tombolo_protocol::publication::Subscribers;
use tombolo_types::{GpuId, Line, ModuleId, Page};

/// The homes of all lines of a run. Cheap to clone before it: the page table is shared.
#[derive(Clone, Debug)]
pub struct Map {
    gpus: u8,
    modules_per_gpu: u8,
    /// What [`gpus_per_module`] makes of it.
    gpus_per_module: u32,
    /// Slices of this module, of a module of a GPU, and of the host.
    slices: u16,
    slices_of_gpu: u16,
    slices_of_host: u16,
    /// Binary logarithm of neighbouring lines of a slice, where these are spread one after the other.
    together: Option<u32>,
    /// Binary logarithm of the lines of a directory region.
    region_shift: u32,
    pages: Arc<PageTable>,
    /// Of a module whose pages move: how it sees them. Boxed, for few designs have one and every lookup passes here.
    view: Option<Box<View>>,
}

/// Spreads neighbouring numbers over 64 bits. The multiplier is the 64-bit golden ratio, odd.
fn spread(number: u64) -> u64 {
    let mixed = (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// GPUs of a module in 2^-16, rounded up: for [`gpu_of`].
fn gpus_per_module(modules_per_gpu: u8) -> u32 {
    (1 << 16) / u32::from(modules_per_gpu) + 1
}

/// The GPU of a module, without a division.
#[inline]
fn gpu_of(module: ModuleId, gpus_per_module: u32) -> GpuId {
    GpuId(((u32::from(module.0) * gpus_per_module) >> 16) as u8)
}

/// `hash` scaled to `0..count`.
fn scale(hash: u64, count: u64) -> u64 {
    ((u128::from(hash) * u128::from(count)) >> 64) as u64
}

impl Map {
    /// The map of `machine` with pages placed as `pages` says.
    pub fn new(machine: &MachineConfig, pages: Arc<PageTable>) -> Map {
        Map {
            gpus: machine.topology.gpus,
            modules_per_gpu: machine.topology.modules_per_gpu,
            gpus_per_module: gpus_per_module(machine.topology.modules_per_gpu),
            slices: machine.l2.slices,
            slices_of_gpu: machine.l2.slices,
            slices_of_host: machine.coherent_host().map_or(0, |host| host.directory.controllers),
            together: None,
            region_shift: machine.directory.lines_per_entry.trailing_zeros(),
            pages,
            view: None,
        }
    }

    /// The same where slices have so many neighbouring lines each, one after the other.
    pub fn interleaved(self, lines: u64) -> Map {
        Map { together: Some(lines.trailing_zeros()), ..self }
    }

    /// Slices of a module of a GPU, or of the host where that has more.
    pub fn most_slices(&self) -> u16 {
        self.slices_of_gpu.max(self.slices_of_host)
    }

    /// The same as the host's module sees it.
    pub fn of_host(self) -> Map {
        Map { slices: self.slices_of_host, ..self }
    }

    /// The same for a module that has all pages in its own memory, wherever others have them.
    pub fn apart(self, module: ModuleId) -> Map {
        let pages = Arc::new(self.pages.all_at(module));
        Map { pages, ..self }
    }

    /// The same for a module whose pages move.
    pub fn seen(self, view: View) -> Map {
        Map { view: Some(Box::new(view)), ..self }
    }

    /// Whether pages move.
    #[inline]
    pub fn moves(&self) -> bool {
        self.view.is_some()
    }

    /// Whether the module whose map it is, `at`, may make an access to a line.
    #[inline]
    pub fn allows(&self, at: ModuleId, rules: Paging, line: Line, wanted: Wanted) -> bool {
        let Some(view) = &self.view else { return true };
        rules.allows(at, view.mapping(self.page(line), self.placed(line)), wanted)
    }

    /// To whom the module whose map it is publishes what it stores to a line; none where its page is not published.
    #[inline]
    pub fn subscribers(&self, line: Line) -> Option<Subscribers> {
        let view = self.view.as_ref()?;
        Subscribers::new(view.mapping(self.page(line), self.placed(line)).subscribers)
    }

    /// From now on the module whose map it is sees a page so; see [`View::map`].
    pub fn map(&mut self, page: Page, mapping: Option<Mapping>) {
        let placed = self.placed(self.pages.first_line(page));
        self.view_mut().map(page, placed, mapping);
    }

    /// From now on the module whose map it is makes no access to a page.
    pub fn refuse(&mut self, page: Page) {
        let placed = self.placed(self.pages.first_line(page));
        self.view_mut().refuse(page, placed);
    }

    /// All of a page has come to the memory of the module whose map it is.
    pub fn arrived(&mut self, page: Page) {
        let placed = self.placed(self.pages.first_line(page));
        self.view_mut().arrived(page, placed);
    }

    /// The home of a line by a view.
    #[inline(never)]
    fn seen_home(&self, view: &View, line: Line) -> ModuleId {
        view.mapping(self.page(line), self.placed(line)).home
    }

    fn view_mut(&mut self) -> &mut View {
        self.view.as_mut().expect("only where pages move is anybody told of it")
    }

    /// The page of a line.
    #[inline]
    pub fn page(&self, line: Line) -> Page {
        self.pages.page_of(line)
    }

    /// The lines of a page.
    pub fn page_lines(&self, page: Page) -> impl Iterator<Item = Line> + use<> {
        let first = self.pages.first_line(page).0;
        (first..self.pages.first_line(Page(page.0 + 1)).0).map(Line)
    }

    /// Where a line was placed before the run, as module 0 sees it: where pages move no module sees another place.
    #[inline]
    fn placed(&self, line: Line) -> ModuleId {
        self.placed_for(ModuleId(0), line)
    }

    /// Whether the page of a line has been placed: nobody accesses one that has not.
    pub fn is_placed(&self, line: Line) -> bool {
        self.pages.home(ModuleId(0), line).is_some()
    }

    /// The home of a line where that stays, and is the same for every module.
    pub fn only_home(&self, line: Line) -> Option<ModuleId> {
        if self.moves() { None } else { self.pages.only_home(line) }
    }

    #[inline(always)]
    fn placed_for(&self, at: ModuleId, line: Line) -> ModuleId {
        match self.pages.home(at, line) {
            Some(home) => home,
            None => refuse(line),
        }
    }

    /// The directory region of a line.
    pub fn region(&self, line: Line) -> u64 {
        line.0 >> self.region_shift
    }

    /// Lines of a region.
    pub fn lines_per_region(&self) -> u64 {
        1 << self.region_shift
    }

    /// The lines of the region that holds `line`.
    pub fn region_lines(&self, line: Line) -> impl Iterator<Item = Line> + use<> {
        let first = self.region(line) << self.region_shift;
        (first..first + self.lines_per_region()).map(Line)
    }

    /// The slice of this module that holds `line`: all lines of a region share one, as their directory entry.
    #[inline]
    pub fn slice(&self, line: Line) -> u16 {
        self.slice_among(line, self.slices)
    }

    /// The slice of another module that holds `line`.
    #[inline]
    pub fn slice_of(&self, module: ModuleId, line: Line) -> u16 {
        let is_host = module.0 == self.gpus * self.modules_per_gpu;
        self.slice_among(line, if is_host { self.slices_of_host } else { self.slices_of_gpu })
    }

    #[inline]
    fn slice_among(&self, line: Line, slices: u16) -> u16 {
        match self.together {
            None => scale(spread(self.region(line)), u64::from(slices)) as u16,
            Some(together) => ((line.0 >> together) % u64::from(slices)) as u16,
        }
    }
}

#[cold]
#[inline(never)]
fn refuse(line: Line) -> ! {
    panic!("{line} is on a page that nobody placed")
}

impl Topology for Map {
    fn gpus(&self) -> u8 {
        self.gpus
    }

    fn modules_per_gpu(&self) -> u8 {
        self.modules_per_gpu
    }

    #[inline]
    fn gpu_of(&self, module: ModuleId) -> GpuId {
        gpu_of(module, self.gpus_per_module)
    }

    /// Where pages move a module knows only its own view, which is that of all who have the page in use.
    #[inline(always)]
    fn home(&self, at: ModuleId, line: Line) -> ModuleId {
        match &self.view {
            None => self.placed_for(at, line),
            Some(view) => self.seen_home(view, line),
        }
    }

    #[inline]
    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId {
        // Hashed apart from the slice, or a GPU home would use only some of its slices.
        let hash = spread(spread(self.region(line)).rotate_left(32));
        ModuleId(gpu.0 * self.modules_per_gpu + scale(hash, u64::from(self.modules_per_gpu)) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_of_the_gpu_that_a_division_says() {
        for modules in 1..=u8::MAX {
            let reciprocal = gpus_per_module(modules);
            assert!(
                (0..=u8::MAX).all(|module| gpu_of(ModuleId(module), reciprocal) == GpuId(module / modules)),
                "{modules}"
            );
        }
    }
}
