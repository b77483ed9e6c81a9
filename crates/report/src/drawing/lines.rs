//! Line charts over the rows in order, with a line per column; a sweep over two axes becomes a family of lines.

use super::FinishedDrawing;
use super::axis::ChartAxis;
use super::canvas::{Canvas, at};
use super::categories::{NameLayout, RowPosition};
use super::frame::{Frame, margin};
use super::legend::{self, SeriesMark};
use super::looks::{colour, dashes, diamond, diamond_paint, paint, symbol, whisker};
use super::sheet::Sheet;

/// Row width above which no wider chart is needed, in letter sizes. Source: assumed, the width of a short name.
const ROOM: f64 = 2.5;

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> FinishedDrawing {
    let font = sheet.font;
    let axis = ChartAxis::over(&sheet.numbers(), sheet.figure.chart.log_y, false);
    let [rows, sums] = sheet.rows();
    let rows: Vec<usize> = rows.into_iter().chain(sums).collect();
    let widths = sheet.surface.widths();
    // Numbers may come in any order; a line runs from the least to the greatest.
    let mut shares: Vec<(usize, f64)> = rows.iter().copied().zip(shares(sheet, &rows)).collect();
    shares.sort_by(|one, other| one.1.total_cmp(&other.1));
    let rows: Vec<usize> = shares.iter().map(|(row, _)| *row).collect();
    let gaps = shares.windows(2).map(|pair| pair[1].1 - pair[0].1);
    let gap = gaps.fold(1.0, f64::min) * (rows.len() - 1).max(1) as f64;
    let room = |width: f64| gap * (width - margin(sheet, &axis, &title(sheet, &axis))) / rows.len() as f64;
    let width = widths.iter().copied().find(|width| room(*width) >= ROOM * font).unwrap_or(widths[widths.len() - 1]);
    let names = NameLayout::of(sheet, &rows, room(width));
    let left = margin(sheet, &axis, &title(sheet, &axis)).max(names.before(sheet, &rows, room(width)));
    let mut canvas = Canvas::default();
    let top = legend::draw(&mut canvas, sheet, SeriesMark::Lines, 0.0, width) + 0.8 * font;
    let frame = Frame { left, top, width: width - left - 0.6 * font, height: sheet.surface.heights()[0] };
    let step = frame.width / rows.len() as f64;
    let ends = frame.width - step;
    let places: Vec<RowPosition> =
        shares.into_iter().map(|(row, share)| (row, left + step / 2.0 + share * ends)).collect();
    frame.draw_numbers(&mut canvas, sheet, &axis);
    for series in sheet.series() {
        one(&mut canvas, sheet, &axis, frame, &places, series);
    }
    frame.draw_edges(&mut canvas, sheet, &axis);
    names.draw(&mut canvas, sheet, &places, frame.bottom());
    frame.draw_title(&mut canvas, sheet, &title(sheet, &axis));
    let bottom = frame.bottom() + names.height;
    frame.draw_foot(&mut canvas, &crate::page::column(&sheet.figure.chart.x), bottom + font);
    FinishedDrawing { canvas, width, height: bottom + 1.5 * font }
}

/// Least ratio between neighbouring numbers on a logarithmic axis. Source: assumed, rounded numbers that double.
const DOUBLES: f64 = 1.9;

/// Returns the position of each row along the horizontal axis, 0 to 1. Rows are placed by number if all have a number,
/// and otherwise at equal distances.
fn shares(sheet: &Sheet<'_>, rows: &[usize]) -> Vec<f64> {
    let numbers = rows.iter().map(|row| sheet.figure.rows[*row].at.filter(|at| at.is_finite()));
    by_number(&numbers.collect::<Option<Vec<f64>>>().unwrap_or_default())
        .unwrap_or_else(|| (0..rows.len()).map(|row| row as f64 / (rows.len() - 1).max(1) as f64).collect())
}

/// Returns the positions of numbers between the least and the greatest; `None` if two are equal, or with fewer than two
/// numbers.
fn by_number(numbers: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (&first, &last) = (sorted.first()?, sorted.last()?);
    if sorted.len() < 2 || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let is_logarithmic = first > 0.0 && sorted.windows(2).all(|pair| pair[1] >= DOUBLES * pair[0]);
    let share = |number: f64| match is_logarithmic {
        true => (number / first).ln() / (last / first).ln(),
        false => (number - first) / (last - first),
    };
    Some(numbers.iter().map(|number| share(*number)).collect())
}

/// Returns the title of the numeric axis. Lines are compared by height and need no zero, but the title states the start
/// of the axis.
fn title(sheet: &Sheet<'_>, axis: &ChartAxis) -> String {
    match sheet.figure.chart.log_y || axis.low <= 0.0 {
        true => sheet.y(),
        false => format!("{}, from {}", sheet.y(), axis.label(axis.low)).trim_start_matches(", ").to_owned(),
    }
}

/// Draws a line with its symbols, ranges and the paper's values.
fn one(canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &ChartAxis, frame: Frame, places: &[RowPosition], series: usize) {
    let (surface, look, r) = (sheet.surface, sheet.look(series), 0.3 * sheet.font);
    let colour = colour(surface, look);
    let height = |row: usize| sheet.value(row, series).and_then(|value| frame.y(axis, value));
    let mut path = String::new();
    // A missing number leaves a gap.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_where_they_are_and_doubling_ones_at_equal_distances() {
        assert_eq!(by_number(&[1.0, 2.0, 3.5]), Some(vec![0.0, 0.4, 1.0]), "they double once");
        assert_eq!(by_number(&[8.0, 2.0, 32.0]), Some(vec![0.5, 0.0, 1.0]), "in any order");
        assert_eq!(by_number(&[0.0, 1.0, 4.0]), Some(vec![0.0, 0.25, 1.0]), "zero has no logarithm");
        assert_eq!([by_number(&[3.0]), by_number(&[3.0, 3.0]), by_number(&[])], [None, None, None]);
    }
}
