//! Kernel lists in real-world forms: each line in a list is understood or refused, never skipped.

use super::kit::{block, folder_with_list, header, notes, open, xz};
use tombolo_types::stream::Command;

fn kernel() -> String {
    header(5, "1,1,1", 32) + &block("0,0,0", &[&["0 1 0 NOP 0 0 0"]])
}

/// Kernels launched by the list, in order.
fn launches(list: &str) -> Vec<u32> {
    let (plain, packed) = (kernel(), xz(kernel().as_bytes()));
    let kernels =
        [("kernel-1.traceg", plain.as_bytes()), ("kernel-2.traceg.xz", &packed), ("add two.txt", plain.as_bytes())];
    let trace = folder_with_list("", &kernels);
    std::fs::create_dir(trace.path().join("more")).unwrap();
    std::fs::write(trace.path().join("more/1-add.traceg"), &plain).unwrap();
    let list = list.replace("HERE", trace.path().to_str().unwrap());
    std::fs::write(trace.path().join("kernelslist.g"), list).unwrap();
    let program = open(trace.path()).unwrap_or_else(|error| panic!("{error}"));
    let kernel = |command: &Command| if let Command::Launch { kernel, .. } = command { Some(*kernel) } else { None };
    program.commands().iter().filter_map(kernel).collect()
}

/// The error message for a list, after the list's name.
fn refusal(list: &str) -> String {
    let trace = folder_with_list(list, &[("kernel-1.traceg", kernel().as_bytes())]);
    let message = open(trace.path()).err().unwrap_or_else(|| panic!("{list:?} is read")).to_string();
    message.split_once("kernelslist.g").expect("the message names the list").1.to_owned()
}

#[test]
fn a_path_of_any_form_is_a_kernel() {
    for path in [
        "kernel-2.traceg",
        "./kernel-2.traceg",
        "kernel-2.traceg.xz",
        "kernel-2.traceg.gz",
        "HERE/kernel-2.traceg",
        "HERE/./kernel-2.traceg.zst",
        "more/../kernel-2.traceg",
        "\"kernel-2.traceg\"",
        "more/1-add.traceg",
        "add two.txt",
    ] {
        assert_eq!(launches(&format!("kernel-1.traceg\n{path}\n")), [0, 1], "{path}");
    }
}

#[test]
fn a_kernel_named_in_several_ways_is_one_kernel() {
    let list = "kernel-1.traceg\n./kernel-1.traceg\nHERE/kernel-1.traceg\nkernel-1.traceg.xz\n";
    assert_eq!(launches(list), [0; 4]);
}

#[test]
fn marks_blanks_ends_and_comments_of_real_lists_are_fine() {
    assert_eq!(launches("\u{feff}kernel-1.traceg\n"), [0]);
    assert_eq!(launches("kernel-1.traceg  \t\r\n\r\n  kernel-2.traceg\r\n"), [0, 1]);
    assert_eq!(launches("# all\n// of it\n\nkernel-1.traceg # first\nkernel-2.traceg"), [0, 1]);
}

#[test]
fn copies_before_the_first_launch_and_behind_the_last_are_the_hosts() {
    let list = "MemcpyHtoD,0x100,64\nMemcpyHtoD,0x140,64\nMemcpyDtoH,0x100,4\nkernel-1.traceg\nMemcpyDtoH,0x200,8\n\
                MemcpyHtoD,0x300,8\nkernel-1.traceg\nMemcpyDtoH,0x400,16\nMemcpyHtoD,0x500,8\nMemcpyDtoH,0x408,16\n";
    let trace = folder_with_list(list, &[("kernel-1.traceg", kernel().as_bytes())]);
    let program = open(trace.path()).unwrap();
    assert_eq!((&*program.setup().reads, &*program.setup().writes), (&[][..], std::slice::from_ref(&(0x100..0x180))));
    assert_eq!(
        (&*program.results().reads, &*program.results().writes),
        (std::slice::from_ref(&(0x400..0x418)), &[][..])
    );
}

#[test]
fn known_commands_without_a_cost_are_noted() {
    let list = "cudaMalloc,0x7f00,64\nMemset,0x7f00,0,64\nMemcpyDtoD,0x7f00,0x8f00,64\nMemcpyPeer,0x7f00,64\n\
                ncclAllReduce,0x7f00\nMemcpyHtoDAsync,0x7f00,64\nkernel-1.traceg\n";
    let trace = folder_with_list(list, &[("kernel-1.traceg", kernel().as_bytes())]);
    let copy = Command::Copy { address: 0x7f00, bytes: 64, to_device: true };
    assert_eq!(open(trace.path()).unwrap().commands(), [copy, Command::launch(0, 3)]);
    let notes = notes(trace.path());
    for expected in [
        "1 allocations and hints of the list (cudaMalloc) cost nothing",
        "1 fills of memory of the list (Memset) cost nothing",
        "2 copies of the list (MemcpyDtoD, MemcpyPeer) cost nothing: only linear copies between host and device",
        "1 calls of NCCL of the list (ncclAllReduce) cost nothing",
        "1 asynchronous copies of the list are simulated as ones that the host waits for",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(expected)), "{expected}: {notes:?}");
    }
}

#[test]
fn any_other_line_is_refused_with_its_place_and_text() {
    for (line, expected) in [
        (
            "hello world",
            ":3: expected the path of a kernel trace such as kernel-1.traceg, a command such as MemcpyHtoD",
        ),
        ("memcpyHtoD,0x10,16", ":3: expected the path of a kernel trace"),
        ("MemcpyHtoX,0x10,16", ":3: expected the path of a kernel trace"),
        ("-kernel name = k", ":3: expected the path of a kernel trace"),
        ("kernal-2.traceg", ":3: names the kernel trace `kernal-2.traceg`, but none of these is a file: "),
        ("./kernel-2.traceg", ":3: names the kernel trace `./kernel-2.traceg`, but none of these is a file: "),
        (
            "/nowhere/k.traceg",
            ":3: names the kernel trace `/nowhere/k.traceg`, but none of these is a file: /nowhere/k.traceg",
        ),
        ("MemcpyDtoH", ":3: expected MemcpyDtoH,<hexadecimal address>,<bytes, at most 2^48>, found `MemcpyDtoH`"),
    ] {
        let message = refusal(&format!("kernel-1.traceg\r\n# two\r\n{line}\r\nkernel-1.traceg\r\n"));
        assert!(message.starts_with(expected), "{line}: {message}");
        assert!(message.contains(&format!("`{line}`")), "{line}: {message}");
    }
}
