//! Command-line words and experiment-file words that name several items, separated by commas.

/// An item named in a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordItem<'a> {
    /// Original spelling of the item, including any quotes.
    pub(crate) written: &'a str,
    /// Text without the quotes.
    pub(crate) text: String,
    /// Index in `text` of the first equals sign outside quotes.
    pub(crate) equals: Option<usize>,
}

/// Splits a word into its trimmed parts. A comma outside double quotes separates; two double quotes within quotes
/// represent a single quote. `None` if a quote is not closed.
pub(crate) fn parts(word: &str) -> Option<Vec<WordItem<'_>>> {
    let (mut found, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, c) in word.char_indices() {
        match c {
            // For two quotes within quotes, the first closes and the second opens again.
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                found.push(part(word[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(part(word[start..].trim()));
    (!is_quoted).then_some(found)
}

fn part(written: &str) -> WordItem<'_> {
    let (mut text, mut equals, mut is_quoted) = (String::new(), None, false);
    let mut rest = written.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                text.push('"');
            }
            '"' => is_quoted = !is_quoted,
            _ => {
                if c == '=' && !is_quoted {
                    equals = equals.or(Some(text.len()));
                }
                text.push(c);
            }
        }
    }
    WordItem { written, text, equals }
}

/// Returns `text` in quotes, if required for a part or for the end of a part.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = !text.contains([',', '"']) && text.trim() == text;
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(word: &str) -> Option<Vec<String>> {
        parts(word).map(|parts| parts.into_iter().map(|part| part.text).collect())
    }

    fn strings<const N: usize>(texts: [&str; N]) -> Option<Vec<String>> {
        Some(texts.map(str::to_owned).to_vec())
    }

    #[test]
    fn a_comma_within_quotes_is_text() {
        assert_eq!(texts("a, b=1 ,c"), strings(["a", "b=1", "c"]));
        assert_eq!(texts("trace:\"x, y\",z"), strings(["trace:x, y", "z"]));
        assert_eq!(texts("g=\"a\"\"b\""), strings(["g=a\"b"]));
        assert_eq!(texts("a,"), strings(["a", ""]));
        assert_eq!(texts("trace:\"x"), None);
    }

    #[test]
    fn an_equals_sign_within_quotes_is_text() {
        let equals = |word| parts(word).unwrap()[0].equals;
        assert_eq!((equals("a=b=c"), equals("\"a=b\""), equals("a")), (Some(1), None, None));
    }

    #[test]
    fn what_is_quoted_is_read_as_it_was() {
        for text in ["plain", "a,b", "a\"b", " blank ", "a=b", "\"", ""] {
            assert_eq!(texts(&quoted(text)), strings([text]), "{text:?}");
        }
    }
}
