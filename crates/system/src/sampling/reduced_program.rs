//! A program with some launches left out.

use std::sync::Arc;
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Program, StreamError};
use tombolo_types::{ArrayInfo, HostPhase, LineSize};

/// A program with all its kernels and some launches. All commands except launches are kept.
pub(crate) struct ReducedProgram {
    whole: Arc<dyn Program>,
    commands: Vec<Command>,
}

impl ReducedProgram {
    /// `whole`, reduced to the launches kept in `keeps`, indexed by launch.
    pub(crate) fn new(whole: &Arc<dyn Program>, keeps: &[bool]) -> ReducedProgram {
        let mut kept = keeps.iter();
        let stays = |command: &&Command| command.kernel().is_none() || kept.next().copied().unwrap_or(false);
        let commands = whole.commands().iter().filter(stays).cloned().collect();
        ReducedProgram { whole: Arc::clone(whole), commands }
    }
}

impl Program for ReducedProgram {
    fn name(&self) -> &str {
        self.whole.name()
    }

    fn line_size(&self) -> LineSize {
        self.whole.line_size()
    }

    fn warp_width(&self) -> u32 {
        self.whole.warp_width()
    }

    fn kernels(&self) -> &[KernelInfo] {
        self.whole.kernels()
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn arrays(&self) -> &[ArrayInfo] {
        self.whole.arrays()
    }

    fn host_phases(&self) -> &[HostPhase] {
        self.whole.host_phases()
    }

    fn setup(&self) -> &HostPhase {
        self.whole.setup()
    }

    fn results(&self) -> &HostPhase {
        self.whole.results()
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        self.whole.cta(kernel, cta, into)
    }
}
