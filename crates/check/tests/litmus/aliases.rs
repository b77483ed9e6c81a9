//! Two names for a single address.

use std::path::{Path, PathBuf};
use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::litmus::{Instruction, Litmus, LitmusError, Location, Thread, parse, read};
use tombolo_types::{Order, Semantics};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A reader of x and y, with a concurrent thread storing to both.
fn text(initial: &str, loads: [&str; 2]) -> String {
    format!(
        "PTX test\n{{ x=0; {initial} }}\nP0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n\
         st.relaxed.gpu x,1 | ld.relaxed.gpu r0, {} ;\n | ld.relaxed.gpu r1, {} ;\n\
         ~exists (P1:r0 == 1 /\\ P1:r1 == 0)",
        loads[0], loads[1]
    )
}

fn litmus(initial: &str, loads: [&str; 2]) -> Litmus {
    parse("file", &text(initial, loads)).unwrap_or_else(|error| panic!("{error}"))
}

fn is_allowed(litmus: &Litmus) -> bool {
    outcomes(&litmus.program, &Limits::default()).expect("it is small").allow_event(litmus)
}

#[test]
fn two_names_of_one_address_are_one_location() {
    let plain = litmus("", ["x", "x"]);
    for (initial, loads) in [
        ("y aliases x;", ["y", "x"]),
        ("y aliases x; z aliases y;", ["[z]", "[y]"]),
        ("P1:r4=x; P1:r5=&x;", ["[r4]", "[r5]"]),
        ("P1:r4=x;", ["r4", "x"]),
    ] {
        let aliased = litmus(initial, loads);
        assert_eq!((&aliased.program, &aliased.condition), (&plain.program, &plain.condition), "{initial}");
    }
    assert!(!is_allowed(&plain) && is_allowed(&litmus("y=0;", ["x", "y"])));
    let named = parse("file", &text("y aliases x;", ["x", "x"]).replace("P1:r1 == 0", "y == 0"));
    assert!(named.is_ok(), "a condition may use any name");
}

#[test]
fn a_register_that_holds_an_address_is_only_one() {
    let error = |initial: &str, loads| match parse("file", &text(initial, loads)) {
        Err(LitmusError::Unsupported { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(error("P1:r0=x;", ["x", "x"]), "value of an address");
    assert_eq!(error("P0:r4=x;", ["[r4]", "x"]), "address in a register", "it is another thread's");
    assert_eq!(error("P1:r4=x;", ["[r4+4]", "x"]), "offset");
    assert_eq!(error("P1:r4=x; P1:r4=0;", ["[r4]", "x"]), "address in a register", "the last value counts");
}

#[test]
fn an_alias_is_a_new_name_of_a_location() {
    let error = |initial: &str| parse("file", &text(initial, ["x", "x"])).expect_err(initial).to_string();
    assert!(error("y=0; y aliases x;").contains("a name that no location has yet, found `y`"));
    assert!(error("y aliases z;").contains("a location of the test, found `z`"));
    let virtual_alias = error("y @ generic aliases x;");
    assert!(virtual_alias.contains("fence.proxy.alias") && virtual_alias.contains("`y aliases x`"), "{virtual_alias}");
}

/// Detects GPU threads in which a weak load, an acquiring load and a weak load from the first location follow each
/// other: NVIDIA's assembler merges the two weak loads. Intermediate loads and computations do not prevent merging; any
/// other instruction does.
fn is_merged(thread: &Thread) -> bool {
    let mut loaded: Vec<(Location, bool)> = Vec::new();
    let mut merged = false;
    for instruction in &thread.code {
        match *instruction {
            Instruction::Load { order: Order::WEAK, location, .. } => {
                merged |= loaded.iter().any(|(known, acquired)| *known == location && *acquired);
                loaded.retain(|(known, _)| *known != location);
                loaded.push((location, false));
            }
            Instruction::Load { order, .. } if order.semantics == Semantics::Acquire => {
                loaded.iter_mut().for_each(|(_, acquired)| *acquired = true);
            }
            Instruction::Load { .. } | Instruction::Move { .. } | Instruction::Compute { .. } => {}
            _ => loaded.clear(),
        }
    }
    merged && !thread.placement.is_host()
}

/// Tests in a folder, by file name.
fn folder(name: &str) -> Vec<(String, Litmus)> {
    let entries = std::fs::read_dir(data().join(name)).expect("the folder ships");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut tests: Vec<(String, Litmus)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "litmus"))
        .map(|path| {
            let file = path.file_name().expect("a file").to_string_lossy().into_owned();
            (file, read(&path).unwrap_or_else(|error| panic!("{error}")))
        })
        .collect();
    tests.sort_by(|(one, _), (other, _)| one.cmp(other));
    tests
}

#[test]
fn every_test_that_the_assembler_breaks_has_a_twin_with_aliased_addresses() {
    let folders = ["shapes", "host", "kernels", "synthetic", "litmus/Manual", "litmus/Memalloy", "litmus/Nvidia"];
    let all = folders.iter().flat_map(|name| folder(name));
    let mut merged: Vec<(String, Litmus)> =
        all.filter(|(_, litmus)| litmus.program.threads.iter().any(is_merged)).collect();
    merged.sort_by(|(one, _), (other, _)| one.cmp(other));
    let twins = folder("aliased");
    assert_eq!(twins.len(), 8);
    let names = |tests: &[(String, Litmus)]| tests.iter().map(|(file, _)| file.clone()).collect::<Vec<_>>();
    assert_eq!(names(&twins), names(&merged));
    for ((file, twin), (_, test)) in twins.iter().zip(&merged) {
        let same = (&twin.program.threads, &twin.program.locations, &twin.condition);
        assert_eq!(same, (&test.program.threads, &test.program.locations, &test.condition), "{file}");
        let text = std::fs::read_to_string(data().join("aliased").join(file)).expect("it ships");
        assert!(text.contains("[r8]") && text.contains("[r9]"), "{file}");
    }
}
