//! Links with reversible lanes: three senders with a single receiver, and pairs exchanging data. Source: NUMA-GPU,
//! section 4.
//!
//! The machine is NUMA-GPU's with four sockets and a single SM each. The links run at an eighth of the rate, and even a
//! short program saturates the links. The first kernel places each GPU's pages by touching them; the second kernel
//! writes.

use super::Measurement;
use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::timeline::Timeline;
use tombolo_system::{RunRecord, RunSpec, Simulation};
use tombolo_types::Ps;

/// Lines written by a GPU: a quarter of a millisecond in one link direction, at least fifty samples at the receiver.
const LINES: u64 = 9600;
/// Warps in a CTA.
const WARPS: u64 = 32;

const TO_ONE: [(u64, u64); 3] = [(1, 0), (2, 0), (3, 0)];
const EXCHANGE: [(u64, u64); 4] = [(0, 1), (1, 0), (2, 3), (3, 2)];

/// Ingress lanes at the receiver when the run ends: all but one lane, with eight lanes per direction.
pub(super) fn lanes_of_one_receiver() -> Result<Measurement, String> {
    let (_, timeline) = writes("turning", &TO_ONE)?;
    let last = |name: &str| {
        let track = timeline.tracks.iter().find(|track| track.name == name);
        track.and_then(|track| track.link.lanes().last()).map_or(0, |(_, lanes)| u64::from(*lanes))
    };
    match (last("gpu0.in"), last("gpu0.out")) {
        (inward, 1) => Ok(Measurement::count(15, inward)),
        (_, outward) => Err(format!("{outward} lanes were left outward")),
    }
}

/// Time of the writing kernel with static links, relative to links whose lanes change direction.
pub(super) fn gain_of_one_receiver() -> Result<Measurement, String> {
    gain(&TO_ONE)
}

/// Like `gain_of_one_receiver`, but the GPUs exchange data in pairs.
pub(super) fn gain_of_an_exchange() -> Result<Measurement, String> {
    gain(&EXCHANGE)
}

fn gain(pairs: &[(u64, u64)]) -> Result<Measurement, String> {
    let time = |links: &str| {
        let kernels = writes(links, pairs)?.0.kernels;
        let last = kernels.last().ok_or("no kernel ran")?;
        Ok::<f64, String>(last.end_s - last.start_s)
    };
    Ok(Measurement { predicted: None, measured: time("static")? / time("turning")?, unit: "" })
}

/// Every GPU touches its array. Then the first GPU in each pair writes its own part of the second GPU's array.
fn writes(links: &str, pairs: &[(u64, u64)]) -> Result<(RunRecord, Timeline), String> {
    let mut machine = tombolo_machine::machine("numa-4").map_err(|error| error.to_string())?;
    let mut designs = [tombolo_design::design("numa-turning-links").map_err(|error| error.to_string())?];
    let links = format!("links={links}");
    let settings = ["topology.sms_per_module=1", "gpu_link.rate=8GB/s", "sm.posted_stores=1024", &links];
    tombolo_design::apply(&settings, &mut machine, &mut designs).map_err(|error| error.to_string())?;
    let machine = machine.check().map(Arc::new).map_err(|error| error.to_string())?;
    let design = designs[0].check().map_err(|error| error.to_string())?;
    let array = |gpu: u64| gpu * 4 * LINES..(gpu * 4 + 3) * LINES;
    let touch = (0..4).map(|gpu| CtaBuilder::sharing(array(gpu), WARPS, |warp, line| _ = warp.read([line]))).collect();
    let mut write = vec![CtaBuilder::new(); 4];
    for &(from, to) in pairs {
        let start = array(to).start + from % 3 * LINES;
        write[from as usize] = CtaBuilder::sharing(start..start + LINES, WARPS, |warp, line| _ = warp.write([line]));
    }
    let program = DirectedProgram::new(vec![touch, write]);
    let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
    let observed = Simulation::new(&spec).timeline(Ps::from_ns(5000)).run().map_err(|error| error.to_string())?;
    Ok((observed.record, observed.timeline.expect("it was asked for")))
}
