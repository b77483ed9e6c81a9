//! An instruction line in a kernel trace: `[line_num] PC mask ndst [Rd…] opcode nsrc [Rs…] mem_width [mode addresses]`.
//! Version 5 and later append one or two immediates; version 6 and later append `NoVal`, or `Val` and register
//! contents. Lines of warp-group matrix operations have a flag before the memory width, and lines of bulk copies have
//! a form of their own (module [`bulk`](super::bulk)). Source: Accel-Sim, `trace_parser.cc`.

use super::bulk::{BulkCopy, parse_bulk};
use super::cursor::{Cursor, decimal, hex};
use super::opcode::{LANES, Opcode, OpcodeKind};
use super::scoreboard::ZERO_REGISTER;
use crate::trace::error::Mismatch;
use rustc_hash::FxHashMap;

/// Maximum number of source or destination registers per instruction; Accel-Sim's tracer writes at most 5.
const MOST_REGISTERS: u64 = 16;
/// Maximum number of program counters whose decoded text is cached; kernels have tens of thousands, a hostile file any
/// number.
const MOST_PLACES: usize = 1 << 16;
/// Maximum number of operations counted by name; there are about 400.
const MOST_OPERATIONS: usize = 1024;
/// Name for all further operations.
const FURTHER: &str = "further operations";
/// First tracer version that writes immediates.
const IMMEDIATE_SINCE: u32 = 5;
/// Maximum number of immediates per line: tracers of version 5 write one, later tracers two.
const MOST_IMMEDIATES: usize = 2;
/// First tracer version that states if register contents are written.
const VALUES_SINCE: u32 = 6;

/// Register numbers, in line order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers {
    count: u8,
    numbers: [u8; MOST_REGISTERS as usize],
}

impl Registers {
    /// The registers as a slice.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.numbers[..usize::from(self.count)]
    }

    fn parse(cursor: &mut Cursor<'_>, what: &str) -> Result<Registers, Mismatch> {
        let count = cursor.count(MOST_REGISTERS, what)?;
        let mut registers = Registers { count: count as u8, ..Registers::default() };
        for number in &mut registers.numbers[..count as usize] {
            let token = cursor.expect(REGISTER)?;
            *number = register(token).ok_or_else(|| Mismatch::new(REGISTER, token))?;
        }
        Ok(registers)
    }

    /// Removes and returns the first of at least two registers.
    fn take_first(&mut self) -> u8 {
        let first = self.numbers[0];
        self.numbers.copy_within(1.., 0);
        self.count -= 1;
        first
    }
}

/// Description of a register for error messages.
const REGISTER: &str = "a register, R0 to R255, or a uniform register or predicate";

/// Parses a register number. No simulated instruction loads into uniform registers or predicates, so both are mapped to
/// the zero register, for which nothing waits.
fn register(token: &[u8]) -> Option<u8> {
    let (digits, general) = match token {
        [b'R', digits @ ..] => (digits, true),
        [b'U', b'R' | b'P', digits @ ..] | [b'P', digits @ ..] => (digits, false),
        _ => return None,
    };
    let number = decimal(digits).filter(|number| *number <= 255)?;
    Some(if general { number as u8 } else { ZERO_REGISTER })
}

/// Minimum number of registers named by an atomic without a destination: an address and a datum. The tracer reports an
/// instruction's first operand as its destination if this operand is a register. For an atomic on device memory the
/// first operand is a predicate, so the result register appears before the address and datum, among the sources.
const ATOMIC_SOURCES: u8 = 2;

/// Properties of an instruction that are identical at each execution.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// Text of the instruction, from the number of destinations to the last source.
    text: Box<[u8]>,
    /// The opcode as spelled in the trace.
    pub(super) name: Box<str>,
    pub(super) opcode: Opcode,
    /// Index of the operation's name in [`Parser::operations`].
    pub(super) operation: u16,
    pub(super) destinations: Registers,
    pub(super) sources: Registers,
}

/// Names of a kernel's operations.
#[derive(Debug, Default)]
pub(super) struct OperationNames {
    /// Names with the effects that are not simulated.
    pub(super) names: Vec<(Box<str>, Option<&'static str>)>,
    index: FxHashMap<Box<str>, u16>,
}

impl OperationNames {
    /// Index of the operation of `opcode`, spelled `text`.
    fn index(&mut self, text: &str, opcode: Opcode) -> u16 {
        let name = Opcode::name(text);
        if let Some(index) = self.index.get(name) {
            return *index;
        }
        let full = self.names.len() + 1 >= MOST_OPERATIONS;
        let (name, limit) = if full { (FURTHER, None) } else { (name, opcode.limit) };
        if let Some(index) = self.index.get(name) {
            return *index;
        }
        let index = self.names.len() as u16;
        self.names.push((name.into(), limit));
        self.index.insert(name.into(), index);
        index
    }
}

impl Code {
    /// Parses the code at the head of `cursor`.
    fn parse(cursor: &mut Cursor<'_>, operations: &mut OperationNames) -> Result<Code, Mismatch> {
        cursor.at_token();
        let start = cursor.rest();
        let mut destinations = Registers::parse(cursor, "a number of destination registers")?;
        let token = cursor.expect("an opcode")?;
        let written = std::str::from_utf8(token).ok().filter(|text| {
            text.starts_with(|first: char| first.is_ascii_uppercase())
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        });
        let Some(name) = written else {
            return Err(Mismatch::new("an opcode such as LDG.E", token));
        };
        let opcode = Opcode::classify(name);
        let mut sources = Registers::parse(cursor, "a number of source registers")?;
        if matches!(opcode.kind, OpcodeKind::Atomic(_)) && destinations.count == 0 && sources.count > ATOMIC_SOURCES {
            destinations.numbers[0] = sources.take_first();
            destinations.count = 1;
        }
        let text = start[..start.len() - cursor.rest().len()].into();
        let operation = operations.index(name, opcode);
        Ok(Code { text, name: name.into(), opcode, operation, destinations, sources })
    }
}

/// A single execution of an instruction by a warp.
pub(super) struct Instruction<'a> {
    pub(super) code: &'a Code,
    /// Mask of executing lanes, bit i for lane i.
    pub(super) mask: u32,
    /// Byte addresses of the active lanes, lowest lane first, if the line has any.
    pub(super) addresses: Option<&'a [u64]>,
    /// The immediate operand, for tracers that write immediates.
    pub(super) immediate: Option<i64>,
    /// The second immediate operand, for tracers that write two.
    pub(super) second_immediate: Option<i64>,
    /// What a bulk copy says of itself, for tracers that write it.
    pub(super) bulk: Option<BulkCopy>,
}

/// Parser for the instruction lines of a kernel.
pub(super) struct Parser {
    version: u32,
    lineinfo: bool,
    /// Code seen at each program counter. A cache hit is confirmed by comparing the text.
    places: FxHashMap<u64, Code>,
    /// The latest code for which `places` has no room.
    elsewhere: Option<Code>,
    /// Names of all operations so far.
    pub(super) operations: OperationNames,
    addresses: [u64; LANES as usize],
}

impl Parser {
    /// A parser for traces of the given tracer version, with or without a line number before each instruction.
    pub(super) fn new(version: u32, lineinfo: bool) -> Parser {
        let places = FxHashMap::default();
        let operations = OperationNames::default();
        Parser { version, lineinfo, places, elsewhere: None, operations, addresses: [0; LANES as usize] }
    }

    /// Parses an instruction line.
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Instruction<'_>, Mismatch> {
        let mut cursor = Cursor::new(line);
        if self.lineinfo {
            cursor.count(u64::MAX, "a line number of the source")?;
        }
        let counter = cursor.hex(16, "a program counter in hexadecimal")?;
        let mask = cursor.hex(8, "a mask of up to 8 hexadecimal digits")? as u32;
        let elsewhere = self.find_code(counter, &mut cursor)?;
        let code = if elsewhere { self.elsewhere.as_ref() } else { self.places.get(&counter) };
        let code = code.expect("the code was just found or kept");
        if code.opcode.has_commit_flag {
            skip_commit_flag(&mut cursor, self.version)?;
        }
        let bulk = if code.opcode.kind == OpcodeKind::BulkCopy { parse_bulk(&mut cursor)? } else { None };
        let traced = bulk.is_none() && parse_addresses(&mut cursor, mask, &mut self.addresses)?;
        let [immediate, second_immediate] = parse_tail(&mut cursor, self.version)?;
        let addresses = traced.then_some(&self.addresses[..mask.count_ones() as usize]);
        Ok(Instruction { code, mask, addresses, immediate, second_immediate, bulk })
    }

    /// Finds or parses the code at `cursor`; returns true if the code is in `elsewhere` rather than in `places`.
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
        let code = Code::parse(cursor, &mut self.operations)?;
        let full = self.places.len() >= MOST_PLACES && !self.places.contains_key(&counter);
        if full {
            self.elsewhere = Some(code);
        } else {
            self.places.insert(counter, code);
        }
        Ok(full)
    }
}

/// Skips the flag of a warp-group matrix operation, which says if the operation commits its group. Tracers that do not
/// know these operations write no flag: the line is then as short as one without a memory operand.
fn skip_commit_flag(cursor: &mut Cursor<'_>, version: u32) -> Result<(), Mismatch> {
    const FLAG: &str = "the commit flag of a warp-group matrix operation, 0 or 1";
    let mut ahead = *cursor;
    let flag = ahead.expect(FLAG)?;
    let mut numbers = 1;
    while ahead.at_token() && !matches!(ahead.rest(), [b'N' | b'V', ..]) {
        ahead.token();
        numbers += 1;
    }
    // Without a flag: a memory width of 0 and the immediates.
    let unflagged = 1 + if version >= IMMEDIATE_SINCE { MOST_IMMEDIATES } else { 0 };
    if numbers > unflagged || flag == b"1" {
        cursor.count(1, FLAG)?;
    }
    Ok(())
}

/// Parses the text after the addresses to the end of the line; returns the immediates.
fn parse_tail(cursor: &mut Cursor<'_>, version: u32) -> Result<[Option<i64>; MOST_IMMEDIATES], Mismatch> {
    let (with_immediates, with_values) = (version >= IMMEDIATE_SINCE, version >= VALUES_SINCE);
    let mut immediates = [None; MOST_IMMEDIATES];
    for immediate in immediates.iter_mut().filter(|_| with_immediates) {
        if !cursor.at_token() || with_values && matches!(cursor.rest(), [b'N' | b'V', ..]) {
            break;
        }
        *immediate = Some(cursor.signed("an immediate, a signed decimal number")?);
    }
    if with_values && cursor.at_token() {
        match cursor.token() {
            Some(b"NoVal") => {}
            // Register contents have no effect: the line contains the addresses.
            Some(b"Val") => return Ok(immediates),
            other => return Err(Mismatch::new("`NoVal` or `Val` behind the immediates", other.unwrap_or_default())),
        }
    }
    cursor.end("the instruction")?;
    Ok(immediates)
}

/// Parses `mem_width [mode addresses…]` for the active lanes; returns true if addresses are present.
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
            ("0010 f 1 R256 MOV", "a register, R0 to R255, or a uniform register or predicate | `R256`"),
            ("0010 f 1 SB0 MOV", "a register, R0 to R255, or a uniform register or predicate | `SB0`"),
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
        assert_eq!(mismatch(5, "0 1 0 EXIT 0 0 7 8 9"), "the end of the line after the instruction | `9`");
        assert_eq!(mismatch(5, "0 1 0 EXIT 0 0 x"), "an immediate, a signed decimal number | `x`");
        assert_eq!(mismatch(5, "0 1 0 EXIT 0 0 7 NoVal"), "an immediate, a signed decimal number | `NoVal`");
        assert_eq!(mismatch(6, "0 1 0 EXIT 0 0 7 8 Values"), "`NoVal` or `Val` behind the immediates | `Values`");
        assert_eq!(mismatch(6, "0 1 0 EXIT 0 0 7 8 NoVal 1"), "the end of the line after the instruction | `1`");
    }

    #[test]
    fn later_tracers_write_a_second_immediate_and_whether_values_follow() {
        let immediate = |version, line: &str| Parser::new(version, false).parse(line.as_bytes()).unwrap().immediate;
        assert_eq!(immediate(5, "00e0 ffffffff 1 R0 LOP3.LUT 2 R5 R255 0 3 192 "), Some(3));
        assert_eq!(immediate(6, "00a0 ffffffff 1 R0 IADD3 2 R5 R255 0 -1 0 NoVal "), Some(-1));
        assert_eq!(immediate(6, "00a0 ffffffff 1 R0 IADD3 2 R5 R255 0 -1 0 Val 1 0x7 2 0x8 0x0"), Some(-1));
        assert_eq!(immediate(6, "00a0 ffffffff 1 R0 MOV 0 0"), None);
        assert_eq!(addresses(6, "0130 00000003 1 R11 LDG.E 1 R2 4 1 0x7f00 4 0 0 NoVal "), [0x7f00, 0x7f04]);
    }

    #[test]
    fn uniform_registers_and_predicates_keep_their_place() {
        let mut parser = Parser::new(5, false);
        let code = parser.parse(b"0050 ffffffff 1 R10 IMAD 4 R10 UR4 P0 UP3 0 0 0 ").unwrap().code;
        assert_eq!(code.sources.as_slice(), [10, 255, 255, 255]);
        assert_eq!(parser.parse(b"0020 ffffffff 1 UR4 S2UR 0 0 0 0 ").unwrap().code.destinations.as_slice(), [255]);
    }

    #[test]
    fn the_register_of_an_atomics_result_stands_first_where_a_predicate_took_its_place() {
        let mut parser = Parser::new(3, false);
        let mut registers = |line: &str| {
            let code = parser.parse(line.as_bytes()).unwrap().code;
            (code.destinations.as_slice().to_vec(), code.sources.as_slice().to_vec())
        };
        let behind_the_predicate = "0040 1 0 ATOMG.E.ADD.STRONG.GPU 3 R6 R4 R3 4 1 0x100 0";
        assert_eq!(registers(behind_the_predicate), (vec![6], vec![4, 3]));
        assert_eq!(
            registers("0050 1 0 ATOMG.E.CAS.STRONG.GPU 4 R255 R4 R2 R3 4 1 0x100 0"),
            (vec![255], vec![4, 2, 3])
        );
        assert_eq!(registers("0060 1 1 R6 ATOMS.ADD 2 R4 R3 4 1 0x100 0"), (vec![6], vec![4, 3]));
        assert_eq!(registers("0070 1 0 ATOMG.E.ADD.STRONG.GPU 2 R4 R3 4 1 0x100 0"), (vec![], vec![4, 3]));
    }

    #[test]
    fn the_flag_of_a_matrix_operation_stands_before_the_memory_width() {
        for (version, line) in [
            (6, "10 1 1 R24 HGMMA.64x128x16.F32.BF16 2 R24 UR4 0 0 7 8 NoVal"),
            (6, "10 1 1 R24 QGMMA.64x256x32.F32.E4M3.E4M3 2 R24 UR4 1 0 7 8 Val 1 0x0 1 0x0 1 0x4000"),
            (6, "10 1 1 R24 IGMMA.64x8x32.S8.S8 1 R24 1 0 7 NoVal"),
            (6, "10 1 1 R24 BGMMA.64x8x256.AND.POPC 1 R24 0 7 8 NoVal"),
            (5, "10 1 1 R24 HGMMA.64x128x16.F32 2 R24 UR4 1 0 7"),
            (5, "10 1 1 R24 HGMMA.64x128x16.F32 2 R24 UR4 0 7 8"),
        ] {
            let mut parser = Parser::new(version, false);
            let instruction = parser.parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error:?}"));
            assert_eq!((instruction.immediate, instruction.addresses), (Some(7), None), "{line}");
        }
        assert_eq!(
            mismatch(6, "10 1 1 R24 HGMMA.64x8x16.F32 1 R24 2 0 7 8 NoVal"),
            "the commit flag of a warp-group matrix operation, 0 or 1 (0 to 1) | `2`"
        );
        assert!(mismatch(6, "10 1 1 R24 HMMA.16816.F32 1 R24 0 0 7 8 NoVal").contains("`NoVal` or `Val`"), "no flag");
    }

    #[test]
    fn bulk_copies_of_later_tracers_say_their_bytes() {
        let mut parser = Parser::new(6, false);
        let list = "10 1 0 UTMALDG.2D 2 UR8 UR4 128 0x400 1 0x3 256 64 3 2 0x7f00 0x8f00 5 0 NoVal";
        let instruction = parser.parse(list.as_bytes()).unwrap();
        assert_eq!((instruction.bulk.unwrap().bytes, instruction.immediate), (256, Some(5)));
        let older = parser.parse(b"20 1 0 UTMALDG.2D 2 UR8 UR4 0 5 NoVal").unwrap();
        assert_eq!((older.bulk, older.immediate), (None, Some(5)), "a tracer that does not know bulk copies");
    }
}
