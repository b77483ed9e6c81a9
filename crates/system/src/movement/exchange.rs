//! The minimum traffic between GPUs, for any mechanism: lines written by a module and read by another. A line counts
//! once for all writes since the reader's previous read.
//!
//! Not counted: data that a reader receives through host copies, and lines that no module has written.

use super::Movement;
use super::copies::array_lines;
use super::needed::NeededBytes;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::ModuleId;
use tombolo_types::stream::{Command, Program};

/// Traffic that one module must receive from another in an array, over the whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayTraffic {
    /// Index of the array; `None` for lines outside every array.
    pub array: Option<u32>,
    /// The writing module.
    pub writer: ModuleId,
    /// The reading module.
    pub reader: ModuleId,
    /// Bytes in whole lines; a line counts each time it is read with new contents.
    pub bytes: u64,
}

impl Movement {
    /// Traffic that modules must exchange, sorted by array, then by writer, then by reader; lines outside every array
    /// come first. If several modules write parts of a line, the line counts for each writer.
    pub fn exchanges(&self, program: &dyn Program) -> Vec<ArrayTraffic> {
        let arrays = array_lines(program);
        let named = (0..).zip(&arrays).filter_map(|(array, lines)| lines.map(|lines| (array, lines)));
        let named: Vec<(u32, LineRange)> = named.collect();
        let mut needs = NeededBytes::new(self, program);
        let mut bytes = BTreeMap::<(Option<u32>, ModuleId, ModuleId), u64>::new();
        // Per pair, lines already counted for a later read.
        let mut counted = FxHashMap::<(usize, usize), LineSet>::default();
        for command in program.commands().iter().rev() {
            if let Command::Launch { kernel, on, .. } = *command {
                let kernel = self.number(kernel, on);
                let (movements, modules) = (self.kernel(kernel), self.kernel(kernel).len());
                for (writer, reader) in (0..modules).flat_map(|from| (0..modules).map(move |to| (from, to))) {
                    if writer == reader {
                        continue;
                    }
                    let counted = counted.entry((writer, reader)).or_default();
                    let lines = needs.of(kernel, writer, reader).without(counted);
                    counted.add(&lines);
                    *counted = counted.without(&movements[reader].read);
                    let [writer, reader] = [writer, reader].map(|module| ModuleId(module as u8));
                    for (array, lines) in by_array(&lines, &named) {
                        *bytes.entry((array, writer, reader)).or_default() += lines * program.line_size().bytes();
                    }
                }
            }
            needs.before(command);
        }
        let exchange = |((array, writer, reader), bytes)| ArrayTraffic { array, writer, reader, bytes };
        bytes.into_iter().map(exchange).collect()
    }
}

/// Number of lines in `lines` for each array with any, and the number outside every array.
fn by_array(lines: &LineSet, arrays: &[(u32, LineRange)]) -> Vec<(Option<u32>, u64)> {
    let inside = arrays.iter().map(|(array, range)| (Some(*array), lines.intersection(&(*range).into()).count()));
    let inside: Vec<_> = inside.filter(|(_, count)| *count > 0).collect();
    let elsewhere = lines.count() - inside.iter().map(|(_, count)| count).sum::<u64>();
    (elsewhere > 0).then_some((None, elsewhere)).into_iter().chain(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::{CtaBuilder, DirectedProgram};
    use crate::placement::TouchOrder;
    use tombolo_design::scheduling::CtaDistribution;
    use tombolo_types::{Mask, Order};

    /// Lines that `kernels` with two CTAs exchange between two modules, by array, writer and reader.
    fn lines(kernels: Vec<Vec<CtaBuilder>>) -> Vec<(Option<u32>, u8, u8, u64)> {
        let program = DirectedProgram::with_arrays(kernels, &[("x", 0..8), ("y", 8..16)]);
        let movement =
            Movement::find(&*program, CtaDistribution::Contiguous, TouchOrder::new(2, 32)).expect("it decodes");
        let told = |one: ArrayTraffic| (one.array, one.writer.0, one.reader.0, one.bytes / 128);
        movement.exchanges(&*program).into_iter().map(told).collect()
    }

    fn cta(read: std::ops::Range<u64>, write: std::ops::Range<u64>) -> CtaBuilder {
        CtaBuilder::new().warp(|w| {
            w.read(read).write(write);
        })
    }

    #[test]
    fn a_line_crosses_once_each_time_that_it_is_written() {
        let writes = || vec![cta(20..21, 0..2), cta(20..21, 9..10)];
        let reads = || vec![cta(9..10, 21..22), cta(0..2, 22..23)];
        let rows = |times: u64| vec![(Some(0), 0, 1, 2 * times), (Some(1), 1, 0, times)];
        assert_eq!(lines(vec![writes(), reads()]), rows(1));
        assert_eq!(lines(vec![writes(), reads(), reads()]), rows(1), "it is there already");
        assert_eq!(lines(vec![writes(), reads(), writes(), reads()]), rows(2));
        assert_eq!(lines(vec![writes(), writes(), reads()]), rows(1), "nobody has seen the first");
    }

    #[test]
    fn a_line_written_in_parts_by_several_kernels_crosses_once() {
        let part =
            |mask| vec![CtaBuilder::new().warp(|w| _ = w.store([0], Mask(mask), Order::WEAK)), cta(20..21, 12..13)];
        let reads = || vec![cta(20..21, 21..22), cta(0..1, 22..23)];
        assert_eq!(lines(vec![part(0xff), part(0xff00), reads()]), [(Some(0), 0, 1, 1)]);
        assert_eq!(lines(vec![part(0xff), reads(), part(0xff00), reads()]), [(Some(0), 0, 1, 2)]);
    }

    #[test]
    fn what_a_module_reads_of_its_own_or_of_the_host_is_no_exchange() {
        let own = || vec![cta(20..21, 0..2), cta(20..21, 9..10)];
        let reads = vec![cta(0..2, 21..22), cta(9..12, 22..23)];
        assert_eq!(lines(vec![own(), reads]), []);
    }
}
