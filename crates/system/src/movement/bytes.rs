//! Byte sets: lines, each with a mask if only some bytes in the line belong to the set.

use tombolo_model::front_end::WrittenBytes;
use tombolo_model::front_end::reaches;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::{Line, Mask};

/// Lines with every byte in `bytes`.
pub(super) fn whole(bytes: &WrittenBytes) -> LineSet {
    let partly = bytes.partly.keys().map(|&line| LineRange::new(line, Line(line.0 + 1))).collect();
    bytes.lines.without(&partly)
}

/// Adds whole lines.
pub(super) fn add_lines(bytes: &mut WrittenBytes, lines: &LineSet) {
    bytes.lines.add(lines);
    bytes.partly.retain(|&line, _| !reaches(Some(lines), line));
}

/// Adds bytes.
pub(super) fn add(bytes: &mut WrittenBytes, more: &WrittenBytes) {
    let masks = more.partly.iter().map(|(&line, &mask)| (line, mask | bytes.mask(line)));
    let masks: Vec<_> = masks.collect();
    add_lines(bytes, &whole(more));
    bytes.lines.add(&more.lines);
    for (line, mask) in masks {
        match mask {
            Mask::ALL => _ = bytes.partly.remove(&line),
            part => _ = bytes.partly.insert(line, part),
        }
    }
}

/// Bytes to remove from sets, prepared once for many removals.
pub(super) struct RemovedBytes {
    whole: LineSet,
    bytes: WrittenBytes,
}

impl RemovedBytes {
    pub(super) fn new(bytes: WrittenBytes) -> RemovedBytes {
        RemovedBytes { whole: whole(&bytes), bytes }
    }

    /// Removes the bytes from `from`.
    pub(super) fn remove_from(&self, from: &mut WrittenBytes) {
        let mut emptied: Vec<LineRange> = Vec::new();
        for (&line, &mask) in &self.bytes.partly {
            let left = from.mask(line) & !mask;
            if !reaches(Some(&from.lines), line) {
                continue;
            }
            if left.is_empty() {
                from.partly.remove(&line);
                emptied.push(LineRange::new(line, Line(line.0 + 1)));
            } else {
                from.partly.insert(line, left);
            }
        }
        from.partly.retain(|&line, _| !reaches(Some(&self.whole), line));
        from.lines = from.lines.without(&self.whole);
        if !emptied.is_empty() {
            from.lines = from.lines.without(&emptied.into_iter().collect());
        }
    }
}

/// Lines with at least one byte in both sets.
pub(super) fn common(one: &WrittenBytes, other: &WrittenBytes) -> LineSet {
    let lines = one.lines.intersection(&other.lines);
    let partly = one.partly.keys().chain(other.partly.keys()).copied();
    let apart = partly.filter(|&line| !one.mask(line).overlaps(other.mask(line)));
    let apart: LineSet = apart.map(|line| LineRange::new(line, Line(line.0 + 1))).collect();
    if apart.is_empty() { lines } else { lines.without(&apart) }
}
