//! The host side of a program during recording: launches, copies, and accesses to arrays in between.

use super::RecordError;
use super::block::{Block, Packer, Store, cta_bytes, digest};
use super::memory_budget::MemoryBudget;
use super::recording::{Cache, Recording};
use super::sample::{CtaSelection, LaunchPiece, LaunchWeights, Sample, SeriesLaunch, Trips};
use super::simulation_cost::SimulationCost;
use crate::encode::decode;
use crate::simt::{
    Array, Backing, Cta, CtaRecord, Discipline, Element, Grid, IndependenceChecker, Launch, Memory, Scaling, guarded,
    run_cooperative,
};
use crate::transfers::{copied_back, copied_in};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use tombolo_types::array::merge_ranges;
use tombolo_types::stream::{Command, CtaStream, KernelInfo};
use tombolo_types::{HostPhase, LaunchDevices, LineSize, StopFlag};

/// Compressed streams kept in memory before the rest goes to a temporary file. Source: assumed, a quarter of the
/// gigabyte allowed for a run besides arrays.
const HELD_BYTES: u64 = 256 << 20;
/// Maximum CTA count in a share, the work unit of a recording thread. Blocks never cross a share's bounds and do not
/// depend on the thread count.
const SHARE: u32 = 256;
/// Minimum share count in a grid, if the grid has at least this many CTAs.
const SHARES: u32 = 16;

/// Recording options: properties of the target machine, and limits for the recording itself.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Lanes per warp: a power of two up to 64; 32 on NVIDIA GPUs, 64 on AMD GPUs.
    pub warp_width: u32,
    /// Line size for coalescing accesses.
    pub line: LineSize,
    /// Threads that record independent kernels; the result does not depend on their number.
    pub threads: u32,
    /// Verifies the independence of independent kernels. Slow.
    pub check_independence: bool,
    /// Bytes of compressed streams held in memory.
    pub held_bytes: u64,
    /// Host memory limit in bytes for arrays, or for a cooperative kernel's streams. Without a limit, recording may use
    /// all memory available on the host.
    pub memory: Option<u64>,
    /// Sampling plan, if only part of the program is recorded. The results computed by a sampled program differ from
    /// the whole program's results.
    pub sample: Option<Sample>,
}

impl Default for RecordOptions {
    fn default() -> RecordOptions {
        RecordOptions {
            warp_width: 32,
            line: LineSize::B128,
            threads: 1,
            check_independence: false,
            held_bytes: HELD_BYTES,
            memory: None,
            sample: None,
        }
    }
}

/// The host program's interface to the device: launches kernels, which run at once, and copies arrays.
pub struct Host<'a> {
    memory: &'a Memory,
    options: &'a RecordOptions,
    store: Store,
    kernels: Vec<KernelInfo>,
    blocks: Vec<Vec<Block>>,
    /// Kernels by block digest.
    known: FxHashMap<u64, Vec<u32>>,
    commands: Vec<Command>,
    /// Host accesses to arrays before the first command.
    setup: HostPhase,
    /// Host accesses to arrays between other commands, without duplicates.
    phases: Vec<HostPhase>,
    /// Index into `phases` for each distinct phase.
    known_phases: FxHashMap<HostPhase, u32>,
    /// Weights for the recorded launches, by launch.
    parts: Vec<LaunchWeights>,
    /// The last launch by kernel and target: its index in `parts`, and true if this launch is the first for both.
    latest: FxHashMap<(u32, LaunchTarget), (usize, bool)>,
    /// The current launch of the series in progress; outside a series, a launch that represents only itself.
    turn: SeriesLaunch,
    /// Recorded launches in the current series; 1 outside a series.
    of_series: u64,
    /// Number of series so far.
    series: u32,
    /// Launches recorded so far, completely or in part.
    recorded: u32,
    launches: f64,
    instructions: u64,
    /// Set when arrays lack results because an earlier launch was recorded only in part.
    torn: bool,
    /// The launches so far, if launches are only listed and not run.
    planned: Option<Vec<KernelInfo>>,
    /// Stream and devices for the next launch.
    target: LaunchTarget,
}

/// Stream and devices for a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct LaunchTarget {
    stream: u32,
    on: LaunchDevices,
}

impl<'a> Host<'a> {
    /// A host whose device memory is `memory`. Panics if the warp width is not a power of two up to 64.
    pub fn new(memory: &'a Memory, options: &'a RecordOptions) -> Host<'a> {
        let width = options.warp_width;
        assert!(width.is_power_of_two() && width <= 64, "a warp of {width} lanes");
        memory.host().switch(true);
        Host {
            memory,
            options,
            store: Store::new(options.held_bytes),
            kernels: Vec::new(),
            blocks: Vec::new(),
            known: FxHashMap::default(),
            commands: Vec::new(),
            setup: HostPhase::default(),
            phases: Vec::new(),
            known_phases: FxHashMap::default(),
            parts: Vec::new(),
            latest: FxHashMap::default(),
            turn: SeriesLaunch::ALONE,
            of_series: 1,
            series: 0,
            recorded: 0,
            launches: 0.0,
            instructions: 0,
            torn: false,
            planned: None,
            target: LaunchTarget::default(),
        }
    }

    /// A host that runs no kernel and only lists the launches: [`Host::into_plan`].
    pub fn planning(memory: &'a Memory, options: &'a RecordOptions) -> Host<'a> {
        Host { planned: Some(Vec::new()), ..Host::new(memory, options) }
    }

    /// Launches listed by a planning host, in order.
    pub fn into_plan(self) -> Vec<KernelInfo> {
        self.planned.unwrap_or_default()
    }

    /// Device memory, which the host may read and write between launches. These accesses are recorded.
    pub fn memory(&self) -> &'a Memory {
        self.memory
    }

    /// Lets `set` give the arrays their contents before the first command:
    /// [`Program::setup`](tombolo_types::stream::Program::setup). The ranges are recorded even if the arrays have no
    /// real contents. Must precede every other call.
    ///
    /// # Panics
    /// After a command.
    pub fn set_up(&mut self, set: impl FnOnce(&Memory)) {
        assert!(self.commands.is_empty(), "arrays are set up behind a command");
        set(self.memory);
        self.setup = self.memory.host().take();
    }

    /// Sets the arrays to the contents that the next launch expects, if earlier launches were left out or recorded in
    /// part.
    pub fn restore(&mut self, set: impl FnOnce(&Memory)) {
        let watched = self.memory.host().switch(false);
        set(self.memory);
        self.memory.host().switch(watched);
        self.torn = false;
    }

    /// True if a part of the program represents the whole, and results must not be read.
    pub fn samples(&self) -> bool {
        self.options.sample.is_some()
    }

    /// Runs `count` launches that differ only in their index: calls `launch` with each index, or, in a sample, with a
    /// few indices that are spread evenly. Each call to `launch` launches exactly once.
    pub fn series(
        &mut self,
        count: u64,
        launch: impl FnMut(&mut Host<'a>, u64) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        self.series_of(&vec![1; count as usize], launch)
    }

    /// A series in which launch `index` represents `stands_for[index]` launches with identical streams. Weights above 1
    /// are for samples only: without sampling, each launch continues from the results of the launch before.
    pub fn series_of(
        &mut self,
        stands_for: &[u64],
        mut launch: impl FnMut(&mut Host<'a>, u64) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let alone = stands_for.iter().all(|&launches| launches == 1);
        assert!(alone || self.samples(), "launches stand for others in samples only");
        let turns = Sample::series(self.options.sample.as_ref(), stands_for);
        self.of_series = turns.iter().filter(|turn| turn.counts()).count() as u64;
        self.series += 1;
        let leaves_out = turns.len() < stands_for.len();
        let outcome = turns.into_iter().try_for_each(|turn| {
            self.turn = turn;
            let launched = launch(self, turn.index);
            self.torn |= leaves_out && self.computes();
            launched
        });
        (self.turn, self.of_series) = (SeriesLaunch::ALONE, 1);
        outcome
    }

    /// Number of launches recorded in a series with `count` launches.
    pub fn series_length(&self, count: u64) -> u64 {
        self.options.sample.as_ref().map_or(count, |sample| sample.kept(count))
    }

    /// Copies an array from host to device. The contents are already present: this call only records the transfer.
    pub fn copy_to_device<T: Element>(&mut self, array: Array<T>) {
        self.copy(array, true);
    }

    /// Copies an array from device to host.
    pub fn copy_to_host<T: Element>(&mut self, array: Array<T>) {
        self.copy(array, false);
    }

    /// Like [`Host::copy_to_device`], for the first `elements` elements in an array. Panics beyond the array's end.
    pub fn copy_first_to_device<T: Element>(&mut self, array: Array<T>, elements: u64) {
        self.copy_first(array, elements, true);
    }

    /// Like [`Host::copy_to_host`], for the first `elements` elements in an array. Panics beyond the array's end.
    pub fn copy_first_to_host<T: Element>(&mut self, array: Array<T>, elements: u64) {
        self.copy_first(array, elements, false);
    }

    fn copy<T: Element>(&mut self, array: Array<T>, to_device: bool) {
        self.copy_first(array, array.len(), to_device);
    }

    /// Like [`Host::copy_to_device`], for a single element. Panics beyond the array's end.
    pub fn copy_element_to_device<T: Element>(&mut self, array: Array<T>, index: u64) {
        self.copy_part(array, index..index + 1, true);
    }

    fn copy_first<T: Element>(&mut self, array: Array<T>, elements: u64, to_device: bool) {
        self.copy_part(array, 0..elements, to_device);
    }

    fn copy_part<T: Element>(&mut self, array: Array<T>, part: Range<u64>, to_device: bool) {
        assert!(part.end <= array.len(), "a copy of {} elements of {}", part.end, array.len());
        let (address, bytes) = (array.address(part.start), (part.end - part.start) * T::BYTES);
        self.command(Command::Copy { address, bytes, to_device });
    }

    /// Appends a command after the host phase that collects all host accesses since the previous command.
    fn command(&mut self, command: Command) {
        self.close_phase();
        self.commands.push(command);
    }

    fn close_phase(&mut self) {
        let phase = self.memory.host().take();
        if phase.is_empty() {
            return;
        }
        let next = self.phases.len() as u32;
        let index = *self.known_phases.entry(phase).or_insert_with_key(|phase| {
            self.phases.push(phase.clone());
            next
        });
        self.commands.push(Command::Host { phase: index });
    }

    /// Sends the next launch to stream `stream` instead of stream 0. Launches in a single stream run in order; launches
    /// in different streams run concurrently. A barrier or the host must order accesses to shared data. In samples, all
    /// launches run in order.
    pub fn stream(&mut self, stream: u32) -> &mut Host<'a> {
        self.target.stream = stream;
        self
    }

    /// Runs the next launch on these devices instead of the whole machine.
    pub fn on(&mut self, on: LaunchDevices) -> &mut Host<'a> {
        self.target.on = on;
        self
    }

    /// Waits for all streams.
    pub fn barrier(&mut self) {
        self.command(Command::Barrier);
    }

    /// Launches a kernel whose CTAs do not see each other's writes: CTAs may run in any order, on several threads. Only
    /// integer reductions may access the same element from several CTAs.
    pub fn launch<K>(&mut self, grid: Grid, kernel: K) -> Result<(), RecordError>
    where
        K: Fn(&mut Cta<'_>) + Sync,
    {
        self.launch_independent(grid, &kernel)
    }

    /// The body of [`Host::launch`], compiled once for all kernels.
    fn launch_independent(&mut self, grid: Grid, kernel: &SyncKernel<'_>) -> Result<(), RecordError> {
        let shadow = self.options.check_independence.then(IndependenceChecker::default);
        let threads = recording_threads(self.options, shadow.is_some());
        let run: &RecordCtas<'_> = &|launch, store| record_shares(launch, store, threads, kernel);
        self.record(grid, Discipline::Independent, shadow.as_ref(), run)
    }

    /// Launches a kernel whose CTAs race for memory without waiting for each other. CTAs are recorded in CTA id order:
    /// hardware could see another order, but every design replays this order.
    pub fn launch_ordered<K>(&mut self, grid: Grid, kernel: K) -> Result<(), RecordError>
    where
        K: Fn(&mut Cta<'_>),
    {
        let run: &RecordCtas<'_> =
            &|launch, store| Scratch::default().record(launch, store, 0..launch.info.ctas, &kernel);
        self.record(grid, Discipline::Ordered, None, run)
    }

    /// Launches a kernel whose CTAs wait for each other; all CTAs must be resident at once.
    #[expect(clippy::needless_pass_by_value, reason = "takes a closure, like the other launches")]
    pub fn launch_cooperative<K>(&mut self, grid: Grid, kernel: K) -> Result<(), RecordError>
    where
        K: AsyncFn(&mut Cta<'_>),
    {
        let room = MemoryBudget::of(self.options);
        self.record(grid, Discipline::Cooperative, None, &|launch, store| {
            let mut packer = Packer::new(store, 0);
            run_cooperative(launch, &kernel, room, |stream| packer.push(stream))?;
            packer.finish()
        })
    }

    fn record(
        &mut self,
        grid: Grid,
        discipline: Discipline,
        shadow: Option<&IndependenceChecker>,
        run: &RecordCtas<'_>,
    ) -> Result<(), RecordError> {
        let mut target = std::mem::take(&mut self.target);
        if self.samples() {
            // Concurrent launches take different times than launches that run alone, so a part could not represent a
            // known share.
            target.stream = 0;
        }
        if let Some(message) = grid.defect() {
            return Err(RecordError::Grid { kernel: grid.name, message });
        }
        self.launches += self.turn.stands_for;
        if let Some(planned) = &mut self.planned {
            planned.push(grid.info(discipline));
            return Ok(());
        }
        if self.torn {
            return Err(RecordError::Sample { kernel: grid.name });
        }
        let (memory, options) = (self.memory, self.options);
        let record = |store: &Store, ctas: &CtaSelection, trips: Range<u64>| {
            let info = grid.of(ctas).info(discipline);
            let launch = Launch {
                memory,
                info: &info,
                grid: grid.ctas as u32,
                picked: ctas,
                trips,
                discipline,
                width: options.warp_width,
                line: options.line,
                shadow,
            };
            run(&launch, store).map(|(blocks, instructions)| (info, blocks, instructions))
        };
        for piece in self.pieces(&grid, discipline, &record)? {
            if !self.turn.counts() && piece != LaunchPiece::whole(grid.ctas, grid.trips.count) {
                // Parts of different launches use different places of their grids, so this piece would leave nothing
                // useful in the caches for the next launch.
                continue;
            }
            let (info, blocks, instructions) = record(&self.store, &piece.ctas, piece.trips.clone())?;
            let kernel = self.kernel(info, blocks, instructions)?;
            self.push(kernel, &piece, target);
        }
        self.recorded += 1;
        Ok(())
    }

    /// True if launches compute values; addresses in later launches may depend on these values.
    fn computes(&self) -> bool {
        self.memory.backing() == Backing::Real
    }

    /// The pieces of a launch to record. Returns the whole launch if its CTAs wait for each other, or if later launches
    /// depend on results computed in order.
    fn pieces(
        &mut self,
        grid: &Grid,
        discipline: Discipline,
        record: &impl Fn(&Store, &CtaSelection, Range<u64>) -> RecordedPiece,
    ) -> Result<Vec<LaunchPiece>, RecordError> {
        let part_will_do = match discipline {
            Discipline::Independent => true,
            Discipline::Ordered => !self.computes(),
            Discipline::Cooperative => false,
        };
        let Trips { count, unit } = grid.trips;
        let (info, all) = (grid.clone().info(discipline), LaunchPiece::whole(grid.ctas, count));
        let Some(sample) = self.options.sample.as_ref().filter(|_| part_will_do) else { return Ok(vec![all]) };
        if count == 1 && grid.ctas <= (sample.at_once)(&info) {
            return Ok(vec![all]);
        }
        // Tries a CTA from the middle of the grid, with typical neighbours, for enough trips to meet all code. This CTA
        // runs again in its turn and must then find the same memory, so its writes are undone.
        let (middle, tried) = (grid.ctas / 2, unit.min(count));
        let tried_out = || record(&self.store, &CtaSelection::run(middle..middle + 1), 0..tried);
        let (_, blocks, _) = self.memory.undone(tried_out)?;
        let work = self.work(&blocks)?.share(count, tried.max(1));
        self.store.release(&blocks);
        let pieces = sample.pieces(&info, grid.trips, work, self.of_series, self.recorded);
        self.torn = self.computes() && pieces != [all];
        Ok(pieces)
    }

    /// Simulation cost of the first CTA in `blocks`.
    fn work(&self, blocks: &[Block]) -> Result<SimulationCost, RecordError> {
        let Some(block) = blocks.first() else { return Ok(SimulationCost::default()) };
        let mut raw = Vec::new();
        self.store.unpack(block, &mut raw)?;
        let mut stream = CtaStream::default();
        let bytes = cta_bytes(&raw, block.ctas, 0).expect("a block holds its first CTA");
        decode(bytes, &mut stream).expect("what was encoded decodes");
        Ok(SimulationCost::of(&stream))
    }

    /// Adds a launch. In a sample, a launch repeating two earlier launches adds weight to the second: both began with
    /// the cache contents left by a preceding launch of the same kernel.
    fn push(&mut self, kernel: u32, piece: &LaunchPiece, target: LaunchTarget) {
        let SeriesLaunch { stands_for, series_difference: apart, .. } = self.turn;
        let counts = piece.weights * stands_for;
        let part = LaunchWeights {
            weights: counts,
            launch: self.recorded,
            loop_difference: piece.loop_difference * stands_for,
            series: self.series,
            series_difference: counts * apart,
        };
        if self.samples()
            && let Some(&(earlier, false)) = self.latest.get(&(kernel, target))
        {
            self.parts[earlier] += part;
            return;
        }
        let is_first = !self.latest.contains_key(&(kernel, target));
        self.latest.insert((kernel, target), (self.parts.len(), is_first));
        self.parts.push(part);
        let LaunchTarget { stream, on } = target;
        self.command(Command::Launch { kernel, stream, on });
    }

    /// Index of the kernel with this stream: an earlier kernel's index if its stream is identical byte for byte.
    fn kernel(&mut self, info: KernelInfo, blocks: Vec<Block>, instructions: u64) -> Result<u32, RecordError> {
        let digest = digest(&blocks);
        let alike = self.known.entry(digest).or_default();
        for &kernel in &*alike {
            let same_info = self.kernels[kernel as usize] == info;
            if same_info && self.store.same(&self.blocks[kernel as usize], &blocks)? {
                self.store.release(&blocks);
                return Ok(kernel);
            }
        }
        let kernel = self.kernels.len() as u32;
        alike.push(kernel);
        self.kernels.push(info);
        self.blocks.push(blocks);
        self.instructions += instructions;
        Ok(kernel)
    }

    /// Closes the last host phase and returns the finished recording.
    pub fn finish(mut self, name: &str) -> Recording {
        self.close_phase();
        self.memory.host().switch(false);
        let mut setup = self.setup;
        setup.writes.extend(copied_in(&self.commands, &self.phases));
        merge_ranges(&mut setup.writes);
        let results = HostPhase { reads: copied_back(&self.commands, &self.phases), writes: Vec::new() };
        Recording {
            name: name.to_owned(),
            line: self.options.line,
            width: self.options.warp_width,
            kernels: self.kernels,
            blocks: self.blocks,
            commands: self.commands,
            setup,
            phases: self.phases,
            results,
            parts: self.parts,
            launches: self.launches,
            arrays: self.memory.arrays().to_vec(),
            scales: self.memory.scalings().contains(&Scaling::Scales),
            store: self.store,
            instructions: self.instructions,
            cache: Cache::new(),
            adjusted: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Number of recording threads; a single thread with the shadow checker, to report an identical conflict every time.
fn recording_threads(options: &RecordOptions, checked: bool) -> u32 {
    if checked { 1 } else { options.threads.max(1) }
}

type RecordedBlocks = Result<(Vec<Block>, u64), RecordError>;
/// A kernel that several threads may record.
type SyncKernel<'a> = dyn Fn(&mut Cta<'_>) + Sync + 'a;
/// Records the CTAs of a launch into a store.
type RecordCtas<'a> = dyn Fn(&Launch<'_>, &Store) -> RecordedBlocks + 'a;
type RecordedPiece = Result<(KernelInfo, Vec<Block>, u64), RecordError>;

/// Buffers into which a thread records a CTA, reused from CTA to CTA to avoid allocations.
#[derive(Default)]
struct Scratch {
    record: CtaRecord,
    stream: CtaStream,
}

impl Scratch {
    /// Records the CTAs in `range`.
    fn record(
        &mut self,
        launch: &Launch<'_>,
        store: &Store,
        range: Range<u32>,
        kernel: &dyn Fn(&mut Cta<'_>),
    ) -> RecordedBlocks {
        let mut packer = Packer::new(store, range.start);
        for index in range {
            guarded(|| kernel(&mut Cta::new(launch, &mut self.record, None, index)))
                .map_err(|fault| RecordError::kernel(launch.info, fault))?;
            self.record.finish(&[], &mut self.stream);
            packer.push(&self.stream)?;
        }
        packer.finish()
    }
}

/// Records the grid in shares that threads claim in order; the division into shares depends only on the grid.
fn record_shares(launch: &Launch<'_>, store: &Store, threads: u32, kernel: &SyncKernel<'_>) -> RecordedBlocks {
    let ctas = launch.info.ctas;
    let share = (ctas / SHARES).clamp(1, SHARE);
    let shares = ctas.div_ceil(share);
    let next = AtomicU32::new(0);
    let done: Mutex<Vec<Option<RecordedBlocks>>> = Mutex::new((0..shares).map(|_| None).collect());
    let work = || {
        let mut scratch = Scratch::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= shares {
                break;
            }
            let range = index * share..((index + 1) * share).min(ctas);
            let recorded = scratch.record(launch, store, range, kernel);
            done.lock().unwrap_or_else(PoisonError::into_inner)[index as usize] = Some(recorded);
        }
    };
    let stop = StopFlag::current();
    std::thread::scope(|scope| {
        (1..threads.min(shares)).for_each(|_| _ = scope.spawn(|| stop.during(work)));
        work();
    });
    let (mut blocks, mut instructions) = (Vec::new(), 0);
    for recorded in done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten() {
        let (share_blocks, share_instructions) = recorded?;
        blocks.extend(share_blocks);
        instructions += share_instructions;
    }
    Ok((blocks, instructions))
}
