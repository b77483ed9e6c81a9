//! Reads experiment files: every error names the file and the line.

use crate::error::SpecError;
use crate::spec::Text;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Largest accepted file size, in bytes. Source: assumed, a hundred times the largest shipped file.
const FILE_LIMIT: u64 = 1 << 20;

/// A file's name and text, for error messages.
#[derive(Clone, Debug)]
pub struct File {
    /// File name in messages.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

impl File {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read, is not a file, is too large, or is not UTF-8.
    pub fn open(path: &Path) -> Result<File, SpecError> {
        let unreadable = |reason: String| SpecError::Unreadable { path: path.to_owned(), reason };
        let found = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if !found.is_file() {
            return Err(unreadable("not a file".to_owned()));
        }
        if found.len() > FILE_LIMIT {
            return Err(unreadable(format!("{} bytes; an experiment has at most {FILE_LIMIT}", found.len())));
        }
        let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        let text =
            String::from_utf8(bytes).map_err(|error| unreadable(format!("not UTF-8: {}", error.utf8_error())))?;
        Ok(File { name: path.to_string_lossy().into_owned(), text })
    }

    /// Parses the file's contents.
    ///
    /// # Errors
    /// Returns an error if the text is not TOML, or has an unknown key or an invalid value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let found = self.text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
            let found = if found.is_empty() { String::new() } else { format!("{found}: ") };
            let message = format!("{found}{}", error.message().trim().replace('\n', "; "));
            SpecError::Syntax { file: self.name.clone(), line: self.line(span.start), message }
        })
    }

    /// Returns the line number of a byte offset, from 1.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Returns an error about the value of `key`.
    pub(crate) fn refuse(&self, key: &'static str, value: &Text, reason: impl Into<String>) -> SpecError {
        SpecError::Value {
            file: self.name.clone(),
            line: self.line(value.offset()),
            key,
            value: value.get().to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns an error about `key` as a whole.
    pub(crate) fn misshapen(&self, key: &'static str, reason: impl Into<String>) -> SpecError {
        SpecError::Shape { file: self.name.clone(), key, reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Suite;

    fn refusal(text: &str) -> String {
        let file = File { name: "x.toml".into(), text: text.into() };
        file.read::<Suite>().expect_err("it is wrong").to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_keys_there_are() {
        let message = refusal("description = \"x\"\n[[workload]]\nworkload = \"triad\"\nscael = \"1\"\n");
        assert!(message.starts_with("x.toml:4: scael"), "{message}");
        assert!(message.contains("`scale`"), "{message}");
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line_and_what_is_expected() {
        let message = refusal("description = 3\nworkload = []\n");
        assert!(message.starts_with("x.toml:1: 3: "), "{message}");
        assert!(message.contains("expected a string"), "{message}");
    }

    #[test]
    fn what_is_no_toml_is_an_error_with_its_line() {
        assert!(refusal("description = \"x\"\nworkload = [\n\n").starts_with("x.toml:"), "a list that does not end");
    }
}
