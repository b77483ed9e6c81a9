//! Option to run a sample in place of a whole program.

/// Argument that enables sampling.
#[derive(clap::Args)]
pub(crate) struct SampleArgument {
    /// Runs some launches instead of all, if their time represents the whole: with its error, ±, at 95 % confidence.
    /// Otherwise runs the whole program and says why. All other counters cover only the launches run
    #[arg(long = "sample")]
    sample: bool,
}

impl SampleArgument {
    /// True if sampling was requested.
    pub(crate) fn is_enabled(&self) -> bool {
        self.sample
    }
}
