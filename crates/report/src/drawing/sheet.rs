//! A figure with the sizes and colours of where it is drawn.

use super::canvas::{About, at, cut};
use crate::document::{ChartKind, Figure};
use crate::number::{brief, quantity};
use crate::page::column;

/// CSS pixels of an inch and of a point.
const INCH: f64 = 96.0;
const POINT: f64 = INCH / 72.0;

/// Characters of a label, at most.
const LABEL: usize = 28;

/// Characters of a name in a legend, at most.
const LEGEND: usize = 44;

/// Width from which on a drawing of a page is not made narrower. Source: assumed, letters of about 8 pixels.
const LEGIBLE: f64 = 640.0;

/// Where a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// A paper of two columns: sizes in inches, text of 8 points, colours that are always the same.
    Paper,
    /// A page: sizes in CSS pixels, and the colours of the page, which follow the reader's theme.
    Page,
}

impl Surface {
    pub(super) fn font(self) -> f64 {
        match self {
            Surface::Paper => 8.0 * POINT,
            Surface::Page => 12.0,
        }
    }

    /// Widths that a chart may have, the preferred one first. Source: columns of papers of ACM and IEEE, 3.3 inches, and
    /// both of them; on a page, steps up to its column.
    pub(super) fn widths(self) -> &'static [f64] {
        match self {
            Surface::Paper => &[3.3 * INCH, 7.0 * INCH],
            Surface::Page => &[620.0, 840.0, 1060.0],
        }
    }

    /// Width of a bar from which on a wider chart is not needed.
    pub(super) fn comfortable_bar(self) -> f64 {
        match self {
            Surface::Paper => super::LEAST_BAR,
            Surface::Page => 14.0,
        }
    }

    /// Height of the plot of one panel, and of each of several.
    pub(super) fn heights(self) -> [f64; 2] {
        match self {
            Surface::Paper => [1.4 * INCH, 1.05 * INCH],
            Surface::Page => [300.0, 210.0],
        }
    }

    /// Attributes that say how large the drawing is.
    pub(super) fn size(self, width: f64, height: f64) -> String {
        match self {
            Surface::Paper => format!("width=\"{:.3}in\" height=\"{:.3}in\"", width / INCH, height / INCH),
            // On a narrow screen a drawing is scrolled before its letters get too small.
            Surface::Page => {
                let least = at(width.min(LEGIBLE));
                format!("width=\"{}\" height=\"{}\" style=\"min-width:{least}px\"", at(width), at(height))
            }
        }
    }

    /// The attribute of the family of letters; a page has its own.
    pub(super) fn family(self) -> &'static str {
        match self {
            Surface::Paper => " font-family=\"Helvetica, Arial, Liberation Sans, sans-serif\"",
            Surface::Page => "",
        }
    }

    pub(super) fn ink(self) -> &'static str {
        match self {
            Surface::Paper => "#1b1f24",
            Surface::Page => "var(--ink)",
        }
    }

    pub(super) fn soft(self) -> &'static str {
        match self {
            Surface::Paper => "#4a525c",
            Surface::Page => "var(--soft)",
        }
    }

    pub(super) fn rule(self) -> &'static str {
        match self {
            Surface::Paper => "#d0d5db",
            Surface::Page => "var(--rule)",
        }
    }

    /// What stands behind the drawing.
    pub(super) fn card(self) -> &'static str {
        match self {
            Surface::Paper => "#fff",
            Surface::Page => "var(--card)",
        }
    }
}

/// A figure to draw.
pub(super) struct Sheet<'a> {
    pub(super) figure: &'a Figure,
    pub(super) surface: Surface,
    pub(super) font: f64,
    anchor: &'a dyn Fn(usize) -> Option<String>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(figure: &'a Figure, surface: Surface, anchor: &'a dyn Fn(usize) -> Option<String>) -> Sheet<'a> {
        Sheet { figure, surface, font: surface.font(), anchor }
    }

    /// Columns of numbers that are drawn; the first of a scatter is its horizontal axis.
    pub(super) fn series(&self) -> std::ops::Range<usize> {
        let first = usize::from(self.figure.chart.kind == ChartKind::Scatter);
        first..self.figure.series().len().max(first)
    }

    /// How a series looks.
    pub(super) fn look(&self, series: usize) -> usize {
        self.figure.look(series - self.series().start)
    }

    /// All looks that are needed.
    pub(super) fn looks(&self) -> Vec<usize> {
        self.figure.looks().into_iter().collect()
    }

    pub(super) fn name(&self, series: usize) -> String {
        cut(&column(&self.figure.series()[series]), LEGEND)
    }

    /// Rows in the order in which they are drawn: what sums up the others last, apart from them.
    pub(super) fn rows(&self) -> [Vec<usize>; 2] {
        let rows = 0..self.figure.rows.len();
        let (apart, others): (Vec<usize>, Vec<usize>) = rows.partition(|row| self.figure.rows[*row].summary);
        if others.is_empty() { [apart, others] } else { [others, apart] }
    }

    /// The label of a row, with a dagger where a remark is made on it.
    pub(super) fn label(&self, row: usize) -> String {
        let label = cut(&self.figure.rows[row].label, LABEL);
        if self.figure.evidence.is_flagged(row) { format!("{label} †") } else { label }
    }

    pub(super) fn value(&self, row: usize, series: usize) -> Option<f64> {
        self.figure.rows[row].value(series)
    }

    /// What the paper states of a number.
    pub(super) fn stated(&self, row: usize, series: usize) -> Vec<f64> {
        let (row, column) = (&self.figure.rows[row].label, &self.figure.series()[series]);
        let values = self.figure.published_at(row, column).map(|stated| stated.value);
        values.filter(|value| value.is_finite()).collect()
    }

    /// Whether the paper states a number of this figure.
    pub(super) fn is_stated(&self) -> bool {
        let rows = 0..self.figure.rows.len();
        rows.into_iter().any(|row| self.series().any(|series| !self.stated(row, series).is_empty()))
    }

    pub(super) fn range(&self, row: usize, series: usize) -> Option<[f64; 2]> {
        self.figure.evidence.range(row, series)
    }

    /// Every number that the axis has to reach: values, ranges, what the paper states, the reference.
    pub(super) fn numbers(&self) -> Vec<f64> {
        let mut numbers: Vec<f64> = self.figure.chart.reference.into_iter().collect();
        for row in 0..self.figure.rows.len() {
            for series in self.series() {
                numbers.extend(self.value(row, series));
                numbers.extend(self.range(row, series).into_iter().flatten());
                numbers.extend(self.stated(row, series));
            }
        }
        numbers
    }

    /// Title of the axis of numbers.
    pub(super) fn y(&self) -> String {
        let (name, unit) = (column(&self.figure.chart.y), &self.figure.chart.unit);
        if unit.is_empty() { name } else { format!("{name} ({unit})") }
    }

    /// What a number leads to and says; nothing on paper.
    pub(super) fn about(&self, row: usize, series: usize) -> About {
        if self.surface == Surface::Paper {
            return About::default();
        }
        let figure = self.figure;
        let value = quantity(figure.rows[row].value(series), &figure.chart.unit);
        let title = format!("{}, {}: {value}", figure.rows[row].label, self.name(series));
        About { href: figure.evidence.run(row, series).and_then(self.anchor), title: Some(title) }
    }

    /// A number beside its bar, short.
    pub(super) fn brief(value: f64) -> String {
        brief(value)
    }
}
