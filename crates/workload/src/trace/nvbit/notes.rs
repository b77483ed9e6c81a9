//! Notes about an NVBit trace for readers of results: missing information, and values that were not used as given.

use super::file_name;
use super::kernel::Kernel;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Notes about a trace of `kernels`, with files at `paths`; `list` has the notes about the trace's list.
pub(super) fn of(kernels: &[Kernel], paths: &[PathBuf], list: &[String]) -> Vec<String> {
    let mut notes = vec![
        "NVBit traces record no synchronisation between CTAs: a load that spun on a flag is replayed as it was \
         recorded, and waits for nobody"
            .to_owned(),
    ];
    notes.extend(list.iter().cloned());
    notes.extend(counts(kernels));
    notes.extend(absences(kernels, paths));
    notes.extend(doubts(kernels, paths));
    notes
}

/// Notes about instructions whose simulation differs from their real execution.
fn counts(kernels: &[Kernel]) -> impl Iterator<Item = String> {
    let mut totals = [0_u64; 4];
    for Kernel { census, .. } in kernels {
        let counts = [census.addressless, census.unresolved, census.blind_waits, census.unnamed];
        totals.iter_mut().zip(counts).for_each(|(total, more)| *total += more);
    }
    let what = [
        "memory instructions come without addresses: their traffic is not simulated",
        "generic accesses were taken as global: a kernel's header lacks base addresses",
        "waits for copies to the scratchpad wait for all of them: this tracer does not say for how many",
        "executions of further unknown opcodes are not listed by name",
    ];
    totals.into_iter().zip(what).filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
}

/// Notes about thread blocks and warps absent from the traces.
fn absences(kernels: &[Kernel], paths: &[PathBuf]) -> Vec<String> {
    let mut notes = Vec::new();
    let partial = || kernels.iter().zip(paths).filter(|(kernel, _)| kernel.absent() > 0);
    if let Some((first, path)) = partial().next() {
        let absent: u64 = partial().map(|(kernel, _)| kernel.absent()).sum();
        let blocks: u64 = partial().map(|(kernel, _)| u64::from(kernel.header.blocks())).sum();
        notes.push(format!(
            "{absent} of the grid's {blocks} thread blocks are absent from {}: they run without instructions; the \
             post-processing leaves out empty ones, and a file that was cut lacks its last; missing are {}",
            files(path, partial().count()),
            first.missing
        ));
    }
    let partial = || kernels.iter().zip(paths).filter(|(kernel, _)| kernel.absent_warps > 0);
    if let Some((_, path)) = partial().next() {
        let absent: u64 = partial().map(|(kernel, _)| kernel.absent_warps).sum();
        let files = files(path, partial().count());
        notes.push(format!("{absent} warps of thread blocks are absent from {files}: they run without instructions"));
    }
    notes
}

/// Notes about header fields with impossible values, each field once.
fn doubts(kernels: &[Kernel], paths: &[PathBuf]) -> Vec<String> {
    let mut first: BTreeMap<&str, (&str, &Path, usize)> = BTreeMap::new();
    for (kernel, path) in kernels.iter().zip(paths) {
        for doubt in &kernel.header.doubts {
            first.entry(doubt.key).or_insert((&doubt.text, path, 0)).2 += 1;
        }
    }
    first.into_iter().map(|(key, (text, path, count))| format!("{}: {key} = {text}", files(path, count))).collect()
}

/// Describes `count` files, with the first at `path`.
fn files(path: &Path, count: usize) -> String {
    match count {
        0 | 1 => file_name(path),
        _ => format!("{} and {} more", file_name(path), count - 1),
    }
}
