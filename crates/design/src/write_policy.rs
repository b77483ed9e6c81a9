//! Write policy axis: the time at which a cache forwards a store.

use crate::DesignConfig;
use crate::axis::word_axis;
use tombolo_machine::Conflict;
use tombolo_protocol::options::{Choice, WritePolicy};

word_axis!(WritePolicy refused by conflict);

/// An L1 writes through; an L2's policy depends on its protocol; a cache in front of memory may use either policy,
/// because all accesses reach memory through it.
fn conflict(policy: &WritePolicy, key: &'static str, design: &DesignConfig) -> Option<Conflict> {
    match policy {
        WritePolicy::Through => None,
        WritePolicy::Back if key == "l1_write" => {
            let reason =
                "an L1 that keeps dirty bytes would hide them from its own module; only \"through\" is allowed";
            Some(Conflict { key: "l1_write.kind", reason: reason.to_owned() })
        }
        WritePolicy::Back if key == "l2_write" && !design.coherence.facts().offers(Choice::WriteBack) => {
            let protocol = design.coherence.protocol();
            let reason =
                format!("{protocol} is defined with caches that write through; other protocols may write \"back\"");
            Some(Conflict { key: "l2_write.kind", reason })
        }
        WritePolicy::Back => None,
    }
}
