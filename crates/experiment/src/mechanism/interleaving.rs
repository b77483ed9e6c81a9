//! Lines interleaved over sockets: access destinations under the policies of a single GPU, without any first-touch
//! placement. Source: NUMA-GPU, section 3.

use super::{Measurement, simulate};
use std::sync::Arc;
use tombolo_system::directed::CtaBuilder;

/// Number of lines read by each socket, every line once.
const LINES: u64 = 256;

/// Share of lines crossing if each socket reads its own lines: three in four are homed at remote sockets.
pub(super) fn remote_share() -> Result<Measurement, String> {
    let mut machine = tombolo_machine::machine("numa-4").map_err(|error| error.to_string())?;
    let settings = ["topology.sms_per_module=1", "l1.sector_bytes=128"];
    tombolo_design::apply(&settings, &mut machine, &mut []).map_err(|error| error.to_string())?;
    let machine = machine.check().map(Arc::new).map_err(|error| error.to_string())?;
    let own =
        |socket: u64| CtaBuilder::sharing(socket * LINES..(socket + 1) * LINES, 1, |warp, line| _ = warp.read([line]));
    let record = simulate(&machine, "numa-traditional", vec![(0..4).map(own).collect()])?;
    let received = record.links.iter().filter(|link| link.name.ends_with(".in")).map(|link| link.data_bytes);
    let share = received.sum::<u64>() as f64 / (4 * LINES * machine.line.bytes()) as f64;
    Ok(Measurement { predicted: Some(0.75), measured: share, unit: "" })
}
