//! Costs for policies with a program's data on the host: before, during and after the kernels, on machines with a host.
//! They are not ranked among the remaining policies, whose data is in GPU memories before the first kernel.

use crate::table::{Cell, Look, Table, seconds};
use serde::Serialize;
use tombolo_system::host::PhasesRecord;

/// A host-memory policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostPolicy {
    /// Design of the policy.
    pub(crate) design: &'static str,
    /// Short description of the policy for people.
    pub(crate) is: &'static str,
}

/// All policies for host memory, in the order of their runs.
pub(crate) const HOST_POLICIES: [HostPolicy; 5] = [
    HostPolicy { design: "zero-copy", is: "lines of host memory, cached until a kernel ends" },
    HostPolicy { design: "memcpy-host", is: "copied in before kernels, and out behind them" },
    HostPolicy { design: "unified-memory-cuda6", is: "all on one GPU, copied whole each time" },
    HostPolicy { design: "unified-memory-host", is: "pages go to who faults on them" },
    HostPolicy { design: "umh", is: "blocks of host memory cached in GPU memories" },
];

/// Cost of a host-memory policy in a run.
#[derive(Debug, Serialize)]
pub(crate) struct HostRow {
    /// Design of the policy.
    pub(crate) design: &'static str,
    /// Time of the run by phase, from host setup to results.
    pub(crate) phases: PhasesRecord,
    /// True for the policy with the least total time.
    pub(crate) least: bool,
    /// Short description of the policy for people.
    #[serde(skip)]
    pub(crate) is: &'static str,
}

/// Builds the table rows from finished runs, fastest first.
pub(crate) fn host_rows(ran: Vec<(HostPolicy, PhasesRecord)>) -> Vec<HostRow> {
    let row = |(HostPolicy { design, is }, phases)| HostRow { design, phases, least: false, is };
    let mut rows: Vec<HostRow> = ran.into_iter().map(row).collect();
    rows.sort_by(|one, other| one.phases.whole_s.total_cmp(&other.phases.whole_s));
    if let Some(first) = rows.first_mut() {
        first.least = true;
    }
    rows
}

/// Formats a table with a row per policy and a column per phase; empty without policies.
pub(crate) fn host_text(rows: &[HostRow], colours: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let headings = [
        "design",
        "what it is",
        "in all",
        "host sets up",
        "copies in",
        "kernels",
        "boundaries",
        "host between",
        "copies out",
        "host reads",
        "first value",
    ];
    let mut table = Table::new(2).with_headings(headings);
    let time = |time_s: f64| if time_s == 0.0 { "-".to_owned() } else { seconds(time_s) };
    for row in rows {
        let of = &row.phases;
        let first = of.first_value_s.map_or_else(|| "-".to_owned(), seconds);
        let look = if row.least { Look::Good } else { Look::Plain };
        let parts = [
            of.host_setup_s,
            of.copies_in_s,
            of.kernels_s,
            of.synchronisation_s,
            of.host_between_s,
            of.copies_out_s,
            of.host_results_s,
        ];
        let words = [Cell::plain(row.design), Cell::plain(row.is), Cell::new(seconds(of.whole_s), look)];
        let rest = parts.map(time).into_iter().chain([first]).map(Cell::plain);
        table.row(words.into_iter().chain(rest).collect());
    }
    let title = Look::Strong.paint("With all data on the host at first, and results read there in the end", colours);
    format!("\n{title}\n{}", table.render(colours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_that_takes_least_in_all_is_first() {
        let of = |whole_s| PhasesRecord { whole_s, kernels_s: whole_s, ..PhasesRecord::default() };
        let rows = host_rows(vec![(HOST_POLICIES[0], of(2e-3)), (HOST_POLICIES[4], of(1e-3))]);
        assert_eq!(
            rows.iter().map(|row| (row.design, row.least)).collect::<Vec<_>>(),
            [("umh", true), ("zero-copy", false)]
        );
        let text = host_text(&rows, false);
        assert!(text.contains("umh") && text.contains("first value"), "{text}");
        assert!(host_text(&[], false).is_empty());
    }
}
