//! What `share` prints: the ranking, where time goes, where the best two change places, what to do with each array.

use super::exchange::{ExchangeRow, exchange_text};
use super::field::Ran;
use super::host::{HostRow, host_text};
use crate::table::{Cell, Look, Table, bytes, seconds};
use serde::Serialize;
use std::collections::BTreeMap;
use tombolo_system::RunRecord;

/// One way, ranked.
#[derive(Debug, Serialize)]
pub(crate) struct Ranked {
    /// Its design.
    pub(crate) design: &'static str,
    /// Seconds of the region of interest.
    pub(crate) time_s: f64,
    /// Over one GPU.
    pub(crate) speedup: f64,
    /// Whether nobody can build it.
    pub(crate) bound: bool,
    /// Seconds while pages moved on faults.
    faults_s: f64,
    /// Seconds of the region while nothing ran but copies between GPUs, or pages moved before a kernel.
    copies_s: f64,
    /// Seconds while warps waited for other GPUs; null where the run does not tell.
    remote_stall_s: Option<f64>,
    /// By link and direction.
    link_bytes: BTreeMap<String, u64>,
    /// What it is, for people.
    #[serde(skip)]
    is: &'static str,
    /// Bytes that left GPUs for others.
    #[serde(skip)]
    between: u64,
}

/// Where the best two that can be built change places.
#[derive(Debug, Serialize)]
pub(crate) struct BreakEvenRow {
    /// The one that is ahead on the machine as it is.
    pub(crate) a: &'static str,
    /// The other.
    pub(crate) b: &'static str,
    /// As `--set gpu_link.rate=…` takes it.
    pub(crate) rate: String,
}

/// The one GPU that speed-ups are over.
#[derive(Debug, Serialize)]
pub(crate) struct Alone {
    /// Its design.
    pub(crate) design: &'static str,
    /// Seconds of the region of interest.
    pub(crate) time_s: f64,
}

/// What it cost the machine it ran on.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    /// Seconds, recording included.
    pub(crate) wall_s: f64,
    /// Threads used.
    pub(crate) threads: usize,
}

/// One document with everything; `share --json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Shared {
    /// Version of the simulator.
    pub(crate) tombolo: &'static str,
    /// Machine.
    pub(crate) machine: String,
    /// The fraction of it and of the input that was run.
    pub(crate) scale: String,
    /// As named on the command line.
    pub(crate) workload: String,
    /// What was set of the machine and the designs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set: Vec<String>,
    /// GPUs that share.
    pub(crate) gpus: u8,
    /// What speed-ups are over.
    pub(crate) one_gpu: Alone,
    /// The fastest first.
    pub(crate) ranking: Vec<Ranked>,
    /// Null where the best two do not change places, which a note says.
    pub(crate) break_even: Option<BreakEvenRow>,
    /// A sentence an array, each with calls on lines of their own.
    pub(crate) advice: Vec<String>,
    /// What GPUs must send each other, by array and pair.
    pub(crate) exchange: Vec<ExchangeRow>,
    /// What ways to use the host's memory cost, the fastest first; absent of machines without a host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) on_host: Vec<HostRow>,
    /// What a reader of the result should know.
    pub(crate) notes: Vec<String>,
    /// What it cost.
    pub(crate) host: Cost,
}

/// The ways by time; speed-ups are over `alone_s`.
pub(crate) fn ranking(ran: &[Ran], alone_s: f64) -> Vec<Ranked> {
    let mut ranking: Vec<Ranked> = ran.iter().map(|one| Ranked::of(one, alone_s)).collect();
    ranking.sort_by(|one, other| one.time_s.total_cmp(&other.time_s));
    ranking
}

impl Ranked {
    fn of(Ran { way, record }: &Ran, alone_s: f64) -> Ranked {
        let Lost { faults_s, copies_s, remote_stall_s } = Lost::of(record);
        let time_s = record.time.region_s;
        Ranked {
            design: way.design,
            time_s,
            speedup: alone_s / time_s,
            bound: way.bound,
            faults_s,
            copies_s,
            remote_stall_s,
            link_bytes: record.links.iter().map(|link| (link.name.clone(), link.bytes)).collect(),
            is: way.is,
            between: record.inter_gpu_bytes,
        }
    }
}

/// Where time goes that one GPU does not spend.
struct Lost {
    faults_s: f64,
    copies_s: f64,
    remote_stall_s: Option<f64>,
}

impl Lost {
    /// No run tells how long warps waited for other GPUs.
    fn of(record: &RunRecord) -> Lost {
        // Copies behind the last kernel are not of the region; those that are lie between its kernels.
        let gaps_s = (record.time.region_s - record.time.kernels_s).max(0.0);
        Lost {
            faults_s: record.paging.map_or(0.0, |paging| paging.faults_s),
            copies_s: record.copies.map_or(0.0, |copies| copies.exposed_s.min(gaps_s)),
            remote_stall_s: None,
        }
    }
}

/// Time that was lost; a dash for none.
fn lost(time_s: f64) -> String {
    if time_s == 0.0 { "-".to_owned() } else { seconds(time_s) }
}

impl Shared {
    /// For people.
    pub(crate) fn text(&self, colours: bool) -> String {
        let title = |text: &str| format!("{}\n", Look::Strong.paint(text, colours));
        let Shared { machine, scale, workload, gpus, one_gpu, .. } = self;
        let mut text =
            title(&format!("{workload} on the {gpus} GPUs of {machine} at scale {scale}: speed-up over one GPU"));
        text.push_str(&self.table().render(colours));
        text.push_str(&format!("one GPU takes {} under {}\n", seconds(one_gpu.time_s), one_gpu.design));
        if let Some(BreakEvenRow { a, b, rate }) = &self.break_even {
            text.push_str(&format!("{a} and {b} take as long at gpu_link.rate={rate}\n"));
        }
        text.push_str(&exchange_text(&self.exchange, *gpus, colours));
        text.push_str(&host_text(&self.on_host, colours));
        text.push('\n');
        if let Some(best) = self.ranking.iter().find(|way| !way.bound) {
            text.push_str(&title(&format!("What to do for {}", best.design)));
        }
        for line in self.advice.iter().flat_map(|advice| advice.lines().enumerate()) {
            text.push_str(&format!("{}{}\n", if line.0 == 0 { "" } else { "    " }, Look::Plain.paint(line.1, false)));
        }
        self.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
        let Cost { wall_s, threads } = self.host;
        text.push_str(&format!("\nin {} on {threads} threads\n", seconds(wall_s)));
        text
    }

    fn table(&self) -> Table {
        let headings =
            ["design", "what it is", "speed-up", "time", "in faults", "in copies", "between GPUs", "busiest link"];
        let mut table = Table::new(2).with_headings(headings);
        for way in &self.ranking {
            let is = if way.bound { format!("bound: {}", way.is) } else { way.is.to_owned() };
            let look = if way.speedup > 1.0 { Look::Good } else { Look::Bad };
            let look = if way.bound { Look::Plain } else { look };
            let busiest = way.link_bytes.values().max().copied().unwrap_or_default();
            let rest =
                [seconds(way.time_s), lost(way.faults_s), lost(way.copies_s), bytes(way.between), bytes(busiest)];
            let words = [Cell::plain(way.design), Cell::plain(is), Cell::new(format!("{:.2}", way.speedup), look)];
            table.row(words.into_iter().chain(rest.map(Cell::plain)).collect());
        }
        table
    }
}
