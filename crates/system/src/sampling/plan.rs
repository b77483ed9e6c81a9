//! Chooses the launches that represent a program.
//!
//! Consecutive launches form tiles, and tiles form blocks with equal length. From each block one tile is drawn at
//! random. This is a stratified cluster sample, with equal probability for every launch in a block. Launches about
//! which a draw would reveal too little are certain: all certain launches run, each without representing further
//! launches.
//!
//! Before each counted launch, enough launches run to establish its cache contents ([`super::demand::warm_up_lengths`]); in the
//! main run, twice as many. A second run covers every other tile with the single warm-up. The difference between the
//! two runs bounds the effect of longer warm-ups.

use super::demand::{KernelDemands, warm_up_lengths};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tombolo_types::stream::KernelInfo;

/// Neighbouring launches that are drawn together. Source: assumed: two, to cover both activities in a program that
/// alternates between two.
pub(crate) const TILE: usize = 2;
/// Minimum and maximum number of drawn tiles. Source: Student's t falls fast up to some ten degrees of freedom, and
/// little beyond thirty.
pub(crate) const BLOCKS: (usize, usize) = (12, 40);
/// Minimum number of launches for sampling: two tiles per block, because a block with one tile leaves no choice, plus
/// the start.
pub(crate) const LEAST: usize = TILE + 2 * BLOCKS.0 * TILE;
/// Share of the total work up to which tiles are added. Source: assumed: a run is to be several times as fast.
const ENOUGH: f64 = 0.25;
/// Maximum share of the total work for all runs in a sample. Source: assumed: a speedup below two is not worth the
/// error.
const MOST: f64 = 0.5;
/// Maximum ratio between the work in an undrawn launch and the largest drawn launch in its group. Source: assumed; a
/// line is not extrapolated far beyond its points.
const BEYOND: f64 = 1.1;

/// Facts about every launch in a program before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Population {
    /// Group index per launch. Similar launches share a group: equal name, equal shape and equal name for the preceding
    /// launch.
    pub(crate) groups: Vec<usize>,
    /// Instructions plus line transactions, per launch.
    pub(crate) work: Vec<f64>,
    /// Number of warm-up launches, per launch.
    pub(crate) warm_up_lengths: Vec<usize>,
    /// True for the first launch with its name.
    pub(crate) firsts: Vec<bool>,
}

impl Population {
    /// Facts about the launches `order` from `kernels`.
    pub(crate) fn of(kernels: &[KernelInfo], demands: &KernelDemands, order: &[u32]) -> Population {
        let (mut known, mut named) = (FxHashMap::default(), FxHashSet::default());
        let mut before = "";
        let (mut groups, mut firsts) = (Vec::new(), Vec::new());
        for &kernel in order {
            let info = &kernels[kernel as usize];
            let next = known.len();
            groups.push(*known.entry((info.name.as_str(), info.threads_per_cta, before)).or_insert(next));
            firsts.push(named.insert(info.name.as_str()));
            before = &info.name;
        }
        let work = order.iter().map(|&kernel| demands.kernels[kernel as usize].work as f64).collect();
        Population { groups, work, warm_up_lengths: warm_up_lengths(demands, order), firsts }
    }

    /// Share of the work performed by a run with the launches kept in `keeps`.
    fn share(&self, keeps: &[bool]) -> f64 {
        let work: f64 = keeps.iter().zip(&self.work).filter(|(kept, _)| **kept).map(|(_, work)| work).sum();
        work / self.work.iter().sum::<f64>().max(1.0)
    }

    fn len(&self) -> usize {
        self.groups.len()
    }
}

/// A drawn tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchTile {
    /// Launches in the tile.
    pub(crate) launches: Range<usize>,
    /// Number of tiles in the block.
    pub(crate) of: usize,
    /// True if the tile is also in the run with single warm-ups.
    pub(crate) again: bool,
}

/// The launches to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SamplingPlan {
    /// Drawn tiles, one per block, in order.
    pub(crate) tiles: Vec<LaunchTile>,
    /// True for launches that represent only themselves, indexed by launch.
    pub(crate) certain: Vec<bool>,
    /// True for launches in the run with single warm-ups, indexed by launch.
    pub(crate) short: Vec<bool>,
}

/// Reason for which a program has no sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The program has fewer launches than [`LEAST`].
    Few,
    /// The runs would perform this share of the program's work.
    Much(f64),
}

impl SamplingPlan {
    /// A sample from `population`: the maximum number of tiles within a quarter of the work, but at least the minimum
    /// number.
    pub(crate) fn of(population: &Population) -> Result<SamplingPlan, Refusal> {
        if population.len() < LEAST {
            return Err(Refusal::Few);
        }
        let most = ((population.len() - TILE) / TILE / 2).min(BLOCKS.1);
        let mut plan = SamplingPlan::drawing(population, BLOCKS.0);
        let share = plan.share(population);
        if share > MOST {
            return Err(Refusal::Much(share));
        }
        for blocks in BLOCKS.0 + 1..=most {
            let larger = SamplingPlan::drawing(population, blocks);
            if larger.share(population) > ENOUGH {
                break;
            }
            plan = larger;
        }
        Ok(plan)
    }

    fn drawing(population: &Population, blocks: usize) -> SamplingPlan {
        let count = population.len();
        let starts: Vec<usize> = (TILE..count).step_by(TILE).collect();
        let cut = |block: usize| starts.len() * block / blocks;
        let tile = |block: usize| {
            let of = cut(block + 1) - cut(block);
            let start = starts[cut(block) + draw(blocks, block) % of];
            LaunchTile { launches: start..(start + TILE).min(count), of, again: block % 2 == 1 }
        };
        let tiles: Vec<LaunchTile> = (0..blocks).map(tile).collect();
        let certain = certain(population, &tiles);
        let mut short = vec![false; count];
        for launch in tiles.iter().filter(|tile| tile.again).flat_map(|tile| tile.launches.clone()) {
            short[launch.saturating_sub(population.warm_up_lengths[launch])..=launch].fill(true);
        }
        SamplingPlan { tiles, certain, short }
    }

    /// Launches in the main run, indexed by launch, with the double warm-up before each counted launch. The last launch
    /// is included, so that the region contains the host's work between launches.
    pub(crate) fn long(&self, population: &Population) -> Vec<bool> {
        let mut kept = vec![false; population.len()];
        kept[..TILE].fill(true);
        kept[population.len() - 1] = true;
        let drawn = self.tiles.iter().flat_map(|tile| tile.launches.clone());
        for launch in drawn.chain((0..population.len()).filter(|&launch| self.certain[launch])) {
            kept[launch.saturating_sub(2 * population.warm_up_lengths[launch])..=launch].fill(true);
        }
        kept
    }

    /// True for launches that contribute to the estimated time, indexed by launch.
    pub(crate) fn counted(&self) -> impl Iterator<Item = bool> + '_ {
        let drawn = |launch: usize| self.tiles.iter().any(|tile| tile.launches.contains(&launch));
        self.certain.iter().enumerate().map(move |(launch, certain)| *certain || drawn(launch))
    }

    /// Share of the work performed by both runs together.
    fn share(&self, population: &Population) -> f64 {
        population.share(&self.long(population)) + population.share(&self.short)
    }
}

/// The certain launches: the launches at the program's start, the first with each name, launches in groups present in
/// fewer than two tiles, and launches with more work than any drawn launch in their group.
fn certain(population: &Population, tiles: &[LaunchTile]) -> Vec<bool> {
    let fixed = |launch: usize| launch < TILE || population.firsts[launch];
    // Per group: the tiles that contain it, and the largest work.
    let mut drawn: FxHashMap<usize, (FxHashSet<usize>, f64)> = FxHashMap::default();
    for (number, tile) in tiles.iter().enumerate() {
        for launch in tile.launches.clone().filter(|&launch| !fixed(launch)) {
            let (having, most) = drawn.entry(population.groups[launch]).or_default();
            having.insert(number);
            *most = most.max(population.work[launch]);
        }
    }
    let stands_alone = |launch: usize| {
        let group = drawn.get(&population.groups[launch]).filter(|(having, _)| having.len() > 1);
        fixed(launch) || group.is_none_or(|(_, most)| population.work[launch] > BEYOND * most)
    };
    (0..population.len()).map(stands_alone).collect()
}

/// Pseudo-random number for block `block` among `blocks`: equal in every run. Source: the splitmix64 finalizer (Steele,
/// Lea and Flood, OOPSLA 2014).
fn draw(blocks: usize, block: usize) -> usize {
    let mut state = ((blocks as u64) << 32 | block as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state ^ (state >> 31)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches in one group, all with equal cost.
    fn alike(count: usize) -> Population {
        Population {
            groups: vec![0; count],
            work: vec![100.0; count],
            warm_up_lengths: (0..count).map(|launch| launch.min(1)).collect(),
            firsts: (0..count).map(|launch| launch == 0).collect(),
        }
    }

    #[test]
    fn of_each_block_one_tile_is_drawn() {
        let plan = SamplingPlan::of(&alike(1002)).expect("a long program");
        assert_eq!(plan.tiles.len(), BLOCKS.1);
        for (block, tile) in plan.tiles.iter().enumerate() {
            let block = 500 * block / BLOCKS.1..500 * (block + 1) / BLOCKS.1;
            assert!(block.contains(&(tile.launches.start / TILE - 1)), "{tile:?} of {block:?}");
            assert_eq!((tile.launches.len(), tile.of), (TILE, block.len()));
        }
    }

    #[test]
    fn tiles_follow_their_warm_up_and_twice_as_long_a_one_in_the_main_run() {
        let population = alike(1002);
        let plan = SamplingPlan::of(&population).expect("a long program");
        let long = plan.long(&population);
        let tile = plan.tiles.iter().find(|tile| tile.again && tile.launches.start > 100).expect("many tiles");
        let start = tile.launches.start;
        assert!(long[start - 2..start + 2].iter().all(|&kept| kept));
        assert!(plan.short[start - 1..start + 2].iter().all(|&kept| kept));
        assert!(
            !plan.short[start - 2]
                || plan.tiles.iter().any(|other| other.launches.end + 1 >= start - 2 && other != tile)
        );
    }

    #[test]
    fn a_short_program_and_one_that_needs_long_warm_ups_have_no_sample() {
        assert_eq!(SamplingPlan::of(&alike(LEAST - 1)), Err(Refusal::Few));
        assert!(matches!(SamplingPlan::of(&alike(LEAST)), Err(Refusal::Much(share)) if share > 0.5));
        let slow = Population { warm_up_lengths: (0..1002).collect(), ..alike(1002) };
        assert!(matches!(SamplingPlan::of(&slow), Err(Refusal::Much(_))));
    }

    #[test]
    fn what_a_draw_knows_too_little_of_stands_for_itself() {
        let mut population = alike(1002);
        // A launch without peers, and a launch with more work than any other.
        population.groups[500] = 1;
        population.work[700] = 1000.0;
        let plan = SamplingPlan::of(&population).expect("a long program");
        let alone: Vec<usize> = (0..1002).filter(|&launch| plan.certain[launch]).collect();
        let drawn = plan.tiles.iter().any(|tile| tile.launches.contains(&700));
        assert_eq!(alone, if drawn { vec![0, 1, 500] } else { vec![0, 1, 500, 700] });
        assert!(alone.iter().all(|&launch| plan.long(&population)[launch]));
    }

    #[test]
    fn every_tile_of_a_block_may_be_drawn() {
        let drawn: FxHashSet<usize> = (0..400).map(|block| draw(12, block) % 8).collect();
        assert_eq!(drawn.len(), 8);
    }
}
