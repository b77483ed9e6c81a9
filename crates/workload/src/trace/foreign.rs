//! Well-known files that are not supported traces: an error names the format and explains how to convert the file into
//! a trace.

use super::error::TraceError;
use super::native;
use std::path::Path;

/// Number of bytes inspected at the start of the text. This covers any kernel trace header, unless its names have tens
/// of kilobytes.
pub(super) const LOOKED_AT: usize = 64 << 10;
/// Length limit for a kernel name in a binary trace, in bytes; a longer name indicates a different format.
const LONGEST_NAME: u64 = 1 << 20;

/// A foreign file format, with instructions for converting it into a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignFormat {
    what: &'static str,
    remedy: &'static str,
}

/// Remedy for raw traces: Accel-Sim's post-processing.
const POST_PROCESS: &str =
    "run Accel-Sim's post-traces-processing on its folder, which makes .traceg files and a kernelslist.g of raw traces";
const OLDER_TEXT: &str = "the text form is read: have a post-traces-processing of Accel-Sim that writes .traceg files \
     process the raw traces";
const UNPACK: &str = "unpack it, or pack it with xz, gzip or zstd";

/// A kernel trace as written by the tracer: a line per instruction, with all thread blocks interleaved.
pub(super) const RAW: ForeignFormat =
    ForeignFormat { what: "a raw trace, whose instructions are not sorted by thread block", remedy: POST_PROCESS };
/// A folder of raw kernel traces.
pub(super) const RAW_FOLDER: ForeignFormat = ForeignFormat { what: "a folder of raw traces", remedy: POST_PROCESS };
/// A kernel trace of Accel-Sim 2 within another container: its warps must be found by their places in the file.
const PACKED_PER_WARP: ForeignFormat = ForeignFormat {
    what: "a packed per-warp trace of Accel-Sim 2 (.tracez)",
    remedy: "unpack it: its warps are compressed already",
};
/// A folder of kernel traces without a list.
pub(super) const UNLISTED: ForeignFormat = ForeignFormat {
    what: "a folder of kernel traces without a list",
    remedy: "write their names into a kernelslist.g, one a line in the order of their launches, or name one of them",
};
/// The format of Accel-Sim's binary tracer: length and text of the name, then structures.
const BINARY: ForeignFormat = ForeignFormat { what: "a binary kernel trace of Accel-Sim", remedy: OLDER_TEXT };
const DATA: ForeignFormat = ForeignFormat {
    what: "binary data",
    remedy: "a list or a kernel trace is text, plain or packed with xz, gzip or zstd",
};

/// A foreign format recognised by a few bytes at a fixed offset.
struct Signature {
    /// Offset of the bytes in the file.
    at: usize,
    bytes: &'static [u8],
    kind: ForeignFormat,
}

const fn signature(at: usize, bytes: &'static [u8], what: &'static str, remedy: &'static str) -> Signature {
    Signature { at, bytes, kind: ForeignFormat { what, remedy } }
}

const TWICE: &str = "packed twice";
const UNPACK_ONCE: &str = "unpack it once";
const UTF8: &str = "save it as UTF-8";

/// Source: the formats' specifications; for tar, POSIX.1-2017, pax, "ustar Interchange Format".
const SIGNATURES: &[Signature] = &[
    signature(0, b"BZh", "packed with bzip2", UNPACK),
    signature(0, b"\x04\x22\x4d\x18", "packed with lz4", UNPACK),
    signature(0, b"PK\x03\x04", "a zip archive", "unpack it"),
    signature(0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"),
    signature(257, b"ustar", "a tar archive", "unpack it and name the folder"),
    signature(0, super::container::XZ_MAGIC, TWICE, UNPACK_ONCE),
    signature(0, super::container::GZIP_MAGIC, TWICE, UNPACK_ONCE),
    signature(0, super::container::ZSTD_MAGIC, TWICE, UNPACK_ONCE),
    signature(0, native::MAGIC, "a packed native trace", UNPACK_ONCE),
    signature(0, b"\xff\xfe", "text in UTF-16", UTF8),
    signature(0, b"\xfe\xff", "text in UTF-16", UTF8),
];

impl ForeignFormat {
    /// Recognises a foreign format by `start`, the beginning of the unpacked text. Returns `None` if `start` looks like
    /// trace text.
    pub(super) fn of(start: &[u8]) -> Option<ForeignFormat> {
        let carries =
            |signature: &&Signature| start.get(signature.at..).is_some_and(|s| s.starts_with(signature.bytes));
        if let Some(signature) = SIGNATURES.iter().find(carries) {
            return Some(signature.kind);
        }
        if !start.contains(&0) {
            return None;
        }
        Some(if is_per_warp(start) {
            PACKED_PER_WARP
        } else if names_a_kernel(start) {
            BINARY
        } else {
            DATA
        })
    }

    /// The error that reports this format for the file or folder at `path`.
    #[cold]
    pub(super) fn at(self, path: &Path) -> TraceError {
        TraceError::Foreign { path: path.to_owned(), what: self.what, remedy: self.remedy }
    }
}

/// True if `start` begins a per-warp trace of Accel-Sim 2: a text header, a zero byte, then compressed instructions warp
/// by warp.
pub(super) fn is_per_warp(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"-") && start.contains(&0)
}

/// True if `start` consists of a name's length followed by the name.
fn names_a_kernel(start: &[u8]) -> bool {
    let Some((length, rest)) = start.split_first_chunk::<8>() else { return false };
    let length = u64::from_le_bytes(*length);
    let name = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    (1..=LONGEST_NAME).contains(&length) && !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(start: &[u8]) -> Option<&'static str> {
        ForeignFormat::of(start).map(|foreign| foreign.what)
    }

    #[test]
    fn text_is_not_foreign() {
        assert_eq!(what(b""), None);
        assert_eq!(what("kernel-1.traceg\nMemcpyHtoD,0x10,é\r\n".as_bytes()), None);
    }

    #[test]
    fn every_signature_is_told_wherever_it_stands() {
        for Signature { at, bytes, kind } in SIGNATURES {
            let file = [&vec![b'x'; *at], *bytes, b"more"].concat();
            assert_eq!(what(&file), Some(kind.what));
        }
    }

    #[test]
    fn binary_forms_of_kernel_traces_are_told_apart() {
        assert_eq!(what(b"-kernel name = k\n-kernel id = 1\n\0\x10\0\0\0"), Some(PACKED_PER_WARP.what));
        assert_eq!(what(b"\x05\0\0\0\0\0\0\0_Z1kv\x01\0\0\0"), Some(BINARY.what));
        assert_eq!(what(b"\x05\0\0\0\0\0\0\0_Z\0kv"), Some(DATA.what));
        assert_eq!(what(b"\0"), Some(DATA.what));
    }
}
