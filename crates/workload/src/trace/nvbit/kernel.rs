//! The body of a kernel trace: thread blocks, their warps, their instructions.

use super::cursor::{Cursor, decimal};
use super::header::{Header, triple};
use super::instruction::Parser;
use super::spill::Spill;
use super::warp::{Census, Translator};
use crate::encode::encode;
use crate::trace::container::Lines;
use crate::trace::error::{Mismatch, TraceError};
use crate::trace::foreign;
use std::path::Path;
use tombolo_types::LineSize;
use tombolo_types::stream::CtaStream;

/// Most operations, and most line transactions, of a thread block: what a decoded block may take is then
/// under a gigabyte. Real blocks have up to some millions.
const LARGEST_BLOCK: usize = 1 << 25;
/// Most thread blocks that a trace may lack: each is a CTA of the program all the same.
const MOST_ABSENT: u64 = 1 << 24;
/// Tokens of the shortest line of a raw trace: a block, a warp, place, mask, counts and an opcode.
const RAW_TOKENS: usize = 9;

/// Where an encoded CTA lies in the spill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A kernel trace that has been read.
pub(super) struct Kernel {
    pub(super) header: Header,
    pub(super) census: Census,
    /// Of the CTAs in the file, in order.
    places: Vec<Place>,
    /// Which CTAs those are; empty where all of the grid are there.
    present: Vec<u32>,
    /// The first few CTAs that are not there, by name; empty where all are.
    pub(super) missing: String,
    /// Warps of CTAs in the file that are not there.
    pub(super) absent_warps: u64,
}

impl Kernel {
    /// Thread blocks of the grid that are not in the file. They ran without an instruction that was traced.
    pub(super) fn absent(&self) -> u64 {
        u64::from(self.header.blocks()) - self.places.len() as u64
    }

    /// Where CTA `cta` of the grid lies, if it was in the file.
    pub(super) fn place(&self, cta: u32) -> Option<Place> {
        let index = match &self.present[..] {
            [] => Some(cta as usize),
            present => present.binary_search(&cta).ok(),
        };
        index.map(|index| self.places[index])
    }
}

/// Reads the kernel trace at `path`; `stream_slot` numbers its CUDA stream within the program. Encoded CTAs
/// go to `spill`.
pub(super) fn read(
    path: &Path,
    line_size: LineSize,
    stream_slot: impl FnOnce(&Header) -> u64,
    spill: &mut Spill,
) -> Result<Kernel, TraceError> {
    let mut lines = Lines::open(path)?;
    let header = Header::read(&mut lines)?;
    let translator = Translator::new(&header, stream_slot(&header), line_size);
    let mut body = Body {
        warps: header.warps(),
        parser: Parser::new(header.version, header.lineinfo),
        header,
        translator,
        stream: CtaStream::default(),
        encoded: Vec::new(),
        found: Vec::new(),
        absent_warps: 0,
    };
    while at_block(&mut lines, body.found.is_empty())? {
        body.block(&mut lines, spill)?;
    }
    body.finish(&lines)
}

/// Skips to the next thread block, which may be the `first`; whether there is one.
fn at_block(lines: &mut Lines, first: bool) -> Result<bool, TraceError> {
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

/// Whether `line` is an instruction of a raw trace: behind `x y z warp` stands what a sorted trace has alone.
fn is_raw(line: &[u8]) -> bool {
    let mut cursor = Cursor::new(line);
    let prefixed = (0..4).all(|_| cursor.token().is_some_and(|token| decimal(token).is_some()));
    prefixed && (4..RAW_TOKENS).all(|_| cursor.token().is_some())
}

/// A thread block in the file.
struct Found {
    cta: u32,
    /// Line that names it.
    line: u64,
    place: Place,
}

/// The body as far as it has been read.
struct Body {
    header: Header,
    /// Warps of a thread block.
    warps: u32,
    parser: Parser,
    translator: Translator,
    stream: CtaStream,
    encoded: Vec<u8>,
    found: Vec<Found>,
    absent_warps: u64,
}

/// A warp of the block being read.
struct Section {
    warp: u32,
    /// Instruction lines announced, and read so far.
    announced: Option<u64>,
    read: u64,
    /// Where its operations begin.
    start: u32,
}

impl Body {
    /// Reads one thread block, behind its `#BEGIN_TB`.
    fn block(&mut self, lines: &mut Lines, spill: &mut Spill) -> Result<(), TraceError> {
        self.stream.clear();
        let (cta, line) = self.name(lines)?;
        let mut sections: Vec<Section> = Vec::with_capacity(self.warps as usize);
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
        self.order_warps(&mut sections);
        self.encoded.clear();
        encode(&self.stream, &mut self.encoded);
        let offset = spill.push(&self.encoded).map_err(TraceError::io(&std::env::temp_dir(), "store decoded CTAs"))?;
        self.found.push(Found { cta, line, place: Place { offset, length: self.encoded.len() as u64 } });
        Ok(())
    }

    /// Reads `thread block = x,y,z`; returns its index and its line.
    fn name(&self, lines: &mut Lines) -> Result<(u32, u64), TraceError> {
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

    /// Takes one line of a block; whether the block goes on.
    #[inline]
    fn line(&mut self, line: &[u8], cta: u32, sections: &mut Vec<Section>) -> Result<bool, Mismatch> {
        match sections.last_mut() {
            Some(Section { announced: Some(announced), read, .. }) if *read < *announced => {
                *read += 1;
                if matches!(line[0], b'#' | b'w' | b'i' | b't') {
                    return Err(Mismatch::new(format!("instruction {read} of the {announced} announced"), line));
                }
                let instruction = self.parser.parse(line)?;
                self.translator.push(&instruction, &mut self.stream)?;
                if self.stream.ops.len() > LARGEST_BLOCK || self.stream.accesses.len() > LARGEST_BLOCK {
                    let expected = format!("at most {LARGEST_BLOCK} operations or line transactions in a thread block");
                    return Err(Mismatch::new(expected, line));
                }
            }
            Some(Section { announced: announced @ None, .. }) => {
                let count = value(line, b"insts").and_then(decimal);
                *announced = Some(count.ok_or_else(|| Mismatch::new("`insts = <number of instructions>`", line))?);
            }
            _ if line == b"#END_TB" => {
                self.add_absent_warps(sections);
                return Ok(false);
            }
            // Of thread blocks that are launched in clusters: which they are.
            None if line.starts_with(b"cluster ") => {}
            _ => self.begin_warp(line, cta, sections)?,
        }
        Ok(true)
    }

    fn begin_warp(&mut self, line: &[u8], cta: u32, sections: &mut Vec<Section>) -> Result<(), Mismatch> {
        let number = value(line, b"warp").and_then(decimal);
        let Some(warp) = number.filter(|warp| *warp < u64::from(self.warps)).map(|warp| warp as u32) else {
            let expected = format!("`warp = 0` to `warp = {}`, or #END_TB", self.warps - 1);
            return Err(Mismatch::new(expected, line));
        };
        if sections.iter().any(|section| section.warp == warp) {
            return Err(Mismatch::new(format!("each warp once, but warp {warp} again"), line));
        }
        self.translator.begin(u64::from(cta) * u64::from(self.warps) + u64::from(warp), &self.stream);
        let start = self.stream.ops.len() as u32;
        sections.push(Section { warp, announced: None, read: 0, start });
        Ok(())
    }

    /// Warps of which the block says nothing ran without an instruction that was traced.
    fn add_absent_warps(&mut self, sections: &mut Vec<Section>) {
        if sections.len() == self.warps as usize {
            return;
        }
        let start = self.stream.ops.len() as u32;
        let mut there = vec![false; self.warps as usize];
        sections.iter().for_each(|section| there[section.warp as usize] = true);
        for warp in (0..self.warps).filter(|warp| !there[*warp as usize]) {
            sections.push(Section { warp, announced: Some(0), read: 0, start });
            self.absent_warps += 1;
        }
    }

    /// Fills the stream's warps, with operations in the order of warps whatever the order in the file.
    fn order_warps(&mut self, sections: &mut [Section]) {
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

    /// Checks that no thread block of the grid came twice, and that enough came.
    fn finish(mut self, lines: &Lines) -> Result<Kernel, TraceError> {
        self.found.sort_by_key(|found| found.cta);
        if let Some(pair) = self.found.windows(2).find(|pair| pair[0].cta == pair[1].cta) {
            let name = self.header.block_name(pair[0].cta);
            let expected = format!("each thread block once; line {} began {name}", pair[0].line);
            let found = format!("thread block {name} again");
            return Err(Mismatch { expected, found }.at(lines.path(), pair[1].line));
        }
        let (found, expected) = (self.found.len() as u64, u64::from(self.header.blocks()));
        let missing = self.missing();
        if found == 0 || expected - found > MOST_ABSENT {
            let path = lines.path().to_owned();
            return Err(TraceError::MissingBlocks { path, found, expected, most: MOST_ABSENT, missing });
        }
        let places = self.found.iter().map(|found| found.place).collect();
        let partial = found < expected;
        let present = self.found.iter().filter(|_| partial).map(|found| found.cta).collect();
        let Body { header, translator, absent_warps, .. } = self;
        Ok(Kernel { header, census: translator.census, places, present, missing, absent_warps })
    }

    /// The first few thread blocks that are not there.
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

/// What stands behind `key =`.
fn value<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut cursor = Cursor::new(line.strip_prefix(key)?);
    (cursor.token()? == b"=").then_some(cursor.rest().trim_ascii())
}

fn end_of_file(expected: impl Into<String>) -> Mismatch {
    Mismatch { expected: expected.into(), found: "the end of the file".to_owned() }
}
