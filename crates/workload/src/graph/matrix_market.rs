//! MatrixMarket coordinate matrices (`.mtx`) as graphs: entry (i, j) is an arc from i to j.
//!
//! ```text
//! %%MatrixMarket matrix coordinate VALUES SYMMETRY
//! % a comment
//! ROWS COLUMNS ENTRIES
//! ROW COLUMN [VALUE [IMAGINARY]]      counted from 1
//! ```
//!
//! VALUES are `real`, `integer`, `complex` or `pattern` (no values). SciPy also writes `unsigned-integer`, which the format
//! does not define, for arrays of uint32 and uint64. SYMMETRY is `general`, or `symmetric`, `skew-symmetric` or
//! `hermitian`, for which each entry also represents its mirror image.
//!
//! Weights are the magnitudes of the values, rounded to whole numbers; without values, all weights are 1.

use super::lines::LineReader;
use super::weights::Weights;
use super::{Arc, GraphError, ParsedGraph};
use std::io::BufRead;

const BANNER: &str = "`%%MatrixMarket matrix coordinate real|integer|unsigned-integer|complex|pattern \
                      general|symmetric|skew-symmetric|hermitian`";
const SIZES: &str = "`ROWS COLUMNS ENTRIES`";

/// Kind of values after an entry's coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Pattern,
    Real,
    Complex,
}

/// Reads a `.mtx` file. `name` is the file name for errors and notes; `weighted` is true if the file's weights are
/// used.
pub fn read_matrix_market(name: &str, reader: impl BufRead, weighted: bool) -> Result<ParsedGraph, GraphError> {
    let mut lines = LineReader::new(name, reader, '%');
    lines.advance()?;
    let (values, mirrored) = banner(&lines)?;
    let mut sizes: Option<(u64, u64)> = None;
    let (mut found, mut weights) = (Vec::new(), Weights::new(weighted));
    while lines.advance()? {
        match sizes {
            _ if lines.is_comment() => {}
            None => sizes = Some(dimensions(&lines)?),
            Some((_, entries)) if found.len() as u64 == entries => {
                return Err(lines.error(format!("more than the {entries} entries of the size line")));
            }
            Some((nodes, _)) => found.push(entry(&lines, nodes, values, &mut weights)?),
        }
    }
    let Some((nodes, entries)) = sizes else { return Err(lines.error(format!("no line {SIZES}"))) };
    let graph = lines.graph(nodes, entries, &found)?;
    let mut notes = weights.notes(lines.file());
    if weighted && values == ValueKind::Complex {
        notes.push(format!("{}: weights are the magnitudes of its complex values", lines.file()));
    }
    Ok(ParsedGraph { graph: if mirrored { graph.symmetric() } else { graph }, notes })
}

/// Parses the banner: kind of values, and true if entries also represent their mirror images.
fn banner(lines: &LineReader<impl BufRead>) -> Result<(ValueKind, bool), GraphError> {
    let words = lines.fields::<5>(BANNER)?.map(str::to_ascii_lowercase);
    let [mark, object, format, values, symmetry] = words.each_ref().map(String::as_str);
    let values = match values {
        "pattern" => Some(ValueKind::Pattern),
        "real" | "integer" | "unsigned-integer" => Some(ValueKind::Real),
        "complex" => Some(ValueKind::Complex),
        _ => None,
    };
    let mirrored = match symmetry {
        "general" => Some(false),
        "symmetric" | "skew-symmetric" | "hermitian" => Some(true),
        _ => None,
    };
    match ((mark, object, format), values, mirrored) {
        (("%%matrixmarket", "matrix", "coordinate"), Some(values), Some(mirrored)) => Ok((values, mirrored)),
        _ => Err(lines.unexpected(BANNER)),
    }
}

fn dimensions(lines: &LineReader<impl BufRead>) -> Result<(u64, u64), GraphError> {
    let [rows, columns, entries] = lines.fields(SIZES)?;
    let (rows, columns) = (lines.size(rows, SIZES)?, lines.size(columns, SIZES)?);
    if rows != columns {
        return Err(lines.error(format!("{rows} rows and {columns} columns: expected a square matrix")));
    }
    lines.sizes(rows, lines.size(entries, SIZES)?)
}

fn entry(
    lines: &LineReader<impl BufRead>,
    nodes: u64,
    values: ValueKind,
    weights: &mut Weights,
) -> Result<Arc, GraphError> {
    let (expected, [row, column], weight) = match values {
        ValueKind::Pattern => {
            let expected = "`ROW COLUMN`";
            (expected, lines.fields::<2>(expected)?, 1)
        }
        ValueKind::Real => {
            let expected = "`ROW COLUMN VALUE`";
            let [row, column, value] = lines.fields(expected)?;
            (expected, [row, column], weights.of(lines, lines.real(value, expected)?, value)?)
        }
        ValueKind::Complex => {
            let expected = "`ROW COLUMN REAL IMAGINARY`";
            let [row, column, re, im] = lines.fields(expected)?;
            let magnitude = lines.real(re, expected)?.hypot(lines.real(im, expected)?);
            (expected, [row, column], weights.of(lines, magnitude, &format!("{re} {im}"))?)
        }
    };
    Ok(Arc { from: lines.node(row, nodes, expected)?, to: lines.node(column, nodes, expected)?, weight })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use proptest::prelude::*;

    const VALID: &str = "%%MatrixMarket matrix coordinate real symmetric\n% roads\n4 4 3\n2 1 -2.6\n3 2 1e2\n4 4 1\n";

    fn read(text: &str) -> Result<Graph, String> {
        read_matrix_market("roads.mtx", text.as_bytes(), true).map(|read| read.graph).map_err(|error| error.to_string())
    }

    /// The graph of a 2 by 2 matrix with the given kind and entries.
    fn of_kind(kind: &str, entries: &[&str]) -> Result<Graph, String> {
        read(&format!("%%MatrixMarket matrix coordinate {kind}\n2 2 {}\n{}\n", entries.len(), entries.join("\n")))
    }

    /// Ends and weight of every arc.
    fn arcs(graph: &Graph) -> Vec<(u32, u32, u32)> {
        let of = |from| graph.row(from).map(move |at| (from, graph.target()[at], graph.weight()[at]));
        (0..graph.nodes()).flat_map(of).collect()
    }

    #[test]
    fn entries_lead_both_ways_where_the_file_says_so() {
        let mirrored = [(0, 1, 3), (1, 2, 100), (1, 0, 3), (2, 1, 100), (3, 3, 1)];
        let mut found = arcs(&read(VALID).unwrap());
        found.sort_unstable();
        let mut expected = mirrored.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected);
        for kind in ["integer general", "unsigned-integer general"] {
            assert_eq!(arcs(&of_kind(kind, &["2 1 4"]).unwrap()), [(1, 0, 4)], "{kind}");
        }
        for kind in ["pattern symmetric", "pattern general"] {
            let both = of_kind(kind, &["1 2", "2 1"]).unwrap();
            assert_eq!(arcs(&both), [(0, 1, 1), (1, 0, 1)], "{kind}");
        }
    }

    #[test]
    fn values_of_every_kind_have_a_magnitude() {
        for (kind, entry, weight) in [
            ("real skew-symmetric", "2 1 -1", 1),
            ("complex hermitian", "2 1 3 -4", 5),
            ("complex symmetric", "2 1 0.0D+00 1.2D+01", 12),
            ("Real Symmetric", "2 1 1.0D+00", 1),
            ("integer skew-symmetric", "2 1 -7", 7),
        ] {
            assert_eq!(arcs(&of_kind(kind, &[entry]).unwrap()), [(0, 1, weight), (1, 0, weight)], "{kind} {entry}");
        }
    }

    #[test]
    fn weights_that_change_are_told_and_none_becomes_zero() {
        let notes = |weighted, values: [&str; 3]| {
            let entries: String = values.iter().map(|value| format!("1 2 {value}\n")).collect();
            let text = format!("%%MatrixMarket matrix coordinate real general\n2 2 3\n{entries}");
            read_matrix_market("x.mtx", text.as_bytes(), weighted).map(|read| read.notes)
        };
        assert_eq!(notes(true, ["1", "2.0", "0"]), Ok(Vec::new()));
        let changed = notes(true, ["2.6", "-2.4", "-1"]).unwrap();
        assert_eq!(
            changed,
            [
                "x.mtx: weights rounded to whole numbers: 2; the first, in line 3, 2.6 to 3",
                "x.mtx: weights below zero, which count by their magnitude: 2; the first, in line 4, -2.4 to 2",
            ]
        );
        let refused = notes(true, ["1", "1", "-0.3"]).unwrap_err().to_string();
        assert!(
            refused.starts_with("x.mtx:5: value -0.3 would be rounded to 0: expected 0 or a magnitude of"),
            "{refused}"
        );
        let unused = notes(false, ["1", "0.3", "nan"]).unwrap();
        assert_eq!(unused, ["x.mtx: values that are no whole numbers are not used: the program takes no weights"]);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        let banner = "%%MatrixMarket matrix coordinate real general\n";
        for (text, expected) in [
            ("4 4 3", format!("roads.mtx:1: `4 4 3`: expected {BANNER}")),
            (&format!("{banner}2 3 0\n"), "roads.mtx:2: 2 rows and 3 columns: expected a square matrix".to_owned()),
            (&format!("{banner}2 2 1\n1 2\n"), "roads.mtx:3: `1 2`: expected `ROW COLUMN VALUE`".to_owned()),
            (
                &format!("{banner}2 2 1\n1 2 nan\n"),
                "roads.mtx:3: value nan: expected a magnitude below 2^32".to_owned(),
            ),
            (&format!("{banner}2 2 1\n0 2 1\n"), "roads.mtx:3: node 0 is outside 1 to 2".to_owned()),
            (&format!("{banner}2 2 0\n1 2 1\n"), "roads.mtx:3: more than the 0 entries of the size line".to_owned()),
            (banner, "roads.mtx:2: no line `ROWS COLUMNS ENTRIES`".to_owned()),
            ("", format!("roads.mtx:1: ``: expected {BANNER}")),
            (
                &banner.replace("real", "double"),
                format!("roads.mtx:1: `%%MatrixMarket matrix coordinate double general`: expected {BANNER}"),
            ),
            (
                &format!("{}2 2 1\n1 2 3\n", banner.replace("real", "complex")),
                "roads.mtx:3: `1 2 3`: expected `ROW COLUMN REAL IMAGINARY`".to_owned(),
            ),
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
            if let Ok(read) = read_matrix_market("roads.mtx", bytes.as_slice(), true) {
                prop_assert!(u64::from(read.graph.nodes()) <= 1 << 17);
                prop_assert!(read.graph.target().iter().all(|to| *to < read.graph.nodes()));
            }
        }
    }
}
