//! Traces of Accel-Sim 2 in which each warp is compressed (`.tracez`), written here from the text form.

use super::kit::{block, folder, header, notes, open, streams};
use std::fmt::Write as _;
use tempfile::TempDir;

/// A thread block: its name, its rank in the cluster, and the lines of each warp.
pub(crate) type Block = (&'static str, u32, Vec<Vec<String>>);

/// Writes `blocks` behind the header `text`, with sub-chunks of `subchunk` lines and the given dictionary.
pub(crate) fn tracez(text: &str, blocks: &[Block], subchunk: usize, dictionary: &[u8]) -> Vec<u8> {
    let mut file = [text.as_bytes(), &[0]].concat();
    put(&mut file, dictionary.len());
    put(&mut file, subchunk);
    file.extend(dictionary);
    let mut packer = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    let mut index = Vec::new();
    put(&mut index, blocks.len());
    for (name, rank, warps) in blocks {
        let place = name.split(',').map(|number| number.parse::<usize>().unwrap());
        place.chain([0; 6]).for_each(|number| put(&mut index, number));
        put(&mut index, *rank as usize);
        put(&mut index, warps.len());
        for lines in warps {
            let chunks: Vec<&[String]> = lines.chunks(subchunk).collect();
            for sizes in [&mut index, &mut file] {
                put(sizes, lines.len());
                put(sizes, chunks.len());
            }
            index.extend((file.len() as u64 - 8).to_le_bytes());
            for chunk in chunks {
                put(&mut index, chunk.len());
                let packed = packer.compress(chunk.join("\n").as_bytes()).unwrap();
                put(&mut file, packed.len());
                file.extend(packed);
            }
        }
    }
    let place = file.len() as u64;
    [file, index, place.to_le_bytes().to_vec()].concat()
}

fn put(into: &mut Vec<u8>, number: usize) {
    into.extend((number as u32).to_le_bytes());
}

/// Two blocks of two warps: loads, stores and a loop of arithmetic; the last warp is empty.
pub(crate) fn blocks() -> Vec<Block> {
    let warp = |address: u64| -> Vec<String> {
        let add = "0020 ffffffff 1 R3 FADD 2 R2 R3 0 0 0 NoVal".to_owned();
        let load = format!("0010 ffffffff 1 R2 LDG.E 1 R4 4 1 0x{address:x} 4 0 0 NoVal");
        let store = format!("0030 ffffffff 0 STG.E 2 R4 R3 4 1 0x{:x} 4 0 0 NoVal", address + 0x10000);
        [vec![load], vec![add; 5], vec![store, "0040 ffffffff 0 EXIT 0 0 0 0 NoVal".to_owned()]].concat()
    };
    let base = 0x7f60_0000_0000;
    vec![("1,0,0", 1, vec![warp(base + 0x200), Vec::new()]), ("0,0,0", 0, vec![warp(base), warp(base + 0x80)])]
}

/// The text form of `blocks`.
fn text(blocks: &[Block]) -> String {
    blocks.iter().fold(header(6, "2,1,1", 64), |mut text, (name, _, warps)| {
        let lines: Vec<Vec<&str>> = warps.iter().map(|warp| warp.iter().map(String::as_str).collect()).collect();
        let warps: Vec<&[&str]> = lines.iter().map(Vec::as_slice).collect();
        write!(text, "{}", block(name, &warps)).unwrap();
        text
    })
}

/// The file with the given dictionary, and a trace of it.
fn file(dictionary: &[u8]) -> (Vec<u8>, TempDir) {
    let bytes = tracez(&header(6, "2,1,1", 64), &blocks(), 3, dictionary);
    let trace = folder(&[("kernel-1.tracez", &bytes)]);
    (bytes, trace)
}

fn refusal(bytes: &[u8]) -> String {
    let message = open(folder(&[("kernel-1.tracez", bytes)]).path()).err().expect("the trace is bad").to_string();
    message.split_once("kernel-1.tracez").expect("the message names the file").1.to_owned()
}

#[test]
fn warps_of_any_sub_chunks_are_those_of_the_text() {
    let plain = folder(&[("kernel-1.traceg", text(&blocks()).as_bytes())]);
    let expected = streams(&*open(plain.path()).unwrap());
    let raw = b"ffffffff 1 R3 FADD 2 R2 R3 0 0 0 NoVal 0040 ffffffff 0 EXIT 0 0 0 0 NoVal";
    for dictionary in [&b""[..], raw] {
        for subchunk in [1, 3, 2048] {
            let bytes = tracez(&header(6, "2,1,1", 64), &blocks(), subchunk, dictionary);
            let trace = folder(&[("kernel-1.tracez", &bytes)]);
            assert_eq!(streams(&*open(trace.path()).unwrap()), expected, "{subchunk} lines a sub-chunk");
        }
    }
}

#[test]
fn a_file_alone_is_a_program_whatever_its_name_says() {
    let (bytes, trace) = file(b"");
    let program = open(&trace.path().join("kernel-1.tracez")).unwrap();
    assert_eq!((program.kernels()[0].name.as_str(), program.kernels()[0].ctas), ("sample", 2));
    let other = folder(&[("kernel-1.traceg", &bytes)]);
    assert_eq!(streams(&*open(other.path()).unwrap()), streams(&*program));
}

#[test]
fn absent_blocks_are_told_like_those_of_the_text() {
    let bytes = tracez(&header(6, "3,1,1", 64), &blocks(), 3, b"");
    let trace = folder(&[("kernel-1.tracez", &bytes)]);
    assert!(notes(trace.path()).iter().any(|note| note.starts_with("1 of the grid's 3 thread blocks")));
}

#[test]
fn a_bad_line_is_refused_with_its_place() {
    let mut bad = blocks();
    bad[1].2[1][4] = "0020 ffffffff 1 R3 FADD 2 R2 X3 0 0 0 NoVal".to_owned();
    let message = refusal(&tracez(&header(6, "2,1,1", 64), &bad, 3, b""));
    let expected = ":5: expected a register, R0 to R255, or a uniform register or predicate, found `X3` in instruction 5 \
                    of warp 1 of thread block 0,0,0";
    assert_eq!(message, expected);
}

#[test]
fn a_damaged_file_is_refused_with_the_place_of_the_damage() {
    let (bytes, _trace) = file(b"");
    let end = bytes.len();
    let index = u64::from_le_bytes(bytes[end - 8..].try_into().unwrap()) as usize;
    let begin = header(6, "2,1,1", 64).len() + 1;
    let changed = |at: usize, number: u32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    let warps = index + 4 + 40;
    for (bytes, expected) in [
        (bytes[..begin + 6].to_vec(), "4 bytes are missing".to_owned()),
        (bytes[..end - 1].to_vec(), "the index is at byte ".to_owned()),
        (changed(begin, u32::MAX), "a dictionary of 4294967295 bytes, more than ".to_owned()),
        (changed(begin, 1 << 20), "1048576 bytes are missing".to_owned()),
        (changed(begin + 8, 9), "warp 0 of thread block 1,0,0 has other sizes than in the index".to_owned()),
        (changed(begin + 16, u32::MAX), "a sub-chunk of 4294967295 bytes reaches into the index".to_owned()),
        (changed(begin + 20, 0), "no zstd frame that states its unpacked size".to_owned()),
        (changed(index, 3), "the index ends early".to_owned()),
        (changed(index, 1), "bytes behind the index".to_owned()),
        (changed(index + 4, 2), "thread block 2,0,0 is outside the grid of 2,1,1".to_owned()),
        (changed(index + 4, 0), "thread block 0,0,0 stands in the index again".to_owned()),
        (changed(warps, 3), "thread block 1,0,0 has 3 warps".to_owned()),
        (changed(warps + 4 + 8, u32::MAX), "8 bytes".to_owned()),
        (
            changed(warps + 4 + 16, 2),
            "a sub-chunk of warp 0 of thread block 1,0,0 has 3 instructions, the index says 2".to_owned(),
        ),
    ] {
        let message = refusal(&bytes);
        let near = message.contains(&expected) || expected == "8 bytes" && message.contains("bytes are missing");
        assert!(message.starts_with(": damaged at byte ") && near, "{expected}: {message}");
    }
    assert!(refusal(&tracez("-kernel name = k\n", &blocks(), 3, b"")).contains("ends with a line that starts with #"));
}
