//! Counts how much data a program's kernels only read and how much they write, by array. This is a pass over the
//! program's streams, without simulation. Source: UMH (TACO 2016), figure 14.

use crate::survey::{Reader, SurveyedLaunch, Touch, survey, touches};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{LaunchDevices, Line, ModuleId};

/// Bytes in named arrays, counted by whole lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArraysRecord {
    /// Bytes in lines loaded by kernels, for arrays never written by any kernel.
    pub read_only_bytes: u64,
    /// Bytes in lines written by kernels.
    pub written_bytes: u64,
    /// Bytes in all arrays.
    pub allocated_bytes: u64,
}

/// Counts the bytes read and written in arrays by the kernels in `program`.
///
/// # Errors
/// The recording is damaged.
pub fn arrays_used(program: &dyn Program) -> Result<ArraysRecord, StreamError> {
    let size = program.line_size();
    let mut tally = ArrayTally::default();
    survey(program, CtaDistribution::Contiguous, MachineShape::one_gpu(1), &mut [&mut tally])?;
    let in_array = |lines: &FxHashSet<Line>, array: &Range<Line>| {
        lines.iter().filter(|line| array.contains(line)).count() as u64 * size.bytes()
    };
    let mut record = ArraysRecord::default();
    for array in program.arrays() {
        let lines = array.lines(size);
        let written = in_array(&tally.written, &lines);
        record.written_bytes += written;
        record.read_only_bytes += if written == 0 { in_array(&tally.loaded, &lines) } else { 0 };
        record.allocated_bytes += array.bytes;
    }
    Ok(record)
}

#[derive(Default)]
struct ArrayTally {
    launched: FxHashSet<(u32, LaunchDevices)>,
    loaded: FxHashSet<Line>,
    written: FxHashSet<Line>,
}

impl Reader for ArrayTally {
    /// Returns true for a kernel's first launch only: a repeated launch touches the same lines again.
    fn launch(&mut self, launch: SurveyedLaunch) -> bool {
        self.launched.insert(launch.kind())
    }

    fn cta(&mut self, _: ModuleId, _: u32, stream: &CtaStream) {
        for (touch, line) in touches(stream) {
            match touch {
                Touch::Load => _ = self.loaded.insert(line),
                Touch::Store => _ = self.written.insert(line),
                Touch::Atomic => _ = (self.loaded.insert(line), self.written.insert(line)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::{CtaBuilder, DirectedProgram};

    #[test]
    fn an_array_that_is_written_at_all_is_not_one_that_is_only_read() {
        let kernel = |reads: Range<u64>, writes: Range<u64>| {
            vec![CtaBuilder::new().warp(|warp| {
                reads.clone().for_each(|line| _ = warp.read([line]));
                writes.clone().for_each(|line| _ = warp.write([line]));
            })]
        };
        let arrays = [("in", 0..10), ("out", 10..30), ("both", 30..34), ("neither", 40..41)];
        let program = DirectedProgram::with_arrays(
            vec![kernel(0..4, 10..20), kernel(2..6, 33..34), kernel(30..34, 0..0)],
            &arrays,
        );
        let record = arrays_used(&*program).unwrap();
        assert_eq!((record.read_only_bytes, record.written_bytes), (6 * 128, (10 + 1) * 128));
        assert_eq!(record.allocated_bytes, (10 + 20 + 4 + 1) * 128);
    }
}
