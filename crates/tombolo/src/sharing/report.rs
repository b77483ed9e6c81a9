//! Output of `share`: the ranking, the lost time, the break-even point between the best two, and advice for each array.

use super::exchange::{ExchangeRow, exchange_text};
use super::host::{HostRow, host_text};
use super::overlap::OverlappedCopies;
use super::policy_runs::PolicyRun;
use crate::table::{Cell, Look, Table, bytes, seconds};
use serde::Serialize;
use std::collections::BTreeMap;
use tombolo_system::RunRecord;

/// A ranked sharing policy.
#[derive(Debug, Serialize)]
pub(crate) struct RankedPolicy {
    /// Design of the policy.
    pub(crate) design: &'static str,
    /// Seconds in the region of interest.
    pub(crate) time_s: f64,
    /// Speed-up over one GPU.
    pub(crate) speedup: f64,
    /// True if the policy is a bound that cannot be realised.
    pub(crate) bound: bool,
    /// Seconds spent on page migration after faults.
    faults_s: f64,
    /// Seconds in the region with only copies between GPUs, or with pages moving before a kernel.
    copies_s: f64,
    /// Seconds of warp waits for remote GPUs; null if the run does not report them.
    remote_stall_s: Option<f64>,
    /// Bytes by link and direction.
    link_bytes: BTreeMap<String, u64>,
    /// Short description of the policy for people.
    #[serde(skip)]
    is: &'static str,
    /// Bytes sent from GPUs to remote GPUs.
    #[serde(skip)]
    between: u64,
}

/// Break-even point between the best two realisable policies.
#[derive(Debug, Serialize)]
pub(crate) struct BreakEvenRow {
    /// Policy that is ahead on the unmodified machine.
    pub(crate) a: &'static str,
    /// Second policy.
    pub(crate) b: &'static str,
    /// Link rate, spelled for `--set gpu_link.rate=…`.
    pub(crate) rate: String,
}

/// Run on one GPU, the reference for speed-ups.
#[derive(Debug, Serialize)]
pub(crate) struct SingleGpuRun {
    /// Design of the run.
    pub(crate) design: &'static str,
    /// Seconds in the region of interest.
    pub(crate) time_s: f64,
}

/// Cost of the command on the host.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    /// Seconds of wall-clock time, recording included.
    pub(crate) wall_s: f64,
    /// Number of threads used.
    pub(crate) threads: usize,
}

/// Complete document, printed by `share --json`.
#[derive(Debug, Serialize)]
pub(crate) struct SharingReport {
    /// Version of the simulator.
    pub(crate) tombolo: &'static str,
    /// Machine.
    pub(crate) machine: String,
    /// Fraction of the machine and the input in this run.
    pub(crate) scale: String,
    /// Workload name from the command line.
    pub(crate) workload: String,
    /// Settings of the machine and the designs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set: Vec<String>,
    /// GPU count in the sharing machine.
    pub(crate) gpus: u8,
    /// Reference run for speed-ups.
    pub(crate) one_gpu: SingleGpuRun,
    /// Ranking, fastest first.
    pub(crate) ranking: Vec<RankedPolicy>,
    /// Break-even point; null if the best two have none, which a note explains.
    pub(crate) break_even: Option<BreakEvenRow>,
    /// Advice: a sentence per array, with each call on a separate line.
    pub(crate) advice: Vec<String>,
    /// Estimate with copies that overlap kernels; null if `infinite-bandwidth` did not run.
    pub(crate) overlapped: Option<OverlappedCopies>,
    /// Required exchanges between GPUs, by array and pair.
    pub(crate) exchange: Vec<ExchangeRow>,
    /// Costs of host-memory policies, fastest first; absent for machines without a host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) on_host: Vec<HostRow>,
    /// Notes for the reader about this result.
    pub(crate) notes: Vec<String>,
    /// Cost of the command on the host.
    pub(crate) host: Cost,
}

/// Ranks the policies by time; speed-ups are relative to `alone_s`.
pub(crate) fn ranking(ran: &[PolicyRun], alone_s: f64) -> Vec<RankedPolicy> {
    let mut ranking: Vec<RankedPolicy> = ran.iter().map(|one| RankedPolicy::of(one, alone_s)).collect();
    ranking.sort_by(|one, other| one.time_s.total_cmp(&other.time_s));
    ranking
}

impl RankedPolicy {
    fn of(PolicyRun { policy, record }: &PolicyRun, alone_s: f64) -> RankedPolicy {
        let LostTime { faults_s, copies_s, remote_stall_s } = LostTime::of(record);
        let time_s = record.time.region_s;
        RankedPolicy {
            design: policy.design,
            time_s,
            speedup: alone_s / time_s,
            bound: policy.bound,
            faults_s,
            copies_s,
            remote_stall_s,
            link_bytes: record.links.iter().map(|link| (link.name.clone(), link.bytes)).collect(),
            is: policy.is,
            between: record.inter_gpu_bytes,
        }
    }
}

/// Time lost in comparison with a single GPU.
struct LostTime {
    faults_s: f64,
    copies_s: f64,
    remote_stall_s: Option<f64>,
}

impl LostTime {
    /// Computes the lost time. No run reports the warp waits for remote GPUs.
    fn of(record: &RunRecord) -> LostTime {
        // Copies after the last kernel are outside the region; copies inside the region fill the gaps between its
        // kernels.
        let gaps_s = (record.time.region_s - record.time.kernels_s).max(0.0);
        LostTime {
            faults_s: record.paging.map_or(0.0, |paging| paging.faults_s),
            copies_s: record.copies.map_or(0.0, |copies| copies.exposed_s.min(gaps_s)),
            remote_stall_s: None,
        }
    }
}

/// Formats a lost time; a dash for zero.
fn lost(time_s: f64) -> String {
    if time_s == 0.0 { "-".to_owned() } else { seconds(time_s) }
}

impl SharingReport {
    /// Formats the result for people.
    pub(crate) fn text(&self, colours: bool) -> String {
        let title = |text: &str| format!("{}\n", Look::Strong.paint(text, colours));
        let SharingReport { machine, scale, workload, gpus, one_gpu, .. } = self;
        let mut text =
            title(&format!("{workload} on the {gpus} GPUs of {machine} at scale {scale}: speed-up over one GPU"));
        text.push_str(&self.table().render(colours));
        text.push_str(&format!("one GPU takes {} under {}\n", seconds(one_gpu.time_s), one_gpu.design));
        if let Some(BreakEvenRow { a, b, rate }) = &self.break_even {
            text.push_str(&format!("{a} and {b} take as long at gpu_link.rate={rate}\n"));
        }
        text.push_str(&exchange_text(&self.exchange, *gpus, colours));
        text.extend(self.overlapped.iter().map(OverlappedCopies::text));
        text.push_str(&host_text(&self.on_host, colours));
        text.push('\n');
        if let Some(best) = self.ranking.iter().find(|policy| !policy.bound) {
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
        for policy in &self.ranking {
            let is = if policy.bound { format!("bound: {}", policy.is) } else { policy.is.to_owned() };
            let look = if policy.speedup > 1.0 { Look::Good } else { Look::Bad };
            let look = if policy.bound { Look::Plain } else { look };
            let busiest = policy.link_bytes.values().max().copied().unwrap_or_default();
            let rest = [
                seconds(policy.time_s),
                lost(policy.faults_s),
                lost(policy.copies_s),
                bytes(policy.between),
                bytes(busiest),
            ];
            let words =
                [Cell::plain(policy.design), Cell::plain(is), Cell::new(format!("{:.2}", policy.speedup), look)];
            table.row(words.into_iter().chain(rest.map(Cell::plain)).collect());
        }
        table
    }
}
