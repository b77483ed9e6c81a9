//! Document and text for `check --model`: outcomes allowed by the memory model, compared with observations from a
//! device.

use crate::WRONG_INPUT;
use crate::table::{Cell, Look, Table, count};
use crate::verdict::Host;
use serde::Serialize;
use tombolo_check::verify::{ModelOutcomes, ModelVerdict, ObservationComparison, TestVerdict};

/// Outcomes from the model, compared with observations.
#[derive(Serialize)]
pub(crate) struct AllowedOutcomes {
    tombolo: &'static str,
    tests: Vec<ModelOutcomes>,
    /// Number of tests without an answer.
    unanswered: usize,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<ObservationComparison>,
    host: Host,
}

impl AllowedOutcomes {
    pub(crate) fn new(
        tests: Vec<ModelOutcomes>,
        observed: Option<ObservationComparison>,
        host: Host,
    ) -> AllowedOutcomes {
        let unanswered = tests.iter().filter(|test| !test.is_complete()).count();
        let notes = notes(&tests, unanswered, observed.as_ref());
        AllowedOutcomes { tombolo: env!("CARGO_PKG_VERSION"), tests, unanswered, notes, observed, host }
    }

    /// Returns the exit status: 1 if an observed outcome is not allowed. Otherwise 2 if a test lacks an answer or a row
    /// lacks a test, unless the answer may be `partial`.
    pub(crate) fn status(&self, partial: bool) -> u8 {
        let left_out = self.observed.as_ref().is_some_and(|observed| !observed.left_out.is_empty());
        if self.observed.as_ref().is_some_and(|observed| !observed.not_allowed.is_empty()) {
            1
        } else if (self.unanswered > 0 || left_out) && !partial {
            WRONG_INPUT
        } else {
            0
        }
    }

    /// Returns notes about tests and rows excluded from the answer.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Formats the whole answer for people.
    pub(crate) fn text(&self, colours: bool) -> String {
        let mut text = match &self.observed {
            None => self.outcomes(colours),
            Some(observed) => of_comparison(observed, colours),
        };
        text.push_str(&format!("{:.1} s on {} threads\n", self.host.wall_s, self.host.threads));
        text
    }

    /// Formats a line per outcome; a test without an answer has a line with the reason.
    fn outcomes(&self, colours: bool) -> String {
        let mut table = Table::new(4).with_headings(["test", "event", "outcome", "sequentially consistent"]);
        for test in &self.tests {
            if let Some(reason) = &test.reason {
                let why = format!("{}: {reason}", test.verdict.word());
                table.row(vec![Cell::plain(test.stem()), Cell::plain(""), Cell::new(why, Look::Bad)]);
            }
            let event = match test.expected {
                Some(ModelVerdict::Allowed) => "allowed",
                Some(ModelVerdict::Forbidden) => "forbidden",
                None => "",
            };
            for outcome in &test.outcomes {
                let shown = [test.stem(), event, &outcome.outcome, word(outcome.sequential)];
                table.row(Vec::from(shown.map(Cell::plain)));
            }
        }
        table.render(colours)
    }
}

fn word(sequential: Option<bool>) -> &'static str {
    match sequential {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not asked: too many interleavings",
    }
}

fn of_comparison(observed: &ObservationComparison, colours: bool) -> String {
    let headings = ["test", "placement", "outcome", "observed", "model"];
    let mut table = Table::new(3).with_headings(headings);
    for one in &observed.not_allowed {
        let cells = [&one.test, &one.placement, &one.outcome, &count(one.count)].map(Cell::plain);
        table.row(cells.into_iter().chain([Cell::new("not allowed".to_owned(), Look::Bad)]).collect());
    }
    for one in &observed.not_observed {
        let sequential = match one.sequential {
            Some(true) => "allowed, sequentially consistent",
            Some(false) | None => "allowed",
        };
        table.row([&one.test[..], &one.placement, &one.outcome, "0", sequential].map(Cell::plain).into());
    }
    format!(
        "{}\n{} tests, {} outcomes observed {} times: {} not allowed; {} allowed and not observed\n",
        table.render(colours),
        observed.tests,
        observed.outcomes,
        count(observed.observations),
        observed.not_allowed.len(),
        observed.not_observed.len(),
    )
}

fn notes(tests: &[ModelOutcomes], unanswered: usize, observed: Option<&ObservationComparison>) -> Vec<String> {
    let unreadable = tests.iter().filter(|test| test.verdict == TestVerdict::Unreadable);
    let mut notes: Vec<String> = unreadable.filter_map(|test| test.reason.clone()).collect();
    if unanswered > 0 {
        notes.push(format!("{unanswered} of {} tests have no answer (--partial accepts that)", tests.len()));
    }
    for one in observed.into_iter().flat_map(|observed| &observed.left_out) {
        notes.push(format!("{} {}: its rows are left out: {}", one.test, one.placement, one.reason));
    }
    let without = observed.map_or(0, |observed| observed.without_rows.len());
    if without > 0 {
        notes.push(format!("{without} tests have no row in the table"));
    }
    notes
}
