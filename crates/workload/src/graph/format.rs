//! Formats of graph files.

use super::edge_list::{EdgeColumns, read_edge_list};
use super::rows::is_galois;
use super::{GraphError, ParsedGraph, read_dimacs, read_galois, read_gap, read_matrix_market, read_metis};
use std::io::BufRead;
use std::path::Path;

/// The formats with their endings, for users.
pub(super) const FORMATS: &str = "DIMACS text or a binary graph of Galois (.gr), MatrixMarket (.mtx), a list of edges (.el, \
                                  .wel, or .txt, .edges and .tsv as in SNAP), GAP (.sg, .wsg) or METIS (.graph, .metis), \
                                  plain or in .gz";

/// File format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Dimacs,
    Galois,
    MatrixMarket,
    EdgeList(EdgeColumns),
    /// With weights or without.
    Gap(bool),
    Metis,
}

impl Format {
    /// The format of the file at `path` whose content starts with `begin`.
    pub(super) fn of(path: &Path, begin: &[u8]) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let ending = name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.').map_or("", |(_, ending)| ending);
        if begin.to_ascii_lowercase().starts_with(b"%%matrixmarket") {
            return Some(Format::MatrixMarket);
        }
        Some(match ending {
            "sg" => Format::Gap(false),
            "wsg" => Format::Gap(true),
            _ if is_galois(begin) => Format::Galois,
            "gr" => Format::Dimacs,
            "mtx" => Format::MatrixMarket,
            "el" => Format::EdgeList(EdgeColumns::Nodes),
            "wel" => Format::EdgeList(EdgeColumns::Weighted),
            "txt" | "edges" | "tsv" => Format::EdgeList(EdgeColumns::Either),
            "graph" | "metis" => Format::Metis,
            _ => return Format::of_text(begin),
        })
    }

    /// The format of text with an ending that tells nothing: a comment or the header of DIMACS, a comment of SNAP.
    fn of_text(begin: &[u8]) -> Option<Format> {
        let begins = |text: &str| begin.trim_ascii_start().starts_with(text.as_bytes());
        if begins("p sp ") || begins("c ") || begins("c\n") {
            Some(Format::Dimacs)
        } else if begins("# ") {
            Some(Format::EdgeList(EdgeColumns::Either))
        } else {
            None
        }
    }

    /// Reads a file in this format.
    pub(super) fn read(self, name: &str, reader: impl BufRead, weighted: bool) -> Result<ParsedGraph, GraphError> {
        match self {
            Format::Dimacs => Ok(ParsedGraph { graph: read_dimacs(name, reader, weighted)?, notes: Vec::new() }),
            Format::Galois => read_galois(name, reader, weighted),
            Format::MatrixMarket => read_matrix_market(name, reader, weighted),
            Format::EdgeList(columns) => read_edge_list(name, reader, columns, weighted),
            Format::Gap(with_weights) => read_gap(name, reader, with_weights, weighted),
            Format::Metis => read_metis(name, reader, weighted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_or_ending_decides() {
        let galois = [1_u64, 4, 3, 3].map(u64::to_le_bytes).concat();
        let either = Format::EdgeList(EdgeColumns::Either);
        for (name, begin, format) in [
            ("x.gr", &b"c roads\n"[..], Some(Format::Dimacs)),
            ("x.gr", &galois, Some(Format::Galois)),
            ("x.gr.gz", &galois, Some(Format::Galois)),
            ("x.vgr", &galois, Some(Format::Galois)),
            ("x.sg", &galois, Some(Format::Gap(false))),
            ("X.WSG", b"", Some(Format::Gap(true))),
            ("x.el", b"0 1\n", Some(Format::EdgeList(EdgeColumns::Nodes))),
            ("x.wel.gz", b"0 1 2\n", Some(Format::EdgeList(EdgeColumns::Weighted))),
            ("com-dblp.ungraph.txt", b"# Undirected graph\n", Some(either)),
            ("x.txt", b"%%MatrixMarket matrix", Some(Format::MatrixMarket)),
            ("x.graph", b"3 2\n", Some(Format::Metis)),
            ("x.metis", b"% a\n3 2\n", Some(Format::Metis)),
            ("soc-LiveJournal1", b"# Directed graph\n", Some(either)),
            ("roads", b"p sp 3 2\n", Some(Format::Dimacs)),
            ("roads.png", b"\x89PNG", None),
            ("roads", b"0 1\n", None),
        ] {
            assert_eq!(Format::of(Path::new(name), begin), format, "{name}");
        }
    }
}
