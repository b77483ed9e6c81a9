//! The measured benchmarks: the workload for each benchmark and size, and the host's additional work.

/// Program executed for a table row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Workload.
    pub workload: &'static str,
    /// Workload parameters.
    pub parameters: Vec<(String, String)>,
    /// Contents of the timed body in addition to the kernels.
    pub body: TimedBody,
}

/// Host work between the two events that time a body, in addition to kernel launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedBody {
    /// Blocking copies between pageable host memory and the device.
    pub copies: Vec<HostCopy>,
    /// Device memory fills: tiny runtime kernels.
    pub fills: u64,
    /// Set if each launch is a round in a host loop: a flag copied in, the kernel, a wait for its end, the flag copied
    /// out.
    pub rounds: bool,
    /// Set if the host waits for the kernels before recording the body's end event.
    pub synchronizes: bool,
}

/// A copy between host and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCopy {
    /// Bytes.
    pub bytes: u64,
    /// Direction: true for copies to the device.
    pub to_device: bool,
}

/// Information in a size: the numbers, and the index among measured rows with an equal size. The index distinguishes
/// rows with equal sizes but different inputs.
struct ParsedSize<'a> {
    numbers: &'a [u64],
    place: usize,
}

/// A benchmark: a name, the form of the sizes (`#` for a number), the form in readable notation, and a case; `None` if
/// the numbers are inconsistent.
struct BenchmarkEntry {
    name: &'static str,
    forms: &'static [&'static str],
    shown: &'static str,
    case: fn(&ParsedSize<'_>) -> Option<Case>,
}

/// Average degrees for the graphs in bfs rows that show no degree, in measurement order.
const DEGREES: [u64; 4] = [4, 8, 16, 32];

const fn entry(
    name: &'static str,
    forms: &'static [&'static str],
    shown: &'static str,
    case: fn(&ParsedSize<'_>) -> Option<Case>,
) -> BenchmarkEntry {
    BenchmarkEntry { name, forms, shown, case }
}

/// Saturating product for sizes claimed by a table; the workload rejects excessive sizes.
fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, factor| product.saturating_mul(*factor))
}

static SUITE: [BenchmarkEntry; 24] = [
    entry("vectoradd", &["#"], "N", |size| kernels("vectoradd", &[("elements", size.numbers[0])])),
    entry("relu", &["#"], "N", |size| kernels("relu", &[("elements", size.numbers[0])])),
    entry("memcopy_h2d", &["#MB"], "mMB", |size| host_copy(size.numbers[0], true)),
    entry("memcopy_d2h", &["#MB"], "mMB", |size| host_copy(size.numbers[0], false)),
    entry("memcopy_d2d", &["#MB"], "mMB", |size| kernels("memcopy", &[("mib", size.numbers[0])])),
    entry("matrixtranspose", &["#x#"], "MxM", |size| kernels("matrixtranspose", &[("side", square(size)?)])),
    entry("floydwarshall", &["#_nodes"], "N_nodes", |size| {
        let nodes = size.numbers[0];
        synchronized(with_copies("floydwarshall", &[("nodes", nodes)], vec![product(&[4, nodes, nodes]); 2]))
    }),
    entry("fastwalshtransform", &["#"], "N", |size| {
        let elements = size.numbers[0];
        synchronized(with_copies("fastwalshtransform", &[("elements", elements)], vec![product(&[4, elements])]))
    }),
    entry("fir", &["#_taps#"], "N_tapsK", |size| {
        kernels("fir", &[("samples", size.numbers[0]), ("taps", size.numbers[1])])
    }),
    entry("simpleconvolution", &["#x#_mask#"], "WxW_maskK", |size| {
        kernels("simpleconvolution", &[("side", square(size)?), ("mask", size.numbers[2])])
    }),
    entry("bitonicsort", &["#"], "N", |size| {
        let elements = size.numbers[0];
        synchronized(with_copies("bitonicsort", &[("elements", elements)], vec![product(&[4, elements])]))
    }),
    entry("kmeans", &["pts#_feat#_clus#"], "ptsP_featF_clusC", |size| {
        let [points, features, clusters] = *size.numbers else { return None };
        kernels("kmeans", &[("points", points), ("features", features), ("clusters", clusters)])
    }),
    entry("atax", &["#x#"], "NxN", |size| {
        let side = square(size)?;
        let mut case = kernels("atax", &[("rows", side), ("columns", side)])?;
        case.body.fills = 2;
        Some(case)
    }),
    entry("bicg", &["#x#"], "NxN", |size| {
        let side = square(size)?;
        kernels("bicg", &[("rows", side), ("columns", side)])
    }),
    entry("pagerank", &["nodes#_sparsity0.5_priters2"], "nodesN_sparsity0.5_priters2", |size| {
        let nodes = size.numbers[0];
        with_copies("pagerank", &[("nodes", nodes)], vec![product(&[4, nodes])])
    }),
    entry("stencil2d", &["#x#"], "NxN", |size| {
        let side = square(size)?;
        kernels("stencil2d", &[("columns", side), ("rows", side), ("iterations", 1), ("points", 9)])
    }),
    entry("bfs", &["nodes#", "nodes#_degree#"], "nodesN or nodesN_degreeD", |size| {
        let nodes = size.numbers[0];
        let degree = size.numbers.get(1).copied().or_else(|| DEGREES.get(size.place).copied())?;
        let mut case = with_copies("bfs", &[("nodes", nodes), ("degree", degree)], vec![product(&[4, nodes])])?;
        case.parameters.push(("mapping".to_owned(), "group".to_owned()));
        case.body.rounds = true;
        Some(case)
    }),
    entry("nw", &["length=#"], "length=L", |size| {
        let length = size.numbers[0];
        with_copies(
            "nw",
            &[("length", length), ("tile", 64)],
            vec![product(&[4, length.saturating_add(1), length.saturating_add(1)])],
        )
    }),
    entry("fft1D_512", &["#_elements"], "N_elements", |size| kernels("fft", &[("elements", size.numbers[0])])),
    entry("spmv_csr_scalar", &["#x#_nnz#"], "RxR_nnzZ", |size| {
        let (rows, entries) = (square(size)?, size.numbers[2]);
        let whole = rows > 0 && entries.is_multiple_of(rows);
        whole.then(|| kernels("spmv", &[("rows", rows), ("entries", entries / rows)]))?
    }),
    entry("matrixmultiplication", &["#x#x#"], "NxNxN", |size| {
        let side = square(size)?;
        (size.numbers[2] == side).then(|| kernels("matrixmultiplication", &[("side", side)]))?
    }),
    entry("nbody", &["#_particles"], "N_particles", |size| kernels("nbody", &[("bodies", size.numbers[0])])),
    entry("conv2d", &["N1_C1_#x#_k#x#_OC3"], "N1_C1_HxH_kKxK_OC3", |size| filtered("conv2d", size)),
    entry("im2col", &["N1_C1_#x#_k#x#"], "N1_C1_HxH_kKxK", |size| filtered("im2col", size)),
];

/// Names of all benchmarks.
pub fn names() -> impl Iterator<Item = &'static str> {
    SUITE.iter().map(|entry| entry.name)
}

/// Case for a row of `benchmark` at `size`, with index `place` among the measured rows; `Err` states the expected form.
pub(crate) fn case(benchmark: &str, size: &str, place: usize) -> Result<Case, String> {
    let entry = SUITE.iter().find(|entry| entry.name == benchmark).ok_or_else(|| {
        format!("no benchmark is called {benchmark}; there are {}", names().collect::<Vec<_>>().join(", "))
    })?;
    let numbers = entry.forms.iter().find_map(|form| fit(form, size));
    let case = numbers.and_then(|numbers| (entry.case)(&ParsedSize { numbers: &numbers, place }));
    case.ok_or_else(|| format!("a size of {benchmark} is {}, not {size}", entry.shown))
}

/// The numbers in `size`, if the text matches the form, with a number for each `#`.
fn fit(form: &str, size: &str) -> Option<Vec<u64>> {
    let mut rest = size;
    let mut numbers = Vec::new();
    for (place, literal) in form.split('#').enumerate() {
        if place > 0 {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            numbers.push(rest[..digits].parse().ok().filter(|number| *number > 0)?);
            rest = &rest[digits..];
        }
        rest = rest.strip_prefix(literal)?;
    }
    rest.is_empty().then_some(numbers)
}

/// Side length of a square; its two sides come first in the size.
fn square(size: &ParsedSize<'_>) -> Option<u64> {
    let [side, other, ..] = *size.numbers else { return None };
    (side == other).then_some(side)
}

fn parameter(key: &str, value: &impl ToString) -> (String, String) {
    (key.to_owned(), value.to_string())
}

/// A case with kernels only.
fn kernels(workload: &'static str, parameters: &[(&str, u64)]) -> Option<Case> {
    let parameters = parameters.iter().map(|(key, value)| parameter(key, value)).collect();
    Some(Case { workload, parameters, body: TimedBody::default() })
}

/// Copies with the given sizes from the host, followed by kernels.
fn with_copies(workload: &'static str, parameters: &[(&str, u64)], copies: Vec<u64>) -> Option<Case> {
    let mut case = kernels(workload, parameters)?;
    case.body.copies = copies.into_iter().map(|bytes| HostCopy { bytes, to_device: true }).collect();
    Some(case)
}

/// Lets the host wait for the end of the case.
fn synchronized(case: Option<Case>) -> Option<Case> {
    case.map(|case| Case { body: TimedBody { synchronizes: true, ..case.body }, ..case })
}

/// A copy with `mib` MiB between host and device.
fn host_copy(mib: u64, to_device: bool) -> Option<Case> {
    let mut case = kernels("memcopy", &[("mib", mib)])?;
    case.body.copies = vec![HostCopy { bytes: mib << 20, to_device }];
    case.parameters.push(parameter("direction", if to_device { &"h2d" } else { &"d2h" }));
    Some(case)
}

/// An image and a filter.
fn filtered(workload: &'static str, size: &ParsedSize<'_>) -> Option<Case> {
    let [side, other, filter, height] = *size.numbers else { return None };
    (side == other && filter == height).then(|| kernels(workload, &[("side", side), ("filter", filter)]))?
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use tombolo_programs::find;
    use tombolo_workload::bench::{Request, footprint};
    use tombolo_workload::scale::Scale;

    #[test]
    fn a_size_fits_its_form_wholly() {
        assert_eq!(fit("#x#_mask#", "128x128_mask3"), Some(vec![128, 128, 3]));
        assert_eq!(fit("#x#_mask#", "128x128_mask3x"), None);
        assert_eq!(fit("length=#", "length="), None);
        assert_eq!(fit("#", "0"), None);
    }

    #[test]
    fn rows_of_bfs_show_their_degree_by_their_place() {
        let degree = |size, place| case("bfs", size, place).map(|case| case.parameters[1].1.clone());
        assert_eq!((degree("nodes1024", 0), degree("nodes1024", 2)), (Ok("4".into()), Ok("16".into())));
        assert_eq!(degree("nodes1024_degree8", 0), Ok("8".into()));
        assert!(degree("nodes1024", 4).unwrap_err().contains("nodesN_degreeD"));
    }

    #[test]
    fn every_case_of_a_shipped_table_is_a_workload() {
        let tables = ["mi300a", "h100-sxm"].map(|machine| crate::shipped(machine).unwrap().rows().unwrap());
        for row in tables.into_iter().flatten() {
            let workload = find(row.case.workload).unwrap();
            let request = Request::new(workload, Scale::FULL, &row.case.parameters, 1).unwrap();
            if workload.data_independent() {
                footprint(workload, &request).unwrap_or_else(|error| panic!("{} {}: {error}", row.benchmark, row.size));
            }
        }
    }
}
