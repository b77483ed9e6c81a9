//! Cuts the text of a litmus file into tokens.

use super::error::{LitmusError, TextPosition};
use super::program::Value;
use std::fmt;
use std::sync::Arc;

/// Kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Word(String),
    /// A number without its sign.
    Number(Value),
    /// Quoted text, which may span lines.
    Text,
    /// A symbol from [`SYMBOLS`].
    Symbol(&'static str),
    /// The end of the file.
    End,
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Word(word) => write!(f, "`{word}`"),
            TokenKind::Number(number) => write!(f, "`{number}`"),
            TokenKind::Text => f.write_str("quoted text"),
            TokenKind::Symbol(symbol) => write!(f, "`{symbol}`"),
            TokenKind::End => f.write_str("the end of the file"),
        }
    }
}

/// A token and its start position.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// All symbols; longer symbols precede their prefixes.
const SYMBOLS: [&str; 25] = [
    "/\\", "\\/", "==", "!=", "<=", ">=", "=", "<", ">", "~", "{", "}", "(", ")", "[", "]", ";", ":", ",", ".", "@",
    "|", "&", "-", "+",
];

/// Reason why tests for herd's GPU models are rejected.
const GPU_PTX: &str =
    "the older GPU_PTX form of herd, whose scope tree and cache operators came before PTX had a memory model";

/// The tokens in a litmus file after its first line, and the name on the first line.
pub(super) struct TokenizedFile {
    pub(super) name: String,
    pub(super) tokens: Vec<Token>,
}

/// Cuts `text` into tokens; the last token is [`TokenKind::End`].
pub(super) fn lex(file: &Arc<str>, text: &str) -> Result<TokenizedFile, LitmusError> {
    let mut cursor =
        Cursor { file, rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1, column: 1, tokens: Vec::new() };
    let name = cursor.header()?;
    cursor.advance(opening(cursor.rest).unwrap_or(0));
    while cursor.token()? {}
    Ok(TokenizedFile { name, tokens: cursor.tokens })
}

struct Cursor<'a> {
    file: &'a Arc<str>,
    rest: &'a str,
    line: u32,
    column: u32,
    tokens: Vec<Token>,
}

impl Cursor<'_> {
    fn error(&self, expected: &str, found: String) -> LitmusError {
        let place = TextPosition { file: self.file.clone(), line: self.line, column: self.column };
        LitmusError::Syntax { place, expected: expected.to_owned(), found }
    }

    /// Describes the text at the cursor, for an error message.
    fn found(&self) -> String {
        match self.rest.chars().next() {
            Some(character) => format!("`{}`", character.escape_default()),
            None => TokenKind::End.to_string(),
        }
    }

    /// Advances by `bytes` bytes and returns the skipped text.
    fn advance(&mut self, bytes: usize) -> &str {
        let (passed, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        for character in passed.chars() {
            if character == '\n' {
                self.line = self.line.saturating_add(1);
                self.column = 1;
            } else {
                self.column = self.column.saturating_add(1);
            }
        }
        passed
    }

    fn skip_blanks(&mut self) -> Result<(), LitmusError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with("(*") {
                return Ok(());
            }
            match self.rest.find("*)") {
                Some(end) => self.advance(end + 2),
                None => return Err(self.error("`*)` after `(*`", TokenKind::End.to_string())),
            };
        }
    }

    /// The first line: `PTX` and the name, which may contain any character.
    fn header(&mut self) -> Result<String, LitmusError> {
        self.skip_blanks()?;
        let line = self.rest.lines().next().unwrap_or("");
        let (language, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.split(['"', '{']).next().unwrap_or("").trim();
        if language.eq_ignore_ascii_case("gpu_ptx") {
            let place = TextPosition { file: self.file.clone(), line: self.line, column: self.column };
            return Err(LitmusError::Unsupported { place, name: language.to_owned(), reason: GPU_PTX });
        }
        if !language.eq_ignore_ascii_case("ptx") {
            let first: String = language.chars().take(20).collect();
            let shown = format!("`{}`", first.escape_default());
            let found = if self.rest.is_empty() { TokenKind::End.to_string() } else { shown };
            return Err(self.error("`PTX` and the name of the test", found));
        }
        if name.is_empty() {
            return Err(self.error("the name of the test after `PTX`", "the end of the line".to_owned()));
        }
        // The name is a slice of the line, therefore the address difference is its offset within the line.
        self.advance(name.as_ptr() as usize - line.as_ptr() as usize + name.len());
        Ok(name.to_owned())
    }

    fn push(&mut self, kind: TokenKind, bytes: usize) {
        self.tokens.push(Token { kind, line: self.line, column: self.column });
        self.advance(bytes);
    }

    /// Reads a token; returns false after the last token.
    fn token(&mut self) -> Result<bool, LitmusError> {
        self.skip_blanks()?;
        let Some(first) = self.rest.chars().next() else {
            self.push(TokenKind::End, 0);
            return Ok(false);
        };
        if first.is_ascii_alphabetic() || first == '_' {
            let length = span(self.rest, |character| character.is_ascii_alphanumeric() || character == '_');
            self.push(TokenKind::Word(self.rest[..length].to_owned()), length);
        } else if first.is_ascii_digit() {
            let length = span(self.rest, |character| character.is_ascii_alphanumeric());
            let number = self.number(&self.rest[..length])?;
            self.push(TokenKind::Number(number), length);
        } else if first == '"' {
            match self.rest[1..].find('"') {
                Some(end) => self.push(TokenKind::Text, end + 2),
                None => return Err(self.error("`\"` at the end of the quoted text", TokenKind::End.to_string())),
            }
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            self.push(TokenKind::Symbol(symbol), symbol.len());
        } else {
            return Err(self.error("a name, a number or a symbol of the litmus grammar", self.found()));
        }
        Ok(true)
    }

    fn number(&self, digits: &str) -> Result<Value, LitmusError> {
        let parsed = match digits.strip_prefix("0x") {
            Some(hex) => Value::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        parsed.map_err(|_| self.error("an integer of at most 63 bits", format!("`{digits}`")))
    }
}

/// Maximum closing braces examined in the search for the end of the initial values. Source: assumed, far more than a
/// header contains.
const BRACES: usize = 100;

/// Start of the initial values. Any text may precede them, including quotes within quotes and braces: the initial
/// values are the first text in braces followed by a placement.
fn opening(text: &str) -> Option<usize> {
    let opens = |(close, _): (usize, &str)| {
        let mut rest = past_blanks(&text[close + 1..]);
        while let Some(behind) = rest.strip_prefix(';') {
            rest = past_blanks(behind);
        }
        let thread = rest.strip_prefix('P').unwrap_or(rest);
        let digits = span(thread, |character| character.is_ascii_digit());
        let is_placement = digits > 0 && past_blanks(&thread[digits..]).starts_with('@');
        if is_placement { text[..close].rfind('{') } else { None }
    };
    text.match_indices('}').take(BRACES).find_map(opens).or_else(|| text.find('{'))
}

/// The remainder of `text` after leading blanks and complete comments.
fn past_blanks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some((_, behind)) = rest.strip_prefix("(*").and_then(|comment| comment.split_once("*)")) {
        rest = behind.trim_start();
    }
    rest
}

/// Length in bytes of the longest prefix in `text` with every character accepted by `inside`.
fn span(text: &str, inside: impl Fn(char) -> bool) -> usize {
    text.find(|character| !inside(character)).unwrap_or(text.len())
}
