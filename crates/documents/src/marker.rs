//! Markers: HTML comments that describe the block or the table below them.

/// A parsed marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// `run`: the block below contains commands, and the next block their output. `run: COMMAND`: the block below is
    /// output.
    Run { mode: RunMode, command: Option<String> },
    /// `file NAME`: the block below is a file that commands read.
    File { name: String },
    /// `keep NAME from FILE`: the commands below write the report FILE, which is kept.
    Keep { name: String, from: String },
    /// `table NAME DIGITS: SOURCE; SOURCE`: a row for each row in the first figure, a column for each source.
    Table { name: String, digits: usize, sources: Vec<String> },
    /// `columns NAME DIGITS: SOURCE; SOURCE`: a row for each column in the first figure, a column for each source.
    Columns { name: String, digits: usize, sources: Vec<String> },
    /// `claims NAME DIGITS: ID ID`: a row for each claim: its text, the measured value, the paper's value.
    Claims { name: String, digits: usize, ids: Vec<String> },
    /// `verdicts: NAME NAME`: a row for each kept reproduction: its direction claims by verdict.
    Verdicts { names: Vec<String> },
}

/// Mode in which commands run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunMode {
    /// True if the commands run only with `--deep`.
    pub(crate) is_deep: bool,
    /// True if the commands must fail; the document then shows their error.
    pub(crate) fails: bool,
}

impl Marker {
    /// Parses the marker in a comment's text, without the comment brackets; `None` for any other comment.
    pub(crate) fn parse(text: &str) -> Option<Result<Marker, String>> {
        let (head, rest) = match text.split_once(": ") {
            Some((head, rest)) => (head, Some(rest.trim())),
            None => (text, None),
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let (&key, words) = words.split_first()?;
        let marker = match key {
            "run" => run(words, rest),
            "file" => file(words),
            "keep" => keep(words),
            "table" => {
                numbers(words, rest).map(|(name, digits, rest)| Marker::Table { name, digits, sources: sources(rest) })
            }
            "columns" => numbers(words, rest).map(|(name, digits, rest)| Marker::Columns {
                name,
                digits,
                sources: sources(rest),
            }),
            "claims" => {
                numbers(words, rest).map(|(name, digits, rest)| Marker::Claims { name, digits, ids: list(rest) })
            }
            "verdicts" if words.is_empty() => rest.map(|rest| Marker::Verdicts { names: list(rest) }),
            "verdicts" => None,
            _ => return None,
        };
        Some(marker.ok_or_else(|| format!("`{text}`: expected {}", expected(key))))
    }
}

fn expected(key: &str) -> &'static str {
    match key {
        "run" => "`run`, `run deep`, `run fails` or `run deep fails`, with `: COMMAND` where only output stands below",
        "file" => "`file NAME`",
        "keep" => "`keep NAME from FILE`",
        "table" => "`table NAME DIGITS: FIGURE > COLUMN; FIGURE > COLUMN`",
        "columns" => "`columns NAME DIGITS: FIGURE > ROW; FIGURE > ROW`",
        "claims" => "`claims NAME DIGITS: ID ID`",
        _ => "`verdicts: NAME NAME`",
    }
}

fn run(words: &[&str], rest: Option<&str>) -> Option<Marker> {
    let mode = match words {
        [] => RunMode::default(),
        ["deep"] => RunMode { is_deep: true, fails: false },
        ["fails"] => RunMode { is_deep: false, fails: true },
        ["deep", "fails"] => RunMode { is_deep: true, fails: true },
        _ => return None,
    };
    Some(Marker::Run { mode, command: rest.map(str::to_owned) })
}

fn file(words: &[&str]) -> Option<Marker> {
    let [name] = words else { return None };
    Some(Marker::File { name: (*name).to_owned() })
}

fn keep(words: &[&str]) -> Option<Marker> {
    let [name, "from", from] = words else { return None };
    Some(Marker::Keep { name: (*name).to_owned(), from: (*from).to_owned() })
}

fn numbers<'a>(words: &[&str], rest: Option<&'a str>) -> Option<(String, usize, &'a str)> {
    let [name, digits] = words else { return None };
    Some(((*name).to_owned(), digits.parse().ok()?, rest?))
}

fn sources(text: &str) -> Vec<String> {
    text.split(';').map(|source| list(source).join(" ")).collect()
}

fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_comments_are_no_markers() {
        assert_eq!(Marker::parse("a remark: on something"), None);
        assert_eq!(Marker::parse(""), None);
    }

    #[test]
    fn a_marker_that_lacks_something_says_what_is_expected() {
        for text in ["run often", "file", "keep a", "table a: b", "claims a x: b", "verdicts a", "table a 2"] {
            let fault = Marker::parse(text).unwrap().unwrap_err();
            assert!(fault.contains(text) && fault.contains("expected `"), "{fault}");
        }
    }

    #[test]
    fn sources_are_apart_by_semicolons() {
        let Some(Ok(Marker::Table { name, digits, sources })) = Marker::parse("table a 3: f > x; f > y,  z") else {
            panic!("a table")
        };
        assert_eq!((name.as_str(), digits, sources), ("a", 3, vec!["f > x".to_owned(), "f > y, z".to_owned()]));
    }

    #[test]
    fn a_command_follows_the_colon() {
        let mode = RunMode { is_deep: true, fails: true };
        let command = Some("tombolo run: x".to_owned());
        assert_eq!(Marker::parse("run deep fails: tombolo run: x"), Some(Ok(Marker::Run { mode, command })));
    }
}
