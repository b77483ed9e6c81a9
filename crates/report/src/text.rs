//! Renders documents as plain text for a terminal.

use crate::document::{Claim, ClaimKind, Document, FORETOLD, Figure, FigureRow, Verdict, by_kind};
use crate::number::{number, quantity};
use crate::page::column;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Minimum number of columns for readable output.
const NARROWEST: usize = 40;
/// Blanks between the columns of a table.
const GAP: usize = 2;

/// Formats `document` in lines with at most `width` columns.
pub(crate) fn text(document: &Document, width: usize) -> String {
    let mut page = Page { width: width.max(NARROWEST), lines: Vec::new() };
    page.heading(&document.title, '=');
    let readings = Some(&document.readings).filter(|readings| !readings.is_empty());
    let readings = readings.map(|readings| format!(", readings {readings}")).unwrap_or_default();
    page.words("", &format!("{}{readings}, scale {}, Tombolo {}", document.paper, document.scale, document.tombolo));
    page.claims(&document.claims);
    document.figures.iter().for_each(|figure| page.figure(figure));
    page.list("Failures", document.failures.iter().map(|failure| format!("{}: {}", failure.point, failure.error)));
    page.list("Notes", document.notes.iter().cloned());
    page.blank();
    page.words("", &format!("Again: {}", document.command));
    if let Some(provenance) = &document.provenance {
        let facts = provenance.facts().into_iter().map(|(what, value)| format!("{what}: {value}"));
        page.words("", &facts.collect::<Vec<_>>().join("; "));
    }
    page.lines.join("\n") + "\n"
}

/// Output lines collected for a document.
struct Page {
    width: usize,
    lines: Vec<String>,
}

impl Page {
    fn blank(&mut self) {
        self.lines.push(String::new());
    }

    fn line(&mut self, text: &str) {
        self.lines.push(text.trim_end().to_owned());
    }

    /// Adds a heading with an underline for the heading's longest line.
    fn heading(&mut self, text: &str, underline: char) {
        let before = self.lines.len();
        self.words("", text);
        let longest = self.lines[before..].iter().map(|line| line.width()).max().unwrap_or(0);
        self.line(&underline.to_string().repeat(longest));
    }

    /// Adds `text` wrapped at blanks, with `indent` before every line.
    fn words(&mut self, indent: &str, text: &str) {
        for line in wrapped(&clean(text), self.width - indent.width()) {
            self.line(&format!("{indent}{line}"));
        }
    }

    fn list(&mut self, heading: &str, items: impl Iterator<Item = String>) {
        let items: Vec<String> = items.collect();
        if items.is_empty() {
            return;
        }
        self.blank();
        self.heading(heading, '-');
        for item in items {
            let before = self.lines.len();
            self.words("  ", &item);
            self.lines[before].replace_range(..1, "-");
        }
    }

    fn claims(&mut self, claims: &[Claim]) {
        for (kind, claims) in by_kind(claims) {
            self.blank();
            self.heading(&format!("Claims: {}{}", kind.name().to_lowercase(), tally(kind, &claims)), '-');
            let head = ["verdict", "paper", "measured", "claim"].map(str::to_owned);
            let rows: Vec<[String; 4]> = std::iter::once(head).chain(claims.iter().map(|claim| cells(claim))).collect();
            let width = |cell: usize| rows.iter().map(|row| row[cell].width()).max().unwrap_or(0);
            let widths = [width(0), width(1), width(2)];
            self.claim(&rows[0], &widths, None);
            for (row, claim) in rows[1..].iter().zip(claims) {
                self.claim(row, &widths, Some(claim));
            }
        }
    }

    /// Adds a claim: its numbers, then its text on the right, or below if space is lacking; then the reasons for the
    /// verdict.
    fn claim(&mut self, cells: &[String; 4], widths: &[usize; 3], claim: Option<&Claim>) {
        let [verdict, paper, measured, words] = cells;
        let numbers = format!("{}{}{}", left(verdict, widths[0]), right(paper, widths[1]), right(measured, widths[2]));
        let numbers = format!("{}{}", numbers, " ".repeat(GAP));
        let beside = self.width.saturating_sub(numbers.width()) >= NARROWEST / 2;
        let indent = " ".repeat(if beside { numbers.width() } else { 2 * GAP });
        let before = self.lines.len();
        if !beside {
            self.line(&truncated(&numbers, self.width));
        }
        self.words(&indent, words);
        if beside {
            let rest = self.lines[before].get(indent.len()..).unwrap_or_default();
            self.lines[before] = numbers + rest;
        }
        let Some(claim) = claim else { return };
        if !claim.is_default() {
            self.words(&indent, &format!("reading: {}", claim.reading));
        }
        if claim.predicted.is_some() {
            self.words(&indent, &format!("predicted: {}", quantity(claim.predicted, &claim.unit)));
        }
        for repetition in claim.repetitions.iter().filter(|repetition| repetition.agrees == Some(false)) {
            let [measured, unchanged] =
                [repetition.measured, repetition.unchanged].map(|value| quantity(value, &claim.unit));
            self.words(&indent, &format!("differs: {} gives {measured}, unchanged {unchanged}", repetition.change));
        }
        if claim.foretold {
            self.words(&indent, FORETOLD);
        }
        if let Some(cause) = &claim.cause {
            self.words(&indent, &format!("cause: {cause}"));
        }
    }

    fn figure(&mut self, figure: &Figure) {
        self.blank();
        self.heading(&figure.title, '-');
        if !figure.chart.y.is_empty() {
            let unit = if figure.chart.unit.is_empty() { String::new() } else { format!(" ({})", figure.chart.unit) };
            let each = match &figure.chart.series[..] {
                "" => String::new(),
                series => format!(", a column for each {series}"),
            };
            self.words("", &format!("{}{unit} over {}{each}", column(&figure.chart.y), column(&figure.chart.x)));
        }
        if !figure.has_numbers() {
            self.line("No point of this figure has a result.");
            return;
        }
        self.numbers(figure);
        if !figure.left_out.is_empty() {
            self.words("  ", &figure.left_out);
        }
        for stated in &figure.published {
            let value = quantity(Some(stated.value), &figure.chart.unit);
            let place = format!("{}, {}", stated.row, column(&stated.column));
            self.words("  ", &format!("Paper: {place}: {value} ({})", stated.source));
        }
    }

    /// Adds the table of a figure, split by width into blocks of columns; the blocks are stacked vertically.
    fn numbers(&mut self, figure: &Figure) {
        let heads: Vec<String> = figure.columns.iter().map(|head| clean(&column(head))).collect();
        let most = self.width / 3;
        let labels = figure.rows.iter().map(|row| clean(&row.label)).chain(heads.first().cloned());
        let label = labels.map(|label| label.width()).max().unwrap_or(0).min(most);
        let width = |index: usize| {
            let cells = figure.rows.iter().map(|row| number(row.value(index)).width());
            cells.chain([heads[index + 1].width().min(most)]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..figure.series().len()).map(width).collect();
        for block in blocks(&widths, self.width - label) {
            let head = block.iter().map(|index| right(&heads[index + 1], widths[*index])).collect::<String>();
            self.line(&format!("{}{head}", left(heads.first().map_or("", String::as_str), label)));
            figure.rows.iter().for_each(|row| self.row(row, label, &block, &widths));
        }
    }

    fn row(&mut self, row: &FigureRow, label: usize, block: &[usize], widths: &[usize]) {
        let cells = block.iter().map(|index| right(&number(row.value(*index)), widths[*index])).collect::<String>();
        self.line(&format!("{}{cells}", left(&clean(&row.label), label)));
    }
}

/// Counts the claims of a kind that hold, under the default reading only, and the claims under alternative readings.
fn tally(kind: ClaimKind, claims: &[&Claim]) -> String {
    let judged: Vec<&&Claim> = claims.iter().filter(|claim| claim.is_default()).collect();
    let held = judged.iter().filter(|claim| claim.verdict == Verdict::Holds).count();
    let others = claims.len() - judged.len();
    let of_default =
        (kind != ClaimKind::Magnitude && !judged.is_empty()).then(|| format!(", {held} of {} hold", judged.len()));
    let of_others = (others > 0).then(|| format!(", {others} of other readings"));
    of_default.into_iter().chain(of_others).collect()
}

fn cells(claim: &Claim) -> [String; 4] {
    [
        claim.verdict.name().to_owned(),
        clean(&quantity(claim.paper, &claim.unit)),
        clean(&quantity(claim.measured, &claim.unit)),
        claim.text.clone(),
    ]
}

/// Groups columns into runs that fit into `room` each; a block has at least one column.
fn blocks(widths: &[usize], room: usize) -> Vec<Vec<usize>> {
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut used = 0;
    for (index, width) in widths.iter().enumerate() {
        used += width + GAP;
        match blocks.last_mut() {
            Some(block) if used <= room => block.push(index),
            _ => {
                blocks.push(vec![index]);
                used = width + GAP;
            }
        }
    }
    blocks
}

/// Returns `text` on a single line, without terminal control characters.
pub fn clean(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns `text` left-aligned in `width` columns.
fn left(text: &str, width: usize) -> String {
    let text = truncated(text, width);
    format!("{text}{}", " ".repeat(width - text.width()))
}

/// Returns `text` right-aligned in `width` columns, after the gap.
fn right(text: &str, width: usize) -> String {
    let text = truncated(text, width);
    format!("{}{text}", " ".repeat(GAP + width - text.width()))
}

/// Returns the longest prefix of `text` that fits, with an ellipsis if text is missing.
fn truncated(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        // The width is measured over the whole string, because a following character may widen the previous character.
        if kept.width() + 1 > width {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// Wraps `text` at blanks into lines with at most `width` columns; a longer word is broken at the end of the line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() && word.width() <= width {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else if word.width() <= width {
            lines.push(word.to_owned());
        } else {
            broken(word, width, &mut lines);
        }
    }
    lines
}

/// Adds a word longer than a line.
fn broken(word: &str, width: usize, lines: &mut Vec<String>) {
    if lines.last().is_some_and(|line| !line.is_empty()) {
        lines.push(String::new());
    }
    for c in word.chars() {
        let line = lines.last_mut().expect("never empty");
        if line.width() + c.width().unwrap_or(0) > width {
            lines.push(c.to_string());
        } else {
            line.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_broken_at_blanks_and_long_ones_anywhere() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a abcdefgh b", 3), ["a", "abc", "def", "gh", "b"].map(str::to_owned)[..]);
        assert_eq!(wrapped("", 7), [""]);
    }

    #[test]
    fn what_steers_a_terminal_is_left_out() {
        assert_eq!(clean("a\x1b[31mred\r\n\tb\u{9b}c"), "a [31mred b c");
    }

    #[test]
    fn what_is_cut_fits_whatever_follows_widens_it() {
        for text in ["plain letters", "abc\u{2764}\u{fe0f}def", "\u{2764}\u{fe0f}\u{2764}\u{fe0f}\u{2764}\u{fe0f}"] {
            for width in 1..=text.width() {
                assert!(truncated(text, width).width() <= width, "{text} in {width}");
                assert_eq!(left(text, width).width(), width, "{text} in {width}");
            }
        }
    }

    #[test]
    fn a_block_has_a_column_however_wide() {
        assert_eq!(blocks(&[5, 5, 50, 5], 14), [vec![0, 1], vec![2], vec![3]]);
    }
}
