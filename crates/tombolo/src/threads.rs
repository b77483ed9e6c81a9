//! How many threads to use. No result depends on it.

/// The flag.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct ThreadsArgument {
    /// Threads; results do not depend on it [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    threads: Option<u16>,
}

impl ThreadsArgument {
    /// As asked, or one a core.
    pub(crate) fn count(self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, usize::from)
    }
}
