//! R-MAT graph shared by the graph programs: its parameters, and the arc ends as arrays.

use crate::prelude::*;
use tombolo_workload::graph::Graph;

/// Minimum and maximum node count. Source: assumed: a line with distances for each of two GPUs; with 16 arcs per node,
/// half the arcs that 32-bit signed indices can count.
const FEWEST: u64 = 64;
const MOST: u64 = 1 << 26;

parameters! {
    /// nodes, which GPUs share, at scale 1: a power of two; scales, and with it what is exchanged, as the arcs do
    pub(super) const NODES = nodes: count(FEWEST..=MOST) = 2_097_152, "Tartan, prbench, run_4g_strong.sh: scale 21";
}

parameters! {
    /// arcs drawn for each node
    pub(super) const DEGREE = degree: count(2..=1024) = 16,
        "Tartan, prbench, run_4g_strong.sh, and Graph500's specification: edge factor 16";
}

/// Logarithm of the node count, and arcs per node.
pub(super) fn shape(name: &'static str, request: &mut Request) -> Result<(u32, u32), WorkloadError> {
    let wanted = request.scale.of(request.values.count(NODES.name));
    let low = wanted.ilog2();
    // The nearest power of two by ratio.
    let log_nodes = low + u32::from(u128::from(wanted).pow(2) >= 2 << (2 * low));
    let nodes = request.fit(NODES.name, wanted, 1 << log_nodes, "powers of two");
    require(name, (FEWEST..=MOST).contains(&nodes), || format!("{nodes} nodes: {FEWEST} to {MOST} are allowed"))?;
    let degree = request.values.count(DEGREE.name);
    check_indices(name, nodes * degree, "arcs")?;
    Ok((log_nodes, degree as u32))
}

/// Node in whose row each arc lies, arc by arc.
pub(super) fn rows(graph: &Graph) -> impl Iterator<Item = u32> {
    (0..graph.nodes()).flat_map(|node| std::iter::repeat_n(node, graph.row(node).len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multigpu::pagerank::PAGERANK;
    use tombolo_workload::scale::Scale;

    #[test]
    fn nodes_are_the_nearest_power_of_two_and_say_so() {
        let of = |nodes: &str, scale: Scale| {
            let given = [("nodes".to_owned(), nodes.to_owned())];
            let mut request = Request::new(&PAGERANK, scale, &given, 7).unwrap();
            let (log_nodes, degree) = shape("pagerank-edges", &mut request).unwrap();
            assert_eq!(degree, 16);
            (log_nodes, request.notes().first().cloned())
        };
        assert_eq!(of("1024", Scale::FULL), (10, None));
        let told = |nodes, taken| Some(format!("`nodes={nodes}` is taken as {taken}: powers of two"));
        assert_eq!(of("1448", Scale::FULL), (10, told(1448, 1024)));
        assert_eq!(of("1449", Scale::FULL), (11, told(1449, 2048)));
        assert_eq!(of("4096", Scale::new(1, 4).unwrap()), (10, None));
    }

    #[test]
    fn a_graph_of_hardly_a_node_is_refused() {
        let mut request = Request::new(&PAGERANK, Scale::new(1, 1 << 16).unwrap(), &[], 7).unwrap();
        let refused = shape("pagerank-edges", &mut request).unwrap_err().to_string();
        assert_eq!(refused, "pagerank-edges: 32 nodes: 64 to 67108864 are allowed");
    }
}
