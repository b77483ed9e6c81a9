//! Memories with room for few pages, for designs whose pages move: modules evict pages, and batches of faults are small.
//!
//! The values come from a separate random stream: runs of other designs remain unchanged.

use crate::machine::SettingsDraw;
use crate::setup::Setup;
use tombolo_check::random::Dice;
use tombolo_design::DesignConfig;

/// Distinguishes this random stream from streams for different purposes with an equal seed.
const PURPOSE: u64 = 0x7061_6765;
/// Percentage of runs in which a module has room for few pages.
const FEW: usize = 60;
/// Numbers of pages for which a module has room in these runs.
const ROOM: [u64; 5] = [2, 3, 4, 5, 6];

/// Draws the room for pages and the driver's settings, if `design` moves pages. `percent`: probability with
/// which optional settings are drawn.
pub(crate) fn add(setup: &mut Setup, design: &DesignConfig, percent: usize, seed: u64) {
    let sharing = design.placement.sharing();
    if !sharing.moves() {
        return;
    }
    let mut dice = Dice::new(seed, PURPOSE);
    let mut drawing = SettingsDraw { dice: &mut dice, percent, settings: std::mem::take(&mut setup.settings) };
    let room = drawing.dice.pick(&ROOM);
    if drawing.dice.percent(FEW) {
        // A stack of blocks, which no such design uses, must fit nevertheless.
        let stack = drawing.drawn("stack.bytes").unwrap_or(0).next_multiple_of(setup.page_bytes);
        drawing.settings.push(("dram.bytes", format!("{}B", (room * setup.page_bytes).max(stack))));
    }
    drawing.choose("paging.batch", &["1", "2"]);
    drawing.choose("paging.host_rate", &["1GB/s", "100GB/s"]);
    if sharing.publishes.is_none() {
        drawing.time("paging.service", 1_000, 12);
        drawing.time("paging.shootdown", 1_000, 12);
    }
    if sharing.pins {
        drawing.choose("paging.thrashing_moves", &["2", "3"]);
        drawing.time("paging.thrashing_time", 1_000_000, 10);
        drawing.time("paging.pinned_time", 1_000_000, 10);
    }
    setup.settings = drawing.settings;
}
