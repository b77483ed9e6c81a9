//! Links whose lanes turn: three senders and a receiver, and pairs that exchange. Source: NUMA-GPU, section 4.
//!
//! NUMA-GPU's machine of four sockets with one SM each and links an eighth as fast, so that a short program fills
//! them. The first kernel places each GPU's pages by touching them, the second writes.

use super::Measured;
use std::sync::Arc;
use tombolo_system::directed::{Cta, Directed};
use tombolo_system::timeline::Timeline;
use tombolo_system::{RunRecord, RunSpec, run_timed};
use tombolo_types::Ps;

/// Lines that a GPU writes: a quarter of a millisecond of one way of a link, fifty samples and more at the receiver.
const LINES: u64 = 9600;
/// Warps of a CTA.
const WARPS: u64 = 32;

const TO_ONE: [(u64, u64); 3] = [(1, 0), (2, 0), (3, 0)];
const EXCHANGE: [(u64, u64); 4] = [(0, 1), (1, 0), (2, 3), (3, 2)];

/// The receiver's lanes inward when the run ends: all but one of both ways' eight.
pub(super) fn lanes_of_one_receiver() -> Result<Measured, String> {
    let (_, timeline) = writes("turning", &TO_ONE)?;
    let last = |name: &str| {
        let track = timeline.tracks.iter().find(|track| track.name == name);
        track.and_then(|track| track.link.lanes().last()).map_or(0, |(_, lanes)| u64::from(*lanes))
    };
    match (last("gpu0.in"), last("gpu0.out")) {
        (inward, 1) => Ok(Measured::count(15, inward)),
        (_, outward) => Err(format!("{outward} lanes were left outward")),
    }
}

/// Time of the kernel that writes with static links, over that with lanes that turn.
pub(super) fn gain_of_one_receiver() -> Result<Measured, String> {
    gain(&TO_ONE)
}

/// The same where GPUs exchange in pairs.
pub(super) fn gain_of_an_exchange() -> Result<Measured, String> {
    gain(&EXCHANGE)
}

fn gain(pairs: &[(u64, u64)]) -> Result<Measured, String> {
    let time = |links: &str| {
        let kernels = writes(links, pairs)?.0.kernels;
        let last = kernels.last().ok_or("no kernel ran")?;
        Ok::<f64, String>(last.end_s - last.start_s)
    };
    Ok(Measured { predicted: None, measured: time("static")? / time("turning")?, unit: "" })
}

/// Every GPU touches its array; then each first of a pair writes its own part of the second's array.
fn writes(links: &str, pairs: &[(u64, u64)]) -> Result<(RunRecord, Timeline), String> {
    let mut machine = tombolo_machine::machine("numa-4").map_err(|error| error.to_string())?;
    let mut designs = [tombolo_design::design("numa-turning-links").map_err(|error| error.to_string())?];
    let links = format!("links={links}");
    let settings = ["topology.sms_per_module=1", "gpu_link.rate=8GB/s", "sm.posted_stores=1024", &links];
    tombolo_design::apply(&settings, &mut machine, &mut designs).map_err(|error| error.to_string())?;
    let machine = machine.check().map(Arc::new).map_err(|error| error.to_string())?;
    let design = designs[0].check().map_err(|error| error.to_string())?;
    let array = |gpu: u64| gpu * 4 * LINES..(gpu * 4 + 3) * LINES;
    let touch = (0..4).map(|gpu| Cta::sharing(array(gpu), WARPS, |warp, line| _ = warp.read([line]))).collect();
    let mut write = vec![Cta::new(); 4];
    for &(from, to) in pairs {
        let start = array(to).start + from % 3 * LINES;
        write[from as usize] = Cta::sharing(start..start + LINES, WARPS, |warp, line| _ = warp.write([line]));
    }
    let program = Directed::new(vec![touch, write]);
    let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
    run_timed(&spec, Ps::from_ns(5000)).map_err(|error| error.to_string())
}
