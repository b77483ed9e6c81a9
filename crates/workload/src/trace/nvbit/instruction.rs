//! One line of a kernel trace: `[line_num] PC mask ndst [Rd…] opcode nsrc [Rs…] mem_width [mode addresses] [imm]`.

use super::cursor::{Cursor, hex};
use super::opcode::{LANES, Opcode};
use crate::trace::error::Mismatch;
use rustc_hash::FxHashMap;

/// Most registers on either side of an instruction; Accel-Sim's tracer writes at most 5.
const MOST_REGISTERS: u64 = 16;
/// Most places in the code whose decoded text is kept; kernels have tens of thousands, a hostile file any
/// number.
const MOST_PLACES: usize = 1 << 16;
/// First tracer version that writes an immediate.
const IMMEDIATE_SINCE: u32 = 5;

/// Register numbers, in the order of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers {
    count: u8,
    numbers: [u8; MOST_REGISTERS as usize],
}

impl Registers {
    /// As a slice.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.numbers[..usize::from(self.count)]
    }

    fn parse(cursor: &mut Cursor<'_>, what: &str) -> Result<Registers, Mismatch> {
        let count = cursor.count(MOST_REGISTERS, what)?;
        let mut registers = Registers { count: count as u8, ..Registers::default() };
        for number in &mut registers.numbers[..count as usize] {
            let token = cursor.expect("a register, R0 to R255")?;
            let digits = token.strip_prefix(b"R").and_then(super::cursor::decimal);
            match digits {
                Some(register) if register <= 255 => *number = register as u8,
                _ => return Err(Mismatch::new("a register, R0 to R255", token)),
            }
        }
        Ok(registers)
    }
}

/// What is the same each time an instruction executes.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// Its text, from the number of destinations to the last source.
    text: Box<[u8]>,
    /// The opcode as written.
    pub(super) name: Box<str>,
    pub(super) opcode: Opcode,
    pub(super) destinations: Registers,
    pub(super) sources: Registers,
}

impl Code {
    /// Reads the code at the head of `cursor`.
    fn parse(cursor: &mut Cursor<'_>) -> Result<Code, Mismatch> {
        cursor.at_token();
        let start = cursor.rest();
        let destinations = Registers::parse(cursor, "a number of destination registers")?;
        let token = cursor.expect("an opcode")?;
        let written = std::str::from_utf8(token).ok().filter(|text| {
            text.starts_with(|first: char| first.is_ascii_uppercase())
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        });
        let Some(name) = written else {
            return Err(Mismatch::new("an opcode such as LDG.E", token));
        };
        let opcode = Opcode::classify(name);
        let sources = Registers::parse(cursor, "a number of source registers")?;
        let text = start[..start.len() - cursor.rest().len()].into();
        Ok(Code { text, name: name.into(), opcode, destinations, sources })
    }
}

/// One execution of an instruction by a warp.
pub(super) struct Instruction<'a> {
    pub(super) code: &'a Code,
    /// Lanes that execute it, bit i for lane i.
    pub(super) mask: u32,
    /// Byte addresses of the active lanes, lowest lane first, where the line gives any.
    pub(super) addresses: Option<&'a [u64]>,
    /// The immediate operand, from tracers that write one.
    pub(super) immediate: Option<i64>,
}

/// Parses the instruction lines of one kernel.
pub(super) struct Parser {
    version: u32,
    lineinfo: bool,
    /// Code seen at each program counter. A hit is confirmed by comparing the text.
    places: FxHashMap<u64, Code>,
    /// Code that `places` has no room for.
    elsewhere: Option<Code>,
    addresses: [u64; LANES as usize],
}

impl Parser {
    /// A parser for the tracer of a version, with or without a line number before each instruction.
    pub(super) fn new(version: u32, lineinfo: bool) -> Parser {
        let places = FxHashMap::default();
        Parser { version, lineinfo, places, elsewhere: None, addresses: [0; LANES as usize] }
    }

    /// Parses a line.
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Instruction<'_>, Mismatch> {
        let mut cursor = Cursor::new(line);
        if self.lineinfo {
            cursor.count(u64::MAX, "a line number of the source")?;
        }
        let counter = cursor.hex(16, "a program counter in hexadecimal")?;
        let mask = cursor.hex(8, "a mask of up to 8 hexadecimal digits")? as u32;
        let elsewhere = self.find_code(counter, &mut cursor)?;
        let traced = parse_addresses(&mut cursor, mask, &mut self.addresses)?;
        let immediate = if self.version >= IMMEDIATE_SINCE && cursor.at_token() {
            Some(cursor.signed("an immediate, a signed decimal number")?)
        } else {
            None
        };
        cursor.end("the instruction")?;
        let code = if elsewhere { self.elsewhere.as_ref() } else { self.places.get(&counter) };
        Ok(Instruction {
            code: code.expect("the code was just found or kept"),
            mask,
            addresses: traced.then_some(&self.addresses[..mask.count_ones() as usize]),
            immediate,
        })
    }

    /// Reads the code at `cursor`; whether it lies in `elsewhere` rather than in `places`.
    fn find_code(&mut self, counter: u64, cursor: &mut Cursor<'_>) -> Result<bool, Mismatch> {
        cursor.at_token();
        if let Some(code) = self.places.get(&counter) {
            let rest = cursor.rest();
            let ends = rest.get(code.text.len()).is_none_or(|byte| matches!(byte, b' ' | b'\t'));
            if ends && rest.starts_with(&code.text) {
                cursor.skip(code.text.len());
                return Ok(false);
            }
        }
        let code = Code::parse(cursor)?;
        let full = self.places.len() >= MOST_PLACES && !self.places.contains_key(&counter);
        if full {
            self.elsewhere = Some(code);
        } else {
            self.places.insert(counter, code);
        }
        Ok(full)
    }
}

/// Reads `mem_width [mode addresses…]` for the active lanes; whether there are addresses.
fn parse_addresses(cursor: &mut Cursor<'_>, mask: u32, into: &mut [u64; LANES as usize]) -> Result<bool, Mismatch> {
    const ADDRESS: &str = "a hexadecimal address of an active lane";
    if cursor.count(1 << 16, "a memory width in bytes")? == 0 {
        return Ok(false);
    }
    let lanes = &mut into[..mask.count_ones() as usize];
    let mode = cursor.expect("an address mode")?;
    match mode {
        b"0" => {
            for lane in lanes {
                let token = cursor.expect(ADDRESS)?;
                *lane = hex(token, 16).ok_or_else(|| Mismatch::new(ADDRESS, token))?;
            }
        }
        b"1" => {
            let base = cursor.hex(16, "a hexadecimal base address")?;
            let stride = cursor.signed("a stride, a signed decimal number")?;
            let run = mask >> mask.trailing_zeros().min(LANES - 1);
            if run & run.wrapping_add(1) != 0 {
                let found = format!("base and stride under the mask {mask:08x}");
                return Err(Mismatch { expected: "contiguous active lanes".to_owned(), found });
            }
            let mut address = base;
            for lane in lanes {
                *lane = address;
                address = address.wrapping_add_signed(stride);
            }
        }
        b"2" => {
            let mut address = cursor.hex(16, "a hexadecimal base address")?;
            for (place, lane) in lanes.iter_mut().enumerate() {
                if place > 0 {
                    address = address.wrapping_add_signed(cursor.signed("a signed decimal delta of an active lane")?);
                }
                *lane = address;
            }
        }
        other => return Err(Mismatch::new("an address mode: 0 (list), 1 (base, stride) or 2 (base, deltas)", other)),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(version: u32, line: &str) -> Vec<u64> {
        Parser::new(version, false).parse(line.as_bytes()).unwrap().addresses.unwrap().to_vec()
    }

    fn mismatch(version: u32, line: &str) -> String {
        let error = Parser::new(version, false).parse(line.as_bytes()).err().expect(line);
        format!("{} | {}", error.expected, error.found)
    }

    #[test]
    fn the_three_encodings_of_addresses_agree() {
        let expected = [0x100, 0x104, 0x108];
        assert_eq!(addresses(4, "0010 0000000e 1 R2 LDG.E 1 R4 4 0 0x0100 0x0104 0x0108 "), expected);
        assert_eq!(addresses(4, "0010 0000000e 1 R2 LDG.E 1 R4 4 1 0x100 4"), expected);
        assert_eq!(addresses(4, "0010 0000000e 1 R2 LDG.E 1 R4 4 2 0x100 4 4"), expected);
        assert_eq!(addresses(5, "0010 00000101 1 R2 LDG.E 1 R4 4 2 0x100 -16 0"), [0x100, 0xf0]);
        assert_eq!(addresses(5, "0010 00000007 1 R2 LDG.E 1 R4 4 1 0x100 -4 0"), [0x100, 0xfc, 0xf8]);
        assert_eq!(addresses(5, "0010 00000000 1 R2 LDG.E 1 R4 4 1 0x0 0 0"), [0_u64; 0]);
        assert_eq!(addresses(3, "0010 00000000 1 R2 LDG.E 1 R4 4 0 "), [0_u64; 0]);
        assert_eq!(addresses(3, "0010 ffffffff 1 R2 LDG.E 1 R4 4 1 0x40 0"), [0x40; 32]);
    }

    #[test]
    fn registers_and_immediates_are_read() {
        let mut parser = Parser::new(5, true);
        let instruction = parser.parse(b"37 0030 ffffffff 1 R1 VIADD 2 R1 R255 0 -264 ").unwrap();
        assert_eq!(instruction.code.destinations.as_slice(), [1]);
        assert_eq!(instruction.code.sources.as_slice(), [1, 255]);
        assert_eq!(instruction.immediate, Some(-264));
        assert_eq!(instruction.mask, u32::MAX);
    }

    #[test]
    fn code_that_changes_at_one_place_is_read_again() {
        let mut parser = Parser::new(4, false);
        assert_eq!(&*parser.parse(b"0000 1 1 R1 MOV 0 0").unwrap().code.name, "MOV");
        assert_eq!(&*parser.parse(b"0000 1 1 R1 MOV 0 0").unwrap().code.name, "MOV");
        assert_eq!(parser.parse(b"0000 1 1 R1 MOV 1 R12 0").unwrap().code.sources.as_slice(), [12]);
        assert_eq!(parser.parse(b"0000 1 1 R1 MOV 1 R1 0").unwrap().code.sources.as_slice(), [1]);
        assert_eq!(parser.parse(b"0000 1 1 R1 MOV 1 R12 0").unwrap().code.sources.as_slice(), [12]);
    }

    #[test]
    fn what_is_malformed_says_what_was_expected() {
        for (line, expected) in [
            ("", "a program counter in hexadecimal | the end of the line"),
            ("xyz", "a program counter in hexadecimal | `xyz`"),
            ("0010 1ffffffff", "a mask of up to 8 hexadecimal digits | `1ffffffff`"),
            ("0010 f 17", "a number of destination registers (0 to 16) | `17`"),
            ("0010 f 1 R256 MOV", "a register, R0 to R255 | `R256`"),
            ("0010 f 0 42 0 0", "an opcode such as LDG.E | `42`"),
            ("0010 f 0 EXIT 0 -1", "a memory width in bytes (0 to 65536) | `-1`"),
            ("0010 f 0 STG.E 0 4 3 0x0", "an address mode: 0 (list), 1 (base, stride) or 2 (base, deltas) | `3`"),
            ("0010 f 0 STG.E 0 4 0 0x0 0x4 0x8", "a hexadecimal address of an active lane | the end of the line"),
            ("0010 f 0 STG.E 0 4 2 0x0 4 4", "a signed decimal delta of an active lane | the end of the line"),
            ("0010 5 0 STG.E 0 4 1 0x0 4", "contiguous active lanes | base and stride under the mask 00000005"),
            ("0010 f 0 EXIT 0 0 7", "the end of the line after the instruction | `7`"),
        ] {
            assert_eq!(mismatch(4, line), expected, "{line}");
        }
        assert_eq!(mismatch(5, "0 1 0 EXIT 0 0 7 8"), "the end of the line after the instruction | `8`");
        assert_eq!(mismatch(5, "0 1 0 EXIT 0 0 x"), "an immediate, a signed decimal number | `x`");
    }
}
