//! Position of a plot: its edges, the grid with the numbers along its left edge, and the reference line.

use super::axis::ChartAxis;
use super::canvas::{Anchor, Canvas, line, width_of};
use super::sheet::Sheet;

/// Rectangle of a plot, in CSS pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Frame {
    pub(super) fn right(self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(self) -> f64 {
        self.top + self.height
    }

    /// Returns the vertical position of a number; `None` if the axis cannot show the number.
    pub(super) fn y(self, axis: &ChartAxis, value: f64) -> Option<f64> {
        Some(self.bottom() - axis.share(value)? * self.height)
    }

    /// Returns the horizontal position of a number; `None` if the axis cannot show the number.
    pub(super) fn x(self, axis: &ChartAxis, value: f64) -> Option<f64> {
        Some(self.left + axis.share(value)? * self.width)
    }

    /// Draws the grid, and the numbers along the left edge.
    pub(super) fn draw_numbers(self, canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &ChartAxis) {
        let heights = || axis.ticks.iter().filter_map(|tick| Some((*tick, self.y(axis, *tick)?)));
        let grid: String = heights().map(|(_, y)| line((self.left, y), (self.right(), y))).collect();
        canvas.path(&grid, &format!("stroke=\"{}\" stroke-width=\".7\"", sheet.surface.rule()));
        canvas.group(&format!("fill=\"{}\"", sheet.surface.soft()), |canvas| {
            for (tick, y) in heights() {
                let place = (self.left - 0.4 * sheet.font, y + 0.35 * sheet.font);
                canvas.words(place, Anchor::End, 0.0, "", &axis.label(tick));
            }
        });
    }

    /// Draws the left and the lower edge, and a dashed line at the reference.
    pub(super) fn draw_edges(self, canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &ChartAxis) {
        let ink = sheet.surface.ink();
        let zero = self.y(axis, 0.0).unwrap_or(self.bottom());
        let edges =
            line((self.left, self.top), (self.left, self.bottom())) + &line((self.left, zero), (self.right(), zero));
        canvas.path(&edges, &format!("stroke=\"{ink}\" stroke-width=\".8\" fill=\"none\""));
        let inside = |value: &f64| (axis.low..=axis.high).contains(value);
        let reference = sheet.figure.chart.reference.filter(inside).and_then(|value| self.y(axis, value));
        if let Some(y) = reference {
            let dashed = format!("stroke=\"{ink}\" stroke-width=\"1\" stroke-dasharray=\"5 3\"");
            canvas.path(&line((self.left, y), (self.right(), y)), &dashed);
        }
    }

    /// Draws the numeric axis title, upwards along the middle.
    pub(super) fn draw_title(self, canvas: &mut Canvas, sheet: &Sheet<'_>, title: &str) {
        for (index, line) in lines(sheet, title).iter().enumerate() {
            let place = ((0.95 + 1.15 * index as f64) * sheet.font, self.top + self.height / 2.0);
            canvas.words(place, Anchor::Middle, -90.0, "", line);
        }
    }

    /// Draws the title of the axis along the lower edge, with its base line at `y`.
    pub(super) fn draw_foot(self, canvas: &mut Canvas, title: &str, y: f64) {
        canvas.words((self.left + self.width / 2.0, y), Anchor::Middle, 0.0, "", title);
    }
}

/// Splits a title into lines no longer than the height of a plot, except for longer single words.
fn lines(sheet: &Sheet<'_>, title: &str) -> Vec<String> {
    let most = sheet.surface.heights()[0];
    let mut lines: Vec<String> = vec![String::new()];
    for word in title.split(' ') {
        let last = lines.last_mut().expect("there is a first");
        let longer = format!("{last} {word}");
        if last.is_empty() {
            word.clone_into(last);
        } else if width_of(&longer, sheet.font) <= most {
            *last = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Returns the room required on the left by the axis numbers and the axis title.
pub(super) fn margin(sheet: &Sheet<'_>, axis: &ChartAxis, title: &str) -> f64 {
    let labels = axis.ticks.iter().map(|tick| width_of(&axis.label(*tick), sheet.font));
    (0.35 + 1.15 * lines(sheet, title).len() as f64 + 0.6) * sheet.font + labels.fold(0.0, f64::max)
}
