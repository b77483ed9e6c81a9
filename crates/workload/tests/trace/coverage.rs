//! What a trace says about its own gaps: launches, lists, addresses and operations that are not simulated.

use super::kit::{block, folder, folder_with_list, header, notes};
use tombolo_workload::trace;

const LOAD: &str = "0000 ffffffff 1 R2 LDG.E 1 R4 4 1 0x7f6000000000 4 0";

fn kernel(id: u32, lines: &[&str]) -> String {
    header(5, "1,1,1", 32).replace("-kernel id = 1", &format!("-kernel id = {id}")) + &block("0,0,0", &[lines])
}

fn any(notes: &[String], expected: &str) -> bool {
    notes.iter().any(|note| note.starts_with(expected))
}

#[test]
fn launches_that_the_numbers_skip_are_told() {
    let kernels = [5, 6, 8].map(|id| (format!("kernel-{id}.traceg"), kernel(id, &[LOAD])));
    let files: Vec<(&str, &[u8])> = kernels.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let trace = folder(&files);
    let expected = "by the numbers of its kernels, the trace lacks launches of the program: 1 to 4, 7";
    assert!(notes(trace.path()).contains(&expected.to_owned()));
    let native = trace.path().join("same.tombolo");
    trace::import(trace.path(), &native).unwrap();
    assert!(notes(&native).contains(&expected.to_owned()), "an imported trace says so too");
    assert!(!any(&notes(&trace.path().join("kernel-6.traceg")), "by the numbers"), "a kernel named alone");
    let twice =
        folder_with_list("kernel-1.traceg\nkernel-1.traceg\n", &[("kernel-1.traceg", kernel(1, &[LOAD]).as_bytes())]);
    assert!(!any(&notes(twice.path()), "by the numbers"));
}

#[test]
fn lists_of_other_contexts_are_told() {
    let text = kernel(1, &[LOAD]);
    let trace = folder(&[("kernel-1-ctx_0x551.traceg", text.as_bytes())]);
    let write = |name: &str, content: &str| std::fs::write(trace.path().join(name), content).unwrap();
    write("kernelslist_ctx_0x551.g", "kernel-1-ctx_0x551.traceg\n");
    assert!(!any(&notes(trace.path()), "1 further lists"), "a copy of the list");
    for context in ["0x552", "0x553"] {
        write(&format!("kernel-2-ctx_{context}.traceg"), &text);
        write(&format!("kernelslist_ctx_{context}.g"), &format!("kernel-2-ctx_{context}.traceg\n"));
    }
    let expected = "2 further lists in the folder, of other CUDA contexts, are not read: kernelslist_ctx_0x552.g, \
                    kernelslist_ctx_0x553.g; name one to read it";
    assert!(any(&notes(trace.path()), expected));
    assert!(any(&notes(&trace.path().join("kernelslist.g")), expected));
}

#[test]
fn traces_whose_addresses_are_zero_are_named() {
    let zero = "0000 ffffffff 1 R2 LDG.E 1 R4 4 1 0x0 0 0";
    let shared = "0000 ffffffff 1 R2 LDS 1 R4 4 1 0x0 0 0";
    let half = format!("0 ffffffff 1 R2 LDG.E 1 R4 4 0 {}{} 0", "0x0 ".repeat(16), "0x7f6000000000 ".repeat(16));
    for (lines, expected) in [
        (
            vec![zero, zero],
            Some("all 64 addresses in device memory in kernel-1.traceg are 0: device memory never lies there"),
        ),
        (vec![zero, LOAD], Some("32 of 64 addresses in device memory in kernel-1.traceg are 0: ")),
        (vec![half.as_str()], Some("16 of 32 addresses in device memory in kernel-1.traceg are 0: ")),
        (vec![zero, LOAD, LOAD], None),
        (vec![shared], None),
        (vec!["0000 00000000 1 R2 LDG.E 1 R4 4 1 0x0 0 0"], None),
    ] {
        let notes = notes(folder(&[("kernel-1.traceg", kernel(1, &lines).as_bytes())]).path());
        let found = notes.iter().find(|note| note.contains("addresses in device memory"));
        assert_eq!(found.is_some(), expected.is_some(), "{lines:?}: {notes:?}");
        assert!(expected.is_none_or(|expected| any(&notes, expected)), "{notes:?}");
    }
    let files = [("kernel-1.traceg", kernel(1, &[zero])), ("kernel-2.traceg", kernel(2, &[zero]))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_bytes()));
    assert!(any(
        &notes(folder(&files).path()),
        "all 64 addresses in device memory in kernel-1.traceg and 1 more are 0"
    ));
}

#[test]
fn memory_operands_that_are_not_simulated_are_counted_by_operation() {
    let lines = [
        "0 ffffffff 0 CCTL.E.IV 1 R4 4 1 0x7f6000000000 4 0",
        "0 1 0 FROB.64 1 R4 8 1 0x7f6000000000 4 0",
        "0 1 0 FROB.64 1 R4 8 1 0x7f6000000000 4 0",
        "0 1 1 R4 TEX 1 R2 0 0",
        "0 1 1 R4 LDC 1 R2 4 1 0x10 0 0",
        LOAD,
    ];
    let trace = folder(&[("kernel-1.traceg", kernel(1, &lines).as_bytes())]);
    let notes = notes(trace.path());
    for expected in [
        "3 instructions with a memory operand only take an issue slot: FROB 2, CCTL.E.IV 1",
        "1 memory instructions come without addresses: their traffic is not simulated: TEX 1",
        "not simulated: the cache of constants: LDC 1",
        "opcode FROB (2 warp instructions) is unknown",
    ] {
        assert!(any(&notes, expected), "{expected}: {notes:?}");
    }
}

#[test]
fn info_counts_instructions_and_bytes_by_operation() {
    let lines = [
        LOAD,
        "0 1 1 R2 LDG.E.64 1 R4 8 1 0x7f6000000000 4 0",
        "0 ffffffff 0 STS.128 2 R4 R8 16 1 0x0 16 0",
        "0 1 1 R4 TEX 1 R2 0 0",
        "0 1 0 FROB 0 0 0",
        "0 ffffffff 0 BAR.SYNC 0 0 0",
    ];
    let text = kernel(1, &lines);
    let trace = folder_with_list("kernel-1.traceg\nkernel-1.traceg\n", &[("kernel-1.traceg", text.as_bytes())]);
    let info = trace::info(trace.path()).unwrap();
    let rows = info
        .operations
        .iter()
        .map(|row| (row.name.as_str(), row.instructions, row.bytes, row.not_simulated.as_deref()));
    let expected = [
        ("BAR.SYNC", 2, 0, None),
        ("FROB", 2, 0, Some("the operation is unknown and only takes an issue slot")),
        ("LDG", 4, 2 * (128 + 8), None),
        ("STS", 2, 2 * 512, None),
        ("TEX", 2, 0, Some("traffic without traced addresses")),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    assert_eq!(info.operations.iter().map(|row| row.instructions).sum::<u64>(), info.warp_instructions);
    let native = trace.path().join("same.tombolo");
    trace::import(trace.path(), &native).unwrap();
    assert_eq!(trace::info(&native).unwrap().operations, info.operations);
    let header = String::from_utf8_lossy(&std::fs::read(&native).unwrap()).into_owned();
    assert!(header.contains("\"chains\",\"operations\"]"), "a feature of the file");
    let table = trace.path().join("same.csv");
    trace::export(trace.path(), &table).unwrap();
    let of_table = trace::info(&table).unwrap().operations;
    let load = of_table.iter().find(|row| row.name == "load").unwrap();
    assert_eq!((load.instructions, load.bytes), (3 * 2, 2 * (128 + 8)), "two loads and a fetch without addresses");
}
