//! Tests figure files for papers, and the drawings on pages.

use crate::fixture;
use tombolo_report::document::{Chart, ChartKind, Figure, FigureRow};
use tombolo_report::{Document, FigureFiles, csv, figures, html};

/// Minimum width of a bar in CSS pixels, minus the strip that separates adjacent bars.
const LEAST_BAR: f64 = 7.6;

fn files(name: &str) -> FigureFiles {
    let all = figures(&fixture::document());
    all.into_iter().find(|files| files.name == name).unwrap_or_else(|| panic!("{name} is drawn"))
}

/// Returns the widths of the rectangles in a drawing, in order, without hatch rectangles.
fn widths(svg: &str) -> Vec<f64> {
    let svg = svg.split_once("</defs>").map_or(svg, |(_, drawn)| drawn);
    let paths = svg.split("<path d=\"M").skip(1);
    let width = |path: &str| {
        let data = path.split('"').next()?;
        let (_, rest) = data.split_once('h')?;
        let (width, rest) = rest.split_once('v')?;
        rest.ends_with('z').then(|| width.parse().ok())?
    };
    paths.filter_map(width).collect()
}

fn one(kind: ChartKind, rows: usize, columns: usize) -> Figure {
    let row = |row: usize| FigureRow {
        label: format!("workload {row}"),
        values: (0..columns).map(|column| Some(1.0 + (row * column % 7) as f64)).collect(),
        summary: row + 1 == rows,
        at: None,
    };
    Figure {
        id: "f".into(),
        title: "A figure".into(),
        chart: Chart { kind, reference: Some(1.0), ..Chart::default() },
        columns: (0..=columns).map(|column| format!("column {column}")).collect(),
        rows: (0..rows).map(row).collect(),
        ..Figure::default()
    }
}

fn svg(figure: Figure) -> String {
    let mut all = figures(&Document { figures: vec![figure], ..Document::default() });
    all.remove(0).svg
}

#[test]
fn every_figure_that_is_drawn_is_three_files_and_a_table_is_none() {
    let names: Vec<String> = figures(&fixture::document()).into_iter().map(|files| files.name).collect();
    let drawn = ["figure-2", "figure-8", "figure-11", "figure-12", "counters", "validation", "both"];
    assert_eq!(names, drawn, "neither what has no numbers nor a table");
    let twice = Document { figures: vec![one(ChartKind::Bars, 2, 1); 2], ..Document::default() };
    assert_eq!(figures(&twice).into_iter().map(|files| files.name).collect::<Vec<_>>(), ["f", "f-2"]);
}

#[test]
fn a_drawing_is_as_wide_as_a_column_or_as_both() {
    for files in figures(&fixture::document()) {
        let (_, rest) = files.svg.split_once("width=\"").expect("a width");
        let inches: f64 = rest.split_once("in\"").expect("in inches").0.parse().expect("a number");
        assert!(inches <= 7.001, "{}: {inches}", files.name);
        assert!(files.svg.contains("font-size=\"10.7\""), "8 points");
        assert!(!files.svg.contains("var(--") && !files.svg.contains("<a "), "it stands alone");
    }
}

#[test]
fn no_bar_is_too_thin_to_be_seen_however_many_there_are() {
    for (rows, columns) in [(1, 1), (21, 5), (17, 18), (3, 60), (120, 3)] {
        for kind in [ChartKind::Bars, ChartKind::Stacked] {
            let bars: Vec<f64> =
                widths(&svg(one(kind, rows, columns))).into_iter().filter(|width| *width < 60.0).collect();
            assert!(bars.len() >= rows, "{rows}, {columns}: {}", bars.len());
            assert!(bars.iter().all(|width| *width >= LEAST_BAR), "{rows}, {columns}: {bars:?}");
        }
    }
}

#[test]
fn numbers_on_a_logarithmic_axis_are_points() {
    let files = files("counters");
    assert!(!files.svg.contains("url(#hatch"), "no bar");
    assert!(files.tex.contains("ymode=log") && !files.tex.contains("\\addplot[ybar"), "{}", files.tex);
}

#[test]
fn means_have_their_numbers_and_bars_what_the_paper_states() {
    let files = files("figure-8");
    for mean in ["1.30", "1.42", "1.40", "1.54", "1.53"] {
        assert!(files.svg.contains(&format!(">{mean}</text>")), "{mean}");
    }
    // A diamond in the legend, and four more diamonds on bars.
    assert_eq!(files.svg.matches("stroke-width=\"1.2\"").count(), 5);
    assert!(files.svg.contains("stated by the paper") && files.svg.contains(">bfs †<"));
    assert_eq!(files.svg.matches("stroke-width=\"1\" fill=\"none\"").count(), 5, "a whisker on each mean");
}

#[test]
fn a_line_says_where_its_axis_begins_and_ends_at_a_missing_number() {
    let files = files("figure-12");
    assert!(files.svg.contains("Speed-up, from 0.8"), "{}", files.svg);
    let lines = files.svg.split("<path d=\"M").filter(|path| path.contains("stroke-width=\"1.6\" fill=\"none\""));
    let moves = lines.map(|path| path.split('"').next().expect("data").matches('M').count()).collect::<Vec<_>>();
    assert_eq!(moves, [0, 0, 0, 0, 1], "the last has a gap");
}

#[test]
fn a_cell_of_a_map_holds_its_number_and_one_without_is_empty() {
    let files = files("both");
    assert_eq!(files.svg.matches("pointer-events").count(), 8);
    assert!(files.svg.contains(">1.80</text>") && files.svg.contains("fill=\"#fee838\""), "{}", files.svg);
}

#[test]
fn a_bar_of_a_page_leads_to_its_run() {
    let document = fixture::document();
    let page = html(&document);
    for run in 1..=10 {
        assert!(page.contains(&format!("<a href=\"#hmg-r{run}\"><path")), "{run}");
        assert!(page.contains(&format!("<tr id=\"hmg-r{run}\">")), "{run}");
    }
    assert!(page.contains("tombolo run --machine hmg-4x4 --design d1 --workload w1 --scale 1/16"));
    let mut without = document;
    without.runs.rows.truncate(3);
    let page = html(&without);
    assert!(page.contains("#hmg-r3\"") && !page.contains("#hmg-r4\""), "a run that is not there is no address");
}

#[test]
fn a_file_of_numbers_has_every_digit_and_as_many_cells_in_each_line() {
    let document = fixture::document();
    let text = csv(&document.figures[1]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 22);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    assert_eq!(lines[0][1], "Software; flat", "no cell holds a comma");
    assert!(lines[0].contains(&"HMG (least)") && lines[0].contains(&"HMG (stated by the paper)"));
    let first = document.figures[1].rows[0].values[0].expect("a number");
    assert_eq!(lines[1][1].parse(), Ok(first));
    assert_eq!((lines[10][2], lines[9].last().map(|cell| cell.starts_with("its work"))), ("nan", Some(true)));
}

#[test]
fn source_for_latex_reads_columns_that_the_file_of_numbers_has() {
    for FigureFiles { name, csv, tex, .. } in figures(&fixture::document()) {
        assert!(tex.contains(&format!("{{\\figures {name}.csv}}")), "{name}");
        let columns = csv.lines().next().expect("a head").split(',').count();
        let indices = tex.split("index=").skip(1).chain(tex.split("thisrowno{").skip(1));
        let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().expect("digits").parse::<usize>();
        assert!(indices.map(number).all(|index| index.expect("a number") < columns), "{name}");
        let depth = tex.replace("\\{", "").replace("\\}", "");
        assert_eq!(depth.matches('{').count(), depth.matches('}').count(), "{name}");
    }
}

#[test]
fn text_of_a_document_is_text_in_every_file() {
    let hostile = "</svg><script>owned()</script>\\input{x}%#_&$^~{}\"',\u{1}\n";
    for FigureFiles { svg, csv, tex, .. } in figures(&fixture::hostile(hostile)) {
        assert!(!svg.contains("<script") && svg.matches("</svg>").count() == 1 && !svg.contains('\u{1}'));
        let (title, source) = tex.split_once('\n').expect("lines");
        assert!(title.starts_with("% ") && !source.contains("\\input{x}"), "{tex}");
        assert!(tex.contains("\\textbackslash{}input\\{x\\}\\%\\#\\_"), "{tex}");
        assert!(
            csv.lines().all(|line| line.split(',').count() == csv.lines().next().expect("a head").split(',').count())
        );
    }
}

#[test]
fn a_series_with_a_look_of_its_own_has_it_in_every_figure() {
    let with = |looks: Vec<usize>| {
        let figure = one(ChartKind::Stacked, 2, looks.len());
        svg(Figure { chart: Chart { looks, ..figure.chart }, ..figure })
    };
    let colours = ["#0072b2", "#e69f00", "#009e73", "#d55e00"];
    let found = |svg: &str| colours.map(|colour| svg.contains(colour));
    assert_eq!(found(&with(vec![0, 3])), [true, false, false, true]);
    assert_eq!(found(&with(vec![3])), [false, false, false, true]);
    assert_eq!(found(&svg(one(ChartKind::Stacked, 2, 2))), [true, true, false, false]);
}

#[test]
fn odd_figures_are_drawn_too() {
    let numbers = [Some(1e12), Some(-1.0), Some(1e-9), Some(0.0), None, Some(3.5), Some(-1e6), Some(f64::NAN)];
    for kind in [ChartKind::Bars, ChartKind::Lines, ChartKind::Stacked, ChartKind::Scatter, ChartKind::Heat] {
        for (log, rows) in [(false, 1), (true, 1), (false, 90), (true, 90)] {
            let mut figure = one(kind, rows, 12);
            figure.chart.log_y = log;
            for (row, line) in figure.rows.iter_mut().enumerate() {
                line.values = (0..12).map(|column| numbers[(row * 5 + column) % numbers.len()]).collect();
            }
            let svg = svg(figure);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{kind:?}, {log}, {rows}");
        }
    }
}
