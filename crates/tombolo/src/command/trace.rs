//! `trace`: prints the contents of a trace, converts traces to Tombolo's own format and to tables, and records workloads.

use crate::failure::CommandFailure;
use crate::output::{TemporaryFile, complain, refuse_input, show};
use crate::table::{Cell, Look, Table, bytes, count};
use crate::threads::ThreadsArgument;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tombolo_experiment::workload::{Target, only};
use tombolo_machine::{MachineScale, machine};
use tombolo_workload::trace::{TraceError, TraceInfo, export, files, import, info, write};

/// Arguments for `trace`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Counts a trace's contents
    #[command(name = "info")]
    Info {
        /// A folder with a kernelslist.g, the list itself, a table, or a native trace
        #[arg(value_name = "DIR|FILE")]
        trace: PathBuf,
        /// Prints a JSON document instead of text
        #[arg(long = "json")]
        json: bool,
    },
    /// Writes a trace in Tombolo's own format: smaller, and faster to read
    #[command(name = "import")]
    Import {
        /// A folder with a kernelslist.g, the list itself, a table, or a native trace
        #[arg(value_name = "DIR|FILE")]
        trace: PathBuf,
        /// The file to write, atomically
        #[arg(short = 'o', long = "out", value_name = "FILE")]
        out: PathBuf,
    },
    /// Writes a trace as a table: comma-separated values, a row per operation
    #[command(name = "export")]
    Export {
        /// A native trace, a folder with a kernelslist.g, the list itself, or a table
        #[arg(value_name = "DIR|FILE")]
        trace: PathBuf,
        /// The file to write, atomically
        #[arg(short = 'o', long = "out", value_name = "FILE")]
        out: PathBuf,
    },
    /// Records a workload in Tombolo's own format
    #[command(name = "record")]
    Record(Recording),
}

#[derive(clap::Args)]
struct Recording {
    /// Workload from `list workloads`, with parameters: triad,elements=4096
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]")]
    workload: String,
    /// Machine with the warp and line sizes for the recording
    #[arg(long = "machine", value_name = "M", default_value = "hmg-4x4")]
    machine: String,
    /// Fraction of the workload's input, like 1/16 or 0.25
    #[arg(long = "scale", value_name = "F", default_value = "1")]
    scale: MachineScale,
    #[command(flatten)]
    threads: ThreadsArgument,
    /// The file to write, atomically
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
}

impl Arguments {
    /// Runs the requested action on the trace.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        match &self.action {
            Action::Info { trace, json } => {
                let info = info(trace)?;
                show(*json, &info, |colours| text(&info, colours))?;
            }
            Action::Import { trace, out } => {
                refuse_input("--out", out, files(trace))?;
                written(out, |part| import(trace, part))?;
            }
            Action::Export { trace, out } => {
                refuse_input("--out", out, files(trace))?;
                written(out, |part| export(trace, part))?;
            }
            Action::Record(recording) => recording.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Recording {
    fn execute(&self) -> Result<(), CommandFailure> {
        let machine = machine(&self.machine)?.check()?;
        let chosen = only(&self.workload)?;
        refuse_input("--out", &self.out, chosen.files().into_iter().chain([PathBuf::from(&self.machine)]))?;
        let staged = TemporaryFile::beside(&self.out)?;
        let source = chosen.record(Target::new(&machine, self.scale), self.threads.count())?;
        source.notes.iter().for_each(|note| complain(&format!("warning: {note}")));
        write(&*source.program, &staged.part())?;
        staged.commit()
    }
}

/// Calls `work` to write a temporary file, and moves the file to `out` after success.
fn written(out: &Path, work: impl FnOnce(&Path) -> Result<(), TraceError>) -> Result<(), CommandFailure> {
    let staged = TemporaryFile::beside(out)?;
    work(&staged.part())?;
    staged.commit()
}

/// Table of operations: what is not simulated, instructions and bytes.
fn operations(info: &TraceInfo, colours: bool) -> String {
    let mut table = Table::new(2).with_headings(["operation", "not simulated", "warp instructions", "bytes"]);
    for operation in &info.operations {
        let missing = operation.not_simulated.as_deref().unwrap_or_default();
        let words = [&operation.name, missing].map(Cell::plain);
        let numbers = [operation.instructions, operation.bytes].map(|number| Cell::plain(number.to_string()));
        table.row(words.into_iter().chain(numbers).collect());
    }
    table.render(colours)
}

fn text(info: &TraceInfo, colours: bool) -> String {
    let tracer = info.tracer_version.map_or_else(String::new, |version| format!(" (tracer version {version})"));
    let title = format!("{}: {} trace{tracer}", info.name, info.format);
    let mut text = format!("{}\n", Look::Strong.paint(&title, colours));
    text.push_str(&format!(
        "{} warp instructions, {} line transactions over {} of memory in lines of {} B, warps of {}\n",
        count(info.warp_instructions),
        count(info.transactions),
        bytes(info.footprint_bytes),
        info.line_bytes,
        info.warp_width
    ));
    for (way, copies) in [("to", info.copies_to_device), ("from", info.copies_to_host)] {
        text.push_str(&format!("{} copies {way} the device: {}\n", copies.count, bytes(copies.bytes)));
    }
    for (when, host) in [("before the first command", info.setup), ("behind the last", info.results)] {
        let [read, written] = [host.read_bytes, host.written_bytes].map(bytes);
        text.push_str(&format!("the host {when}: reads {read}, writes {written}\n"));
    }
    let headings =
        ["kernel", "launches", "CTAs", "warps", "warp instructions", "global, local", "shared", "transactions"];
    let mut table = Table::new(1).with_headings(headings);
    for kernel in &info.kernels {
        let memory = kernel.memory_instructions;
        let counts = [
            kernel.launches,
            kernel.ctas,
            kernel.warps,
            kernel.warp_instructions,
            memory.global + memory.local,
            memory.shared,
            kernel.transactions,
        ];
        let name = Cell::plain(&kernel.name);
        table.row(std::iter::once(name).chain(counts.map(|number| Cell::plain(number.to_string()))).collect());
    }
    text.push_str(&table.render(colours));
    text.push_str(&operations(info, colours));
    for opcode in &info.unknown_opcodes {
        text.push_str(&format!("note: opcode {} ({} times) only takes an issue slot\n", opcode.name, opcode.count));
    }
    for note in &info.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}
