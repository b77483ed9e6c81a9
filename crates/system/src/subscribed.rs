//! Manual subscriptions: the pages that a design publishes, and the subscribers for each.

use crate::run::{RunError, RunSpec};
use std::collections::BTreeMap;
use tombolo_design::Placement;
use tombolo_design::placement::{PublishedPages, Subscriptions};
use tombolo_design::subscriptions::ArraySubscription;
use tombolo_types::{ArrayInfo, ModuleId, ModuleSet, Page};

/// Pages with their subscribers, in ascending order; if several parts name a page, the subscribers are united.
///
/// # Errors
/// A part names an array, bytes or a GPU that does not exist.
pub(crate) fn subscribed(spec: &RunSpec) -> Result<Vec<(Page, ModuleSet)>, RunError> {
    let Placement::PublishedPages(PublishedPages { subscriptions: Subscriptions::Manual, by_hand, .. }) =
        spec.design.placement
    else {
        return Ok(Vec::new());
    };
    let mut pages: BTreeMap<Page, ModuleSet> = BTreeMap::new();
    for part in by_hand.parts() {
        let array = array(spec, &part)?;
        let modules = modules(spec, &part)?;
        let bytes = part.bytes.unwrap_or(0..array.bytes);
        let page_bytes = spec.machine.page_bytes;
        let (first, last) = ((array.base + bytes.start) / page_bytes, (array.base + bytes.end - 1) / page_bytes);
        for page in first..=last {
            let subscribers = pages.entry(Page(page)).or_default();
            *subscribers = subscribers.union(modules);
        }
    }
    Ok(pages.into_iter().collect())
}

fn refused(spec: &RunSpec, why: &str) -> RunError {
    RunError::DoesNotFit(format!("design {}, placement.by_hand: {why}", spec.design.name))
}

fn array<'a>(spec: &'a RunSpec, part: &ArraySubscription) -> Result<&'a ArrayInfo, RunError> {
    let arrays = spec.program.arrays();
    let Some(array) = arrays.iter().find(|array| array.name == part.array) else {
        let known: Vec<&str> = arrays.iter().map(|array| &*array.name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(refused(spec, &format!("no array {:?}; the program names {known}", part.array)));
    };
    match &part.bytes {
        Some(bytes) if bytes.end > array.bytes => Err(refused(
            spec,
            &format!(
                "array {:?} has {} bytes, and {} to {} are named",
                part.array, array.bytes, bytes.start, bytes.end
            ),
        )),
        Some(_) | None => Ok(array),
    }
}

fn modules(spec: &RunSpec, part: &ArraySubscription) -> Result<ModuleSet, RunError> {
    let gpus = spec.machine.topology.gpus;
    let why = |gpu| refused(spec, &format!("no GPU {gpu}; machine {} has {gpus}", spec.machine.name));
    part.gpus.iter().map(|&gpu| if gpu < gpus { Ok(ModuleId(gpu)) } else { Err(why(gpu)) }).collect()
}
