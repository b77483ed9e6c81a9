//! Decoder from the byte form back to streams.

use super::{AWAITED, CHAIN_SHIFT, ESCAPE, FULL, JOINS, LINKED, MASK_ALL, MASK_BITS, MASK_RUN, MAX_DISTANCE, kind};
use tombolo_types::stream::{
    Access, Accesses, AtomicResult, ChainLinks, ComputeClass, CtaStream, Op, PackedOrder, StreamError, Token,
};
use tombolo_types::{Line, Mask, Order};

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Decodes the stream at the head of `bytes` into `into`, which is cleared first. Returns the number of bytes consumed.
///
/// Any input is safe: damage gives an error with its position, and memory stays within a small multiple of
/// `bytes.len()`. After an error, `into` holds the content decoded so far.
pub fn decode(bytes: &[u8], into: &mut CtaStream) -> Result<usize, StreamError> {
    into.clear();
    let mut decoder =
        Decoder { bytes, at: 0, stream: into, before: Vec::new(), lines: Vec::new(), next: 0, last: 0, error: None };
    match decoder.cta() {
        Ok(()) => Ok(decoder.at),
        Err(DecodeFailure) => Err(decoder.error.expect("who finds damage says which")),
    }
}

/// Marker for bytes never written by [`encode`]; the decoder keeps the reason. The type is empty, which lets decoded
/// values return in registers.
#[derive(Clone, Copy, Debug)]
struct DecodeFailure;

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    stream: &'a mut CtaStream,
    /// First lines of the previous warp, a line per memory instruction with an access.
    before: Vec<u64>,
    /// First lines of this warp, in the same form.
    lines: Vec<u64>,
    /// Index in `before` of the line that serves as the next guess.
    next: usize,
    /// The most recent line of this warp.
    last: u64,
    error: Option<StreamError>,
}

/// Inlining is for speed: decoding is a fifth faster when position and guesses stay in registers.
impl Decoder<'_> {
    #[cold]
    fn error(&mut self, what: std::fmt::Arguments<'_>) -> DecodeFailure {
        self.error = Some(StreamError { message: format!("byte {} of the encoded CTA: {what}", self.at) });
        DecodeFailure
    }

    fn cta(&mut self) -> Result<(), DecodeFailure> {
        let warps = self.count("warps")?;
        let tokens = self.count("tokens")?;
        for _ in 0..tokens {
            let token = self.number()?;
            // Readers keep a bit per token up to the largest token, so the largest is limited.
            if token > u64::from(Token::MAX.0) {
                return Err(self.error(format_args!("token {token} exceeds {}", Token::MAX.0)));
            }
            self.stream.tokens.push(Token(token as u32));
        }
        (0..warps).try_for_each(|_| self.warp())
    }

    #[inline(always)]
    fn byte(&mut self) -> Result<u8, DecodeFailure> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(self.error(format_args!("ends early"))),
        }
    }

    #[inline(always)]
    fn number(&mut self) -> Result<u64, DecodeFailure> {
        let first = self.byte()?;
        if first < 0x80 { Ok(u64::from(first)) } else { self.long_number(first) }
    }

    fn long_number(&mut self, first: u8) -> Result<u64, DecodeFailure> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(format_args!("a number longer than 64 bits")))
    }

    /// Reads an item count, for items with at least one byte each: the remaining bytes bound it.
    fn count(&mut self, what: &str) -> Result<usize, DecodeFailure> {
        let count = self.number()?;
        let left = self.bytes.len() - self.at;
        if count > left as u64 {
            return Err(self.error(format_args!("{count} {what} cannot be in the {left} bytes left")));
        }
        Ok(count as usize)
    }

    /// The argument of an instruction written by `put_small`, from `low` to `high`.
    fn small(&mut self, argument: u8, what: &str, low: u16, high: u16) -> Result<u16, DecodeFailure> {
        let value = if argument == 0 { self.number()? } else { u64::from(argument) };
        match u16::try_from(value) {
            Ok(value) if (low..=high).contains(&value) => Ok(value),
            _ => Err(self.error(format_args!("{what} is {value}, but must be {low} to {high}"))),
        }
    }

    fn warp(&mut self) -> Result<(), DecodeFailure> {
        let ops = self.count("instructions")?;
        let start = self.stream.ops.len();
        self.stream.ops.reserve(ops);
        (self.next, self.last) = (0, 0);
        for _ in 0..ops {
            let op = self.op()?;
            self.stream.ops.push(op);
        }
        std::mem::swap(&mut self.before, &mut self.lines);
        self.lines.clear();
        if u32::try_from(self.stream.ops.len()).is_err() || u32::try_from(self.stream.accesses.len()).is_err() {
            return Err(self.error(format_args!("more than 2^32 instructions or accesses in a CTA")));
        }
        self.stream.warps.push(start as u32..self.stream.ops.len() as u32);
        Ok(())
    }

    fn order(&mut self) -> Result<PackedOrder, DecodeFailure> {
        let byte = self.byte()?;
        PackedOrder::from_byte(byte).ok_or_else(|| self.error(format_args!("{byte} is no memory order")))
    }

    #[inline(always)]
    fn mask(&mut self) -> Result<Mask, DecodeFailure> {
        match self.byte()? {
            grain @ 0..=31 => Ok(Mask(1 << grain)),
            MASK_ALL => Ok(Mask::ALL),
            MASK_RUN => {
                let (first, count) = (self.byte()?, self.byte()?);
                if !(2..=31).contains(&count) || first > 32 - count {
                    return Err(self.error(format_args!("a mask of {count} grains from grain {first}")));
                }
                Ok(Mask(((1 << count) - 1) << first))
            }
            MASK_BITS => {
                let bytes = [self.byte()?, self.byte()?, self.byte()?, self.byte()?];
                Ok(Mask(u32::from_le_bytes(bytes)))
            }
            other => Err(self.error(format_args!("{other} is no kind of mask"))),
        }
    }

    #[inline(always)]
    fn op(&mut self) -> Result<Op, DecodeFailure> {
        let lead = self.byte()?;
        let argument = lead >> 4;
        let weak = PackedOrder::from(Order::WEAK);
        Ok(match lead & 15 {
            kind::COMPUTE => self.compute(argument)?,
            kind::LOAD => Op::Load { order: weak, accesses: self.accesses(argument)? },
            kind::STORE => Op::Store { order: weak, accesses: self.accesses(argument)? },
            kind::BARRIER => Op::Barrier,
            kind::USE if argument > 0 => Op::Use { distance: argument },
            kind::USE => {
                let distance = self.small(0, "use distance", 0, u16::from(MAX_DISTANCE))?;
                Op::Use { distance: distance as u8 }
            }
            kind::SHARED if argument > 0 => Op::Shared { passes: u16::from(argument) },
            kind::SHARED => Op::Shared { passes: self.small(0, "passes", 1, u16::MAX)? },
            other => self.rare(other, argument)?,
        })
    }

    fn compute(&mut self, argument: u8) -> Result<Op, DecodeFailure> {
        let Some(&class) = ComputeClass::ALL.get(usize::from(argument & !LINKED)) else {
            return Err(self.error(format_args!("{} is no class of arithmetic", argument & !LINKED)));
        };
        let count = match self.bytes.get(self.at) {
            Some(&count @ 1..0x80) => {
                self.at += 1;
                u16::from(count)
            }
            _ => self.small(0, "instruction count", 1, u16::MAX)?,
        };
        if argument & LINKED == 0 {
            return Ok(Op::occupy(class, count));
        }
        let told = self.number()?;
        match u16::try_from(told >> CHAIN_SHIFT) {
            Ok(chain) if chain <= count => {
                let links = ChainLinks { joins: told & u64::from(JOINS) != 0, awaited: told & u64::from(AWAITED) != 0 };
                Ok(Op::Compute { class, count, chain, links })
            }
            _ => {
                let chain = told >> CHAIN_SHIFT;
                Err(self.error(format_args!("a chain of {chain} among {count} instructions")))
            }
        }
    }

    fn rare(&mut self, kind: u8, argument: u8) -> Result<Op, DecodeFailure> {
        Ok(match kind {
            kind::ORDERED_LOAD => {
                let (order, accesses) = self.ordered(argument)?;
                Op::Load { order, accesses }
            }
            kind::ORDERED_STORE => {
                let (order, accesses) = self.ordered(argument)?;
                Op::Store { order, accesses }
            }
            kind::ATOMIC => {
                let (order, accesses) = self.ordered(argument)?;
                Op::Atomic { order, result: AtomicResult::Returned, accesses }
            }
            kind::REDUCTION => {
                let (order, accesses) = self.ordered(argument)?;
                Op::Atomic { order, result: AtomicResult::Discarded, accesses }
            }
            kind::FENCE => Op::Fence { order: self.order()? },
            kind::WAIT => {
                let (order, accesses) = self.ordered(argument)?;
                if accesses.len != 1 {
                    return Err(self.error(format_args!("a wait on {} lines", accesses.len)));
                }
                Op::WaitUntil { order, access: accesses.start, token: self.token(0)? }
            }
            kind::SIGNAL => Op::Signal { token: self.token(argument)? },
            other => return Err(self.error(format_args!("{other} is no kind of instruction"))),
        })
    }

    fn token(&mut self, argument: u8) -> Result<u16, DecodeFailure> {
        let token = self.small(argument, "token index", 0, u16::MAX)?;
        if usize::from(token) >= self.stream.tokens.len() {
            let tokens = self.stream.tokens.len();
            return Err(self.error(format_args!("token index {token} of {tokens} tokens")));
        }
        Ok(token)
    }

    fn ordered(&mut self, argument: u8) -> Result<(PackedOrder, Accesses), DecodeFailure> {
        let (len, full) = self.length(argument)?;
        let order = self.order()?;
        Ok((order, self.lines(len, full)?))
    }

    #[inline(always)]
    fn length(&mut self, argument: u8) -> Result<(u8, bool), DecodeFailure> {
        let short = argument & ESCAPE;
        let len = if short == ESCAPE { self.byte()? } else { short };
        Ok((len, argument & FULL != 0))
    }

    #[inline(always)]
    fn accesses(&mut self, argument: u8) -> Result<Accesses, DecodeFailure> {
        let (len, full) = self.length(argument)?;
        self.lines(len, full)
    }

    #[inline(always)]
    fn lines(&mut self, len: u8, full: bool) -> Result<Accesses, DecodeFailure> {
        let start = self.stream.accesses.len() as u32;
        for place in 0..len {
            let expected = if place == 0 { self.guess() } else { self.last.wrapping_add(1) };
            self.last = expected.wrapping_add(unzigzag(self.number()?));
            if place == 0 {
                self.lines.push(self.last);
            }
            let mask = if full { Mask::ALL } else { self.mask()? };
            self.stream.accesses.push(Access { line: Line(self.last), mask });
        }
        Ok(Accesses { start, len })
    }

    /// Guess for the next line: the first line of the previous warp's corresponding memory instruction, or the most
    /// recent line.
    #[inline(always)]
    fn guess(&mut self) -> u64 {
        let guess = self.before.get(self.next).copied().unwrap_or(self.last);
        self.next += 1;
        guess
    }
}
