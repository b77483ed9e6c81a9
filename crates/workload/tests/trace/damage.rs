//! Bad NVBit traces: each is refused with the line number and the expected content.

use super::kit::{block, folder, gzip, header, notes, open, open_text, refusal, xz, zstd};

fn good() -> String {
    header(5, "2,1,1", 64) + &block("0,0,0", &[INSTRUCTIONS, INSTRUCTIONS]) + &block("1,0,0", &[INSTRUCTIONS, &[]])
}

const INSTRUCTIONS: &[&str] = &["0000 ffffffff 1 R2 LDG.E 1 R4 4 1 0x1000 4 0", "0010 ffffffff 0 EXIT 0 0 0"];

#[test]
fn a_bad_header_is_refused() {
    for (from, to, expected) in [
        ("-grid dim = (2,1,1)", "-grid dim = (2,1)", "3: expected a grid (x,y,z), each side from 1 to"),
        ("-grid dim = (2,1,1)", "-grid dim = (0,1,1)", "3: expected a grid (x,y,z), each side from 1 to"),
        ("-grid dim = (2,1,1)", "-grid dim = (2147483647,65535,65535)", "3: expected a grid of fewer than 2^32"),
        ("-grid dim = (2,1,1)\n", "", "12: expected `-grid dim = …` before the body"),
        ("-block dim = (64,1,1)", "-block dim = (1024,2,1)", "4: expected a block of at most 1024 threads"),
        ("lineinfo = 0", "lineinfo = 2", "11: expected 0 or 1 (0 to 1), found `2`"),
        ("version = 5", "version = 2", "10: expected a tracer version from 3 to 6, found `2`"),
        ("version = 5", "version = 7", "10: expected a tracer version from 3 to 6, found `7`"),
        ("-kernel id = 1", "-kernel id", "2: expected `-key = value`"),
        ("-kernel id = 1", "kernel id = 1", "2: expected `-key = value`, or a line that starts with #"),
        ("#traces", "traces", "13: expected `-key = value`, or a line that starts with #"),
    ] {
        let text = good().replacen(from, to, 1);
        let message = refusal(&text);
        assert!(message.starts_with(expected), "{from} -> {to}: {message}");
    }
}

#[test]
fn a_bad_body_is_refused() {
    for (from, to, expected) in [
        ("thread block = 0,0,0", "thread block = 2,0,0", "17: expected `thread block = x,y,z` inside the grid"),
        ("thread block = 0,0,0\n", "", "18: expected `thread block = x,y,z` inside the grid of 2,1,1"),
        ("thread block = 0,0,0", "thread block = 1,0,0", "33: expected each thread block once; line 17 began 1,0,0"),
        ("warp = 0", "warp = 2", "19: expected `warp = 0` to `warp = 1`, or #END_TB, found `warp = 2`"),
        ("warp = 1", "warp = 0", "24: expected each warp once, but warp 0 again, found `warp = 0`"),
        ("insts = 2", "insts = 3", "24: expected instruction 3 of the 3 announced, found `warp = 1`"),
        ("insts = 2", "insts = 1", "22: expected `warp = 0` to `warp = 1`, or #END_TB, found `0010 ffffffff"),
        ("insts = 2", "insts = 18446744073709551616", "20: expected `insts = <number of instructions>`"),
        ("insts = 2\n", "", "20: expected `insts = <number of instructions>`, found `0000 ffffffff"),
        ("#END_TB", "", "31: expected `warp = 0` to `warp = 1`, or #END_TB, found `#BEGIN_TB`"),
        ("#BEGIN_TB", "", "17: expected #BEGIN_TB or the end of the file, found `thread block = 0,0,0`"),
        ("#BEGIN_TB", "#END_TB", "15: expected #BEGIN_TB before, found `#END_TB`"),
        ("EXIT 0 0 0", "EXIT 0 0 \u{fffd}", "22: expected an immediate, a signed decimal number"),
        ("LDG.E", "\u{fffd}", "21: expected an opcode such as LDG.E"),
    ] {
        let text = good().replacen(from, to, 1);
        let message = refusal(&text);
        assert!(message.starts_with(expected), "{from} -> {to}: {message}");
    }
}

#[test]
fn a_trace_cut_anywhere_is_refused_or_said_to_be_partial() {
    let text = good();
    let end = text.trim_end().len();
    // A prefix of `#BEGIN_TB` is a comment.
    let between = text.find("#END_TB").unwrap() + 7..text.rfind("#BEGIN_TB").unwrap() + 9;
    for cut in (0..end).step_by(7).chain([between.start, between.end - 1, between.end, end - 1]) {
        let trace = folder(&[("kernel-1.traceg", &text.as_bytes()[..cut])]);
        if between.contains(&cut) {
            assert!(
                notes(trace.path()).iter().any(|note| note.starts_with("1 of the grid's 2 thread blocks are absent"))
            );
        } else {
            let near = &text[cut.saturating_sub(20)..cut];
            assert!(open(trace.path()).is_err(), "cut at byte {cut}: {near:?}");
        }
    }
    assert!(open_text(&text[..end]).is_ok());
}

#[test]
fn a_trace_without_a_thread_block_or_with_too_few_is_refused() {
    let none = header(5, "3,3,1", 32);
    assert!(
        refusal(&none).starts_with("holds 0 of the grid's 9 thread blocks; one must be there"),
        "{}",
        refusal(&none)
    );
    let vast = header(5, "2147483647,1,1", 32) + &block("7,0,0", &[&[]]);
    let expected = "holds 1 of the grid's 2147483647 thread blocks; one must be there, and at most 16777216 may be \
                    absent; missing are 0,0,0 1,0,0 2,0,0 3,0,0 …";
    assert_eq!(refusal(&vast), expected);
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_memory() {
    let text = good() + &"x".repeat(3 << 20);
    assert!(refusal(&text).contains("a line longer than 1048576 bytes"));
}

#[test]
fn a_bad_list_is_refused() {
    for (list, expected) in [
        (
            "MemcpyHtoD,0x10\nkernel-1.traceg\n",
            ":1: expected MemcpyHtoD,<hexadecimal address>,<bytes, at most 2^48>, found `MemcpyHtoD,0x10`",
        ),
        ("MemcpyHtoD,zz,5\nkernel-1.traceg\n", ":1: expected MemcpyHtoD,<hexadecimal address>,<bytes, at most 2^48>"),
        (
            "MemcpyHtoD,0x10,999999999999999999\nkernel-1.traceg\n",
            ":1: expected MemcpyHtoD,<hexadecimal address>,<bytes",
        ),
        ("# nothing\n", ":2: expected at least one line that names a kernel trace, found the end of the list"),
        ("\nkernel-9.traceg\n", ":2: names the kernel trace `kernel-9.traceg`, but none of these is a file: "),
    ] {
        let trace = folder(&[("kernel-1.traceg", good().as_bytes())]);
        std::fs::write(trace.path().join("kernelslist.g"), list).unwrap();
        let message = open(trace.path()).err().unwrap().to_string();
        let (_, rest) = message.split_once("kernelslist.g").unwrap();
        assert!(rest.starts_with(expected), "{message}");
    }
    let trace = folder(&[("kernel-1.traceg", good().as_bytes())]);
    std::fs::write(trace.path().join("kernelslist.g"), b"kernel-\xff\n").unwrap();
    assert!(open(trace.path()).err().unwrap().to_string().contains("expected a file name in UTF-8"));
}

#[test]
fn what_is_no_trace_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let message = |path: &std::path::Path| open(path).err().unwrap().to_string();
    assert!(message(empty.path()).ends_with("is no trace: a folder with a trace has a file kernelslist.g"));
    assert!(message(&empty.path().join("none")).contains("cannot find"));
    #[cfg(unix)]
    assert!(message(std::path::Path::new("/dev/null")).ends_with("is no trace: a trace is a regular file"));
    let noise = empty.path().join("noise");
    std::fs::write(&noise, [0_u8, 159, 146, 150]).unwrap();
    assert!(
        message(&noise).ends_with(
            "noise: is binary data; a list or a kernel trace is text, plain or packed with xz, gzip or zstd"
        )
    );
}

#[test]
fn a_damaged_container_is_refused() {
    let text = good();
    for packed in [xz(text.as_bytes()), gzip(text.as_bytes()), zstd(text.as_bytes())] {
        assert!(open(folder(&[("kernel-1.traceg", &packed)]).path()).is_ok());
        for cut in [packed.len() / 2, packed.len() - 1] {
            let error = open(folder(&[("kernel-1.traceg", &packed[..cut])]).path()).err().unwrap().to_string();
            assert!(error.contains("kernel-1.traceg: cannot decompress or read"), "{error}");
        }
    }
}
