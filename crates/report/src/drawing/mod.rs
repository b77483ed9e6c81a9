//! Figures as SVG. A common drawing code serves papers, at the width of a column, and pages, in the page's colours.
//!
//! - [`sheet`]: a figure with sizes and colours for its surface. [`canvas`]: shapes and words as text. [`axis`]:
//!   numbers along an edge. [`looks`]: distinguishing features of series. [`categories`]: names along the lower edge.
//! - [`bars`], [`lines`], [`scatter`], [`heat`]: the kinds of charts.
//!
//! Bars are at least [`LEAST_BAR`] wide; if they do not fit across, the rows continue in a panel below. A logarithmic
//! axis has no zero. Numbers on a logarithmic axis are therefore drawn with points, and never with bars.

mod axis;
mod bars;
mod canvas;
mod categories;
mod frame;
mod heat;
mod legend;
mod lines;
mod looks;
mod scatter;
mod sheet;

pub(crate) use bars::{PanelLayout, layout};
pub(crate) use heat::SHADES;
pub(crate) use looks::{COLOURS, KINDS, LOOKS, hue, mark, patterns};
pub(crate) use sheet::Surface;

use crate::document::{ChartKind, Figure};
use canvas::{Canvas, at, escaped};
use sheet::Sheet;

/// Minimum width of a bar, in CSS pixels. Source: assumed, wide enough to show a hatch on paper and on a screen.
pub(crate) const LEAST_BAR: f64 = 8.0;

/// A finished drawing, with width and height in CSS pixels.
struct FinishedDrawing {
    canvas: Canvas,
    width: f64,
    height: f64,
}

/// True if `figure` has numbers and a chart kind with a drawing.
pub(crate) fn is_drawn(figure: &Figure) -> bool {
    figure.chart.kind != ChartKind::Table && figure.has_numbers()
}

/// Returns a figure's chart in an SVG element; `None` for a figure without a chart. `anchor` returns the address of a
/// run.
pub(crate) fn svg(figure: &Figure, surface: Surface, anchor: &dyn Fn(usize) -> Option<String>) -> Option<String> {
    if !is_drawn(figure) {
        return None;
    }
    let sheet = Sheet::new(figure, surface, anchor);
    let FinishedDrawing { canvas, width, height } = match figure.chart.kind {
        ChartKind::Bars | ChartKind::Stacked => bars::draw(&sheet),
        ChartKind::Lines => lines::draw(&sheet),
        ChartKind::Scatter => scatter::draw(&sheet),
        ChartKind::Heat => heat::draw(&sheet),
        ChartKind::Table => return None,
    };
    let (view, size) = (format!("0 0 {} {}", at(width), at(height)), surface.size(width, height));
    let (font, family, ink) = (at(sheet.font), surface.family(), surface.ink());
    let defs = if surface == Surface::Paper { patterns(surface, &sheet.looks()) } else { String::new() };
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"{view}\" font-size=\"{font}\"{family} fill=\"{ink}\" \
         role=\"img\" aria-label=\"{}\">{defs}{}</svg>",
        escaped(&figure.title),
        canvas.into_text()
    ))
}
