//! Limits on host memory: a recording that does not fit is refused, because otherwise the operating system would end
//! the process without a message.

use super::RecordOptions;

/// Stream growth in bytes between two checks of the host's available memory.
const STEP: u64 = 64 << 20;
/// Bytes reserved for the rest of the process. Source: assumed; compressed streams take 256 MiB, and an allocator needs
/// somewhat more than it hands out.
const RESERVE: u64 = 512 << 20;

/// Host memory budget for a recording, with the bytes held so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryBudget {
    /// Configured limit in bytes; without a limit, the host's available memory is queried.
    given: Option<u64>,
    /// Bytes of uncompressed streams held so far, and (`next`) the amount for the next query to the host.
    held: u64,
    next: u64,
}

impl MemoryBudget {
    pub(crate) fn of(options: &RecordOptions) -> MemoryBudget {
        MemoryBudget { given: options.memory, held: 0, next: STEP }
    }

    /// Bytes available for arrays, if known.
    pub(crate) fn available(&self) -> Option<u64> {
        self.given.or_else(available)
    }

    /// Notes that the uncompressed streams have grown by `bytes`. If no room is left, `Err` returns the bytes needed
    /// and the bytes available.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<(), [u64; 2]> {
        self.held += bytes;
        if let Some(given) = self.given {
            return if self.held <= given { Ok(()) } else { Err([self.held, given]) };
        }
        if self.held < self.next {
            return Ok(());
        }
        self.next = self.held + STEP;
        match available() {
            Some(left) if left < RESERVE => Err([self.held + RESERVE, self.held + left]),
            Some(_) | None => Ok(()),
        }
    }
}

/// Bytes rounded up to MiB, for messages.
pub(crate) fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Bytes that the host can provide without swapping, if the host reports a value.
fn available() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_grow_as_far_as_there_is_room() {
        let mut room = MemoryBudget::of(&RecordOptions { memory: Some(100), ..RecordOptions::default() });
        assert_eq!([room.hold(60), room.hold(40), room.hold(1)], [Ok(()), Ok(()), Err([101, 100])]);
        assert_eq!(room.available(), Some(100));
    }

    #[test]
    fn the_host_says_what_it_has_or_nothing() {
        assert_eq!(parse("MemTotal:  9 kB\nMemAvailable:   23 kB\nBuffers: 1 kB\n"), Some(23 << 10));
        for broken in
            ["", "MemFree: 5 kB", "MemAvailable: 5", "MemAvailable: x kB", "MemAvailable: 18014398509481984 kB"]
        {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }
}
