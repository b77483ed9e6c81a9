//! Heat map: a cell per row and column. The cell's number selects the colour, and is also printed inside the cell.

use super::FinishedDrawing;
use super::canvas::{Anchor, Canvas, rectangle, width_of};
use super::categories::{NameLayout, RowPosition};
use super::frame::Frame;
use super::sheet::Sheet;

/// Colours from the least to the greatest number. Source: cividis by Nuñez, Anderton and Renslow (PLoS ONE 2018),
/// sampled at every quarter. Its lightness rises evenly, for readers with any colour vision and for prints without
/// colour.
pub(crate) const SHADES: [[f64; 3]; 5] =
    [[0.0, 34.0, 78.0], [65.0, 77.0, 107.0], [124.0, 123.0, 120.0], [188.0, 175.0, 111.0], [254.0, 232.0, 56.0]];

/// Lightness threshold: lighter cells have dark numbers, and darker cells have light numbers. Source: assumed, equal
/// distance to black and white.
const LIGHT: f64 = 120.0;

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> FinishedDrawing {
    let (font, chart) = (sheet.font, &sheet.figure.chart);
    let [rows, sums] = sheet.rows();
    let rows: Vec<usize> = rows.into_iter().chain(sums).collect();
    let columns = sheet.figure.series().len();
    let widest = sheet.surface.widths()[sheet.surface.widths().len() - 1];
    let left = 2.2 * font + (0..columns).map(|column| width_of(&sheet.name(column), font)).fold(0.0, f64::max);
    let told = rows.iter().flat_map(|row| (0..columns).filter_map(|column| sheet.value(*row, column)));
    let needed = told.map(|value| width_of(&Sheet::brief(value), font)).fold(2.5 * font, f64::max) + font;
    let room = (sheet.surface.widths()[0] - left - 1.0) / rows.len() as f64;
    let side = needed.max(room.min(6.0 * font)).min(((widest - left) / rows.len() as f64).max(2.5 * font));
    let names = NameLayout::of(sheet, &rows, side);
    let left = left.max(names.before(sheet, &rows, side));
    let (tall, top) = (2.2 * font, 1.8 * font);
    let mut canvas = Canvas::default();
    let scale = ColourScale::of(sheet, &rows);
    canvas.words((0.0, font), Anchor::Start, 0.0, &format!("fill=\"{}\"", sheet.surface.soft()), &scale.key(sheet));
    for column in 0..columns {
        // The first column lies at the bottom, like the first number on an axis.
        let y = top + (columns - 1 - column) as f64 * tall;
        let base = y + tall / 2.0 + 0.35 * font;
        canvas.words((left - 0.5 * font, base), Anchor::End, 0.0, "", &sheet.name(column));
        for (line, row) in rows.iter().enumerate() {
            let x = left + line as f64 * side;
            let Some(value) = sheet.value(*row, column) else { continue };
            let (shade, ink) = shade(scale.share(value));
            let cell = rectangle(x + 0.5, y + 0.5, side - 1.0, tall - 1.0);
            canvas.mark(&cell, &format!("fill=\"{shade}\""), &sheet.about(*row, column));
            let paint = format!("fill=\"{ink}\" pointer-events=\"none\"");
            canvas.words((x + side / 2.0, base), Anchor::Middle, 0.0, &paint, &Sheet::brief(value));
        }
    }
    let frame = Frame { left, top, width: rows.len() as f64 * side, height: columns as f64 * tall };
    let places: Vec<RowPosition> =
        rows.iter().enumerate().map(|(line, row)| (*row, left + (line as f64 + 0.5) * side)).collect();
    names.draw(&mut canvas, sheet, &places, frame.bottom());
    let foot = frame.bottom() + names.height + font;
    frame.draw_foot(&mut canvas, &crate::page::column(&chart.x), foot);
    frame.draw_title(&mut canvas, sheet, &chart.series);
    let width = (frame.right() + 1.0).max(width_of(&scale.key(sheet), font));
    FinishedDrawing { canvas, width, height: foot + 0.5 * font }
}

/// Colour scale: the numbers with the darkest and the lightest shade.
struct ColourScale {
    low: f64,
    high: f64,
}

impl ColourScale {
    /// Computes the scale from the least to the greatest number; symmetric around the reference if the reference lies
    /// between them.
    fn of(sheet: &Sheet<'_>, rows: &[usize]) -> ColourScale {
        let columns = 0..sheet.figure.series().len();
        let values = rows.iter().flat_map(|row| columns.clone().filter_map(move |column| sheet.value(*row, column)));
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values.fold(ends, |(low, high), value| (low.min(value), high.max(value)));
        match sheet.figure.chart.reference.filter(|middle| low < *middle && *middle < high) {
            None => ColourScale { low, high },
            Some(middle) => {
                let reach = (high - middle).max(middle - low);
                ColourScale { low: middle - reach, high: middle + reach }
            }
        }
    }

    fn share(&self, value: f64) -> f64 {
        if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 }
    }

    /// Returns the caption that explains the shades.
    fn key(&self, sheet: &Sheet<'_>) -> String {
        format!("{}: from {} (dark) to {} (light)", sheet.y(), Sheet::brief(self.low), Sheet::brief(self.high))
    }
}

/// Returns the colour at a position between the least and the greatest number, and the text colour on top.
fn shade(share: f64) -> (String, &'static str) {
    let place = share.clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
    let from = (place.floor() as usize).min(SHADES.len() - 2);
    let part = place - from as f64;
    let [red, green, blue] =
        [0, 1, 2].map(|one| SHADES[from][one] + part * (SHADES[from + 1][one] - SHADES[from][one]));
    let lightness = 0.299 * red + 0.587 * green + 0.114 * blue;
    let ink = if lightness > LIGHT { "#000" } else { "#fff" };
    (format!("#{:02x}{:02x}{:02x}", red as u8, green as u8, blue as u8), ink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_dark_to_light_and_numbers_can_be_read_on_them() {
        assert_eq!((shade(0.0), shade(1.0)), (("#00224e".into(), "#fff"), ("#fee838".into(), "#000")));
        assert_eq!(shade(2.0), shade(1.0));
    }
}
