//! Tombolo's own trace format, extension `.tombolo`: one file, read by mapping it into memory.
//!
//! ```text
//! file   := magic version:u32 length:u32 checksum:u64 header block* index footer
//! header := JSON: name, line size, warp width, kernels, commands, origin, features, arrays, host phases, setup, results
//! block  := a zstd frame of: end:u32 of each CTA, then their encodings (module `encode`)
//! index  := for each kernel: count:u32, then for each of its blocks, which hold its CTAs in order:
//!           offset:u64 length:u32 unpacked:u32 ctas:u32 checksum:u64
//! footer := offset:u64 length:u64 checksum:u64 of the index, checksum:u64 of the 24 bytes before, magic
//! ```
//! Version 1 has neither features nor arrays nor host phases; it is still read. A file of version 2 is read where all its
//! features are known (launches on some devices and grids cut for them, barriers between streams, what the host does before the
//! first command and behind the last, chains of arithmetic). A file without a feature is read as a program that does not use it:
//! without chains, nothing waits for arithmetic. What is added later gets a name there, and no new version: copies between
//! devices.
//!
//! Numbers are little endian. Nothing lies between the parts, so every byte is under a checksum or compared;
//! blocks are checked when a CTA is decoded.

mod checksum;
mod header;
mod index;
mod lines;
mod reader;
mod writer;

pub(super) use reader::NativeProgram;
pub(super) use writer::write;

/// First and last bytes of a file. The control character keeps it from passing for text.
pub(super) const MAGIC: &[u8; 8] = b"tombolo\x1a";
/// Version of the format that is written; a change that no feature names is a new one.
const VERSION: u32 = 2;
/// The oldest version that is read.
const OLDEST: u32 = 1;
/// Bytes before the header: magic, version, length, checksum.
const PREFIX: usize = 8 + 4 + 4 + 8;
/// Bytes of the footer.
const FOOTER: usize = 8 + 8 + 8 + 8 + 8;
/// Largest block, unpacked, in bytes.
const LARGEST_BLOCK: usize = 1 << 28;
