//! Graphs: generated like a road network, a mesh, at random (uniform or R-MAT) or with locality, or read from a
//! user's file in one of the formats of module `format`.
//!
//! A generated graph is undirected and simple, except for R-MAT graphs and graphs with locality, which keep all arcs
//! as drawn. A file's graph has the file's directed arcs in file order: parallel arcs and loops stay, as in Galois
//! (`graph-convert`) and Pannotia (`parseCOO`, `parseMM`). If the file or the user requests symmetry, each arc without a
//! reverse arc receives a reverse arc.

mod arcs;
mod dimacs;
mod edge_list;
mod format;
mod islands;
mod lines;
mod local;
mod matrix_market;
mod mesh;
mod metis;
mod random;
mod rmat;
mod road;
mod rows;
mod weights;

pub use arcs::{Arc, Edge, Edges, Graph};
pub use dimacs::read_dimacs;
pub use edge_list::{EdgeColumns, read_edge_list};
pub use islands::islands_graph;
pub use local::{LocalGraph, Locality, local_graph};
pub use matrix_market::read_matrix_market;
pub use mesh::mesh_graph;
pub use metis::read_metis;
pub use random::random_graph;
pub use rmat::{Rmat, rmat_graph};
pub use road::DisjointSets;
pub use road::road_graph;
pub use rows::{read_galois, read_gap};

use crate::noise;
use flate2::bufread::MultiGzDecoder;
use format::Format;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use thiserror::Error;

/// Maximum number of nodes per edge in a file, beyond [`FREE_NODES`]: a file with a few bytes must not claim gigabytes.
/// Source: assumed, far above any connected graph.
const NODES_PER_EDGE: u64 = 16;
/// Node count allowed for any file.
const FREE_NODES: u64 = 1 << 16;
/// Maximum number of nodes and arcs in a graph: kernels index both with 32-bit signed integers.
const LIMIT: u64 = i32::MAX as u64;

/// First bytes in a file packed by gzip. Source: RFC 1952.
const GZIP: &[u8] = b"\x1f\x8b";

/// Largest weight for a generated edge. Source: assumed; travel distances in the DIMACS road graphs are mostly in the
/// thousands.
const HEAVIEST: u64 = 8191;

/// Derives an edge weight from 64 random bits.
fn weight(random: u64) -> u32 {
    1 + noise::below(random, 0, HEAVIEST) as u32
}

/// Reason for which a graph file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}{}: {message}", if *line == 0 { String::new() } else { format!(":{line}") })]
pub struct GraphError {
    /// Name of the file.
    pub file: String,
    /// Line number, from 1; 0 for the whole file.
    pub line: u64,
    /// Description of the defect, and the expected content.
    pub message: String,
}

/// A graph read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedGraph {
    /// The graph.
    pub graph: Graph,
    /// Notes about the graph for readers of results.
    pub notes: Vec<String>,
}

/// Options for reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphOptions {
    /// True if every arc counts in both directions, regardless of the file's symmetry.
    pub symmetric: bool,
    /// True if weights are used. Otherwise all weights are 1, and values that are not whole numbers are accepted.
    pub weighted: bool,
}

/// Reads a graph from the file at `path`, with or without gzip compression. Content that only one format has decides the
/// format, otherwise the file's ending does.
///
/// # Errors
/// When the file is in none of the formats, or damaged.
pub fn read_graph(path: &Path, reading: GraphOptions) -> Result<ParsedGraph, GraphError> {
    let name = path.display().to_string();
    let whole = |message| GraphError { file: name.clone(), line: 0, message };
    let unopened = |error| whole(format!("cannot be opened: {error}"));
    let unread = |error| whole(format!("cannot be read: {error}"));
    // Opening a pipe would wait for its writer, so the file type is checked first.
    if !std::fs::metadata(path).map_err(unopened)?.is_file() {
        return Err(whole("not a file".to_owned()));
    }
    let mut reader = BufReader::new(File::open(path).map_err(unopened)?);
    let packed = reader.fill_buf().map_err(unread)?.starts_with(GZIP);
    let mut reader: Box<dyn BufRead> =
        if packed { Box::new(BufReader::new(MultiGzDecoder::new(reader))) } else { Box::new(reader) };
    let begin = reader.fill_buf().map_err(unread)?;
    let format = Format::of(path, begin).ok_or_else(|| whole(format!("expected a graph, as {}", format::FORMATS)))?;
    let mut read = format.read(&name, reader, reading.weighted)?;
    if reading.symmetric {
        read.graph = read.graph.symmetric();
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    const AS_WRITTEN: GraphOptions = GraphOptions { symmetric: false, weighted: true };
    const ONE_WAY: &str = "p sp 3 2\na 2 1 5\na 3 2 7\n";

    fn packed(text: impl AsRef<[u8]>) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(text.as_ref()).unwrap();
        packer.finish().unwrap()
    }

    /// Reads a temporary file with the given name and content.
    fn read(name: &str, content: &[u8], reading: GraphOptions) -> Result<ParsedGraph, GraphError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        read_graph(&path, reading)
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        for name in ["roads", "roads.tar.gz", "gr", "roads.png"] {
            let refused = read(name, b"0 1\n", AS_WRITTEN).unwrap_err().message;
            assert!(
                refused.starts_with("expected a graph, as DIMACS text or a binary graph of Galois (.gr), "),
                "{refused}"
            );
        }
        let missing = read_graph(Path::new("/nowhere/roads.gr"), AS_WRITTEN).unwrap_err();
        assert!(missing.message.contains("cannot be opened"));
    }

    #[test]
    fn each_format_is_read_by_its_ending_plain_or_packed() {
        let galois: Vec<u8> = [1_u64, 0, 2, 2, 1, 2, 1].iter().flat_map(|number| number.to_le_bytes()).collect();
        let gap: Vec<u8> =
            std::iter::once(0).chain([2_u64, 2, 0, 1, 2, 1].iter().flat_map(|number| number.to_le_bytes())).collect();
        for (name, content) in [
            ("x.el", &b"0 1\n1 0\n"[..]),
            ("x.wel", b"0 1 1\n1 0 1\n"),
            ("x.txt", b"# Nodes: 2 Edges: 2\n0\t1\n1\t0\n"),
            ("x.graph", b"2 1\n2\n1\n"),
            ("x.gr", b"p sp 2 2\na 1 2 1\na 2 1 1\n"),
            ("x.gr", &galois),
            ("x.sg", &gap),
            ("x.mtx", b"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n1 2\n"),
        ] {
            for (name, content) in [(name.to_owned(), content.to_vec()), (format!("{name}.gz"), packed(content))] {
                let graph = read(&name, &content, AS_WRITTEN).unwrap_or_else(|error| panic!("{error}")).graph;
                assert_eq!((graph.target(), graph.weight()), (&[1, 0][..], &[1, 1][..]), "{name}");
            }
        }
    }

    #[test]
    fn arcs_lead_one_way_unless_the_user_says_otherwise() {
        let graph =
            |symmetric| read("x.gr", ONE_WAY.as_bytes(), GraphOptions { symmetric, weighted: true }).unwrap().graph;
        assert_eq!((graph(false).first(), graph(false).target()), (&[0, 0, 1, 2][..], &[0, 1][..]));
        assert_eq!((graph(true).first(), graph(true).target()), (&[0, 1, 3, 4][..], &[1, 0, 2, 1][..]));
    }

    #[test]
    fn packed_files_are_read_and_damaged_ones_refused() {
        let plain = read("x.gr", ONE_WAY.as_bytes(), AS_WRITTEN).unwrap();
        let gz = packed(ONE_WAY);
        for name in ["x.gr.gz", "X.GR.GZ", "packed-all-the-same.gr"] {
            assert_eq!(read(name, &gz, AS_WRITTEN), Ok(plain.clone()), "{name}");
        }
        let parts = [packed("p sp 3 2\na 2 1 5\n"), packed("a 3 2 7\n")].concat();
        assert_eq!(read("x.gr.gz", &parts, AS_WRITTEN), Ok(plain), "several members");
        let matrix = packed("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n");
        assert!(read("x.mtx.gz", &matrix, AS_WRITTEN).is_ok());
        let cut = read("x.gr.gz", &gz[..gz.len() - 9], AS_WRITTEN).unwrap_err();
        assert!(cut.line > 0 && cut.message.starts_with("cannot be read: "), "{cut}");
    }
}
