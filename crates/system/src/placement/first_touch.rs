//! First touch: each page is placed on the first module to touch the page.
//!
//! Touches are ordered by these keys, in this order:
//! 1. launch, in program order, regardless of stream;
//! 2. wave: CTA's rank within its module, divided by the kernel's CTAs resident on a module;
//! 3. logical time within the wave ([`super::logical_time`]);
//! 4. a hash over page and module, or (`placement.ties = "first-socket"`) the module's number.
//!
//! Concurrent warps thus compete as equals. If touches were ordered by the CTA's instructions warp after warp, a module
//! with shorter leading warps would win nearly every shared page; a fixed winner for ties would do the same.

use super::logical_time::{LogicalTime, TouchFilter, TouchTime};
use crate::survey::{Reader, SurveyedLaunch, Touch};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_design::placement::Ties;
use tombolo_design::scheduling::MachineShape;
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::PageTable;
use tombolo_model::sm::residency;
use tombolo_types::stream::{CtaStream, Program};
use tombolo_types::{LaunchDevices, ModuleId, Page};

/// Order between touches on a machine.
#[derive(Clone, Debug)]
pub struct TouchOrder {
    /// Modules in the machine.
    pub modules: u8,
    /// Lines per page, a power of two.
    pub lines_per_page: u64,
    /// Winner among modules that touch a page at the same logical time.
    pub ties: Ties,
    /// CTAs resident on a module at once, per kernel; an empty list means all CTAs in a launch.
    pub resident: Arc<[u32]>,
}

impl TouchOrder {
    /// Order on `modules` modules, each able to hold all CTAs in a launch at once, with pages of `lines_per_page`
    /// lines, a power of two. Ties are fair.
    pub fn new(modules: u8, lines_per_page: u64) -> TouchOrder {
        TouchOrder { modules, lines_per_page, ties: Ties::Fair, resident: Arc::default() }
    }

    /// Order between the touches in `program` on `machine` under `design`.
    pub fn of(machine: &MachineConfig, design: &DesignConfig, program: &dyn Program) -> TouchOrder {
        // A program with a kernel that fits on no SM never starts.
        let of_sm = |kernel| residency(machine, kernel, program.warp_width()).unwrap_or(1);
        let of_module = |kernel| of_sm(kernel).saturating_mul(machine.topology.sms_per_module.into());
        TouchOrder {
            ties: design.placement.ties(),
            resident: program.kernels().iter().map(of_module).collect(),
            ..TouchOrder::new(MachineShape::of(machine).modules(), machine.page_bytes / machine.line.bytes())
        }
    }

    /// Wave for the CTA with rank `rank` on its module, in a launch of `kernel`.
    fn wave(&self, kernel: u32, rank: u32) -> u32 {
        self.resident.get(kernel as usize).map_or(0, |resident| rank / resident)
    }
}

/// Earliest touch to a page in a launch.
#[derive(Clone, Copy)]
struct EarliestTouch {
    moment: TouchTime,
    module: ModuleId,
    /// Module that most recently lost the page at this moment: it would lose again.
    loser: ModuleId,
}

/// 64-bit golden ratio. Source: Fibonacci hashing (Knuth, volume 3): its multiples are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Rank of a module in a hashed permutation over all `modules`, drawn element by element for `page`.
///
/// For any two modules, both orders are equally frequent. Each draw uses its own multiplier with evenly spread
/// multiples. Among neighbouring pages, each module therefore comes first about equally often.
fn draw(page: Page, module: ModuleId, modules: u8) -> usize {
    let mut left: Vec<u8> = (0..modules).collect();
    let multiplier = |drawn: usize| if drawn == 0 { GOLDEN } else { spread(drawn as u64) | 1 };
    let is_drawn = |drawn: &usize| {
        let hash = page.0.wrapping_mul(multiplier(*drawn));
        let at = (u128::from(hash) * left.len() as u128) >> 64;
        left.remove(at as usize) == module.0
    };
    (0..usize::from(modules)).find(is_drawn).expect("a module of the machine")
}

/// Spreads a number over 64 bits. Source: the SplitMix64 finalizer (Steele, Lea and Flood, OOPSLA 2014).
fn spread(number: u64) -> u64 {
    let mut bits = number.wrapping_add(GOLDEN);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Number of recent touches remembered: 6 KB, which fit in the host's L1.
const RECENT: usize = 256;

/// Pages, each with the first module to touch the page.
struct PageHomes {
    modules: u8,
    ties: Ties,
    placed: FxHashSet<Page>,
    /// Earliest touch for each page that the current launch is the first to touch.
    new: FxHashMap<Page, EarliestTouch>,
    touches: Vec<(Page, ModuleId)>,
    /// Recent touches, by page: a later touch by the same module never counts. Most touches fall into this case.
    recent: [Option<(Page, ModuleId, TouchTime)>; RECENT],
}

impl PageHomes {
    fn new(modules: u8, ties: Ties) -> PageHomes {
        let (placed, new, touches) = (FxHashSet::default(), FxHashMap::default(), Vec::new());
        PageHomes { modules, ties, placed, new, touches, recent: [None; RECENT] }
    }

    /// Records a touch by a module to a page.
    #[inline]
    fn touch(&mut self, page: Page, moment: TouchTime, module: ModuleId) {
        let recent = &mut self.recent[page.0 as usize % RECENT];
        let counts = |(before, of, at)| before != page || of != module || moment < at;
        if recent.is_none_or(counts) {
            *recent = Some((page, module, moment));
            self.touch_anew(page, moment, module);
        }
    }

    /// Records a touch that the recent touches do not cover. Modules alternate, because neighbouring CTAs are decoded
    /// together.
    fn touch_anew(&mut self, page: Page, moment: TouchTime, module: ModuleId) {
        if self.placed.contains(&page) {
            return;
        }
        let PageHomes { modules, ties, .. } = *self;
        let touch = EarliestTouch { moment, module, loser: module };
        let earliest = self.new.entry(page).or_insert(touch);
        match moment.cmp(&earliest.moment) {
            Ordering::Less => *earliest = touch,
            Ordering::Equal if module != earliest.module && module != earliest.loser => {
                let place = |module: ModuleId| match ties {
                    Ties::Fair => draw(page, module, modules),
                    Ties::FirstSocket => module.0.into(),
                };
                let wins = place(module) < place(earliest.module);
                let (module, loser) = if wins { (module, earliest.module) } else { (earliest.module, module) };
                *earliest = EarliestTouch { moment, module, loser };
            }
            Ordering::Equal | Ordering::Greater => {}
        }
    }

    /// Ends the current launch: its new pages are placed.
    fn close(&mut self) {
        self.placed.extend(self.new.keys().copied());
        let mut new: Vec<_> = self.new.drain().map(|(page, touch)| (page, touch.module)).collect();
        new.sort_unstable();
        self.touches.extend(new);
    }
}

/// The first touch to every page: a reader of streams.
pub struct FirstTouch {
    order: TouchOrder,
    touches: TouchFilter,
    /// Launches seen so far: a repeated launch touches the same pages.
    known: FxHashSet<(u32, LaunchDevices)>,
    /// Kernel in the current launch.
    kernel: u32,
    time: LogicalTime,
    homes: PageHomes,
}

impl FirstTouch {
    /// First touch in `order`, counting every kind of access.
    pub fn new(order: TouchOrder) -> FirstTouch {
        FirstTouch::of(order, |_| true)
    }

    /// First touch in `order`, counting only accesses for which `counts` returns true.
    pub fn of(order: TouchOrder, counts: fn(Touch) -> bool) -> FirstTouch {
        let touches = TouchFilter { page_shift: order.lines_per_page.trailing_zeros(), counts };
        let homes = PageHomes::new(order.modules, order.ties);
        FirstTouch { order, touches, known: FxHashSet::default(), kernel: 0, time: LogicalTime::default(), homes }
    }

    /// The page table, with each page placed at its first touch.
    pub fn pages(self) -> PageTable {
        let lines_per_page = self.order.lines_per_page;
        PageTable::from_first_touch(self.touches(), lines_per_page)
    }

    /// The pages, each with the first module to touch the page.
    pub fn touches(mut self) -> Vec<(Page, ModuleId)> {
        self.close();
        self.homes.touches
    }

    /// Ends the current launch.
    fn close(&mut self) {
        let FirstTouch { time, homes, .. } = self;
        time.end(&mut |page, moment, module| homes.touch(page, moment, module));
        homes.close();
    }
}

impl Reader for FirstTouch {
    fn launch(&mut self, launch: SurveyedLaunch) -> bool {
        self.close();
        self.kernel = launch.kernel;
        self.known.insert(launch.kind())
    }

    fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream) {
        let wave = self.order.wave(self.kernel, rank);
        let FirstTouch { touches, time, homes, .. } = self;
        time.cta((module, wave), stream, *touches, &mut |page, moment, module| homes.touch(page, moment, module));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::{CtaBuilder, DirectedProgram};
    use crate::survey::survey;
    use std::collections::BTreeMap;
    use std::ops::Range;
    use tombolo_design::scheduling::CtaDistribution;
    use tombolo_types::Order;

    /// Line with the flag, outside all data pages.
    const FLAG: u64 = 1 << 20;

    /// Order on `modules` modules, with one line per page.
    fn order(modules: u8) -> TouchOrder {
        TouchOrder::new(modules, 1)
    }

    /// Homes for the pages in one launch with `ctas`, dealt to modules in equal blocks.
    fn homes(order: TouchOrder, ctas: Vec<CtaBuilder>) -> BTreeMap<u64, u8> {
        let shape = MachineShape::one_gpu(order.modules);
        let mut first = FirstTouch::new(order);
        survey(&*DirectedProgram::new(vec![ctas]), CtaDistribution::Contiguous, shape, &mut [&mut first])
            .expect("it decodes");
        first.touches().into_iter().map(|(page, module)| (page.0, module.0)).collect()
    }

    fn reading(lines: Range<u64>) -> CtaBuilder {
        CtaBuilder::new().warp(|w| lines.for_each(|line| _ = w.read([line])))
    }

    /// Number of pages on each module.
    fn counts(homes: &BTreeMap<u64, u8>, modules: u8) -> Vec<usize> {
        (0..modules).map(|module| homes.values().filter(|home| **home == module).count()).collect()
    }

    #[test]
    fn an_earlier_instruction_wins() {
        let homes = homes(order(2), vec![reading(0..50), reading(49..60)]);
        assert_eq!(counts(&homes, 2), [49, 11]);
    }

    #[test]
    fn a_page_that_several_touch_at_once_goes_to_each_as_often() {
        for pages in [80, 4000] {
            let even = (pages / 4) as usize;
            let all = counts(&homes(order(4), (0..4).map(|_| reading(0..pages)).collect()), 4);
            assert!(all.iter().all(|pages| pages.abs_diff(even) * 20 <= even), "{all:?}");
            // The second module touches none of these pages.
            let three = (0..4).map(|cta| reading(if cta == 1 { 5000..5001 } else { 0..pages * 3 / 4 })).collect();
            let three = counts(&homes(order(4), three), 4);
            assert!([0, 2, 3].iter().all(|module| three[*module].abs_diff(even) * 5 <= even), "{three:?}");
        }
    }

    #[test]
    fn each_module_is_as_often_at_each_place_of_a_draw() {
        let modules = 64;
        let ahead = |one, other| {
            (0..4096)
                .filter(|page| draw(Page(*page), ModuleId(one), modules) < draw(Page(*page), ModuleId(other), modules))
                .count()
        };
        for (one, other) in [(0, 1), (40, 41), (1, 63)] {
            let share = ahead(one, other);
            assert!((1900..2200).contains(&share), "{one} ahead of {other} for {share} of 4096 pages");
        }
    }

    #[test]
    fn the_first_socket_wins_where_ties_say_so() {
        let order = TouchOrder { ties: Ties::FirstSocket, ..order(4) };
        assert_eq!(counts(&homes(order, (0..4).map(|_| reading(0..100)).collect()), 4), [100, 0, 0, 0]);
    }

    #[test]
    fn warps_compete_as_equals_wherever_they_stand_in_their_cta() {
        // The first warps read one line and forty private lines, the second warps read the same table.
        let cta = |own: Range<u64>| {
            let table = |w: &mut crate::directed::WarpBuilder<'_>| (0..1000).for_each(|line| _ = w.read([line]));
            CtaBuilder::new().warp(|w| own.for_each(|line| _ = w.read([line]))).warp(table)
        };
        let homes = homes(order(2), vec![cta(2000..2001), cta(3000..3040)]);
        let table = homes.range(..1000).filter(|(_, home)| **home == 0).count();
        assert!((450..550).contains(&table), "{table} of 1000");
    }

    #[test]
    fn an_earlier_wave_wins() {
        let ctas = || vec![reading(100..101), reading(200..201), reading(0..10), reading(300..301), reading(0..41)];
        let at = |resident: u32| {
            let order = TouchOrder { resident: Arc::new([resident]), ..order(2) };
            // The second module has one additional CTA.
            let ctas = ctas().into_iter().chain([reading(400..401)]).collect();
            counts(&homes(order, ctas).into_iter().filter(|(page, _)| *page < 41).collect(), 2)
        };
        assert_eq!(at(1), [0, 41], "ranks 2 and 1");
        assert!(at(3)[0] > 2, "both are in the first wave");
    }

    /// A CTA that reads a hundred pages and then sets the flag, and a CTA that waits for the flag and reads these pages
    /// backwards.
    fn producer_and_consumer() -> [CtaBuilder; 2] {
        let mut producer = CtaBuilder::new();
        producer = producer.warp(|w| {
            (0..100).for_each(|page| _ = w.read([page]));
            w.write([FLAG]).signal(0);
        });
        let consumer = CtaBuilder::new().warp(|w| {
            w.wait_until(FLAG, 0, Order::WEAK);
            (0..100).rev().for_each(|page| _ = w.read([page]));
        });
        [producer, consumer]
    }

    #[test]
    fn a_warp_that_waits_for_a_flag_wins_no_page_from_the_producer() {
        let [producer, consumer] = producer_and_consumer();
        let behind = homes(order(2), vec![producer.clone(), consumer.clone()]);
        assert_eq!(behind.range(..100).filter(|(_, home)| **home == 0).count(), 100);
        let ahead = homes(order(2), vec![consumer, producer]);
        assert_eq!(ahead.range(..100).filter(|(_, home)| **home == 1).count(), 100, "though it is decoded first");
        assert_eq!(ahead[&FLAG], 0, "it polls before the flag is left");
    }

    #[test]
    fn a_wait_counts_through_other_waits_and_is_as_late_as_the_wave_of_the_store() {
        // Flag 1 is set by the CTA that waits for flag 0, on the module that is decoded first.
        let [producer, _] = producer_and_consumer();
        let relay = CtaBuilder::new().warp(|w| _ = w.wait_until(FLAG, 0, Order::WEAK).write([FLAG + 1]).signal(1));
        let last = CtaBuilder::new().warp(|w| _ = w.wait_until(FLAG + 1, 1, Order::WEAK).read([50]));
        let late = CtaBuilder::new().warp(|w| {
            w.compute(200).read([50]);
        });
        let homes = |resident| {
            let order = TouchOrder { resident: Arc::new([resident]), ..order(2) };
            homes(order, vec![last.clone(), relay.clone(), late.clone(), producer.clone()])[&50]
        };
        assert_eq!(homes(8), 1);
        assert_eq!(homes(1), 1, "the producer is of the second wave, and so is who waits for it");
    }

    #[test]
    fn who_waits_for_a_flag_that_nobody_leaves_still_touches_pages() {
        let stuck = CtaBuilder::new()
            .warp(|w| _ = w.wait_until(FLAG, 7, Order::WEAK).read([5]).wait_until(FLAG, 8, Order::WEAK).read([6]));
        assert_eq!(homes(order(1), vec![stuck]), [(5, 0), (6, 0), (FLAG, 0)].into());
    }

    #[test]
    fn a_warp_may_wait_for_a_flag_of_its_own_cta() {
        let own = CtaBuilder::new()
            .warp(|w| _ = w.wait_until(FLAG, 0, Order::WEAK).read([5]))
            .warp(|w| _ = w.write([FLAG]).signal(0));
        assert_eq!(homes(order(1), vec![own]), [(5, 0), (FLAG, 0)].into());
    }

    #[test]
    fn a_barrier_is_as_late_as_the_last_warp_of_its_cta() {
        let waits = CtaBuilder::new().warp(|w| _ = w.compute(100).barrier()).warp(|w| _ = w.barrier().read([5]));
        let reads = CtaBuilder::new().warp(|w| _ = w.compute(50).read([5]));
        assert_eq!(homes(order(2), vec![waits, reads])[&5], 1);
        // A warp that has ended reached its end first.
        let outlived = CtaBuilder::new().warp(|w| _ = w.compute(100)).warp(|w| _ = w.barrier().read([5]));
        let reads = CtaBuilder::new().warp(|w| _ = w.compute(50).read([5]));
        assert_eq!(homes(order(2), vec![outlived, reads])[&5], 1);
    }

    #[test]
    fn kernels_place_in_the_order_of_their_launches() {
        let (mut first, kernels) =
            (FirstTouch::new(order(2)), vec![vec![reading(0..1), reading(9..10)], vec![reading(9..10), reading(0..1)]]);
        survey(
            &*DirectedProgram::new(kernels),
            CtaDistribution::Contiguous,
            MachineShape::one_gpu(2),
            &mut [&mut first],
        )
        .expect("it decodes");
        assert_eq!(first.touches(), [(Page(0), ModuleId(0)), (Page(9), ModuleId(1))]);
    }
}
