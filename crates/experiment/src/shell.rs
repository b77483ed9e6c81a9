//! Quotes command-line words for a shell, to pass every word to a program unchanged.

/// Returns a word, in single quotes if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("a-b/c.toml"), "a-b/c.toml");
        assert_eq!(quoted("my sweep"), "'my sweep'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
