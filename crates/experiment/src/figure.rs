//! Builds a figure from results.

use crate::grid::{Change, Numbers};
use crate::layout::Panel;
use crate::plan::{ExperimentPlan, ScaleChoice};
use crate::spec::{Claim, Dimension, Mean, Shape};
use tombolo_report::document::{Chart, ChartKind, Figure, FigureRow, PublishedNumber};

/// Largest number of workloads at the same scale named in a caption.
const NAMED: usize = 8;

/// Numbers in a figure.
#[derive(Clone, Debug, Default)]
pub(crate) struct FigureTable {
    /// Panel with the numbers.
    pub(crate) panel: Panel,
    /// Column labels, without the header of the row labels.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<FigureRow>,
    /// Labels of workloads left out from means. `None` if the selection is unknown; no mean exists in this case.
    pub(crate) left_out: Option<Vec<String>>,
}

impl FigureTable {
    /// Computes the numbers in `plan` under `change`, for a plan with a single figure.
    pub(crate) fn of(plan: &ExperimentPlan, change: &Change, numbers: &mut Numbers<'_>) -> FigureTable {
        FigureTable::in_panel(plan, Panel::default(), change, numbers)
    }

    /// Computes the numbers for a panel in the plan.
    pub(crate) fn in_panel(
        plan: &ExperimentPlan,
        panel: Panel,
        change: &Change,
        numbers: &mut Numbers<'_>,
    ) -> FigureTable {
        let workloads = plan.workloads_of(change);
        let left_out = plan.left_out(numbers);
        let is_kept = |index: &&usize| left_out.as_ref().is_some_and(|left_out| !left_out.contains(*index));
        let kept: Vec<usize> = workloads.iter().filter(is_kept).copied().collect();
        let labels = plan.labels(plan.layout.rows);
        let indices: Vec<usize> = match plan.layout.rows {
            Dimension::Workload => workloads,
            _ => (0..labels.len()).collect(),
        };
        let columns = plan.labels(plan.layout.columns);
        let mut cell = |row, column| {
            let at = plan.cell(&panel, row, column);
            if !plan.is_mean_of_workloads() {
                return plan.value(at, change, numbers);
            }
            let one = |index: &usize| {
                let mut at = at;
                at.workload = *index;
                plan.value(at, change, numbers)
            };
            mean(plan.spec.mean, kept.iter().map(one).collect())
        };
        let numbers = plan.numbers(plan.layout.rows);
        let row = |index: usize| FigureRow {
            at: numbers.get(index).copied().flatten(),
            label: labels[index].clone(),
            values: (0..columns.len()).map(|column| cell(index, column)).collect(),
            summary: false,
        };
        let rows = indices.into_iter().map(row).collect();
        let name = |index: &usize| plan.workloads[*index].label.clone();
        let left_out = left_out.map(|left_out| left_out.iter().map(name).collect());
        let mut table = FigureTable { panel, columns, rows, left_out };
        plan.summaries().into_iter().for_each(|(label, by, of_all)| table.sum_up(label, by, of_all));
        table
    }

    fn sum_up(&mut self, label: String, by: Mean, of_all: bool) {
        let rows: Vec<&FigureRow> = match of_all {
            true => self.rows.iter().filter(|row| !row.summary).collect(),
            false => self.kept().collect(),
        };
        let column = |index: usize| mean(Some(by), rows.iter().map(|row| row.values[index]).collect());
        let values = (0..self.columns.len()).map(column).collect();
        self.rows.push(FigureRow { label, values, summary: true, at: None });
    }

    /// Returns the non-summary rows that contribute to means.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &FigureRow> {
        let is_kept = |row: &FigureRow| self.left_out.as_ref().is_some_and(|left_out| !left_out.contains(&row.label));
        self.rows.iter().filter(move |row| !row.summary && is_kept(row))
    }

    /// Returns the row called `label`; `mean`, `mean-beside`, `mean-of-all`, `first` and `last` select rows by
    /// position.
    pub(crate) fn row(&self, label: &str) -> Option<&FigureRow> {
        let mut others = self.rows.iter().filter(|row| !row.summary);
        match label {
            "mean" => self.rows.iter().find(|row| row.summary),
            "mean-beside" => self.rows.iter().filter(|row| row.summary).nth(1),
            "mean-of-all" => self.rows.iter().rfind(|row| row.summary),
            "first" => others.next(),
            "last" => others.next_back(),
            _ => self.rows.iter().find(|row| row.label == label),
        }
    }
}

/// Returns the label for a row with means.
pub(crate) fn summary(mean: Mean) -> &'static str {
    match mean {
        Mean::Geometric => "geometric mean",
        Mean::Arithmetic => "arithmetic mean",
    }
}

/// Returns a mean. `None` if a value is missing, no value exists, or a geometric mean has a value not above zero.
fn mean(by: Option<Mean>, values: Vec<Option<f64>>) -> Option<f64> {
    let values = values.into_iter().collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())?;
    let count = values.len() as f64;
    match by? {
        Mean::Geometric if values.iter().any(|value| *value <= 0.0) => None,
        Mean::Geometric => Some((values.iter().map(|value| value.ln()).sum::<f64>() / count).exp()),
        Mean::Arithmetic => Some(values.iter().sum::<f64>() / count),
    }
}

/// Returns the paper's value for a claim about a single number; `None` for a claim about several numbers.
fn stated(claim: &Claim, table: &FigureTable) -> Option<PublishedNumber> {
    let (value, None, []) = (claim.paper?, claim.each_row, &claim.to[..]) else { return None };
    let [cell] = &claim.of[..] else { return None };
    let [column] = &cell.columns[..] else { return None };
    let row = table.row(cell.row.as_ref()?.get())?.label.clone();
    Some(PublishedNumber { row, column: column.get().to_owned(), value, source: claim.text.clone() })
}

impl ExperimentPlan {
    /// Computes the numbers for each panel.
    pub(crate) fn tables(&self, numbers: &mut Numbers<'_>) -> Vec<FigureTable> {
        self.panels().into_iter().map(|panel| FigureTable::in_panel(self, panel, &Change::default(), numbers)).collect()
    }

    /// Builds the figure with the numbers in `table`.
    pub(crate) fn figure(&self, table: &FigureTable) -> Figure {
        let published = self.spec.published.iter().filter_map(|one| {
            let (column, source) = (one.column.get().to_owned(), one.source.clone());
            Some(PublishedNumber { row: table.row(one.row.get())?.label.clone(), column, value: one.value, source })
        });
        let mut published: Vec<PublishedNumber> = published.collect();
        for one in self.spec.claim.iter().filter_map(|claim| stated(claim, table)) {
            if !published.iter().any(|known| (&known.row, &known.column) == (&one.row, &one.column)) {
                published.push(one);
            }
        }
        let (title, caption) = match self.compares_times() {
            true => (format!("{} (time: {})", self.heading(), self.time), format!(" Times are {}.", self.time.title())),
            false => (self.heading(), String::new()),
        };
        let (id, title) = match self.label_of(&table.panel) {
            label if label.is_empty() => (self.spec.id.clone(), title),
            label => {
                let place = self.panels().iter().position(|panel| *panel == table.panel).unwrap_or(0);
                (format!("{}-{}", self.spec.id, place + 1), format!("{title}: {label}"))
            }
        };
        Figure {
            id,
            title,
            caption: format!("{}{caption} {}", self.legend(), self.what_ran()).trim().to_owned(),
            left_out: self.what_is_left_out(table),
            chart: self.chart(),
            columns: std::iter::once(self.head(self.layout.rows)).chain(table.columns.iter().cloned()).collect(),
            rows: table.rows.clone(),
            published,
            ..Figure::default()
        }
    }

    /// Returns the summary rows, if any: label, mean, and a flag set if the row covers all workloads although some are
    /// left out.
    pub(crate) fn summaries(&self) -> Vec<(String, Mean, bool)> {
        let Some(mean) = self.spec.mean.filter(|_| self.layout.rows == Dimension::Workload) else { return Vec::new() };
        let leaves_out = !self.spec.left_out.is_empty();
        let of = if leaves_out { " of the rest" } else { "" };
        let kept = [Some(mean), self.spec.mean_beside].into_iter().flatten();
        let kept = kept.map(|mean| (format!("{}{of}", summary(mean)), mean, false));
        let of_all = leaves_out.then(|| (format!("{} of all", summary(mean)), mean, true));
        kept.chain(of_all).collect()
    }

    fn chart(&self) -> Chart {
        let chart = self.drawn();
        Chart {
            kind: match self.shape() {
                Shape::Bars => ChartKind::Bars,
                Shape::Lines => ChartKind::Lines,
                Shape::Stacked => ChartKind::Stacked,
                Shape::Scatter => ChartKind::Scatter,
                Shape::Heat => ChartKind::Heat,
                Shape::Table => ChartKind::Table,
            },
            x: chart.x,
            y: chart.y,
            series: match (self.layout.columns, self.shape()) {
                (columns @ Dimension::Axis(_), _) | (columns, Shape::Heat) => self.head(columns),
                _ => String::new(),
            },
            unit: chart.unit,
            log_y: chart.log_y,
            reference: chart.reference,
            looks: Vec::new(),
        }
    }

    /// Describes the workloads run at each scale, if any, and the parts left out at quick scale.
    fn what_ran(&self) -> String {
        let mut scales: Vec<(String, Vec<&str>)> = Vec::new();
        for one in self.workloads.iter().filter(|_| self.is_run()) {
            let scale = one.scale.to_string();
            match scales.iter_mut().find(|(known, _)| *known == scale) {
                Some((_, labels)) => labels.push(&one.label),
                None => scales.push((scale, vec![&one.label])),
            }
        }
        scales.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.len()));
        // True if the chart names the workloads, or if the whole suite ran.
        let is_known = self.layout.rows == Dimension::Workload || self.spec.quick.only.is_empty();
        let at = |(index, (scale, labels)): (usize, &(String, Vec<&str>))| {
            let named = match labels.len() {
                count if index > 0 || count <= NAMED || !is_known => labels.join(", "),
                count if scales.len() == 1 => format!("all {count} workloads"),
                count => format!("{count} workloads, all but those named"),
            };
            format!("at {scale} of machine and input: {named}")
        };
        let mut text: Vec<String> = match &scales[..] {
            [] => Vec::new(),
            all => vec![format!("Run {}.", all.iter().enumerate().map(at).collect::<Vec<_>>().join("; "))],
        };
        if self.requested_scale != self.choice {
            text.push(format!("{} was asked for; modules keep whole SMs.", self.requested_scale));
        }
        if self.choice == ScaleChoice::Quick && (!self.spec.quick.only.is_empty() || !self.spec.quick.steps.is_empty())
        {
            text.push("Other workloads or steps run at other scales only.".to_owned());
        }
        if self.choice == ScaleChoice::Quick {
            text.push(self.spec.quick.reason.clone());
        }
        text.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    /// Returns the caption of a shipped figure.
    fn caption(paper: &str, id: &str, choice: ScaleChoice) -> String {
        let (_, experiments) = preset::paper(paper).unwrap();
        let (file, spec) = experiments.into_iter().find(|(_, spec)| spec.id == id).unwrap();
        ExperimentPlan::new(file, spec, choice).unwrap().figure(&FigureTable::default()).caption
    }

    #[test]
    fn a_figure_of_machines_alone_says_of_no_workload_that_it_ran() {
        for choice in [ScaleChoice::Quick, ScaleChoice::Paper] {
            let (computed, measured) = (caption("numa-gpu", "figure-2", choice), caption("hmg", "figure-8", choice));
            assert!(!computed.contains("of machine and input"), "{computed}");
            assert!(measured.contains("of machine and input"), "{measured}");
        }
    }

    #[test]
    fn a_mean_needs_every_value() {
        let geometric = Some(Mean::Geometric);
        assert!(mean(geometric, vec![Some(2.0), Some(8.0)]).is_some_and(|mean| (mean - 4.0).abs() < 1e-12));
        assert_eq!(mean(Some(Mean::Arithmetic), vec![Some(2.0), Some(0.0)]), Some(1.0));
        assert_eq!(mean(geometric, vec![Some(2.0), None]), None);
        assert_eq!(mean(geometric, vec![Some(0.0)]), None);
        assert_eq!(mean(geometric, Vec::new()), None);
    }
}
