//! Forms of traces: packed traces are read, and foreign formats are refused with the format's name and a remedy.

use super::kit::{block, folder, folder_with_list, gzip, header, open, streams, xz, zstd};
use std::path::Path;

const LINE: &str = "0 ffffffff 1 R2 LDG.E 1 R4 4 1 0x1000 4 0";
/// An instruction of a raw trace.
const RAW: &str = "0 0 0 0 0000 ffffffff 1 R2 LDG.E 1 R4 4 1 0x1000 4 0\n";

fn kernel() -> String {
    header(5, "1,1,1", 32) + &block("0,0,0", &[&[LINE]])
}

/// The error message for opening a trace folder with the given files.
fn refusal(files: &[(&str, &[u8])]) -> String {
    let trace = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| std::fs::write(trace.path().join(name), bytes).unwrap());
    open(trace.path()).err().expect("it is no trace").to_string()
}

#[test]
fn a_gzip_trace_is_read() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/synthetic/gzip");
    let streams = streams(&*open(&shipped).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(
        streams.iter().map(|stream| (stream.warps.len(), stream.accesses.len())).collect::<Vec<_>>(),
        [(2, 2); 2]
    );
}

#[test]
fn content_tells_a_packer_whatever_the_ending_says() {
    let text = kernel();
    let expected = streams(&*open(folder(&[("kernel-1.traceg", text.as_bytes())]).path()).unwrap());
    for packed in [xz(text.as_bytes()), gzip(text.as_bytes()), zstd(text.as_bytes()), text.clone().into_bytes()] {
        for name in
            ["kernel-1.traceg", "kernel-1.traceg.xz", "kernel-1.traceg.gz", "kernel-1.traceg.zst", "kernel-1.trace"]
        {
            let trace = folder(&[(name, &packed)]);
            assert_eq!(streams(&*open(trace.path()).unwrap()), expected, "{name}");
            assert_eq!(streams(&*open(&trace.path().join(name)).unwrap()), expected, "{name} alone");
        }
    }
}

#[test]
fn parts_packed_one_by_one_are_one_file() {
    let text = kernel();
    let (head, tail) = text.as_bytes().split_at(text.len() / 2);
    let expected = streams(&*open(folder(&[("kernel-1.traceg", text.as_bytes())]).path()).unwrap());
    for pack in [xz as fn(&[u8]) -> Vec<u8>, gzip, zstd] {
        let packed = [pack(head), pack(tail)].concat();
        assert_eq!(streams(&*open(folder(&[("kernel-1.traceg", &packed)]).path()).unwrap()), expected);
    }
}

#[test]
fn raw_traces_are_named_with_what_sorts_them() {
    let raw = header(5, "1,1,1", 32) + "\n" + RAW;
    let with_lines = header(4, "1,1,1", 32).replace("lineinfo = 0", "lineinfo = 1") + "0 0 0 0 37 0f00 1 0 EXIT 0 0\n";
    for text in [raw.as_bytes(), &gzip(raw.as_bytes()), with_lines.as_bytes()] {
        for name in ["kernel-1.trace", "kernel-1.traceg"] {
            let message = refusal(&[("kernelslist.g", name.as_bytes()), (name, text)]);
            let what =
                format!("{name}: is a raw trace, whose instructions are not sorted by thread block; run Accel-Sim's");
            assert!(message.contains(&what) && message.contains("post-traces-processing"), "{message}");
        }
    }
}

#[test]
fn a_line_outside_of_a_thread_block_does_not_make_a_trace_raw() {
    let text = kernel() + RAW;
    let message = open(folder(&[("kernel-1.traceg", text.as_bytes())]).path()).err().unwrap().to_string();
    assert!(message.contains(": expected #BEGIN_TB or the end of the file, found `0 0 0 0 0000"), "{message}");
}

#[test]
fn folders_of_raw_traces_are_named() {
    let raw = header(5, "1,1,1", 32) + RAW;
    for files in [
        &[("kernelslist", &b"kernel-1.trace\n"[..]), ("kernel-1.trace", raw.as_bytes())][..],
        &[("kernel-1-ctx_0x5607b0e17740.trace.xz", raw.as_bytes())],
        &[("kernelslist_ctx_0x5607b0e17740", b"kernel-1.trace\n")],
    ] {
        let message = refusal(files);
        assert!(message.contains(": is a folder of raw traces; run Accel-Sim's post-traces-processing"), "{message}");
    }
}

#[test]
fn later_forms_of_kernel_traces_are_named() {
    let per_warp = gzip(&[header(5, "1,1,1", 32).as_bytes(), b"\0\x10\0\0\0\x20\0\0\0\x28\xb5\x2f\xfd"].concat());
    let binary = [&7_u64.to_le_bytes()[..], b"_Z3addv", &[1, 0, 0, 0]].concat();
    for (name, bytes, what) in [
        ("kernel-1.tracez.gz", &per_warp, "is a packed per-warp trace of Accel-Sim 2 (.tracez); unpack it"),
        (
            "kernel-1.traceg",
            &binary,
            "is a binary kernel trace of Accel-Sim; the text form is read: have a post-traces-",
        ),
    ] {
        let message = refusal(&[("kernelslist.g", name.as_bytes()), (name, bytes)]);
        assert!(message.contains(what), "{message}");
    }
    let message = refusal(&[("kernel-1.tracez", b"-kernel name = k\n\0")]);
    assert!(message.contains("is a folder of kernel traces without a list"), "{message}");
}

#[test]
fn other_packers_and_encodings_are_named() {
    let twice = gzip(&xz(kernel().as_bytes()));
    let utf16: Vec<u8> = kernel().encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, what) in [
        (b"BZh91AY&SY".to_vec(), "is packed with bzip2; unpack it"),
        (b"PK\x03\x04\x14".to_vec(), "is a zip archive; unpack it"),
        (twice, "is packed twice; unpack it once"),
        ([&b"\xff\xfe"[..], &utf16].concat(), "is text in UTF-16; save it as UTF-8"),
    ] {
        let message = refusal(&[("kernelslist.g", b"kernel-1.traceg"), ("kernel-1.traceg", &bytes)]);
        assert!(message.contains(&format!("kernel-1.traceg: {what}")), "{message}");
        let message = refusal(&[("kernelslist.g", &bytes)]);
        assert!(message.contains(&format!("kernelslist.g: {what}")), "{message}");
    }
}

#[test]
fn the_list_of_a_context_is_the_list_where_it_is_the_only_one() {
    let text = kernel();
    let name = "kernelslist_ctx_0x10.g";
    let trace = folder_with_list("", &[("kernel-1.traceg", text.as_bytes())]);
    std::fs::rename(trace.path().join("kernelslist.g"), trace.path().join(name)).unwrap();
    std::fs::write(trace.path().join(name), "kernel-1.traceg\n").unwrap();
    assert_eq!(open(trace.path()).unwrap().kernels().len(), 1);
    std::fs::write(trace.path().join("kernelslist_ctx_0x20.g"), "kernel-1.traceg\n").unwrap();
    let message = open(trace.path()).err().unwrap().to_string();
    assert!(message.ends_with("name one of them: kernelslist_ctx_0x10.g, kernelslist_ctx_0x20.g"), "{message}");
    let message = refusal(&[("kernel-1.traceg", text.as_bytes())]);
    assert!(
        message.contains("is a folder of kernel traces without a list; write their names into a kernelslist.g"),
        "{message}"
    );
}
