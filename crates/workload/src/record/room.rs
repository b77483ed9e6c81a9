//! How much host memory there is: what does not fit is refused, or the system ends the process without a word.

use super::RecordOptions;

/// Bytes by which streams grow before the host is asked again what it has left.
const STEP: u64 = 64 << 20;
/// Bytes that streams leave to the rest of the process. Source: assumed; compressed streams take 256 MiB, and an
/// allocator needs some more than what it hands out.
const RESERVE: u64 = 512 << 20;

/// The host memory of one recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes there are, where they are given; otherwise the host is asked.
    given: Option<u64>,
    /// Bytes of streams that are held uncompressed, and at which of them the host is asked again.
    held: u64,
    next: u64,
}

impl Room {
    pub(crate) fn of(options: &RecordOptions) -> Room {
        Room { given: options.memory, held: 0, next: STEP }
    }

    /// Bytes there are for arrays, if known.
    pub(crate) fn available(&self) -> Option<u64> {
        self.given.or_else(available)
    }

    /// Streams that are held uncompressed have grown by `bytes`; `Err` is what they take and what there is, where they
    /// have no room to grow further.
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

/// Bytes that the host can give without swapping, where it says so.
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
        let mut room = Room::of(&RecordOptions { memory: Some(100), ..RecordOptions::default() });
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
