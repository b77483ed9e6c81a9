//! Advice for each array in the user's terms, with calls ready to paste. The advice is based on the readers and writers
//! of each array over the whole program, and on the fastest sharing policy.
//!
//! Grids are divided by the program's own rule, or into contiguous blocks, one for each GPU. Pointers are the names
//! from the program's source; for copies, `x_0` is the copy on GPU 0.

use super::policies::Family;
use std::collections::BTreeSet;
use std::ops::Range;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_system::movement::{ArraySharing, PageKind};
use tombolo_types::stream::Program;
use tombolo_types::{ArrayInfo, LineSize};

/// Maximum number of calls printed for an array; the rest are counted. Source: the number that a reader looks through.
const MOST_CALLS: usize = 16;

/// Returns a sentence per array, with each call on a separate line.
pub(crate) fn advice(program: &dyn Program, rows: &[ArraySharing], family: Family) -> Vec<String> {
    rows.iter().filter_map(|row| Array::of(program, row).advice(family)).collect()
}

/// An array, prepared for use in calls.
struct Array<'a> {
    row: &'a ArraySharing,
    /// Description for a named array.
    info: Option<&'a ArrayInfo>,
    /// Addresses of the array.
    bytes: Range<u64>,
    line: LineSize,
}

/// Byte range of an array in a call.
type ByteRange = Range<u64>;

impl<'a> Array<'a> {
    fn of(program: &'a dyn Program, row: &'a ArraySharing) -> Array<'a> {
        let line = program.line_size();
        let info = row.array.map(|array| &program.arrays()[array as usize]);
        let lines = line.address_of(row.lines.first)..line.address_of(row.lines.end);
        Array { row, info, bytes: info.map_or(lines, ArrayInfo::addresses), line }
    }

    fn advice(&self, family: Family) -> Option<String> {
        let (name, kind) = (self.name(), self.row.pages.most()?);
        let (text, calls) = match kind {
            _ if 2 * self.row.contended_lines > self.row.written_lines => (self.leave(), Vec::new()),
            PageKind::ReadOnly if self.row.written_lines == 0 => self.read_only(family),
            PageKind::ReadOnly | PageKind::Private | PageKind::OneWriter | PageKind::ManyWriters => self.owned(family),
        };
        let more = calls.len().saturating_sub(MOST_CALLS);
        let mut lines = vec![format!("{name}: {text}")];
        lines.extend(calls.into_iter().take(MOST_CALLS));
        if more > 0 {
            lines.push(format!("// and {more} more such calls"));
        }
        Some(lines.join("\n"))
    }

    fn name(&self) -> String {
        self.info.map_or_else(|| format!("addresses from {:#x}", self.bytes.start), |info| info.name.clone())
    }

    /// Advice to leave the array alone: most lines have several writers, and neither copies nor hints help.
    fn leave(&self) -> String {
        let writers = gpus(self.row.written.iter().enumerate().filter(|(_, lines)| !lines.is_empty()));
        let ArraySharing { contended_lines, written_lines, .. } = self.row;
        let who = if writers.1 == self.row.written.len() { "all".to_owned() } else { writers.0 };
        format!("leave: written by {who}, {contended_lines} of {written_lines} lines in the same bytes")
    }

    fn read_only(&self, family: Family) -> (String, Vec<String>) {
        if family == Family::Published {
            return (
                "it is only read: publish it, and each GPU that reads it has a replica".to_owned(),
                vec![self.allocation()],
            );
        }
        let (readers, _) = gpus(self.row.read.iter().enumerate().filter(|(_, lines)| !lines.is_empty()));
        let bytes = self.bytes.end - self.bytes.start;
        let call = format!("cudaMemAdvise({}, {bytes}, cudaMemAdviseSetReadMostly, 0);", self.pointer("", 0));
        let how = match family {
            Family::Managed | Family::Peer | Family::Published => "let each have a copy",
            Family::Copies => "copy it to each once, before the first kernel, or as managed memory",
        };
        (format!("{readers} read it and none writes it: {how}"), vec![call])
    }

    /// Advice for an array with a part per GPU; remote GPUs may read some lines.
    fn owned(&self, family: Family) -> (String, Vec<String>) {
        let halos: Vec<(usize, usize, ByteRange)> = self.halos().collect();
        let bytes: u64 = halos.iter().map(|(_, _, part)| part.end - part.start).sum();
        let shared = match bytes {
            0 => "each GPU has its own part and reads no other".to_owned(),
            _ => format!("each GPU writes its own part, and others read {bytes} bytes of it"),
        };
        let apart = match (self.row.contended_lines, self.row.pages.many_writers) {
            (0, 0) => String::new(),
            (0, _) => "; parts of several GPUs share pages, so begin each on a page of its own".to_owned(),
            (lines, _) => format!("; {lines} lines have bytes that several write, which no copy joins"),
        };
        let (how, calls) = match family {
            Family::Copies if halos.is_empty() => ("leave: nothing is to be copied", Vec::new()),
            Family::Copies => ("copy these behind each kernel that writes them", self.copies(&halos)),
            Family::Managed | Family::Peer => ("keep each part where it is written", self.hints(&halos)),
            Family::Published if halos.is_empty() => ("leave: nothing is to be published", Vec::new()),
            Family::Published => ("publish it, but for flags of .sys scope on its pages", vec![self.allocation()]),
        };
        (format!("{shared}{apart}; {how}"), calls)
    }

    /// Returns the allocation call for a published array, in the notation of GPS, section 4.
    fn allocation(&self) -> String {
        format!("cudaMallocGPS(&{}, {});", self.name(), self.bytes.end - self.bytes.start)
    }

    /// Returns the data read by remote GPUs but written by one GPU: writer, reader, bytes. Programs with copies need
    /// only these bytes.
    fn halos(&self) -> impl Iterator<Item = (usize, usize, ByteRange)> {
        let pairs = self.row.flows.iter().filter(|flow| flow.writer != flow.reader);
        pairs.flat_map(move |flow| {
            let [writer, reader] = [flow.writer, flow.reader].map(|module| usize::from(module.0));
            let common = self.row.written[writer].intersection(&self.row.read[reader]);
            let parts: Vec<ByteRange> = common.ranges().iter().map(|lines| self.part(*lines)).collect();
            parts.into_iter().map(move |part| (writer, reader, part))
        })
    }

    fn copies(&self, halos: &[(usize, usize, ByteRange)]) -> Vec<String> {
        let call = |(from, to, part): &(usize, usize, ByteRange)| {
            let [source, target] = [from, to].map(|gpu| self.pointer(&format!("_{gpu}"), part.start));
            format!("cudaMemcpyPeerAsync({target}, {to}, {source}, {from}, {}, stream{from});", part.end - part.start)
        };
        halos.iter().map(call).collect()
    }

    /// Returns the memory hints. Each part is preferred and prefetched on its writer, or on its reader if nobody
    /// writes, and mapped for remote readers.
    fn hints(&self, halos: &[(usize, usize, ByteRange)]) -> Vec<String> {
        let mut calls = Vec::new();
        for (gpu, (written, read)) in self.row.written.iter().zip(&self.row.read).enumerate() {
            let own = if written.is_empty() { read } else { written };
            let Some(part) = hull(own).map(|lines| self.part(lines)) else { continue };
            let (start, bytes) = (self.pointer("", part.start), part.end - part.start);
            calls.push(format!("cudaMemAdvise({start}, {bytes}, cudaMemAdviseSetPreferredLocation, {gpu});"));
            calls.push(format!("cudaMemPrefetchAsync({start}, {bytes}, {gpu});"));
        }
        calls.extend(halos.iter().map(|(_, reader, part)| {
            let (start, bytes) = (self.pointer("", part.start), part.end - part.start);
            format!("cudaMemAdvise({start}, {bytes}, cudaMemAdviseSetAccessedBy, {reader});")
        }));
        calls
    }

    /// Returns the bytes in `lines` that belong to the array.
    fn part(&self, lines: LineRange) -> ByteRange {
        let (first, end) = (self.line.address_of(lines.first), self.line.address_of(lines.end));
        first.max(self.bytes.start)..end.min(self.bytes.end)
    }

    /// Returns an expression for an array address on the GPU with this suffix.
    fn pointer(&self, suffix: &str, address: u64) -> String {
        let Some(info) = self.info else {
            return format!("(char *){:#x}", address.max(self.bytes.start));
        };
        let (name, offset) = (&info.name, address.saturating_sub(self.bytes.start));
        let element = u64::from(info.element.unwrap_or(1).max(1));
        match offset {
            0 => format!("{name}{suffix}"),
            _ if info.element.is_some() && offset.is_multiple_of(element) => {
                format!("{name}{suffix} + {}", offset / element)
            }
            _ => format!("(char *){name}{suffix} + {offset}"),
        }
    }
}

/// Returns the names of GPUs, and their number.
fn gpus<'a>(sets: impl Iterator<Item = (usize, &'a LineSet)>) -> (String, usize) {
    let gpus: BTreeSet<usize> = sets.map(|(gpu, _)| gpu).collect();
    let names: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    let text = match names.split_last() {
        None => "no GPU".to_owned(),
        Some((last, [])) => format!("GPU {last}"),
        Some((last, others)) => format!("GPUs {} and {last}", others.join(", ")),
    };
    (text, gpus.len())
}

fn hull(lines: &LineSet) -> Option<LineRange> {
    let ranges = lines.ranges();
    Some(ranges.first()?.hull(*ranges.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_design::scheduling::CtaDistribution;
    use tombolo_system::directed::{CtaBuilder, DirectedProgram};
    use tombolo_system::movement::Movement;
    use tombolo_system::placement::TouchOrder;
    use tombolo_types::Order;
    use tombolo_types::stream::AtomicResult;

    /// Two GPUs: a table read by both, an array in two halves with a line read by the second GPU, and a counter
    /// incremented by both.
    fn told(family: Family) -> Vec<String> {
        let cta = |gpu: u64| {
            CtaBuilder::new().warp(|w| {
                w.read(0..32).read(32..34 - gpu).write(32 + gpu..33 + gpu);
                w.atomic([64], Order::WEAK, AtomicResult::Discarded);
            })
        };
        let arrays = [("table", 0..32), ("x", 32..34), ("sum", 64..65)];
        let program = DirectedProgram::with_arrays(vec![vec![cta(0), cta(1)]], &arrays);
        let movement =
            Movement::find(&*program, CtaDistribution::Contiguous, TouchOrder::new(2, 32)).expect("it decodes");
        advice(&*program, &movement.sharing(&*program), family)
    }

    #[test]
    fn copies_are_of_what_others_read() {
        let [table, x, sum] = &told(Family::Copies)[..] else { panic!("three arrays") };
        assert!(table.starts_with("table: GPUs 0 and 1 read it and none writes it: copy it to each once"), "{table}");
        assert!(x.contains("cudaMemcpyPeerAsync((char *)x_0 + 128, 0, (char *)x_1 + 128, 1, 128, stream1);"), "{x}");
        assert_eq!(sum, "sum: leave: written by all, 1 of 1 lines in the same bytes");
    }

    #[test]
    fn managed_memory_is_advised() {
        let [table, x, _] = &told(Family::Managed)[..] else { panic!("three arrays") };
        assert!(table.ends_with("\ncudaMemAdvise(table, 4096, cudaMemAdviseSetReadMostly, 0);"), "{table}");
        for call in [
            "cudaMemAdvise(x, 128, cudaMemAdviseSetPreferredLocation, 0);",
            "cudaMemPrefetchAsync((char *)x + 128, 128, 1);",
            "cudaMemAdvise((char *)x + 128, 128, cudaMemAdviseSetAccessedBy, 0);",
        ] {
            assert!(x.contains(call), "{call} in {x}");
        }
    }
}
