//! A trace file read as a stream of text lines, with or without compression.

use super::error::{Mismatch, TraceError};
use super::foreign::{ForeignFormat, LOOKED_AT};
use flate2::read::MultiGzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// First bytes of an xz file. Source: The .xz File Format, section 2.1.1.1.
pub(super) const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// First bytes of a zstd frame. Source: RFC 8878, section 3.1.1.
pub(super) const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of a gzip member that is deflated. Source: RFC 1952, section 2.3.1.
pub(super) const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b, 8];
/// File name suffixes of packed files, a suffix for each supported packer.
pub(super) const SUFFIXES: [&str; 3] = [".xz", ".gz", ".zst"];
/// Byte order mark that some editors write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Memory limit for an xz decoder, in bytes: `xz -9` needs 65 MiB, a hostile header may request gigabytes.
const XZ_MEMORY: u64 = 256 << 20;
/// Bytes read at once, a multiple of the page size of any host.
const BUFFER: usize = 256 << 10;
/// Length limit for a line, in bytes: kernel names from template-heavy C++ reach tens of kilobytes, and a file without
/// line ends would otherwise be read whole.
const LONGEST_LINE: usize = 1 << 20;
/// Action named in errors while reading a packed file.
const UNPACK: &str = "decompress or read";

/// Opens a regular file; a pipe or a device would block or never end, so both are refused.
pub(super) fn open_file(path: &Path) -> Result<File, TraceError> {
    // The file type is queried by path first, because opening a pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(TraceError::io(path, "open"))?;
    if !metadata.is_file() {
        return Err(TraceError::NotATrace { path: path.to_owned(), expected: "a trace is a regular file" });
    }
    File::open(path).map_err(TraceError::io(path, "open"))
}

/// Reads the first `length` bytes from `file`, or fewer if the file is shorter.
pub(super) fn head(file: &mut impl Read, path: &Path, length: usize) -> Result<Vec<u8>, TraceError> {
    let mut head = Vec::with_capacity(length);
    file.take(length as u64).read_to_end(&mut head).map_err(TraceError::io(path, "read"))?;
    Ok(head)
}

/// Text from a file: plain, xz, gzip or zstd, distinguished by content and not by name.
pub(super) type Text = Box<dyn BufRead>;

pub(super) fn open_text(path: &Path) -> Result<Text, TraceError> {
    let mut text = unpacked(path)?;
    let mut start = Vec::new();
    let looked_at = text.by_ref().take(LOOKED_AT as u64).read_to_end(&mut start);
    looked_at.map_err(TraceError::io(path, UNPACK))?;
    if let Some(foreign) = ForeignFormat::of(&start) {
        return Err(foreign.at(path));
    }
    let mut start = Cursor::new(start);
    if start.get_ref().starts_with(BYTE_ORDER_MARK) {
        start.set_position(BYTE_ORDER_MARK.len() as u64);
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER, start.chain(text))))
}

/// Returns a reader for a file's content after decompression.
fn unpacked(path: &Path) -> Result<Box<dyn Read>, TraceError> {
    let mut file = open_file(path)?;
    let head = head(&mut file, path, XZ_MAGIC.len())?;
    let begins = |magic| head.starts_with(magic);
    let (xz, gzip, zstd) = (begins(XZ_MAGIC), begins(GZIP_MAGIC), begins(ZSTD_MAGIC));
    let whole = Cursor::new(head).chain(file);
    Ok(if xz {
        let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)
            .map_err(|error| TraceError::io(path, "start the xz decoder")(error.into()))?;
        Box::new(liblzma::read::XzDecoder::new_stream(whole, stream))
    } else if gzip {
        Box::new(MultiGzDecoder::new(whole))
    } else if zstd {
        Box::new(zstd::Decoder::new(whole).map_err(TraceError::io(path, "start the zstd decoder"))?)
    } else {
        Box::new(whole)
    })
}

/// Line-by-line reader for a file.
pub(super) struct LineReader {
    path: PathBuf,
    text: Text,
    /// Number of bytes in `text`'s buffer occupied by the last returned line; consumed before the next read.
    taken: usize,
    /// A line that straddles two buffers.
    joined: Vec<u8>,
    line: u64,
}

impl LineReader {
    /// Opens the file.
    pub(super) fn open(path: &Path) -> Result<LineReader, TraceError> {
        Ok(LineReader { path: path.to_owned(), text: open_text(path)?, taken: 0, joined: Vec::new(), line: 0 })
    }

    /// A reader for `text`, which stands at the beginning of the file at `path`.
    pub(super) fn of(path: &Path, text: Vec<u8>) -> LineReader {
        let text: Text = Box::new(Cursor::new(text));
        LineReader { path: path.to_owned(), text, taken: 0, joined: Vec::new(), line: 0 }
    }

    /// Returns the next line without its line end, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        self.text.consume(std::mem::take(&mut self.taken));
        self.joined.clear();
        self.line += 1;
        loop {
            let buffer = match self.text.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(TraceError::io(&self.path, UNPACK)(error)),
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
        // The second call returns the same non-empty buffer as in the loop, so nothing is read.
        match self.text.fill_buf() {
            Ok(buffer) => Ok(Some(trim(&buffer[..self.taken - 1]))),
            Err(error) => Err(TraceError::io(&self.path, "read")(error)),
        }
    }

    /// Line number of the last returned line, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An error located at the last returned line.
    #[cold]
    pub(super) fn error(&self, mismatch: Mismatch) -> TraceError {
        mismatch.at(&self.path, self.line)
    }
}

/// Strips outer blanks and a carriage return from a line.
fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}
