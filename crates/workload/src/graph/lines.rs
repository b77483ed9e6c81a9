//! Lines of a text file, with their numbers, bounded in length.

use super::{Arc, FREE_NODES, Graph, GraphError, LIMIT, NODES_PER_EDGE};
use std::io::{BufRead, Read};
use std::str::FromStr;

/// Longest line that is no comment. Source: assumed; MatrixMarket allows 1024 characters.
const LONGEST: u64 = 4096;
/// What UTF-8 files of some editors begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file line by line; the latest line stays inside.
pub(super) struct Lines<R> {
    file: String,
    reader: R,
    /// What a comment begins with.
    comment: char,
    bytes: Vec<u8>,
    /// The line: UTF-8, or else Latin-1.
    text: String,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(file: &str, reader: R, comment: char) -> Lines<R> {
        Lines { file: file.to_owned(), reader, comment, bytes: Vec::new(), text: String::new(), number: 0 }
    }

    /// An error at the latest line.
    pub(super) fn error(&self, message: impl Into<String>) -> GraphError {
        GraphError { file: self.file.clone(), line: self.number, message: message.into() }
    }

    /// Name of the file.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Number of the latest line, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Moves to the next line; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, GraphError> {
        self.bytes.clear();
        self.number += 1;
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.bytes);
        let length = read.map_err(|error| self.error(format!("cannot be read: {error}")))?;
        if self.number == 1 {
            self.strip_mark()?;
        }
        self.text = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.trim().to_owned(),
            Err(_) => self.bytes.iter().map(|byte| char::from(*byte)).collect::<String>().trim().to_owned(),
        };
        if length as u64 == LONGEST && self.bytes.last() != Some(&b'\n') {
            self.skip_rest()?;
        }
        Ok(length > 0)
    }

    /// Drops the mark of UTF-8; says so of a file of another kind.
    fn strip_mark(&mut self) -> Result<(), GraphError> {
        if self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.bytes.drain(..BYTE_ORDER_MARK.len());
        }
        if self.bytes.starts_with(b"\xff\xfe") || self.bytes.starts_with(b"\xfe\xff") {
            return Err(self.error("text in UTF-16: expected ASCII, UTF-8 or Latin-1"));
        }
        if self.bytes.contains(&0) {
            return Err(
                self.error("a binary file: expected lines of text (graph-convert writes a Galois graph as text)")
            );
        }
        Ok(())
    }

    /// Skips what is left of a line that is longer than a line may be, if it is a comment.
    fn skip_rest(&mut self) -> Result<(), GraphError> {
        if !self.text.starts_with(self.comment) {
            return Err(self.error(format!("a line longer than {LONGEST} bytes")));
        }
        self.reader.skip_until(b'\n').map(drop).map_err(|error| self.error(format!("cannot be read: {error}")))
    }

    /// The latest line.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the latest line says nothing.
    pub(super) fn is_comment(&self) -> bool {
        self.text.is_empty() || self.text.starts_with(self.comment)
    }

    /// The latest line as exactly `N` fields, or an error that shows `expected`.
    pub(super) fn fields<const N: usize>(&self, expected: &str) -> Result<[&str; N], GraphError> {
        let mut words = self.text.split_ascii_whitespace();
        let mut fields = [""; N];
        for field in &mut fields {
            *field = words.next().ok_or_else(|| self.unexpected(expected))?;
        }
        if words.next().is_some() { Err(self.unexpected(expected)) } else { Ok(fields) }
    }

    /// One field as a number.
    pub(super) fn integer<T: FromStr>(&self, field: &str, expected: &str) -> Result<T, GraphError> {
        field.parse().map_err(|_| self.unexpected(expected))
    }

    /// One field as a real number.
    pub(super) fn real(&self, field: &str, expected: &str) -> Result<f64, GraphError> {
        real(field).ok_or_else(|| self.unexpected(expected))
    }

    /// An error that shows the latest line and what was expected.
    pub(super) fn unexpected(&self, expected: &str) -> GraphError {
        let shown: String = self.text.chars().take(60).collect();
        self.error(format!("`{shown}`: expected {expected}"))
    }

    /// A node number from 1 to `nodes`, counted from 0.
    pub(super) fn node(&self, field: &str, nodes: u64, expected: &str) -> Result<u32, GraphError> {
        let node: u64 = self.integer(field, expected)?;
        if !(1..=nodes).contains(&node) {
            return Err(self.error(format!("node {node} is outside 1 to {nodes}")));
        }
        Ok((node - 1) as u32)
    }

    /// A number of nodes or arcs that kernels can index.
    pub(super) fn size(&self, field: &str, expected: &str) -> Result<u64, GraphError> {
        let size: u64 = self.integer(field, expected)?;
        if size > LIMIT / 2 {
            return Err(self.error(format!("{size} exceeds the largest graph of {} nodes or edges", LIMIT / 2)));
        }
        Ok(size)
    }

    /// The sizes that a header claims, where a graph may have them.
    pub(super) fn sizes(&self, nodes: u64, arcs: u64) -> Result<(u64, u64), GraphError> {
        let most = FREE_NODES + NODES_PER_EDGE * arcs;
        if nodes == 0 || nodes > most {
            return Err(self.error(format!("{nodes} nodes for {arcs} edges: expected 1 to {most}")));
        }
        Ok((nodes, arcs))
    }

    /// The graph of a whole file, whose header claimed `nodes` and `arcs`.
    pub(super) fn graph(&self, nodes: u64, arcs: u64, found: &[Arc]) -> Result<Graph, GraphError> {
        if found.len() as u64 != arcs {
            return Err(self.error(format!("the file has {} entries, its header says {arcs}", found.len())));
        }
        Ok(Graph::new(nodes as u32, found))
    }
}

/// A real number as C or Fortran writes it: `1.5`, `1e3`, `1.0D+00`, `1.0-100`.
fn real(field: &str) -> Option<f64> {
    let field = field.replace(['d', 'D'], "e");
    // Fortran leaves the letter out before an exponent of three digits.
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
