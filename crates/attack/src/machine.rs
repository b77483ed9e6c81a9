//! Machines drawn at random: every latency, rate and size that may decide an order.

use crate::setup::Setting;
use tombolo_check::random::Dice;
use tombolo_design::Capacity;
use tombolo_design::DesignConfig;

/// Distinguishes the random stream of [`SettingsDraw::fetches`] from others with an equal seed.
const FETCHES: u64 = 0x66_6574_6368;

/// Settings that make the base machine quick to build. Drawn settings follow and override them.
pub(crate) const SMALL: &[(&str, &str)] = &[
    ("sm.sub_cores", "16"),
    ("l1.bytes", "8KB"),
    ("l1.ways", "4"),
    ("l2.slices", "4"),
    ("l2.bytes", "64KB"),
    ("l2.ways", "16"),
    ("directory.entries", "128"),
    ("tlb.l2_entries", "64"),
    ("dram.bytes", "1GB"),
];

/// Draws from a logarithmic scale: `low` doubled up to `octaves` times, plus a random share, to make small and large
/// values equally likely.
pub(crate) fn logarithmic(dice: &mut Dice, low: u64, octaves: usize) -> u64 {
    let base = low << dice.below(octaves + 1);
    base + dice.below(base as usize + 1) as u64
}

/// Draws settings for a design.
pub(crate) struct SettingsDraw<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) percent: usize,
    pub(crate) settings: Vec<Setting>,
}

impl SettingsDraw<'_> {
    /// Settings beyond the machine's shape: each is drawn in `percent` percent of the runs.
    pub(crate) fn settings(dice: &mut Dice, design: &DesignConfig, percent: usize) -> Vec<Setting> {
        let mut drawing = SettingsDraw { dice, percent, settings: Vec::new() };
        drawing.latencies();
        drawing.rates();
        drawing.queues();
        drawing.caches(design);
        drawing.directory();
        if !design.placement.sharing().moves() {
            drawing.choose("tlb.start", &["warm"]);
        }
        if design.placement.sharing().publishes.is_some() {
            drawing.publication();
        }
        drawing.settings
    }

    /// Value of a setting that is a number in the drawn machine: the last assignment wins.
    pub(crate) fn drawn(&self, path: &str) -> Option<u64> {
        let drawn = self.settings.iter().rev().find(|(set, _)| *set == path).map(|(_, value)| value.as_str());
        let small = || SMALL.iter().find(|(set, _)| *set == path).map(|(_, value)| *value);
        drawn.or_else(small).and_then(|value| value.parse().ok())
    }

    /// Sets `path` to a random element of `values`, with the drawing's probability.
    pub(crate) fn choose(&mut self, path: &'static str, values: &[&str]) {
        let value = self.dice.pick(values);
        if self.dice.percent(self.percent) {
            self.settings.push((path, value.to_owned()));
        }
    }

    /// Sets `path` to a time between `low` picoseconds and up to `octaves` doublings, with the drawing's probability.
    pub(crate) fn time(&mut self, path: &'static str, low: u64, octaves: usize) {
        let time = logarithmic(self.dice, low, octaves);
        if self.dice.percent(self.percent) {
            self.settings.push((path, format!("{time}ps")));
        }
    }

    fn latencies(&mut self) {
        self.time("crossbar.latency", 1_000, 10);
        self.time("module_link.latency", 1_000, 13);
        self.time("gpu_link.latency", 2_000, 13);
        self.time("l1.hit_latency", 1_000, 8);
        self.time("l2.hit_latency", 1_000, 9);
        self.time("dram.base_latency", 1_000, 13);
        self.time("host.command_latency", 1_000, 12);
        self.time("host.dispatch_interval", 1, 20);
        self.time("tlb.walk_latency", 1_000, 11);
    }

    fn rates(&mut self) {
        self.choose("crossbar.rate", &["1B/cycle", "8B/cycle", "infinite"]);
        self.choose("module_link.rate", &["1GB/s", "16GB/s", "infinite"]);
        self.choose("gpu_link.rate", &["1GB/s", "10GB/s", "400GB/s"]);
        self.choose("l2.rate", &["1B/cycle", "8B/cycle", "infinite"]);
        self.choose("l2.request_cycles", &["8", "64"]);
        self.choose("dram.rate", &["1GB/s", "20GB/s"]);
        self.choose("dram.channels", &["1", "2"]);
        self.choose("dram.turn", &["0ns", "100ns"]);
        if self.dice.percent(self.percent) {
            self.settings.extend([("dram.refresh_interval", "1us".to_owned()), ("dram.refresh", "500ns".to_owned())]);
        }
        self.choose("l1.lookups_per_cycle", &["1/16", "4"]);
        self.choose("l1.instruction_cycles", &["8", "64"]);
        self.choose("l1.banks", &["none", "1", "32"]);
        self.choose("sm.sub_cores", &["1", "4", "64"]);
    }

    fn queues(&mut self) {
        self.choose("sm.pending_loads", &["1", "2", "4"]);
        self.choose("sm.posted_stores", &["1", "2", "4"]);
        self.choose("l1.mshrs", &["1", "2", "4"]);
        self.choose("l1.merges", &["1", "2"]);
        self.choose("l2.mshrs", &["3", "4", "6"]);
        self.choose("l2.merges", &["1", "2"]);
        self.choose("l2.posted_stores", &["1", "2", "4"]);
        self.choose("dram.write_queue", &["1", "4"]);
        self.choose("tlb.l1_entries", &["1", "2"]);
        self.choose("tlb.walkers", &["1"]);
    }

    fn caches(&mut self, design: &DesignConfig) {
        self.choose("l1.sector_bytes", &["32B", "64B", "128B"]);
        self.choose("l1.set_index", &["hashed", "low-bits"]);
        self.choose("l2.set_index", &["hashed", "low-bits"]);
        // A cache with ways shared by class needs a way for each class.
        let least = if matches!(design.capacity, Capacity::Shared(_)) { 0 } else { 1 };
        if self.dice.percent(self.percent) {
            let (ways, sets) = (1 << self.dice.pick(&[least, 1, 2]), 1 << self.dice.below(3));
            self.settings.push(("l1.ways", ways.to_string()));
            self.settings.push(("l1.bytes", format!("{}B", ways * sets * 128)));
        }
        if self.dice.percent(self.percent) {
            let (ways, sets) = (1 << self.dice.pick(&[least, 1, 2]), 1 << self.dice.below(3));
            let slices = 1 << self.dice.below(3);
            self.settings.push(("l2.slices", slices.to_string()));
            self.settings.push(("l2.ways", ways.to_string()));
            self.settings.push(("l2.bytes", format!("{}B", slices * ways * sets * 128)));
        }
        self.choose("memory_cache.bytes", &["4KB", "64KB"]);
    }

    /// Fetches of more than a sector, from a separate random stream, which leaves earlier runs unchanged.
    pub(crate) fn fetches(settings: &mut Vec<Setting>, percent: usize, seed: u64) {
        let mut dice = Dice::new(seed, FETCHES);
        let mut drawing = SettingsDraw { dice: &mut dice, percent, settings: std::mem::take(settings) };
        drawing.choose("l2.fetch_bytes", &["128"]);
        *settings = drawing.settings;
    }

    fn publication(&mut self) {
        self.choose("publication.entries", &["2", "3", "5"]);
        self.choose("publication.tlb_entries", &["8", "16"]);
        self.choose("publication.walkers", &["1"]);
        self.time("publication.walk_latency", 1_000, 11);
        self.time("publication.stop", 1_000, 12);
        self.time("paging.service", 1_000, 12);
        self.time("paging.shootdown", 1_000, 12);
    }

    fn directory(&mut self) {
        // Entry replacement accounts for half of a directory's behaviour.
        if self.dice.percent(self.percent.max(30)) {
            let (ways, sets) = (self.dice.pick(&[1, 1, 2, 4]), self.dice.pick(&[1, 1, 2, 4]));
            // Divisible among the maximum number of slices on any machine drawn in this crate.
            self.settings.push(("directory.ways", ways.to_string()));
            self.settings.push(("directory.entries", (4 * ways * sets).to_string()));
        }
        self.choose("directory.allocate_on_store", &["literal", "sharers-only"]);
    }
}
