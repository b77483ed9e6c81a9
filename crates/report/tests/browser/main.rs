//! Tests the page in a real browser: all charts are drawn, the page fits phones and screens, reacts to keys and clicks,
//! and runs no script from a document. Drawings parse as SVG and stay within their edges. Skipped with a message if
//! Chromium is not installed.

#[path = "../report/fixture/mod.rs"]
mod fixture;

use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tombolo_report::document::{ChartKind, Figure, FigureRow};
use tombolo_report::{Document, FigureFiles, figures, html, interactive};

/// Executable names of Chromium.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Widths of a phone, a tablet and a screen, in CSS pixels.
const WIDTHS: [u32; 3] = [400, 800, 1400];
/// Time limit for the browser: many times the duration on an idle machine.
const PATIENCE: Duration = Duration::from_secs(100);
/// Simulated milliseconds available to the page.
const BUDGET: &str = "--virtual-time-budget=20000";
/// Script that inspects a page in a frame and writes down its findings.
const PROBE: &str = include_str!("probe.js");

/// Script for inspecting drawings and writing down findings.
const DRAWINGS: &str = include_str!("drawings.js");
/// CSS pixels by which a drawing may extend beyond its edge. Source: assumed, half a stroke and a letter's overhang.
const OVER: f64 = 2.0;

/// Findings about a drawing.
#[derive(Debug, Deserialize)]
struct Drawing {
    /// Parse error for a drawing that is not SVG; empty for a valid drawing.
    broken: String,
    /// Distance between the drawing's extent and its edges, in CSS pixels; negative inside the edges.
    over: f64,
}

/// Findings of the probe.
#[derive(Deserialize)]
struct Findings {
    /// Number of charts drawn, for example `6 of 6`.
    charts: String,
    /// Number of shapes in each chart.
    shapes: Vec<usize>,
    /// Width of the page's content, and the frame's width.
    content: u32,
    frame: u32,
    /// Screen-reader text after a key press.
    reading: String,
    /// Tooltip after the key press.
    tip: String,
    /// Colours of bars before and after a series is switched off.
    series: (usize, usize),
    /// CSV file of the second figure.
    csv: String,
    /// True if a script from the document ran.
    owned: bool,
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|folder| BROWSERS.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!("no Chromium on this machine: the page was not tried in a browser");
    }
    found
}

/// Returns the browser's findings about the page of `document` in a frame with the given `width`, and its console
/// messages.
fn look(browser: &Path, document: &Document, width: u32) -> (Findings, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let escaped = interactive(std::slice::from_ref(document)).replace('&', "&amp;").replace('"', "&quot;");
    let frame =
        format!("<iframe id=\"frame\" style=\"width:{width}px;height:900px;border:0\" srcdoc=\"{escaped}\"></iframe>");
    let page = folder.path().join("probe.html");
    let probe =
        format!("<!doctype html><meta charset=\"utf-8\">{frame}<pre id=\"found\"></pre><script>{PROBE}</script>");
    fs::write(&page, probe).expect("written");
    let (dom, log) = dump(browser, folder.path(), &page);
    let findings = serde_json::from_str(&found(&dom, &log)).unwrap_or_else(|error| panic!("{error}; {log}"));
    (findings, log.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect())
}

/// Extracts the findings written by a probe into its page.
fn found(dom: &str, log: &str) -> String {
    let (_, rest) = dom.split_once("<pre id=\"found\">").unwrap_or_else(|| panic!("no page: {log}"));
    let (found, _) = rest.split_once("</pre>").expect("it ends");
    String::from_utf8(data_encoding::BASE64.decode(found.as_bytes()).expect("base 64")).expect("UTF-8")
}

/// Returns the browser's findings about the drawings in documents.
fn look_at_drawings(browser: &Path, documents: &[Document]) -> Vec<(String, Drawing)> {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<FigureFiles> = documents.iter().flat_map(figures).collect();
    let texts: Vec<&str> = files.iter().map(|files| files.svg.trim_start_matches(XML).trim()).collect();
    let json = serde_json::to_string(&texts).expect("strings").replace('<', "\\u003c");
    let page = folder.path().join("drawings.html");
    let probe = format!(
        "<!doctype html><meta charset=\"utf-8\"><body><script type=\"application/json\" id=\"drawings\">{json}</script>\
         <pre id=\"found\"></pre><script>{DRAWINGS}</script>"
    );
    fs::write(&page, probe).expect("written");
    let (dom, log) = dump(browser, folder.path(), &page);
    let drawings: Vec<Drawing> =
        serde_json::from_str(&found(&dom, &log)).unwrap_or_else(|error| panic!("{error}; {log}"));
    files.into_iter().map(|files| files.name).zip(drawings).collect()
}

/// First line of a drawing file.
const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// Returns the page's final DOM, and the browser's log.
fn dump(browser: &Path, folder: &Path, page: &Path) -> (String, String) {
    let (out, log) = (folder.join("out"), folder.join("log"));
    let create = |path: &Path| Stdio::from(fs::File::create(path).expect("created"));
    let mut child = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom", BUDGET])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--hide-scrollbars", "--window-size=1600,1000"])
        .arg(page)
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&log))
        .spawn()
        .expect("the browser starts");
    let start = Instant::now();
    while child.try_wait().expect("it can be waited for").is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().expect("it can be ended");
            child.wait().expect("it ends");
            panic!("the browser took more than {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("there")).into_owned();
    (read(&out), read(&log))
}

#[test]
fn every_chart_is_drawn_at_every_width_without_a_word_on_the_console() {
    let Some(browser) = browser() else { return };
    let document = fixture::document();
    for width in WIDTHS {
        let (found, console) = look(&browser, &document, width);
        assert_eq!(found.charts, "6 of 6", "{width}: {console:?}");
        assert!(
            found.shapes.len() == 6 && found.shapes.iter().all(|shapes| *shapes > 20),
            "{width}: {:?}",
            found.shapes
        );
        assert_eq!((found.content, found.frame), (width, width), "nothing sticks out");
        assert_eq!(console, Vec::<String>::new(), "{width}");
        answers(&found, &document);
    }
}

/// Checks the second figure's reactions to the End key, the legend and the button.
fn answers(found: &Findings, document: &Document) {
    assert!(found.reading.starts_with("geometric mean: Software, flat 1.302"), "{}", found.reading);
    assert!(found.reading.contains("the paper states 1.480 for HMG"), "{}", found.reading);
    assert!(found.tip.contains("geometric mean") && found.tip.contains("1.480"), "{}", found.tip);
    assert_eq!(found.series, (5, 4), "a series went");
    let lines: Vec<&str> = found.csv.lines().collect();
    let heads = "Workload,\"Software, flat\",\"Software, hierarchical\",NHCC,HMG,Ideal";
    assert!(lines[0].starts_with(heads) && lines[0].contains("HMG (paper)"), "{}", lines[0]);
    assert_eq!(lines.len(), 22);
    let first = document.figures[1].rows[0].values[0].expect("a number");
    assert_eq!(lines[1].split(',').nth(1).and_then(|cell| cell.parse().ok()), Some(first), "every digit");
    assert!(lines[10].starts_with("mst,") && lines[10].contains(",,"), "a missing number is an empty cell");
}

/// Figures of every kind, linear and logarithmic, with one row and with many, with numbers in all sizes, some missing.
fn odd_document() -> Document {
    let kinds = [ChartKind::Bars, ChartKind::Lines, ChartKind::Stacked, ChartKind::Scatter];
    let shapes = kinds.into_iter().flat_map(|kind| [false, true].map(|log| (kind, log)));
    let numbers = [Some(1e12), Some(-1.0), Some(1e-9), Some(0.0), None, Some(3.5), Some(-1e6)];
    let figure = |(kind, log, rows): (ChartKind, bool, usize)| {
        let mut figure = Figure { id: "odd".into(), title: format!("{kind:?}, {rows} rows"), ..Figure::default() };
        (figure.chart.kind, figure.chart.log_y, figure.chart.reference) = (kind, log, Some(-2.0));
        figure.columns = (0..=12).map(|column| format!("{column}: a head that is rather long")).collect();
        let row = |row: usize| FigureRow {
            label: format!("row {row} with a label that is rather long"),
            values: (0..12).map(|column| numbers[(row * 5 + column) % numbers.len()]).collect(),
            summary: row % 50 == 49,
            at: None,
        };
        figure.rows = (0..rows).map(row).collect();
        figure
    };
    let figures = shapes.flat_map(|(kind, log)| [1, 200].map(|rows| figure((kind, log, rows)))).collect();
    Document { figures, ..Document::default() }
}

#[test]
fn odd_figures_are_drawn_too() {
    let Some(browser) = browser() else { return };
    let (found, console) = look(&browser, &odd_document(), 400);
    assert_eq!(console, Vec::<String>::new());
    assert_eq!(found.charts, "16 of 16");
    assert_eq!((found.content, found.frame), (400, 400), "nothing sticks out");
}

#[test]
fn drawings_are_read_and_stay_within_their_edges() {
    let Some(browser) = browser() else { return };
    let mut long = fixture::document();
    for figure in &mut long.figures {
        figure.chart.y = "a title that is longer than the plot is high, twice or so".into();
        figure.rows.iter_mut().for_each(|row| row.label.push_str(", with a long label"));
    }
    let found = look_at_drawings(&browser, &[fixture::document(), long, odd_document()]);
    assert_eq!(found.len(), 30);
    let bad = found.iter().filter(|(_, drawing)| !drawing.broken.is_empty() || drawing.over > OVER);
    assert_eq!(bad.map(|one| format!("{one:?}")).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_page_of_drawings_fits_and_says_nothing_on_the_console() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    fs::write(&page, html(&fixture::document())).expect("written");
    let (dom, log) = dump(&browser, folder.path(), &page);
    assert_eq!(dom.matches("<svg xmlns").count(), 7);
    assert!(!log.contains(":CONSOLE"), "{log}");
}

#[test]
fn no_script_of_a_document_runs() {
    let Some(browser) = browser() else { return };
    let hostile =
        "</script></style></textarea><script>parent.owned=1</script><img src=x onerror='parent.owned=1'><b>{a|b}%";
    let (found, console) = look(&browser, &fixture::hostile(hostile), 1400);
    assert!(!found.owned);
    assert_eq!(found.charts, "6 of 6");
    assert!(found.tip.contains("<script>parent.owned=1</script>"), "shown as text: {}", found.tip);
    assert_eq!(console, Vec::<String>::new(), "nothing was even tried");
}
