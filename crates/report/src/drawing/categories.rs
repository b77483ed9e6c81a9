//! Row names along the lower edge, rotated if wider than their slot.

use super::canvas::{Anchor, Canvas, width_of};
use super::sheet::Sheet;

/// Position of a row along the edge: the row, and its middle.
pub(super) type RowPosition = (usize, f64);

/// Layout of the names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NameLayout {
    /// Rotation in degrees.
    pub(super) turn: f64,
    /// Height required below the edge.
    pub(super) height: f64,
}

/// Factor by which bold names are wider. Source: the two weights of DejaVu Sans.
const BOLD: f64 = 1.12;

fn width_of_name(sheet: &Sheet<'_>, row: usize) -> f64 {
    width_of(&sheet.label(row), sheet.font) * if sheet.figure.rows[row].summary { BOLD } else { 1.0 }
}

impl NameLayout {
    /// Computes the layout of the names of `rows`, each in a slot with the given `width`.
    pub(super) fn of(sheet: &Sheet<'_>, rows: &[usize], width: f64) -> NameLayout {
        let font = sheet.font;
        let longest = rows.iter().map(|row| width_of_name(sheet, *row)).fold(0.0, f64::max);
        let turn: f64 = match width {
            _ if longest + 0.5 * font <= width => 0.0,
            // Rotated by half a right angle, adjacent text lines are closer to each other.
            _ if width * 0.71 >= 1.05 * font => 45.0,
            _ => 90.0,
        };
        let height = longest * turn.to_radians().sin() + 0.8 * font * turn.to_radians().cos() + 0.7 * font;
        NameLayout { turn, height }
    }

    /// Returns the room required by the names of `rows`, each in a slot with the given `width`, on the left of the
    /// first slot.
    pub(super) fn before(self, sheet: &Sheet<'_>, rows: &[usize], width: f64) -> f64 {
        let reach = |(place, row): (usize, &usize)| {
            let name = width_of_name(sheet, *row);
            let reach = if self.turn == 0.0 { name / 2.0 } else { name * self.turn.to_radians().cos() };
            reach - (place as f64 + 0.5) * width + 0.3 * sheet.font
        };
        rows.iter().enumerate().map(reach).fold(0.0, f64::max)
    }

    /// Draws the row names below an edge at `y`, from left to right; a name that would overlap the previous name is
    /// omitted.
    pub(super) fn draw(self, canvas: &mut Canvas, sheet: &Sheet<'_>, places: &[RowPosition], y: f64) {
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
