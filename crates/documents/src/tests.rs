//! Documents in a small repository, checked against a program with only a few lines.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// Prints a number, and writes a report with this number; both read it from the file `number`.
const PROGRAM: &str = r#"#!/usr/bin/env bash
number=$(<"$0.number")
case $1 in
    run) printf 'time %s ms\ndigest 00ff\n' "$number" ;;
    fail) echo 'error: no' >&2; exit 2 ;;
    show) cat "$2" ;;
    reproduce)
        printf '{"title":"T","paper":"p","scale":"1","tombolo":"1","command":"c","claims":[],"configurations":[],
            "figures":[{"id":"f","title":"F","caption":"","chart":{"kind":"bars","x":"","y":""},
            "columns":["w","a"],"rows":[{"label":"bfs","values":[%s]}]}]}' "$number" >report.json ;;
esac
"#;

struct Repository(tempfile::TempDir);

impl Repository {
    /// A repository with a README and another document.
    fn new(readme: &str, other: &str) -> Repository {
        let repository = Repository(tempfile::tempdir().unwrap());
        std::fs::create_dir(repository.0.path().join("docs")).unwrap();
        repository.write("README.md", readme);
        repository.write("docs/other.md", other);
        repository.write("tombolo", PROGRAM);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(repository.0.path().join("tombolo"), executable).unwrap();
        repository.print("1.5");
        repository
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    /// Makes the program print a different number.
    fn print(&self, number: &str) {
        self.write("tombolo.number", number);
    }

    fn check(&self, arguments: &str) -> Vec<String> {
        let root = self.0.path().canonicalize().unwrap();
        let settings = Settings::new(root.clone(), arguments.split_whitespace().map(str::to_owned)).unwrap();
        check(settings, &root.join("tombolo")).unwrap().iter().map(Fault::to_string).collect()
    }
}

const RUN: &str = "<!-- run -->\n```\ntombolo run\n```\n```\ntime 1.5 ms\n```\n(shortened). Text.\n";
const DEEP: &str = "<!-- run deep -->\n```\ntombolo run\n```\n```\ntime 1.5 ms\ndigest 00ff\n```\n";
const KEEP: &str = "<!-- keep p from report.json -->\n```\ntombolo reproduce p\n```\n\
    <!-- table p 2: f > a -->\n| w | a |\n| --- | --- |\n| bfs | 1.50 |\n\nIt is [1.5](results/p.json \"f > bfs > a\").\n";

#[test]
fn a_document_that_shows_what_is_printed_has_no_fault() {
    let repository = Repository::new(RUN, DEEP);
    assert_eq!(repository.check("--deep"), [""; 0]);
}

#[test]
fn another_number_is_told_with_its_place() {
    let repository = Repository::new(RUN, DEEP);
    repository.print("2.5");
    assert_eq!(repository.check(""), ["README.md:6: shown, and not printed: time 1.5 ms"]);
    assert_eq!(repository.check("--deep").len(), 2);
    assert_eq!(repository.check("--deep docs/other.md"), ["docs/other.md:6: shown, and not printed: time 1.5 ms"]);
}

#[test]
fn bless_rewrites_what_differs() {
    let repository = Repository::new(RUN, DEEP);
    repository.print("2.5");
    assert_eq!(repository.check("--deep --bless"), [""; 0]);
    assert_eq!(repository.read("README.md"), RUN.replace("1.5", "2.5"));
    assert_eq!(repository.read("docs/other.md"), DEEP.replace("1.5", "2.5"));
    assert_eq!(repository.check("--deep"), [""; 0]);
}

#[test]
fn commands_read_the_files_that_the_document_shows() {
    let text = "<!-- file a.toml -->\n```toml\nbase = 1\n```\n<!-- run: tombolo show a.toml -->\n```\nbase = 1\n```\n";
    assert_eq!(Repository::new(text, "").check(""), [""; 0]);
}

#[test]
fn an_error_is_shown_where_commands_must_fail() {
    let shown = |error: &str| format!("<!-- run fails: tombolo fail -->\n```\n{error}\n```\n");
    assert_eq!(Repository::new(&shown("error: no"), "").check(""), [""; 0]);
    assert_eq!(Repository::new(&shown("error: yes"), "").check("").len(), 1);
}

#[test]
fn results_are_kept_and_tables_made_of_them() {
    let repository = Repository::new("", KEEP);
    assert_eq!(repository.check(""), [""; 0], "nothing is kept yet");
    assert!(repository.check("--deep")[0].contains("`--deep --bless p`"));
    repository.print("2.5");
    assert_eq!(repository.check("--deep --bless p"), [""; 0]);
    assert_eq!(repository.read("docs/other.md"), KEEP.replace("1.5", "2.5"));
    repository.print("3.5");
    let faults = repository.check("--deep");
    assert!(faults[0].ends_with("figure f, bfs: [Some(3.5)], kept [Some(2.5)]"), "{faults:?}");
}

#[test]
fn a_table_and_a_number_that_are_not_those_kept_are_told() {
    let repository = Repository::new("", KEEP);
    repository.check("--deep --bless");
    repository.write("docs/other.md", &KEEP.replace("1.50", "1.51").replace("[1.5]", "[1.6]"));
    let faults = repository.check("");
    assert!(faults[0].starts_with("docs/other.md:8: the table is not that of kept results"), "{faults:?}");
    assert!(faults[1].starts_with("docs/other.md:10: kept results say"), "{faults:?}");
}

#[test]
fn results_that_nothing_makes_are_refused() {
    let faults = Repository::new("", &KEEP.replace("table p", "table q")).check("");
    assert!(faults[0].contains("nothing makes kept results `q`: expected one of `p`"), "{faults:?}");
}

#[test]
fn a_name_that_no_document_has_is_refused() {
    let repository = Repository::new("", KEEP);
    let root = repository.0.path().to_owned();
    let settings = Settings::new(root.clone(), std::iter::once("q".to_owned())).unwrap();
    let error = check(settings, &root.join("tombolo")).unwrap_err();
    assert_eq!(error, "q: expected one of README.md, docs/other.md, p");
    assert!(Settings::new(root, std::iter::once("--depe".to_owned())).is_err());
}
