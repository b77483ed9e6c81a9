//! A trace file as a stream of text lines, whatever it is compressed with.

use super::error::{Mismatch, TraceError};
use liblzma::stream::{CONCATENATED, Stream};
use std::fs::File;
use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// First bytes of an xz file. Source: The .xz File Format, section 2.1.1.1.
const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// First bytes of a zstd frame. Source: RFC 8878, section 3.1.1.
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Most memory that an xz decoder may ask for, in bytes: `xz -9` needs 65 MiB, a hostile header gigabytes.
const XZ_MEMORY: u64 = 256 << 20;
/// Bytes read at once, a multiple of the page size of any host.
const BUFFER: usize = 256 << 10;
/// Longest line, in bytes: kernel names of template-heavy C++ reach tens of kilobytes, a file without line
/// ends would otherwise be read whole.
const LONGEST_LINE: usize = 1 << 20;

/// Opens a regular file: a pipe or a device would block or never end.
pub(super) fn open_file(path: &Path) -> Result<File, TraceError> {
    // Asked by name first: to open a pipe is to wait for its writer.
    let metadata = std::fs::metadata(path).map_err(TraceError::io(path, "open"))?;
    if !metadata.is_file() {
        return Err(TraceError::NotATrace { path: path.to_owned(), expected: "a trace is a regular file" });
    }
    File::open(path).map_err(TraceError::io(path, "open"))
}

/// The first bytes of `file`, fewer where it is shorter.
pub(super) fn head(file: &mut impl Read, path: &Path, length: usize) -> Result<Vec<u8>, TraceError> {
    let mut head = Vec::with_capacity(length);
    file.take(length as u64).read_to_end(&mut head).map_err(TraceError::io(path, "read"))?;
    Ok(head)
}

/// The text of a file: plain, xz or zstd, told apart by content and not by name.
type Text = Box<dyn BufRead>;

fn open_text(path: &Path) -> Result<Text, TraceError> {
    let mut file = open_file(path)?;
    let head = head(&mut file, path, XZ_MAGIC.len())?;
    let xz = head.starts_with(XZ_MAGIC);
    let zstd = head.starts_with(ZSTD_MAGIC);
    let whole: Chain<Cursor<Vec<u8>>, File> = Cursor::new(head).chain(file);
    if xz {
        let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)
            .map_err(|error| TraceError::io(path, "start the xz decoder")(error.into()))?;
        let decoder = liblzma::read::XzDecoder::new_stream(whole, stream);
        Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)))
    } else if zstd {
        let decoder = zstd::Decoder::new(whole).map_err(TraceError::io(path, "start the zstd decoder"))?;
        Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)))
    } else {
        Ok(Box::new(BufReader::with_capacity(BUFFER, whole)))
    }
}

/// Reads a file line by line.
pub(super) struct Lines {
    path: PathBuf,
    text: Text,
    /// Bytes of `text`'s buffer that the line returned last occupies; dropped before the next.
    taken: usize,
    /// A line that straddles two buffers.
    joined: Vec<u8>,
    line: u64,
}

impl Lines {
    /// Opens the file.
    pub(super) fn open(path: &Path) -> Result<Lines, TraceError> {
        Ok(Lines { path: path.to_owned(), text: open_text(path)?, taken: 0, joined: Vec::new(), line: 0 })
    }

    /// The next line without its end, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        self.text.consume(std::mem::take(&mut self.taken));
        self.joined.clear();
        self.line += 1;
        loop {
            let buffer = match self.text.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(TraceError::io(&self.path, "decompress or read")(error)),
            };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(buffer.len());
            if self.joined.len() + length > LONGEST_LINE {
                let found = format!("a line longer than {LONGEST_LINE} bytes");
                return Err(Mismatch { expected: "the text of a trace".to_owned(), found }.at(&self.path, self.line));
            }
            if buffer.is_empty() {
                return Ok((!self.joined.is_empty()).then_some(trim(&self.joined)));
            }
            if end.is_some() && self.joined.is_empty() {
                self.taken = length + 1;
                break;
            }
            self.joined.extend_from_slice(&buffer[..length]);
            self.text.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(trim(&self.joined)));
            }
        }
        // The second call returns the buffer the loop saw: it is not empty, so nothing is read.
        let buffer = self.text.fill_buf().map_err(TraceError::io(&self.path, "read"))?;
        Ok(Some(trim(&buffer[..self.taken - 1])))
    }

    /// Number of the line returned last, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An error at the line returned last.
    #[cold]
    pub(super) fn error(&self, mismatch: Mismatch) -> TraceError {
        mismatch.at(&self.path, self.line)
    }
}

/// A line without the carriage return of other systems and without outer blanks.
fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}
