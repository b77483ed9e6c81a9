//! Unpacking of compressed blocks, with one decompressor a thread: making one takes longer than a small block.

use std::cell::RefCell;
use zstd::bulk::Decompressor;

thread_local! {
    /// Made at the first block.
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Unpacks `packed` into `into`, which is cleared before and takes at most `bytes`.
///
/// # Errors
/// When it is no whole frame, or unpacks to more.
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
