//! Lines of a text file, with line numbers and bounded length.

use super::{Arc, FREE_NODES, Graph, GraphError, LIMIT, NODES_PER_EDGE};
use std::io::{BufRead, Read};
use std::str::FromStr;

/// Length limit for a line outside comments. Source: assumed; MatrixMarket allows 1024 characters.
const LONGEST: u64 = 4096;
/// Byte order mark, written by some editors at the start of UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Line-by-line reader that keeps the latest line.
pub(super) struct LineReader<R> {
    file: String,
    reader: R,
    /// First character of a comment line.
    comment: char,
    /// Length limit for a line outside comments, in bytes.
    longest: u64,
    bytes: Vec<u8>,
    /// The latest line, decoded from UTF-8, or else from Latin-1.
    text: String,
    number: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(file: &str, reader: R, comment: char) -> LineReader<R> {
        LineReader {
            file: file.to_owned(),
            reader,
            comment,
            longest: LONGEST,
            bytes: Vec::new(),
            text: String::new(),
            number: 0,
        }
    }

    /// The reader, for lines of at most `longest` bytes.
    pub(super) fn with_longest(self, longest: u64) -> LineReader<R> {
        LineReader { longest, ..self }
    }

    /// An error located at the latest line.
    pub(super) fn error(&self, message: impl Into<String>) -> GraphError {
        GraphError { file: self.file.clone(), line: self.number, message: message.into() }
    }

    /// Name of the file.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Line number for the latest line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Moves to the next line; returns false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, GraphError> {
        self.bytes.clear();
        self.number += 1;
        let read = self.reader.by_ref().take(self.longest).read_until(b'\n', &mut self.bytes);
        let length = read.map_err(|error| self.error(format!("cannot be read: {error}")))?;
        if self.number == 1 {
            self.strip_mark()?;
        }
        self.text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.trim().to_owned(),
            Err(_) => self.bytes.iter().map(|byte| char::from(*byte)).collect::<String>().trim().to_owned(),
        };
        if length as u64 == self.longest && self.bytes.last() != Some(&b'\n') {
            self.skip_rest()?;
        }
        Ok(length > 0)
    }

    /// Drops a UTF-8 byte order mark, and reports a file in another encoding.
    fn strip_mark(&mut self) -> Result<(), GraphError> {
        if self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        if self.bytes.starts_with(b"\xff\xfe") || self.bytes.starts_with(b"\xfe\xff") {
            return Err(self.error("text in UTF-16: expected ASCII, UTF-8 or Latin-1"));
        }
        if self.bytes.contains(&0) {
            return Err(self.error("a binary file: expected lines of text"));
        }
        Ok(())
    }

    /// Skips the rest of an overlong line if the line is a comment.
    fn skip_rest(&mut self) -> Result<(), GraphError> {
        if !self.text.starts_with(self.comment) {
            return Err(self.error(format!("a line longer than {} bytes", self.longest)));
        }
        self.reader.skip_until(b'\n').map(drop).map_err(|error| self.error(format!("cannot be read: {error}")))
    }

    /// The latest line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True if the latest line is empty or a comment.
    pub(super) fn is_comment(&self) -> bool {
        self.text.is_empty() || self.text.starts_with(self.comment)
    }

    /// Splits the latest line into exactly `N` fields; otherwise returns an error with `expected`.
    pub(super) fn fields<const N: usize>(&self, expected: &str) -> Result<[&str; N], GraphError> {
        let mut words = self.text.split_ascii_whitespace();
        let mut fields = [""; N];
        for field in &mut fields {
            *field = words.next().ok_or_else(|| self.unexpected(expected))?;
        }
        if words.next().is_some() { Err(self.unexpected(expected)) } else { Ok(fields) }
    }

    /// Parses an integer field.
    pub(super) fn integer<T: FromStr>(&self, field: &str, expected: &str) -> Result<T, GraphError> {
        field.parse().map_err(|_| self.unexpected(expected))
    }

    /// Parses a real-number field.
    pub(super) fn real(&self, field: &str, expected: &str) -> Result<f64, GraphError> {
        real(field).ok_or_else(|| self.unexpected(expected))
    }

    /// An error that shows the latest line and the expected content.
    pub(super) fn unexpected(&self, expected: &str) -> GraphError {
        let shown: String = self.text.chars().take(60).collect();
        self.error(format!("`{shown}`: expected {expected}"))
    }

    /// Parses a node number from 1 to `nodes` and returns it counted from 0.
    pub(super) fn node(&self, field: &str, nodes: u64, expected: &str) -> Result<u32, GraphError> {
        let node: u64 = self.integer(field, expected)?;
        if !(1..=nodes).contains(&node) {
            return Err(self.error(format!("node {node} is outside 1 to {nodes}")));
        }
        Ok((node - 1) as u32)
    }

    /// Parses a number of nodes or arcs small enough for kernel indices.
    pub(super) fn size(&self, field: &str, expected: &str) -> Result<u64, GraphError> {
        let size: u64 = self.integer(field, expected)?;
        if size > LIMIT / 2 {
            return Err(self.error(format!("{size} exceeds the largest graph of {} nodes or edges", LIMIT / 2)));
        }
        Ok(size)
    }

    /// Checks the sizes claimed by a header.
    pub(super) fn sizes(&self, nodes: u64, arcs: u64) -> Result<(u64, u64), GraphError> {
        let most = FREE_NODES + NODES_PER_EDGE * arcs;
        if nodes == 0 || nodes > most {
            return Err(self.error(format!("{nodes} nodes for {arcs} edges: expected 1 to {most}")));
        }
        Ok((nodes, arcs))
    }

    /// Builds the graph from a whole file, after checking the arc count against the header.
    pub(super) fn graph(&self, nodes: u64, arcs: u64, found: &[Arc]) -> Result<Graph, GraphError> {
        if found.len() as u64 != arcs {
            return Err(self.error(format!("the file has {} entries, its header says {arcs}", found.len())));
        }
        Ok(Graph::new(nodes as u32, found))
    }
}

/// Parses a real number in C or Fortran notation: `1.5`, `1e3`, `1.0D+00`, `1.0-100`.
fn real(field: &str) -> Option<f64> {
    let field = field.replace(['d', 'D'], "e");
    // Fortran omits the letter before an exponent with three digits.
    let sign =
        field.rfind(['+', '-']).filter(|at| field[..*at].ends_with(|last: char| last.is_ascii_digit() || last == '.'));
    match sign {
        Some(at) => format!("{}e{}", &field[..at], &field[at..]).parse().ok(),
        None => field.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_and_fortran_write_them() {
        for (field, value) in [
            ("1.5", 1.5),
            ("+2", 2.0),
            (".5", 0.5),
            ("-3.", -3.0),
            ("1E3", 1e3),
            ("1.0D+00", 1.0),
            ("-2.5d-01", -0.25),
            ("1.0-100", 1e-100),
            ("1.+2", 100.0),
        ] {
            assert_eq!(real(field), Some(value), "{field}");
        }
        for field in ["", "x", "1.0DD2", "1-2-3", "--1", "1,5", "D", "1d"] {
            assert_eq!(real(field), None, "{field}");
        }
    }
}
