//! Errors in litmus files.

use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A position in a litmus file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// Name of the file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl TextPosition {
    /// The position behind `text`, a prefix of `file`.
    pub fn behind(file: Arc<str>, text: &str) -> TextPosition {
        let last = text.rsplit('\n').next().unwrap_or_default();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        TextPosition { file, line: number(text.matches('\n').count()), column: number(last.chars().count()) }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Reason why a litmus test could not be read.
#[derive(Debug, Error)]
pub enum LitmusError {
    /// The text violates the grammar, or names something that does not exist.
    #[error("{place}: expected {expected}, found {found}")]
    Syntax {
        /// Position.
        place: TextPosition,
        /// The allowed alternatives.
        expected: String,
        /// The text found instead.
        found: String,
    },
    /// The instruction is not PTX: NVIDIA's assembler rejects it. The message names the violated rule.
    #[error("{place}: `{name}` is not PTX: {reason}")]
    Illegal {
        /// Position.
        place: TextPosition,
        /// The construct.
        name: String,
        /// Rule that it breaks.
        reason: String,
    },
    /// The text is legal in the wider PTX litmus test corpus, but this reader does not support it.
    #[error("{place}: `{name}` is not supported: {reason}")]
    Unsupported {
        /// Position.
        place: TextPosition,
        /// The construct.
        name: String,
        /// Reason.
        reason: &'static str,
    },
    /// The file could not be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// Cause.
        source: std::io::Error,
    },
}

impl LitmusError {
    /// Name of the recognised but unsupported construct, if this is the error.
    pub fn unsupported(&self) -> Option<&str> {
        match self {
            LitmusError::Unsupported { name, .. } => Some(name),
            LitmusError::Syntax { .. } | LitmusError::Illegal { .. } | LitmusError::Unreadable { .. } => None,
        }
    }
}
