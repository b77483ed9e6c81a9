//! Tests the report on a terminal.

use crate::fixture;
use tombolo_report::text;
use unicode_width::UnicodeWidthStr;

#[test]
fn no_line_is_wider_than_the_terminal() {
    for document in
        [fixture::document(), fixture::hostile("漢字 × wide and a_very_long_word_without_any_blank_in_it_at_all")]
    {
        for width in [40, 57, 80, 132] {
            for line in text(&document, width).lines() {
                assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
            }
        }
    }
}

#[test]
fn columns_are_aligned() {
    let text = text(&fixture::document(), 100);
    let (_, table) = text.split_once("Workload         Software, flat").expect("the table of a figure");
    let rows: Vec<&str> = table.lines().skip(1).take(21).collect();
    assert_eq!(rows[0], "cuSolver                  1.657                   2.022");
    assert_eq!(rows[9], "mst                       1.100                       –");
    assert!(rows[20].starts_with("geometric mean"));
    assert!(rows.iter().all(|row| row.width() == rows[0].width()));
}

#[test]
fn a_narrow_terminal_gets_the_columns_in_blocks() {
    let text = text(&fixture::document(), 40);
    let (_, figure) = text.split_once("\nFigure 8").expect("a figure");
    let (figure, _) = figure.split_once("\nFigure 11").expect("another");
    let numbers = figure.lines().filter_map(|line| line.strip_prefix("pathfinder"));
    let numbers: Vec<String> = numbers.map(|rest| rest.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(numbers, ["1.696", "2.081 1.933", "2.417 2.267"]);
    assert!(figure.contains("Software, fl…"));
}

#[test]
fn claims_stand_by_kind_with_their_causes() {
    let text = text(&fixture::document(), 80);
    for heading in
        ["Claims: identity, 2 of 2 hold", "Claims: direction, 1 of 3 hold, 1 of other readings", "Claims: magnitude\n"]
    {
        assert!(text.contains(heading), "{heading}");
    }
    assert!(text.contains("not robust") && text.contains("cause: At this scale 71 %"));
    assert!(text.contains("differs: fabric.latency") && text.contains("0.980"), "{text}");
}

#[test]
fn a_claim_of_another_reading_stands_behind_the_default_one_and_says_so() {
    let text = text(&fixture::document(), 80);
    let (_, claims) = text.split_once("Claims: direction").expect("the kind");
    let lines: Vec<&str> = claims.lines().map(str::trim).collect();
    let at =
        lines.iter().position(|line| line.starts_with("holds") && line.contains("HMG is ahead")).expect("it holds");
    let other = at + lines[at..].iter().position(|line| line.starts_with("shown")).expect("the other reading");
    assert!(lines[at + 1..other].iter().all(|line| !line.starts_with("fails")), "{claims}");
    assert!(lines[other].contains("0.900") && lines[other + 1] == "reading: kernels", "{claims}");
}

#[test]
fn a_prediction_stands_as_one_and_not_under_paper() {
    let text = text(&fixture::document(), 100);
    let (_, claims) = text.split_once("Claims: mechanism").expect("the kind");
    let claim = claims.lines().find(|line| line.contains("A read-shared array")).expect("the claim");
    assert_eq!(claim.split_whitespace().take(4).collect::<Vec<_>>(), ["holds", "–", "9,216", "B"]);
    assert!(claims.contains("predicted: 9,216 B"), "{claims}");
}

#[test]
fn nothing_steers_the_terminal() {
    let text = text(&fixture::hostile("red \x1b[31m\r\u{9b}2J\x07"), 80);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}
