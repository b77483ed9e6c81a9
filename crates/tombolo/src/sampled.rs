//! Whether a sample runs in place of a whole program.

/// The choice.
#[derive(clap::Args)]
pub(crate) struct SampleArgument {
    /// Runs some launches in place of all, where their time stands for the whole: with its error, ±, at 95 % confidence. Where it
    /// does not, runs the whole and says why. All else is of what ran
    #[arg(long = "sample")]
    sample: bool,
}

impl SampleArgument {
    /// What was chosen.
    pub(crate) fn is_asked(&self) -> bool {
        self.sample
    }
}
