//! Merges at a client, as required by a release, or by a kernel launch instead. Each block with bytes that another
//! sharer may lack is merged, and the controller is notified when all merges have completed.

use super::effects::StepEffects;
use super::{Block, BlockDesign, BlockSlice};
use crate::l2::departure::Departure;
use crate::message::Message;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use tombolo_protocol::client_home::{BlockEvent, Nodes};
use tombolo_types::Ps;

/// Pending merge of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingMerge {
    /// Set if exclusively held dirty bytes must be written back too.
    all: bool,
    /// Join numbers at the controller that wait for this merge.
    joins: Vec<u32>,
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// Merges all blocks with an owed merge, in address order.
    pub(super) fn merge_all(&mut self, all: bool, join: u32, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let protocol = here.config.protocol.0;
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

    /// Continues a block's merge if no transaction for the block is in flight.
    pub(super) fn merge_on(&mut self, block: Block, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let protocol = here.config.protocol.0;
        let cell = self.client.cell(block);
        let Some(all) = cell.merging.as_ref().map(|merging| merging.all) else { return };
        if N::is_busy(&cell.slot) {
            return;
        }
        let mut did = StepEffects::default();
        self.step(block, BlockEvent::Merge { all }, &mut did, here);
        let leaves = Departure::at(here.out.now()).after(self.client.answers_after());
        self.sync_above(block, leaves, here);
        self.send_messages(block, did, leaves, here);
        let cell = self.client.cell(block);
        if N::is_busy(&cell.slot) || protocol.owes(&cell.slot) {
            return;
        }
        let Some(PendingMerge { joins, .. }) = cell.merging.take() else { return };
        for join in joins {
            let Some(at) = self.client.joins.iter().position(|(one, _)| *one == join) else { continue };
            self.client.joins[at].1 -= 1;
            if self.client.joins[at].1 == 0 {
                self.client.joins.swap_remove(at);
                self.merged(join, here);
            }
        }
    }

    /// Notifies the controller after all merges for a join have completed.
    fn merged(&mut self, join: u32, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let controller = here.config.layout.controller(here.config.module);
        here.out.send(here.out.now() + Ps(1), self.id, controller, Message::Written { join });
    }
}
