//! Pannotia sssp: shortest paths by matrix-vector products between weights and distances, with minimum in place of sum
//! and sum in place of product.
//!
//! A round has three kernels: distances are copied, multiplied and compared. The host then reads a flag set if any
//! distance changed. A node's row holds its arcs, so that distances run along arcs to the source.

use super::rows::{DIRECTED, FILE, GraphRows, NODES};
use crate::prelude::*;

/// Threads per CTA. Source: Pannotia sssp, `block_size`.
const THREADS: u32 = 64;
/// Distance for an unreached node. Source: Pannotia sssp, `BIG_NUM`.
const FAR: i32 = 99_999_999;

program! {
    /// shortest paths by min-plus products over sparse rows: three kernels a round, a flag read by the host
    pub(crate) static SSSP = "pannotia-sssp",
        "Pannotia sssp, csr (pannotia/pannotia, graph_app/sssp; hal-uw/gem5-bmks-micro24, pannotia/sssp); CPElide, \
        Table II (SSSP)";
    properties: nonlinear;
    parameters {
        NODES;
        FILE;
        DIRECTED;
        /// node that distances are counted to
        source: count(0..=1 << 30) = 0, "Pannotia sssp, `sourceVertex`";
        /// rounds of three launches, at most; fewer where no distance changes
        rounds: count(1..=1 << 30) = 194,
            "Pannotia sssp in gem5's build (hal-uw/gem5-bmks-micro24): `MAX_ITERS` 192, passed in round 194";
    }
    lay_out(name, request, memory) {
        let rows = GraphRows::lay_out(name, request, true, memory)?;
        require(name, source < u64::from(rows.nodes()), || {
            format!("source {source} is no node of the graph's {}", rows.nodes())
        })?;
        let heaviest = rows.graph.weight().iter().copied().max().unwrap_or(0);
        let room = (i32::MAX - FAR) as u32;
        require(name, heaviest <= room, || format!("an arc of weight {heaviest}: at most {room} are allowed"))?;
    }
    struct SingleSourcePaths {
        /// Weight per entry.
        weight: Array<i32>[rows.column.len(), rows.scaling],
        /// Distances before and after a round.
        distance: [Array<i32>; 2]["before", "after"; u64::from(rows.nodes()), rows.scaling],
        /// Set if a distance changed.
        stop: Array<i32>[1, fixed],
        source: i32,
        // Paths have fewer arcs than the graph has nodes.
        rounds: u64 = rounds.min(u64::from(rows.nodes()) - 1),
        rows: GraphRows,
    }
}

impl SingleSourcePaths {
    /// Runs `body` with a node per thread.
    fn each_node(&self, cta: &mut Cta<'_>, body: impl Fn(&mut Warp<'_>, Lanes<i32>)) {
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(self.rows.nodes() as i32), |warp| body(warp, node));
        });
    }

    fn init(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let source = node.eq(self.source);
        let first = warp.compute(ComputeClass::Int, 1, source.select(Lanes::all(0), Lanes::all(FAR)));
        self.distance.iter().for_each(|distance| warp.store(*distance, node, first));
    }

    fn assign(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let after = warp.load(self.distance[1], node);
        warp.store(self.distance[0], node, after);
    }

    /// Computes the minimum over a node's distance and the distances through its neighbours.
    fn multiply(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let (first, entries) = self.rows.of(warp, node);
        let mut least = warp.load(self.distance[0], node);
        warp.repeat(entries, |warp, entry| {
            let entry = warp.compute(ComputeClass::Int, 1, first + entry as i32);
            let (weight, neighbour) = (warp.load(self.weight, entry), warp.load(self.rows.column, entry));
            let reached = weight + warp.load(self.distance[0], neighbour);
            let shorter = warp.compute(ComputeClass::Int, 2, least.min(reached));
            least = warp.update(least, shorter);
        });
        warp.store(self.distance[1], node, least);
    }

    fn compare(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let (before, after) = (warp.load(self.distance[0], node), warp.load(self.distance[1], node));
        warp.when(after.ne(before), |warp| warp.store(self.stop, Lanes::all(0), 1));
    }

    /// Distances after a plain run: every round relaxes all arcs from the previous distances.
    fn plain(&self) -> Vec<i32> {
        let graph = &self.rows.graph;
        let mut distance = vec![FAR; graph.nodes() as usize];
        distance[self.source as usize] = 0;
        for _ in 0..self.rounds {
            let before = distance.clone();
            for (node, distance) in (0..).zip(&mut distance) {
                for at in graph.row(node) {
                    *distance = (*distance).min(before[graph.target()[at] as usize] + graph.weight()[at] as i32);
                }
            }
            if before == distance {
                break;
            }
        }
        distance
    }
}

impl Instance for SingleSourcePaths {
    fn fill(&self, memory: &Memory) {
        self.rows.fill(memory);
        memory.fill(self.weight, |entry| self.rows.graph.weight()[entry as usize] as i32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.rows.copy_to_device(host);
        host.copy_to_device(self.weight);
        let ctas = u64::from(self.rows.nodes().div_ceil(THREADS));
        let grid = |name| Grid::new(name, ctas, THREADS);
        host.launch(grid("vector-init"), |cta| self.each_node(cta, |warp, node| self.init(warp, node)))?;
        for _ in 0..self.rounds {
            host.memory().write(self.stop, 0, 0);
            host.copy_to_device(self.stop);
            host.launch(grid("vector-assign"), |cta| self.each_node(cta, |warp, node| self.assign(warp, node)))?;
            host.launch(grid("min-plus"), |cta| self.each_node(cta, |warp, node| self.multiply(warp, node)))?;
            // CTAs that find a change store equal flags.
            host.launch_ordered(grid("vector-diff"), |cta| self.each_node(cta, |warp, node| self.compare(warp, node)))?;
            host.copy_to_host(self.stop);
            if host.memory().read(self.stop, 0) == 0 {
                break;
            }
        }
        host.copy_to_host(self.distance[0]);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (found, expected) = (memory.to_vec(self.distance[1]), self.plain());
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            Some(node) => Err(format!("node {node} is {} away, expected {}", found[node], expected[node])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use tombolo_workload::bench::{Mode, record};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    /// Distances from a file's nodes to node 1, counted by hand.
    #[test]
    fn distances_along_arcs_are_those_counted_by_hand() {
        let file = tempfile::Builder::new().suffix(".gr").tempfile().unwrap();
        std::fs::write(file.path(), "p sp 5 5\na 2 1 4\na 3 2 1\na 3 1 9\na 1 4 2\na 5 5 1\n").unwrap();
        for (directed, expected) in [("yes", [0, 4, 5, FAR, FAR]), ("no", [0, 4, 5, 2, FAR])] {
            let given = [("graph", file.path().to_str().unwrap()), ("directed", directed)];
            let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let workload = find("pannotia-sssp").unwrap();
            let mut request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
            record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap();
            let mut memory = Memory::new(Backing::AddressOnly);
            let paths = SingleSourcePaths::lay_out("pannotia-sssp", &mut request, &mut memory).unwrap();
            assert_eq!(paths.plain(), expected, "directed={directed}");
        }
    }
}
