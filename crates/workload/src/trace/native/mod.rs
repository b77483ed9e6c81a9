//! Tombolo's own trace format, extension `.tombolo`: a single file, read through a memory map.
//!
//! ```text
//! file   := magic version:u32 length:u32 checksum:u64 header block* index footer
//! header := JSON: name, line size, warp width, kernels, commands, origin, features, arrays, host phases, setup, results
//! block  := a zstd frame of: end:u32 of each CTA, then their encodings (module `encode`)
//! index  := for each kernel: count:u32, then for each of its blocks, which hold its CTAs in order:
//!           offset:u64 length:u32 unpacked:u32 ctas:u32 checksum:u64
//! footer := offset:u64 length:u64 checksum:u64 of the index, checksum:u64 of the 24 bytes before, magic
//! ```
//! Version 1 has neither features nor arrays nor host phases, and is still read. A version 2 file is read if all its
//! features are known: launches on selected devices and grids divided among them, barriers between streams, host
//! accesses before the first command and after the last, chains of arithmetic, counts by operation. A file without a feature is read as a
//! program that does not use this feature: without chains, nothing waits for arithmetic. Additions get a feature name
//! instead of a new version, for example copies between devices.
//!
//! Numbers are little endian. Nothing lies between the parts, so every byte is covered by a checksum or compared.
//! Blocks are checked when a CTA is decoded.

mod checksum;
mod header;
mod index;
mod lines;
mod reader;
mod writer;

pub(super) use reader::NativeProgram;
pub(super) use writer::write;

/// First and last bytes of a file. The control character prevents confusion with a text file.
pub(super) const MAGIC: &[u8; 8] = b"tombolo\x1a";
/// Version of the format that is written; a change not covered by a feature name requires a new version.
const VERSION: u32 = 2;
/// Oldest version that can be read.
const OLDEST: u32 = 1;
/// Bytes before the header: magic, version, length, checksum.
const PREFIX: usize = 8 + 4 + 4 + 8;
/// Size of the footer in bytes.
const FOOTER: usize = 8 + 8 + 8 + 8 + 8;
/// Size limit of an unpacked block in bytes.
const LARGEST_BLOCK: usize = 1 << 28;
