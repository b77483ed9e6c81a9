//! Small instances, for tests: a parameter set for every workload.

use tombolo_workload::bench::{Request, Workload};
use tombolo_workload::scale::Scale;

/// Number of GPUs for small instances whose grids are divided among GPUs.
const SMALL_GPUS: u8 = 4;

/// A small instance for the given workload.
pub(super) fn small(workload: &dyn Workload) -> Request {
    request(workload, small_of(workload))
}

/// The small instance with a parameter replaced by another count.
pub(super) fn small_with(workload: &dyn Workload, name: &str, count: u64) -> Request {
    let count = count.to_string();
    let kept = small_of(workload).iter().copied().filter(|(key, _)| *key != name);
    request(workload, &kept.chain([(name, count.as_str())]).collect::<Vec<_>>())
}

/// A user's request with the given parameters.
pub(super) fn request(workload: &dyn Workload, given: &[(&str, &str)]) -> Request {
    let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let gpus = if workload.partitioned_by_gpus() { SMALL_GPUS } else { 1 };
    Request::new(workload, Scale::FULL, &given, 7).unwrap().with_gpus(gpus)
}

/// Parameters for the workload's small instance.
fn small_of(workload: &dyn Workload) -> &'static [(&'static str, &'static str)] {
    let given: &[(&str, &str)] = match workload.name() {
        "triad" => &[("elements", "10000"), ("iterations", "3")],
        "stencil2d" => &[("columns", "70"), ("rows", "41"), ("iterations", "3")],
        "pathfinder" => &[("columns", "1000"), ("rows", "13"), ("pyramid", "5")],
        "lonestar-bfs" => &[("nodes", "900")],
        "lonestar-mst" => &[("nodes", "900"), ("ctas", "2")],
        "lonestar-sssp" => &[("nodes", "900"), ("threads", "128")],
        "sp" => &[("variables", "200"), ("clauses", "840"), ("sweeps", "6"), ("phases", "3")],
        "dmr" => &[("side", "17"), ("ctas", "3"), ("rounds", "40"), ("room", "5")],
        "rsbench" => &[("lookups", "700"), ("poles", "60"), ("windows", "6")],
        "mcb" => &[("particles", "700"), ("side", "7"), ("steps", "2")],
        "rabbitct" => &[("side", "14"), ("columns", "19"), ("rows", "17"), ("images", "3")],
        "raytracing" => &[("triangles", "900"), ("columns", "32"), ("rows", "16")],
        "nw" => &[("length", "96")],
        "rnn-forward" | "rnn-dgrad" | "rnn-wgrad" => &[("hidden", "96"), ("batch", "35"), ("steps", "3")],
        "gru" => &[("hidden", "32"), ("batch", "5"), ("steps", "3")],
        "cnn" => &[("batch", "2"), ("side", "15"), ("channels", "8"), ("outputs", "12"), ("splits", "3")],
        "lstm-layer2" => &[("hidden", "32"), ("batch", "35"), ("steps", "3")],
        "googlenet-conv2" => &[("batch", "2"), ("inputs", "6"), ("outputs", "140"), ("side", "9")],
        "alexnet-conv4" | "overfeat-layer3" => &[("batch", "2"), ("inputs", "8"), ("outputs", "70"), ("side", "7")],
        "overfeat-layer1" => &[("batch", "2"), ("outputs", "20"), ("side", "23")],
        "resnet" => &[("batch", "2"), ("wide", "16"), ("narrow", "8"), ("side", "9")],
        "alexnet-conv2" => &[("batch", "2"), ("inputs", "8"), ("outputs", "140"), ("side", "9")],
        "comd" => &[("x", "4"), ("y", "4"), ("z", "7"), ("femtoseconds", "20")],
        "pennant" => &[("rays", "7"), ("rings", "9"), ("cycles", "3")],
        "hacc" => &[("particles", "150"), ("trials", "2")],
        "cusolver" => &[("size", "250"), ("ctas", "3")],
        "hpgmg" => &[("x", "8"), ("y", "8"), ("z", "8"), ("smooths", "1"), ("host", "100")],
        "miniamr" => &[
            ("x", "3"),
            ("y", "3"),
            ("z", "1"),
            ("levels", "2"),
            ("blocks", "90"),
            ("side", "4"),
            ("variables", "2"),
            ("steps", "16"),
            ("stages", "1"),
        ],
        "minicontact" => &[("columns", "21"), ("rows", "17")],
        "namd" => &[("x", "1"), ("y", "2"), ("z", "3"), ("atoms", "128"), ("steps", "5")],
        "nekbone" => &[("points", "4"), ("x", "2"), ("y", "3"), ("z", "2"), ("iterations", "3")],
        "snap" => &[("side", "4"), ("angles", "8"), ("groups", "2"), ("sweeps", "2")],
        "vectoradd" | "relu" => &[("elements", "1000")],
        "memcopy" => &[("mib", "1")],
        "matrixtranspose" => &[("side", "128")],
        "matrixmultiplication" => &[("side", "64")],
        "simpleconvolution" => &[("side", "40"), ("mask", "3")],
        "conv2d" | "im2col" => &[("side", "21"), ("filter", "5")],
        "fir" => &[("samples", "700"), ("taps", "5")],
        "fft" => &[("elements", "1000")],
        "fastwalshtransform" => &[("elements", "2048")],
        "bitonicsort" => &[("elements", "512")],
        "floydwarshall" => &[("nodes", "40")],
        "pannotia-fw" => &[("nodes", "48"), ("edges", "600")],
        "color-max" | "pannotia-sssp" => &[("nodes", "900")],
        "kmeans" => &[("points", "300"), ("features", "4")],
        "mgpusim-pagerank" => &[("nodes", "150")],
        "spmv" => &[("rows", "300"), ("entries", "5")],
        "atax" | "bicg" => &[("rows", "70"), ("columns", "50")],
        "nbody" => &[("bodies", "300")],
        "chase" => &[("kib", "32"), ("steps", "100")],
        "bandwidth" => &[("kib", "64"), ("ctas", "3"), ("passes", "2")],
        "backprop" => &[("inputs", "48"), ("hidden", "32")],
        "srad" => &[("columns", "48"), ("rows", "32")],
        "hotspot" => &[("columns", "70"), ("rows", "41"), ("steps", "5")],
        "gaussian" => &[("size", "70"), ("tile", "40")],
        "euler3d" => &[("x", "3"), ("y", "4"), ("z", "3")],
        "lulesh" | "lulesh-hip" => &[("side", "4"), ("steps", "4")],
        "lulesh-unstructured" => &[("side", "5"), ("steps", "4")],
        "amg" => &[("x", "9"), ("y", "7"), ("z", "11"), ("cycles", "2"), ("bottom", "3")],
        "bitcoin" => &[("headers", "2500"), ("nonces", "2"), ("ctas", "2")],
        "babelstream" => &[("elements", "1000"), ("iterations", "2")],
        "lud" => &[("size", "48")],
        "hotspot3d" => &[("columns", "70"), ("rows", "9"), ("layers", "3"), ("steps", "3")],
        "rodinia-bfs" => &[("nodes", "1100")],
        "btree" => &[("keys", "900"), ("queries", "5"), ("ranges", "4"), ("span", "50")],
        "dwt2d" => &[("columns", "70"), ("rows", "41")],
        "square" => &[("elements", "3000"), ("ctas", "3"), ("launches", "3")],
        "pagerank-edges" => &[("nodes", "1024"), ("degree", "8"), ("iterations", "3")],
        "als" => &[("items", "40"), ("users", "60"), ("ratings", "600"), ("features", "20"), ("iterations", "2")],
        "sssp-owners" => &[("nodes", "1024"), ("degree", "8")],
        "jacobi" => &[("columns", "70"), ("rows", "83"), ("iterations", "3"), ("check", "2")],
        "jacobi-banded" => &[("x", "11"), ("y", "7"), ("z", "13"), ("iterations", "3")],
        "diffusion" => &[("columns", "70"), ("rows", "13"), ("planes", "37"), ("iterations", "2")],
        "eqwp" => &[("x", "20"), ("y", "17"), ("z", "21"), ("iterations", "3")],
        "hit" => &[("side", "16"), ("depth", "16"), ("steps", "1")],
        "hit-halo" => &[("x", "20"), ("y", "9"), ("z", "17"), ("steps", "2")],
        "mbir" => &[("side", "32"), ("views", "34"), ("channels", "40"), ("radius", "3"), ("iterations", "1")],
        "blackscholes" => &[("samples", "262144")],
        "all-reduce" | "reduce-scatter" | "all-gather" | "all-to-all" | "broadcast" | "send-receive" => {
            &[("bytes", "6000"), ("ctas", "2"), ("threads", "64"), ("slice", "512"), ("iterations", "2")]
        }
        "dct" => &[("columns", "40"), ("rows", "24")],
        "dwthaar1d" => &[("length", "16384")],
        "histogram" => &[("columns", "256"), ("rows", "256")],
        "mersennetwister" => &[("randoms", "262144"), ("factor", "2")],
        "amdapp-matrixtranspose" => &[("side", "48")],
        "streams" => &[("streams", "3"), ("side", "20"), ("launches", "3")],
        "amdapp-floydwarshall" => &[("nodes", "64")],
        "amdapp-matrixmultiplication" => &[("side", "64")],
        "radixsort" => &[("elements", "32768")],
        "reduction" => &[("elements", "5120")],
        "scanlargearrays" => &[("elements", "131072")],
        "amdapp-simpleconvolution" => &[("side", "32")],
        "sobelfilter" => &[("width", "512"), ("height", "9"), ("iterations", "2")],
        other => panic!("no small size of {other}"),
    };
    given
}
