//! Traces that lack parts, or contain impossible values: they run, and results have a note about the defect.

use super::kit::{WARP, block, folder, header, notes, open, open_text, streams};
use std::path::Path;
use tombolo_types::stream::{Command, CtaStream};
use tombolo_workload::trace;

const ADD: &[&str] = &["0 ffffffff 1 R1 FADD 0 0"];

/// The kernel's registers and scratchpad bytes, and the notes, for a trace with a changed header.
fn changed(threads: u32, from: &str, to: &str) -> (u32, u32, Vec<String>) {
    let warps = vec![ADD; threads.div_ceil(WARP) as usize];
    let good = header(4, "1,1,1", threads) + &block("0,0,0", &warps);
    let text = good.replacen(from, to, 1);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes())]);
    let program = open(trace.path()).unwrap_or_else(|error| panic!("{to}: {error}"));
    assert_eq!(streams(&*program), streams(&*open_text(&good).unwrap()), "{to}");
    let kernel = &program.kernels()[0];
    (kernel.registers, kernel.shared_bytes, notes(trace.path()))
}

fn has(notes: &[String], expected: &str) -> bool {
    notes.iter().any(|note| note.starts_with(expected))
}

#[test]
fn absent_thread_blocks_run_without_instructions_and_are_counted() {
    let text = header(4, "3,3,1", 64) + &block("1,0,0", &[ADD, ADD]) + &block("2,2,0", &[ADD, &[]]);
    let whole = block("1,0,0", &[ADD, ADD]);
    let whole = header(4, "2,1,1", 64) + &block("0,0,0", &[ADD, ADD]) + &whole;
    let trace = folder(&[("kernel-1.traceg", text.as_bytes()), ("kernel-2.traceg", whole.as_bytes())]);
    let file = trace.path().join("same.tombolo");
    trace::import(trace.path(), &file).unwrap();
    for path in [trace.path(), &file] {
        let program = open(path).unwrap();
        assert_eq!((program.kernels()[0].ctas, program.kernels()[1].ctas), (9, 2));
        let mut stream = CtaStream::default();
        for cta in 0..9 {
            program.cta(0, cta, &mut stream).unwrap();
            let expected = [0, 2, 0, 0, 0, 0, 0, 0, 1][cta as usize];
            assert_eq!((stream.warps.len(), stream.instructions()), (2, expected), "CTA {cta}");
        }
        assert!(program.cta(0, 9, &mut stream).is_err());
        let expected = "7 of the grid's 9 thread blocks are absent from kernel-1.traceg: they run without instructions; \
                        the post-processing leaves out empty ones, and a file that was cut lacks its last; missing are 0,0,0 \
                        2,0,0 0,1,0 1,1,0 …";
        assert!(has(&notes(path), expected), "{:?}", notes(path));
    }
}

#[test]
fn absent_thread_blocks_of_several_kernels_are_one_note() {
    let text = header(4, "4,1,1", 32) + &block("3,0,0", &[ADD]);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes()), ("kernel-2.traceg", text.as_bytes())]);
    let notes = notes(trace.path());
    assert!(has(&notes, "6 of the grid's 8 thread blocks are absent from kernel-1.traceg and 1 more"), "{notes:?}");
}

#[test]
fn absent_warps_run_without_instructions_and_are_counted() {
    let body = "#BEGIN_TB\nthread block = 0,0,0\nwarp = 2\ninsts = 1\n0 1 0 FADD 0 0\n#END_TB\n";
    let text = header(4, "1,1,1", 96) + body;
    let trace = folder(&[("kernel-1.traceg", text.as_bytes())]);
    assert_eq!(streams(&*open(trace.path()).unwrap())[0].warps, [0..0, 0..0, 0..1]);
    assert!(has(&notes(trace.path()), "2 warps of thread blocks are absent from kernel-1.traceg"));
    let whole = header(4, "1,1,1", 64) + &block("0,0,0", &[ADD, &[]]);
    assert!(!has(&notes(folder(&[("kernel-1.traceg", whole.as_bytes())]).path()), "1 warps"));
}

#[test]
fn registers_that_cannot_be_are_unknown() {
    for (threads, nregs, registers) in [
        (32, "16", 16),
        (32, "255", 255),
        (32, "300", 0),
        (32, "-1", 0),
        (32, "many", 0),
        (32, "", 0),
        (1024, "65", 0),
        (1024, "64", 64),
    ] {
        let (found, _, notes) = changed(threads, "-nregs = 16", &format!("-nregs = {nregs}"));
        assert_eq!(found, registers, "{nregs}");
        let noted = has(&notes, &format!("kernel-1.traceg: -nregs = `{nregs}` is "));
        assert_eq!(noted, registers == 0, "{nregs}: {notes:?}");
    }
}

#[test]
fn other_fields_that_decide_little_are_unknown_where_they_cannot_be() {
    for (from, to) in [
        ("-shmem = 64", "-shmem = -1"),
        ("-shmem = 64", "-shmem = 4294967295"),
        ("-shmem base_addr = 0x00007f1300000000", "-shmem base_addr = (nil)"),
        ("-local mem base_addr = 0x00007f1200000000", "-local mem base_addr = ?"),
    ] {
        let (_, shared, notes) = changed(32, from, to);
        let (key, value) = to.split_once(" = ").unwrap();
        assert!(has(&notes, &format!("kernel-1.traceg: {key} = `{value}` is no ")), "{to}: {notes:?}");
        assert_eq!(shared, if key == "-shmem" { 0 } else { 64 });
    }
}

#[test]
fn a_doubt_of_several_kernels_is_one_note() {
    let text = header(4, "1,1,1", 32).replace("-nregs = 16", "-nregs = 999") + &block("0,0,0", &[ADD]);
    let trace = folder(&[("kernel-1.traceg", text.as_bytes()), ("kernel-2.traceg", text.as_bytes())]);
    let notes = notes(trace.path());
    assert!(has(
        &notes,
        "kernel-1.traceg and 1 more: -nregs = `999` is no number from 0 to 256, and is taken as unknown"
    ));
    assert_eq!(notes.iter().filter(|note| note.contains("nregs")).count(), 1, "{notes:?}");
}

#[test]
fn a_stream_of_any_text_is_a_name() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/synthetic/negative-stream");
    let program = open(&shipped).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(program.commands(), [Command::launch(0, 0)]);
    assert!(has(
        &notes(&shipped),
        "kernel-1.traceg: -cuda stream id = `-1` is no handle, and is taken as the stream's name"
    ));
    let with = |stream: &str| header(4, "1,1,1", 32).replace("id = 3", stream) + &block("0,0,0", &[ADD]);
    let texts = ["id = 9", "id = -1", "id = 0x55aa", "id = -1", "id = 9"].map(with);
    let names = ["kernel-1.traceg", "kernel-2.traceg", "kernel-3.traceg", "kernel-4.traceg", "kernel-5.traceg"];
    let files: Vec<(&str, &[u8])> = names.iter().zip(&texts).map(|(name, text)| (*name, text.as_bytes())).collect();
    let commands = open(folder(&files).path()).unwrap().commands().to_vec();
    let expected = [0, 1, 2, 1, 0].iter().enumerate();
    let expected: Vec<_> = expected.map(|(kernel, stream)| Command::launch(kernel as u32, *stream)).collect();
    assert_eq!(commands, expected, "one number each, in order of appearance");
}

#[test]
fn quotes_in_a_header_are_no_part_of_its_values() {
    for (from, to) in [
        ("-nregs = 16", "-nregs = \"16\""),
        ("-nregs = 16", "\"-nregs = '16'\""),
        ("-grid dim = (1,1,1)", "-grid dim = \"'(1,1,1)'\""),
        ("-block dim = (32,1,1)", "-\"block dim\" = \"\\\"(32,1,1)\\\"\""),
        ("version = 4", "version = \"\"4\"\""),
    ] {
        let (registers, shared, notes) = changed(32, from, to);
        assert_eq!((registers, shared, notes.len()), (16, 64, 2), "{to}: {notes:?}");
    }
    for (name, label) in [("\"'sample'\"", "sample"), ("f<\"a 'b'\">()", "f<\"a 'b'\">()")] {
        let text = header(4, "1,1,1", 32).replace("sample", name) + &block("0,0,0", &[ADD]);
        assert_eq!(open_text(&text).unwrap().kernels()[0].name, label);
    }
}

#[test]
fn a_name_that_is_not_utf8_is_shown_as_far_as_it_is() {
    let text = header(4, "1,1,1", 32) + &block("0,0,0", &[ADD]);
    let (before, behind) = text.split_once("sample").unwrap();
    let bytes = [before.as_bytes(), b"f\xffg", behind.as_bytes()].concat();
    let trace = folder(&[("kernel-1.traceg", &bytes)]);
    assert_eq!(open(trace.path()).unwrap().kernels()[0].name, "f\u{fffd}g");
    assert!(has(&notes(trace.path()), "kernel-1.traceg: -kernel name = "));
}
