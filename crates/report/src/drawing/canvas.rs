//! SVG as text: shapes and words, encoded in few bytes.

use std::fmt::Write;

/// Formats a coordinate in CSS pixels, rounded to a tenth.
pub(super) fn at(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths == 0.0 { "0".to_owned() } else { tenths.to_string() }
}

/// Escapes text for an element or an attribute. Characters forbidden in XML become a space.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' | '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// Factor by which letters may be wider than in Helvetica. Source: DejaVu Sans, the substitute on many systems.
const WIDER: f64 = 1.12;

/// Returns the width of `text` in CSS pixels, in a sans-serif font with size `font`. Source: advances in Helvetica, in
/// classes.
pub(super) fn width_of(text: &str, font: f64) -> f64 {
    let advance = |c: char| match c {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' | 'I' | ' ' | '/' | '(' | ')' | '[' | ']' | 'f'
        | 't' => 0.29,
        'r' | '-' | '"' | '*' | '†' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '–' => 0.85,
        'A'..='Z' | '×' | '÷' | '±' | '+' | '=' | '<' | '>' => 0.68,
        c if c.is_ascii() => 0.56,
        c => 0.56 * unicode_width::UnicodeWidthChar::width(c).unwrap_or(1).max(1) as f64,
    };
    text.chars().map(advance).sum::<f64>() * font * WIDER
}

/// Returns `text`, truncated to `most` characters with an ellipsis.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Text alignment relative to the given position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Link target and tooltip of a shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotation {
    pub(super) href: Option<String>,
    pub(super) title: Option<String>,
}

/// Shapes and words in drawing order.
#[derive(Default)]
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    /// Returns the drawn SVG text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes all");
    }

    /// Draws a shape group with common `attributes`.
    pub(super) fn group(&mut self, attributes: &str, draw: impl FnOnce(&mut Canvas)) {
        let mut inside = Canvas::default();
        draw(&mut inside);
        if !inside.text.is_empty() {
            self.put(format_args!("<g {attributes}>{}</g>", inside.text));
        }
    }

    /// Draws a path from path data.
    pub(super) fn path(&mut self, data: &str, attributes: &str) {
        let gap = if attributes.is_empty() { "" } else { " " };
        self.put(format_args!("<path d=\"{data}\"{gap}{attributes}/>"));
    }

    /// Draws a path with a link or a tooltip.
    pub(super) fn mark(&mut self, data: &str, attributes: &str, about: &Annotation) {
        let gap = if attributes.is_empty() { "" } else { " " };
        let end = match &about.title {
            Some(title) => format!("><title>{}</title></path>", escaped(title)),
            None => "/>".to_owned(),
        };
        match &about.href {
            Some(href) => {
                self.put(format_args!("<a href=\"{}\"><path d=\"{data}\"{gap}{attributes}{end}</a>", escaped(href)));
            }
            None => self.put(format_args!("<path d=\"{data}\"{gap}{attributes}{end}")),
        }
    }

    /// Draws words. The base line starts, is centred or ends at a position, rotated by `turn` degrees around the
    /// position.
    pub(super) fn words(&mut self, (x, y): (f64, f64), anchor: Anchor, turn: f64, attributes: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (at(x), at(y));
        let turn = if turn == 0.0 { String::new() } else { format!(" transform=\"rotate({} {x} {y})\"", at(turn)) };
        let gap = if attributes.is_empty() { "" } else { " " };
        self.put(format_args!("<text x=\"{x}\" y=\"{y}\"{anchor}{turn}{gap}{attributes}>{}</text>", escaped(text)));
    }
}

/// Returns the path for a rectangle.
pub(super) fn rectangle(x: f64, y: f64, width: f64, height: f64) -> String {
    format!("M{} {}h{}v{}h{}z", at(x), at(y), at(width), at(height), at(-width))
}

/// Returns the path for a line.
pub(super) fn line(from: (f64, f64), to: (f64, f64)) -> String {
    format!("M{} {}L{} {}", at(from.0), at(from.1), at(to.0), at(to.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_a_tenth_and_no_trailing_zero() {
        assert_eq!([12.0, 12.34, -0.01, 0.05].map(at), ["12", "12.3", "0", "0.1"]);
    }

    #[test]
    fn text_ends_no_element_and_holds_nothing_that_xml_forbids() {
        assert_eq!(escaped("<a b=\"c\">&\u{1}\u{fffe}é"), "&lt;a b=&quot;c&quot;&gt;&amp;  é");
    }

    #[test]
    fn long_text_is_cut_with_an_ellipsis() {
        assert_eq!((cut("pathfinder", 5).as_str(), cut("bfs", 3).as_str()), ("path…", "bfs"));
    }

    #[test]
    fn a_shape_leads_and_says() {
        let mut canvas = Canvas::default();
        canvas.mark("M0 0", "", &Annotation { href: Some("#run-1".into()), title: Some("a < b".into()) });
        assert_eq!(canvas.into_text(), "<a href=\"#run-1\"><path d=\"M0 0\"><title>a &lt; b</title></path></a>");
    }
}
