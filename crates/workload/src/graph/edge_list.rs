//! Edge lists: text with a line per arc, as in the collection of SNAP (`.txt`) and in GAP (`.el`, `.wel`).
//!
//! ```text
//! # a comment, also with %
//! FROM TO [WEIGHT]        nodes counted from 0, separated by blanks
//! ```
//!
//! The graph has the nodes from 0 to the largest that the file names. Arcs are directed, unless a comment says
//! `Undirected graph`, as SNAP writes it. Source: GAP benchmark suite, `reader.h`; SNAP, "Stanford Large Network Dataset
//! Collection".

use super::lines::LineReader;
use super::weights::Weights;
use super::{Arc, Graph, GraphError, LIMIT, ParsedGraph};
use std::io::BufRead;

/// Columns of an edge list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeColumns {
    /// Two nodes (`.el`).
    Nodes,
    /// Two nodes and a weight (`.wel`).
    Weighted,
    /// As in the first line with an arc.
    Either,
}

/// Words of SNAP's comment in the list of an undirected graph.
const UNDIRECTED: &str = "undirected graph";

/// Error for the header that NetworKit writes ahead of a list (`Format.SNAP`): the same for directed and undirected
/// graphs.
const HEADER: &str = "a header of NetworKit, which does not tell directed from undirected graphs: \
    write the list without it (Format.EdgeListTabZero)";

/// Reads an edge list. `name` is the file name for errors and notes; `weighted` is true if weights are used.
///
/// # Errors
/// When a line is not an arc, or names a node beyond the largest graph.
pub fn read_edge_list(
    name: &str,
    reader: impl BufRead,
    columns: EdgeColumns,
    weighted: bool,
) -> Result<ParsedGraph, GraphError> {
    let mut lines = LineReader::new(name, reader, '#');
    let mut columns = columns;
    let mut undirected = false;
    let mut nodes = 0_u64;
    let (mut found, mut weights) = (Vec::new(), Weights::new(weighted));
    while lines.advance()? {
        if lines.is_comment() || lines.text().starts_with('%') {
            undirected |= lines.text().to_ascii_lowercase().contains(UNDIRECTED);
            continue;
        }
        if found.is_empty() && lines.text().starts_with("p ") {
            return Err(lines.error(HEADER));
        }
        if columns == EdgeColumns::Either {
            let third = lines.text().split_ascii_whitespace().nth(2);
            columns = if third.is_some() { EdgeColumns::Weighted } else { EdgeColumns::Nodes };
        }
        let arc = arc(&lines, columns, &mut weights)?;
        nodes = nodes.max(u64::from(arc.from.max(arc.to)) + 1);
        if found.len() as u64 == LIMIT {
            return Err(lines.error(format!("more than {LIMIT} arcs")));
        }
        found.push(arc);
    }
    if found.is_empty() {
        return Err(lines.error("no arc"));
    }
    let (nodes, _) = lines.sizes(nodes, found.len() as u64)?;
    let mut graph = Graph::new(nodes as u32, &found);
    let mut notes = weights.notes(name);
    if weighted && columns == EdgeColumns::Nodes {
        notes.push(format!("{name}: has no weights: the weight of each arc is 1"));
    }
    if undirected {
        graph = graph.symmetric();
        notes.push(format!("{name}: says that its graph is undirected: its arcs lead both ways"));
    }
    Ok(ParsedGraph { graph, notes })
}

fn arc(lines: &LineReader<impl BufRead>, columns: EdgeColumns, weights: &mut Weights) -> Result<Arc, GraphError> {
    let (expected, [from, to], weight) = if columns == EdgeColumns::Weighted {
        let expected = "`FROM TO WEIGHT`, with nodes as whole numbers from 0";
        let [from, to, weight] = lines.fields(expected)?;
        (expected, [from, to], weights.of(lines, lines.real(weight, expected)?, weight)?)
    } else {
        let expected = "`FROM TO`, with nodes as whole numbers from 0";
        (expected, lines.fields(expected)?, 1)
    };
    // A number of nodes is larger by one than the last node.
    let node = |field| lines.size(field, expected).map(|node| node as u32);
    Ok(Arc { from: node(from)?, to: node(to)?, weight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(columns: EdgeColumns, text: &str) -> Result<ParsedGraph, String> {
        read_edge_list("x.el", text.as_bytes(), columns, true).map_err(|error| error.to_string())
    }

    #[test]
    fn arcs_are_those_of_the_file() {
        let ring = read(EdgeColumns::Weighted, "0 1 5\n1 2 1\n2 3 2\n3 0 9\n").unwrap().graph;
        assert_eq!((ring.first(), ring.target()), (&[0, 1, 2, 3, 4][..], &[1, 2, 3, 0][..]));
        assert_eq!(ring.weight(), [5, 1, 2, 9]);
        let plain = read(EdgeColumns::Nodes, "0 1\r\n\n3\t1\n").unwrap();
        assert_eq!((plain.graph.first(), plain.graph.target()), (&[0, 1, 1, 1, 2][..], &[1, 1][..]));
        assert_eq!(plain.notes, ["x.el: has no weights: the weight of each arc is 1"]);
    }

    #[test]
    fn a_header_of_networkit_is_named() {
        let refused = read(EdgeColumns::Either, "p 3 2 u u 0\n1 0\n2 1\n").unwrap_err();
        assert!(
            refused.starts_with("x.el:1: a header of NetworKit") && refused.contains("EdgeListTabZero"),
            "{refused}"
        );
    }

    #[test]
    fn lists_of_snap_say_whether_arcs_lead_both_ways() {
        let text =
            "# Undirected graph: ../../data/output/dblp.txt\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n";
        let both = read(EdgeColumns::Either, text).unwrap();
        assert_eq!((both.graph.first(), both.graph.target()), (&[0, 1, 3, 4][..], &[1, 2, 0, 1][..]));
        assert!(both.notes.iter().any(|note| note.ends_with("its arcs lead both ways")));
        let one = read(EdgeColumns::Either, &text.replace("Undirected", "Directed")).unwrap();
        assert_eq!(one.graph.target(), [1, 2]);
        assert_eq!(read(EdgeColumns::Either, "% of KONECT\n1 0 7.0\n").unwrap().graph.weight(), [7]);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        for (columns, text, expected) in [
            (EdgeColumns::Nodes, "0 1 2\n", "x.el:1: `0 1 2`: expected `FROM TO`, with nodes as whole numbers from 0"),
            (
                EdgeColumns::Weighted,
                "0 1\n",
                "x.el:1: `0 1`: expected `FROM TO WEIGHT`, with nodes as whole numbers from 0",
            ),
            (
                EdgeColumns::Either,
                "0 1\n0 1 2\n",
                "x.el:2: `0 1 2`: expected `FROM TO`, with nodes as whole numbers from 0",
            ),
            (EdgeColumns::Either, "0 -1\n", "x.el:1: `0 -1`: expected `FROM TO`, with nodes as whole numbers from 0"),
            (EdgeColumns::Either, "# nothing\n", "x.el:2: no arc"),
            (EdgeColumns::Either, "", "x.el:1: no arc"),
            (EdgeColumns::Either, "0 1000000\n", "x.el:2: 1000001 nodes for 1 edges: expected 1 to 65552"),
            (
                EdgeColumns::Either,
                "0 99999999999\n",
                "x.el:1: 99999999999 exceeds the largest graph of 1073741823 nodes or edges",
            ),
            (EdgeColumns::Either, "0 1 0.2\n", "x.el:1: value 0.2 would be rounded to 0"),
        ] {
            let error = read(columns, text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn damaged_files_give_an_error_or_a_graph(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = b"# Undirected graph\n0 1 3\n1 2 4\n2 0 5\n".to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len()) + 1);
            if let Ok(read) = read_edge_list("x.el", bytes.as_slice(), EdgeColumns::Either, true) {
                prop_assert!(u64::from(read.graph.nodes()) <= 1 << 17);
                prop_assert!(read.graph.target().iter().all(|to| *to < read.graph.nodes()));
            }
        }
    }
}
