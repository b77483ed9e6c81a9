//! Weights of a file's arcs: whole numbers, and what becomes of values that are none.

use super::GraphError;
use super::lines::Lines;
use std::io::BufRead;

/// Values of one kind that were changed.
#[derive(Default)]
struct Changed {
    count: u64,
    /// Line, value as written and weight of the first.
    first: Option<(u64, String, u32)>,
}

impl Changed {
    fn add(&mut self, line: u64, written: &str, weight: u32) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, written.to_owned(), weight));
    }

    /// Says what was `done` to them, and to which.
    fn note(&self, done: &str) -> Option<String> {
        let (line, written, weight) = self.first.as_ref()?;
        Some(format!("weights {done}: {}; the first, in line {line}, {written} to {weight}", self.count))
    }
}

/// The weights of a file, read one after the other.
pub(super) struct Weights {
    /// Whether the program uses any.
    used: bool,
    /// Whether a value would be no weight as it stands.
    odd: bool,
    rounded: Changed,
    negative: Changed,
}

impl Weights {
    pub(super) fn new(used: bool) -> Weights {
        Weights { used, odd: false, rounded: Changed::default(), negative: Changed::default() }
    }

    /// The weight for a value, `written` so in the latest line: its magnitude, rounded. An error where that is too
    /// large, or no longer above zero.
    pub(super) fn of(&mut self, lines: &Lines<impl BufRead>, value: f64, written: &str) -> Result<u32, GraphError> {
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

    /// What a reader of the result should know.
    pub(super) fn notes(&self, file: &str) -> Vec<String> {
        let unused =
            self.odd.then(|| "values that are no whole numbers are not used: the program takes no weights".into());
        let rounded = self.rounded.note("rounded to whole numbers");
        let negative = self.negative.note("below zero, which count by their magnitude");
        [unused, rounded, negative].into_iter().flatten().map(|note: String| format!("{file}: {note}")).collect()
    }
}
