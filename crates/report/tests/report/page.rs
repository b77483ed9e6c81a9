//! Tests the page in text form: contents, escaping for document strings, and size.

use crate::fixture;
use serde_json::Value;
use tombolo_report::document::{ChartKind, Figure, FigureRow};
use tombolo_report::{Document, html, html_all, interactive};

/// Maximum size for a large report on a paper, in bytes.
const MOST_BYTES: usize = 5_000_000;

/// Start tag of the script's input data.
const DATA: &str = "<script id=\"charts\" type=\"application/json\">";

/// A string that would run a script if it were not escaped somewhere.
const HOSTILE: &str = "</script></style></title><script>owned()</script><img src=x onerror='owned()'>\"'&<!--{{}}";

fn figure(kind: ChartKind, rows: usize, columns: usize, value: Option<f64>) -> Figure {
    let mut figure = Figure { id: "f".into(), title: "A figure".into(), ..Figure::default() };
    figure.chart.kind = kind;
    figure.columns = (0..=columns).map(|column| format!("column {column}")).collect();
    let row = |row| FigureRow { label: format!("row {row}"), values: vec![value; columns], summary: false, at: None };
    figure.rows = (0..rows).map(row).collect();
    figure
}

/// Returns the page with charts drawn by a script.
fn live(document: &Document) -> String {
    interactive(std::slice::from_ref(document))
}

fn page_with(figure: Figure) -> String {
    live(&Document { figures: vec![figure], ..Document::default() })
}

/// Extracts the JSON data for the page's script.
fn charts(page: &str) -> Value {
    let (_, rest) = page.split_once(DATA).expect("the data is there");
    let (json, _) = rest.split_once("</script>").expect("it ends");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn a_page_needs_nothing_else() {
    let page = live(&fixture::document());
    let (live_part, _) = page.split_once(DATA).expect("the data is there");
    let still = html(&fixture::document());
    assert!(!still.contains("<script") && still.contains("script-src 'none'"), "a page of drawings runs nothing");
    for page in [live_part, &still] {
        let (head, _) = page.split_once("<style>").expect("a head");
        assert!(head.contains("default-src 'none'") && !head.contains("unsafe-eval"));
        for reference in ["src=\"", "<link", "@import", "href=\"http", "url(http", "url(\""] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}

#[test]
fn every_part_of_a_document_is_on_the_page() {
    let document = fixture::document();
    let page = html(&document);
    for claim in &document.claims {
        assert!(page.contains(&format!("id=\"claim-{}\"", claim.id.replace('@', "-"))), "{}", claim.id);
    }
    for figure in &document.figures {
        assert!(page.contains(&format!("<h3>{}</h3>", figure.title)), "{}", figure.title);
        assert!(page.contains(&format!("id=\"hmg-{}\"", figure.id)) && page.contains(&format!("#hmg-{}\"", figure.id)));
        figure.published.iter().for_each(|stated| assert!(page.contains(&stated.source)));
    }
    for text in ["Cause: ", "fabric.latency ÷ 2", "4 of 5", "assumed: no paper", "the recording needs 31 GB", "made up"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains(&document.command) && page.contains("1/16"));
}

#[test]
fn what_made_a_document_is_on_its_page_with_the_experiments() {
    let page = html(&fixture::document());
    for text in
        ["0123456789abcdef01234567", "2026-11-25", "linux on x86_64, 2 cores", "1, 2", "preset hmg/figure-8.toml"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("id = &quot;figure-8&quot;"));
    let mut earlier = serde_json::to_value(fixture::document()).expect("a document is JSON");
    earlier.as_object_mut().expect("an object").remove("provenance");
    let earlier = Document::from_json(&earlier.to_string()).expect("a document of an earlier version");
    assert!(!html(&earlier).contains("What made it, and where"));
}

#[test]
fn a_claim_is_told_with_a_sign_and_a_word() {
    let page = html(&fixture::document());
    for verdict in ["✓ holds", "✗ fails", "~ not robust", "· shown", "✓ 2 hold"] {
        assert!(page.contains(verdict), "{verdict}");
    }
}

#[test]
fn claims_of_other_readings_are_counted_apart_and_stand_behind_the_default_ones() {
    let page = html(&fixture::document());
    let (_, tally) = page.split_once("class=\"kind\">Direction</span>").expect("the tally");
    let (tally, _) = tally.split_once("</li>").expect("its end");
    assert!(tally.contains("✓ 1 holds") && tally.contains("· 1 of other readings"), "{tally}");
    assert!(!tally.contains("shown</span>"), "{tally}");
    let at = |id: &str| page.find(&format!("id=\"claim-{id}\"")).expect("the claim");
    let (default, other) = (at("fig8-hmg-over-nhcc"), at("fig8-hmg-over-nhcc-kernels"));
    assert!(default < other && other < at("fig8-swh-over-swf"));
    assert!(page.contains("Reading: kernels"));
}

#[test]
fn a_prediction_stands_as_one_and_not_under_paper() {
    let page = html(&fixture::document());
    let (_, row) = page.split_once("id=\"claim-link-once\"").expect("the claim");
    let (row, _) = row.split_once("</tr>").expect("its end");
    assert!(row.contains("Predicted: 9,216 B") && row.contains("data-head=\"Paper\">–</td>"), "{row}");
    assert_eq!(page.matches("Predicted: ").count(), 1, "nothing is predicted of the others");
}

#[test]
fn the_paper_s_values_stand_with_ours() {
    let charts = charts(&live(&fixture::document()));
    let stated = &charts[1]["stated"];
    assert_eq!(stated.as_array().map(Vec::len), Some(4));
    assert_eq!((&stated[0]["row"], &stated[0]["series"], &stated[0]["value"]), (&20.into(), &3.into(), &1.48.into()));
    assert!(html(&fixture::document()).contains(r#"<span class="stated" title="Section VII-A, text">◇ 1.480</span>"#));
}

#[test]
fn counters_are_called_by_name_and_unit() {
    let page = live(&fixture::document());
    assert!(
        page.contains(">directory evictions (entries)</th>") && page.contains("Directory entries replaced for room.")
    );
    assert_eq!(charts(&page)[5]["series"], serde_json::json!(["L2 hits", "directory evictions (entries)"]));
}

#[test]
fn no_string_of_a_document_becomes_part_of_the_page() {
    let (page, clean) = (live(&fixture::hostile(HOSTILE)), live(&fixture::document()));
    let (still, clean_still) = (html(&fixture::hostile(HOSTILE)), html(&fixture::document()));
    for (page, clean) in [(&page, &clean), (&still, &clean_still)] {
        for tag in ["<script", "</script", "<style", "<img", "<title", "<!--"] {
            assert_eq!(page.matches(tag).count(), clean.matches(tag).count(), "{tag}");
        }
    }
    assert!(page.contains("&lt;script&gt;owned()"));
    assert_eq!(charts(&page)[1]["labels"][0], HOSTILE, "the script gets it as it is");
}

#[test]
fn a_figure_without_numbers_says_so() {
    for figure in [
        Figure::default(),
        figure(ChartKind::Bars, 0, 3, None),
        figure(ChartKind::Lines, 3, 3, None),
        figure(ChartKind::Scatter, 3, 2, Some(f64::NAN)),
        figure(ChartKind::Stacked, 3, 0, None),
    ] {
        let page = page_with(figure);
        assert!(page.contains("There is nothing to draw"));
        assert!(!page.contains("class=\"chart\"") && charts(&page)[0]["drawn"] == false);
    }
}

#[test]
fn a_missing_number_is_a_dash_and_a_gap() {
    let mut some = figure(ChartKind::Bars, 2, 2, Some(1.5));
    some.rows[1].values = vec![None, Some(f64::INFINITY)];
    let page = page_with(some);
    assert_eq!(page.matches("<td>–</td>").count(), 2);
    assert_eq!(charts(&page)[0]["values"], serde_json::json!([[1.5, 1.5], [null, null]]));
}

#[test]
fn a_row_that_is_too_short_or_too_long_does_no_harm() {
    let mut ragged = figure(ChartKind::Lines, 2, 2, Some(1.5));
    ragged.rows[0].values.pop();
    ragged.rows[1].values.push(Some(7.0));
    assert_eq!(charts(&page_with(ragged))[0]["values"], serde_json::json!([[1.5, null], [1.5, 1.5]]));
}

#[test]
fn a_large_report_is_small() {
    let mut document = fixture::document();
    document.figures = (0..60).map(|_| figure(ChartKind::Bars, 60, 8, Some(0.123_456_789_123))).collect();
    document.claims = fixture::document().claims.into_iter().cycle().take(400).collect();
    let page = html(&document);
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    assert!(html(&fixture::document()).len() < 100_000, "a page of drawings can be mailed");
}

#[test]
fn several_documents_share_one_page() {
    let mut other = fixture::document();
    (other.paper, other.title) = ("gps".into(), "GPS".into());
    let page = interactive(&[fixture::document(), other.clone()]);
    let still = html_all(&[fixture::document(), other]);
    assert!(still.contains("id=\"gps-r1\"") && still.matches("id=\"hatch-1\"").count() == 1);
    assert!(page.contains("id=\"hmg-figure-8\"") && page.contains("id=\"gps-figure-8\""));
    assert!(page.contains("<title>2 reports</title>"));
    assert_eq!(charts(&page).as_array().map(Vec::len), Some(18));
    assert!(page.len() < live(&fixture::document()).len() + 200_000, "the library is there once");
}
