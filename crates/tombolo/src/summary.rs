//! Summary of a single run, for people.

use crate::table::{Cell, Look, Table, Unit, bytes, count, percent, seconds, small};
use serde_json::{Map, Value};
use tombolo_experiment::explain::words;
use tombolo_experiment::workload::PreparedProgram;
use tombolo_system::checker::{CheckReport, Violation, ViolationSite};
use tombolo_system::elision::ElisionRecord;
use tombolo_system::iteration::IterationRecord;
use tombolo_system::latency::{LatencyRecord, ServedRecord};
use tombolo_system::paging::PagingRecord;
use tombolo_system::publication::PublicationRecord;
use tombolo_system::record::{KernelRecord, LinkRecord};
use tombolo_system::stalls::{SMALLEST_SHOWN_SHARE, StallRecord};
use tombolo_system::utilization::{UtilizationRecord, UtilizationShares};
use tombolo_system::{RunRecord, TimeChoice, TimeRecord};

/// Selects the printed parts of a run.
#[derive(Clone, Copy)]
pub(crate) struct SummaryOptions {
    /// True to print each launch, each GPU and each module.
    pub(crate) kernels: bool,
    /// Run time printed next to the whole time.
    pub(crate) time: TimeChoice,
}

/// Formats the most important results for a run of `source`.
pub(crate) fn text(run: &RunRecord, source: &PreparedProgram, shown: SummaryOptions, colours: bool) -> String {
    let RunRecord { workload, machine, design, scale, .. } = run;
    let taken = match &source.adjusted[..] {
        [] => String::new(),
        adjusted => format!(" (taken as {})", adjusted.join(", ")),
    };
    let title = format!("{workload}{taken} on {machine} under {design} at scale {scale}");
    let mut text = format!("{}\n", Look::Strong.paint(&title, colours));
    let mut table = Table::new(2);
    for (name, value) in lines(run, shown) {
        table.row(vec![Cell::plain(name), Cell::plain(value)]);
    }
    text.push_str(&table.render(colours));
    text.push_str(&format!("\n{}", slots(run).render(colours)));
    if let Some(latency) = &run.latency {
        text.push_str(&format!("\n{}", loads(latency).render(colours)));
        text.push_str(&format!("\n{}", legs(latency).render(colours)));
    }
    if shown.kernels {
        for table in [launches(&run.kernels), gpus(run), modules(run)] {
            text.push_str(&format!("\n{}", table.render(colours)));
        }
    }
    if let Some(check) = &run.check {
        text.push_str(&values(check));
    }
    for note in &run.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// Formats the reports of the user's observers: a line per value, with its path.
pub(crate) fn observed(observed: &Map<String, Value>) -> String {
    fn lines(path: &str, value: &Value, text: &mut String) {
        let named = |key: &str| format!("{path}.{key}");
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| lines(&named(key), value, text)),
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(at, value)| lines(&named(&at.to_string()), value, text));
            }
            Value::String(word) => text.push_str(&format!("observed {path}: {word}\n")),
            Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&format!("observed {path}: {value}\n")),
        }
    }
    let mut text = String::new();
    observed.iter().for_each(|(name, value)| lines(name, value, &mut text));
    text
}

/// Formats the check results for loads.
fn values(check: &CheckReport) -> String {
    let CheckReport { loads, stores, violations, first, places } = check;
    let mut text = format!(
        "checked {} loads against {} stores: {}\n",
        count(*loads),
        count(*stores),
        match violations {
            0 => "none returned what the memory model forbids".to_owned(),
            many => format!("{} returned what the memory model forbids; the first are", count(*many)),
        }
    );
    for Violation { time_ps, by, launch, address, why, .. } in first {
        let at = seconds(*time_ps as f64 * 1e-12);
        text.push_str(&format!("  {at}: {by}, kernel launch {launch}, address {address:#x}: {why}\n"));
    }
    if !places.is_empty() {
        text.push_str("where:\n");
    }
    for ViolationSite { array, module, launch, bytes: [from, to], violations } in places {
        let array = array.as_deref().unwrap_or("addresses of no array");
        let loads = count(*violations);
        text.push_str(&format!("  {array}, bytes {from} to {to}: {module}, kernel launch {launch}, {loads} loads\n"));
    }
    text
}

/// Formats the actions at kernel boundaries.
fn boundaries(elision: &ElisionRecord) -> String {
    let ElisionRecord { boundaries, flushes, invalidations, .. } = elision;
    let needed = |needed: Option<u64>| needed.map_or("unknown".to_owned(), count);
    format!(
        "{}: {} flushes ({} needed), {} invalidations ({} needed), {} lines flushed, {} dropped",
        count(*boundaries),
        count(*flushes),
        needed(elision.needed_flushes),
        count(*invalidations),
        needed(elision.needed_invalidations),
        count(elision.flushed_lines),
        count(elision.dropped_lines)
    )
}

/// Formats page migrations, and copies between GPUs.
fn moved(run: &RunRecord) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(paging) = &run.paging {
        let PagingRecord { faults, batches, migrated_bytes, prefetched_bytes, evictions, faults_s, .. } = *paging;
        let text = format!(
            "{} faults in {} batches, {}; {} migrated, {} prefetched, {} pages evicted",
            count(faults),
            count(batches),
            seconds(faults_s),
            bytes(migrated_bytes),
            bytes(prefetched_bytes),
            count(evictions)
        );
        lines.push(("pages", text));
    }
    if let Some(copies) = &run.copies {
        let text =
            format!("{} calls, {}, {} exposed", count(copies.calls), bytes(copies.bytes), seconds(copies.exposed_s));
        lines.push(("copies", text));
    }
    if let Some(IterationRecord { launches, of, later, first_s, steady_s, last_s }) = run.iteration {
        let text = format!(
            "the first one, {launches} of {of} launches, took {}, the others {}, the last of {} complete ones {}",
            seconds(first_s),
            seconds(steady_s),
            count((1 + later).into()),
            seconds(last_s)
        );
        lines.push(("iterations", text));
    }
    if let Some(publication) = &run.publication {
        lines.extend(published(publication));
    }
    lines
}

/// Formats the data published to subscribers.
fn published(record: &PublicationRecord) -> [(&'static str, String); 2] {
    let PublicationRecord { stores, queue_hits, atomics, published_lines, published_bytes, tlb, subscribers, .. } =
        record;
    let share = |part: u64, all: u64| {
        if all == 0 { "none".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / all as f64) }
    };
    let sent = format!(
        "{} stores ({} merged in the queue) and {} atomics; {} lines sent, {}, of which {} unread and {} unwritten; {} of {} \
         lookups of subscribers hit",
        count(*stores),
        share(*queue_hits, *stores),
        count(*atomics),
        count(*published_lines),
        bytes(*published_bytes),
        bytes(record.useless_bytes),
        bytes(record.unwritten_bytes),
        share(tlb.hits, tlb.accesses),
        count(tlb.accesses),
    );
    let pages: Vec<String> = subscribers.iter().map(|(gpus, pages)| format!("{} on {gpus}", count(*pages))).collect();
    let from_afar = format!(
        "{}; {} loads from afar, {} from the queue, {} pages collapsed",
        pages.join(", "),
        count(record.remote_loads),
        count(record.forwards),
        count(record.collapses)
    );
    [("published", sent), ("subscribers", format!("pages {from_afar}"))]
}

fn lines(run: &RunRecord, shown: SummaryOptions) -> Vec<(&'static str, String)> {
    let sampled = run.sampling.as_ref().filter(|sampling| sampling.whole.is_none());
    let projected = sampled.map_or_else(String::new, |sampling| {
        format!(
            " ± {}, from {} of {} launches",
            seconds(sampling.error_s),
            sampling.launches_counted,
            sampling.launches
        )
    });
    let work = format!("{} cycles, {} kernels", run.cycles, run.kernel_launches);
    let mut lines = vec![("time", format!("{}{projected} ({work})", parts(&run.time)))];
    if shown.time != TimeChoice::Whole && run.kernel_launches > 0 {
        lines.push((shown.time.word(), seconds(run.time.of(shown.time))));
    }
    lines.extend([
        (
            "instructions",
            format!(
                "{} of warps, {} of these to memory, {} line transactions",
                count(run.warp_instructions),
                count(run.memory_instructions),
                count(run.transactions)
            ),
        ),
        ("L1", format!("{} of {} loads hit", percent(run.l1.hits, run.l1.loads), count(run.l1.loads))),
        (
            "L2",
            format!(
                "{} of {} loads hit; {} of {} from other modules",
                percent(run.l2.hits, run.l2.loads),
                count(run.l2.loads),
                percent(run.l2.remote_hits, run.l2.remote_loads),
                count(run.l2.remote_loads)
            ),
        ),
        ("DRAM", memory(run)),
        ("in use", in_use(&run.utilization)),
        ("between GPUs", bytes(run.inter_gpu_bytes)),
    ]);
    lines.extend(moved(run));
    if let Some(elision) = &run.elision {
        lines.push(("boundaries", boundaries(elision)));
    }
    let reads = run.memory_cache.reads;
    if reads > 0 {
        let hits = percent(run.memory_cache.hits, reads);
        lines.push(("memory caches", format!("{hits} of {} reads hit", count(reads))));
    }
    lines.extend(busiest(&run.links).map(|link| ("busiest link", busy(link))));
    let happened = run.coherence.iter().filter(|(_, times)| **times > 0);
    let coherence: Vec<String> = happened.map(|(name, times)| format!("{name} {}", count(*times))).collect();
    lines.push(("L2 counters", coherence.join(", ")));
    let joules = run.energy_pj.total() * 1e-12;
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

/// Formats the memory traffic and the row-buffer hit rate.
fn memory(run: &RunRecord) -> String {
    let moved = format!("{} read, {} written", bytes(run.dram.read_bytes), bytes(run.dram.write_bytes));
    let accesses = run.dram.accesses();
    if accesses == 0 {
        moved
    } else {
        format!("{moved}; {} of accesses hit a row", percent(run.dram.row_hits, accesses))
    }
}

/// Formats the utilisation of resources inside modules, relative to the whole time.
fn in_use(utilization: &UtilizationRecord) -> String {
    let UtilizationRecord { dram_channels, l2_slices, crossbar_to_sms, crossbar_from_sms } = utilization;
    let kinds = [
        ("DRAM channels", dram_channels),
        ("L2 slices", l2_slices),
        ("crossbars to SMs", crossbar_to_sms),
        ("crossbars from SMs", crossbar_from_sms),
    ];
    let told = kinds.map(|(kind, UtilizationShares { mean, highest })| {
        format!("{kind} {:.1} % (busiest {:.1} %)", 100.0 * mean, 100.0 * highest)
    });
    told.join(", ")
}

/// Formats the whole time and its parts, all in the unit of the whole: `832.7 us = 27.4 kernels + 13.4 launches`.
fn parts(time: &TimeRecord) -> String {
    let unit = Unit::of(time.whole_s);
    let named =
        [(time.kernels_s, "kernels"), (time.launches_s, "launches"), (time.copies_s, "copies"), (time.host_s, "host")];
    let parts = named.into_iter().filter(|(part, _)| *part > 0.0);
    let parts: Vec<String> = parts.map(|(part, name)| format!("{} {name}", unit.digits(part))).collect();
    let whole = format!("{} {}s", unit.digits(time.whole_s), unit.prefix);
    if parts.is_empty() { whole } else { format!("{whole} = {}", parts.join(" + ")) }
}

/// Builds the table of warp-slot cycles by class, without classes shown with zero percent in a single decimal.
fn slots(run: &RunRecord) -> Table {
    let stalls = &run.stalls;
    let queued = stalls.queued.unwrap_or_default().named();
    let mut table = Table::new(1).with_headings(["warp-slot cycles", &*count(stalls.warp_slot_cycles)]);
    for (class, cycles) in stalls.named() {
        if stalls.share(cycles) >= SMALLEST_SHOWN_SHARE {
            table.row(vec![Cell::plain(words(class)), Cell::plain(percent(cycles, stalls.warp_slot_cycles))]);
        }
        let queues = queued
            .iter()
            .filter(|(name, _)| *name == class)
            .flat_map(|(_, queues)| [("links", queues.link), ("slices", queues.slice), ("memory", queues.dram)]);
        for (queue, cycles) in queues.filter(|(_, cycles)| stalls.share(*cycles) >= SMALLEST_SHOWN_SHARE) {
            let name = format!("of that, queues of {queue}");
            table.row(vec![Cell::plain(name), Cell::plain(percent(cycles, stalls.warp_slot_cycles))]);
        }
    }
    table
}

/// Builds the table of load latencies by serving component.
fn loads(latency: &LatencyRecord) -> Table {
    let mut table = Table::new(1).with_headings(["loads served by", "loads", "mean", "median", "p99"]);
    for (name, ServedRecord { count: loads, mean_ns, p50_ns, p99_ns, .. }) in served(latency) {
        let mut row = vec![Cell::plain(name.replace('_', " ")), Cell::plain(count(loads))];
        row.extend([mean_ns, p50_ns, p99_ns].map(|time| Cell::plain(seconds(time * 1e-9))));
        table.row(row);
    }
    table
}

/// Builds the table of path segments within each mean latency, without segments shown with zero percent in a single
/// decimal.
fn legs(latency: &LatencyRecord) -> Table {
    let mut table = Table::new(2).with_headings(["loads served by", "legs of the mean"]);
    for (name, ServedRecord { mean_ns, legs_ns, .. }) in served(latency) {
        let legs = legs_ns.named().into_iter().filter(|(_, leg)| *leg >= SMALLEST_SHOWN_SHARE * mean_ns);
        let legs = legs.map(|(leg, time)| format!("{} {:.1} %", leg.replace('_', " "), 100.0 * time / mean_ns));
        let legs = legs.collect::<Vec<_>>().join(", ");
        table.row(vec![Cell::plain(name.replace('_', " ")), Cell::plain(legs)]);
    }
    table
}

/// Returns the components that served loads, by name.
fn served(latency: &LatencyRecord) -> impl Iterator<Item = (&'static str, ServedRecord)> {
    latency.named().into_iter().filter(|(_, served)| served.count > 0)
}

/// Builds a table with a row for each launch.
fn launches(kernels: &[KernelRecord]) -> Table {
    let headings =
        ["kernel", "GPU", "stream", "start", "end", "CTAs", "instructions", "to memory", "transactions", "L1"];
    let mut table = Table::new(2).with_headings(headings);
    for one in kernels {
        let cells = [
            one.name.clone(),
            one.gpu.clone().unwrap_or_else(|| "all".to_owned()),
            one.stream.to_string(),
            seconds(one.start_s),
            seconds(one.end_s),
            count(one.ctas),
            count(one.warp_instructions),
            count(one.memory_instructions),
            count(one.transactions),
            percent(one.l1_load_hits, one.l1_loads),
        ];
        table.row(cells.map(Cell::plain).to_vec());
    }
    table
}

/// Builds a table with a row for each GPU.
fn gpus(run: &RunRecord) -> Table {
    let headings = ["GPU", "busy", "of the time", "transactions", "links to others", "slots that hold a warp"];
    let mut table = Table::new(1).with_headings(headings);
    for one in &run.gpus {
        let cells = [
            one.name.clone(),
            seconds(one.busy_s),
            share(one.busy_s / run.time_s),
            count(one.transactions),
            bytes(one.link_bytes),
            held(&one.stalls),
        ];
        table.row(cells.map(Cell::plain).to_vec());
    }
    table
}

/// Builds a table with a row for each module.
fn modules(run: &RunRecord) -> Table {
    let headings = [
        "module",
        "GPU",
        "transactions",
        "L1",
        "L2",
        "L2 loads of others",
        "DRAM read",
        "written",
        "sent",
        "slots that hold a warp",
    ];
    let mut table = Table::new(2).with_headings(headings);
    for one in &run.modules {
        let cells = [
            one.name.clone(),
            one.gpu.clone(),
            count(one.transactions),
            percent(one.l1_load_hits, one.l1_loads),
            percent(one.l2_hits, one.l2_loads),
            count(one.l2_remote_loads),
            bytes(one.dram_read_bytes),
            bytes(one.dram_write_bytes),
            bytes(one.sent_bytes),
            held(&one.stalls),
        ];
        table.row(cells.map(Cell::plain).to_vec());
    }
    table
}

/// Formats the share of occupied warp slots.
fn held(stalls: &StallRecord) -> String {
    share(1.0 - stalls.share(stalls.idle + stalls.kernel_boundary))
}

fn share(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", 100.0 * share) } else { "-".to_owned() }
}

/// Returns the link with the highest utilisation, if any link sent data; the first link among equals.
fn busiest(links: &[LinkRecord]) -> Option<&LinkRecord> {
    links
        .iter()
        .filter(|link| link.bytes > 0)
        .reduce(|best, link| if link.utilization > best.utilization { link } else { best })
}

fn busy(link: &LinkRecord) -> String {
    format!("{}: {} in {:.1} % of the time", link.name, bytes(link.bytes), 100.0 * link.utilization)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_the_unit_of_the_whole_and_only_where_there_are_any() {
        let time = TimeRecord {
            kernels_s: 27.36e-6,
            launches_s: 13.4e-6,
            copies_s: 791.94e-6,
            whole_s: 832.7e-6,
            ..TimeRecord::default()
        };
        assert_eq!(parts(&time), "832.7 us = 27.4 kernels + 13.4 launches + 791.9 copies");
        let kernel = TimeRecord { kernels_s: 1.5e-6, launches_s: 4.4e-6, whole_s: 5.9e-6, ..TimeRecord::default() };
        assert_eq!(parts(&kernel), "5.90 us = 1.50 kernels + 4.40 launches");
        assert_eq!(parts(&TimeRecord::default()), "0.00 ns");
    }
}
