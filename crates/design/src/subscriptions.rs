//! Manual subscriptions to arrays or array parts, as written in a design: `x[0..4096]: 0 1; y: 0 1 2 3`.
//!
//! The text is a key's value, not a file name. Kept results therefore depend only on the values in a design.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tombolo_machine::quantity::{Quantity, RecordValue, ValueForm};
use tombolo_types::Clock;

/// Texts already read, interned because options are copied.
static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Manual subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ManualSubscriptions(&'static str);

/// A byte range in an array, with the subscribers to the range's pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySubscription {
    /// The array's name.
    pub array: String,
    /// The byte range; `None` for the whole array.
    pub bytes: Option<Range<u64>>,
    /// GPU numbers: at least one.
    pub gpus: Vec<u8>,
}

impl ManualSubscriptions {
    /// No published pages.
    pub const NOTHING: ManualSubscriptions = ManualSubscriptions("nothing");

    /// The parts, in order.
    pub fn parts(self) -> Vec<ArraySubscription> {
        if self == ManualSubscriptions::NOTHING { Vec::new() } else { parts(self.0).unwrap_or_default() }
    }
}

fn parts(text: &str) -> Option<Vec<ArraySubscription>> {
    text.split(';').map(|part| part.trim()).map(part).collect()
}

fn part(text: &str) -> Option<ArraySubscription> {
    let (place, gpus) = text.rsplit_once(':')?;
    let gpus: Vec<u8> = gpus.split_whitespace().map(|gpu| gpu.parse().ok()).collect::<Option<_>>()?;
    let place = place.trim();
    let (array, bytes) = match place.strip_suffix(']') {
        None => (place, None),
        Some(place) => {
            let (array, bytes) = place.rsplit_once('[')?;
            let (first, end) = bytes.split_once("..")?;
            (array, Some(first.trim().parse().ok()?..end.trim().parse().ok()?))
        }
    };
    let is_whole =
        !gpus.is_empty() && !array.is_empty() && bytes.as_ref().is_none_or(|bytes: &Range<u64>| !bytes.is_empty());
    is_whole.then(|| ArraySubscription { array: array.to_owned(), bytes, gpus })
}

impl Quantity for ManualSubscriptions {
    const EXPECTED: &'static str = "arrays with the GPUs that subscribe to them, such as \"x[0..4096]: 0 1; y: 0 1 2\" (bytes of \
                                    the array), or \"nothing\"";
    const FORM: ValueForm = ValueForm::Text;

    fn parse(text: &str, _: Clock) -> Option<ManualSubscriptions> {
        if text != ManualSubscriptions::NOTHING.0 {
            parts(text)?;
        }
        let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = texts.get(text).copied();
        let kept = known.unwrap_or_else(|| Box::leak(text.to_owned().into_boxed_str()));
        texts.insert(kept);
        Some(ManualSubscriptions(kept))
    }

    fn print(&self) -> RecordValue {
        RecordValue::Text(self.0.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<Vec<ArraySubscription>> {
        ManualSubscriptions::parse(text, Clock::from_hz(1_000_000_000)).map(ManualSubscriptions::parts)
    }

    #[test]
    fn arrays_are_named_whole_or_in_part() {
        let part =
            |array: &str, bytes, gpus: &[u8]| ArraySubscription { array: array.into(), bytes, gpus: gpus.to_vec() };
        let expected = vec![part("x", Some(0..4096), &[0, 1]), part("a b", None, &[3])];
        assert_eq!(parsed("x[0..4096]: 0 1; a b: 3"), Some(expected));
        assert_eq!(parsed("nothing"), Some(Vec::new()));
    }

    #[test]
    fn malformed_subscriptions_are_refused() {
        let wrong = ["", "x", "x:", ": 1", "x[5..5]: 1", "x[1-2]: 1", "x: 1;", "x: -1", "x[..]: 0"];
        assert!(wrong.iter().all(|text| parsed(text).is_none()));
    }
}
