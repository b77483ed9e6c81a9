//! Merges: what a release, or a launch in its place, asks of a client. Each block whose bytes others may lack is merged; the
//! controller hears when all are.

use super::did::Did;
use super::{Block, BlockSlice, Blocks};
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::message::Message;
use crate::watch::Contents;
use tombolo_protocol::nodes::{Event, Nodes};
use tombolo_types::Ps;

/// Who waits for a block to be merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Merging {
    /// Whether what no other holds goes back too.
    all: bool,
    /// Joins of the controller.
    joins: Vec<u32>,
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// Merges what is owed, in the order of addresses.
    pub(super) fn merge_all(&mut self, all: bool, join: u32, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let protocol = here.site.protocol.0;
        let owed =
            self.client.blocks.iter().filter(|(_, cell)| protocol.owes(&cell.slot) || all && N::is_dirty(&cell.slot));
        let mut owed: Vec<Block> = owed.map(|(block, _)| *block).collect();
        owed.sort_unstable();
        self.stats.merged += owed.len() as u64;
        if owed.is_empty() || !protocol.awaits_merges() {
            self.merged(join, here);
        } else {
            self.client.joins.push((join, owed.len() as u32));
        }
        for block in owed {
            let merging = self.client.cell(block).merging.get_or_insert_default();
            merging.all |= all;
            if protocol.awaits_merges() {
                merging.joins.push(join);
            }
            self.merge_on(block, here);
            self.forget_if_gone(block, here);
        }
    }

    /// Goes on with the merge of a block that has nothing under way.
    pub(super) fn merge_on(&mut self, block: Block, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let protocol = here.site.protocol.0;
        let cell = self.client.cell(block);
        let Some(all) = cell.merging.as_ref().map(|merging| merging.all) else { return };
        if N::is_busy(&cell.slot) {
            return;
        }
        let mut did = Did::default();
        self.step(block, Event::Merge { all }, &mut did, here);
        let leaves = Departure::at(here.out.now()).after(self.client.answers_after());
        self.keep_above(block, leaves, here);
        self.tell_all(block, did, leaves, here);
        let cell = self.client.cell(block);
        if N::is_busy(&cell.slot) || protocol.owes(&cell.slot) {
            return;
        }
        let Some(Merging { joins, .. }) = cell.merging.take() else { return };
        for join in joins {
            let Some(at) = self.client.joins.iter().position(|(one, _)| *one == join) else { continue };
            self.client.joins[at].1 -= 1;
            if self.client.joins[at].1 == 0 {
                self.client.joins.swap_remove(at);
                self.merged(join, here);
            }
        }
    }

    /// Tells the controller that all that a join waits for is merged.
    fn merged(&mut self, join: u32, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let controller = here.site.layout.controller(here.site.module);
        here.out.send(here.out.now() + Ps(1), self.id, controller, Message::Written { join });
    }
}
