//! The page as text: what it holds, that nothing in a document can become part of the page, and its size.

mod fixture;

use tombolo_report::document::{ChartKind, Figure, Published, Row};
use tombolo_report::{Document, html, html_all};

#[test]
fn dump() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("report.html"), html(&fixture::document())).unwrap();
    std::fs::write(folder.join("report.json"), serde_json::to_string(&fixture::document()).unwrap()).unwrap();
    println!("{}", tombolo_report::text(&fixture::document(), 100));
}
