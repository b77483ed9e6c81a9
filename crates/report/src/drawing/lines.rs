//! Lines over the rows in order, one a column: of a sweep of two axes, a family of them.

use super::Picture;
use super::axis::Axis;
use super::canvas::{Canvas, at};
use super::categories::{Names, Place};
use super::frame::{Frame, margin};
use super::legend::{self, Drawn};
use super::looks::{colour, dashes, diamond, diamond_paint, paint, symbol, whisker};
use super::sheet::Sheet;

/// Room of a row from which on it needs no wider chart, in sizes of a letter. Source: assumed, what a short name takes.
const ROOM: f64 = 2.5;

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> Picture {
    let font = sheet.font;
    let axis = Axis::over(&sheet.numbers(), sheet.figure.chart.log_y, false);
    let [rows, sums] = sheet.rows();
    let rows: Vec<usize> = rows.into_iter().chain(sums).collect();
    let widths = sheet.surface.widths();
    let room = |width: f64| (width - margin(sheet, &axis, &title(sheet, &axis))) / rows.len() as f64;
    let width = widths.iter().copied().find(|width| room(*width) >= ROOM * font).unwrap_or(widths[widths.len() - 1]);
    let names = Names::of(sheet, &rows, room(width));
    let left = margin(sheet, &axis, &title(sheet, &axis)).max(names.before(sheet, &rows, room(width)));
    let mut canvas = Canvas::default();
    let top = legend::draw(&mut canvas, sheet, Drawn::Lines, 0.0, width) + 0.8 * font;
    let frame = Frame { left, top, width: width - left - 0.6 * font, height: sheet.surface.heights()[0] };
    let step = frame.width / rows.len() as f64;
    let places: Vec<Place> =
        rows.iter().enumerate().map(|(index, row)| (*row, left + (index as f64 + 0.5) * step)).collect();
    frame.draw_numbers(&mut canvas, sheet, &axis);
    for series in sheet.series() {
        one(&mut canvas, sheet, &axis, frame, &places, series);
    }
    frame.draw_edges(&mut canvas, sheet, &axis);
    names.draw(&mut canvas, sheet, &places, frame.bottom());
    frame.draw_title(&mut canvas, sheet, &title(sheet, &axis));
    let bottom = frame.bottom() + names.height;
    frame.draw_foot(&mut canvas, &crate::page::column(&sheet.figure.chart.x), bottom + font);
    Picture { canvas, width, height: bottom + 1.5 * font }
}

/// Title of the axis of numbers. Lines are compared by their heights and need no zero, but a reader has to know.
fn title(sheet: &Sheet<'_>, axis: &Axis) -> String {
    match sheet.figure.chart.log_y || axis.low <= 0.0 {
        true => sheet.y(),
        false => format!("{}, from {}", sheet.y(), axis.label(axis.low)).trim_start_matches(", ").to_owned(),
    }
}

/// A line with its symbols, ranges and what the paper states.
fn one(canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &Axis, frame: Frame, places: &[Place], series: usize) {
    let (surface, look, r) = (sheet.surface, sheet.look(series), 0.3 * sheet.font);
    let colour = colour(surface, look);
    let height = |row: usize| sheet.value(row, series).and_then(|value| frame.y(axis, value));
    let mut path = String::new();
    // A missing number is a gap.
    for run in places.chunk_by(|(row, _), (next, _)| height(*row).is_some() && height(*next).is_some()) {
        let points = run.iter().filter_map(|(row, x)| Some((*x, height(*row)?))).enumerate();
        let draw = |(index, (x, y))| format!("{}{} {}", if index == 0 { 'M' } else { 'L' }, at(x), at(y));
        path.extend(points.map(draw));
    }
    canvas.path(&path, &format!("stroke=\"{colour}\" stroke-width=\"1.6\" fill=\"none\"{}", dashes(look)));
    for (row, x) in places {
        let ends = sheet.range(*row, series);
        if let Some([low, high]) = ends.and_then(|[low, high]| Some([frame.y(axis, low)?, frame.y(axis, high)?])) {
            canvas.path(&whisker(*x, low, high, 3.0), &format!("stroke=\"{colour}\" stroke-width=\"1\" fill=\"none\""));
        }
    }
    canvas.group(&paint(surface, look), |canvas| {
        for (row, x) in places {
            if let Some(y) = height(*row) {
                canvas.mark(&symbol(look, *x, y, r), "", &sheet.about(*row, series));
            }
        }
    });
    for (row, x) in places {
        for y in sheet.stated(*row, series).into_iter().filter_map(|stated| frame.y(axis, stated)) {
            canvas.path(&diamond(*x, y, 1.1 * r), &diamond_paint(surface, colour));
        }
    }
}
