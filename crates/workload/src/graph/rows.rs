//! Binary graphs in compressed sparse row form: of Galois (`.gr`) and of the GAP benchmark suite (`.sg`, `.wsg`).
//!
//! ```text
//! Galois := u64 version, u64 bytes of a weight, u64 nodes, u64 arcs, u64 end of each node's arcs,
//!           target of each arc (u32 in version 1, u64 in version 2), zeros up to 8 bytes, weight of each arc
//! GAP    := u8 directed, i64 arcs, i64 nodes, i64 begin of each node's arcs and the end of the last,
//!           i32 target of each arc, in .wsg with an i32 weight behind it,
//!           if directed: the same again for the reversed arcs, which are not read
//! ```
//!
//! Numbers are little endian; weights of Galois are whole numbers of 4 or 8 bytes. Source: Galois, `FileGraph.cpp`; GAP
//! benchmark suite, `writer.h` and `reader.h`.

use super::{Arc, FREE_NODES, Graph, GraphError, LIMIT, NODES_PER_EDGE, ParsedGraph};
use std::io::{BufRead, Read};

/// Numbers for which memory is reserved before they have been read.
const RESERVED: usize = 1 << 16;

/// Reader of a binary file, which counts bytes for errors.
struct Bytes<R> {
    file: String,
    reader: R,
    offset: u64,
}

impl<R: BufRead> Bytes<R> {
    fn new(file: &str, reader: R) -> Bytes<R> {
        Bytes { file: file.to_owned(), reader, offset: 0 }
    }

    fn error(&self, message: &str) -> GraphError {
        GraphError { file: self.file.clone(), line: 0, message: format!("damaged at byte {}: {message}", self.offset) }
    }

    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GraphError> {
        let mut bytes = [0; N];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => {
                self.offset += N as u64;
                Ok(bytes)
            }
            Err(error) => Err(self.error(&format!("{what} cannot be read: {error}"))),
        }
    }

    fn long(&mut self, what: &str) -> Result<u64, GraphError> {
        self.take(what).map(u64::from_le_bytes)
    }

    fn number(&mut self, what: &str) -> Result<u32, GraphError> {
        self.take(what).map(u32::from_le_bytes)
    }

    /// Reads a number of nodes and a number of arcs and checks both; `nodes_first`: their order in the file.
    fn sizes(&mut self, nodes_first: bool) -> Result<(u64, u64), GraphError> {
        let (first, second) = (self.long("a size")?, self.long("a size")?);
        let (nodes, arcs) = if nodes_first { (first, second) } else { (second, first) };
        if arcs > LIMIT || nodes > LIMIT / 2 {
            return Err(self.error(&format!("{nodes} nodes and {arcs} arcs exceed the largest graph")));
        }
        let most = FREE_NODES + NODES_PER_EDGE * arcs;
        if nodes == 0 || nodes > most {
            return Err(self.error(&format!("{nodes} nodes for {arcs} edges: expected 1 to {most}")));
        }
        Ok((nodes, arcs))
    }

    /// Reads the end of each node's arcs.
    fn ends(&mut self, nodes: u64, arcs: u64) -> Result<Vec<u32>, GraphError> {
        let mut ends = Vec::with_capacity(RESERVED.min(nodes as usize));
        let mut last = 0;
        for _ in 0..nodes {
            let end = self.long("the end of a node's arcs")?;
            if end < last || end > arcs {
                return Err(self.error(&format!("a node's arcs end at {end}: expected {last} to {arcs}")));
            }
            last = end;
            ends.push(end as u32);
        }
        if last != arcs {
            return Err(self.error(&format!("the last node's arcs end at {last}, the header says {arcs} arcs")));
        }
        Ok(ends)
    }

    /// Checks the target of an arc.
    fn target(&self, target: u64, nodes: u64) -> Result<u32, GraphError> {
        if target >= nodes {
            return Err(self.error(&format!("node {target} is outside 0 to {}", nodes - 1)));
        }
        Ok(target as u32)
    }

    /// Number of bytes up to the end of the file, as far as it is at most `most`.
    fn rest(&mut self, most: u64) -> Result<Vec<u8>, GraphError> {
        let mut rest = Vec::new();
        match self.reader.by_ref().take(most + 1).read_to_end(&mut rest) {
            Ok(_) => Ok(rest),
            Err(error) => Err(self.error(&format!("cannot be read: {error}"))),
        }
    }
}

/// The graph with the given ends of each node's arcs.
fn graph(ends: &[u32], arcs: impl Iterator<Item = (u32, u32)>) -> Graph {
    let mut from = 0;
    let arcs: Vec<Arc> = (0..)
        .zip(arcs)
        .map(|(place, (to, weight))| {
            while ends[from] <= place {
                from += 1;
            }
            Arc { from: from as u32, to, weight }
        })
        .collect();
    Graph::new(ends.len() as u32, &arcs)
}

/// True if `begin`, the first bytes of a file, are those of a Galois graph.
pub(super) fn is_galois(begin: &[u8]) -> bool {
    let number = |place: usize| begin.get(place * 8..place * 8 + 8)?.try_into().ok().map(u64::from_le_bytes);
    matches!((number(0), number(1)), (Some(1 | 2), Some(0..=64)))
}

/// Reads a binary graph of Galois. `name` is the file name for errors and notes; `weighted` is true if weights are used.
///
/// # Errors
/// When the file is cut, or a number is outside its range.
pub fn read_galois(name: &str, reader: impl BufRead, weighted: bool) -> Result<ParsedGraph, GraphError> {
    let mut bytes = Bytes::new(name, reader);
    let version = bytes.long("the version")?;
    if !(1..=2).contains(&version) {
        return Err(bytes.error(&format!("version {version}: expected 1 or 2")));
    }
    let size = bytes.long("the size of a weight")?;
    if weighted && !matches!(size, 0 | 4 | 8) || size > 64 {
        return Err(bytes.error(&format!("weights of {size} bytes: expected 0, 4 or 8")));
    }
    let (nodes, arcs) = bytes.sizes(true)?;
    let ends = bytes.ends(nodes, arcs)?;
    let mut targets = Vec::with_capacity(RESERVED.min(arcs as usize));
    for _ in 0..arcs {
        let target = if version == 1 { u64::from(bytes.number("a target")?) } else { bytes.long("a target")? };
        targets.push(bytes.target(target, nodes)?);
    }
    let (data, padding) = (size * arcs, if arcs % 2 == 0 { 0 } else { 4 * version });
    let rest = bytes.rest(data + padding)?;
    // Writers disagree on the padding of version 2, and of a graph without weights.
    let padding = rest.len() as u64 - data.min(rest.len() as u64);
    if (rest.len() as u64) < data || padding != 0 && padding != if arcs % 2 == 0 { 0 } else { 4 * version } {
        return Err(bytes.error(&format!("{} bytes behind the targets: expected {data} bytes of weights", rest.len())));
    }
    let mut weights = Vec::new();
    if weighted && size > 0 {
        for weight in rest[padding as usize..].chunks_exact(size as usize) {
            let value = weight.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
            let value = u32::try_from(value).map_err(|_| bytes.error(&format!("weight {value}: expected below 2^32")));
            weights.push(value?);
        }
    }
    let mut notes = Vec::new();
    if weighted && size == 0 {
        notes.push(format!("{name}: has no weights: the weight of each arc is 1"));
    }
    let weights = weights.into_iter().chain(std::iter::repeat(1));
    Ok(ParsedGraph { graph: graph(&ends, targets.into_iter().zip(weights)), notes })
}

/// Reads a graph of the GAP benchmark suite; `with_weights` for a `.wsg` file. `name` is the file name for errors and
/// notes; `weighted` is true if weights are used.
///
/// # Errors
/// When the file is cut, or a number is outside its range.
pub fn read_gap(
    name: &str,
    reader: impl BufRead,
    with_weights: bool,
    weighted: bool,
) -> Result<ParsedGraph, GraphError> {
    let mut bytes = Bytes::new(name, reader);
    let [directed] = bytes.take("the first byte")?;
    if directed > 1 {
        return Err(bytes.error(&format!("{directed}: expected 1 for a directed graph, otherwise 0")));
    }
    let (nodes, arcs) = bytes.sizes(false)?;
    if bytes.long("the begin of the first node's arcs")? != 0 {
        return Err(bytes.error("the first node's arcs do not begin at 0"));
    }
    let ends = bytes.ends(nodes, arcs)?;
    let mut found = Vec::with_capacity(RESERVED.min(arcs as usize));
    for _ in 0..arcs {
        let target = bytes.number("a target")?;
        let to = bytes.target(u64::from(target), nodes)?;
        let weight = if with_weights { bytes.number("a weight")? } else { 1 };
        if weight > i32::MAX as u32 {
            return Err(bytes.error(&format!("weight {}: expected 0 or more", weight as i32)));
        }
        found.push((to, if weighted { weight } else { 1 }));
    }
    // Programs that need no reversed arcs accept a file without them.
    let reversed = u64::from(directed) * ((nodes + 1) * 8 + arcs * if with_weights { 8 } else { 4 });
    let rest = bytes.skip(reversed)?;
    if rest != 0 && rest != reversed {
        return Err(bytes.error(&format!("{rest} bytes behind the arcs: expected {reversed}")));
    }
    let notes = if weighted && !with_weights {
        vec![format!("{name}: has no weights: the weight of each arc is 1")]
    } else {
        Vec::new()
    };
    Ok(ParsedGraph { graph: graph(&ends, found.into_iter()), notes })
}

impl<R: BufRead> Bytes<R> {
    /// Skips to the end of the file; returns the number of skipped bytes, at most `most` + 1.
    fn skip(&mut self, most: u64) -> Result<u64, GraphError> {
        let skipped = std::io::copy(&mut self.reader.by_ref().take(most + 1), &mut std::io::sink());
        skipped.map_err(|error| self.error(&format!("cannot be read: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ends, targets and weights of a ring of three nodes.
    const ENDS: [u64; 3] = [1, 2, 3];
    const TARGETS: [u64; 3] = [1, 2, 0];
    const WEIGHTS: [u64; 3] = [5, 1, 9];

    fn galois(version: u64, size: u64, padded: bool) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [version, size, 3, 3].iter().chain(&ENDS).flat_map(|number| number.to_le_bytes()).collect();
        let width = 4 * version as usize;
        TARGETS.iter().for_each(|target| bytes.extend(&target.to_le_bytes()[..width]));
        bytes.resize(bytes.len() + if padded { width } else { 0 }, 0);
        WEIGHTS.iter().for_each(|weight| bytes.extend(&weight.to_le_bytes()[..size as usize]));
        bytes
    }

    fn gap(directed: u8, weighted: bool) -> Vec<u8> {
        let mut bytes = vec![directed];
        [3, 3, 0].iter().chain(&ENDS).for_each(|number: &u64| bytes.extend(number.to_le_bytes()));
        for (target, weight) in TARGETS.iter().zip(WEIGHTS) {
            bytes.extend(&target.to_le_bytes()[..4]);
            bytes.extend(weight.to_le_bytes().iter().take(if weighted { 4 } else { 0 }));
        }
        bytes
    }

    fn assert_ring(read: Result<ParsedGraph, GraphError>, weights: [u32; 3], what: &str) {
        let read = read.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((read.graph.first(), read.graph.target()), (&[0, 1, 2, 3][..], &[1, 2, 0][..]), "{what}");
        assert_eq!(read.graph.weight(), weights, "{what}");
    }

    #[test]
    fn graphs_of_galois_are_read_in_both_versions() {
        for (version, size, padded) in [(1, 4, true), (1, 8, true), (2, 4, false), (2, 8, true), (2, 4, true)] {
            let file = galois(version, size, padded);
            assert!(is_galois(&file));
            let what = format!("version {version}, {size} bytes, padded: {padded}");
            assert_ring(read_galois("x.gr", &file[..], true), [5, 1, 9], &what);
            assert_ring(read_galois("x.gr", &file[..], false), [1; 3], &what);
        }
        for padded in [false, true] {
            let read = read_galois("x.gr", &galois(1, 0, padded)[..], true);
            assert_eq!(read.as_ref().unwrap().notes, ["x.gr: has no weights: the weight of each arc is 1"]);
            assert_ring(read, [1; 3], "without weights");
        }
    }

    #[test]
    fn graphs_of_gap_are_read_with_and_without_weights() {
        assert_ring(read_gap("x.sg", &gap(0, false)[..], false, true), [1; 3], "undirected");
        assert_ring(read_gap("x.wsg", &gap(0, true)[..], true, true), [5, 1, 9], "weighted");
        assert_ring(read_gap("x.wsg", &gap(0, true)[..], true, false), [1; 3], "weights not used");
        let directed = [gap(1, true), vec![0; 4 * 8 + 3 * 8]].concat();
        assert_ring(read_gap("x.wsg", &directed[..], true, true), [5, 1, 9], "directed");
        assert_ring(read_gap("x.wsg", &gap(1, true)[..], true, true), [5, 1, 9], "without the reversed arcs");
    }

    #[test]
    fn arcs_belong_to_the_nodes_whose_ranges_hold_them() {
        let arcs = [(2, 1), (3, 1), (0, 1)];
        let graph = graph(&[0, 2, 2, 3], arcs.into_iter());
        assert_eq!((graph.first(), graph.target()), (&[0, 0, 2, 2, 3][..], &[2, 3, 0][..]));
    }

    #[test]
    fn errors_name_the_byte_and_what_was_expected() {
        let with = |file: Vec<u8>, at: usize, byte: u8| {
            let mut file = file;
            file[at] = byte;
            file
        };
        let galois_error = |file: &[u8]| read_galois("x.gr", file, true).unwrap_err().to_string();
        for (file, expected) in [
            (galois(1, 4, true)[..20].to_vec(), "x.gr: damaged at byte 16: a size cannot be read: "),
            (with(galois(1, 4, true), 0, 3), "x.gr: damaged at byte 8: version 3: expected 1 or 2"),
            (with(galois(1, 4, true), 8, 5), "x.gr: damaged at byte 16: weights of 5 bytes: expected 0, 4 or 8"),
            (with(galois(1, 4, true), 23, 1), "x.gr: damaged at byte 32: 72057594037927939 nodes and 3 arcs exceed"),
            (with(galois(1, 4, true), 40, 9), "x.gr: damaged at byte 48: a node's arcs end at 9: expected 1 to 3"),
            (
                with(galois(1, 4, true), 48, 2),
                "x.gr: damaged at byte 56: the last node's arcs end at 2, the header says 3",
            ),
            (with(galois(1, 4, true), 56, 3), "x.gr: damaged at byte 60: node 3 is outside 0 to 2"),
            (with(galois(1, 8, true), 76, 1), "x.gr: damaged at byte 68: weight 4294967301: expected below 2^32"),
            (
                galois(1, 4, true)[..79].to_vec(),
                "x.gr: damaged at byte 68: 11 bytes behind the targets: expected 12 bytes",
            ),
            ([galois(1, 4, true), vec![0]].concat(), "x.gr: damaged at byte 68: 17 bytes behind the targets"),
        ] {
            let error = galois_error(&file);
            assert!(error.starts_with(expected), "{error}");
        }
        let gap_error = |file: &[u8]| read_gap("x.wsg", file, true, true).unwrap_err().to_string();
        for (file, expected) in [
            (vec![], "x.wsg: damaged at byte 0: the first byte cannot be read: "),
            (with(gap(0, true), 0, 2), "x.wsg: damaged at byte 1: 2: expected 1 for a directed graph, otherwise 0"),
            (with(gap(0, true), 17, 1), "x.wsg: damaged at byte 25: the first node's arcs do not begin at 0"),
            (with(gap(0, true), 56, 0x80), "x.wsg: damaged at byte 57: weight -2147483643: expected 0 or more"),
            ([gap(0, true), vec![0]].concat(), "x.wsg: damaged at byte 73: 1 bytes behind the arcs: expected 0"),
        ] {
            assert!(gap_error(&file).starts_with(expected), "{}", gap_error(&file));
        }
    }

    proptest! {
        #[test]
        fn damaged_files_give_an_error_or_a_graph(
            which in 0..4_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = [galois(1, 4, true), galois(2, 8, false), gap(0, true), gap(1, false)][which].clone();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(cut.index(bytes.len()) + 1);
            let read = match which {
                0 | 1 => read_galois("x.gr", bytes.as_slice(), true),
                _ => read_gap("x.wsg", bytes.as_slice(), which == 2, true),
            };
            if let Ok(read) = read {
                prop_assert!(u64::from(read.graph.nodes()) <= 1 << 17);
                prop_assert!(read.graph.target().iter().all(|to| *to < read.graph.nodes()));
            }
        }
    }
}
