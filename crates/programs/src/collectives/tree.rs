//! All-reduce by two binary trees, each for half of the data: sums travel to the root, and results back. Source: Sanders,
//! Speck and Träff, Parallel Computing 2009; NCCL, `src/graph/trees.cc`: a rank that is inner in one tree is a leaf in the
//! other.

use super::ranks::{Place, Ranks, View};
use crate::prelude::*;
use std::ops::Range;

/// A rank's neighbours in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Neighbours {
    /// The parent, and which of its children the rank is.
    pub(super) parent: Option<(usize, usize)>,
    pub(super) children: Vec<usize>,
}

/// A rank's parent in the binary tree over `ranks` ranks. Rank 0 is the root and has one child. Any other rank has a parent at
/// the distance of its lowest set bit: the one whose next bit is set, or the one without the bit if there is no such rank.
fn parent(rank: usize, ranks: usize) -> Option<usize> {
    let bit = rank & rank.wrapping_neg();
    let higher = (rank ^ bit) | (bit << 1);
    (rank > 0).then_some(if higher < ranks { higher } else { rank ^ bit })
}

/// A rank's neighbours in tree 0 or 1. Tree 1 has the ranks in reverse order if their number is even, else each moved by one.
pub(super) fn neighbours(tree: usize, rank: usize, ranks: usize) -> Neighbours {
    let other = |rank: usize| match (tree, ranks.is_multiple_of(2)) {
        (0, _) => rank,
        (_, true) => ranks - 1 - rank,
        (_, false) => (rank + ranks - 1) % ranks,
    };
    let back = |at: usize| (0..ranks).find(|rank| other(*rank) == at).expect("a permutation of the ranks");
    let children = |at: usize| (0..ranks).filter(move |child| parent(*child, ranks) == Some(at));
    let at = other(rank);
    let number_of = |parent: usize| children(parent).position(|child| child == at).expect("a child of its parent");
    Neighbours {
        parent: parent(at, ranks).map(|parent| (back(parent), number_of(parent))),
        children: children(at).map(back).collect(),
    }
}

/// A rank's part in both trees.
struct TreeWork<'a> {
    ranks: &'a Ranks,
    place: Place,
    epoch: u32,
    trees: [Neighbours; 2],
}

/// All-reduce: chunk 0 by tree 0, chunk 1 by tree 1. A rank has staging memory for two children, by slice, so that it may send
/// up a later slice before the result of an earlier one has come back.
pub(super) async fn all_reduce(ranks: &Ranks, cta: &mut Cta<'_>, epoch: u32) {
    let place = ranks.place(cta.index());
    let trees = [0, 1].map(|tree| neighbours(tree, place.rank, ranks.shape.ranks));
    let slices: Vec<(u64, Range<u64>)> = (0..).zip(ranks.shape.slices(place.channel)).collect();
    let work = TreeWork { ranks, place, epoch, trees };
    // A slice's way to the root and back has as many steps.
    let lag = 2 * ranks.shape.ranks.next_power_of_two().ilog2() as usize;
    for turn in 0..slices.len() + lag {
        if let Some(slice) = slices.get(turn) {
            work.up(cta, slice).await;
        }
        if let Some(slice) = turn.checked_sub(lag).map(|turn| &slices[turn]) {
            work.down(cta, slice).await;
        }
    }
}

impl TreeWork<'_> {
    /// Staging memory for what a rank's child sends in a tree.
    fn staging(&self, rank: usize, tree: usize, child: usize) -> View {
        self.ranks.chunk(self.ranks.staging[rank], 2 * child + tree)
    }

    /// A message's name. Messages of a rank in a tree: 0 and 1 from its children, 2 from its parent.
    fn message(&self, slice: u64, tree: usize, number: usize) -> (u64, u64, u64) {
        (self.place.channel, slice, (3 * tree + number) as u64)
    }

    /// Adds up what the children send, and sends the sum to the parent; the root sends the result to its children.
    async fn up(&self, cta: &mut Cta<'_>, (slice, range): &(u64, Range<u64>)) {
        let (ranks, rank) = (self.ranks, self.place.rank);
        for (tree, Neighbours { parent, children }) in self.trees.iter().enumerate() {
            let mut sources = vec![ranks.chunk(ranks.input[rank], tree)];
            for child in 0..children.len() {
                ranks.wait(cta, (rank, self.epoch), self.message(*slice, tree, child)).await;
                sources.push(self.staging(rank, tree, child));
            }
            if let Some((parent, number)) = *parent {
                ranks.transfer(cta, range, &sources, &[self.staging(parent, tree, number)]);
                ranks.signal(cta, (parent, self.epoch), self.message(*slice, tree, number));
            } else {
                self.to_children(cta, (*slice, range), tree, (&sources, &[ranks.chunk(ranks.output[rank], tree)]));
            }
        }
    }

    /// Hands the results that the parents send to the children.
    async fn down(&self, cta: &mut Cta<'_>, (slice, range): &(u64, Range<u64>)) {
        let (ranks, rank) = (self.ranks, self.place.rank);
        for (tree, Neighbours { parent, .. }) in self.trees.iter().enumerate() {
            if parent.is_some() {
                ranks.wait(cta, (rank, self.epoch), self.message(*slice, tree, 2)).await;
                self.to_children(cta, (*slice, range), tree, (&[ranks.chunk(ranks.output[rank], tree)], &[]));
            }
        }
    }

    /// Stores the sum of the sources to the children's outputs and to `own`.
    fn to_children(
        &self,
        cta: &mut Cta<'_>,
        (slice, range): (u64, &Range<u64>),
        tree: usize,
        (sources, own): (&[View], &[View]),
    ) {
        let (ranks, children) = (self.ranks, &self.trees[tree].children);
        let outputs = children.iter().map(|child| ranks.chunk(ranks.output[*child], tree));
        let sinks: Vec<View> = own.iter().copied().chain(outputs).collect();
        if sinks.is_empty() {
            return;
        }
        ranks.transfer(cta, range, sources, &sinks);
        for child in children {
            ranks.signal(cta, (*child, self.epoch), self.message(slice, tree, 2));
        }
    }
}
