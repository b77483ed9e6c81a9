//! `report`: a single page with the results in a folder.

use crate::{outcome, stderr};
use std::fs;
use std::path::Path;

/// Returns a document with one figure.
fn document(paper: &str) -> String {
    format!(
        r#"{{"title": "Results of {paper}", "paper": "{paper}", "scale": "1/16", "tombolo": "0.1.0", "command": "tombolo reproduce {paper}",
            "claims": [], "configurations": [],
            "figures": [{{"id": "f", "title": "A figure", "caption": "", "columns": ["Workload", "hmg"],
                "chart": {{"kind": "bars", "x": "Workload", "y": "Speed-up"}}, "rows": [{{"label": "bfs", "values": [1.5]}}]}}]}}"#
    )
}

fn report(folder: &Path, out: &Path) -> std::process::Output {
    outcome(&["report", folder.to_str().expect("UTF-8"), "-o", out.to_str().expect("UTF-8")])
}

#[test]
fn a_folder_becomes_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("report.json"), document("hmg")).expect("written");
    let page = folder.path().join("page.html");
    let output = report(folder.path(), &page);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(page).expect("written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Results of hmg") && page.ends_with("</html>"));
    assert!(page.contains("</svg>") && !page.contains("<script"), "its chart is a drawing");
    let live = folder.path().join("live.html");
    let [given, out] = [folder.path(), &live].map(|path| path.to_str().expect("UTF-8"));
    assert!(outcome(&["report", given, "-o", out, "--interactive"]).status.success());
    assert!(fs::read_to_string(live).expect("written").contains("echarts"));
}

#[test]
fn figures_become_files_for_a_paper_in_a_folder_of_each_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let words = |given: &Path| {
        ["report", given.to_str().expect("UTF-8"), "--figures", out.to_str().expect("UTF-8")].map(str::to_owned)
    };
    let figures = |given: &Path| {
        let words = words(given);
        outcome(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let names = |place: &Path| {
        let entries = fs::read_dir(place).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
        names.sort();
        names
    };
    let one = folder.path().join("one.json");
    fs::write(&one, document("../hmg")).expect("written");
    let output = figures(&one);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(names(&out), ["f.csv", "f.svg", "f.tex"]);
    assert!(fs::read_to_string(out.join("f.svg")).expect("written").contains("</svg>"));
    assert_eq!(fs::read_to_string(out.join("f.csv")).expect("written"), "Workload,hmg\r\nbfs,1.5\r\n");
    for paper in ["../gps", "hmg"] {
        let place = folder.path().join("papers").join(paper.trim_start_matches("../"));
        fs::create_dir_all(&place).expect("created");
        fs::write(place.join("report.json"), document(paper)).expect("written");
    }
    let output = figures(&folder.path().join("papers"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(names(&out), ["---gps", "f.csv", "f.svg", "f.tex", "hmg"], "no document names a folder elsewhere");
}

#[test]
fn a_report_is_a_page_or_figures_and_no_file_that_it_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("f.csv");
    fs::write(&file, document("hmg")).expect("written");
    let given = file.to_str().expect("UTF-8");
    let place = folder.path().to_str().expect("UTF-8");
    for (words, reason) in [
        (&["report", given][..], "--out <FILE.html>|--figures <DIR>"),
        (&["report", given, "--figures", place], "the command reads this file"),
        (&["report", given, "--figures", place, "--interactive"], "--out"),
        (&["report", given, "--figures", given], "create"),
    ] {
        let output = outcome(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(&file).expect("there"), document("hmg"));
    }
}

#[test]
fn folders_of_several_papers_become_one_page_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    for paper in ["umh", "gps", "hmg"] {
        fs::create_dir(folder.path().join(paper)).expect("created");
        fs::write(folder.path().join(paper).join("report.json"), document(paper)).expect("written");
    }
    fs::create_dir(folder.path().join("cache")).expect("created");
    let page = folder.path().join("page.html");
    let output = report(folder.path(), &page);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(page).expect("written");
    let place = |paper: &str| page.find(&format!("id=\"{paper}\"")).expect("it is there");
    assert!(place("gps") < place("hmg") && place("hmg") < place("umh"));
}

#[test]
fn what_is_no_result_is_refused_with_its_file_and_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, page) = (folder.path().join("report.json"), folder.path().join("page.html"));
    fs::write(&page, "old").expect("written");
    for (text, reason) in [
        ("{", "line 1 column 1"),
        ("{}", "missing field `title`"),
        (&document("hmg").replace("\"bars\"", "\"pie\""), "unknown variant `pie`"),
        (&document("hmg").replace("[1.5]", "[1.5, 2]"), "figure \"f\", row \"bfs\": 2 numbers"),
        (&document("hmg").replace("bars", "scatter"), "a scatter wants two columns"),
    ] {
        fs::write(&file, text).expect("written");
        let output = report(folder.path(), &page);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(file.to_str().expect("UTF-8")), "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(&page).expect("there"), "old");
    }
}

#[test]
fn a_folder_without_results_and_a_page_that_cannot_be_written_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    for (given, out, reason) in [
        (folder.path(), folder.path().join("page.html"), "no report.json"),
        (&missing, folder.path().join("page.html"), "missing"),
    ] {
        let output = report(given, &out);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert!(!out.exists());
    }
    fs::write(folder.path().join("report.json"), document("hmg")).expect("written");
    let output = report(folder.path(), &missing.join("page.html"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nothing was written"), "{}", stderr(&output));
}
