//! The header of a native trace.

use crate::trace::info::Origin;
use serde::{Deserialize, Serialize};
use tombolo_types::LineSize;
use tombolo_types::stream::{Command, KernelClass, KernelInfo, Program};

/// Widest warp of a recording, in lanes: twice what any GPU has.
const WIDEST_WARP: u32 = 128;

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
}

/// A header whose parts fit together.
pub(super) struct Checked {
    pub(super) name: String,
    pub(super) line_size: LineSize,
    pub(super) warp_width: u32,
    pub(super) kernels: Vec<KernelInfo>,
    pub(super) commands: Vec<Command>,
    pub(super) origin: Option<Origin>,
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
        };
        Header {
            name: program.name().to_owned(),
            line_bytes: program.line_size().bytes(),
            warp_width: program.warp_width(),
            kernels: program.kernels().iter().map(kernel).collect(),
            commands: program.commands().iter().map(command).collect(),
            origin: origin.cloned(),
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
            if let Command::Launch { kernel, .. } = command
                && *kernel as usize >= kernels.len()
            {
                return Err(format!("a launch of kernel {kernel} of {}", kernels.len()));
            }
        }
        if let Some(origin) = &self.origin
            && origin.kernels.len() != kernels.len()
        {
            return Err(format!("an origin of {} kernels, but {} kernels", origin.kernels.len(), kernels.len()));
        }
        let (name, warp_width, origin) = (self.name, self.warp_width, self.origin);
        Ok(Checked { name, line_size, warp_width, kernels, commands, origin })
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
        }
    }
}
