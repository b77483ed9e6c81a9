//! A figure, with sizes and colours for a surface.

use super::canvas::{Annotation, at, cut};
use crate::document::{ChartKind, Figure};
use crate::number::{brief, quantity};
use crate::page::column;

/// CSS pixels in an inch and in a point.
const INCH: f64 = 96.0;
const POINT: f64 = INCH / 72.0;

/// Maximum number of characters in a label.
const LABEL: usize = 28;

/// Maximum number of characters in a legend name.
const LEGEND: usize = 44;

/// Width below which a drawing on a page is not shrunk. Source: assumed, letters with about 8 pixels.
const LEGIBLE: f64 = 640.0;

/// Surface that a figure is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// A two-column paper: sizes in inches, text with 8 points, fixed colours.
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

    /// Returns the allowed widths of a chart, preferred width first. Source: column widths in papers of ACM and IEEE,
    /// 3.3 inches, and both columns together; on a page, steps up to the page column's width.
    pub(super) fn widths(self) -> &'static [f64] {
        match self {
            Surface::Paper => &[3.3 * INCH, 7.0 * INCH],
            Surface::Page => &[620.0, 840.0, 1060.0],
        }
    }

    /// Returns the bar width above which no wider chart is needed.
    pub(super) fn comfortable_bar(self) -> f64 {
        match self {
            Surface::Paper => super::LEAST_BAR,
            Surface::Page => 14.0,
        }
    }

    /// Returns the plot height with a single panel, and with several panels.
    pub(super) fn heights(self) -> [f64; 2] {
        match self {
            Surface::Paper => [1.4 * INCH, 1.05 * INCH],
            Surface::Page => [300.0, 210.0],
        }
    }

    /// Returns the size attributes of the drawing.
    pub(super) fn size(self, width: f64, height: f64) -> String {
        match self {
            Surface::Paper => format!("width=\"{:.3}in\" height=\"{:.3}in\"", width / INCH, height / INCH),
            // On a narrow screen, a drawing is scrolled before its letters get too small.
            Surface::Page => {
                let least = at(width.min(LEGIBLE));
                format!("width=\"{}\" height=\"{}\" style=\"min-width:{least}px\"", at(width), at(height))
            }
        }
    }

    /// Returns the attribute for the font family; a page uses its own font.
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

    /// Returns the background colour of the drawing.
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

    /// Returns the drawn numeric columns; a scatter plot's first column is its horizontal axis.
    pub(super) fn series(&self) -> std::ops::Range<usize> {
        let first = usize::from(self.figure.chart.kind == ChartKind::Scatter);
        first..self.figure.series().len().max(first)
    }

    /// Returns the index of a series' look.
    pub(super) fn look(&self, series: usize) -> usize {
        self.figure.look(series - self.series().start)
    }

    /// Returns all looks in use.
    pub(super) fn looks(&self) -> Vec<usize> {
        self.figure.looks().into_iter().collect()
    }

    pub(super) fn name(&self, series: usize) -> String {
        cut(&column(&self.figure.series()[series]), LEGEND)
    }

    /// Returns the rows in drawing order: first ordinary rows, then summary rows, drawn apart.
    pub(super) fn rows(&self) -> [Vec<usize>; 2] {
        let rows = 0..self.figure.rows.len();
        let (apart, others): (Vec<usize>, Vec<usize>) = rows.partition(|row| self.figure.rows[*row].summary);
        if others.is_empty() { [apart, others] } else { [others, apart] }
    }

    /// Returns the label of a row, with a dagger if the row has a remark.
    pub(super) fn label(&self, row: usize) -> String {
        let label = cut(&self.figure.rows[row].label, LABEL);
        if self.figure.evidence.is_flagged(row) { format!("{label} †") } else { label }
    }

    pub(super) fn value(&self, row: usize, series: usize) -> Option<f64> {
        self.figure.rows[row].value(series)
    }

    /// Returns the paper's values for a number.
    pub(super) fn stated(&self, row: usize, series: usize) -> Vec<f64> {
        let (row, column) = (&self.figure.rows[row].label, &self.figure.series()[series]);
        let values = self.figure.published_at(row, column).map(|stated| stated.value);
        values.filter(|value| value.is_finite()).collect()
    }

    /// True if the paper states a number in this figure.
    pub(super) fn is_stated(&self) -> bool {
        let rows = 0..self.figure.rows.len();
        rows.into_iter().any(|row| self.series().any(|series| !self.stated(row, series).is_empty()))
    }

    pub(super) fn range(&self, row: usize, series: usize) -> Option<[f64; 2]> {
        self.figure.evidence.range(row, series)
    }

    /// Returns every number inside the axis range: values, ranges, the paper's values, the reference.
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

    /// Returns the title of the numeric axis.
    pub(super) fn y(&self) -> String {
        let (name, unit) = (column(&self.figure.chart.y), &self.figure.chart.unit);
        if unit.is_empty() { name } else { format!("{name} ({unit})") }
    }

    /// Returns the link target and tooltip of a number; empty on paper.
    pub(super) fn about(&self, row: usize, series: usize) -> Annotation {
        if self.surface == Surface::Paper {
            return Annotation::default();
        }
        let figure = self.figure;
        let value = quantity(figure.rows[row].value(series), &figure.chart.unit);
        let title = format!("{}, {}: {value}", figure.rows[row].label, self.name(series));
        Annotation { href: figure.evidence.run(row, series).and_then(self.anchor), title: Some(title) }
    }

    /// Formats a short number for the space next to a bar.
    pub(super) fn brief(value: f64) -> String {
        brief(value)
    }
}
