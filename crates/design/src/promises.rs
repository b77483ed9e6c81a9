//! Promises: the guarantees that a program may rely on.

use crate::DesignConfig;
use tombolo_machine::Conflict;
use tombolo_machine::quantity::{Quantity, RecordValue};
use tombolo_types::{Clock, Promise};

/// A design's promises: at least one, without repetition; `nothing` stands alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promises(Vec<Promise>);

impl Promises {
    /// True if the design makes `promise`.
    pub fn contains(&self, promise: Promise) -> bool {
        self.0.contains(&promise)
    }

    /// The strongest promise in the list.
    pub fn strongest(&self) -> Promise {
        self.iter().max().unwrap_or(Promise::Nothing)
    }

    /// All promises, in file order.
    pub fn iter(&self) -> impl Iterator<Item = Promise> + '_ {
        self.0.iter().copied()
    }
}

impl Quantity for Promises {
    const EXPECTED: &'static str = "a list of \"ptx\" and \"kernel-boundary\", each at most once, or of \"nothing\" alone (--set promises=ptx,kernel-boundary)";

    fn parse(text: &str, _: Clock) -> Option<Promises> {
        let words = text.split(',').map(|word| Promise::of(word.trim()));
        let promises = words.collect::<Option<Vec<Promise>>>()?;
        let repeated = promises.iter().enumerate().any(|(at, promise)| promises[..at].contains(promise));
        let contradictory = promises.len() > 1 && promises.contains(&Promise::Nothing);
        (!repeated && !contradictory).then_some(Promises(promises))
    }

    fn print(&self) -> RecordValue {
        RecordValue::List(self.0.iter().map(|promise| promise.word()).collect())
    }
}

/// Checks that the promises exceed neither the protocol's guarantee under the design's options nor the placement's
/// guarantee.
pub(crate) fn conflict(design: &DesignConfig) -> Option<Conflict> {
    let options = design.options();
    let of_coherence = design.coherence.facts().promise_with(&options);
    let (of_placement, why) = design.placement.promise();
    let (most, weakness) = if of_placement < of_coherence {
        (of_placement, why.to_owned())
    } else {
        (of_coherence, design.coherence.weakness())
    };
    (design.promises.strongest() > most)
        .then(|| Conflict { key: "promises", reason: format!("{weakness}; it can promise {:?} at most", most.word()) })
}
