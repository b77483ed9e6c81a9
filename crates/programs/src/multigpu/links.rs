//! Generated graph of the graph programs: its parameters, and the choice among R-MAT graphs and graphs with locality.

use super::rmat::shape;
use crate::prelude::*;
use tombolo_workload::graph::{Graph, LocalGraph, Locality, Rmat, local_graph, rmat_graph};

parameters! {
    /// R-MAT, whose labels are random; a ring, whose arcs lead to nodes near in number; or communities with partners
    pub(super) const GRAPH = graph: choice("rmat", "ring", "communities") = "rmat", "Tartan, prbench: R-MAT";
}

parameters! {
    /// nodes to the farthest neighbour on a ring, or nodes of a community, at scale 1; scales; not of rmat
    pub(super) const REACH = reach: count(1..=1 << 25) = 16_384, "assumed: a 64 KiB page of 4-byte distances";
}

parameters! {
    /// other communities to which a community's arcs lead; of communities alone
    pub(super) const PARTNERS = partners: count(1..=64) = 2,
        "assumed: with four GPUs, a community's arcs then reach several GPUs, and seldom all";
}

/// Graph of a request, not yet drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum GraphSpec {
    Rmat(Rmat),
    Local(LocalGraph),
}

impl GraphSpec {
    /// Reads the graph's parameters. `heaviest` is the largest weight of an arc; `flips` as in [`Rmat`].
    pub(super) fn of(
        name: &'static str,
        request: &mut Request,
        heaviest: u32,
        flips: bool,
    ) -> Result<GraphSpec, WorkloadError> {
        let (log_nodes, degree) = shape(name, request)?;
        let seed = request.seed;
        let (nodes, kind) = (1 << log_nodes, request.values.text(GRAPH.name).to_owned());
        let is_given = |key| request.values.is_given(key);
        require(name, kind != "rmat" || !is_given(REACH.name), || "`reach` is of graph=ring or communities".into())?;
        let is_partners_own = kind == "communities" || !is_given(PARTNERS.name);
        require(name, is_partners_own, || "`partners` is of graph=communities".into())?;
        if kind == "rmat" {
            return Ok(GraphSpec::Rmat(Rmat { log_nodes, degree, heaviest, flips, seed }));
        }
        let wanted = request.scale.of(request.values.count(REACH.name)).max(1);
        let reach = request.fit_most(REACH.name, wanted, u64::from(nodes) / 2) as u32;
        let locality = match kind.as_str() {
            "ring" => Locality::Ring { reach },
            _ => Locality::Communities { size: reach, partners: request.values.count(PARTNERS.name) as u32 },
        };
        Ok(GraphSpec::Local(LocalGraph { nodes, degree, heaviest, locality, seed }))
    }

    /// Number of nodes.
    pub(super) fn nodes(self) -> u32 {
        match self {
            GraphSpec::Rmat(rmat) => rmat.nodes(),
            GraphSpec::Local(local) => local.nodes,
        }
    }

    /// Number of arcs.
    pub(super) fn arcs(self) -> u64 {
        match self {
            GraphSpec::Rmat(rmat) => rmat.arcs(),
            GraphSpec::Local(local) => local.arcs(),
        }
    }

    /// Seed of the random numbers.
    pub(super) fn seed(self) -> u64 {
        match self {
            GraphSpec::Rmat(rmat) => rmat.seed,
            GraphSpec::Local(local) => local.seed,
        }
    }

    /// Draws the graph.
    pub(super) fn draw(self) -> Graph {
        match self {
            GraphSpec::Rmat(rmat) => rmat_graph(rmat),
            GraphSpec::Local(local) => local_graph(local),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{find, small::request};
    use tombolo_workload::bench::footprint;

    /// Error message for the given graph parameters.
    fn refusal(given: &[(&str, &str)]) -> String {
        let workload = find("pagerank-edges").unwrap();
        footprint(workload, &request(workload, given)).expect_err("it must be refused").to_string()
    }

    #[test]
    fn parameters_of_another_graph_are_refused() {
        let reach = refusal(&[("reach", "8")]);
        assert_eq!(reach, "pagerank-edges: `reach` is of graph=ring or communities");
        let partners = refusal(&[("graph", "ring"), ("partners", "3")]);
        assert_eq!(partners, "pagerank-edges: `partners` is of graph=communities");
    }
}
