//! Header for native traces.

use crate::trace::info::Origin;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tombolo_types::stream::{Command, KernelClass, KernelInfo, Program};
use tombolo_types::{ArrayInfo, DeviceId, DeviceSet, HostPhase, LaunchDevices, LineSize};

/// Largest warp width in a recording, in lanes: twice any GPU's width.
const WIDEST_WARP: u32 = 128;

/// Names of all features allowed in a version 2 file.
const FEATURES: [&str; 8] = [ARRAYS, HOST, DEVICES, DEVICE_LISTS, BARRIERS, ENDS, CHAINS, OPERATIONS];
/// Arrays have names.
const ARRAYS: &str = "arrays";
/// Host accesses to arrays between commands.
const HOST: &str = "host";
/// Launches on a subset of a machine's devices, and grids that the program divides among devices.
const DEVICES: &str = "devices";
/// Launches on devices with numbers above 63, beyond the range of the bit set.
const DEVICE_LISTS: &str = "device-lists";
/// Barriers: the host waits for all streams.
const BARRIERS: &str = "barriers";
/// Host accesses before the first command and after the last.
const ENDS: &str = "ends";
/// Arithmetic records its dependent chains. In files without this feature nothing waits for arithmetic.
const CHAINS: &str = "chains";
/// The recorder counted instructions and bytes by operation.
const OPERATIONS: &str = "operations";

/// Features required from a reader. All remaining fields are left to [`Header`].
#[derive(Debug, Deserialize)]
pub(super) struct RequiredFeatures {
    features: Option<Vec<String>>,
}

impl RequiredFeatures {
    /// Checks that a file of `version` uses no unsupported feature.
    pub(super) fn check(&self, version: u32) -> Result<(), String> {
        let features = match (version, &self.features) {
            (1, None) => return Ok(()),
            (1, Some(_)) => return Err("features, which version 1 does not have".to_owned()),
            (_, None) => return Err(format!("no features, which version {version} has")),
            (_, Some(features)) => features,
        };
        match features.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
            Some(unknown) => Err(format!("the feature {unknown:?}; this program reads {}", FEATURES.join(", "))),
            None => Ok(()),
        }
    }
}

/// All program properties except the streams.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    name: String,
    line_bytes: u64,
    warp_width: u32,
    kernels: Vec<KernelEntry>,
    commands: Vec<CommandEntry>,
    origin: Option<Origin>,
    /// Fields from here on exist since version 2.
    features: Option<Vec<String>>,
    #[serde(default)]
    arrays: Vec<ArrayEntry>,
    #[serde(default)]
    host: Vec<PhaseEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<PhaseEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    results: Option<PhaseEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelEntry {
    name: String,
    ctas: u32,
    threads_per_cta: u32,
    shared_bytes: u32,
    registers: u32,
    cooperative: bool,
    /// First CTA index per device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
enum CommandEntry {
    #[serde(rename = "launch")]
    Launch {
        kernel: u32,
        stream: u32,
        /// Absent for a launch on all devices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<OnEntry>,
    },
    #[serde(rename = "copy")]
    Copy { address: u64, bytes: u64, to_device: bool },
    #[serde(rename = "host")]
    Host { phase: u32 },
    #[serde(rename = "barrier")]
    Barrier,
}

#[derive(Debug, Serialize, Deserialize)]
enum OnEntry {
    #[serde(rename = "gpus")]
    Gpus(SetEntry),
    #[serde(rename = "modules")]
    Modules(SetEntry),
}

/// Device set for a launch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum SetEntry {
    /// Bit `i` selects device number `i`.
    Bits(u64),
    /// A list of device numbers.
    List(Vec<u8>),
}

impl SetEntry {
    fn of<I: DeviceId, const WORDS: usize>(set: DeviceSet<I, WORDS>) -> SetEntry {
        let list = || SetEntry::List(set.iter().map(I::number).collect());
        set.bits().map_or_else(list, SetEntry::Bits)
    }

    fn set<I: DeviceId>(self) -> DeviceSet<I> {
        match self {
            SetEntry::Bits(bits) => DeviceSet::from_bits(bits),
            SetEntry::List(numbers) => numbers.into_iter().map(I::numbered).collect(),
        }
    }
}

impl OnEntry {
    fn of(on: LaunchDevices) -> Option<OnEntry> {
        match on {
            LaunchDevices::All => None,
            LaunchDevices::Gpus(set) => Some(OnEntry::Gpus(SetEntry::of(set))),
            LaunchDevices::Modules(set) => Some(OnEntry::Modules(SetEntry::of(set))),
        }
    }

    fn on(self) -> LaunchDevices {
        match self {
            OnEntry::Gpus(set) => LaunchDevices::Gpus(set.set()),
            OnEntry::Modules(set) => LaunchDevices::Modules(set.set()),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayEntry {
    name: String,
    base: u64,
    bytes: u64,
    element: Option<u32>,
}

/// Address range: first address, and the address after the last.
type Addresses = [u64; 2];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseEntry {
    reads: Vec<Addresses>,
    writes: Vec<Addresses>,
}

/// A header whose parts are consistent.
pub(super) struct CheckedHeader {
    pub(super) name: String,
    pub(super) line_size: LineSize,
    pub(super) warp_width: u32,
    pub(super) kernels: Vec<KernelInfo>,
    pub(super) commands: Vec<Command>,
    pub(super) origin: Option<Origin>,
    pub(super) arrays: Vec<ArrayInfo>,
    pub(super) phases: Vec<HostPhase>,
    pub(super) setup: HostPhase,
    pub(super) results: HostPhase,
}

impl CheckedHeader {
    /// Checks that no two arrays share a line of `size`, the line size in which streams are given.
    pub(super) fn arrays_apart(&self, size: LineSize) -> Result<(), String> {
        let pairs = self.arrays.iter().zip(self.arrays.iter().skip(1));
        match pairs.clone().find(|(before, after)| before.lines(size).end > after.lines(size).start) {
            Some((before, after)) => {
                Err(format!("arrays {:?} and {:?} share a line of {} bytes", before.name, after.name, size.bytes()))
            }
            None => Ok(()),
        }
    }
}

impl Header {
    /// Builds the header for `program`.
    pub(super) fn of(program: &dyn Program, origin: Option<&Origin>) -> Header {
        let kernel = |info: &KernelInfo| KernelEntry {
            name: info.name.clone(),
            ctas: info.ctas,
            threads_per_cta: info.threads_per_cta,
            shared_bytes: info.shared_bytes,
            registers: info.registers,
            cooperative: info.class == KernelClass::Cooperative,
            parts: info.parts.clone(),
        };
        let command = |command: &Command| match *command {
            Command::Launch { kernel, stream, on } => CommandEntry::Launch { kernel, stream, on: OnEntry::of(on) },
            Command::Copy { address, bytes, to_device } => CommandEntry::Copy { address, bytes, to_device },
            Command::Host { phase } => CommandEntry::Host { phase },
            Command::Barrier => CommandEntry::Barrier,
        };
        let array = |ArrayInfo { name, base, bytes, element }: &ArrayInfo| ArrayEntry {
            name: name.clone(),
            base: *base,
            bytes: *bytes,
            element: *element,
        };
        let used = [
            (ARRAYS, !program.arrays().is_empty()),
            (HOST, !program.host_phases().is_empty()),
            (DEVICES, names_devices(program)),
            (DEVICE_LISTS, program.commands().iter().any(lists_devices)),
            (BARRIERS, program.commands().contains(&Command::Barrier)),
            (ENDS, !program.setup().is_empty() || !program.results().is_empty()),
            (CHAINS, true),
            (OPERATIONS, origin.is_some_and(|origin| origin.operations.is_some())),
        ];
        let features = used.iter().filter(|(_, is_used)| *is_used).map(|(name, _)| (*name).to_owned()).collect();
        Header {
            name: program.name().to_owned(),
            line_bytes: program.line_size().bytes(),
            warp_width: program.warp_width(),
            kernels: program.kernels().iter().map(kernel).collect(),
            commands: program.commands().iter().map(command).collect(),
            origin: origin.cloned(),
            features: Some(features),
            arrays: program.arrays().iter().map(array).collect(),
            host: program.host_phases().iter().map(PhaseEntry::of).collect(),
            setup: PhaseEntry::unless_empty(program.setup()),
            results: PhaseEntry::unless_empty(program.results()),
        }
    }

    /// Checks all parts for consistency; an error describes the first inconsistency.
    pub(super) fn check(self) -> Result<CheckedHeader, String> {
        let Some(line_size) = LineSize::new(self.line_bytes) else {
            return Err(format!("line_bytes is {}, but must be 32, 64, 128 or 256", self.line_bytes));
        };
        if !(1..=WIDEST_WARP).contains(&self.warp_width) {
            return Err(format!("warp_width is {}, but must be 1 to {WIDEST_WARP}", self.warp_width));
        }
        let kernels: Vec<KernelInfo> = self.kernels.into_iter().map(KernelEntry::info).collect();
        let commands: Vec<Command> = self.commands.into_iter().map(CommandEntry::command).collect();
        let ascends =
            |parts: &[u32], ctas| parts[0] == 0 && parts.is_sorted() && parts.last().is_some_and(|at| *at <= ctas);
        if let Some(kernel) =
            kernels.iter().find(|kernel| !kernel.parts.is_empty() && !ascends(&kernel.parts, kernel.ctas))
        {
            return Err(format!("parts of kernel {:?} that do not ascend from 0 to its CTAs", kernel.name));
        }
        for command in &commands {
            match command {
                Command::Launch { kernel, .. } if *kernel as usize >= kernels.len() => {
                    return Err(format!("a launch of kernel {kernel} of {}", kernels.len()));
                }
                Command::Host { phase } if *phase as usize >= self.host.len() => {
                    return Err(format!("host phase {phase} of {}", self.host.len()));
                }
                Command::Launch { on, kernel, .. } if is_nowhere(*on) => {
                    return Err(format!("a launch of kernel {kernel} on no device"));
                }
                Command::Launch { .. } | Command::Copy { .. } | Command::Host { .. } | Command::Barrier => {}
            }
        }
        let arrays = arrays(self.arrays)?;
        let phases = self.host.into_iter().map(PhaseEntry::phase).collect::<Result<_, String>>()?;
        let end = |entry: Option<PhaseEntry>| entry.map_or_else(|| Ok(HostPhase::default()), PhaseEntry::phase);
        let (setup, results) = (end(self.setup)?, end(self.results)?);
        if let Some(origin) = &self.origin
            && origin.kernels.len() != kernels.len()
        {
            return Err(format!("an origin of {} kernels, but {} kernels", origin.kernels.len(), kernels.len()));
        }
        let (name, warp_width, origin) = (self.name, self.warp_width, self.origin);
        Ok(CheckedHeader { name, line_size, warp_width, kernels, commands, origin, arrays, phases, setup, results })
    }
}

/// True if a program runs on a subset of a machine's devices or divides grids among them.
fn names_devices(program: &dyn Program) -> bool {
    let names = |command: &Command| {
        matches!(command, Command::Launch { on: LaunchDevices::Gpus(_) | LaunchDevices::Modules(_), .. })
    };
    program.commands().iter().any(names) || program.kernels().iter().any(|kernel| !kernel.parts.is_empty())
}

/// True if a command is a launch on a device beyond the bit set's range.
fn lists_devices(command: &Command) -> bool {
    let on = if let Command::Launch { on, .. } = command { OnEntry::of(*on) } else { None };
    matches!(on, Some(OnEntry::Gpus(SetEntry::List(_)) | OnEntry::Modules(SetEntry::List(_))))
}

/// True if a launch runs on no device.
fn is_nowhere(on: LaunchDevices) -> bool {
    match on {
        LaunchDevices::All => false,
        LaunchDevices::Gpus(gpus) => gpus.is_empty(),
        LaunchDevices::Modules(modules) => modules.is_empty(),
    }
}

/// Converts array entries, which must ascend without overlap; an error names the offending array.
fn arrays(entries: Vec<ArrayEntry>) -> Result<Vec<ArrayInfo>, String> {
    let mut end = 0;
    let mut array = |ArrayEntry { name, base, bytes, element }: ArrayEntry| {
        if base < end {
            return Err(format!("array {name:?} at byte {base}, where another ends at byte {end}"));
        }
        let Some(behind) = base.checked_add(bytes) else {
            return Err(format!("array {name:?} of {bytes} bytes at byte {base}, beyond the last address"));
        };
        end = behind;
        Ok(ArrayInfo { name, base, bytes, element })
    };
    entries.into_iter().map(&mut array).collect()
}

impl PhaseEntry {
    fn of(phase: &HostPhase) -> PhaseEntry {
        let addresses = |ranges: &[Range<u64>]| ranges.iter().map(|range| [range.start, range.end]).collect();
        PhaseEntry { reads: addresses(&phase.reads), writes: addresses(&phase.writes) }
    }

    fn unless_empty(phase: &HostPhase) -> Option<PhaseEntry> {
        (!phase.is_empty()).then(|| PhaseEntry::of(phase))
    }

    fn phase(self) -> Result<HostPhase, String> {
        let ranges = |addresses: Vec<Addresses>| {
            let apart = addresses.windows(2).all(|pair| pair[0][1] < pair[1][0]);
            if !apart || addresses.iter().any(|[start, end]| start >= end) {
                return Err("addresses of a host phase that do not ascend".to_owned());
            }
            Ok(addresses.into_iter().map(|[start, end]| start..end).collect())
        };
        Ok(HostPhase { reads: ranges(self.reads)?, writes: ranges(self.writes)? })
    }
}

impl KernelEntry {
    fn info(self) -> KernelInfo {
        KernelInfo {
            name: self.name,
            ctas: self.ctas,
            threads_per_cta: self.threads_per_cta,
            shared_bytes: self.shared_bytes,
            registers: self.registers,
            class: if self.cooperative { KernelClass::Cooperative } else { KernelClass::Independent },
            parts: self.parts,
        }
    }
}

impl CommandEntry {
    fn command(self) -> Command {
        match self {
            CommandEntry::Launch { kernel, stream, on } => {
                Command::Launch { kernel, stream, on: on.map_or(LaunchDevices::All, OnEntry::on) }
            }
            CommandEntry::Copy { address, bytes, to_device } => Command::Copy { address, bytes, to_device },
            CommandEntry::Host { phase } => Command::Host { phase },
            CommandEntry::Barrier => Command::Barrier,
        }
    }
}
