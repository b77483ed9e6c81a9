//! The command from outside. Tests of whole programs also make cargo build the program that `./check` runs.

use std::process::Command;

fn prose(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tombolo-prose"));
    let output = command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn unknown_arguments_and_missing_documents_are_errors() {
    let (status, _, errors) = prose(&["--all"]);
    assert_eq!((status, errors.as_str()), (Some(2), "error: --all: expected `--list PATH…` or nothing\n"));
    let (status, _, errors) = prose(&[]);
    assert_eq!(status, Some(2));
    assert!(errors.starts_with("error: ./crates: "), "{errors}");
}

#[test]
fn sentences_that_count_against_a_bound_are_listed_with_their_line() {
    let folder = std::env::temp_dir().join(format!("tombolo-prose-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files is writable");
    let file = folder.join("x.md");
    std::fs::write(
        &file,
        "# Title\n\nA plain sentence names its subject first.\n\nOf those that it is one of which.\n",
    )
    .expect("written");
    let (status, listed, _) = prose(&["--list", &file.display().to_string()]);
    std::fs::remove_dir_all(&folder).expect("the folder is there");
    assert_eq!(status, Some(0));
    assert!(listed.starts_with(&format!("{}:5: Of those that it is one of which.\n", file.display())), "{listed}");
}
