//! List commands that launch no kernel: copies between host and device, and known commands without cost.
//!
//! Accel-Sim's own tracers write `MemcpyHtoD`, old versions also `cudaMalloc`. Other tracers use the names of CUDA's
//! driver API (`cuMemcpyDtoDAsync_v2`), its runtime API (`cudaMemset`) or NCCL, with or without the prefix.

use super::cursor::{decimal, hex};
use crate::trace::error::Mismatch;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Size limit of a copy in bytes: more than any memory holds, and small enough for computing its time without overflow.
const LARGEST_COPY: u64 = 1 << 48;
/// Maximum number of command names in a note.
const MOST_NAMES: usize = 4;

/// Category of commands whose effect is not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnsimulatedKind {
    /// Copies other than linear ones between host and device.
    Copy,
    /// Fills of device memory.
    Fill,
    /// Allocation, registration and hints.
    Memory,
    /// Waits by the host, events and streams.
    Wait,
    /// NCCL calls.
    Collective,
}

impl UnsimulatedKind {
    /// Plural name of the category, and the reason why its commands cost nothing.
    fn text(self) -> (&'static str, &'static str) {
        match self {
            UnsimulatedKind::Copy => ("copies", "only linear copies between host and device are simulated"),
            UnsimulatedKind::Fill => ("fills of memory", "they are not simulated"),
            UnsimulatedKind::Memory => ("allocations and hints", "they are not simulated"),
            UnsimulatedKind::Wait => {
                ("waits and events", "commands of one stream run in order, and each wait holds up all streams")
            }
            UnsimulatedKind::Collective => ("calls of NCCL", "only kernels that the list names are simulated"),
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            UnsimulatedKind::Copy => COPIES,
            UnsimulatedKind::Fill => FILLS,
            UnsimulatedKind::Memory => MEMORY,
            UnsimulatedKind::Wait => WAITS,
            UnsimulatedKind::Collective => &[],
        }
    }
}

/// Copy commands. Source: CUDA Driver API and CUDA Runtime API, "Memory Management" and "Unified Addressing". Names
/// omit `cu` or `cuda`, `Async` and the interface version number. The lists below follow the same conventions.
const COPIES: &[&str] = &[
    "Memcpy",
    "Memcpy2D",
    "Memcpy2DArrayToArray",
    "Memcpy2DFromArray",
    "Memcpy2DToArray",
    "Memcpy2DUnaligned",
    "Memcpy3D",
    "Memcpy3DBatch",
    "Memcpy3DPeer",
    "MemcpyAtoA",
    "MemcpyAtoD",
    "MemcpyAtoH",
    "MemcpyBatch",
    "MemcpyDtoA",
    "MemcpyDtoD",
    "MemcpyFromArray",
    "MemcpyFromSymbol",
    "MemcpyHtoA",
    "MemcpyHtoH",
    "MemcpyPeer",
    "MemcpyPtoP",
    "MemcpyToArray",
    "MemcpyToSymbol",
];
const FILLS: &[&str] = &[
    "Memset",
    "Memset2D",
    "Memset3D",
    "MemsetD16",
    "MemsetD2D16",
    "MemsetD2D32",
    "MemsetD2D8",
    "MemsetD32",
    "MemsetD8",
];
const MEMORY: &[&str] = &[
    "Free",
    "FreeArray",
    "FreeHost",
    "HostAlloc",
    "HostRegister",
    "HostUnregister",
    "Malloc",
    "Malloc3D",
    "Malloc3DArray",
    "MallocArray",
    "MallocFromPool",
    "MallocHost",
    "MallocManaged",
    "MallocPitch",
    "MemAdvise",
    "MemAlloc",
    "MemAllocFromPool",
    "MemAllocHost",
    "MemAllocManaged",
    "MemAllocPitch",
    "MemFree",
    "MemFreeHost",
    "MemHostAlloc",
    "MemHostRegister",
    "MemHostUnregister",
    "MemPrefetch",
];
/// Commands for waits and events. Source: as above, "Stream Management", "Event Management" and "Device Management".
const WAITS: &[&str] = &[
    "CtxSynchronize",
    "DeviceSynchronize",
    "EventCreate",
    "EventDestroy",
    "EventRecord",
    "EventSynchronize",
    "StreamCreate",
    "StreamCreateWithFlags",
    "StreamCreateWithPriority",
    "StreamDestroy",
    "StreamSynchronize",
    "StreamWaitEvent",
    "ThreadSynchronize",
];
/// Subset of `WAITS` in which the host or a stream waits. Not every list says for which stream, so each waits for all
/// streams.
const HOLDS_UP: [&str; 6] = [
    "CtxSynchronize",
    "DeviceSynchronize",
    "EventSynchronize",
    "StreamSynchronize",
    "StreamWaitEvent",
    "ThreadSynchronize",
];
const KINDS: [UnsimulatedKind; 4] =
    [UnsimulatedKind::Copy, UnsimulatedKind::Fill, UnsimulatedKind::Memory, UnsimulatedKind::Wait];

/// A host command that launches no kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostCommand {
    /// A linear copy between host and device.
    Copy {
        /// Device address.
        address: u64,
        /// Size in bytes.
        bytes: u64,
        /// True if device memory is the destination.
        to_device: bool,
        /// True if the host continued before the copy was complete.
        asynchronous: bool,
    },
    /// A command that costs nothing.
    Costless(UnsimulatedKind),
}

/// Name of a command: the text before its first comma, parenthesis or blank.
fn word(line: &str) -> &str {
    line.split([',', '(', ' ', '\t']).next().unwrap_or(line)
}

/// True if `word` names an NCCL operation.
fn is_nccl(word: &str) -> bool {
    let operation = word.strip_prefix("nccl").unwrap_or_default();
    operation.starts_with(|first: char| first.is_ascii_uppercase())
        && operation.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Strips CUDA's prefix and suffixes from `word`; the second value is true for an asynchronous command. Tracers write
/// `Async` at any place of a command.
fn stem(word: &str) -> (Cow<'_, str>, bool) {
    let bare = ["cuda", "cu"].iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(word);
    let bare = ["_ptds", "_ptsz"].iter().find_map(|suffix| bare.strip_suffix(suffix)).unwrap_or(bare);
    let bare = ["_v2", "_v3"].iter().find_map(|suffix| bare.strip_suffix(suffix)).unwrap_or(bare);
    match bare.split_once("Async") {
        Some((before, after)) => (format!("{before}{after}").into(), true),
        None => (bare.into(), false),
    }
}

/// True if the command in `line` holds up later commands until earlier commands have ended.
pub(super) fn holds_up(line: &str) -> bool {
    HOLDS_UP.contains(&&*stem(word(line)).0)
}

/// Parses the command in `line`; `None` if its first word is not a known command.
pub(super) fn parse(line: &str) -> Result<Option<HostCommand>, Mismatch> {
    let word = word(line);
    if is_nccl(word) {
        return Ok(Some(HostCommand::Costless(UnsimulatedKind::Collective)));
    }
    let (stem, asynchronous) = stem(word);
    let to_device = match &*stem {
        "MemcpyHtoD" => true,
        "MemcpyDtoH" => false,
        _ => {
            let kind = KINDS.into_iter().find(|kind| kind.words().contains(&&*stem));
            return Ok(kind.map(HostCommand::Costless));
        }
    };
    match numbers(&line[word.len()..], asynchronous) {
        Some((address, bytes)) => Ok(Some(HostCommand::Copy { address, bytes, to_device, asynchronous })),
        None => Err(Mismatch::new(format!("{word},<hexadecimal address>,<bytes, at most 2^48>"), line.as_bytes())),
    }
}

/// Parses address and size from `,address,bytes`, after which an asynchronous copy may name its stream.
fn numbers(arguments: &str, asynchronous: bool) -> Option<(u64, u64)> {
    let mut fields = arguments.strip_prefix(',')?.split(',').map(|field| field.trim_ascii().as_bytes());
    let address = hex(fields.next()?, 16)?;
    let bytes = decimal(fields.next()?).filter(|bytes| *bytes <= LARGEST_COPY)?;
    let ends = match fields.next() {
        None => true,
        Some(stream) => asynchronous && hex(stream, 16).is_some() && fields.next().is_none(),
    };
    ends.then_some((address, bytes))
}

/// Counts list commands whose simulation differs from their real execution.
#[derive(Debug, Default)]
pub(super) struct CommandTally {
    /// Number of commands without cost, by category, then by word.
    costless: BTreeMap<UnsimulatedKind, BTreeMap<String, u64>>,
    /// Number of asynchronous copies.
    asynchronous: u64,
}

impl CommandTally {
    /// Counts `command`, parsed from `line`.
    pub(super) fn count(&mut self, command: HostCommand, line: &str) {
        match command {
            HostCommand::Copy { asynchronous, .. } => self.asynchronous += u64::from(asynchronous),
            HostCommand::Costless(kind) => {
                *self.costless.entry(kind).or_default().entry(word(line).to_owned()).or_default() += 1;
            }
        }
    }

    /// Notes about the counted commands for readers of results.
    pub(super) fn notes(&self) -> Vec<String> {
        let costless = self.costless.iter().map(|(kind, words)| {
            let (what, why) = kind.text();
            let mut names: Vec<&str> = words.keys().map(String::as_str).take(MOST_NAMES + 1).collect();
            if names.len() > MOST_NAMES {
                names[MOST_NAMES] = "…";
            }
            let count: u64 = words.values().sum();
            format!("{count} {what} of the list ({}) cost nothing: {why}", names.join(", "))
        });
        let asynchronous = (self.asynchronous > 0).then(|| {
            format!(
                "{} asynchronous copies of the list are simulated as ones that the host waits for",
                self.asynchronous
            )
        });
        costless.chain(asynchronous).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> Option<HostCommand> {
        parse(line).unwrap_or_else(|mismatch| panic!("{line}: {mismatch:?}"))
    }

    #[test]
    fn copies_between_host_and_device_are_read_under_each_of_their_names() {
        for (line, to_device, asynchronous) in [
            ("MemcpyHtoD,0x00007f00,256", true, false),
            ("MemcpyDtoH, 7f00 , 256", false, false),
            ("MemcpyHtoDAsync,0x7f00,256", true, true),
            ("cuMemcpyDtoHAsync_v2,0x7f00,256,0x55aa", false, true),
            ("cuMemcpyHtoD_v2_ptds,0x7f00,256", true, false),
            ("MemcpyAsyncHtoD,0x7f00,256", true, true),
            ("cudaMemcpyAsyncDtoH,0x7f00,256", false, true),
            ("cudaMemcpyAsyncHtoD_ptsz,0x7f00,256,0x55aa", true, true),
            ("AsyncMemcpyDtoH,0x7f00,256", false, true),
        ] {
            let copy = HostCommand::Copy { address: 0x7f00, bytes: 256, to_device, asynchronous };
            assert_eq!(kind(line), Some(copy), "{line}");
        }
    }

    #[test]
    fn commands_that_cost_nothing_are_told_by_kind() {
        for (line, expected) in [
            ("MemcpyDtoD,0x7f00,0x8f00,256", UnsimulatedKind::Copy),
            ("MemcpyPeerAsync,0x7f00,1,0x7f00,0,256", UnsimulatedKind::Copy),
            ("cudaMemcpy(0x7f00, 0x8f00, 16)", UnsimulatedKind::Copy),
            ("MemsetD8,0x7f00,0,256", UnsimulatedKind::Fill),
            ("cudaMemcpyAsyncDtoD,0x7f00,0x8f00,256", UnsimulatedKind::Copy),
            ("MemsetAsync,0x7f00,0,256", UnsimulatedKind::Fill),
            ("cudaMemset 0x7f00 0 256", UnsimulatedKind::Fill),
            ("cudaMalloc,0x00007fb50a800000,8000000", UnsimulatedKind::Memory),
            ("cudaDeviceSynchronize", UnsimulatedKind::Wait),
            ("ncclAllReduce,0x7f00,64", UnsimulatedKind::Collective),
            ("ncclGroupStart", UnsimulatedKind::Collective),
        ] {
            assert_eq!(kind(line), Some(HostCommand::Costless(expected)), "{line}");
        }
    }

    #[test]
    fn what_only_resembles_a_command_is_none() {
        for line in ["memcpyHtoD,0x10,1", "MemcpyHtoX,0x10,1", "MemcpyHtoDd,0x10,1", "Memset-D8", "nccl", "ncclé", ""]
        {
            assert_eq!(kind(line), None, "{line}");
        }
    }

    #[test]
    fn a_copy_without_its_numbers_is_refused() {
        for line in [
            "MemcpyHtoD",
            "MemcpyHtoD,0x10",
            "MemcpyHtoD 0x10 5",
            "MemcpyHtoD,zz,5",
            "MemcpyHtoD,0x10,-5",
            "MemcpyHtoD,0x10,5,7",
            "MemcpyHtoDAsync,0x10,5,s",
            "MemcpyHtoDAsync,0x10,5,7,7",
            "MemcpyDtoH,0x10,281474976710657",
        ] {
            let mismatch = parse(line).expect_err(line);
            assert!(
                mismatch.expected.ends_with(",<hexadecimal address>,<bytes, at most 2^48>"),
                "{}",
                mismatch.expected
            );
            assert_eq!(mismatch.found, format!("`{line}`"));
        }
    }

    #[test]
    fn notes_name_what_cost_nothing() {
        let mut tally = CommandTally::default();
        let lines = ["MemsetD8,1,2", "MemsetD8,1,2", "Memset", "ncclSend", "MemcpyDtoHAsync,0x10,1"];
        lines.iter().for_each(|line| tally.count(kind(line).unwrap(), line));
        assert_eq!(
            tally.notes(),
            [
                "3 fills of memory of the list (Memset, MemsetD8) cost nothing: they are not simulated",
                "1 calls of NCCL of the list (ncclSend) cost nothing: only kernels that the list names are simulated",
                "1 asynchronous copies of the list are simulated as ones that the host waits for",
            ]
        );
        assert!(CommandTally::default().notes().is_empty());
    }
}
