//! Rings: each rank sends to its next one alone. Source: Patarasuk and Yuan, JPDC 2009; NCCL sends its slices in this order.

use super::ranks::{Place, Ranks, View};
use crate::prelude::*;

/// All-reduce: chunks are reduced along the ring, then gathered along it.
///
/// In step `t`, rank `r` sends chunk `r - t`. After `n - 1` steps the next chunk to send is complete, and later steps hand
/// complete chunks on.
pub(super) async fn all_reduce(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    let (n, next) = (ranks.shape.ranks, ranks.behind(rank, -1));
    let last = 2 * (n - 1);
    for (slice, range) in (0..).zip(ranks.shape.slices(channel)) {
        for step in 0..last {
            let chunk = ranks.behind(rank, step as i64);
            if step > 0 {
                ranks.wait(cta, (rank, epoch), (channel, slice, step as u64 - 1)).await;
            }
            let own = ranks.chunk(ranks.input[rank], chunk);
            let arrived = ranks.chunk(ranks.staging[rank], chunk);
            let [here, there] = [rank, next].map(|rank| ranks.chunk(ranks.output[rank], chunk));
            let onward = ranks.chunk(ranks.staging[next], chunk);
            match step {
                0 => ranks.transfer(cta, &range, &[own], &[onward]),
                _ if step < n - 1 => ranks.transfer(cta, &range, &[arrived, own], &[onward]),
                _ if step == n - 1 => ranks.transfer(cta, &range, &[arrived, own], &[here, there]),
                _ => ranks.transfer(cta, &range, &[here], &[there]),
            }
            ranks.signal(cta, (next, epoch), (channel, slice, step as u64));
        }
        ranks.wait(cta, (rank, epoch), (channel, slice, last as u64 - 1)).await;
    }
}

/// Reduce-scatter: rank `r` ends with the sum of chunk `r`. In step `t` it sends chunk `r - t - 1`.
pub(super) async fn reduce_scatter(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    let (n, next) = (ranks.shape.ranks, ranks.behind(rank, -1));
    for (slice, range) in (0..).zip(ranks.shape.slices(channel)) {
        for step in 0..n {
            let chunk = ranks.behind(rank, step as i64 + 1);
            let mut sources: Vec<View> = vec![ranks.chunk(ranks.input[rank], chunk)];
            if step > 0 {
                ranks.wait(cta, (rank, epoch), (channel, slice, step as u64 - 1)).await;
                sources.insert(0, ranks.chunk(ranks.staging[rank], chunk));
            }
            if step == n - 1 {
                ranks.transfer(cta, &range, &sources, &[ranks.whole(ranks.output[rank])]);
            } else {
                ranks.transfer(cta, &range, &sources, &[ranks.chunk(ranks.staging[next], chunk)]);
                ranks.signal(cta, (next, epoch), (channel, slice, step as u64));
            }
        }
    }
}

/// All-gather: rank `r` starts with chunk `r`. In step `t` it sends chunk `r - t`.
pub(super) async fn all_gather(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    let (n, next) = (ranks.shape.ranks, ranks.behind(rank, -1));
    for (slice, range) in (0..).zip(ranks.shape.slices(channel)) {
        for step in 0..n - 1 {
            let chunk = ranks.behind(rank, step as i64);
            let [here, there] = [rank, next].map(|rank| ranks.chunk(ranks.output[rank], chunk));
            if step == 0 {
                ranks.transfer(cta, &range, &[ranks.whole(ranks.input[rank])], &[here, there]);
            } else {
                ranks.wait(cta, (rank, epoch), (channel, slice, step as u64 - 1)).await;
                ranks.transfer(cta, &range, &[here], &[there]);
            }
            ranks.signal(cta, (next, epoch), (channel, slice, step as u64));
        }
        ranks.wait(cta, (rank, epoch), (channel, slice, n as u64 - 2)).await;
    }
}

/// Broadcast from rank 0: each rank hands what arrives to its next one, slice by slice.
pub(super) async fn broadcast(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    let next = ranks.behind(rank, -1);
    let (here, there) = (ranks.whole(ranks.output[rank]), ranks.whole(ranks.output[next]));
    for (slice, range) in (0..).zip(ranks.shape.slices(channel)) {
        if rank > 0 {
            ranks.wait(cta, (rank, epoch), (channel, slice, 0)).await;
        }
        match (rank, next) {
            (0, _) => ranks.transfer(cta, &range, &[ranks.whole(ranks.input[0])], &[here, there]),
            (_, 0) => continue,
            (_, _) => ranks.transfer(cta, &range, &[here], &[there]),
        }
        ranks.signal(cta, (next, epoch), (channel, slice, 0));
    }
}

/// Each rank sends its input to its next one, and receives another.
pub(super) async fn send_receive(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let Place { rank, channel } = ranks.place(cta.index());
    let next = ranks.behind(rank, -1);
    for (slice, range) in (0..).zip(ranks.shape.slices(channel)) {
        ranks.transfer(cta, &range, &[ranks.whole(ranks.input[rank])], &[ranks.whole(ranks.output[next])]);
        ranks.signal(cta, (next, epoch), (channel, slice, 0));
    }
    for (slice, _) in (0..).zip(ranks.shape.slices(channel)) {
        ranks.wait(cta, (rank, epoch), (channel, slice, 0)).await;
    }
}
