//! METIS graphs (`.graph`, `.metis`): text with a line per node.
//!
//! ```text
//! % a comment
//! NODES EDGES [FORMAT [WEIGHTS_PER_NODE]]
//! [SIZE] [NODE_WEIGHT…] (NEIGHBOUR [WEIGHT])…        a line per node, neighbours counted from 1
//! ```
//!
//! FORMAT has up to three digits: sizes of nodes, weights of nodes, weights of edges; 1 where lines have them. An edge
//! stands in the lines of both its ends and counts once. Source: METIS manual 5.1, "Graph file".

use super::lines::LineReader;
use super::weights::Weights;
use super::{Arc, Graph, GraphError, LIMIT, ParsedGraph};
use std::io::BufRead;

/// Length limit for a line, in bytes: a node's neighbours stand in one line.
const LONGEST: u64 = 256 << 20;
/// Maximum number of weights per node. Source: assumed; METIS uses a few constraints.
const MOST_WEIGHTS: u64 = 1 << 10;
const HEADER: &str = "`NODES EDGES [FORMAT [WEIGHTS_PER_NODE]]`";
const NEIGHBOURS: &str = "neighbours as whole numbers";

/// The first line.
struct Header {
    nodes: u64,
    edges: u64,
    /// Fields before a node's neighbours.
    skipped: usize,
    /// True if a weight follows each neighbour.
    weighted: bool,
}

/// Reads a METIS graph. `name` is the file name for errors and notes; `weighted` is true if weights are used.
///
/// # Errors
/// When a line is malformed, or the header's sizes are not those of the lines.
pub fn read_metis(name: &str, reader: impl BufRead, weighted: bool) -> Result<ParsedGraph, GraphError> {
    let mut lines = LineReader::new(name, reader, '%').with_longest(LONGEST);
    let header = loop {
        if !lines.advance()? {
            return Err(lines.error(format!("no line {HEADER}")));
        }
        if !lines.is_comment() {
            break header(&lines)?;
        }
    };
    let (mut found, mut weights) = (Vec::new(), Weights::new(weighted));
    let mut node = 0_u64;
    while lines.advance()? {
        if lines.text().starts_with('%') {
            continue;
        }
        if node == header.nodes {
            if lines.text().is_empty() {
                continue;
            }
            return Err(lines.error(format!("more lines than the {} nodes of the header", header.nodes)));
        }
        neighbours(&lines, &header, node as u32, &mut weights, &mut found)?;
        node += 1;
    }
    if node < header.nodes {
        return Err(lines.error(format!("{node} lines of nodes, the header says {}", header.nodes)));
    }
    let arcs = found.len() as u64;
    if arcs != 2 * header.edges && arcs != header.edges {
        let edges = header.edges;
        return Err(lines.error(format!("{arcs} neighbours: expected 2 for each of the {edges} edges of the header")));
    }
    let mut notes = weights.notes(name);
    if weighted && !header.weighted {
        notes.push(format!("{name}: has no weights: the weight of each arc is 1"));
    }
    Ok(ParsedGraph { graph: Graph::new(header.nodes as u32, &found), notes })
}

fn header(lines: &LineReader<impl BufRead>) -> Result<Header, GraphError> {
    let mut fields = lines.text().split_ascii_whitespace();
    let mut size = || fields.next().ok_or_else(|| lines.unexpected(HEADER)).and_then(|field| lines.size(field, HEADER));
    let (nodes, edges) = (size()?, size()?);
    let format = fields.next().unwrap_or("0");
    if format.len() > 3 || !format.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(lines.unexpected("a format of up to three digits, each 0 or 1"));
    }
    let digit = |place: usize| format.len() > place && format.as_bytes()[format.len() - 1 - place] == b'1';
    let constraints = match fields.next() {
        Some(field) => lines.integer::<u64>(field, HEADER)?,
        None => u64::from(digit(1)),
    };
    if constraints > MOST_WEIGHTS || fields.next().is_some() {
        return Err(lines.unexpected(HEADER));
    }
    let constraints = if digit(1) { constraints as usize } else { 0 };
    let (nodes, edges) = lines.sizes(nodes, edges)?;
    Ok(Header { nodes, edges, skipped: usize::from(digit(2)) + constraints, weighted: digit(0) })
}

/// Adds the arcs of `node` from the latest line.
fn neighbours(
    lines: &LineReader<impl BufRead>,
    header: &Header,
    node: u32,
    weights: &mut Weights,
    found: &mut Vec<Arc>,
) -> Result<(), GraphError> {
    let mut fields = lines.text().split_ascii_whitespace();
    for _ in 0..header.skipped {
        let field = fields.next().ok_or_else(|| lines.unexpected("the node's size and weights"))?;
        lines.real(field, "the node's size and weights")?;
    }
    while let Some(field) = fields.next() {
        let to = lines.node(field, header.nodes, NEIGHBOURS)?;
        let weight = if header.weighted {
            let expected = "neighbours with weights";
            let written = fields.next().ok_or_else(|| lines.unexpected(expected))?;
            weights.of(lines, lines.real(written, expected)?, written)?
        } else {
            1
        };
        if found.len() as u64 == LIMIT {
            return Err(lines.error(format!("more than {LIMIT} arcs")));
        }
        found.push(Arc { from: node, to, weight });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The weighted graph of the manual's figure, shortened to four nodes.
    const VALID: &str = "% square\n4 4 011 2\n7 1 2 5 4 9\n7 1 1 5 3 6\n7 2 2 6 4 8\n7 1 3 8 1 9\n";

    fn read(text: &str) -> Result<ParsedGraph, String> {
        read_metis("x.graph", text.as_bytes(), true).map_err(|error| error.to_string())
    }

    #[test]
    fn neighbours_are_arcs() {
        let graph = read(VALID).unwrap().graph;
        assert_eq!((graph.first(), graph.target()), (&[0, 2, 4, 6, 8][..], &[1, 3, 0, 2, 1, 3, 2, 0][..]));
        assert_eq!(graph.weight(), [5, 9, 5, 6, 6, 8, 8, 9]);
        let plain = read("3 1\n2\n1\n\n").unwrap();
        assert_eq!((plain.graph.first(), plain.graph.target()), (&[0, 1, 2, 2][..], &[1, 0][..]));
        assert_eq!(plain.notes, ["x.graph: has no weights: the weight of each arc is 1"]);
        assert_eq!(read("2 1 100\n3 2\n3 1\n").unwrap().graph.target(), [1, 0], "sizes of nodes");
        assert_eq!(read("2 1 1\n2 7\n1 7\n").unwrap().graph.weight(), [7, 7]);
    }

    #[test]
    fn a_line_may_be_longer_than_any_of_other_formats() {
        let neighbours: String = (2..=3000).map(|node| format!("{node} ")).collect();
        let text = format!("3000 2999\n{neighbours}\n{}", "1\n".repeat(2999));
        assert_eq!(read(&text).unwrap().graph.row(0), 0..2999);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        for (text, expected) in [
            ("% only\n", "x.graph:2: no line `NODES EDGES [FORMAT [WEIGHTS_PER_NODE]]`"),
            ("3\n", "x.graph:1: `3`: expected `NODES EDGES [FORMAT [WEIGHTS_PER_NODE]]`"),
            ("2 1 12\n", "x.graph:1: `2 1 12`: expected a format of up to three digits, each 0 or 1"),
            ("2 1\n2\n", "x.graph:3: 1 lines of nodes, the header says 2"),
            ("2 1\n2\n1\n1\n", "x.graph:4: more lines than the 2 nodes of the header"),
            ("2 1\n3\n1\n", "x.graph:2: node 3 is outside 1 to 2"),
            ("2 1 1\n2\n1 3\n", "x.graph:2: `2`: expected neighbours with weights"),
            ("2 3\n2\n1\n", "x.graph:4: 2 neighbours: expected 2 for each of the 3 edges of the header"),
            ("9999999 1\n", "x.graph:1: 9999999 nodes for 1 edges: expected 1 to 65552"),
            ("2 1 10\n\n1\n", "x.graph:2: ``: expected the node's size and weights"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
    }

    proptest! {
        #[test]
        fn damaged_files_give_an_error_or_a_graph(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = VALID.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len()) + 1);
            if let Ok(read) = read_metis("x.graph", bytes.as_slice(), true) {
                prop_assert!(u64::from(read.graph.nodes()) <= 1 << 17);
                prop_assert!(read.graph.target().iter().all(|to| *to < read.graph.nodes()));
            }
        }
    }
}
