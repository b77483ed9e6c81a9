//! MatrixMarket coordinate matrices (`.mtx`) as graphs: entry (i, j) is an edge.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real|integer|pattern general|symmetric
//! % a comment
//! ROWS COLUMNS ENTRIES
//! ROW COLUMN [VALUE]      counted from 1
//! ```
//!
//! Weights are the magnitudes of the values, rounded to whole numbers; 1 where there are none.

use super::lines::Lines;
use super::{Edge, Graph, GraphError};
use std::io::BufRead;

const BANNER: &str = "`%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric`";
const SIZES: &str = "`ROWS COLUMNS ENTRIES`";

/// Reads a `.mtx` file; `name` is for errors.
pub fn read_matrix_market(name: &str, reader: impl BufRead) -> Result<Graph, GraphError> {
    let mut lines = Lines::new(name, reader);
    let pattern = lines.advance()? && banner(&lines)?;
    let mut sizes: Option<(u64, u64)> = None;
    let mut edges = Vec::new();
    while lines.advance()? {
        let text = lines.text()?;
        if text.is_empty() || text.starts_with('%') {
            continue;
        }
        match sizes {
            None => sizes = Some(dimensions(&lines)?),
            Some((_, entries)) if edges.len() as u64 == entries => {
                return Err(lines.error(format!("more than the {entries} entries of the size line")));
            }
            Some((nodes, _)) => edges.push(entry(&lines, nodes, pattern)?),
        }
    }
    let Some((nodes, entries)) = sizes else { return Err(lines.error(format!("no line {SIZES}"))) };
    lines.graph(nodes, entries, edges)
}

/// Whether the matrix has no values.
fn banner(lines: &Lines<impl BufRead>) -> Result<bool, GraphError> {
    let words = lines.fields::<5>(BANNER)?.map(str::to_ascii_lowercase);
    let [mark, object, format, values, symmetry] = words.each_ref().map(String::as_str);
    let known = (mark, object, format) == ("%%matrixmarket", "matrix", "coordinate")
        && matches!(values, "real" | "integer" | "pattern")
        && matches!(symmetry, "general" | "symmetric");
    if known { Ok(values == "pattern") } else { Err(lines.error(format!("expected {BANNER}"))) }
}

fn dimensions(lines: &Lines<impl BufRead>) -> Result<(u64, u64), GraphError> {
    let [rows, columns, entries] = lines.fields(SIZES)?;
    let (rows, columns) = (lines.size(rows, SIZES)?, lines.size(columns, SIZES)?);
    if rows != columns {
        return Err(lines.error(format!("{rows} rows and {columns} columns: expected a square matrix")));
    }
    lines.sizes(rows, lines.size(entries, SIZES)?)
}

fn entry(lines: &Lines<impl BufRead>, nodes: u64, pattern: bool) -> Result<Edge, GraphError> {
    let (expected, [row, column], weight) = if pattern {
        let expected = "`ROW COLUMN`";
        (expected, lines.fields::<2>(expected)?, 1)
    } else {
        let expected = "`ROW COLUMN VALUE`";
        let [row, column, value] = lines.fields(expected)?;
        let magnitude = lines.number::<f64>(value, expected)?.abs().round();
        if !(0.0..=f64::from(u32::MAX)).contains(&magnitude) {
            return Err(lines.error(format!("value {value}: expected a magnitude below 2^32")));
        }
        (expected, [row, column], magnitude as u32)
    };
    Ok(Edge { a: lines.node(row, nodes, expected)?, b: lines.node(column, nodes, expected)?, weight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALID: &str = "%%MatrixMarket matrix coordinate real symmetric\n% roads\n4 4 3\n2 1 -2.6\n3 2 1e2\n4 4 1\n";

    fn read(text: &str) -> Result<Graph, String> {
        read_matrix_market("roads.mtx", text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn entries_become_edges() {
        let graph = read(VALID).unwrap();
        let edge = |a, b, weight| Edge { a, b, weight };
        assert_eq!((graph.nodes(), graph.edges()), (4, [edge(0, 1, 3), edge(1, 2, 100)].as_slice()));
        let pattern = read("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n").unwrap();
        assert_eq!(pattern.edges(), [edge(0, 1, 1)]);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        let banner = "%%MatrixMarket matrix coordinate real general\n";
        for (text, expected) in [
            ("4 4 3", "roads.mtx:1: `4 4 3`: expected `%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric`".to_owned()),
            (&format!("{banner}2 3 0\n"), "roads.mtx:2: 2 rows and 3 columns: expected a square matrix".to_owned()),
            (&format!("{banner}2 2 1\n1 2\n"), "roads.mtx:3: `1 2`: expected `ROW COLUMN VALUE`".to_owned()),
            (&format!("{banner}2 2 1\n1 2 nan\n"), "roads.mtx:3: value nan: expected a magnitude below 2^32".to_owned()),
            (&format!("{banner}2 2 1\n0 2 1\n"), "roads.mtx:3: node 0 is outside 1 to 2".to_owned()),
            (&format!("{banner}2 2 0\n1 2 1\n"), "roads.mtx:3: more than the 0 entries of the size line".to_owned()),
            (banner, "roads.mtx:2: no line `ROWS COLUMNS ENTRIES`".to_owned()),
            (&banner.replace("real", "complex"), format!("roads.mtx:1: expected {BANNER}")),
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
            if let Ok(graph) = read_matrix_market("roads.mtx", bytes.as_slice()) {
                prop_assert!(u64::from(graph.nodes()) <= 1 << 17);
                prop_assert!(graph.edges().iter().all(|edge| edge.a < edge.b && edge.b < graph.nodes()));
            }
        }
    }
}
