//! What a CTA costs to simulate, by which samples are sized.

use tombolo_types::stream::CtaStream;

/// What a CTA costs to simulate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Instructions and line transactions.
    pub(crate) all: u64,
    /// Line transactions.
    pub(crate) lines: u64,
}

impl Work {
    pub(crate) fn of(stream: &CtaStream) -> Work {
        let lines = stream.accesses.len() as u64;
        Work { all: stream.ops.len() as u64 + lines, lines }
    }

    /// Of as much of it as `count` of `of`.
    pub(crate) fn share(self, count: u64, of: u64) -> Work {
        Work { all: self.all * count / of, lines: self.lines * count / of }
    }
}
