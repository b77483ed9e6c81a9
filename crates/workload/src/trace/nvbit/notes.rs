//! Notes about an NVBit trace for readers of results: missing information, and values that were not used as given.

use super::census::{Census, OperationCount};
use super::file_name;
use super::kernel::Kernel;
use super::opcode::limits;
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
    notes.extend(zeros(kernels, paths));
    notes.extend(operations(kernels));
    notes.extend(counts(kernels));
    notes.extend(absences(kernels, paths));
    notes.extend(doubts(kernels, paths));
    notes
}

/// Notes about instructions whose simulation differs from their real execution.
fn counts(kernels: &[Kernel]) -> impl Iterator<Item = String> {
    type Count = fn(&Census) -> u64;
    let what: [(Count, &str); 9] = [
        (|census| census.unresolved, "generic accesses were taken as global: a kernel's header lacks base addresses"),
        (
            |census| census.mixed,
            "generic accesses have lanes in the scratchpad and in device memory: each part is an instruction of its own",
        ),
        (
            |census| census.null_lanes,
            "lanes of copies to the scratchpad have no address in device memory: they read nothing",
        ),
        (
            |census| census.distributed,
            "accesses to the scratchpad of another thread block take a pass over the own scratchpad: distributed shared \
             memory is not simulated",
        ),
        (|census| census.ranked, "thread blocks have a rank above 0 in a cluster: clusters are not kept together"),
        (
            |census| census.named_barriers,
            "barriers have a number or a count of threads: each waits for all warps of its thread block",
        ),
        (|census| census.replays, "spin loops that the tracer marked are replayed as they were recorded"),
        (
            |census| census.blind_waits,
            "waits for copies to the scratchpad wait for all of them: this tracer does not say for how many",
        ),
        (|census| census.unnamed, "executions of further unknown opcodes are not listed by name"),
    ];
    let total = move |count: Count| kernels.iter().map(|kernel| count(&kernel.census)).sum::<u64>();
    let totals = what.map(|(count, text)| (total(count), text));
    totals.into_iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}"))
}

/// The effect of an operation that its counts show not to be simulated, if there is one.
pub(super) fn missing_effect(count: &OperationCount) -> Option<&'static str> {
    match count {
        OperationCount { addressless: 1.., .. } => Some("traffic without traced addresses"),
        OperationCount { operands: 1.., .. } => Some("a memory operand"),
        _ => None,
    }
}

/// Notes about operations with effects that are not simulated, counted by operation.
fn operations(kernels: &[Kernel]) -> Vec<String> {
    let all = || kernels.iter().flat_map(|kernel| &kernel.operations);
    // For each effect, the count of each operation that has it.
    let mut limits: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    let (mut addressless, mut operands) = (BTreeMap::new(), BTreeMap::new());
    let (mut copies, mut bytes) = (0, 0_u64);
    let add = |counts: &mut BTreeMap<_, u64>, name, count| {
        if count > 0 {
            *counts.entry(name).or_default() += count;
        }
    };
    for (name, limit, count) in all() {
        add(&mut addressless, &**name, count.addressless);
        add(&mut operands, &**name, count.operands);
        let simulated_in_part = count.instructions - count.addressless - count.operands;
        match *limit {
            Some(limits::UNKNOWN) | None => {}
            Some(limits::BULK) => {
                copies += simulated_in_part;
                bytes = bytes.saturating_add(count.bytes);
                add(limits.entry(limits::BULK).or_default(), name, simulated_in_part);
            }
            Some(limit) => add(limits.entry(limit).or_default(), name, simulated_in_part),
        }
    }
    let total = |counts: &BTreeMap<&str, u64>| counts.values().sum::<u64>();
    let mut notes = Vec::new();
    if let Some(by_name) = limits.remove(limits::BULK).filter(|_| copies > 0) {
        notes.push(format!(
            "{copies} bulk copies of {bytes} bytes in all are not simulated, neither their traffic nor their completion: \
             {}",
            list(&by_name)
        ));
    }
    if !addressless.is_empty() {
        notes.push(format!(
            "{} memory instructions come without addresses: their traffic is not simulated: {}",
            total(&addressless),
            list(&addressless)
        ));
    }
    if !operands.is_empty() {
        notes.push(format!(
            "{} instructions with a memory operand only take an issue slot: {}",
            total(&operands),
            list(&operands)
        ));
    }
    let limited = limits.iter().filter(|(_, counts)| !counts.is_empty());
    notes.extend(limited.map(|(limit, counts)| format!("not simulated: {limit}: {}", list(counts))));
    notes
}

/// Names with their counts, the most frequent first.
fn list(counts: &BTreeMap<&str, u64>) -> String {
    let mut sorted: Vec<(&str, u64)> = counts.iter().map(|(name, count)| (*name, *count)).collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let names: Vec<String> = sorted.iter().map(|(name, count)| format!("{name} {count}")).collect();
    names.join(", ")
}

/// Notes about files in which at least half of the addresses in device memory are 0.
fn zeros(kernels: &[Kernel], paths: &[PathBuf]) -> Vec<String> {
    let files_with = |chosen: fn(&Census) -> bool| -> Vec<(&Kernel, &PathBuf)> {
        kernels.iter().zip(paths).filter(|(kernel, _)| kernel.census.addresses > 0 && chosen(&kernel.census)).collect()
    };
    let all = files_with(|census| census.zeros == census.addresses);
    let half = files_with(|census| census.zeros < census.addresses && census.zeros >= census.addresses.div_ceil(2));
    let sum = |of: &[(&Kernel, &PathBuf)], count: fn(&Census) -> u64| -> u64 {
        of.iter().map(|(kernel, _)| count(&kernel.census)).sum()
    };
    const WHY: &str =
        "device memory never lies there, so the tracer did not write them; times and traffic mean nothing";
    let mut notes = Vec::new();
    if let Some((_, path)) = all.first() {
        let count = sum(&all, |census| census.addresses);
        notes.push(format!("all {count} addresses in device memory in {} are 0: {WHY}", files(path, all.len())));
    }
    if let Some((_, path)) = half.first() {
        let (zeros, count) = (sum(&half, |census| census.zeros), sum(&half, |census| census.addresses));
        let files = files(path, half.len());
        notes.push(format!("{zeros} of {count} addresses in device memory in {files} are 0: {WHY}"));
    }
    notes
}

/// Maximum number of ranges of missing launches in a note.
const MOST_RANGES: usize = 8;

/// A note about launches that the numbers of the traced ones show to be missing. 0 stands for an unknown number.
pub(super) fn missing_launches(launches: impl Iterator<Item = u32>) -> Option<String> {
    let mut launches: Vec<u32> = launches.filter(|launch| *launch > 0).collect();
    launches.sort_unstable();
    launches.dedup();
    let before = std::iter::once(0).chain(launches.iter().copied());
    let gaps = before.zip(&launches).filter(|(before, launch)| before + 1 < **launch);
    let mut ranges: Vec<String> = gaps
        .take(MOST_RANGES + 1)
        .map(|(before, launch)| match (before + 1, launch - 1) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first} to {last}"),
        })
        .collect();
    if ranges.len() > MOST_RANGES {
        "…".clone_into(&mut ranges[MOST_RANGES]);
    }
    (!ranges.is_empty()).then(|| {
        format!("by the numbers of its kernels, the trace lacks launches of the program: {}", ranges.join(", "))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_between_the_numbers_of_launches_are_told() {
        let missing = |launches: &[u32]| missing_launches(launches.iter().copied());
        let told = |ranges: &str| {
            Some(format!("by the numbers of its kernels, the trace lacks launches of the program: {ranges}"))
        };
        assert_eq!(missing(&[5, 6, 8]), told("1 to 4, 7"));
        assert_eq!(missing(&[2]), told("1"));
        assert_eq!(missing(&[1, u32::MAX]), told("2 to 4294967294"));
        assert_eq!(missing(&[3, 1, 2, 1, 0]), None);
        assert_eq!(missing(&[0, 0]), None);
        let even: Vec<u32> = (1..=20).map(|launch| 2 * launch).collect();
        assert_eq!(missing(&even), told("1, 3, 5, 7, 9, 11, 13, 15, …"));
    }
}
