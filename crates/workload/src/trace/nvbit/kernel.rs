//! The body of a kernel trace: thread blocks, their warps, their instructions.

use super::census::{Census, OperationCount};
use super::cursor::{Cursor, decimal};
use super::header::{Header, triple};
use super::instruction::Parser;
use super::spill::Spill;
use super::tracez::{self, PerWarpFile};
use super::warp::Translator;
use crate::encode::encode;
use crate::trace::container::LineReader;
use crate::trace::error::{Mismatch, TraceError};
use crate::trace::foreign;
use std::path::Path;
use tombolo_types::LineSize;
use tombolo_types::stream::CtaStream;

/// Maximum number of operations, and maximum number of line transactions, in a thread block: a decoded block then stays
/// below a gigabyte. Real blocks have up to some millions.
const LARGEST_BLOCK: usize = 1 << 25;
/// Maximum number of thread blocks absent from a trace: each still becomes a CTA in the program.
const MOST_ABSENT: u64 = 1 << 24;
/// Token count in a raw trace's shortest line: a block, a warp, program counter, mask, counts and an opcode.
const RAW_TOKENS: usize = 9;

/// Spill location for an encoded CTA.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpillRange {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A completely read kernel trace.
pub(super) struct Kernel {
    pub(super) header: Header,
    pub(super) census: Census,
    /// Counts by operation, with the operation's name and the effect that is not simulated.
    pub(super) operations: Vec<(Box<str>, Option<&'static str>, OperationCount)>,
    /// Locations of the CTAs in the file, in CTA order.
    places: Vec<SpillRange>,
    /// Indices of the CTAs in the file; empty if the whole grid is present.
    present: Vec<u32>,
    /// Names of the first few absent CTAs; empty if all are present.
    pub(super) missing: String,
    /// Number of warps absent from CTAs in the file.
    pub(super) absent_warps: u64,
}

impl Kernel {
    /// Thread blocks in the grid but absent from the file. Absent blocks ran without any traced instruction.
    pub(super) fn absent(&self) -> u64 {
        u64::from(self.header.blocks()) - self.places.len() as u64
    }

    /// Location of CTA `cta` of the grid, if present in the file.
    pub(super) fn place(&self, cta: u32) -> Option<SpillRange> {
        let index = match &self.present[..] {
            [] => Some(cta as usize),
            present => present.binary_search(&cta).ok(),
        };
        index.map(|index| self.places[index])
    }
}

/// Reads the kernel trace at `path`; `stream_slot` numbers its CUDA stream within the program. Encoded CTAs are written
/// to `spill`.
pub(super) fn read(
    path: &Path,
    line_size: LineSize,
    stream_slot: impl FnOnce(&Header) -> u64,
    spill: &mut Spill,
) -> Result<Kernel, TraceError> {
    if let Some(mut file) = PerWarpFile::open(path)? {
        let header = Header::read(&mut file.header())?;
        let mut body = BodyParser::new(header, stream_slot, line_size);
        tracez::read(&mut file, &mut body, spill)?;
        return body.finish(path);
    }
    let mut lines = LineReader::open(path)?;
    let header = Header::read(&mut lines)?;
    let mut body = BodyParser::new(header, stream_slot, line_size);
    while at_block(&mut lines, body.found.is_empty())? {
        body.block(&mut lines, spill)?;
    }
    body.finish(path)
}

/// Skips to the next thread block, which may be the `first`; returns true if another block exists.
fn at_block(lines: &mut LineReader, first: bool) -> Result<bool, TraceError> {
    while let Some(line) = lines.next()? {
        match line {
            b"#BEGIN_TB" => return Ok(true),
            b"#END_TB" => {
                let mismatch = Mismatch::new("#BEGIN_TB before", line);
                return Err(lines.error(mismatch));
            }
            [] | [b'#', ..] => {}
            _ if first && is_raw(line) => return Err(foreign::RAW.at(lines.path())),
            _ => {
                let mismatch = Mismatch::new("#BEGIN_TB or the end of the file", line);
                return Err(lines.error(mismatch));
            }
        }
    }
    Ok(false)
}

/// True if `line` is an instruction of a raw trace: `x y z warp` precedes the fields of a sorted trace.
fn is_raw(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    let prefixed = (0..4).all(|_| cursor.token().is_some_and(|token| decimal(token).is_some()));
    prefixed && (4..RAW_TOKENS).all(|_| cursor.token().is_some())
}

/// A thread block present in the file.
struct ParsedBlock {
    cta: u32,
    /// Line number at which the block is named.
    line: u64,
    place: SpillRange,
}

/// State while reading the trace body.
pub(super) struct BodyParser {
    pub(super) header: Header,
    /// Warps per thread block.
    warps: u32,
    parser: Parser,
    translator: Translator,
    stream: CtaStream,
    encoded: Vec<u8>,
    found: Vec<ParsedBlock>,
    absent_warps: u64,
}

/// A warp in the block being read.
pub(super) struct WarpSection {
    warp: u32,
    /// Number of announced instruction lines, and (`read`) number of lines read so far.
    announced: Option<u64>,
    read: u64,
    /// Index of the warp's first operation.
    start: u32,
}

impl BodyParser {
    fn new(header: Header, stream_slot: impl FnOnce(&Header) -> u64, line_size: LineSize) -> BodyParser {
        let translator = Translator::new(&header, stream_slot(&header), line_size);
        BodyParser {
            warps: header.warps(),
            parser: Parser::new(header.version, header.lineinfo),
            header,
            translator,
            stream: CtaStream::default(),
            encoded: Vec::new(),
            found: Vec::new(),
            absent_warps: 0,
        }
    }

    /// Reads a thread block, starting after its `#BEGIN_TB`.
    fn block(&mut self, lines: &mut LineReader, spill: &mut Spill) -> Result<(), TraceError> {
        let (cta, line) = self.name(lines)?;
        let mut sections = self.begin_block();
        loop {
            let Some(line) = lines.next()? else { return Err(lines.error(end_of_file("#END_TB"))) };
            if line.is_empty() {
                continue;
            }
            match self.line(line, cta, &mut sections) {
                Ok(true) => {}
                Ok(false) => break,
                Err(mismatch) => return Err(lines.error(mismatch)),
            }
        }
        self.end_block(cta, line, sections, spill)
    }

    /// Begins a thread block, outside of any cluster until told otherwise.
    pub(super) fn begin_block(&mut self) -> Vec<WarpSection> {
        self.stream.clear();
        self.translator.begin_block(0);
        Vec::with_capacity(self.warps as usize)
    }

    /// Notes that the current block is CTA `rank` of a cluster.
    pub(super) fn in_cluster(&mut self, rank: u32) {
        self.translator.begin_block(rank);
    }

    /// Stores the stream of thread block `cta`, which `line` named.
    pub(super) fn end_block(
        &mut self,
        cta: u32,
        line: u64,
        mut sections: Vec<WarpSection>,
        spill: &mut Spill,
    ) -> Result<(), TraceError> {
        self.add_absent_warps(&mut sections);
        self.order_warps(&mut sections);
        self.encoded.clear();
        encode(&self.stream, &mut self.encoded);
        let offset = spill.push(&self.encoded).map_err(TraceError::io(&std::env::temp_dir(), "store decoded CTAs"))?;
        self.found.push(ParsedBlock { cta, line, place: SpillRange { offset, length: self.encoded.len() as u64 } });
        Ok(())
    }

    /// Reads `thread block = x,y,z`; returns the block's index and the line number.
    fn name(&self, lines: &mut LineReader) -> Result<(u32, u64), TraceError> {
        let expected = || {
            let [x, y, z] = self.header.grid;
            format!("`thread block = x,y,z` inside the grid of {x},{y},{z}")
        };
        loop {
            let Some(line) = lines.next()? else { return Err(lines.error(end_of_file(expected()))) };
            if line.is_empty() {
                continue;
            }
            let place = value(line, b"thread block").and_then(triple);
            let Some(cta) = place.and_then(|place| self.header.block_index(place)) else {
                let mismatch = Mismatch::new(expected(), line);
                return Err(lines.error(mismatch));
            };
            return Ok((cta, lines.line()));
        }
    }

    /// Processes a line in a block; returns true if the block continues.
    #[inline]
    fn line(&mut self, line: &[u8], cta: u32, sections: &mut Vec<WarpSection>) -> Result<bool, Mismatch> {
        match sections.last_mut() {
            Some(WarpSection { announced: Some(announced), read, .. }) if *read < *announced => {
                *read += 1;
                if matches!(line[0], b'#' | b'w' | b'i' | b't') {
                    return Err(Mismatch::new(format!("instruction {read} of the {announced} announced"), line));
                }
                self.instruction(line)?;
            }
            Some(WarpSection { announced: announced @ None, .. }) => {
                let count = value(line, b"insts").and_then(decimal);
                *announced = Some(count.ok_or_else(|| Mismatch::new("`insts = <number of instructions>`", line))?);
            }
            _ if line == b"#END_TB" => return Ok(false),
            // Coordinates of a thread block launched in a cluster: only the rank has an effect.
            None if line.starts_with(b"cluster ") => {
                if let Some(rank) = value(line, b"cluster rank") {
                    let rank = decimal(rank).and_then(|rank| u32::try_from(rank).ok());
                    self.in_cluster(rank.ok_or_else(|| Mismatch::new("`cluster rank = <number>`", line))?);
                }
            }
            _ => {
                let number = value(line, b"warp").and_then(decimal);
                let Some(warp) = number.and_then(|warp| self.warp(warp)) else {
                    let expected = format!("`warp = 0` to `warp = {}`, or #END_TB", self.warps - 1);
                    return Err(Mismatch::new(expected, line));
                };
                if sections.iter().any(|section| section.warp == warp) {
                    return Err(Mismatch::new(format!("each warp once, but warp {warp} again"), line));
                }
                self.begin_warp(warp, None, cta, sections);
            }
        }
        Ok(true)
    }

    /// `number` as the number of a warp in a block, if there is such a warp.
    pub(super) fn warp(&self, number: u64) -> Option<u32> {
        (number < u64::from(self.warps)).then_some(number as u32)
    }

    /// Begins warp `warp` of block `cta`, which `sections` does not hold yet.
    pub(super) fn begin_warp(&mut self, warp: u32, announced: Option<u64>, cta: u32, sections: &mut Vec<WarpSection>) {
        self.translator.begin(u64::from(cta) * u64::from(self.warps) + u64::from(warp), &self.stream);
        let start = self.stream.ops.len() as u32;
        sections.push(WarpSection { warp, announced, read: 0, start });
    }

    /// Adds an instruction line to the current warp.
    #[inline]
    pub(super) fn instruction(&mut self, line: &[u8]) -> Result<(), Mismatch> {
        let instruction = self.parser.parse(line)?;
        self.translator.push(&instruction, &mut self.stream)?;
        if self.stream.ops.len() > LARGEST_BLOCK || self.stream.accesses.len() > LARGEST_BLOCK {
            let expected = format!("at most {LARGEST_BLOCK} operations or line transactions in a thread block");
            return Err(Mismatch::new(expected, line));
        }
        Ok(())
    }

    /// Adds the warps that the block does not mention: absent warps ran without any traced instruction.
    fn add_absent_warps(&mut self, sections: &mut Vec<WarpSection>) {
        if sections.len() == self.warps as usize {
            return;
        }
        let start = self.stream.ops.len() as u32;
        let mut there = vec![false; self.warps as usize];
        sections.iter().for_each(|section| there[section.warp as usize] = true);
        for warp in (0..self.warps).filter(|warp| !there[*warp as usize]) {
            sections.push(WarpSection { warp, announced: Some(0), read: 0, start });
            self.absent_warps += 1;
        }
    }

    /// Fills the stream's warps, with operations in warp order regardless of the order in the file.
    fn order_warps(&mut self, sections: &mut [WarpSection]) {
        let ends: Vec<u32> = sections.iter().skip(1).map(|section| section.start).collect();
        let last = self.stream.ops.len() as u32;
        let mut ranges: Vec<(u32, std::ops::Range<u32>)> = sections
            .iter()
            .zip(ends.into_iter().chain([last]))
            .map(|(section, end)| (section.warp, section.start..end))
            .collect();
        if !ranges.is_sorted_by_key(|(warp, _)| *warp) {
            ranges.sort_unstable_by_key(|(warp, _)| *warp);
            let mut ops = Vec::with_capacity(self.stream.ops.len());
            for (_, range) in &mut ranges {
                let start = ops.len() as u32;
                ops.extend_from_slice(&self.stream.ops[range.start as usize..range.end as usize]);
                *range = start..ops.len() as u32;
            }
            self.stream.ops = ops;
        }
        self.stream.warps.extend(ranges.into_iter().map(|(_, range)| range));
    }

    /// Checks for repeated thread blocks and for missing blocks beyond the limit.
    fn finish(mut self, path: &Path) -> Result<Kernel, TraceError> {
        self.found.sort_by_key(|found| found.cta);
        if let Some(pair) = self.found.windows(2).find(|pair| pair[0].cta == pair[1].cta) {
            let name = self.header.block_name(pair[0].cta);
            let expected = format!("each thread block once; line {} began {name}", pair[0].line);
            let found = format!("thread block {name} again");
            return Err(Mismatch { expected, found }.at(path, pair[1].line));
        }
        let (found, expected) = (self.found.len() as u64, u64::from(self.header.blocks()));
        let missing = self.missing();
        if found == 0 || expected - found > MOST_ABSENT {
            let path = path.to_owned();
            return Err(TraceError::MissingBlocks { path, found, expected, most: MOST_ABSENT, missing });
        }
        let places = self.found.iter().map(|found| found.place).collect();
        let partial = found < expected;
        let present = self.found.iter().filter(|_| partial).map(|found| found.cta).collect();
        let BodyParser { header, translator, parser, absent_warps, .. } = self;
        let mut census = translator.census;
        let names = parser.operations.names;
        census.operations.resize(names.len(), OperationCount::default());
        let operations = names.into_iter().zip(std::mem::take(&mut census.operations));
        let operations = operations.map(|((name, limit), count)| (name, limit, count)).collect();
        Ok(Kernel { header, census, operations, places, present, missing, absent_warps })
    }

    /// Names of the first few absent thread blocks.
    fn missing(&self) -> String {
        const NAMED: usize = 4;
        let mut present = self.found.iter().map(|found| found.cta).peekable();
        let absent = (0..self.header.blocks()).filter(|cta| present.next_if_eq(cta).is_none());
        let mut names: Vec<String> = absent.take(NAMED + 1).map(|cta| self.header.block_name(cta)).collect();
        if names.len() > NAMED {
            "…".clone_into(&mut names[NAMED]);
        }
        names.join(" ")
    }
}

/// The text after `key =`.
fn value<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(line.strip_prefix(key)?);
    (cursor.token()? == b"=").then_some(cursor.rest().trim_ascii())
}

fn end_of_file(expected: impl Into<String>) -> Mismatch {
    Mismatch { expected: expected.into(), found: "the end of the file".to_owned() }
}
