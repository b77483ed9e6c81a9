//! Compares output shown in a document with the printed output.

/// Placeholder for lines left out of a shortened output.
const LEFT_OUT: &str = "…";
/// Likeness score for equal lines: above the score for any two different lines.
const EQUAL: usize = 1000;

/// Splits text into lines without invisible parts: trailing blanks, and blank lines around the text.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    let is_text = |line: &String| !line.is_empty();
    let first = lines.iter().position(is_text).unwrap_or(lines.len());
    let last = lines.iter().rposition(is_text).map_or(first, |last| last + 1);
    lines[first..last].to_vec()
}

/// Checks that `shown` equals `printed`: all lines, or for a shortened output some lines in order.
///
/// # Errors
///
/// The first line that is not printed.
pub(crate) fn check(shown: &[String], printed: &[String], is_shortened: bool) -> Result<(), String> {
    let mut rest = printed.iter();
    for line in shown.iter().filter(|line| !(is_shortened && line.trim() == LEFT_OUT)) {
        let is_found = if is_shortened { rest.any(|one| one == line) } else { rest.next() == Some(line) };
        if !is_found {
            return Err(format!("shown, and not printed: {line}"));
        }
    }
    match rest.next() {
        Some(line) if !is_shortened => Err(format!("printed, and not shown: {line}")),
        _ => Ok(()),
    }
}

/// Text to show instead of `shown`: all lines in `printed`, or the printed lines most similar to the shown lines.
///
/// # Errors
///
/// A shown line without any similar printed line.
pub(crate) fn bless(shown: &[String], printed: &[String], is_shortened: bool) -> Result<Vec<String>, String> {
    if !is_shortened {
        return Ok(printed.to_vec());
    }
    let wanted: Vec<&String> = shown.iter().filter(|line| line.trim() != LEFT_OUT).collect();
    let matches = align(&wanted, printed)?;
    let mut matches = matches.into_iter();
    let line = |line: &String| {
        if line.trim() == LEFT_OUT { line.clone() } else { matches.next().unwrap_or_default() }
    };
    Ok(shown.iter().map(line).collect())
}

/// For each wanted line, finds the line from `printed` that replaces it, preserving order and maximising similarity.
fn align(wanted: &[&String], printed: &[String]) -> Result<Vec<String>, String> {
    // best[i][j]: the greatest likeness between the first i wanted lines and lines among the first j printed.
    let mut best: Vec<Vec<Option<usize>>> = vec![vec![Some(0); printed.len() + 1]];
    for line in wanted {
        let above = best.last().expect("never empty");
        let mut row = vec![None; printed.len() + 1];
        for (index, one) in printed.iter().enumerate() {
            let alike = likeness(line, one);
            let with = above[index].filter(|_| alike > 0).map(|before| before + alike);
            row[index + 1] = row[index].max(with);
        }
        if row[printed.len()].is_none() {
            return Err(format!("shown, and nothing like it is printed: {line}"));
        }
        best.push(row);
    }
    let (mut at, mut found) = (printed.len(), Vec::new());
    for row in best[1..].iter().rev() {
        // The first column that reaches the best score: the preceding printed line is the chosen match.
        let reached = row[at];
        at = (0..=at).find(|column| row[*column] == reached).expect("the column itself reaches it") - 1;
        found.push(printed[at].clone());
    }
    found.reverse();
    Ok(found)
}

/// Similarity score: counts words common to both lines, treating all numbers as equal; 0 if the lines share none.
fn likeness(one: &str, other: &str) -> usize {
    if one == other {
        return EQUAL;
    }
    let mut words: Vec<String> = other.split_whitespace().map(shape).collect();
    let mut shared = 0;
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    for word in one.split_whitespace().map(shape) {
        if let Some(index) = words.iter().position(|known| *known == word) {
            words.swap_remove(index);
            // A number carries little information: any line may contain one.
            shared += if word == "#" { 1 } else { 3 };
        }
    }
    if shared > 0 && first(one) == first(other) { shared + 3 } else { shared }
}

/// A word, or `#` if it contains a digit.
fn shape(word: &str) -> String {
    if word.contains(|c: char| c.is_ascii_digit()) { "#".to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        lines(text)
    }

    #[test]
    fn a_whole_output_is_equal_line_by_line() {
        assert_eq!(check(&of("a\nb"), &of("\na  \nb\n\n"), false), Ok(()));
        assert!(check(&of("a\nb"), &of("a\nc"), false).unwrap_err().ends_with(": b"));
        assert!(check(&of("a"), &of("a\nb"), false).unwrap_err().contains("not shown: b"));
        assert!(check(&of("a\nb"), &of("a"), false).is_err());
    }

    #[test]
    fn a_shortened_output_shows_some_lines_in_order() {
        let printed = of("a\nb\nc\nd");
        assert_eq!(check(&of("a\n  …\nd"), &printed, true), Ok(()));
        assert!(check(&of("d\na"), &printed, true).is_err());
        assert!(check(&of("a\nx"), &printed, true).unwrap_err().ends_with(": x"));
        assert!(check(&of("a\n…\nd"), &printed, false).is_err());
    }

    #[test]
    fn a_shortened_output_is_rewritten_line_by_line() {
        let shown = of("time  1.74 ms = 1.73 kernels\n…\ndigest  b6b9");
        let printed = of("machine  hmg\ntime  2.5 ms = 2.4 kernels\nL2  3 % hit\ndigest  00ff\nother  1");
        assert_eq!(bless(&shown, &printed, true).unwrap(), of("time  2.5 ms = 2.4 kernels\n…\ndigest  00ff"));
        assert_eq!(bless(&shown, &printed, false).unwrap(), printed);
    }

    #[test]
    fn a_line_that_nothing_resembles_is_told() {
        assert!(bless(&of("digest b6b9"), &of("time 3\nL2"), true).is_ok(), "a number is alike");
        assert!(bless(&of("digest"), &of("time 3\nL2"), true).unwrap_err().ends_with(": digest"));
    }

    #[test]
    fn lines_of_one_shape_keep_their_order() {
        let printed = of("time 1\nx\ntime 2\nx\ntime 3");
        assert_eq!(bless(&of("time 7\ntime 8\ntime 9"), &printed, true).unwrap(), of("time 1\ntime 2\ntime 3"));
    }
}
