//! Memories with room for few pages, for designs whose pages move: modules evict pages, and batches of faults are small.
//! Subscribers of single pages, for designs that publish pages: some modules use a page without a replica.
//!
//! The values come from separate random streams: they change no run of a design without moving pages.

use crate::machine::SettingsDraw;
use crate::setup::Setup;
use std::collections::BTreeMap;
use tombolo_check::random::Dice;
use tombolo_design::DesignConfig;
use tombolo_design::placement::{Movement, Subscriptions};

/// Distinguishes this random stream from streams for different purposes with an equal seed.
const PURPOSE: u64 = 0x7061_6765;
/// Distinguishes the random stream of [`subscribe`].
const SUBSCRIBERS: u64 = 0x7375_6273;
/// Percentage of runs with drawn subscribers for each page.
const BY_HAND: usize = 40;
/// Percentage of runs in which a module has room for few pages.
const FEW: usize = 60;
/// Numbers of pages for which a module has room in these runs.
const ROOM: [u64; 5] = [2, 3, 4, 5, 6];

/// Draws the room for pages and the driver's settings, if faults or subscriptions of `design` move pages. `percent`:
/// probability with which optional settings are drawn.
pub(crate) fn add(setup: &mut Setup, design: &DesignConfig, percent: usize, seed: u64) {
    let sharing = design.placement.sharing();
    if !matches!(sharing.movement, Movement::Faults | Movement::Hints { .. } | Movement::Published { .. }) {
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

/// Draws the subscribers of each page of the test, if `design` publishes all pages.
pub(crate) fn subscribe(setup: &mut Setup, design: &DesignConfig, seed: u64) {
    let is_of_all = matches!(
        design.placement.sharing().movement,
        Movement::Published { subscriptions: Subscriptions::Automatic | Subscriptions::All, .. }
    );
    let mut dice = Dice::new(seed, SUBSCRIBERS);
    if !is_of_all || setup.shape.gpus < 2 || !dice.percent(BY_HAND) {
        return;
    }
    let lines = setup.page_bytes / 128;
    // A line of each page names the page.
    let pages: BTreeMap<u64, u64> = setup.addresses.iter().map(|one| (one.line.0 / lines, one.line.0)).collect();
    let subscribed = pages.into_values().map(|line| {
        let mut gpus: Vec<usize> = (0..usize::from(setup.shape.gpus)).filter(|_| dice.percent(60)).collect();
        if gpus.is_empty() {
            gpus.push(dice.below(usize::from(setup.shape.gpus)));
        }
        let gpus: Vec<String> = gpus.iter().map(ToString::to_string).collect();
        format!("line{line}: {}", gpus.join(" "))
    });
    setup.subscribers = Some(subscribed.collect::<Vec<_>>().join("; "));
}
