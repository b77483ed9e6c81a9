//! Decompression of packed blocks with a decompressor per thread: creating a decompressor takes longer than unpacking a
//! small block.

use std::cell::RefCell;
use zstd::bulk::Decompressor;

thread_local! {
    /// The thread's decompressor, created when the thread unpacks its first block.
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Unpacks `packed` into `into`. The buffer is cleared first and receives at most `bytes` bytes.
///
/// # Errors
/// When `packed` is not a complete frame, or unpacks to more than `bytes` bytes.
pub(crate) fn unpack(packed: &[u8], bytes: usize, into: &mut Vec<u8>) -> std::io::Result<()> {
    into.clear();
    into.reserve_exact(bytes);
    UNPACKER.with_borrow_mut(|unpacker| {
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            None => unpacker.insert(Decompressor::new()?),
        };
        unpacker.decompress_to_buffer(packed, into).map(drop)
    })
}
