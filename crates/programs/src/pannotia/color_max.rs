//! Pannotia color, variant max: each round colours the nodes whose values are the largest among uncoloured neighbours.
//!
//! A round has two kernels, after Jones and Plassmann: `color1` finds the largest value next to each node, `color2`
//! assigns colours. Between rounds the host reads a flag set if two neighbours were left without a colour, and stops if
//! it is clear.
//!
//! Values are a random permutation, so that no two neighbours have equal values: Pannotia draws numbers that seldom
//! coincide. Pannotia skips rows with a single entry; if arcs count both ways, its default, a graph has no such row.

use super::rows::{DIRECTED, FILE, GraphRows, NODES};
use crate::prelude::*;

/// Threads per CTA. Source: Pannotia color, `block_size`.
const THREADS: u32 = 256;
/// Colour for an uncoloured node, and the largest value if no neighbour counts. Source: Pannotia color.
const NONE: i32 = -1;

program! {
    /// colouring of a road network: two kernels a round, a flag read by the host between rounds
    pub(crate) static COLOR_MAX = "color-max",
        "Pannotia color, max (pannotia/pannotia, graph_app/color; hal-uw/gem5-bmks-micro24, pannotia/color); CPElide, \
        Table II (Color-max)";
    properties: nonlinear;
    parameters {
        NODES;
        FILE;
        DIRECTED;
        /// rounds of two launches, at most; fewer where all nodes have a colour
        rounds: count(1..=1 << 30) = 31,
            "Pannotia color in gem5's build (hal-uw/gem5-bmks-micro24): `MAX_ITERS` 32, and the loop starts at 1";
    }
    lay_out(name, request, memory) {
        let rows = GraphRows::lay_out(name, request, false, memory)?;
    }
    struct Colouring {
        /// Value per node.
        value: Array<i32>[u64::from(rows.nodes()), rows.scaling],
        /// Colour per node, from 1.
        colour: Array<i32>[u64::from(rows.nodes()), rows.scaling],
        /// Largest value among each node's uncoloured neighbours.
        largest: Array<i32>[u64::from(rows.nodes()), rows.scaling],
        /// Set if two neighbours have no colour.
        stop: Array<i32>[1, fixed],
        rows: GraphRows,
        rounds: u64,
        seed: u64 = request.seed,
    }
}

impl Colouring {
    /// Finds the largest value among a node's uncoloured neighbours, a node per thread.
    fn find_largest(&self, cta: &mut Cta<'_>) {
        let nodes = self.rows.nodes() as i32;
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(nodes), |warp| {
                let own = warp.load(self.colour, node);
                warp.when(own.eq(NONE), |warp| {
                    let (first, entries) = self.rows.of(warp, node);
                    let mut largest = Lanes::all(NONE);
                    warp.repeat(entries, |warp, entry| {
                        let entry = warp.compute(ComputeClass::Int, 1, first + entry as i32);
                        let neighbour = warp.load(self.rows.column, entry);
                        let its_colour = warp.load(self.colour, neighbour);
                        warp.when(its_colour.eq(NONE), |warp| {
                            warp.store(self.stop, Lanes::all(0), 1);
                            let value = warp.load(self.value, neighbour);
                            let larger = warp.compute(ComputeClass::Int, 1, largest.max(value));
                            largest = warp.update(largest, larger);
                        });
                    });
                    warp.store(self.largest, node, largest);
                });
            });
        });
    }

    /// Colours a node if no uncoloured neighbour has a larger value, a node per thread.
    fn assign_colours(&self, cta: &mut Cta<'_>, colour: i32) {
        let nodes = self.rows.nodes() as i32;
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(nodes), |warp| {
                let own = warp.load(self.colour, node);
                warp.when(own.eq(NONE), |warp| {
                    let (value, largest) = (warp.load(self.value, node), warp.load(self.largest, node));
                    warp.when(value.ge(largest), |warp| warp.store(self.colour, node, Lanes::all(colour)));
                });
            });
        });
    }

    /// A random permutation over the node numbers.
    fn values(&self) -> Vec<i32> {
        let nodes = self.rows.nodes();
        let mut order: Vec<u32> = (0..nodes).collect();
        order.sort_by_cached_key(|node| (noise::noise(self.seed, u64::from(*node)), *node));
        let mut values = vec![0; nodes as usize];
        (0..).zip(order).for_each(|(value, node)| values[node as usize] = value);
        values
    }

    /// Colours after a plain run, and true if all rounds ended before the limit.
    fn plain(&self) -> (Vec<i32>, bool) {
        let (values, graph) = (self.values(), &self.rows.graph);
        let mut colours = vec![NONE; values.len()];
        for colour in 1..=self.rounds {
            let before = colours.clone();
            let mut left = false;
            for node in (0..graph.nodes()).filter(|node| before[*node as usize] == NONE) {
                let uncoloured = graph.target()[graph.row(node)].iter().filter(|to| before[**to as usize] == NONE);
                let largest = uncoloured.map(|to| values[*to as usize]).max();
                left |= largest.is_some();
                if largest.is_none_or(|largest| values[node as usize] >= largest) {
                    colours[node as usize] = colour as i32;
                }
            }
            if !left {
                return (colours, true);
            }
        }
        (colours, false)
    }

    /// Returns an error if two neighbours have equal colours.
    fn check_neighbours(&self, colours: &[i32]) -> Result<(), String> {
        let graph = &self.rows.graph;
        for node in 0..graph.nodes() {
            let own = colours[node as usize];
            let same = |to: &&u32| **to != node && colours[**to as usize] == own;
            if let Some(to) = graph.target()[graph.row(node)].iter().find(same) {
                return Err(format!("neighbours {node} and {to} have colour {own}"));
            }
        }
        Ok(())
    }
}

impl Instance for Colouring {
    fn fill(&self, memory: &Memory) {
        self.rows.fill(memory);
        let values = self.values();
        memory.fill(self.value, |node| values[node as usize]);
        memory.fill(self.colour, |_| NONE);
        memory.fill(self.largest, |_| NONE);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.colour);
        host.copy_to_device(self.largest);
        self.rows.copy_to_device(host);
        host.copy_to_device(self.value);
        let ctas = u64::from(self.rows.nodes().div_ceil(THREADS));
        for colour in 1..=self.rounds {
            host.memory().write(self.stop, 0, 0);
            host.copy_to_device(self.stop);
            // CTAs that find uncoloured neighbours store equal flags.
            host.launch_ordered(Grid::new("color1", ctas, THREADS), |cta| self.find_largest(cta))?;
            host.launch(Grid::new("color2", ctas, THREADS), |cta| self.assign_colours(cta, colour as i32))?;
            host.copy_to_host(self.stop);
            if host.memory().read(self.stop, 0) == 0 {
                break;
            }
        }
        host.copy_to_host(self.colour);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let found = memory.to_vec(self.colour);
        let (expected, ended) = self.plain();
        if let Some(node) = expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            return Err(format!("node {node} has colour {}, expected {}", found[node], expected[node]));
        }
        // A one-way arc hides a node from its neighbour.
        if ended && self.rows.graph.edges().is_some() { self.check_neighbours(&found) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::find;
    use tombolo_workload::bench::{Mode, Request, record};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;

    #[test]
    fn a_file_of_loops_and_lone_nodes_is_coloured() {
        let file = tempfile::Builder::new().suffix(".gr").tempfile().unwrap();
        std::fs::write(file.path(), "p sp 6 5\na 1 1 0\na 1 2 3\na 2 3 1\na 3 1 2\na 4 5 9\n").unwrap();
        let workload = find("color-max").unwrap();
        for (directed, rounds) in [("no", 3), ("yes", 3)] {
            let given = [("graph", file.path().to_str().unwrap()), ("directed", directed)];
            let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
            let recording = record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap();
            assert!(recording.launches() <= 2 * rounds, "{}", recording.launches());
        }
    }
}
