//! The header of a native trace.

use crate::trace::info::Origin;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tombolo_types::stream::{Command, KernelClass, KernelInfo, Program};
use tombolo_types::{ArrayInfo, HostPhase, LineSize};

/// Widest warp of a recording, in lanes: twice what any GPU has.
const WIDEST_WARP: u32 = 128;

/// What a file of version 2 may use, by name.
const FEATURES: [&str; 2] = [ARRAYS, HOST];
/// Arrays have names.
const ARRAYS: &str = "arrays";
/// What the host does to arrays between commands.
const HOST: &str = "host";

/// What a program that reads the file must know. Fields beside it are left to [`Header`].
#[derive(Debug, Deserialize)]
pub(super) struct Needs {
    features: Option<Vec<String>>,
}

impl Needs {
    /// Checks that a file of `version` has no feature that is not read here.
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

/// Everything of a program but its streams.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    name: String,
    line_bytes: u64,
    warp_width: u32,
    kernels: Vec<KernelEntry>,
    commands: Vec<CommandEntry>,
    origin: Option<Origin>,
    /// Of version 2, from here on.
    features: Option<Vec<String>>,
    #[serde(default)]
    arrays: Vec<ArrayEntry>,
    #[serde(default)]
    host: Vec<PhaseEntry>,
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
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum CommandEntry {
    Launch { kernel: u32, stream: u32 },
    Copy { address: u64, bytes: u64, to_device: bool },
    Host { phase: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayEntry {
    name: String,
    base: u64,
    bytes: u64,
    element: Option<u32>,
}

/// A first address and the one behind the last.
type Addresses = [u64; 2];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseEntry {
    reads: Vec<Addresses>,
    writes: Vec<Addresses>,
}

/// A header whose parts fit together.
pub(super) struct Checked {
    pub(super) name: String,
    pub(super) line_size: LineSize,
    pub(super) warp_width: u32,
    pub(super) kernels: Vec<KernelInfo>,
    pub(super) commands: Vec<Command>,
    pub(super) origin: Option<Origin>,
    pub(super) arrays: Vec<ArrayInfo>,
    pub(super) phases: Vec<HostPhase>,
}

impl Checked {
    /// Checks that no two arrays share a line of `size`, for streams that are given in such lines.
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
    /// The header of `program`.
    pub(super) fn of(program: &dyn Program, origin: Option<&Origin>) -> Header {
        let kernel = |info: &KernelInfo| KernelEntry {
            name: info.name.clone(),
            ctas: info.ctas,
            threads_per_cta: info.threads_per_cta,
            shared_bytes: info.shared_bytes,
            registers: info.registers,
            cooperative: info.class == KernelClass::Cooperative,
        };
        let command = |command: &Command| match *command {
            Command::Launch { kernel, stream } => CommandEntry::Launch { kernel, stream },
            Command::Copy { address, bytes, to_device } => CommandEntry::Copy { address, bytes, to_device },
            Command::Host { phase } => CommandEntry::Host { phase },
        };
        let array = |ArrayInfo { name, base, bytes, element }: &ArrayInfo| ArrayEntry {
            name: name.clone(),
            base: *base,
            bytes: *bytes,
            element: *element,
        };
        let used = [(ARRAYS, program.arrays().is_empty()), (HOST, program.host_phases().is_empty())];
        let features = used.iter().filter(|(_, is_empty)| !is_empty).map(|(name, _)| (*name).to_owned()).collect();
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
        }
    }

    /// Checks that the parts fit together; else says what does not.
    pub(super) fn check(self) -> Result<Checked, String> {
        let Some(line_size) = LineSize::new(self.line_bytes) else {
            return Err(format!("line_bytes is {}, but must be 32, 64, 128 or 256", self.line_bytes));
        };
        if !(1..=WIDEST_WARP).contains(&self.warp_width) {
            return Err(format!("warp_width is {}, but must be 1 to {WIDEST_WARP}", self.warp_width));
        }
        let kernels: Vec<KernelInfo> = self.kernels.into_iter().map(KernelEntry::info).collect();
        let commands: Vec<Command> = self.commands.into_iter().map(CommandEntry::command).collect();
        for command in &commands {
            match command {
                Command::Launch { kernel, .. } if *kernel as usize >= kernels.len() => {
                    return Err(format!("a launch of kernel {kernel} of {}", kernels.len()));
                }
                Command::Host { phase } if *phase as usize >= self.host.len() => {
                    return Err(format!("host phase {phase} of {}", self.host.len()));
                }
                Command::Launch { .. } | Command::Copy { .. } | Command::Host { .. } => {}
            }
        }
        let arrays = arrays(self.arrays)?;
        let phases = self.host.into_iter().map(PhaseEntry::phase).collect::<Result<_, String>>()?;
        if let Some(origin) = &self.origin
            && origin.kernels.len() != kernels.len()
        {
            return Err(format!("an origin of {} kernels, but {} kernels", origin.kernels.len(), kernels.len()));
        }
        let (name, warp_width, origin) = (self.name, self.warp_width, self.origin);
        Ok(Checked { name, line_size, warp_width, kernels, commands, origin, arrays, phases })
    }
}

/// Arrays that ascend and do not overlap; else says which do not.
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
        }
    }
}

impl CommandEntry {
    fn command(self) -> Command {
        match self {
            CommandEntry::Launch { kernel, stream } => Command::Launch { kernel, stream },
            CommandEntry::Copy { address, bytes, to_device } => Command::Copy { address, bytes, to_device },
            CommandEntry::Host { phase } => Command::Host { phase },
        }
    }
}
