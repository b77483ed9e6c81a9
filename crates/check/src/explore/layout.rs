//! Placement of a program: threads on SMs, locations on lines, lines on homes.

use super::values::CELLS;
use crate::litmus::{Location, Program, ThreadPlacement};
use crate::random::Dice;
use std::collections::BTreeSet;
use std::fmt;
use tombolo_protocol::publication::Subscribers;
use tombolo_protocol::{Homes, Topology};
use tombolo_types::{GpuId, Line, ModuleId, Sectors};

/// An SM of the machine with at least a single thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sm {
    /// Module that contains the SM.
    pub module: ModuleId,
    /// Number of the SM within the module.
    pub index: u8,
}

/// Assignment of locations to lines and directory regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharing {
    /// Each location has its own line and region.
    #[default]
    Apart,
    /// Each location has its own line; two lines share a region.
    Region,
    /// Two locations share a line. A miss fetches the whole line.
    Line,
    /// Each location has its own line; two lines share a page, if pages move.
    Page,
    /// Two locations share a line, each in its own sector. A miss fetches a sector.
    Sectors,
}

impl Sharing {
    /// The keyword used in a placement.
    pub fn word(self) -> &'static str {
        match self {
            Sharing::Apart => "Apart",
            Sharing::Region => "Region",
            Sharing::Line => "Line",
            Sharing::Page => "Page",
            Sharing::Sectors => "Sectors",
        }
    }

    /// All variants for machines with fixed pages.
    pub const ALL: [Sharing; 4] = [Sharing::Apart, Sharing::Region, Sharing::Line, Sharing::Sectors];
    /// Variants for machines whose modules have copies of all memory: copies carry bytes of lines.
    pub const OF_COPIES: [Sharing; 4] = [Sharing::Apart, Sharing::Page, Sharing::Line, Sharing::Sectors];
    /// Variants for machines with block clients: a separate block per location, a block with two lines, a block with
    /// two locations on a line.
    pub const OF_BLOCKS: [Sharing; 3] = [Sharing::Apart, Sharing::Region, Sharing::Line];
    /// Variants for machines with moving pages: a page per location, and a page for two locations.
    pub const OF_PAGES: [Sharing; 2] = [Sharing::Apart, Sharing::Page];
}

/// The homes of a region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionHomes {
    /// Module with the memory that holds the region.
    pub system: ModuleId,
    /// Per GPU: the module that is this GPU's home; ignored for the GPU that contains `system`.
    pub gpus: Vec<ModuleId>,
}

/// A machine with a program laid out on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramLayout {
    /// Number of GPUs in the machine.
    pub gpus: u8,
    /// Number of modules per GPU.
    pub modules_per_gpu: u8,
    /// SM of each thread in the program, in order.
    pub threads: Vec<Sm>,
    /// Assignment of locations to lines and regions.
    pub sharing: Sharing,
    /// Homes of each region.
    pub regions: Vec<RegionHomes>,
    /// Initial subscribers for each region (a page), if pages are published; each GPU then has a single module.
    pub subscribers: Vec<Subscribers>,
}

/// Line and cell of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineCell {
    pub(super) line: u8,
    pub(super) cell: u8,
}

impl ProgramLayout {
    /// A machine without any threads or regions.
    fn empty(shape: PlacementParameters) -> ProgramLayout {
        ProgramLayout {
            gpus: shape.gpus,
            modules_per_gpu: shape.modules_per_gpu,
            threads: Vec::new(),
            sharing: shape.sharing,
            regions: Vec::new(),
            subscribers: Vec::new(),
        }
    }

    /// Division of lines into sectors, used by the filling reads.
    pub(super) fn sectors(&self) -> Sectors {
        match self.sharing {
            Sharing::Apart | Sharing::Region | Sharing::Page | Sharing::Line => Sectors::new(CELLS as u32),
            Sharing::Sectors => Sectors::new(1),
        }
    }

    /// Regions occupied by the locations in `program`.
    fn regions_of(&self, program: &Program) -> usize {
        let lines = self.lines(program.locations.len());
        (0..lines).map(|line| self.region(line) + 1).max().unwrap_or(0)
    }

    /// Modules with a thread or with a home for some region: more modules mean more messages, hence more opportunities
    /// for errors.
    pub fn modules_used(&self) -> usize {
        let homes = self.regions.iter().flat_map(|homes| homes.gpus.iter().copied().chain([homes.system]));
        self.threads.iter().map(|sm| sm.module).chain(homes).collect::<BTreeSet<_>>().len()
    }

    /// Line and cell of a location.
    pub(super) fn cell(&self, location: Location) -> LineCell {
        let index = location.0 as u8;
        match self.sharing {
            Sharing::Apart | Sharing::Region | Sharing::Page => LineCell { line: index, cell: 0 },
            Sharing::Line | Sharing::Sectors => LineCell { line: index / 2, cell: index % 2 },
        }
    }

    /// Region that contains a location.
    pub fn region_of(&self, location: Location) -> usize {
        self.region(self.cell(location).line.into())
    }

    /// Number of lines for a program with `locations` locations.
    pub(super) fn lines(&self, locations: usize) -> usize {
        match self.sharing {
            Sharing::Apart | Sharing::Region | Sharing::Page => locations,
            Sharing::Line | Sharing::Sectors => locations.div_ceil(2),
        }
    }

    /// Region of a line.
    pub(super) fn region(&self, line: usize) -> usize {
        match self.sharing {
            Sharing::Apart | Sharing::Line | Sharing::Sectors => line,
            Sharing::Region | Sharing::Page => line / 2,
        }
    }

    /// The homes of `line` in module `at`'s view.
    pub(super) fn homes_of(&self, at: ModuleId, line: usize) -> Homes {
        self.homes(at, Line(line as u64))
    }
}

impl Topology for ProgramLayout {
    fn gpus(&self) -> u8 {
        self.gpus
    }

    fn modules_per_gpu(&self) -> u8 {
        self.modules_per_gpu
    }

    fn home(&self, at: ModuleId, line: Line) -> ModuleId {
        let region = self.region(line.0 as usize);
        self.subscribers.get(region).map_or(self.regions[region].system, |subscribers| subscribers.home(at))
    }

    fn remote_gpu_home(&self, gpu: GpuId, line: Line) -> ModuleId {
        if !self.subscribers.is_empty() {
            return ModuleId(gpu.0);
        }
        self.regions[self.region(line.0 as usize)].gpus[gpu.0 as usize]
    }
}

impl fmt::Display for ProgramLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, sm) in self.threads.iter().enumerate() {
            write!(f, "P{thread}@m{}.sm{} ", sm.module.0, sm.index)?;
        }
        for (region, homes) in self.regions.iter().enumerate() {
            write!(f, "r{region}@m{}", homes.system.0)?;
            let own = homes.system.0 / self.modules_per_gpu;
            for (gpu, home) in homes.gpus.iter().enumerate().filter(|(gpu, _)| *gpu != own as usize) {
                write!(f, ",g{gpu}:m{}", home.0)?;
            }
            write!(f, " ")?;
        }
        for (region, subscribers) in self.subscribers.iter().enumerate() {
            write!(f, "r{region} of {subscribers} ")?;
        }
        f.write_str(self.sharing.word())
    }
}

/// Parameters for the enumeration of placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementParameters {
    /// Number of GPUs in the machine; at least the number named by the program.
    pub gpus: u8,
    /// Number of modules per GPU.
    pub modules_per_gpu: u8,
    /// Assignment of locations to lines and regions.
    pub sharing: Sharing,
    /// Set if GPU homes are enumerated; a flat protocol never uses GPU homes.
    pub gpu_homes: bool,
    /// Set if the CTAs in a module may also share an SM.
    pub shared_sms: bool,
    /// Set if all memory belongs to the host: then a single home exists, outside every module.
    pub host_memory: bool,
}

/// Enumerates all layouts for `program` on a machine, up to renaming among GPUs and among a GPU's modules.
///
/// Threads in a CTA share an SM. CTAs are placed on the GPU that the program names; named GPUs are numbered from 0 in
/// ascending order. Further GPUs have no thread but may contain homes, always on the first module. A request there
/// never meets another region's request, and no thread's synchronisation acts on this GPU. Thus module sharing among
/// regions makes no difference.
///
/// # Panics
/// If a thread is on the host: [`refuses`](super::refuses) tells which programs have a machine.
pub fn layouts(program: &Program, shape: PlacementParameters) -> Vec<ProgramLayout> {
    let base = ProgramLayout::empty(shape);
    let regions = base.regions_of(program);
    // The program fixes the GPU of each thread, therefore only GPUs without threads may exchange names.
    let renamings = renamings(shape, gpus_of(program));
    let mut placements = BTreeSet::new();
    let mut all = Vec::new();
    for threads in thread_placements(program, shape) {
        let images: Vec<Vec<Sm>> = renamings.iter().map(|renaming| threads_renamed(&threads, renaming)).collect();
        if !placements.insert(images.iter().min().cloned()) {
            continue;
        }
        // Homes are distinguished only up to the renamings that leave the threads in place.
        let open = images.iter().zip(&renamings).filter(|(image, _)| **image == threads);
        let open: Vec<&Vec<u8>> = open.map(|(_, renaming)| renaming).collect();
        let placed = ProgramLayout { threads: threads.clone(), ..base.clone() };
        let mut seen = BTreeSet::new();
        for layout in with_homes(program, &placed, regions, shape) {
            let plain = without_idle_homes(program, &layout, shape);
            let canonical = open.iter().map(|renaming| renamed(&plain, renaming)).min().unwrap_or(plain);
            if seen.insert(canonical) {
                all.push(layout);
            }
        }
    }
    all
}

fn threads_renamed(threads: &[Sm], renaming: &[u8]) -> Vec<Sm> {
    let name = |module: ModuleId| renaming.get(module.0 as usize).map_or(module, |name| ModuleId(*name));
    threads.iter().map(|sm| Sm { module: name(sm.module), index: sm.index }).collect()
}

/// Layouts examined by [`layouts`], before the removal of duplicates under renaming.
pub fn possible_layouts(program: &Program, shape: PlacementParameters) -> u64 {
    let empty = ProgramLayout::empty(shape);
    let homes = (0..empty.regions_of(program)).map(|region| home_options(program, &empty, region, shape).len() as u64);
    homes.fold(thread_placements(program, shape).len() as u64, u64::saturating_mul)
}

/// Draws a random layout from [`layouts`].
pub(crate) fn drawn_layout(program: &Program, shape: PlacementParameters, dice: &mut Dice) -> ProgramLayout {
    let names = gpu_names(program);
    let mut layout = ProgramLayout::empty(shape);
    for (index, thread) in program.threads.iter().enumerate() {
        let mate = program.threads[..index].iter().position(|other| other.placement.shares_cta(thread.placement));
        let sm = match mate {
            Some(mate) => layout.threads[mate],
            None => {
                let options = sm_options(&layout.threads, machine_gpu(&names, thread.placement), shape);
                options[dice.below(options.len())]
            }
        };
        layout.threads.push(sm);
    }
    for region in 0..layout.regions_of(program) {
        let options = home_options(program, &layout, region, shape);
        layout.regions.push(options[dice.below(options.len())].clone());
    }
    layout
}

/// GPUs named by the threads in `program`.
pub fn gpus_of(program: &Program) -> u8 {
    gpu_names(program).len() as u8
}

fn gpu_names(program: &Program) -> Vec<GpuId> {
    let mut names: Vec<GpuId> = program.threads.iter().filter_map(|thread| thread.placement.gpu()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Machine GPU for the GPU named in a thread's placement; `None` for a host thread.
fn machine_gpu(names: &[GpuId], placement: ThreadPlacement) -> Option<GpuId> {
    placement.gpu().map(|name| GpuId(names.partition_point(|other| *other < name) as u8))
}

/// Every assignment of the program's CTAs to SMs.
fn thread_placements(program: &Program, shape: PlacementParameters) -> Vec<Vec<Sm>> {
    let names = gpu_names(program);
    let mut partial: Vec<Vec<Sm>> = vec![Vec::new()];
    for (index, thread) in program.threads.iter().enumerate() {
        let mate = program.threads[..index].iter().position(|other| other.placement.shares_cta(thread.placement));
        partial = partial
            .into_iter()
            .flat_map(|placed| {
                let options = match mate {
                    Some(mate) => vec![placed[mate]],
                    None => sm_options(&placed, machine_gpu(&names, thread.placement), shape),
                };
                options.into_iter().map(move |sm| placed.iter().copied().chain([sm]).collect())
            })
            .collect();
    }
    partial
}

/// The SMs available to a new CTA on `gpu`: a fresh SM in each module, or an occupied SM.
///
/// A thread without a GPU has its own host core, numbered behind all modules.
fn sm_options(placed: &[Sm], gpu: Option<GpuId>, shape: PlacementParameters) -> Vec<Sm> {
    let Some(gpu) = gpu else {
        let module = ModuleId(shape.gpus * shape.modules_per_gpu);
        let index = placed.iter().filter(|sm| sm.module == module).count() as u8;
        return vec![Sm { module, index }];
    };
    let first = gpu.0 * shape.modules_per_gpu;
    let mut options = Vec::new();
    for module in (first..first + shape.modules_per_gpu).map(ModuleId) {
        let taken = placed.iter().filter(|sm| sm.module == module).map(|sm| sm.index + 1).max().unwrap_or(0);
        let lowest = if shape.shared_sms { 0 } else { taken };
        options.extend((lowest..=taken).map(|index| Sm { module, index }));
    }
    options
}

/// Every choice of homes for `regions` regions.
fn with_homes(
    program: &Program,
    placed: &ProgramLayout,
    regions: usize,
    shape: PlacementParameters,
) -> Vec<ProgramLayout> {
    let mut partial = vec![placed.clone()];
    for region in 0..regions {
        let options = home_options(program, placed, region, shape);
        partial = partial
            .into_iter()
            .flat_map(|layout| {
                options.iter().map(move |homes| {
                    let mut next = layout.clone();
                    next.regions.push(homes.clone());
                    next
                })
            })
            .collect();
    }
    partial
}

fn home_options(
    program: &Program,
    placed: &ProgramLayout,
    region: usize,
    shape: PlacementParameters,
) -> Vec<RegionHomes> {
    if shape.host_memory {
        return vec![RegionHomes { system: ModuleId(0), gpus: Vec::new() }];
    }
    let per_gpu = shape.modules_per_gpu;
    let mut options = Vec::new();
    let with_threads = gpus_of(program);
    let counts = |system: &ModuleId| system.0 / per_gpu < with_threads || system.0.is_multiple_of(per_gpu);
    for system in (0..shape.gpus * per_gpu).map(ModuleId).filter(counts) {
        let mut choices: Vec<Vec<ModuleId>> = vec![Vec::new()];
        for gpu in 0..shape.gpus {
            let matters = shape.gpu_homes && gpu != system.0 / per_gpu && touches(program, placed, region, GpuId(gpu));
            let last = if matters { per_gpu } else { 1 };
            choices = choices
                .into_iter()
                .flat_map(|homes| {
                    (0..last).map(move |i| homes.iter().copied().chain([ModuleId(gpu * per_gpu + i)]).collect())
                })
                .collect();
        }
        options.extend(choices.into_iter().map(|gpus| RegionHomes { system, gpus }));
    }
    options
}

/// True if a thread on `gpu` accesses the region.
fn touches(program: &Program, placed: &ProgramLayout, region: usize, gpu: GpuId) -> bool {
    let names = gpu_names(program);
    program.threads.iter().filter(|thread| machine_gpu(&names, thread.placement) == Some(gpu)).any(|thread| {
        let locations = thread.code.iter().filter_map(|instruction| instruction.location());
        locations.map(|location| placed.region(placed.cell(location).line as usize)).any(|at| at == region)
    })
}

/// Every renaming that keeps each GPU's modules together and leaves the first `fixed` GPUs unchanged:
/// `renaming[module]` is the new name. The remaining GPUs have homes only on their first module, therefore their
/// modules have no names to exchange.
fn renamings(shape: PlacementParameters, fixed: u8) -> Vec<Vec<u8>> {
    let (inner, same) = (permutations(shape.modules_per_gpu), vec![(0..shape.modules_per_gpu).collect()]);
    let mut all = Vec::new();
    for gpus in permutations(shape.gpus - fixed) {
        let gpus: Vec<u8> = (0..fixed).chain(gpus.iter().map(|gpu| fixed + gpu)).collect();
        let mut partial: Vec<Vec<u8>> = vec![Vec::new()];
        for gpu in 0..shape.gpus {
            let target = gpus[gpu as usize] * shape.modules_per_gpu;
            let orders = if gpu < fixed { &inner } else { &same };
            partial = partial
                .into_iter()
                .flat_map(|names| {
                    orders
                        .iter()
                        .map(move |order| names.iter().copied().chain(order.iter().map(|i| target + i)).collect())
                })
                .collect();
        }
        all.extend(partial);
    }
    all
}

fn permutations(n: u8) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|order: Vec<u8>| {
                let free: Vec<u8> = (0..n).filter(|i| !order.contains(i)).collect();
                free.into_iter().map(move |i| order.iter().copied().chain([i]).collect())
            })
            .collect();
    }
    all
}

/// Replaces each unused GPU home by the system home. A GPU home is unused in the system home's own GPU, in a GPU
/// without threads that access the region, and under a flat protocol.
fn without_idle_homes(program: &Program, layout: &ProgramLayout, shape: PlacementParameters) -> ProgramLayout {
    let mut plain = layout.clone();
    for (region, homes) in plain.regions.iter_mut().enumerate() {
        let own = homes.system.0 / shape.modules_per_gpu;
        for (gpu, home) in (0..).zip(&mut homes.gpus) {
            if !shape.gpu_homes || gpu == own || !touches(program, layout, region, GpuId(gpu)) {
                *home = homes.system;
            }
        }
    }
    plain
}

/// The layout with modules renamed.
fn renamed(layout: &ProgramLayout, renaming: &[u8]) -> ProgramLayout {
    let name = |module: ModuleId| ModuleId(renaming[module.0 as usize]);
    let regions = layout.regions.iter().map(|homes| {
        let system = name(homes.system);
        let mut gpus = vec![system; homes.gpus.len()];
        for home in homes.gpus.iter().filter(|home| **home != homes.system) {
            let home = name(*home);
            gpus[(home.0 / layout.modules_per_gpu) as usize] = home;
        }
        RegionHomes { system, gpus }
    });
    ProgramLayout { threads: threads_renamed(&layout.threads, renaming), regions: regions.collect(), ..layout.clone() }
}
