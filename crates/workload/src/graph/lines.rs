//! Lines of a text file, with their numbers, bounded in length.

use super::{Edge, FREE_NODES, Graph, GraphError, LIMIT, NODES_PER_EDGE};
use std::io::{BufRead, Read};
use std::str::FromStr;

/// Longest line. Source: assumed; MatrixMarket allows 1024 characters.
const LONGEST: u64 = 4096;

/// Reads a file line by line; the latest line stays inside.
pub(super) struct Lines<R> {
    file: String,
    reader: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(file: &str, reader: R) -> Lines<R> {
        Lines { file: file.to_owned(), reader, line: Vec::new(), number: 0 }
    }

    /// An error at the latest line.
    pub(super) fn error(&self, message: impl Into<String>) -> GraphError {
        GraphError { file: self.file.clone(), line: self.number, message: message.into() }
    }

    /// Moves to the next line; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, GraphError> {
        self.line.clear();
        self.number += 1;
        let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| self.error(format!("cannot be read: {error}")))?;
        if length as u64 == LONGEST && self.line.last() != Some(&b'\n') {
            return Err(self.error(format!("a line longer than {LONGEST} bytes")));
        }
        Ok(length > 0)
    }

    /// The latest line.
    pub(super) fn text(&self) -> Result<&str, GraphError> {
        std::str::from_utf8(&self.line).map(str::trim).map_err(|_| self.error("not a line of text"))
    }

    /// The latest line as exactly `N` fields, or an error that shows `expected`.
    pub(super) fn fields<const N: usize>(&self, expected: &str) -> Result<[&str; N], GraphError> {
        let mut words = self.text()?.split_ascii_whitespace();
        let mut fields = [""; N];
        for field in &mut fields {
            *field = words.next().ok_or_else(|| self.unexpected(expected))?;
        }
        if words.next().is_some() { Err(self.unexpected(expected)) } else { Ok(fields) }
    }

    /// One field as a number.
    pub(super) fn number<T: FromStr>(&self, field: &str, expected: &str) -> Result<T, GraphError> {
        field.parse().map_err(|_| self.unexpected(expected))
    }

    fn unexpected(&self, expected: &str) -> GraphError {
        let shown: String = String::from_utf8_lossy(&self.line).trim().chars().take(60).collect();
        self.error(format!("`{shown}`: expected {expected}"))
    }

    /// A node number from 1 to `nodes`, counted from 0.
    pub(super) fn node(&self, field: &str, nodes: u64, expected: &str) -> Result<u32, GraphError> {
        let node: u64 = self.number(field, expected)?;
        if !(1..=nodes).contains(&node) {
            return Err(self.error(format!("node {node} is outside 1 to {nodes}")));
        }
        Ok((node - 1) as u32)
    }

    /// A number of nodes or edges that kernels can index.
    pub(super) fn size(&self, field: &str, expected: &str) -> Result<u64, GraphError> {
        let size: u64 = self.number(field, expected)?;
        if size > LIMIT / 2 {
            return Err(self.error(format!("{size} exceeds the largest graph of {} nodes or edges", LIMIT / 2)));
        }
        Ok(size)
    }

    /// The sizes that a header claims, where a graph may have them.
    pub(super) fn sizes(&self, nodes: u64, edges: u64) -> Result<(u64, u64), GraphError> {
        let most = FREE_NODES + NODES_PER_EDGE * edges;
        if nodes == 0 || nodes > most {
            return Err(self.error(format!("{nodes} nodes for {edges} edges: expected 1 to {most}")));
        }
        Ok((nodes, edges))
    }

    /// The graph of a whole file, whose header claimed `nodes` and `edges`.
    pub(super) fn graph(&self, nodes: u64, edges: u64, found: Vec<Edge>) -> Result<Graph, GraphError> {
        if found.len() as u64 != edges {
            return Err(self.error(format!("the file has {} entries, its header says {edges}", found.len())));
        }
        Ok(Graph::new(nodes as u32, found))
    }
}
