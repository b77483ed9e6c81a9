//! Text in aligned columns, with optional colours, and numbers for people.

use tombolo_report::clean;
pub(crate) use tombolo_report::{bytes, count};

/// Appearance of a cell on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Default appearance without colour.
    Plain,
    /// A heading or a key.
    Strong,
    /// Better than the baseline.
    Good,
    /// Worse than the baseline.
    Bad,
}

impl Look {
    /// Returns the select-graphic-rendition code. Source: ECMA-48, section 8.3.117.
    fn code(self) -> Option<u8> {
        match self {
            Look::Plain => None,
            Look::Strong => Some(1),
            Look::Good => Some(32),
            Look::Bad => Some(31),
        }
    }

    /// Returns `text` with this appearance.
    pub(crate) fn paint(self, text: &str, colours: bool) -> String {
        let text = clean(text);
        match self.code().filter(|_| colours) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text,
        }
    }
}

/// A table cell with text and appearance.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// Creates a cell with this appearance. Text from files may contain terminal control characters, which are removed.
    pub(crate) fn new(text: impl Into<String>, look: Look) -> Cell {
        Cell { text: clean(&text.into()), look }
    }

    /// Creates a cell with default appearance.
    pub(crate) fn plain(text: impl Into<String>) -> Cell {
        Cell::new(text, Look::Plain)
    }
}

/// Rows of cells; the first `labels` columns hold words and are left-aligned, the rest hold numbers and are
/// right-aligned.
pub(crate) struct Table {
    labels: usize,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without headings.
    pub(crate) fn new(labels: usize) -> Table {
        Table { labels, rows: Vec::new() }
    }

    /// Adds a row of headings at the top of the table.
    pub(crate) fn with_headings<'a>(mut self, headings: impl IntoIterator<Item = &'a str>) -> Table {
        self.rows.insert(0, headings.into_iter().map(|heading| Cell::new(heading, Look::Strong)).collect());
        self
    }

    /// Adds a row; missing cells at its end stay empty.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Formats the lines of the table, without blanks before each newline.
    pub(crate) fn render(&self, colours: bool) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        self.rows.iter().map(|row| self.line(row, &widths, colours)).collect()
    }

    fn line(&self, row: &[Cell], widths: &[usize], colours: bool) -> String {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let blanks = " ".repeat(widths[column] - cell.text.chars().count());
            let painted = cell.look.paint(&cell.text, colours);
            let gap = if column == 0 { "" } else { "  " };
            match column < self.labels {
                true => line.push_str(&format!("{gap}{painted}{blanks}")),
                false => line.push_str(&format!("{gap}{blanks}{painted}")),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// Formats `part / whole` in percent; a dash if `whole` is zero.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

/// Formats simulated or real time: `1.23 ms`.
pub(crate) fn seconds(value: f64) -> String {
    format!("{}s", small(value))
}

/// Formats a number with a unit prefix; the unit follows: `1.23 m`.
pub(crate) fn small(value: f64) -> String {
    let Unit { size, prefix, .. } = Unit::of(value);
    format!("{:.2} {prefix}", value / size)
}

/// A decimal fraction of a unit, common to several numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    size: f64,
    /// Prefix before the unit, for example `u`.
    pub(crate) prefix: &'static str,
    decimals: usize,
}

impl Unit {
    /// Selects the unit and the number of decimals for `value`.
    pub(crate) fn of(value: f64) -> Unit {
        const PREFIXES: [(f64, &str); 4] = [(1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n")];
        let (size, prefix) = PREFIXES.into_iter().find(|(size, _)| value >= *size).unwrap_or(PREFIXES[3]);
        Unit { size, prefix, decimals: if value >= 100.0 * size { 1 } else { 2 } }
    }

    /// Formats a number in this unit, with a fixed number of decimals.
    pub(crate) fn digits(self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(1).with_headings(["name", "speed"]);
        table.row(vec![Cell::plain("a"), Cell::new("1.5", Look::Good)]);
        table.row(vec![Cell::plain("longer")]);
        assert_eq!(table.render(false), "name    speed\na         1.5\nlonger\n");
        assert!(table.render(true).contains("  \x1b[32m1.5\x1b[0m\n"));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!((percent(1, 3), percent(1, 0)), ("33.3 %".into(), "-".into()));
        assert_eq!((seconds(0.0025), seconds(3e-9)), ("2.50 ms".into(), "3.00 ns".into()));
    }
}
