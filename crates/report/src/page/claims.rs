//! Claims in a document: counts by verdict, and each claim with the paper's value, the closed-form prediction and the
//! measured value.

use crate::document::{Claim, FORETOLD, Repetition, Verdict, by_kind};
use crate::number::{MISSING, number, quantity};
use maud::{Markup, html};

/// Shows the verdict counts for each kind of claim, for the default reading only; claims under alternative readings are
/// counted separately.
pub(super) fn tally(claims: &[Claim]) -> Markup {
    html! {
        @if !claims.is_empty() {
            ul.tally {
                @for (kind, claims) in by_kind(claims) {
                    li {
                        span.kind { (kind.name()) }
                        @for (verdict, count) in count(&claims) {
                            span class={ "verdict " (class(verdict)) } { (sign(verdict)) " " (count) " " (verdict.name_of(count)) }
                        }
                        @let others = claims.iter().filter(|claim| !claim.is_default()).count();
                        @if others > 0 {
                            span class={ "verdict " (class(Verdict::Shown)) } {
                                (sign(Verdict::Shown)) " " (others) " of other readings"
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Counts the claims under the default reading by verdict, without verdicts that do not occur.
fn count(claims: &[&Claim]) -> Vec<(Verdict, usize)> {
    let default = || claims.iter().filter(|claim| claim.is_default());
    let of = |verdict| (verdict, default().filter(|claim| claim.verdict == verdict).count());
    Verdict::ALL.map(of).into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Shows all claims in a table, grouped by kind.
pub(super) fn table(claims: &[Claim]) -> Markup {
    html! {
        table.claims {
            thead {
                tr {
                    th scope="col" { "Claim" }
                    th.n scope="col" { "Paper" }
                    th.n scope="col" { "Measured" }
                    th.n scope="col" { "Measured ÷ paper" }
                    th scope="col" { "Verdict" }
                    th scope="col" { "Repetitions" }
                }
            }
            @for (kind, claims) in by_kind(claims) {
                tbody {
                    tr.kind { th colspan="6" scope="rowgroup" { (kind.name()) span { (kind.meaning()) } } }
                    @for claim in claims { (row(claim)) }
                }
            }
        }
    }
}

fn row(claim: &Claim) -> Markup {
    html! {
        tr id={ "claim-" (super::anchor(&claim.id)) } {
            th scope="row" {
                (claim.text)
                code.id { (claim.id) }
                @if !claim.is_default() { p.predicted { "Reading: " (claim.reading) } }
                @if claim.predicted.is_some() { p.predicted { "Predicted: " (quantity(claim.predicted, &claim.unit)) } }
                @if claim.foretold { p.predicted { (FORETOLD) } }
                @if let Some(cause) = &claim.cause { p.cause { b { "Cause: " } (cause) } }
            }
            td.n.none[claim.paper.is_none()] data-head="Paper" { (quantity(claim.paper, &claim.unit)) }
            td.n data-head="Measured" { (quantity(claim.measured, &claim.unit)) }
            td.n.none[claim.measured_over_paper().is_none()] data-head="Measured ÷ paper" {
                (number(claim.measured_over_paper()))
            }
            td data-head="Verdict" {
                span class={ "verdict " (class(claim.verdict)) } { (sign(claim.verdict)) " " (claim.verdict.name()) }
            }
            td.none[claim.repetitions.is_empty()] data-head="Repetitions" { (repetitions(&claim.repetitions, &claim.unit)) }
        }
    }
}

fn repetitions(repetitions: &[Repetition], unit: &str) -> Markup {
    let telling = repetitions.iter().filter_map(|repetition| repetition.agrees);
    let (all, agree) = (telling.clone().count(), telling.filter(|agrees| *agrees).count());
    let silent = repetitions.len() - all;
    html! {
        @if repetitions.is_empty() {
            (MISSING)
        } @else {
            details {
                summary {
                    (agree) " of " (all) " agree"
                    @if silent > 0 { ", " (silent) " say nothing" }
                }
                ul.repetitions {
                    @for repetition in repetitions {
                        @let (verdict, word) = match repetition.agrees {
                            Some(true) => (Verdict::Holds, " agrees"),
                            Some(false) => (Verdict::NotRobust, " differs"),
                            None => (Verdict::Shown, " says nothing: the direction does not come out on these workloads"),
                        };
                        li {
                            span class={ "verdict " (class(verdict)) } { (sign(verdict)) } " " (repetition.change) ": "
                            (quantity(repetition.measured, unit)) ", unchanged " (quantity(repetition.unchanged, unit))
                            span.unseen[repetition.agrees.is_some()] { (word) }
                        }
                    }
                }
            }
        }
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::NotRobust => "unsteady",
        Verdict::Shown => "shown",
    }
}

/// Returns a sign for each verdict, so that colour is never the only distinction.
fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "✓",
        Verdict::Fails => "✗",
        Verdict::NotRobust => "~",
        Verdict::Shown => "·",
    }
}
