//! The command from outside. As an integration test, this file also makes cargo build the program that `.ci/documents`
//! runs.

use std::process::Command;

fn documents(arguments: &[&str]) -> (Option<i32>, String) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tombolo-documents"));
    let output = command.args(arguments).current_dir(root).output().expect("the program starts");
    (output.status.code(), String::from_utf8(output.stderr).expect("what is printed is UTF-8"))
}

#[test]
fn what_is_no_document_is_refused_with_the_names_that_are() {
    let (status, said) = documents(&["no-such-document"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("no-such-document: expected one of README.md"), "{said}");
    let (status, said) = documents(&["--dep"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("--dep: expected `--deep`, `--bless`"), "{said}");
}
