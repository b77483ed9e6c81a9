//! Address map: slice, region and home of each line. The home follows from the line's page: from the page table, or
//! from the module's own view if pages move. The slice follows from a hash of the line's directory region, or from the
//! line number if slices are interleaved.

use crate::front_end::page_table::PageTable;
use crate::front_end::view::View;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Topology;
use tombolo_protocol::paging::{AttemptedAccess, Mapping, Paging};
use tombolo_protocol::publication::Subscribers;
use tombolo_types::{GpuId, Line, ModuleId, Page};

/// Homes for all lines in a run. Cheap to clone before the run: the page table is shared.
#[derive(Clone, Debug)]
pub struct AddressMap {
    gpus: u8,
    modules_per_gpu: u8,
    /// Reciprocal computed by [`gpus_per_module`].
    gpus_per_module: u32,
    /// Slice counts: in this module, in a GPU's module, and in the host.
    slices: u16,
    slices_of_gpu: u16,
    slices_of_host: u16,
    /// Binary logarithm of the consecutive lines per slice, if slices are interleaved.
    together: Option<u32>,
    /// Binary logarithm of the lines per directory region.
    region_shift: u32,
    pages: Arc<PageTable>,
    /// The module's view, if pages move. Boxed, because few designs have a view and every lookup passes here.
    view: Option<Box<View>>,
}

/// Hashes neighbouring numbers over 64 bits. The multiplier is the 64-bit golden ratio, odd.
fn spread(number: u64) -> u64 {
    let mixed = (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Reciprocal for `modules_per_gpu` in units of 2^-16, rounded up, used by [`gpu_of`].
fn gpus_per_module(modules_per_gpu: u8) -> u32 {
    (1 << 16) / u32::from(modules_per_gpu) + 1
}

/// GPU of a module, computed without a division.
#[inline]
fn gpu_of(module: ModuleId, gpus_per_module: u32) -> GpuId {
    GpuId(((u32::from(module.0) * gpus_per_module) >> 16) as u8)
}

/// Scales `hash` to `0..count`.
fn scale(hash: u64, count: u64) -> u64 {
    ((u128::from(hash) * u128::from(count)) >> 64) as u64
}

impl AddressMap {
    /// Map for `machine` with pages placed by `pages`.
    pub fn new(machine: &MachineConfig, pages: Arc<PageTable>) -> AddressMap {
        AddressMap {
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

    /// Interleaves slices every `lines` consecutive lines instead of hashing regions. The number must be a power of
    /// two.
    pub fn interleaved(self, lines: u64) -> AddressMap {
        AddressMap { together: Some(lines.trailing_zeros()), ..self }
    }

    /// Maximum number of slices in a module, in a GPU or in the host.
    pub(crate) fn most_slices(&self) -> u16 {
        self.slices_of_gpu.max(self.slices_of_host)
    }

    /// The same map, from the host module's viewpoint.
    pub fn for_host(self) -> AddressMap {
        AddressMap { slices: self.slices_of_host, ..self }
    }

    /// The same map for a module with all pages in its own memory, regardless of homes elsewhere.
    pub fn all_local(self, module: ModuleId) -> AddressMap {
        let pages = Arc::new(self.pages.all_at(module));
        AddressMap { pages, ..self }
    }

    /// The same map for a module whose pages move.
    pub fn with_view(self, view: View) -> AddressMap {
        AddressMap { view: Some(Box::new(view)), ..self }
    }

    /// True if pages move.
    #[inline]
    pub(crate) fn moves(&self) -> bool {
        self.view.is_some()
    }

    /// True if module `at`, the owner of this map, may access a line in the way given by `wanted`.
    #[inline]
    pub(crate) fn allows(&self, at: ModuleId, rules: Paging, line: Line, wanted: AttemptedAccess) -> bool {
        let Some(view) = &self.view else { return true };
        rules.allows(at, view.mapping(self.page(line), self.placed(line)), wanted)
    }

    /// Subscribers for the module's stores to a line; `None` if the line's page is not published.
    #[inline]
    pub(crate) fn subscribers(&self, line: Line) -> Option<Subscribers> {
        let view = self.view.as_ref()?;
        Subscribers::new(view.mapping(self.page(line), self.placed(line)).subscribers)
    }

    /// Number of changes to the module's mappings so far; 0 where pages never move.
    pub(crate) fn changes(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.changes())
    }

    /// Sets the module's mapping of a page; see `View::map`.
    pub fn map(&mut self, page: Page, mapping: Option<Mapping>) {
        let placed = self.placed(self.pages.first_line(page));
        self.view_mut().map(page, placed, mapping);
    }

    /// Stops all accesses by the module to a page.
    pub(crate) fn refuse(&mut self, page: Page) {
        let placed = self.placed(self.pages.first_line(page));
        self.view_mut().refuse(page, placed);
    }

    /// Notes the arrival of a whole page in the module's memory.
    pub(crate) fn arrived(&mut self, page: Page) {
        let placed = self.placed(self.pages.first_line(page));
        self.view_mut().arrived(page, placed);
    }

    /// Home of a line according to a view.
    #[inline(never)]
    fn seen_home(&self, view: &View, line: Line) -> ModuleId {
        view.mapping(self.page(line), self.placed(line)).home
    }

    fn view_mut(&mut self) -> &mut View {
        self.view.as_mut().expect("only where pages move is anybody told of it")
    }

    /// Page of a line.
    #[inline]
    pub(crate) fn page(&self, line: Line) -> Page {
        self.pages.page_of(line)
    }

    /// Lines of a page.
    pub(crate) fn page_lines(&self, page: Page) -> impl Iterator<Item = Line> + use<> {
        let first = self.pages.first_line(page).0;
        (first..self.pages.first_line(Page(page.0 + 1)).0).map(Line)
    }

    /// Home of a line before the run, from module 0's viewpoint: if pages move, all modules agree on this home.
    #[inline]
    fn placed(&self, line: Line) -> ModuleId {
        self.placed_for(ModuleId(0), line)
    }

    /// True if the line's page has been placed. No module accesses lines on unplaced pages.
    pub(crate) fn is_placed(&self, line: Line) -> bool {
        self.pages.home(ModuleId(0), line).is_some()
    }

    /// Home of a line if fixed and equal for every module.
    pub(crate) fn only_home(&self, line: Line) -> Option<ModuleId> {
        if self.moves() { None } else { self.pages.only_home(line) }
    }

    #[inline(always)]
    fn placed_for(&self, at: ModuleId, line: Line) -> ModuleId {
        match self.pages.home(at, line) {
            Some(home) => home,
            None => refuse(line),
        }
    }

    /// Directory region of a line.
    pub(crate) fn region(&self, line: Line) -> u64 {
        line.0 >> self.region_shift
    }

    /// Number of lines per region.
    pub(crate) fn lines_per_region(&self) -> u64 {
        1 << self.region_shift
    }

    /// Lines in the region around `line`.
    pub(crate) fn region_lines(&self, line: Line) -> impl Iterator<Item = Line> + use<> {
        let first = self.region(line) << self.region_shift;
        (first..first + self.lines_per_region()).map(Line)
    }

    /// Slice in this module for `line`. All lines in a region share a slice and a directory entry.
    #[inline]
    pub fn slice(&self, line: Line) -> u16 {
        self.slice_among(line, self.slices)
    }

    /// Slice in another module for `line`.
    #[inline]
    pub(crate) fn slice_of(&self, module: ModuleId, line: Line) -> u16 {
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

impl Topology for AddressMap {
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

    /// If pages move, a module knows only its own view, which agrees among all modules with access to the page.
    #[inline(always)]
    fn home(&self, at: ModuleId, line: Line) -> ModuleId {
        match &self.view {
            None => self.placed_for(at, line),
            Some(view) => self.seen_home(view, line),
        }
    }

    #[inline]
    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId {
        // The home's hash differs from the slice's hash; otherwise a GPU home would use only some slices.
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
