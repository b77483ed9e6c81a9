//! A scaled machine: equal ratios of footprint to capacity and of compute to bandwidth, at a shorter simulation
//! time.
//!
//! | scaled by F | unchanged |
//! | --- | --- |
//! | SMs per module | an SM's resources: L1, warps, MSHRs, scratchpad, its crossbar port |
//! | L2, L3 and DRAM capacity in whole sets or pages, L2 MSHRs, posted stores per module, directory entries | ways, TLB entries |
//! | rates for links, L2, L3, DRAM and copies: fewer slices and channels, down to one, then their rate | latencies |
//! | page size: the largest power of two not above, at least a directory region and a block | GPUs and modules |
//! | the host's memory, last-level cache with its directory, and stacks, likewise; links to the host | blocks, the host's directories |
//! | the CPU's outstanding misses, down to one, and its line accesses per cycle | CPU clock |

use crate::error::ConfigError;
use crate::machine::{DramConfig, MachineConfig};
use crate::quantity::Fraction;
use std::fmt;
use tombolo_types::{Bytes, Rate};

/// The simulated fraction of a machine: above 0, at most 1, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineScale(Fraction);

impl MachineScale {
    /// The whole machine.
    pub const FULL: MachineScale = MachineScale(Fraction { numerator: 1, denominator: 1 });

    /// `numerator / denominator`; `None` unless above 0 and at most 1, with parts up to 65535.
    pub fn new(numerator: u64, denominator: u64) -> Option<MachineScale> {
        Fraction::new(numerator, denominator).filter(|f| f.numerator <= f.denominator).map(MachineScale)
    }

    /// The numerator.
    pub fn numerator(self) -> u64 {
        u64::from(self.0.numerator)
    }

    /// The denominator.
    pub fn denominator(self) -> u64 {
        u64::from(self.0.denominator)
    }

    /// The nearest scale at which modules with any of these SM counts all keep whole SMs, at least one per module;
    /// on a tie, the larger scale.
    pub fn with_whole_sms(self, sms: impl IntoIterator<Item = u16>) -> MachineScale {
        let all = sms.into_iter().map(u64::from).fold(0, gcd).max(1);
        MachineScale::new(self.of(all).max(1), all).unwrap_or(MachineScale::FULL)
    }

    /// `value × F`, rounded to the nearest whole number, halves up.
    pub fn of(self, value: u64) -> u64 {
        nearest(u128::from(value) * u128::from(self.numerator()), self.denominator())
    }
}

impl std::str::FromStr for MachineScale {
    type Err = ConfigError;

    /// Parses `1/16`, `0.0625` or `1`.
    fn from_str(text: &str) -> Result<MachineScale, ConfigError> {
        let fraction = Fraction::from_text(text.trim()).filter(|f| f.numerator <= f.denominator);
        fraction.map(MachineScale).ok_or_else(|| ConfigError::Scale {
            scale: text.to_owned(),
            machine: "any machine".to_owned(),
            reason: "expected a fraction above 0 and at most 1 of whole numbers up to 65535, such as 1/16, 0.0625 or 1"
                .to_owned(),
        })
    }
}

impl fmt::Display for MachineScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// `above / below`, rounded to the nearest whole number, halves up. Every caller scales a 64-bit value down, or
/// spreads it over a part of its former holders, and the result fits.
fn nearest(above: u128, below: u64) -> u64 {
    let below = u128::from(below);
    u64::try_from((2 * above + below) / (2 * below)).unwrap_or(u64::MAX)
}

/// `units × F` identical units: all whole units within the product, at least one, and each unit's size relative to
/// an unscaled unit. The total is exactly the fraction `F`.
struct ScaledUnits {
    count: u16,
    /// Each unit's share is `above / below` of the original.
    above: u64,
    below: u64,
}

impl ScaledUnits {
    fn scaled(units: u16, scale: MachineScale) -> ScaledUnits {
        let total = u64::from(units) * scale.numerator();
        let count = u16::try_from(total / scale.denominator()).unwrap_or(units).max(1);
        ScaledUnits { count, above: total, below: scale.denominator() * u64::from(count) }
    }

    /// A single unit, made slower.
    fn one(scale: MachineScale) -> ScaledUnits {
        ScaledUnits::scaled(1, scale)
    }

    /// A unit's share of a count or rate: rounded to nearest, at least 1.
    fn share(&self, value: u64) -> u64 {
        nearest(u128::from(value) * u128::from(self.above), self.below).max(1)
    }

    /// The scaled unit's duration for work that took `cycles` in an unscaled unit; rounded to nearest if the result
    /// is not a representable fraction.
    fn stretch(&self, cycles: Fraction) -> Fraction {
        let (above, below) = (u64::from(cycles.numerator) * self.below, u64::from(cycles.denominator) * self.above);
        let rounded = Fraction::new(nearest(above.into(), below), 1);
        Fraction::new(above, below).or(rounded).unwrap_or(cycles)
    }
}

/// The multiple of `grain` nearest to `value × F`, at least a single grain.
fn in_grains(value: u64, grain: u64, scale: MachineScale) -> u64 {
    let wanted = u128::from(value) * u128::from(scale.numerator());
    nearest(wanted, scale.denominator().saturating_mul(grain)).max(1) * grain
}

/// `count × F`, rounded to nearest, at least 1.
fn count(value: u32, scale: MachineScale) -> u32 {
    u32::try_from(scale.of(u64::from(value))).unwrap_or(value).max(1)
}

fn rate(value: Rate, scale: MachineScale) -> Rate {
    if value.is_infinite() { value } else { Rate(scale.of(value.0).max(1)) }
}

/// The largest power of two up to `bytes`.
fn power_of_two_below(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}

/// Scales a memory: fewer channels, a lower total rate, and a capacity in whole pages.
fn shrink_memory(memory: &mut DramConfig, page_bytes: u64, scale: MachineScale) {
    memory.channels = ScaledUnits::scaled(memory.channels, scale).count;
    memory.rate = rate(memory.rate, scale);
    memory.bytes = in_grains(memory.bytes, page_bytes, scale);
}

impl MachineConfig {
    /// The scales with a whole number of SMs per module, smallest first; the last scale is 1.
    pub fn allowed_scales(&self) -> Vec<MachineScale> {
        let sms = u64::from(self.topology.sms_per_module);
        (1..=sms).filter_map(|kept| MachineScale::new(kept, sms)).collect()
    }

    /// The machine scaled by `scale`. Fails if a module would not keep a whole number of SMs, or if the machine is
    /// already scaled.
    pub fn scaled(&self, scale: MachineScale) -> Result<MachineConfig, ConfigError> {
        if scale == MachineScale::FULL {
            return Ok(self.clone());
        }
        let sms = u64::from(self.topology.sms_per_module) * scale.numerator();
        if self.scale != MachineScale::FULL {
            return Err(self.not_at(scale, format!("it is {} of a machine already", self.scale)));
        }
        if !sms.is_multiple_of(scale.denominator()) {
            return Err(self.not_at(scale, self.whole_sms_only(scale)));
        }
        let mut small = self.clone();
        small.scale = scale;
        small.topology.sms_per_module = (sms / scale.denominator()) as u16;
        small.shrink_pages(scale);
        small.shrink_l2(scale);
        small.shrink_dram(scale);
        small.shrink_host(scale);
        small.shrink_stack(scale);
        small.module_link.rate = rate(self.module_link.rate, scale);
        small.gpu_link.rate = rate(self.gpu_link.rate, scale);
        small.fabric.uplink_rate = rate(self.fabric.uplink_rate, scale);
        small.fabric.links = self.fabric.links.at(|full| rate(full, scale));
        small.host.copy_rate = rate(self.host.copy_rate, scale);
        small.paging.host_rate = rate(self.paging.host_rate, scale);
        small.publication.entries = count(self.publication.entries, scale).max(2);
        match small.conflict() {
            None => Ok(small),
            Some(conflict) => Err(self.not_at(scale, format!("{} would not fit: {}", conflict.key, conflict.reason))),
        }
    }

    fn shrink_pages(&mut self, scale: MachineScale) {
        let block = self.stack.as_ref().map_or(1, |stack| stack.block_bytes);
        self.page_bytes = power_of_two_below(scale.of(self.page_bytes)).max(self.region_bytes()).max(block);
    }

    fn shrink_l2(&mut self, scale: MachineScale) {
        let line = self.line.bytes();
        let l2 = &mut self.l2;
        let slices = ScaledUnits::scaled(l2.slices, scale);
        l2.slices = slices.count;
        l2.bytes = in_grains(l2.bytes, u64::from(slices.count) * u64::from(l2.ways) * line, scale);
        l2.mshrs = u32::try_from(slices.share(l2.mshrs.into())).unwrap_or(l2.mshrs);
        if !l2.rate.is_infinite() {
            l2.rate = Rate(slices.share(l2.rate.0));
        }
        if !l2.walk_rate.is_infinite() {
            l2.walk_rate = Rate(slices.share(l2.walk_rate.0));
        }
        l2.request_cycles = slices.stretch(l2.request_cycles);
        l2.posted_stores = count(l2.posted_stores, scale);
        let directory = &mut self.directory;
        let entries = in_grains(directory.entries.into(), directory.ways.into(), scale);
        directory.entries = u32::try_from(entries).unwrap_or(directory.entries);
    }

    fn shrink_dram(&mut self, scale: MachineScale) {
        shrink_memory(&mut self.dram, self.page_bytes, scale);
        let cache = &mut self.memory_cache;
        if cache.bytes > Bytes(0) {
            cache.bytes = Bytes(in_grains(cache.bytes.0, u64::from(cache.ways) * self.line.bytes(), scale));
        }
        self.memory_cache.rate = rate(self.memory_cache.rate, scale);
    }

    fn shrink_host(&mut self, scale: MachineScale) {
        let (line, page) = (self.line.bytes(), self.page_bytes);
        if let Some(cpu) = &mut self.cpu {
            cpu.outstanding = count(cpu.outstanding, scale);
            cpu.issue_cycles = ScaledUnits::one(scale).stretch(cpu.issue_cycles);
        }
        if let Some(llc) = &mut self.llc {
            let ways = u64::from(llc.ways);
            llc.bytes = in_grains(llc.bytes, ways * line, scale);
            llc.rate = rate(llc.rate, scale);
            let blocks = in_grains(llc.directory_blocks.into(), ways, scale);
            llc.directory_blocks = u32::try_from(blocks).unwrap_or(llc.directory_blocks);
        }
        if let Some(memory) = &mut self.host_memory {
            shrink_memory(memory, page, scale);
        }
        if let Some(link) = &mut self.host_link {
            link.rate = rate(link.rate, scale);
        }
    }

    /// Stacks that use a module's whole memory shrink along with the memory.
    fn shrink_stack(&mut self, scale: MachineScale) {
        let (slices, memory) = (u64::from(self.l2.slices), self.dram.bytes);
        if let Some(stack) = &mut self.stack
            && stack.bytes > Bytes(0)
        {
            let set = slices * u64::from(stack.ways) * stack.block_bytes;
            stack.bytes = Bytes(in_grains(stack.bytes.0, set, scale).min((memory / set).max(1) * set));
        }
    }

    fn not_at(&self, scale: MachineScale, reason: String) -> ConfigError {
        ConfigError::Scale { scale: scale.to_string(), machine: self.name.clone(), reason }
    }

    fn whole_sms_only(&self, scale: MachineScale) -> String {
        let sms = u64::from(self.topology.sms_per_module);
        let below = sms * scale.numerator() / scale.denominator();
        let nearest: Vec<String> = [below, below + 1]
            .iter()
            .filter_map(|kept| MachineScale::new(*kept, sms))
            .map(|scale| scale.to_string())
            .collect();
        let round: Vec<String> = (0..=sms.ilog2())
            .filter(|power| sms.is_multiple_of(1 << power))
            .filter_map(|power| MachineScale::new(1, 1 << power))
            .map(|scale| scale.to_string())
            .collect();
        format!(
            "its modules have {sms} SMs and must keep a whole number: allowed are k/{sms} for k from 1 to {sms} \
             (nearest: {}; round ones: {})",
            nearest.join(" and "),
            round.join(", ")
        )
    }
}
