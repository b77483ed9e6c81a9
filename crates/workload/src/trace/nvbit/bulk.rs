//! Operands of a bulk or tensor copy in an instruction line.
//!
//! ```text
//! width mbarrier multicast [CTAs] bytes bytes_out_of_bounds mode transfers
//! ```
//!
//! `width` is the size of a transfer in bytes, `CTAs` the mask of a multicast. Mode 3 lists the address of each transfer
//! behind their number; mode 4 has the first address, their number, and the delta of each further one. Source:
//! Accel-Sim 2.0, `trace_parser.cc`. Older tracers write these copies like any instruction.

use super::cursor::{Cursor, hex};
use crate::trace::error::Mismatch;

/// Size limit of a copy in bytes. Source: assumed, far above any scratchpad.
const LARGEST: u64 = 1 << 32;
/// Largest size of a transfer in bytes. Source: assumed; tensor copies have rows of up to 256 elements of 16 bytes.
const LARGEST_TRANSFER: u64 = 1 << 16;
const ADDRESS: &str = "a hexadecimal address of a transfer";

/// A bulk copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BulkCopy {
    /// Bytes copied from or to device memory, without those outside the tensor.
    pub(super) bytes: u64,
    /// Number of transfers, each with an address.
    pub(super) transfers: u64,
}

/// Parses the operands of a bulk copy from the memory width on; `None`, with nothing read, for a line of an older
/// tracer.
pub(super) fn parse_bulk(cursor: &mut Cursor<'_>) -> Result<Option<BulkCopy>, Mismatch> {
    let mut ahead = *cursor;
    ahead.count(LARGEST_TRANSFER, "a transfer's bytes")?;
    // An older tracer continues with an address mode or an immediate.
    if !ahead.at_token() || !ahead.rest().starts_with(b"0x") {
        return Ok(None);
    }
    *cursor = ahead;
    cursor.hex(16, "the address of an mbarrier")?;
    if cursor.count(1, "1 for a multicast, otherwise 0")? == 1 {
        cursor.hex(8, "a mask of CTAs")?;
    }
    let bytes = cursor.count(LARGEST, "the copy's bytes")?;
    cursor.count(LARGEST, "the copy's bytes out of bounds")?;
    let count = |cursor: &mut Cursor<'_>| cursor.count(LARGEST, "a number of transfers");
    let transfers = match cursor.expect("an address mode")? {
        b"3" => {
            let transfers = count(cursor)?;
            for _ in 0..transfers {
                cursor.hex(16, ADDRESS)?;
            }
            transfers
        }
        b"4" => {
            let first = cursor.expect(ADDRESS)?;
            hex(first, 16).ok_or_else(|| Mismatch::new(ADDRESS, first))?;
            let transfers = count(cursor)?;
            for _ in 1..transfers {
                cursor.signed("a signed decimal delta of a transfer")?;
            }
            transfers
        }
        other => return Err(Mismatch::new("an address mode: 3 (list) or 4 (base, deltas)", other)),
    };
    Ok(Some(BulkCopy { bytes, transfers }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Option<BulkCopy>, String), String> {
        let mut cursor = Cursor::new(text.as_bytes());
        let bulk = parse_bulk(&mut cursor).map_err(|error| format!("{} | {}", error.expected, error.found))?;
        Ok((bulk, String::from_utf8_lossy(cursor.rest()).trim().to_owned()))
    }

    #[test]
    fn both_modes_are_read_to_their_end() {
        for (text, bytes, transfers) in [
            ("128 0x7f2000000400 0 8192 0 3 2 0x7f6000000000 0x7f6000001000 0 0 NoVal", 8192, 2),
            ("128 0x400 1 0x3 8192 64 3 1 0x7f6000000000 0 0 NoVal", 8192, 1),
            ("16 0x0 0 48 0 4 0x7f6000000000 3 16 -32 0 0 NoVal", 48, 3),
            ("16 0x0 0 0 0 4 0x0 0 0 0 NoVal", 0, 0),
            ("16 0x0 0 0 0 3 0 0 0 NoVal", 0, 0),
        ] {
            assert_eq!(parse(text), Ok((Some(BulkCopy { bytes, transfers }), "0 0 NoVal".to_owned())), "{text}");
        }
        for older in ["0 5 NoVal", "0", "16 1 0x7f00 0 0"] {
            assert_eq!(parse(older), Ok((None, older.to_owned())), "{older}");
        }
    }

    #[test]
    fn what_is_malformed_says_what_was_expected() {
        for (text, expected) in [
            ("16", None),
            ("16 0x400", Some("1 for a multicast, otherwise 0 | the end of the line")),
            ("16 0x400 2", Some("1 for a multicast, otherwise 0 (0 to 1) | `2`")),
            ("16 0x400 1 zz", Some("a mask of CTAs | `zz`")),
            ("16 0x400 0 64 0 1 0x40", Some("an address mode: 3 (list) or 4 (base, deltas) | `1`")),
            ("16 0x400 0 64 0 3 3 0x40 0x50", Some("a hexadecimal address of a transfer | the end of the line")),
            ("16 0x400 0 64 0 3 4000000000 0x40", Some("a hexadecimal address of a transfer | the end of the line")),
            ("16 0x400 0 64 0 4 x 2 16", Some("a hexadecimal address of a transfer | `x`")),
            ("16 0x400 0 64 0 4 0x40 2 x", Some("a signed decimal delta of a transfer | `x`")),
        ] {
            assert_eq!(parse(text).err().as_deref(), expected, "{text}");
        }
    }
}
