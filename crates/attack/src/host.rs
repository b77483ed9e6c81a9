//! Adds a host to a run: host memory holds all pages, and the GPUs' memories may cache blocks.
//!
//! Its values come from a separate random stream, therefore runs without a host remain unchanged. A block has few lines
//! and a stack has few blocks, therefore tests share blocks and noise evicts them.

use crate::machine::SettingsDraw;
use crate::setup::Setup;
use tombolo_check::random::Dice;
use tombolo_types::ModuleId;

/// Distinguishes this random stream from streams for different purposes with an equal seed.
const PURPOSE: u64 = 0x686f_7374;
/// Bytes per line.
const LINE: u64 = 128;

/// Adds a host to a setup; `percent`: probability with which optional settings are drawn. All pages move to the host's
/// module, and settings for stacks, the last-level cache and the host are drawn.
pub(crate) fn add(setup: &mut Setup, percent: usize, seed: u64) {
    let mut dice = Dice::new(seed, PURPOSE);
    let host = ModuleId(setup.modules());
    setup.has_host = true;
    setup.homes.iter_mut().for_each(|home| *home = host);
    let mut drawing = SettingsDraw { dice: &mut dice, percent, settings: std::mem::take(&mut setup.settings) };
    drawing.stacks(setup.page_bytes, setup.region);
    drawing.last_level_cache();
    drawing.host();
    setup.settings = drawing.settings;
}

impl SettingsDraw<'_> {
    fn set(&mut self, path: &'static str, value: u64) {
        self.settings.push((path, value.to_string()));
    }

    /// Blocks mostly equal regions: then a test has several locations in a block.
    fn stacks(&mut self, page_bytes: u64, region: u64) {
        let block = (LINE * region * self.dice.pick(&[1, 1, 2, 4])).min(page_bytes);
        let slices = self.drawn("l2.slices").expect("a number that every run has");
        let (ways, sets) = (self.dice.pick(&[1, 1, 2, 4]), self.dice.pick(&[1, 1, 2, 4]));
        self.set("stack.block_bytes", block);
        self.set("stack.ways", ways);
        self.set("stack.bytes", slices * ways * sets * block);
        if self.dice.percent(self.percent) {
            let together = self.dice.pick(&[1, 2, 4]);
            self.set("stack.interleave_bytes", together * block);
        }
        self.choose("stack.row_policy", &["closed", "open"]);
        self.choose("stack.probe_cycles", &["1", "100"]);
        self.time("stack.lookup_latency", 1_000, 8);
    }

    fn last_level_cache(&mut self) {
        let controllers = self.dice.pick(&[1, 2, 2, 4]);
        let (ways, sets) = (self.dice.pick(&[1, 2, 4]), self.dice.pick(&[1, 1, 2]));
        self.set("host_directory.controllers", controllers);
        self.set("llc.ways", ways);
        self.set("llc.bytes", controllers * ways * sets * LINE);
        let blocks = self.dice.pick(&[1, 1, 2]);
        self.set("llc.directory_blocks", controllers * ways * blocks);
        self.time("llc.hit_latency", 1_000, 8);
        self.choose("llc.rate", &["1GB/s", "100GB/s"]);
        self.choose("cpu.outstanding", &["1", "2", "10"]);
        self.choose("cpu.issue_cycles", &["1", "100"]);
    }

    fn host(&mut self) {
        self.time("host_directory.lookup_latency", 100, 12);
        self.time("host_memory.base_latency", 1_000, 13);
        self.choose("host_memory.rate", &["1GB/s", "20GB/s"]);
        self.choose("host_memory.channels", &["1", "2"]);
        self.choose("host_memory.write_queue", &["1", "4"]);
        self.choose("fabric.shape", &["switch", "shared", "pairs"]);
        if self.dice.percent(30) {
            self.settings.push(("host_link.through", "own".to_owned()));
            self.settings.push(("host_link.latency", "200ns".to_owned()));
            self.time("host_link.latency", 2_000, 13);
            self.choose("host_link.rate", &["1GB/s", "10GB/s", "400GB/s"]);
        }
        self.choose("host_directory.outstanding", &["3", "65535"]);
        // A GPU with few requests in flight: later ones queue, behind requests for other blocks.
        self.choose("host_link.outstanding", &["1", "2"]);
    }
}
