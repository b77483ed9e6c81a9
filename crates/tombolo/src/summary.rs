//! The result of one run, for people.

use crate::table::{Cell, Look, Table, bytes, count, percent, seconds, small};
use tombolo_experiment::workload::Source;
use tombolo_system::RunRecord;
use tombolo_system::checker::{Checked, Violation};
use tombolo_system::record::LinkRecord;

/// What a person wants to know first of a run of `source`.
pub(crate) fn text(run: &RunRecord, source: &Source, colours: bool) -> String {
    let RunRecord { workload, machine, design, scale, .. } = run;
    let taken = match &source.adjusted[..] {
        [] => String::new(),
        adjusted => format!(" (taken as {})", adjusted.join(", ")),
    };
    let title = format!("{workload}{taken} on {machine} under {design} at scale {scale}");
    let mut text = format!("{}\n", Look::Strong.paint(&title, colours));
    let mut table = Table::new(2);
    for (name, value) in lines(run, source.sample.is_some()) {
        table.row(vec![Cell::plain(name), Cell::plain(value)]);
    }
    text.push_str(&table.render(colours));
    if let Some(check) = &run.check {
        text.push_str(&values(check));
    }
    for note in &run.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// What a checked run says of its loads.
fn values(check: &Checked) -> String {
    let Checked { loads, stores, violations, first } = check;
    let mut text = format!(
        "checked {} loads against {} stores: {}\n",
        count(*loads),
        count(*stores),
        match violations {
            0 => "none returned what the memory model forbids".to_owned(),
            many => format!("{} returned what the memory model forbids; the first are", count(*many)),
        }
    );
    for Violation { time_ps, by, launch, address, why } in first {
        let at = seconds(*time_ps as f64 * 1e-12);
        text.push_str(&format!("  {at}: {by}, kernel launch {launch}, address {address:#x}: {why}\n"));
    }
    text
}

fn lines(run: &RunRecord, sampled: bool) -> Vec<(&'static str, String)> {
    let projected = if sampled { ", projected from parts of it" } else { "" };
    let work = format!("{} cycles, {} kernels", run.cycles, run.kernel_launches);
    let mut lines = vec![
        ("time", format!("{}{projected} ({work})", seconds(run.time_s))),
        (
            "instructions",
            format!(
                "{} of warps, {} of these to memory, {} line transactions",
                count(run.warp_instructions),
                count(run.memory_instructions),
                count(run.transactions)
            ),
        ),
        ("L1", format!("{} of {} loads hit", percent(run.l1.hits, run.l1.accesses), count(run.l1.accesses))),
        (
            "L2",
            format!(
                "{} of {} loads hit; {} of {} from other modules",
                percent(run.l2.hits, run.l2.accesses),
                count(run.l2.accesses),
                percent(run.l2.remote_hits, run.l2.remote_accesses),
                count(run.l2.remote_accesses)
            ),
        ),
        ("DRAM", format!("{} read, {} written", bytes(run.dram.read_bytes), bytes(run.dram.write_bytes))),
        ("between GPUs", bytes(run.inter_gpu_bytes)),
    ];
    let reads = run.memory_cache.hits + run.memory_cache.misses;
    if reads > 0 {
        let hits = percent(run.memory_cache.hits, reads);
        lines.push(("memory caches", format!("{hits} of {} reads hit", count(reads))));
    }
    lines.extend(busiest(&run.links).map(|link| ("busiest link", busy(link))));
    let happened = run.coherence.iter().filter(|(_, times)| **times > 0);
    let coherence: Vec<String> = happened.map(|(name, times)| format!("{name} {}", count(*times))).collect();
    lines.push(("L2 counters", coherence.join(", ")));
    let energy = &run.energy_pj;
    let joules = (energy.l1 + energy.l2 + energy.dram + energy.module_links + energy.gpu_links) * 1e-12;
    lines.push(("energy", format!("{}J moving data", small(joules))));
    lines.push(("digest", run.digest.clone()));
    lines.push((
        "simulated in",
        format!(
            "{} on {} threads: {} warp instructions and {} transactions a second; {} of memory",
            seconds(run.host.wall_s),
            run.host.threads,
            count(run.host.warp_instructions_per_s as u64),
            count(run.host.transactions_per_s as u64),
            bytes(run.host.peak_rss_bytes)
        ),
    ));
    lines
}

/// The link that sent for the largest share of the run, if any sent; the first of equals.
fn busiest(links: &[LinkRecord]) -> Option<&LinkRecord> {
    links
        .iter()
        .filter(|link| link.bytes > 0)
        .reduce(|best, link| if link.utilization > best.utilization { link } else { best })
}

fn busy(link: &LinkRecord) -> String {
    format!("{}: {} in {:.1} % of the time", link.name, bytes(link.bytes), 100.0 * link.utilization)
}
