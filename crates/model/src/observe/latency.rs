//! Latency of loads, by server and by path segment. Recording observes a run and decides nothing. Loads are followed if
//! the line contents allow it ([`Contents::FOLLOWS`](crate::observe::value_probe::Contents::FOLLOWS)) and the run requests it
//! ([`crate::module::config::ModuleSite::unloaded_latencies`]). In all other runs, messages carry no notes ([`Note`]).
//!
//! A load is a line transaction for a load or a poll, from the event at the SM to the event with the bytes. The total
//! time is divided into [`Leg`]s. No component follows a load along its path: each replier records the time spent in
//! and below the replier ([`ModuleLatency`], and the links below), and the requester knows the request's departure. The
//! difference is link time: the zero-load trip ([`crate::observe::unloaded_latency`]) counts towards the wire, the rest towards the queue.
//! An SM computes crossbar time likewise. Messages carry picoseconds in 32 bits, packets in fewer ([`PackedLatency`]); a
//! truncated leg adds to the link queue.
//!
//! - A load that joins a miss, at an L1 or at a slice, gets the miss's legs in proportion to its waiting time.
//! - If a miss grows by further sectors, its times before the slice come from the last request.
//! - A slice of blocks reports no legs below the crossbar: all this time counts towards the slice.
//! - Atomics are not counted.

use tombolo_types::Ps;

/// A value noted in a message.
pub trait NoteValue: Copy + Default + PartialEq + Eq + std::fmt::Debug + Send {}

impl<T: Copy + Default + PartialEq + Eq + std::fmt::Debug + Send> NoteValue for T {}

/// Slot for a `T` in a message, read only by components that follow loads.
pub trait Note<T>: NoteValue {
    /// Records the value.
    fn of(noted: T) -> Self;

    /// Returns the recorded value; the default if nothing is kept.
    fn read(self) -> T;
}

impl<T: NoteValue> Note<T> for () {
    #[inline]
    fn of(_: T) {}

    #[inline]
    fn read(self) -> T {
        T::default()
    }
}

/// A note with a stored value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredNote<T>(T);

impl<T: NoteValue> Note<T> for StoredNote<T> {
    #[inline]
    fn of(noted: T) -> StoredNote<T> {
        StoredNote(noted)
    }

    #[inline]
    fn read(self) -> T {
        self.0
    }
}

/// A moment, modulo 2^32 ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(u32);

impl Stamp {
    /// Stamp for a time.
    #[inline]
    pub(crate) fn of(at: Ps) -> Stamp {
        Stamp(at.0 as u32)
    }

    /// Span from an earlier moment to this one, below 2^32 ps.
    #[inline]
    pub(crate) fn since(self, earlier: Stamp) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Span from `other` to this moment, below 2^31 ps; 0 if `other` is later.
    #[inline]
    pub(crate) fn after(self, other: Stamp) -> u32 {
        let time = self.since(other);
        if time > u32::MAX / 2 { 0 } else { time }
    }
}

/// A span in 32 bits, clamped to the maximum.
#[inline]
pub(crate) fn short(time: Ps) -> u32 {
    u32::try_from(time.0).unwrap_or(u32::MAX)
}

/// Server of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LoadServer {
    /// The SM's own L1.
    L1,
    /// The L2 in the SM's module.
    OwnL2,
    /// Another module in the same GPU: the module's L2 or memory.
    Module,
    /// Another GPU: an L2 or memory there.
    Gpu,
    /// The host.
    Host,
    /// Memory in the SM's own module.
    Dram,
}

impl LoadServer {
    /// All servers, in the order of their names in a record.
    pub const ALL: [LoadServer; 6] =
        [LoadServer::L1, LoadServer::OwnL2, LoadServer::Module, LoadServer::Gpu, LoadServer::Host, LoadServer::Dram];

    /// Name in a run's digest.
    pub const fn name(self) -> &'static str {
        match self {
            LoadServer::L1 => "L1",
            LoadServer::OwnL2 => "OwnL2",
            LoadServer::Module => "Module",
            LoadServer::Gpu => "Gpu",
            LoadServer::Host => "Host",
            LoadServer::Dram => "Dram",
        }
    }
}

/// A segment on a load's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Leg {
    /// Translation time not hidden by parallel work.
    Tlb,
    /// The L1: its queue and lookup.
    L1,
    /// Crossbar between SM and slice, in both directions, including queues.
    Crossbar,
    /// Slices: waits for ports, MSHRs, lines and credits.
    SliceQueue,
    /// Slices: lookups, and byte transfer.
    Slice,
    /// Links between modules: queueing in both directions.
    LinkQueue,
    /// Links between modules: the zero-load trip.
    LinkWire,
    /// Memory: waits for earlier accesses.
    DramQueue,
    /// Memory: the access itself in the row's present state, and the path to the banks.
    Bank,
}

impl Leg {
    /// All legs, in path order, which is also the order of their names in a record.
    pub(crate) const ALL: [Leg; 9] = [
        Leg::Tlb,
        Leg::L1,
        Leg::Crossbar,
        Leg::SliceQueue,
        Leg::Slice,
        Leg::LinkQueue,
        Leg::LinkWire,
        Leg::DramQueue,
        Leg::Bank,
    ];
}

/// Legs in picoseconds, indexed by [`Leg`].
pub(crate) type Legs = [u32; Leg::ALL.len()];

/// Load time spent inside modules, below the SM's crossbar, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleLatency {
    /// See [`Leg::SliceQueue`].
    pub slice_queue: u32,
    /// See [`Leg::Slice`].
    pub(crate) slice: u32,
    /// See [`Leg::DramQueue`].
    pub(crate) dram_queue: u32,
    /// See [`Leg::Bank`].
    pub(crate) bank: u32,
}

impl ModuleLatency {
    /// Splits time in a slice into `idle`, the time without waiting, and queueing.
    #[inline]
    pub(crate) fn slice(time: Ps, idle: Ps) -> ModuleLatency {
        let (time, idle) = (short(time), short(idle));
        let slice = time.min(idle);
        ModuleLatency { slice, slice_queue: time - slice, ..ModuleLatency::default() }
    }

    /// Sum with another part inside modules.
    #[inline]
    #[must_use]
    pub(crate) fn and(self, other: ModuleLatency) -> ModuleLatency {
        ModuleLatency {
            slice_queue: self.slice_queue.saturating_add(other.slice_queue),
            slice: self.slice.saturating_add(other.slice),
            dram_queue: self.dram_queue.saturating_add(other.dram_queue),
            bank: self.bank.saturating_add(other.bank),
        }
    }

    /// Total time.
    #[inline]
    pub(crate) fn sum(self) -> u32 {
        let ModuleLatency { slice_queue, slice, dram_queue, bank } = self;
        slice_queue.saturating_add(slice).saturating_add(dram_queue).saturating_add(bank)
    }
}

/// [`ModuleLatency`] in the form carried by packets: waits up to 268 us, and zero-load times up to 1 us. Larger values are
/// clamped to the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedLatency([u32; 3]);

/// Bits per wait in a word of [`PackedLatency`].
const WAIT_BITS: u32 = 28;

/// Low bits per zero-load time in the last word of [`PackedLatency`]; their high bits lie above the waits.
const LOW_BITS: u32 = 16;

impl From<ModuleLatency> for PackedLatency {
    #[inline]
    fn from(ModuleLatency { slice_queue, slice, dram_queue, bank }: ModuleLatency) -> PackedLatency {
        let wait = |time: u32| time.min((1 << WAIT_BITS) - 1);
        let [slice, bank] = [slice, bank].map(|time| time.min((1 << (LOW_BITS + u32::BITS - WAIT_BITS)) - 1));
        let word = |queue: u32, time: u32| wait(queue) | (time >> LOW_BITS) << WAIT_BITS;
        let low = (slice & ((1 << LOW_BITS) - 1)) | bank << LOW_BITS;
        PackedLatency([word(slice_queue, slice), word(dram_queue, bank), low])
    }
}

impl From<PackedLatency> for ModuleLatency {
    #[inline]
    fn from(PackedLatency([slices, memory, low]): PackedLatency) -> ModuleLatency {
        let wait = |word: u32| word & ((1 << WAIT_BITS) - 1);
        let high = |word: u32| (word >> WAIT_BITS) << LOW_BITS;
        ModuleLatency {
            slice_queue: wait(slices),
            slice: high(slices) | low & ((1 << LOW_BITS) - 1),
            dram_queue: wait(memory),
            bank: high(memory) | low >> LOW_BITS,
        }
    }
}

/// Time spent below a slice that has requested bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatencyBelow {
    /// Time inside modules.
    pub(crate) inside: ModuleLatency,
    /// Time on links, including waits.
    pub(crate) link: u32,
}

impl LatencyBelow {
    /// Total time.
    #[inline]
    pub(crate) fn sum(self) -> u32 {
        self.inside.sum().saturating_add(self.link)
    }

    /// Share of this time for a load that waited only for `part` of the total.
    #[inline]
    #[must_use]
    pub(crate) fn share(self, part: u32) -> LatencyBelow {
        let whole = self.sum();
        if part >= whole {
            return self;
        }
        let LatencyBelow { inside: ModuleLatency { slice_queue, slice, dram_queue, bank }, link } = self;
        let parts = share([slice_queue, slice, link, dram_queue, bank], part.into(), whole);
        let [slice_queue, slice, link, dram_queue, bank] = parts.map(|time| time as u32);
        LatencyBelow { inside: ModuleLatency { slice_queue, slice, dram_queue, bank }, link }
    }
}

/// Load time between the request's arrival at a slice and the reply's arrival at the SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyLatency {
    /// Time inside modules.
    pub(crate) inside: ModuleLatency,
    /// See [`Leg::LinkQueue`].
    pub(crate) link_queue: u32,
    /// See [`Leg::LinkWire`].
    pub(crate) link_wire: u32,
    /// Time on the crossbar to the SM.
    pub(crate) crossbar: u32,
}

impl ReplyLatency {
    /// Time below a slice, with `wire` for the zero-load trip on the links.
    #[inline]
    pub(crate) fn new(LatencyBelow { inside, link }: LatencyBelow, wire: u32) -> ReplyLatency {
        let link_wire = link.min(wire);
        ReplyLatency { inside, link_queue: link - link_wire, link_wire, crossbar: 0 }
    }
}

/// Scales `legs` by `part / whole`. If the legs add up to `whole`, the result adds up to `part` exactly: each leg is
/// rounded together with all earlier legs, so rounding errors do not accumulate.
#[inline]
pub(crate) fn share<const N: usize>(legs: [u32; N], part: u64, whole: u32) -> [u64; N] {
    if part == u64::from(whole) { legs.map(u64::from) } else { part_of(legs, part, whole) }
}

/// Like [`share`], for a `part` different from the whole.
#[inline(never)]
fn part_of<const N: usize>(legs: [u32; N], part: u64, whole: u32) -> [u64; N] {
    // A zero total has only zero parts.
    let whole = u64::from(whole.max(1));
    let (times, rest) = (part / whole, part % whole);
    let ratio = (rest << 32) / whole;
    let (mut sum, mut before) = (0, 0);
    legs.map(|leg| {
        sum = (sum + u64::from(leg)).min(whole);
        let upto = if sum == whole { part } else { sum * times + ((sum * ratio) >> 32) };
        upto - std::mem::replace(&mut before, upto)
    })
}

/// Buckets per octave.
const BUCKETS_PER_OCTAVE: usize = 8;

/// Total number of buckets: one per picosecond for the first eight, then eight per octave.
const BUCKETS: usize = BUCKETS_PER_OCTAVE * (u64::BITS as usize - 2);

/// Bucket of a time.
#[inline]
fn bucket(time: u64) -> usize {
    let shift = (time | BUCKETS_PER_OCTAVE as u64).ilog2() - BUCKETS_PER_OCTAVE.ilog2();
    BUCKETS_PER_OCTAVE * shift as usize + (time >> shift) as usize
}

/// Bounds for a bucket's times, the upper bound exclusive.
fn bounds(bucket: usize) -> (f64, f64) {
    let shift = (bucket / BUCKETS_PER_OCTAVE).saturating_sub(1);
    let (first, width) = ((bucket - BUCKETS_PER_OCTAVE * shift) as f64, (1_u64 << shift) as f64);
    (first * width, (first + 1.0) * width)
}

/// Loads served by one kind of server. Their latencies are stored in a histogram with eight buckets per octave,
/// together with the sum, the minimum and the maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Total time in picoseconds.
    time: u64,
    /// Time by [`Leg`]; the legs add up to `time`.
    legs: [u64; Leg::ALL.len()],
    shortest: u64,
    longest: u64,
    /// Load counts, indexed by [`bucket`].
    buckets: Box<[u64; BUCKETS]>,
}

impl Default for Loads {
    fn default() -> Loads {
        Loads { time: 0, legs: [0; _], shortest: u64::MAX, longest: 0, buckets: Box::new([0; BUCKETS]) }
    }
}

impl Loads {
    #[inline]
    fn add(&mut self, time: u64) {
        self.time += time;
        self.shortest = self.shortest.min(time);
        self.longest = self.longest.max(time);
        self.buckets[bucket(time)] += 1;
    }

    /// Adds another module's loads.
    pub(crate) fn merge(&mut self, other: &Loads) {
        self.time += other.time;
        self.legs.iter_mut().zip(other.legs).for_each(|(leg, theirs)| *leg += theirs);
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
        self.buckets.iter_mut().zip(other.buckets.iter()).for_each(|(bucket, theirs)| *bucket += theirs);
    }

    /// Number of loads.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Total time in picoseconds.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Time by `Leg` in picoseconds; the legs add up to [`Loads::time`].
    pub fn legs(&self) -> &[u64; Leg::ALL.len()] {
        &self.legs
    }

    /// Percentile: the time not exceeded by a share of loads from 0 to 1, in picoseconds; 0 without loads. The error is
    /// at most an eighth: times are assumed evenly spread within a bucket, between the shortest and the longest.
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = share * self.count() as f64;
        let mut before = 0.0;
        for (index, &held) in self.buckets.iter().enumerate().filter(|(_, held)| **held > 0) {
            let held = held as f64;
            if before + held >= rank {
                let (from, to) = bounds(index);
                let time = from + (to - from) * (rank - before) / held;
                return time.clamp(self.shortest as f64, self.longest as f64);
            }
            before += held;
        }
        0.0
    }

    /// Counters, each with its name, for a digest.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> {
        let legs = self.legs.iter().enumerate().map(|(leg, time)| (format!("leg{leg}"), *time));
        let buckets = self.buckets.iter().enumerate().map(|(index, held)| (format!("bucket{index}"), *held));
        std::iter::once(("time".to_owned(), self.time)).chain(legs).chain(buckets)
    }
}

/// Loads from a module's SMs, indexed by the kind of server that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies([Loads; LoadServer::ALL.len()]);

impl Latencies {
    /// Adds a load's total time, in picoseconds. Its legs are added separately.
    #[inline]
    pub(crate) fn add(&mut self, served: LoadServer, time: u64) {
        self.0[served as usize].add(time);
    }

    /// Adds the legs for counted loads.
    #[inline]
    pub(crate) fn add_legs(&mut self, served: LoadServer, legs: [u64; Leg::ALL.len()]) {
        self.0[served as usize].legs.iter_mut().zip(legs).for_each(|(leg, more)| *leg += more);
    }

    /// Adds an L1 hit that took `l1` after a translation wait of `tlb`, both in picoseconds.
    #[inline]
    pub(crate) fn add_hit(&mut self, tlb: u64, l1: u64) {
        let loads = &mut self.0[LoadServer::L1 as usize];
        loads.add(tlb + l1);
        loads.legs[Leg::Tlb as usize] += tlb;
        loads.legs[Leg::L1 as usize] += l1;
    }

    /// Adds another module's loads.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.iter_mut().zip(&other.0).for_each(|(loads, theirs)| loads.merge(theirs));
    }

    /// Loads served by one kind of server.
    pub fn of(&self, served: LoadServer) -> &Loads {
        &self.0[served as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_an_eighth_of_an_octave() {
        assert_eq!([0, 7, 8, 15, 16, 17, 18].map(bucket), [0, 7, 8, 15, 16, 16, 17]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for time in (0..64).map(|bit| 1_u64 << bit).flat_map(|one| [one - 1, one, one + one / 3]) {
            let (from, to) = bounds(bucket(time));
            assert!(from <= time as f64 && time as f64 <= to, "{time} is not in {from} to {to}");
            assert!(to <= from * 1.125 + 1.0, "{from} to {to}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_times_to_an_eighth() {
        let mut loads = Loads::default();
        (1..=1000).for_each(|time| loads.add(time * 1000));
        for (share, exact) in [(0.5, 500e3), (0.99, 990e3), (1.0, 1000e3)] {
            let told = loads.percentile(share);
            assert!((told / exact - 1.0).abs() < 0.125, "{told} for {exact}");
        }
        assert_eq!(Loads::default().percentile(0.5), 0.0);
        let mut same = Loads::default();
        (0..3).for_each(|_| same.add(123_456));
        assert_eq!([0.01, 0.5, 0.99].map(|share| same.percentile(share)), [123_456.0; 3]);
    }

    #[test]
    fn shares_add_up_whatever_is_rounded() {
        let legs = [7, 0, 1_000_003, 5];
        let whole = legs.iter().sum();
        for part in [0, 1, 13, 500_000, u64::from(whole), 3 * u64::from(whole) + 17] {
            let parts = share(legs, part, whole);
            assert_eq!(parts.iter().sum::<u64>(), part);
            for (part_of, leg) in parts.iter().zip(legs) {
                let exact = f64::from(leg) * part as f64 / f64::from(whole);
                assert!((*part_of as f64 - exact).abs() <= 2.0, "{part_of} for {exact}");
            }
        }
    }

    #[test]
    fn packets_carry_times_as_they_are_up_to_what_they_have_room_for() {
        let there_and_back = |inside: ModuleLatency| ModuleLatency::from(PackedLatency::from(inside));
        for (slice_queue, slice, dram_queue, bank) in [(0, 0, 0, 0), (1, 65_536, 3, 4), (1 << 27, 7, 12, 1_048_575)] {
            let inside = ModuleLatency { slice_queue, slice, dram_queue, bank };
            assert_eq!(there_and_back(inside), inside);
        }
        let longest =
            there_and_back(ModuleLatency { slice_queue: u32::MAX, slice: u32::MAX, dram_queue: 0, bank: 1 << 20 });
        let (wait, other) = ((1 << 28) - 1, (1 << 20) - 1);
        assert_eq!(longest, ModuleLatency { slice_queue: wait, slice: other, dram_queue: 0, bank: other });
    }

    #[test]
    fn stamps_go_round() {
        let [early, late] = [Ps((1 << 32) - 5), Ps((1 << 32) + 7)].map(Stamp::of);
        assert_eq!((late.since(early), late.after(early), early.after(late)), (12, 12, 0));
    }

    #[test]
    fn classes_and_legs_are_listed_once_each_in_their_order() {
        assert!(LoadServer::ALL.into_iter().enumerate().all(|(index, served)| served as usize == index));
        assert!(Leg::ALL.into_iter().enumerate().all(|(index, leg)| leg as usize == index));
    }
}
