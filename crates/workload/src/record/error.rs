//! Errors that may occur while a program is recorded.

use super::memory_budget::mebibytes;
use crate::simt::Fault;
use thiserror::Error;
use tombolo_types::stream::KernelInfo;

/// Reason for which a program could not be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A CTA broke a rule of the kernel language.
    #[error("kernel {kernel}, CTA {cta}: {message}")]
    Kernel {
        /// Name of the kernel.
        kernel: String,
        /// Index of the CTA in the grid.
        cta: u32,
        /// The broken rule and the location.
        message: String,
    },
    /// No CTA of a cooperative kernel can make progress.
    #[error("kernel {kernel} is deadlocked: CTA {cta} {waits}")]
    Deadlock {
        /// Name of the kernel.
        kernel: String,
        /// The first blocked CTA's index.
        cta: u32,
        /// The event awaited by this CTA.
        waits: String,
    },
    /// The streams of a cooperative kernel, held until all its CTAs have ended, outgrow the host's memory.
    #[error(
        "kernel {kernel} needs more than {} MiB of memory for its streams, and the host has {} MiB", mebibytes(*.needs),
        .has >> 20
    )]
    Memory {
        /// Name of the kernel.
        kernel: String,
        /// Bytes already used by the streams.
        needs: u64,
        /// Bytes available.
        has: u64,
    },
    /// A launch has a shape that no GPU accepts.
    #[error("kernel {kernel} cannot be launched: {message}")]
    Grid {
        /// Name of the kernel.
        kernel: String,
        /// Defect of the grid.
        message: String,
    },
    /// A launch in a sampled program may need results of an earlier launch that was recorded only in part.
    #[error(
        "the program cannot be sampled: addresses of kernel {kernel} may depend on what launches before it compute, and of \
         those a part was recorded"
    )]
    Sample {
        /// Name of the kernel.
        kernel: String,
    },
    /// The calling thread's [`tombolo_types::StopFlag`] was set.
    #[error("stopped")]
    Stopped,
    /// The host program gave up.
    #[error("{0}")]
    Program(String),
    /// Compressed streams could not be written to or read from a temporary file.
    #[error("cannot keep the recording: {0}")]
    Storage(#[from] std::io::Error),
}

impl RecordError {
    pub(crate) fn kernel(info: &KernelInfo, fault: Fault) -> RecordError {
        RecordError::Kernel { kernel: info.name.clone(), cta: fault.cta, message: fault.message }
    }
}
