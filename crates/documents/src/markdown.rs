//! The subset of Markdown that documents need: fenced blocks, the markers above them, and tables.

use crate::marker::{Marker, RunMode};
use std::ops::Range;

/// Number of lines before a table's body: the heading row and the row of dashes.
const HEAD_LINES: usize = 2;

/// A passage in a document that a marker makes live.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Line number of the marker, from 0.
    pub(crate) line: usize,
    pub(crate) kind: PassageKind,
}

/// Kinds of live passages. Ranges are line numbers, from 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PassageKind {
    /// Commands to run, with the output shown below them.
    Run { mode: RunMode, commands: String, output: Option<ShownOutput> },
    /// A file that later commands in the document read.
    File { name: String, text: String },
    /// Commands that write a report to `from`, which is kept as `name`.
    Keep { name: String, from: String, commands: String },
    /// Table rows that are built from kept results.
    Table { marker: Marker, body: Range<usize> },
}

/// A block of shown output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShownOutput {
    /// Line numbers, without the fences.
    pub(crate) lines: Range<usize>,
    /// True if only some output lines are shown: the text below begins with `(shortened)`.
    pub(crate) is_shortened: bool,
}

/// A non-blank piece of Markdown.
enum Item {
    /// Contents of a fenced block; `has_language` is set if the fence names a language.
    Block {
        lines: Range<usize>,
        has_language: bool,
    },
    Marker(Marker),
    Text,
}

/// Live passages in a document, in order, or the line (from 0) and the fault for the first malformed passage.
pub(crate) fn passages(lines: &[String]) -> Result<Vec<Passage>, (usize, String)> {
    let items = items(lines)?;
    let mut found = Vec::new();
    for (index, (line, item)) in items.iter().enumerate() {
        match item {
            Item::Marker(marker) => {
                let kind = passage(marker, &items[index + 1..], lines).map_err(|fault| (*line, fault))?;
                found.push(Passage { line: *line, kind });
            }
            Item::Block { lines: commands, .. } if shows_output(&items[index..], lines) => {
                let before = index.checked_sub(1).map(|before| &items[before].1);
                if !matches!(before, Some(Item::Marker(Marker::Run { .. } | Marker::Keep { .. }))) {
                    let told = "output of a command is shown, and no `<!-- run -->` stands above the command";
                    return Err((commands.start, told.to_owned()));
                }
            }
            Item::Block { .. } | Item::Text => {}
        }
    }
    Ok(found)
}

/// Line numbers (from 0) outside fenced blocks.
pub(crate) fn text_lines(lines: &[String]) -> impl Iterator<Item = usize> {
    let mut is_block = false;
    let is_text = move |line: &usize| {
        let is_fence = is_fence(&lines[*line]);
        is_block ^= is_fence;
        !is_block && !is_fence
    };
    (0..lines.len()).filter(is_text)
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```")
}

fn items(lines: &[String]) -> Result<Vec<(usize, Item)>, (usize, String)> {
    let mut items = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (line, first) = (&lines[at], at);
        at += 1;
        if is_fence(line) {
            let end = (at..lines.len()).find(|end| is_fence(&lines[*end]));
            let end = end.ok_or((first, "the block has no end".to_owned()))?;
            items.push((first, Item::Block { lines: at..end, has_language: line.len() > "```".len() }));
            at = end + 1;
        } else if let Some(opened) = line.strip_prefix("<!--") {
            let mut text = opened.to_owned();
            while !text.contains("-->") {
                let next = lines.get(at).ok_or((first, "the comment has no end".to_owned()))?;
                text = format!("{text} {next}");
                at += 1;
            }
            let inside = text.split("-->").next().unwrap_or_default();
            if let Some(marker) = Marker::parse(inside.trim()) {
                items.push((first, Item::Marker(marker.map_err(|fault| (first, fault))?)));
            }
        } else if !line.trim().is_empty() {
            items.push((first, Item::Text));
        }
    }
    Ok(items)
}

/// True if `items` begin with a block of commands and a block with their output.
fn shows_output(items: &[(usize, Item)], lines: &[String]) -> bool {
    let [(_, Item::Block { lines: commands, has_language: false }), (_, Item::Block { has_language: false, .. }), ..] =
        items
    else {
        return false;
    };
    lines[commands.clone()].first().is_some_and(|line| line.starts_with("tombolo ") || line.starts_with("cargo "))
}

fn passage(marker: &Marker, below: &[(usize, Item)], lines: &[String]) -> Result<PassageKind, String> {
    let text = |range: &Range<usize>| lines[range.clone()].iter().map(|line| format!("{line}\n")).collect::<String>();
    let block = || match below.first() {
        Some((_, Item::Block { lines, .. })) => Ok(lines.clone()),
        _ => Err("no fenced block stands below the marker".to_owned()),
    };
    Ok(match marker {
        Marker::Run { mode, command: Some(command) } => {
            let output = Some(output(block()?, &below[1..], lines));
            PassageKind::Run { mode: *mode, commands: format!("{command}\n"), output }
        }
        Marker::Run { mode, command: None } => {
            let output = match below.get(1) {
                Some((_, Item::Block { lines: shown, has_language: false })) => {
                    Some(output(shown.clone(), &below[2..], lines))
                }
                _ => None,
            };
            PassageKind::Run { mode: *mode, commands: text(&block()?), output }
        }
        Marker::File { name } => PassageKind::File { name: name.clone(), text: text(&block()?) },
        Marker::Keep { name, from } => {
            PassageKind::Keep { name: name.clone(), from: from.clone(), commands: text(&block()?) }
        }
        Marker::Table { .. } | Marker::Columns { .. } | Marker::Claims { .. } | Marker::Verdicts { .. } => {
            let body = body(below, lines).ok_or("no table with a head stands below the marker")?;
            PassageKind::Table { marker: marker.clone(), body }
        }
    })
}

fn output(shown: Range<usize>, below: &[(usize, Item)], lines: &[String]) -> ShownOutput {
    let says = |line: &String| line.to_lowercase().starts_with("(shortened");
    let is_shortened = below.first().is_some_and(|(line, _)| says(&lines[*line]));
    ShownOutput { lines: shown, is_shortened }
}

/// Body rows of the table at the start of `below`.
fn body(below: &[(usize, Item)], lines: &[String]) -> Option<Range<usize>> {
    let (first, Item::Text) = below.first()? else { return None };
    let rows = lines[*first..].iter().take_while(|line| line.starts_with('|')).count();
    (rows >= HEAD_LINES).then(|| first + HEAD_LINES..first + rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Passage>, (usize, String)> {
        passages(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    fn kinds(text: &str) -> Vec<PassageKind> {
        read(text).unwrap().into_iter().map(|passage| passage.kind).collect()
    }

    fn run(output: Option<(Range<usize>, bool)>) -> PassageKind {
        let output = output.map(|(lines, is_shortened)| ShownOutput { lines, is_shortened });
        PassageKind::Run { mode: RunMode::default(), commands: "tombolo a\n".to_owned(), output }
    }

    #[test]
    fn commands_are_followed_by_their_output() {
        let text = "<!-- run -->\n```\ntombolo a\n```\n\n```\nout\n```\ntext";
        assert_eq!(kinds(text), [run(Some((6..7, false)))]);
    }

    #[test]
    fn the_text_below_says_that_output_is_shortened() {
        let text = "<!-- run -->\n```\ntombolo a\n```\n```\nout\n```\n\n(Shortened.) More.";
        assert_eq!(kinds(text), [run(Some((5..6, true)))]);
    }

    #[test]
    fn output_behind_other_text_belongs_to_no_command() {
        assert_eq!(kinds("<!-- run -->\n```\ntombolo a\n```\ntext\n```\nout\n```"), [run(None)]);
    }

    #[test]
    fn a_command_may_stand_in_the_marker() {
        assert_eq!(kinds("<!-- run: tombolo a -->\n```\nout\n```"), [run(Some((2..3, false)))]);
    }

    #[test]
    fn output_without_a_marker_is_refused() {
        let (line, fault) = read("text\n```\ntombolo a\n```\n```\nout\n```").unwrap_err();
        assert_eq!(line, 2);
        assert!(fault.contains("<!-- run -->"), "{fault}");
    }

    #[test]
    fn a_table_has_its_rows_below_its_head() {
        let text = "<!-- verdicts: hmg -->\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n\ntext";
        let kinds = kinds(text);
        assert!(matches!(&kinds[..], [PassageKind::Table { body, .. }] if *body == (3..5)), "{kinds:?}");
        assert_eq!(read("<!-- verdicts: hmg -->\ntext").unwrap_err().0, 0);
    }

    #[test]
    fn blocks_are_no_text() {
        let lines: Vec<String> = "a\n```\nb\n```\nc".lines().map(str::to_owned).collect();
        assert_eq!(text_lines(&lines).collect::<Vec<_>>(), [0, 4]);
    }
}
