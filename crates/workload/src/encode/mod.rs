//! The compact byte form of a CTA's stream, as kept by a recording and stored in a trace file.
//!
//! One byte leads each instruction: its kind in the low four bits, a small argument in the high four. Numbers are
//! little-endian base-128 varints. The first line of a memory instruction is written as a difference to the first line
//! of the corresponding memory instruction in the previous warp. If the previous warp has none, the difference is to
//! the last line of the preceding instruction. Each further line is the difference to the successor of the line before.
//! Warps with the same work on neighbouring data thereby become equal bytes, and a general compressor folds repeated
//! bytes.
//!
//! ```text
//! stream := warps tokens token* warp*            token := varint
//! warp   := ops op*                              line  := zigzag varint, difference
//! access := line | line mask                     mask  := 0..=31 one grain | 32 all | 33 first count
//!                                                       | 34 four bytes, little endian
//! arithmetic := lead count links?                links := varint, chain × 4 + awaited × 2 + joins
//! ```
//!
//! For arithmetic, the argument is the class. Bit 8 of the argument announces `links`; without links, nothing waits for
//! the instructions.

mod decoder;

pub use decoder::decode;
use tombolo_types::stream::{Access, Accesses, AtomicResult, CtaStream, Op, PackedOrder};
use tombolo_types::{Mask, Order};

/// Largest distance, in results, at which a warp can wait. Source: the definition of [`Op::Use`].
pub(crate) const MAX_DISTANCE: u8 = 64;
/// Argument for a large count: the count follows in a separate number.
const ESCAPE: u8 = 7;
/// Argument bit: every access covers a whole line, and no masks follow.
const FULL: u8 = 8;
/// Argument bit for arithmetic: chain and links follow.
const LINKED: u8 = 8;
/// Bits of the links number: the chain length occupies all higher bits.
const JOINS: u32 = 1;
const AWAITED: u32 = 2;
const CHAIN_SHIFT: u32 = 2;
/// Largest argument for instructions with a four-bit argument; 0 means that the number follows.
const MAX_ARGUMENT: u16 = 15;

const MASK_ALL: u8 = 32;
const MASK_RUN: u8 = 33;
const MASK_BITS: u8 = 34;

/// Instruction kinds, in the low four bits of the leading byte.
mod kind {
    pub(super) const COMPUTE: u8 = 0;
    pub(super) const LOAD: u8 = 1;
    pub(super) const STORE: u8 = 2;
    pub(super) const ORDERED_LOAD: u8 = 3;
    pub(super) const ORDERED_STORE: u8 = 4;
    pub(super) const ATOMIC: u8 = 5;
    pub(super) const REDUCTION: u8 = 6;
    pub(super) const FENCE: u8 = 7;
    pub(super) const SHARED: u8 = 8;
    pub(super) const BARRIER: u8 = 9;
    pub(super) const USE: u8 = 10;
    pub(super) const WAIT: u8 = 11;
    pub(super) const SIGNAL: u8 = 12;
}

/// Appends the stream's byte form to `out`.
///
/// The stream's warps must cover its instructions in order. Decoding gives the stream's canonical form: each
/// instruction's accesses follow the accesses of the preceding instruction.
pub fn encode(stream: &CtaStream, out: &mut Vec<u8>) {
    put(out, stream.warps.len() as u64);
    put(out, stream.tokens.len() as u64);
    for token in &stream.tokens {
        put(out, u64::from(token.0));
    }
    let mut before: Vec<u64> = Vec::new();
    let mut lines: Vec<u64> = Vec::new();
    for warp in &stream.warps {
        let ops = &stream.ops[warp.start as usize..warp.end as usize];
        put(out, ops.len() as u64);
        let mut guess = LinePredictor { before: &before, next: 0, last: 0 };
        lines.clear();
        for op in ops {
            encode_op(stream, op, &mut guess, &mut lines, out);
        }
        std::mem::swap(&mut before, &mut lines);
    }
}

/// Predictor for the first line of a warp's next memory instruction.
struct LinePredictor<'a> {
    /// First lines of the previous warp, a line per memory instruction with an access.
    before: &'a [u64],
    next: usize,
    last: u64,
}

impl LinePredictor<'_> {
    fn first(&mut self) -> u64 {
        let guess = self.before.get(self.next).copied().unwrap_or(self.last);
        self.next += 1;
        guess
    }
}

fn encode_op(stream: &CtaStream, op: &Op, guess: &mut LinePredictor<'_>, lines: &mut Vec<u64>, out: &mut Vec<u8>) {
    let weak = PackedOrder::from(Order::WEAK);
    let mut memory = |kind, order: Option<PackedOrder>, accesses: Accesses, out: &mut Vec<u8>| {
        let accesses = &stream.accesses[accesses.range()];
        encode_memory(kind, order, accesses, guess, lines, out);
    };
    match *op {
        Op::Compute { class, count, chain, links } => {
            let told = u32::from(chain) << CHAIN_SHIFT
                | if links.awaited { AWAITED } else { 0 }
                | if links.joins { JOINS } else { 0 };
            let linked = if told == 0 { 0 } else { LINKED };
            out.push(kind::COMPUTE | (class as u8 | linked) << 4);
            put(out, u64::from(count));
            if told != 0 {
                put(out, u64::from(told));
            }
        }
        Op::Load { order, accesses } if order == weak => memory(kind::LOAD, None, accesses, out),
        Op::Store { order, accesses } if order == weak => memory(kind::STORE, None, accesses, out),
        Op::Load { order, accesses } => memory(kind::ORDERED_LOAD, Some(order), accesses, out),
        Op::Store { order, accesses } => memory(kind::ORDERED_STORE, Some(order), accesses, out),
        Op::Atomic { order, result, accesses } => {
            let kind = match result {
                AtomicResult::Returned => kind::ATOMIC,
                AtomicResult::Discarded => kind::REDUCTION,
            };
            memory(kind, Some(order), accesses, out);
        }
        Op::Fence { order } => out.extend([kind::FENCE, order.to_byte()]),
        Op::Shared { passes } => put_small(kind::SHARED, passes, out),
        Op::Barrier => out.push(kind::BARRIER),
        Op::Use { distance } => put_small(kind::USE, u16::from(distance), out),
        Op::WaitUntil { order, access, token } => {
            memory(kind::WAIT, Some(order), Accesses { start: access, len: 1 }, out);
            put(out, u64::from(token));
        }
        Op::Signal { token } => put_small(kind::SIGNAL, token, out),
    }
}

fn encode_memory(
    kind: u8,
    order: Option<PackedOrder>,
    accesses: &[Access],
    guess: &mut LinePredictor<'_>,
    lines: &mut Vec<u64>,
    out: &mut Vec<u8>,
) {
    let full = accesses.iter().all(|access| access.mask == Mask::ALL);
    let short = if accesses.len() < ESCAPE as usize { accesses.len() as u8 } else { ESCAPE };
    out.push(kind | (short | if full { FULL } else { 0 }) << 4);
    if short == ESCAPE {
        out.push(accesses.len() as u8);
    }
    out.extend(order.map(PackedOrder::to_byte));
    for (place, access) in accesses.iter().enumerate() {
        let expected = if place == 0 { guess.first() } else { guess.last.wrapping_add(1) };
        put(out, zigzag(access.line.0.wrapping_sub(expected)));
        if place == 0 {
            lines.push(access.line.0);
        }
        guess.last = access.line.0;
        if !full {
            put_mask(access.mask, out);
        }
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a number; values 1 to 15 fit in the argument.
fn put_small(kind: u8, value: u16, out: &mut Vec<u8>) {
    if (1..=MAX_ARGUMENT).contains(&value) {
        out.push(kind | (value as u8) << 4);
    } else {
        out.push(kind);
        put(out, u64::from(value));
    }
}

fn put_mask(mask: Mask, out: &mut Vec<u8>) {
    let first = mask.0.trailing_zeros();
    let count = mask.grains();
    let run = count > 0 && u64::from(mask.0) >> first == (1_u64 << count) - 1;
    match count {
        1 => out.push(first as u8),
        32 => out.push(MASK_ALL),
        _ if run => out.extend([MASK_RUN, first as u8, count as u8]),
        _ => {
            out.push(MASK_BITS);
            out.extend(mask.0.to_le_bytes());
        }
    }
}

fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tombolo_types::Line;
    use tombolo_types::stream::{ChainLinks, ComputeClass, Token};

    /// An instruction with its accesses; indices are assigned when the stream is laid out.
    type Draft = (Op, Vec<Access>);

    fn access() -> impl Strategy<Value = Access> {
        let line = prop_oneof![0_u64..1000, any::<u64>()];
        let mask = prop_oneof![Just(u32::MAX), (0_u32..32).prop_map(|bit| 1 << bit), any::<u32>()];
        (line, mask).prop_map(|(line, mask)| Access { line: Line(line), mask: Mask(mask) })
    }

    fn order() -> impl Strategy<Value = PackedOrder> {
        any::<u8>().prop_filter_map("no order", PackedOrder::from_byte)
    }

    fn class() -> impl Strategy<Value = ComputeClass> {
        prop::sample::select(ComputeClass::ALL.to_vec())
    }

    fn compute() -> impl Strategy<Value = Op> {
        let count = (1..=u16::MAX).prop_flat_map(|count| (Just(count), 0..=count));
        (class(), count, any::<bool>(), any::<bool>()).prop_map(|(class, (count, chain), joins, awaited)| Op::Compute {
            class,
            count,
            chain,
            links: ChainLinks { joins, awaited },
        })
    }

    fn draft() -> impl Strategy<Value = Draft> {
        let none = Accesses::default();
        let plain = prop_oneof![
            compute(),
            order().prop_map(|order| Op::Fence { order }),
            (1..=u16::MAX).prop_map(|passes| Op::Shared { passes }),
            Just(Op::Barrier),
            (0_u8..=64).prop_map(|distance| Op::Use { distance }),
            (0_u16..3).prop_map(|token| Op::Signal { token }),
        ];
        let kinds = (order(), 0..4_u8).prop_map(move |(order, kind)| match kind {
            0 => Op::Load { order, accesses: none },
            1 => Op::Store { order, accesses: none },
            2 => Op::Atomic { order, result: AtomicResult::Returned, accesses: none },
            _ => Op::Atomic { order, result: AtomicResult::Discarded, accesses: none },
        });
        let wait = (order(), 0_u16..3).prop_map(|(order, token)| Op::WaitUntil { order, access: 0, token });
        prop_oneof![
            plain.prop_map(|op| (op, Vec::new())),
            (kinds, prop::collection::vec(access(), 0..70)),
            (wait, prop::collection::vec(access(), 1..2)),
        ]
    }

    fn lay_out(warps: Vec<Vec<Draft>>) -> CtaStream {
        let mut stream = CtaStream { tokens: vec![Token(0), Token(7), Token::MAX], ..CtaStream::default() };
        for warp in warps {
            let first = stream.ops.len() as u32;
            for (mut op, own) in warp {
                let place = Accesses { start: stream.accesses.len() as u32, len: own.len() as u8 };
                match &mut op {
                    Op::Load { accesses, .. } | Op::Store { accesses, .. } | Op::Atomic { accesses, .. } => {
                        *accesses = place;
                    }
                    Op::WaitUntil { access, .. } => *access = place.start,
                    _ => {}
                }
                stream.accesses.extend(own);
                stream.ops.push(op);
            }
            stream.warps.push(first..stream.ops.len() as u32);
        }
        stream
    }

    fn stream() -> impl Strategy<Value = CtaStream> {
        prop::collection::vec(prop::collection::vec(draft(), 0..12), 0..5).prop_map(lay_out)
    }

    proptest! {
        #[test]
        fn a_stream_survives_encoding(original in stream(), tail in prop::collection::vec(any::<u8>(), 0..4)) {
            let mut bytes = Vec::new();
            encode(&original, &mut bytes);
            let length = bytes.len();
            bytes.extend(tail);
            let mut decoded = CtaStream::default();
            prop_assert_eq!(decode(&bytes, &mut decoded), Ok(length));
            prop_assert_eq!(decoded, original);
        }

        #[test]
        fn a_truncated_stream_is_an_error(original in stream(), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            encode(&original, &mut bytes);
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(decode(&bytes, &mut CtaStream::default()).is_err());
        }

        #[test]
        fn damaged_bytes_never_panic_and_stay_small(
            original in stream(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut bytes = Vec::new();
            encode(&original, &mut bytes);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut decoded = CtaStream::default();
            let _ = decode(&bytes, &mut decoded);
            prop_assert!(decoded.ops.len() + decoded.accesses.len() + decoded.tokens.len() <= bytes.len());
        }
    }

    #[test]
    fn warps_that_walk_in_step_become_equal_bytes() {
        let warp = |line| {
            let load = |line| {
                let accesses = vec![Access { line: Line(line), mask: Mask::ALL }];
                (Op::Load { order: Order::WEAK.into(), accesses: Accesses::default() }, accesses)
            };
            vec![load(line), load(line + 1_000_000)]
        };
        let mut bytes = Vec::new();
        encode(&lay_out((0..4).map(|place| warp(5000 + place)).collect()), &mut bytes);
        let tail = &bytes[bytes.len() - 10..];
        assert_eq!(tail[..5], tail[5..], "count, lead, difference, lead, difference");
    }

    #[test]
    fn a_token_beyond_the_largest_is_refused() {
        let mut bytes = Vec::new();
        let tokens = vec![Token(Token::MAX.0 + 1)];
        encode(&CtaStream { tokens, ..CtaStream::default() }, &mut bytes);
        let error = decode(&bytes, &mut CtaStream::default()).unwrap_err();
        assert_eq!(error.message, "byte 6 of the encoded CTA: token 67108865 exceeds 67108864");
    }

    #[test]
    fn a_chain_longer_than_its_run_is_refused() {
        let error = decode(&[1, 0, 1, 0x80, 3, 4 << CHAIN_SHIFT], &mut CtaStream::default()).unwrap_err();
        assert_eq!(error.message, "byte 6 of the encoded CTA: a chain of 4 among 3 instructions");
    }

    #[test]
    fn arithmetic_without_links_is_what_older_files_hold() {
        let mut decoded = CtaStream::default();
        decode(&[1, 0, 1, 0x10, 3], &mut decoded).unwrap();
        assert_eq!(decoded.ops, [Op::occupy(ComputeClass::Int, 3)]);
    }

    #[test]
    fn an_error_names_its_position() {
        let error = decode(&[1, 0, 1, 15], &mut CtaStream::default()).unwrap_err();
        assert_eq!(error.message, "byte 4 of the encoded CTA: 15 is no kind of instruction");
    }
}
