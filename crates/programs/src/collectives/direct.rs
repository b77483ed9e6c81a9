//! Algorithms in which each rank exchanges data with all others at once, behind a meeting of all.

use super::ranks::{Place, Ranks, View};
use crate::prelude::*;

/// One-shot all-reduce: each rank loads all inputs and adds them up. Source: vLLM, `csrc/custom_all_reduce.cuh`, one stage.
pub(super) async fn one_shot_all_reduce(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    ranks.meet(cta, epoch, 0).await;
    let inputs: Vec<View> = ranks.input.iter().map(|input| ranks.whole(*input)).collect();
    ranks.transfer(cta, &ranks.shape.part(channel), &inputs, &[ranks.whole(ranks.output[rank])]);
    ranks.meet(cta, epoch, ranks.shape.ranks as u64).await;
}

/// Two-shot all-reduce: each rank adds up one chunk of all inputs, then loads the other chunks from their ranks. Source:
/// vLLM, `csrc/custom_all_reduce.cuh`, two stages.
pub(super) async fn two_shot_all_reduce(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    let (n, part) = (ranks.shape.ranks as u64, ranks.shape.part(channel));
    ranks.meet(cta, epoch, 0).await;
    let inputs: Vec<View> = ranks.input.iter().map(|input| ranks.chunk(*input, rank)).collect();
    let result = [ranks.whole(ranks.staging[rank]), ranks.chunk(ranks.output[rank], rank)];
    ranks.transfer(cta, &part, &inputs, &result);
    ranks.meet(cta, epoch, n).await;
    for peer in ranks.peers(rank) {
        ranks.transfer(cta, &part, &[ranks.whole(ranks.staging[peer])], &[ranks.chunk(ranks.output[rank], peer)]);
    }
    ranks.meet(cta, epoch, 2 * n).await;
}

/// Reduce-scatter: each rank loads its chunk of all inputs.
pub(super) async fn reduce_scatter(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    ranks.meet(cta, epoch, 0).await;
    let inputs: Vec<View> = ranks.input.iter().map(|input| ranks.chunk(*input, rank)).collect();
    ranks.transfer(cta, &ranks.shape.part(channel), &inputs, &[ranks.whole(ranks.output[rank])]);
    ranks.meet(cta, epoch, ranks.shape.ranks as u64).await;
}

/// All-gather: each rank stores its chunk to all outputs.
pub(super) async fn all_gather(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    ranks.meet(cta, epoch, 0).await;
    let all = std::iter::once(rank).chain(ranks.peers(rank));
    let outputs: Vec<View> = all.map(|to| ranks.chunk(ranks.output[to], rank)).collect();
    ranks.transfer(cta, &ranks.shape.part(channel), &[ranks.whole(ranks.input[rank])], &outputs);
    ranks.meet(cta, epoch, ranks.shape.ranks as u64).await;
}

/// All-to-all: each rank stores chunk `p` of its input to rank `p`.
pub(super) async fn all_to_all(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    ranks.meet(cta, epoch, 0).await;
    for to in std::iter::once(rank).chain(ranks.peers(rank)) {
        let (from, into) = (ranks.chunk(ranks.input[rank], to), ranks.chunk(ranks.output[to], rank));
        ranks.transfer(cta, &ranks.shape.part(channel), &[from], &[into]);
    }
    ranks.meet(cta, epoch, ranks.shape.ranks as u64).await;
}

/// Any operation of a single rank: its output is its input.
pub(super) fn alone(ranks: &Ranks, cta: &mut Cta<'_>) {
    let (input, output) = (ranks.input[0], ranks.output[0]);
    for chunk in 0..(output.len() / ranks.shape.chunk) as usize {
        let part = ranks.shape.part(ranks.place(cta.index()).channel);
        ranks.transfer(cta, &part, &[ranks.chunk(input, chunk)], &[ranks.chunk(output, chunk)]);
    }
}
