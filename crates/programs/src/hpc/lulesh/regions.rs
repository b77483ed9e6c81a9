//! Material regions to which the elements are dealt.

/// Exponent for a region's weight: its number to this power. Source: LULESH 2.0 (`-b`).
const BALANCE: u32 = 1;
/// Extra equation-of-state evaluations in a region that is not cheap. Source: LULESH 2.0 (`-c`).
const COST: u32 = 1;

/// Number generator equal to C's `rand` in glibc (`TYPE_3`), with seed 0 treated as 1: r(i) = r(i - 3) + r(i - 31),
/// without its lowest bit. LULESH calls `srand(0)`.
struct GlibcRandom {
    /// The last 31 sums.
    sums: [u32; 31],
    next: usize,
}

impl GlibcRandom {
    fn new() -> GlibcRandom {
        let mut seed: u64 = 1;
        let sums = std::array::from_fn(|_| {
            let sum = seed as u32;
            seed = seed * 16_807 % 0x7fff_ffff;
            sum
        });
        let mut random = GlibcRandom { sums, next: 3 };
        for _ in 0..310 {
            random.draw();
        }
        random
    }

    fn draw(&mut self) -> u32 {
        let sum = self.sums[self.next].wrapping_add(self.sums[(self.next + 28) % 31]);
        self.sums[self.next] = sum;
        self.next = (self.next + 1) % 31;
        sum >> 1
    }

    /// Draws a number below a bound.
    fn below(&mut self, bound: u32) -> u32 {
        self.draw() % bound
    }

    /// Draws a run length in elements. Source: LULESH 2.0 (`CreateRegionIndexSets`).
    fn run(&mut self) -> u32 {
        match self.below(1000) {
            ..773 => self.below(15) + 1,
            773..937 => self.below(16) + 16,
            937..970 => self.below(32) + 32,
            970..974 => self.below(64) + 64,
            974..978 => self.below(128) + 128,
            978..981 => self.below(256) + 256,
            _ => self.below(1537) + 512,
        }
    }
}

/// Elements by region, and the evaluation count per region for the equation of state.
pub(super) struct Regions {
    /// Elements, region by region; the regions with most evaluations come first. Within a region the elements ascend.
    pub(super) order: Vec<i32>,
    /// End position (exclusive) for each region in `order`.
    pub(super) ends: Vec<i32>,
    /// Evaluations of the equation of state in each region.
    pub(super) evaluations: Vec<u32>,
}

impl Regions {
    /// Deals `elements` to `count` regions, in runs. Source: LULESH 2.0 (`CreateRegionIndexSets`), and its CUDA port
    /// (`sortRegions`).
    pub(super) fn new(elements: i32, count: i32) -> Regions {
        let region_of = deal(elements, count);
        let mut sorted: Vec<i32> = (0..count).collect();
        sorted.sort_by_key(|region| std::cmp::Reverse(evaluations(*region, count)));
        let mut order: Vec<i32> = (0..elements).collect();
        let rank = |region: i32| sorted.iter().position(|other| *other == region);
        let ranks: Vec<_> = (0..count).map(rank).collect();
        order.sort_by_key(|element| ranks[region_of[*element as usize] as usize]);
        let mut end = 0;
        let ends = sorted.iter().map(|region| {
            end += region_of.iter().filter(|of| *of == region).count() as i32;
            end
        });
        Regions {
            order,
            ends: ends.collect(),
            evaluations: sorted.iter().map(|region| evaluations(*region, count)).collect(),
        }
    }

    /// Region at a position in `order`.
    pub(super) fn at(&self, place: i32) -> usize {
        self.ends.partition_point(|end| *end <= place)
    }
}

/// Region number per element.
fn deal(elements: i32, count: i32) -> Vec<i32> {
    if count == 1 {
        return vec![0; elements as usize];
    }
    let mut random = GlibcRandom::new();
    let mut edge = 0;
    let edges: Vec<u32> = (1..=count as u32)
        .map(|number| {
            edge += number.pow(BALANCE);
            edge
        })
        .collect();
    let mut dealt = Vec::with_capacity(elements as usize);
    let mut last = None;
    while dealt.len() < elements as usize {
        // No region may occur twice in a row.
        let region = loop {
            let drawn = random.below(edge);
            let region = edges.partition_point(|edge| *edge <= drawn) as i32;
            if last != Some(region) {
                break region;
            }
        };
        let run = (random.run() as usize).min(elements as usize - dealt.len());
        dealt.extend(std::iter::repeat_n(region, run));
        last = Some(region);
    }
    dealt
}

/// Equation-of-state evaluations for a region: once for the lower half, and for one region in twenty ten times as often
/// as for the rest. Source: LULESH 2.0 (`ApplyMaterialPropertiesForElems`).
fn evaluations(region: i32, count: i32) -> u32 {
    if region < count / 2 {
        1
    } else if region < count - (count + 15) / 20 {
        1 + COST
    } else {
        10 * (1 + COST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: the first numbers that glibc gives after `srand(1)`.
    #[test]
    fn random_numbers_are_those_of_the_c_library() {
        let mut random = GlibcRandom::new();
        assert_eq!([(); 3].map(|()| random.draw()), [1_804_289_383, 846_930_886, 1_681_692_777]);
    }

    #[test]
    fn regions_part_the_elements() {
        for count in [1, 2, 11, 30] {
            let regions = Regions::new(2000, count);
            let mut elements = regions.order.clone();
            elements.sort_unstable();
            assert!(elements.into_iter().eq(0..2000));
            assert_eq!((regions.ends.len() as i32, regions.ends.last()), (count, Some(&2000)));
            for place in 1..2000 {
                let same = regions.at(place) == regions.at(place - 1);
                assert!(!same || regions.order[place as usize] > regions.order[place as usize - 1]);
            }
        }
    }

    #[test]
    fn the_last_of_eleven_regions_evaluates_twenty_times_and_comes_first() {
        assert_eq!(Regions::new(100, 11).evaluations, [20, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1]);
        assert_eq!(Regions::new(100, 1).evaluations, [2]);
    }

    /// Source: region sizes counted with LULESH 2.0's rule and glibc's `rand` for `-s 30 -r 11`.
    #[test]
    fn regions_of_the_default_are_as_large_as_in_the_public_program() {
        let regions = Regions::new(27_000, 11);
        let starts = std::iter::once(0).chain(regions.ends.iter().copied());
        let sizes: Vec<i32> = starts.zip(&regions.ends).map(|(start, end)| end - start).collect();
        assert_eq!(sizes, [8445, 896, 3236, 2435, 1198, 5980, 123, 457, 493, 2733, 1004]);
        // The mesh's first element is in the region with most evaluations, and its run has 25 elements.
        assert_eq!((regions.order[0], regions.order[24], regions.order[25] > 25), (0, 24, true));
    }
}
