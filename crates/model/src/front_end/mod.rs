//! What launches and moves: the `command_processor`, the `driver` with the page table, copy engines, and the host's
//! `cpu`.

pub(crate) mod boundaries;
pub(crate) mod command_processor;
pub(crate) mod copy_engine;
pub(crate) mod cpu;
pub(crate) mod driver;
pub(crate) mod page_moves;
pub(crate) mod page_run;
pub(crate) mod page_table;
pub(crate) mod schedule;
pub(crate) mod transfer;
pub(crate) mod view;

pub use boundaries::{
    Boundaries, BoundariesConfig, BoundaryLogEntry, BoundaryPosition, Extents, LabelSource, UnlabelledProgram, reaches,
};
pub use command_processor::{CommandProcessor, CommandWait, DriverOperation, KernelTime, TimeRange};
pub use copy_engine::{CopyEngine, CopyStats};
pub use cpu::{Cpu, HostRun, HostWork};
pub use driver::{Driver, DriverConfig, PagingStats};
pub use page_table::PageTable;
pub use schedule::{CommandTasks, PageMove, PeerCopy, Remap, Schedule, WrittenBytes};
pub use transfer::Transfers;
pub use view::View;
