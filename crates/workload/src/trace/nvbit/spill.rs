//! Storage for the encoded CTAs of an opened trace: in memory up to a budget, then in an unnamed file.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Memory budget in bytes.
const BUDGET: usize = 256 << 20;

/// Collects bytes in order of arrival.
pub(super) struct Spill {
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    length: u64,
    budget: usize,
}

/// The bytes collected by a [`Spill`].
pub(super) enum SpilledBytes {
    /// All bytes, in memory.
    Memory(Vec<u8>),
    /// All bytes, in an unnamed file.
    File(memmap2::Mmap),
}

impl Spill {
    pub(super) fn new() -> Spill {
        Spill::with_budget(BUDGET)
    }

    fn with_budget(budget: usize) -> Spill {
        Spill { memory: Vec::new(), file: None, length: 0, budget }
    }

    /// Appends `bytes`; returns the offset of the first byte.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.length;
        if self.file.is_none() && self.memory.len() + bytes.len() > self.budget {
            let mut file = BufWriter::with_capacity(1 << 20, tempfile::tempfile()?);
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.length += bytes.len() as u64;
        Ok(offset)
    }

    /// Ends the collection and returns the collected bytes.
    pub(super) fn finish(self) -> io::Result<SpilledBytes> {
        match self.file {
            None => Ok(SpilledBytes::Memory(self.memory)),
            Some(file) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                // SAFETY: the file has no name and no other handle, so nothing can modify or truncate it while it is
                // mapped.
                let map = unsafe { memmap2::Mmap::map(&file)? };
                Ok(SpilledBytes::File(map))
            }
        }
    }
}

impl SpilledBytes {
    /// Returns all collected bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            SpilledBytes::Memory(bytes) => bytes,
            SpilledBytes::File(map) => map,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_file_hold_the_same() {
        for budget in [0, 5, 1000] {
            let mut spill = Spill::with_budget(budget);
            let offsets: Vec<u64> = [b"abc", b"def", b"ghi"].map(|part| spill.push(part).unwrap()).to_vec();
            assert_eq!(offsets, [0, 3, 6]);
            let spilled = spill.finish().unwrap();
            assert_eq!(spilled.bytes(), b"abcdefghi");
            assert_eq!(matches!(spilled, SpilledBytes::Memory(_)), budget == 1000);
        }
    }
}
