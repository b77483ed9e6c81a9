//! Scatter plot with two equal axes: points on the diagonal have equal numbers.

use super::FinishedDrawing;
use super::axis::ChartAxis;
use super::canvas::{Anchor, Canvas, line};
use super::frame::{Frame, margin};
use super::legend::{self, SeriesMark};
use super::looks::{colour, diamond, diamond_paint, paint, symbol, whisker};
use super::sheet::Sheet;

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> FinishedDrawing {
    let (font, ink) = (sheet.font, sheet.surface.ink());
    let numbers: Vec<f64> =
        sheet.numbers().into_iter().chain((0..sheet.figure.rows.len()).filter_map(|row| sheet.value(row, 0))).collect();
    let axis = ChartAxis::over(&numbers, sheet.figure.chart.log_y, true);
    let width = sheet.surface.widths()[0];
    let left = margin(sheet, &axis, &sheet.y());
    let mut canvas = Canvas::default();
    let top = legend::draw(&mut canvas, sheet, SeriesMark::Points, 0.0, width) + 0.8 * font;
    let side = width - left - 1.5 * font;
    let frame = Frame { left, top, width: side, height: side };
    frame.draw_numbers(&mut canvas, sheet, &axis);
    across(&mut canvas, sheet, &axis, frame);
    let diagonal = line((frame.left, frame.bottom()), (frame.right(), frame.top));
    canvas.path(&diagonal, &format!("stroke=\"{ink}\" stroke-width=\"1\" stroke-dasharray=\"5 3\""));
    let edges =
        line((left, top), (left, frame.bottom())) + &line((left, frame.bottom()), (frame.right(), frame.bottom()));
    canvas.path(&edges, &format!("stroke=\"{ink}\" stroke-width=\".8\" fill=\"none\""));
    for series in sheet.series() {
        points(&mut canvas, sheet, &axis, frame, series);
    }
    frame.draw_title(&mut canvas, sheet, &sheet.y());
    let x = &sheet.figure.chart.x;
    let x = if x.is_empty() { sheet.figure.series().first().map_or("", String::as_str) } else { x };
    frame.draw_foot(&mut canvas, &crate::page::column(x), frame.bottom() + 2.6 * font);
    FinishedDrawing { canvas, width, height: frame.bottom() + 3.1 * font }
}

/// Draws the grid and the numbers of the horizontal axis.
fn across(canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &ChartAxis, frame: Frame) {
    let places = || axis.ticks.iter().filter_map(|tick| Some((*tick, frame.x(axis, *tick)?)));
    let grid: String = places().map(|(_, x)| line((x, frame.top), (x, frame.bottom()))).collect();
    canvas.path(&grid, &format!("stroke=\"{}\" stroke-width=\".7\"", sheet.surface.rule()));
    canvas.group(&format!("fill=\"{}\"", sheet.surface.soft()), |canvas| {
        for (tick, x) in places() {
            canvas.words((x, frame.bottom() + 1.2 * sheet.font), Anchor::Middle, 0.0, "", &axis.label(tick));
        }
    });
}

fn points(canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &ChartAxis, frame: Frame, series: usize) {
    let (surface, look, r) = (sheet.surface, sheet.look(series), 0.3 * sheet.font);
    let colour = colour(surface, look);
    let rows = 0..sheet.figure.rows.len();
    let x = |row: usize| sheet.value(row, 0).and_then(|value| frame.x(axis, value));
    for row in rows.clone() {
        let range = sheet.range(row, series);
        let ends = range.and_then(|[low, high]| Some((x(row)?, frame.y(axis, low)?, frame.y(axis, high)?)));
        if let Some((x, low, high)) = ends {
            canvas.path(&whisker(x, low, high, 2.0), &format!("stroke=\"{colour}\" stroke-width=\".8\" fill=\"none\""));
        }
    }
    canvas.group(&format!("{} fill-opacity=\".75\"", paint(surface, look)), |canvas| {
        for row in rows.clone() {
            let y = sheet.value(row, series).and_then(|value| frame.y(axis, value));
            if let Some((x, y)) = x(row).zip(y) {
                canvas.mark(&symbol(look, x, y, r), "", &sheet.about(row, series));
            }
        }
    });
    for row in rows {
        for y in sheet.stated(row, series).into_iter().filter_map(|stated| frame.y(axis, stated)) {
            if let Some(x) = x(row) {
                canvas.path(&diamond(x, y, 1.1 * r), &diamond_paint(surface, colour));
            }
        }
    }
}
