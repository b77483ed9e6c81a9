//! Claims: compares statements in a paper with measured numbers, and gives each claim a verdict.
//!
//! A claim's number comes from the cells of a figure, or from a directed program (a *mechanism*). Some figures need no
//! run: their metrics follow from the machine description alone.

use crate::error::SpecError;
use crate::figure::FigureTable;
use crate::grid::Numbers;
use crate::mechanism;
use crate::plan::{ExperimentPlan, ScaleChoice, with_alternatives};
use crate::spec::{self, Cell, Kind, Take, Text};
use tombolo_report::document::{AT, Claim, ClaimKind, Repetition, Verdict};

/// Words in place of a row label: the ends of the table, and the summary rows.
const PLACES: [&str; 5] = ["first", "last", "mean", "mean-beside", "mean-of-all"];

/// Cause reported for a failed claim if a shipped experiment file states none.
const NOT_LOOKED_INTO: &str = "not looked into";

impl ExperimentPlan {
    /// Checks every row and column name in claims and published values, and the fields required by each claim's kind.
    pub(crate) fn check_labels(&self) -> Result<(), SpecError> {
        for published in &self.spec.published {
            if !published.value.is_finite() {
                return Err(self.file.refuse("published", &published.row, "its value must be finite"));
            }
            self.check_row("published.row", &published.row)?;
            self.index("published.column", &published.column, self.layout.columns)?;
        }
        for (at, claim) in self.spec.claim.iter().enumerate() {
            if self.spec.claim[..at].iter().any(|before| before.id.get() == claim.id.get()) {
                return Err(self.file.refuse("claim.id", &claim.id, "another claim has this id"));
            }
            self.check_reading(claim)?;
            self.check_claim(claim)?;
        }
        Ok(())
    }

    fn check_claim(&self, claim: &spec::Claim) -> Result<(), SpecError> {
        let refuse = |reason: &str| Err(self.file.refuse("claim", &claim.id, reason));
        let bounds = [claim.paper, claim.predicted, claim.above, claim.below, Some(claim.tolerance)];
        if bounds.into_iter().flatten().any(|bound| !bound.is_finite()) {
            return refuse("its numbers must be finite");
        }
        if let Some(name) = &claim.mechanism {
            if matches!(claim.kind, Kind::Identity | Kind::Magnitude) {
                return refuse("what a `mechanism` measures is judged as a `mechanism` or a `direction`");
            }
            let known: Vec<String> = mechanism::list().iter().map(|one| one.name.to_owned()).collect();
            if !known.iter().any(|known| known == name.get()) {
                return Err(self.file.refuse(
                    "claim.mechanism",
                    name,
                    with_alternatives("no such mechanism", name.get(), &known),
                ));
            }
            let given = !claim.of.is_empty() || !claim.to.is_empty() || claim.predicted.is_some();
            return match given {
                true => refuse("a mechanism measures and predicts by itself: it takes no cells and no `predicted`"),
                false => Ok(()),
            };
        }
        if claim.of.is_empty() && claim.to.is_empty() {
            return refuse("it needs cells in `of` or `to`, or a `mechanism`");
        }
        match claim.kind {
            Kind::Identity if claim.paper.or(claim.predicted).is_none() => {
                return refuse("an identity needs `paper`, or `predicted`");
            }
            Kind::Direction if claim.above.is_none() && claim.below.is_none() => {
                return refuse("a direction needs `above` or `below`");
            }
            Kind::Mechanism => return refuse("a mechanism needs `mechanism`"),
            Kind::Identity | Kind::Direction | Kind::Magnitude => {}
        }
        claim.of.iter().chain(&claim.to).try_for_each(|cell| self.check_cell(claim, cell))
    }

    fn check_cell(&self, claim: &spec::Claim, cell: &Cell) -> Result<(), SpecError> {
        let refuse = |reason: &str| Err(self.file.refuse("claim", &claim.id, reason));
        match (&cell.row, claim.each_row) {
            (None, None) => return refuse("its cells need a row, or the claim `each_row`"),
            (Some(_), Some(_)) => return refuse("with `each_row` its cells name no row"),
            (Some(row), None) => self.check_row("claim.row", row)?,
            (None, Some(_)) => {}
        }
        if cell.columns.is_empty() || (cell.columns.len() > 1) != cell.take.is_some() {
            return refuse("a cell has one column, or several with `take`");
        }
        cell.columns.iter().try_for_each(|column| self.index("claim.columns", column, self.layout.columns).map(drop))
    }

    fn check_row(&self, key: &'static str, row: &Text) -> Result<(), SpecError> {
        match row.get() {
            "first" | "last" => Ok(()),
            "mean" if !self.summaries().is_empty() => Ok(()),
            "mean-beside" if self.summaries().iter().filter(|(_, _, of_all)| !of_all).count() > 1 => Ok(()),
            "mean-of-all" if self.summaries().iter().any(|(_, _, of_all)| *of_all) => Ok(()),
            // Quick scale omits some rows. Claims about an omitted row are valid, and `judge` skips them.
            _ if self.is_of_other_scales(row.get()) => Ok(()),
            _ => self.index(key, row, self.layout.rows).map(drop),
        }
    }

    /// True at quick scale for a row of the figure at the paper's scale.
    fn is_of_other_scales(&self, row: &str) -> bool {
        if self.choice != ScaleChoice::Quick {
            return false;
        }
        let whole = ExperimentPlan::new(self.file.clone(), self.spec.clone(), ScaleChoice::Paper);
        whole.is_ok_and(|plan| plan.labels(self.layout.rows).iter().any(|label| label == row))
    }
}

/// Computes a claim's number: the product of the `of` cells over the product of the `to` cells. With `each_row` the
/// ratio is computed per row, and the ratios are combined. `None` if a cell is missing.
pub(crate) fn measured(claim: &spec::Claim, table: &FigureTable) -> Option<f64> {
    let Some(take) = claim.each_row else { return ratio(claim, table, None) };
    let values: Vec<f64> = table.kept().map(|row| ratio(claim, table, Some(&row.label))).collect::<Option<_>>()?;
    combine(take, values)
}

fn ratio(claim: &spec::Claim, table: &FigureTable, row: Option<&str>) -> Option<f64> {
    let product = |cells: &[Cell]| cells.iter().try_fold(1.0, |product, one| Some(product * cell(one, table, row)?));
    let (above, below) = (product(&claim.of)?, product(&claim.to)?);
    Some(above / below).filter(|value| value.is_finite())
}

fn cell(cell: &Cell, table: &FigureTable, row: Option<&str>) -> Option<f64> {
    let label = row.or_else(|| cell.row.as_ref().map(Text::get))?;
    let row = table.row(label)?;
    let value = |column: &Text| row.values[table.columns.iter().position(|known| known == column.get())?];
    let values: Vec<f64> = cell.columns.iter().map(value).collect::<Option<_>>()?;
    match cell.take {
        Some(take) => combine(take, values),
        None => values.first().copied(),
    }
}

fn combine(take: Take, mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    match take {
        Take::Least => values.first().copied(),
        Take::LowestTenth => values.get(values.len() / 10).copied(),
        Take::Greatest => values.last().copied(),
        Take::Median => {
            let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
            Some((low + high) / 2.0)
        }
    }
}

/// True if `value` lies between the claim's bounds `above` and `below`, as far as stated.
pub(crate) fn is_as_claimed(claim: &spec::Claim, value: f64) -> bool {
    claim.above.is_none_or(|bound| value > bound) && claim.below.is_none_or(|bound| value < bound)
}

/// Builds the id of a claim measured under an alternative reading: `STATEMENT@READING`.
pub(crate) fn with_reading(statement: &str, reading: &str) -> String {
    format!("{statement}{AT}{reading}")
}

/// Judges the measurable claims of an experiment. `repetitions`: repeated measurements per claim, in the order of the
/// file. For a failed claim about times, the cause also names the stall classes with the largest differences between
/// the compared runs.
pub(crate) fn judge(
    plan: &ExperimentPlan,
    table: &FigureTable,
    repetitions: &[Vec<Repetition>],
    numbers: &mut Numbers<'_>,
) -> Vec<Claim> {
    let one = |(at, claim): (usize, &spec::Claim)| {
        let cause = cause(plan, claim);
        match &claim.mechanism {
            Some(name) => read(plan, claim, judge_mechanism(claim, name.get(), cause)),
            None => {
                let repetitions = repetitions.get(at).cloned().unwrap_or_default();
                let judged = read(plan, claim, judge_figure(claim, measured(claim, table), repetitions, cause));
                if !matches!(judged.verdict, Verdict::Fails | Verdict::NotRobust) || judged.measured.is_none() {
                    return judged;
                }
                let cause = match (plan.explanation(claim, numbers), judged.cause) {
                    (Some(told), None) => Some(told),
                    (Some(told), Some(cause)) if cause == NOT_LOOKED_INTO => Some(told),
                    (Some(told), Some(cause)) => Some(format!("{}; {told}", cause.trim_end_matches('.'))),
                    (None, cause) => cause,
                };
                Claim { cause, ..judged }
            }
        }
    };
    plan.spec.claim.iter().enumerate().filter(|(_, claim)| is_measurable(plan, claim)).map(one).collect()
}

/// Adds the reading to a judged claim. Under the default reading the claim keeps its verdict; under an alternative
/// reading the verdict is always [`Verdict::Shown`].
fn read(plan: &ExperimentPlan, claim: &spec::Claim, judged: Claim) -> Claim {
    let reading = plan.reading_of(claim);
    if reading.is_empty() {
        return judged;
    }
    let id = with_reading(judged.statement(), &reading);
    // A cause for a missing number stays. A cause for a failure is dropped with the verdict.
    let cause = judged.cause.filter(|_| judged.measured.is_none());
    Claim { id, reading, verdict: Verdict::Shown, cause, foretold: false, ..judged }
}

/// True if every row named by the claim is part of this run.
fn is_measurable(plan: &ExperimentPlan, claim: &spec::Claim) -> bool {
    let labels = plan.labels(plan.layout.rows);
    let there = |row: &Text| PLACES.contains(&row.get()) || labels.iter().any(|one| one == row.get());
    claim.of.iter().chain(&claim.to).filter_map(|cell| cell.row.as_ref()).all(there)
}

/// Returns the stated reason for a claim's failure. Causes in shipped files were found at quick scale, and are reported
/// at quick scale only. Exceptions are claims independent of scale: directed programs, and metrics of the machine
/// alone. A cause in a user's file is reported at every scale.
pub(crate) fn cause(plan: &ExperimentPlan, claim: &spec::Claim) -> Option<String> {
    if !plan.ships {
        return claim.cause.clone();
    }
    let is_scaled = claim.mechanism.is_none() && plan.is_run();
    Some(match &claim.cause {
        None => NOT_LOOKED_INTO.to_owned(),
        Some(_) if is_scaled && plan.choice != ScaleChoice::Quick => "not looked into at this scale".to_owned(),
        Some(cause) => cause.clone(),
    })
}

fn judge_mechanism(claim: &spec::Claim, name: &str, cause: Option<String>) -> Claim {
    let outcome = mechanism::list().iter().find(|one| one.name == name).expect("the plan was checked").measure();
    let found = match outcome {
        Ok(found) => found,
        Err(error) => return Claim { verdict: Verdict::Fails, cause: Some(error), ..blank(claim) },
    };
    let expected = match found.predicted {
        Some(predicted) => found.measured == predicted,
        // Without a prediction, the claim itself must state the expected bounds.
        None => (claim.above.is_some() || claim.below.is_some()) && is_as_claimed(claim, found.measured),
    };
    Claim {
        predicted: found.predicted,
        measured: Some(found.measured),
        unit: found.unit.to_owned(),
        verdict: if expected { Verdict::Holds } else { Verdict::Fails },
        cause: cause.filter(|_| !expected),
        ..blank(claim)
    }
}

fn judge_figure(
    claim: &spec::Claim,
    measured: Option<f64>,
    repetitions: Vec<Repetition>,
    cause: Option<String>,
) -> Claim {
    let holds = match claim.kind {
        Kind::Identity => {
            let expected = claim.paper.or(claim.predicted);
            let differs = measured.zip(expected).map(|(measured, expected)| (measured - expected).abs());
            differs.is_some_and(|difference| difference <= claim.tolerance)
        }
        Kind::Direction => measured.is_some_and(|value| is_as_claimed(claim, value)),
        Kind::Mechanism | Kind::Magnitude => true,
    };
    let verdict = match (claim.kind, holds) {
        (Kind::Magnitude, _) => Verdict::Shown,
        (Kind::Direction, _) if measured.is_some() && repetitions.iter().any(|one| one.agrees == Some(false)) => {
            Verdict::NotRobust
        }
        (_, true) => Verdict::Holds,
        (_, false) => Verdict::Fails,
    };
    let cause = match (measured, verdict) {
        (None, _) => {
            Some("a number that it needs is missing: a point gave no result, or has no such counter".to_owned())
        }
        (Some(_), Verdict::Fails | Verdict::NotRobust) => cause,
        (Some(_), Verdict::Holds | Verdict::Shown) => None,
    };
    Claim { measured, verdict, cause, repetitions, ..blank(claim) }
}

/// Returns a claim with its statement only, without a measurement.
fn blank(claim: &spec::Claim) -> Claim {
    Claim {
        id: claim.id.get().to_owned(),
        kind: match claim.kind {
            Kind::Identity => ClaimKind::Identity,
            Kind::Mechanism => ClaimKind::Mechanism,
            Kind::Direction => ClaimKind::Direction,
            Kind::Magnitude => ClaimKind::Magnitude,
        },
        text: claim.text.clone(),
        paper: claim.paper,
        predicted: claim.predicted,
        measured: None,
        unit: claim.unit.clone(),
        verdict: Verdict::Shown,
        cause: None,
        repetitions: Vec::new(),
        foretold: claim.foretold,
        reading: String::new(),
    }
}

/// Returns the claims about an omitted figure: without a measured number, with the verdict [`Verdict::Shown`].
pub(crate) fn undrawn(plan: &ExperimentPlan) -> Vec<Claim> {
    plan.spec.claim.iter().map(|claim| read(plan, claim, blank(claim))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_report::document::FigureRow;

    fn verdict(measured: f64, repetitions: &[(f64, f64, bool)]) -> Verdict {
        let claim: spec::Claim = toml::from_str("id = 'a'\nkind = 'direction'\ntext = ''\nabove = 1.0").unwrap();
        let repetition = |&(measured, unchanged, agrees): &(f64, f64, bool)| Repetition {
            change: String::new(),
            measured: Some(measured),
            holds: measured > 1.0,
            unchanged: Some(unchanged),
            agrees: Some(agrees),
        };
        judge_figure(&claim, Some(measured), repetitions.iter().map(repetition).collect(), None).verdict
    }

    #[test]
    fn an_identity_that_the_paper_does_not_state_is_held_to_what_follows_from_it() {
        let claim: spec::Claim =
            toml::from_str("id = 'a'\nkind = 'identity'\ntext = ''\npredicted = 95.0\ntolerance = 0.5").unwrap();
        let judged = judge_figure(&claim, Some(95.1), Vec::new(), None);
        assert_eq!((judged.paper, judged.predicted, judged.verdict), (None, Some(95.0), Verdict::Holds));
        assert_eq!(judge_figure(&claim, Some(95.6), Vec::new(), None).verdict, Verdict::Fails);
    }

    #[test]
    fn a_claim_without_cells_above_the_line_has_one_there() {
        let table = FigureTable {
            columns: vec!["time".into()],
            rows: vec![FigureRow { label: "a".into(), values: vec![Some(4.0)], summary: false, at: None }],
            left_out: Some(Vec::new()),
            ..FigureTable::default()
        };
        let claim = "id = 'a'\nkind = 'magnitude'\ntext = ''\nto = [{ row = 'a', columns = ['time'] }]";
        assert_eq!(measured(&toml::from_str(claim).unwrap(), &table), Some(0.25));
    }

    #[test]
    fn a_claim_may_be_of_the_second_mean() {
        let row = |label: &str, value, summary| FigureRow {
            label: label.into(),
            values: vec![Some(value)],
            summary,
            at: None,
        };
        let table = FigureTable {
            columns: vec!["gain".into()],
            rows: vec![row("a", 8.0, false), row("geometric mean", 4.0, true), row("arithmetic mean", 5.0, true)],
            left_out: Some(Vec::new()),
            ..FigureTable::default()
        };
        let of = |place: &str| {
            let claim = "id = 'a'\nkind = 'magnitude'\ntext = ''\nof = [{ row = 'PLACE', columns = ['gain'] }]";
            measured(&toml::from_str(&claim.replace("PLACE", place)).unwrap(), &table)
        };
        assert_eq!((of("mean"), of("mean-beside")), (Some(4.0), Some(5.0)));
    }

    #[test]
    fn a_prediction_is_not_told_as_the_paper_s_number() {
        let name = "flat-store-invalidates-every-sharer";
        let claim: spec::Claim = toml::from_str("id = 'a'\nkind = 'mechanism'\ntext = ''").unwrap();
        let judged = judge_mechanism(&claim, name, None);
        assert_eq!((judged.paper, judged.predicted, judged.measured), (None, Some(15.0), Some(15.0)));
        let stated = judge_mechanism(&spec::Claim { paper: Some(16.0), ..claim }, name, None);
        assert_eq!((stated.paper, stated.predicted, stated.verdict), (Some(16.0), Some(15.0), Verdict::Holds));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(combine(Take::Median, vec![4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(combine(Take::Median, vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(combine(Take::Median, Vec::new()), None);
    }

    #[test]
    fn a_tenth_lies_below_the_lowest_tenth() {
        assert_eq!(combine(Take::LowestTenth, (0..40).map(f64::from).collect()), Some(4.0));
        assert_eq!(combine(Take::LowestTenth, vec![3.0, 1.0, 2.0]), Some(1.0));
        assert_eq!(combine(Take::LowestTenth, Vec::new()), None);
    }

    #[test]
    fn a_direction_is_not_robust_where_a_change_and_not_a_choice_of_workloads_turns_it() {
        assert_eq!(verdict(1.1, &[(1.2, 1.1, true), (0.9, 0.9, true)]), Verdict::Holds);
        assert_eq!(verdict(1.1, &[(1.2, 1.1, true), (0.9, 1.1, false)]), Verdict::NotRobust);
        assert_eq!(verdict(0.9, &[(1.1, 0.9, false)]), Verdict::NotRobust);
        assert_eq!(verdict(0.9, &[(0.8, 0.9, true)]), Verdict::Fails);
    }
}
