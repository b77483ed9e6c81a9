//! Placement: which module a page's memory is on.

use crate::DesignConfig;
use crate::axis::{axis, option};
use tombolo_machine::MachineConfig;

axis! {
    /// Which module a page's memory is on.
    pub enum Placement { FirstTouch, InterleavedLine, InterleavedPage }
}

option! {
    /// That of the first SM to touch it. Source: HMG, section VI.
    pub struct FirstTouch = "first-touch" {}
}

option! {
    /// Lines round robin over all modules; with a directory, the regions of its entries.
    pub struct InterleavedLine = "interleaved-line" {}
}

option! {
    /// Pages round robin over all modules.
    pub struct InterleavedPage = "interleaved-page" {}
}

impl DesignConfig {
    /// Lines that are placed together on a machine, at least: a page, or, where lines are interleaved, one line. Where
    /// there is a directory it is one of its regions, for an entry needs one home.
    pub fn lines_together(&self, machine: &MachineConfig) -> u64 {
        let lines_per_page = machine.page_bytes / machine.line.bytes();
        match self.placement {
            Placement::FirstTouch(_) | Placement::InterleavedPage(_) => lines_per_page,
            Placement::InterleavedLine(_) if self.coherence.facts().directory => {
                u64::from(machine.directory.lines_per_entry).min(lines_per_page)
            }
            Placement::InterleavedLine(_) => 1,
        }
    }
}
