//! DIMACS shortest-path graphs (`.gr`), as in the 9th DIMACS challenge.
//!
//! ```text
//! c a comment
//! p sp NODES ARCS
//! a FROM TO WEIGHT        nodes counted from 1
//! ```
//!
//! Arcs are directed. Weights are whole numbers.

use super::lines::LineReader;
use super::{Arc, Graph, GraphError};
use std::io::BufRead;

/// Reads a `.gr` file. `name` is the file name for errors; `weighted` is true if the file's weights are used.
pub fn read_dimacs(name: &str, reader: impl BufRead, weighted: bool) -> Result<Graph, GraphError> {
    let mut lines = LineReader::new(name, reader, 'c');
    let mut header: Option<(u64, u64)> = None;
    let mut found = Vec::new();
    while lines.advance()? {
        match lines.text().as_bytes().first() {
            None | Some(b'c') => {}
            Some(b'p') if header.is_none() => header = Some(problem(&lines)?),
            Some(b'p') => return Err(lines.error("a second `p` line")),
            Some(b'a') => {
                let Some((nodes, arcs)) = header else {
                    return Err(lines.error("an arc before the line `p sp NODES ARCS`"));
                };
                if found.len() as u64 == arcs {
                    return Err(lines.error(format!("more than the {arcs} arcs of the `p` line")));
                }
                let arc = arc(&lines, nodes)?;
                found.push(Arc { weight: if weighted { arc.weight } else { 1 }, ..arc });
            }
            Some(_) => return Err(lines.error("expected a line that starts with c, p or a")),
        }
    }
    let Some((nodes, arcs)) = header else { return Err(lines.error("no line `p sp NODES ARCS`")) };
    lines.graph(nodes, arcs, &found)
}

fn problem(lines: &LineReader<impl BufRead>) -> Result<(u64, u64), GraphError> {
    let expected = "`p sp NODES ARCS`";
    let [_, kind, nodes, arcs] = lines.fields(expected)?;
    if kind != "sp" {
        return Err(lines.error(format!("a `{kind}` problem: expected {expected}")));
    }
    lines.sizes(lines.size(nodes, expected)?, lines.size(arcs, expected)?)
}

fn arc(lines: &LineReader<impl BufRead>, nodes: u64) -> Result<Arc, GraphError> {
    let expected = "`a FROM TO WEIGHT` with whole numbers";
    let [_, from, to, weight] = lines.fields(expected)?;
    let weight = lines.real(weight, expected)?;
    if weight.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&weight) {
        return Err(lines.unexpected(expected));
    }
    Ok(Arc { from: lines.node(from, nodes, expected)?, to: lines.node(to, nodes, expected)?, weight: weight as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALID: &str = "c roads\np sp 4 5\na 1 2 7\na 2 1 7\na 2 3 5\na 3 4 1\na 4 4 2\n";

    fn read(text: &str) -> Result<Graph, String> {
        read_dimacs("roads.gr", text.as_bytes(), true).map_err(|error| error.to_string())
    }

    #[test]
    fn arcs_are_those_of_the_file() {
        let graph = read(VALID).unwrap();
        assert_eq!((graph.first(), graph.target()), (&[0, 1, 3, 4, 5][..], &[1, 0, 2, 3, 3][..]));
        assert_eq!(graph.weight(), [7, 7, 5, 1, 2]);
        let twice = read("p sp 2 3\na 2 1 3\na 2 1 4\na 2 1 3\n").unwrap();
        assert_eq!((twice.first(), twice.weight()), (&[0, 0, 3][..], &[3, 4, 3][..]));
    }

    #[test]
    fn files_are_read_as_they_are_found() {
        let plain = read_dimacs("x.gr", &b"p sp 2 1\na 1 2 3\n"[..], true).unwrap();
        let long = [&b"c "[..], &[b'x'; 10_000], b"\r\np sp 2 1\r\na 1 2 3\r\n"].concat();
        for found in [&b"c caf\xe9 na\xefve\np sp 2 1\na 1 2 3\n"[..], b"\xef\xbb\xbfp sp 2 1\n\na 1 2 3.0", &long] {
            assert_eq!(read_dimacs("x.gr", found, true), Ok(plain.clone()), "{found:?}");
        }
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        for (text, expected) in [
            ("a 1 2 3\n", "roads.gr:1: an arc before the line `p sp NODES ARCS`"),
            ("p sp 2 1\na 1 3 1\n", "roads.gr:2: node 3 is outside 1 to 2"),
            ("p sp 2 1\na 1 2\n", "roads.gr:2: `a 1 2`: expected `a FROM TO WEIGHT` with whole numbers"),
            ("p sp 2 1\na 1 2 -4\n", "roads.gr:2: `a 1 2 -4`: expected `a FROM TO WEIGHT` with whole numbers"),
            ("p sp 2 1\na 1 2 2.6\n", "roads.gr:2: `a 1 2 2.6`: expected `a FROM TO WEIGHT` with whole numbers"),
            (
                "p sp 2 1\na 1 2 5000000000\n",
                "roads.gr:2: `a 1 2 5000000000`: expected `a FROM TO WEIGHT` with whole numbers",
            ),
            ("\u{1}\0\0\0\0\0\0\0", "roads.gr:1: a binary file: expected lines of text"),
            ("p max 2 1\n", "roads.gr:1: a `max` problem: expected `p sp NODES ARCS`"),
            ("p sp 2 2\na 1 2 1\n", "roads.gr:3: the file has 1 entries, its header says 2"),
            ("p sp 2 0\na 1 2 1\n", "roads.gr:2: more than the 0 arcs of the `p` line"),
            ("p sp 0 0\n", "roads.gr:1: 0 nodes for 0 edges: expected 1 to 65536"),
            ("p sp 1000000000 0\n", "roads.gr:1: 1000000000 nodes for 0 edges: expected 1 to 65536"),
            ("p sp 99999999999 0\n", "roads.gr:1: 99999999999 exceeds the largest graph of 1073741823 nodes or edges"),
            ("", "roads.gr:1: no line `p sp NODES ARCS`"),
            ("x\n", "roads.gr:1: expected a line that starts with c, p or a"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
        assert!(read(&"p".repeat(10_000)).unwrap_err().contains("longer than 4096 bytes"));
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
            if let Ok(graph) = read_dimacs("roads.gr", bytes.as_slice(), true) {
                prop_assert!(u64::from(graph.nodes()) <= 1 << 17);
                prop_assert!(graph.target().iter().all(|to| *to < graph.nodes()));
            }
        }
    }
}
