//! Names of rows along the lower edge, turned where they are wider than their place.

use super::canvas::{Anchor, Canvas, width_of};
use super::sheet::Sheet;

/// A row's place along the edge: the row, and its middle.
pub(super) type Place = (usize, f64);

/// How the names stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Names {
    /// Degrees by which they are turned.
    pub(super) turn: f64,
    /// Room below the edge.
    pub(super) height: f64,
}

/// Letters of bold names are wider by this factor. Source: the two weights of DejaVu Sans.
const BOLD: f64 = 1.12;

fn width_of_name(sheet: &Sheet<'_>, row: usize) -> f64 {
    width_of(&sheet.label(row), sheet.font) * if sheet.figure.rows[row].summary { BOLD } else { 1.0 }
}

impl Names {
    /// The names of `rows`, each in a place `width` wide.
    pub(super) fn of(sheet: &Sheet<'_>, rows: &[usize], width: f64) -> Names {
        let font = sheet.font;
        let longest = rows.iter().map(|row| width_of_name(sheet, *row)).fold(0.0, f64::max);
        let turn: f64 = match width {
            _ if longest + 0.5 * font <= width => 0.0,
            // Turned by half a right angle, lines stand apart by less.
            _ if width * 0.71 >= 1.05 * font => 45.0,
            _ => 90.0,
        };
        let height = longest * turn.to_radians().sin() + 0.8 * font * turn.to_radians().cos() + 0.7 * font;
        Names { turn, height }
    }

    /// Room that the names of `rows`, each in a place `width` wide, take on the left of the first place.
    pub(super) fn before(self, sheet: &Sheet<'_>, rows: &[usize], width: f64) -> f64 {
        let reach = |(place, row): (usize, &usize)| {
            let name = width_of_name(sheet, *row);
            let reach = if self.turn == 0.0 { name / 2.0 } else { name * self.turn.to_radians().cos() };
            reach - (place as f64 + 0.5) * width + 0.3 * sheet.font
        };
        rows.iter().enumerate().map(reach).fold(0.0, f64::max)
    }

    /// Draws the names of rows below an edge at `y`, from left to right; a name without room beside the one before is left out.
    pub(super) fn draw(self, canvas: &mut Canvas, sheet: &Sheet<'_>, places: &[Place], y: f64) {
        let font = sheet.font;
        let mut last = f64::NEG_INFINITY;
        for (row, x) in places {
            if x - last < font - 1e-9 {
                continue;
            }
            last = *x;
            let weight = if sheet.figure.rows[*row].summary { "font-weight=\"bold\"" } else { "" };
            let (place, anchor) = match self.turn {
                0.0 => ((*x, y + 1.2 * font), Anchor::Middle),
                90.0 => ((*x + 0.35 * font, y + 0.4 * font), Anchor::End),
                _ => ((*x + 0.3 * font, y + 0.9 * font), Anchor::End),
            };
            canvas.words(place, anchor, -self.turn, weight, &sheet.label(*row));
        }
    }
}
