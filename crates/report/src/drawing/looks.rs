//! Looks distinguish series by colour, hatch, dash and symbol. Each feature repeats the distinction, and readers need
//! no particular feature.

use super::canvas::{at, rectangle};
use super::sheet::Surface;
use std::fmt::Write;

/// Number of colours; equal to the number of hatches, dashes and symbols.
pub(crate) const KINDS: usize = 8;

/// Number of different looks; a series beyond this number repeats an earlier look.
pub(crate) const LOOKS: usize = KINDS * KINDS;

/// Returns the colour index of a look. The first looks all have distinct colours.
pub(crate) fn hue(look: usize) -> usize {
    look % KINDS
}

/// Returns the index of a look's hatch, dash and symbol. Looks with equal colours have different marks.
pub(crate) fn mark(look: usize) -> usize {
    (look + look / KINDS) % KINDS
}

/// Okabe and Ito's palette, distinguishable with any colour vision; yellow, faint on white, comes last.
pub(crate) const COLOURS: [&str; KINDS] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#6b7280", "#d8c800"];

/// The palette's colours by their names in the page style.
const NAMED: [&str; KINDS] = [
    "var(--series-0)",
    "var(--series-1)",
    "var(--series-2)",
    "var(--series-3)",
    "var(--series-4)",
    "var(--series-5)",
    "var(--series-6)",
    "var(--series-7)",
];

/// Dashes for lines, in line widths.
const DASHES: [&str; KINDS] = ["", "6 3", "2 2", "8 3 2 3", "11 3", "4 2", "6 2 2 2 2 2", "1 3"];

/// A hatch tile: size in pixels, rotation in degrees, and the drawing.
struct Hatch {
    size: f64,
    turn: f64,
    stroke: &'static str,
    fill: &'static str,
}

const HATCHES: [Hatch; KINDS] = [
    Hatch { size: 0.0, turn: 0.0, stroke: "", fill: "" },
    Hatch { size: 4.0, turn: 45.0, stroke: "M1 0v4", fill: "" },
    Hatch { size: 4.0, turn: 45.0, stroke: "", fill: "M1 1h1.6v1.6h-1.6z" },
    Hatch { size: 3.6, turn: 0.0, stroke: "M0 1h3.6", fill: "" },
    Hatch { size: 4.0, turn: -45.0, stroke: "M1 0v4", fill: "" },
    Hatch { size: 5.0, turn: 0.0, stroke: "", fill: "M0 0h2.5v2.5h-2.5zM2.5 2.5h2.5v2.5h-2.5z" },
    Hatch { size: 3.2, turn: 0.0, stroke: "M1.6 0v3.2", fill: "" },
    Hatch { size: 5.0, turn: 45.0, stroke: "M0 1h5M1 0v5", fill: "" },
];

/// Returns a look's colour for the given surface.
pub(super) fn colour(surface: Surface, look: usize) -> &'static str {
    match surface {
        Surface::Paper => COLOURS[hue(look)],
        Surface::Page => NAMED[hue(look)],
    }
}

/// Returns the fill of a look's bars.
pub(super) fn fill(surface: Surface, look: usize) -> String {
    if HATCHES[mark(look)].size == 0.0 { colour(surface, look).to_owned() } else { format!("url(#hatch-{look})") }
}

/// Returns the hatch patterns of these looks, referenced with `url(#hatch-…)` in a drawing.
pub(crate) fn patterns(surface: Surface, looks: &[usize]) -> String {
    let mut defs = String::new();
    for look in looks.iter().filter(|look| HATCHES[mark(**look)].size > 0.0) {
        let Hatch { size, turn, stroke, fill } = &HATCHES[mark(*look)];
        let size = at(*size);
        let ground = format!("<path d=\"{}\" fill=\"{}\"/>", rectangle(0.0, 0.0, 9.0, 9.0), colour(surface, *look));
        let card = surface.card();
        let hatch = match (stroke.is_empty(), fill.is_empty()) {
            (false, _) => format!("<path d=\"{stroke}\" stroke=\"{card}\" stroke-width=\"1\"/>"),
            (true, _) => format!("<path d=\"{fill}\" fill=\"{card}\"/>"),
        };
        write!(
            defs,
            "<pattern id=\"hatch-{look}\" width=\"{size}\" height=\"{size}\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate({})\">{ground}{hatch}</pattern>",
            at(*turn)
        )
        .expect("a string takes all");
    }
    if defs.is_empty() { defs } else { format!("<defs>{defs}</defs>") }
}

/// Returns the attribute for a look's dashes.
pub(super) fn dashes(look: usize) -> String {
    if DASHES[mark(look)].is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", DASHES[mark(look)]) }
}

/// Returns the path of a look's symbol centred on a position, with half-width `r`.
pub(super) fn symbol(look: usize, x: f64, y: f64, r: f64) -> String {
    let square = || rectangle(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
    let triangle = |down: f64| {
        format!(
            "M{} {}L{} {}H{}z",
            at(x),
            at(y - 1.1 * r * down),
            at(x + 1.1 * r),
            at(y + 0.9 * r * down),
            at(x - 1.1 * r)
        )
    };
    match mark(look) {
        0 | 5 => format!(
            "M{} {}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 {} 0z",
            at(x - r),
            at(y),
            at(2.0 * r),
            at(-2.0 * r),
            r = at(r)
        ),
        1 | 6 => square(),
        2 | 7 => triangle(1.0),
        3 => triangle(-1.0),
        _ => {
            let (arm, thick) = (1.1 * r, 0.4 * r);
            let (x, y) = (x - thick, y - arm);
            let (a, b) = (at(arm - thick), at(2.0 * thick));
            format!("M{} {}h{b}v{a}h{a}v{b}h-{a}v{a}h-{b}v-{a}h-{a}v-{b}h{a}z", at(x), at(y))
        }
    }
}

/// Returns the paint attributes for a look's symbol: filled, or hollow with a coloured outline.
pub(super) fn paint(surface: Surface, look: usize) -> String {
    let colour = colour(surface, look);
    if mark(look) > 4 {
        format!("fill=\"{}\" stroke=\"{colour}\" stroke-width=\"1.6\"", surface.card())
    } else {
        format!("fill=\"{colour}\"")
    }
}

/// Returns the path of the mark for values from the paper: a diamond.
pub(super) fn diamond(x: f64, y: f64, r: f64) -> String {
    format!("M{} {}l{r} {h}l-{r} {h}l-{r} -{h}z", at(x), at(y - 1.3 * r), r = at(r), h = at(1.3 * r))
}

/// Returns the paint attributes for the diamond: hollow.
pub(super) fn diamond_paint(surface: Surface, stroke: &str) -> String {
    format!("fill=\"{}\" stroke=\"{stroke}\" stroke-width=\"1.2\"", surface.card())
}

/// Returns the path of a whisker from `low` to `high` at `x`, with end bars of half-width `r`.
pub(super) fn whisker(x: f64, low: f64, high: f64, r: f64) -> String {
    let (left, width) = (at(x - r), at(2.0 * r));
    format!("M{left} {}h{width}M{left} {}h{width}M{} {}V{}", at(low), at(high), at(x), at(low), at(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_looks_are_alike() {
        let pairs: BTreeSet<(usize, usize)> = (0..LOOKS).map(|look| (hue(look), mark(look))).collect();
        assert_eq!(pairs.len(), LOOKS);
        assert!((0..KINDS).all(|look| (hue(look), mark(look)) == (look, look)));
    }
}
