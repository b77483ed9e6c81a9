//! Conversion of streams recorded for a given line size to a machine with a different line size.
//!
//! A mask grain never crosses a line boundary for any line size, and conversion gives the same lines as a new
//! recording. The coarser size decides the granularity of masks.

use tombolo_types::stream::{Access, Accesses, CtaStream, Op, StreamError};
use tombolo_types::{Line, LineSize, Mask};

/// Bits per mask.
const GRAINS: u32 = 32;

/// Converts all accesses in `stream` from line size `from` to line size `to`.
pub(super) fn adapt(stream: &mut CtaStream, from: LineSize, to: LineSize) -> Result<(), StreamError> {
    if from == to {
        return Ok(());
    }
    let old = std::mem::take(&mut stream.accesses);
    let mut new: Vec<Access> = Vec::with_capacity(old.len());
    let mut convert = |range: std::ops::Range<usize>| {
        let start = new.len();
        for access in &old[range] {
            if to.bytes() < from.bytes() {
                split(*access, (from.bytes() / to.bytes()) as u32, &mut new);
            } else {
                merge(*access, (to.bytes() / from.bytes()) as u32, start, &mut new);
            }
        }
        let too_many =
            |_| StreamError { message: format!("more than 255 lines of {} bytes in one access", to.bytes()) };
        let len = u8::try_from(new.len() - start).map_err(too_many)?;
        Ok(Accesses { start: start as u32, len })
    };
    for op in &mut stream.ops {
        match op {
            Op::Load { accesses, .. } | Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => {
                *accesses = convert(accesses.range())?;
            }
            Op::WaitUntil { access, .. } => {
                let flag = convert(*access as usize..*access as usize + 1)?;
                if flag.len != 1 {
                    let message = format!("a flag that crosses lines of {} bytes", to.bytes());
                    return Err(StreamError { message });
                }
                *access = flag.start;
            }
            Op::Compute { .. } | Op::Fence { .. } | Op::Shared { .. } | Op::Barrier => {}
            Op::Use { .. } | Op::Signal { .. } => {}
        }
    }
    stream.accesses = new;
    Ok(())
}

/// Splits a line into up to `parts` shorter lines, omitting lines without any accessed byte.
fn split(access: Access, parts: u32, new: &mut Vec<Access>) {
    let first = access.line.0.wrapping_mul(u64::from(parts));
    if access.mask.is_empty() {
        new.push(Access { line: Line(first), mask: Mask::NONE });
    }
    let grains = GRAINS / parts;
    for part in 0..parts {
        let mut mask = 0;
        for grain in (0..grains).filter(|grain| access.mask.0 >> (part * grains + grain) & 1 != 0) {
            mask |= ((1 << parts) - 1) << (grain * parts);
        }
        if mask != 0 {
            new.push(Access { line: Line(first.wrapping_add(u64::from(part))), mask: Mask(mask) });
        }
    }
}

/// Maps a line to a part of a longer line with `parts` parts, merged with the accesses added since `start`.
fn merge(access: Access, parts: u32, start: usize, new: &mut Vec<Access>) {
    let line = Line(access.line.0 / u64::from(parts));
    let part = (access.line.0 % u64::from(parts)) as u32;
    let grains = GRAINS / parts;
    let mut mask = Mask::NONE;
    for grain in 0..grains {
        if access.mask.0 >> (grain * parts) & ((1 << parts) - 1) != 0 {
            mask.0 |= 1 << (part * grains + grain);
        }
    }
    match new[start..].iter_mut().find(|other| { other.line } == line) {
        Some(other) => other.mask |= mask,
        None => new.push(Access { line, mask }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(lines: &[(u64, u32)], from: u64, to: u64) -> Vec<(u64, u32)> {
        let accesses: Vec<Access> =
            lines.iter().map(|(line, mask)| Access { line: Line(*line), mask: Mask(*mask) }).collect();
        let whole = Accesses { start: 0, len: accesses.len() as u8 };
        let ops = vec![Op::Load { order: Default::default(), accesses: whole }];
        let mut stream = CtaStream { ops, accesses, ..CtaStream::default() };
        adapt(&mut stream, LineSize::new(from).unwrap(), LineSize::new(to).unwrap()).unwrap();
        stream.accesses.iter().map(|access| (access.line.0, access.mask.0)).collect()
    }

    #[test]
    fn a_line_splits_into_the_parts_it_touches() {
        assert_eq!(adapted(&[(3, u32::MAX)], 128, 64), [(6, u32::MAX), (7, u32::MAX)]);
        assert_eq!(adapted(&[(3, 1 << 31)], 128, 64), [(7, 0b11 << 30)]);
        assert_eq!(adapted(&[(3, 0x0100)], 128, 32), [(13, 0b1111)]);
    }

    #[test]
    fn neighbouring_lines_merge() {
        assert_eq!(adapted(&[(6, u32::MAX), (7, 1), (9, 0b11)], 64, 128), [(3, 0x1_ffff), (4, 1 << 16)]);
    }

    #[test]
    fn an_access_of_no_byte_stays() {
        assert_eq!(adapted(&[(3, 0)], 128, 64), [(6, 0)]);
    }
}
