//! Legend above the chart.

use super::canvas::{Anchor, Canvas, line, rectangle, width_of};
use super::looks::{colour, dashes, diamond, diamond_paint, fill, paint, symbol};
use super::sheet::Sheet;

/// Mark used to draw a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeriesMark {
    Bars,
    Lines,
    Points,
}

/// Legend entry for values from the paper.
const STATED: &str = "stated by the paper";

/// Draws the legend from `left`, at most `width` wide; returns its height.
pub(super) fn draw(canvas: &mut Canvas, sheet: &Sheet<'_>, drawn: SeriesMark, left: f64, width: f64) -> f64 {
    let mut names: Vec<(Option<usize>, String)> =
        sheet.series().map(|series| (Some(sheet.look(series)), sheet.name(series))).collect();
    if sheet.is_stated() {
        names.push((None, STATED.to_owned()));
    }
    if names.len() < 2 {
        return 0.0;
    }
    let (font, height) = (sheet.font, sheet.font * 1.5);
    let (swatch, gap) = (1.5 * font, 0.4 * font);
    let (mut x, mut y) = (left, 0.0);
    let family = &sheet.figure.chart.series;
    if !family.is_empty() {
        canvas.words((x, y + 1.1 * font), Anchor::Start, 0.0, "", &format!("{family}:"));
        x += width_of(family, font) + font;
    }
    for (look, name) in names {
        let room = swatch + gap + width_of(&name, font);
        if x > left && x + room + 0.3 * font > left + width {
            (x, y) = (left, y + height);
        }
        sample(canvas, sheet, drawn, look, [x, y + 0.25 * font, swatch, font]);
        canvas.words((x + swatch + gap, y + 1.1 * font), Anchor::Start, 0.0, "", &name);
        x += room + 1.2 * font;
    }
    y + height + 0.4 * font
}

/// Draws a sample for a look in a box given by x, y, width and height; without a look, the mark for values from the
/// paper.
fn sample(
    canvas: &mut Canvas,
    sheet: &Sheet<'_>,
    drawn: SeriesMark,
    look: Option<usize>,
    [x, y, width, height]: [f64; 4],
) {
    let (surface, middle) = (sheet.surface, (x + width / 2.0, y + height / 2.0));
    let r = 0.32 * sheet.font;
    let Some(look) = look else {
        canvas.path(&diamond(middle.0, middle.1, r), &diamond_paint(surface, surface.ink()));
        return;
    };
    match drawn {
        SeriesMark::Bars => canvas.path(&rectangle(x, y, width, height), &format!("fill=\"{}\"", fill(surface, look))),
        SeriesMark::Lines | SeriesMark::Points => {
            if drawn == SeriesMark::Lines {
                let stroke = format!("stroke=\"{}\" stroke-width=\"1.6\"{}", colour(surface, look), dashes(look));
                canvas.path(&line((x, middle.1), (x + width, middle.1)), &stroke);
            }
            canvas.path(&symbol(look, middle.0, middle.1, r), &paint(surface, look));
        }
    }
}
