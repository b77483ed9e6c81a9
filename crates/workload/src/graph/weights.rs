//! Weights for a file's arcs: whole numbers, converted from the file's values.

use super::GraphError;
use super::lines::LineReader;
use std::io::BufRead;

/// Count and first example for a kind of changed values.
#[derive(Default)]
struct WeightChanges {
    count: u64,
    /// Line, value as written, and resulting weight for the first change.
    first: Option<(u64, String, u32)>,
}

impl WeightChanges {
    fn add(&mut self, line: u64, written: &str, weight: u32) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, written.to_owned(), weight));
    }

    /// Describes the change (`done`), with the number of values and the first example.
    fn note(&self, done: &str) -> Option<String> {
        let (line, written, weight) = self.first.as_ref()?;
        Some(format!("weights {done}: {}; the first, in line {line}, {written} to {weight}", self.count))
    }
}

/// Converts a file's values to weights in sequence.
pub(super) struct Weights {
    /// True if the program uses weights.
    used: bool,
    /// Set when an unused value would not be a valid weight.
    odd: bool,
    rounded: WeightChanges,
    negative: WeightChanges,
}

impl Weights {
    pub(super) fn new(used: bool) -> Weights {
        Weights { used, odd: false, rounded: WeightChanges::default(), negative: WeightChanges::default() }
    }

    /// Converts a value, spelled `written` in the latest line, to a weight: its magnitude, rounded. An error if the
    /// magnitude is too large, or rounds to zero.
    pub(super) fn of(
        &mut self,
        lines: &LineReader<impl BufRead>,
        value: f64,
        written: &str,
    ) -> Result<u32, GraphError> {
        let (magnitude, rounded) = (value.abs(), value.abs().round());
        let fits = (0.0..=f64::from(u32::MAX)).contains(&rounded);
        if !self.used {
            self.odd |= !fits || value.is_sign_negative() || rounded != magnitude;
            return Ok(1);
        }
        if !fits {
            return Err(lines.error(format!("value {written}: expected a magnitude below 2^32")));
        }
        if rounded == 0.0 && magnitude > 0.0 {
            let allowed = "expected 0 or a magnitude of at least 0.5: weights are whole numbers";
            return Err(lines.error(format!("value {written} would be rounded to 0: {allowed}")));
        }
        if rounded != magnitude {
            self.rounded.add(lines.number(), written, rounded as u32);
        }
        if value < 0.0 {
            self.negative.add(lines.number(), written, rounded as u32);
        }
        Ok(rounded as u32)
    }

    /// Notes about changed values for readers of the result.
    pub(super) fn notes(&self, file: &str) -> Vec<String> {
        let unused =
            self.odd.then(|| "values that are no whole numbers are not used: the program takes no weights".into());
        let rounded = self.rounded.note("rounded to whole numbers");
        let negative = self.negative.note("below zero, which count by their magnitude");
        [unused, rounded, negative].into_iter().flatten().map(|note: String| format!("{file}: {note}")).collect()
    }
}
