//! Tokeniser for a line of text.

use crate::trace::error::Mismatch;

/// Reads blank-separated tokens from a line.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: line }
    }

    /// The unread rest of the line.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Drops the first `count` bytes from the rest.
    pub(super) fn skip(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    /// Moves to the next token; returns true if another token exists.
    #[inline]
    pub(super) fn at_token(&mut self) -> bool {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        !self.rest.is_empty()
    }

    /// Reads the next token, if any.
    #[inline]
    pub(super) fn token(&mut self) -> Option<&'a [u8]> {
        if !self.at_token() {
            return None;
        }
        let end = self.rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }

    /// Reads the next token; a missing token is an error.
    #[inline]
    pub(super) fn expect(&mut self, what: &str) -> Result<&'a [u8], Mismatch> {
        self.token().ok_or_else(|| Mismatch::end(what))
    }

    /// Reads a hexadecimal number with at most `digits` digits, with or without `0x`.
    #[inline]
    pub(super) fn hex(&mut self, digits: usize, what: &str) -> Result<u64, Mismatch> {
        let token = self.expect(what)?;
        hex(token, digits).ok_or_else(|| Mismatch::new(what, token))
    }

    /// Reads a signed decimal number.
    #[inline]
    pub(super) fn signed(&mut self, what: &str) -> Result<i64, Mismatch> {
        let token = self.expect(what)?;
        signed(token).ok_or_else(|| Mismatch::new(what, token))
    }

    /// Reads an unsigned decimal number up to `most`.
    #[inline]
    pub(super) fn count(&mut self, most: u64, what: &str) -> Result<u64, Mismatch> {
        let token = self.expect(what)?;
        match decimal(token) {
            Some(number) if number <= most => Ok(number),
            _ => Err(Mismatch::new(format!("{what} (0 to {most})"), token)),
        }
    }

    /// Checks that nothing follows on the line.
    pub(super) fn end(&mut self, after: &str) -> Result<(), Mismatch> {
        match self.token() {
            None => Ok(()),
            Some(token) => Err(Mismatch::new(format!("the end of the line after {after}"), token)),
        }
    }
}

/// Strips blanks and quotes around `text`, including nested and escaped quotes.
pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii();
    while let [b'"', inner @ .., b'"']
    | [b'\'', inner @ .., b'\'']
    | [b'`', inner @ .., b'`']
    | [b'\\', b'"', inner @ .., b'\\', b'"'] = text
    {
        text = inner.trim_ascii();
    }
    text
}

/// Parses a hexadecimal number with at most `digits` (16 or fewer) digits, with or without `0x`.
#[inline]
pub(super) fn hex(token: &[u8], digits: usize) -> Option<u64> {
    let token = token.strip_prefix(b"0x").unwrap_or(token);
    if token.is_empty() || token.len() > digits {
        return None;
    }
    let mut value = 0_u64;
    for byte in token {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return None,
        };
        value = value << 4 | u64::from(digit);
    }
    Some(value)
}

/// Parses an unsigned decimal number.
#[inline]
pub(super) fn decimal(token: &[u8]) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Parses a signed decimal number. A number above `i64::MAX` is read as a 64-bit two's complement, because tracers
/// print immediates in either form.
#[inline]
pub(super) fn signed(token: &[u8]) -> Option<i64> {
    match token {
        [b'-', digits @ ..] => {
            decimal(digits).filter(|value| *value <= 1 << 63).map(|value| (value as i64).wrapping_neg())
        }
        digits => decimal(digits).map(|value| value as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_around_a_text_go_and_those_within_stay() {
        for (text, inner) in [
            ("(2,1,1)", "(2,1,1)"),
            ("\"(2,1,1)\" ", "(2,1,1)"),
            ("\"'16'\"", "16"),
            ("\"\\\"16\\\"\"", "16"),
            ("\"\"k\"\"", "k"),
            ("f<\"a\">", "f<\"a\">"),
            ("\"k", "\"k"),
            ("\"", "\""),
            ("\"\"", ""),
        ] {
            assert_eq!(unquoted(text.as_bytes()), inner.as_bytes(), "{text}");
        }
        let many = vec![b'"'; 1 << 20];
        assert_eq!(unquoted(&many), b"", "a line of quotes alone takes no stack");
    }

    #[test]
    fn numbers_are_read_to_their_limits() {
        assert_eq!(hex(b"0x00007f1269c00000", 16), Some(0x7f12_69c0_0000));
        assert_eq!(hex(b"ffffffff", 8), Some(0xffff_ffff));
        assert_eq!(hex(b"1ffffffff", 8), None);
        assert_eq!(hex(b"0x", 8), None);
        assert_eq!(signed(b"-264"), Some(-264));
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"18446744073709551615"), Some(-1));
        assert_eq!(signed(b"18446744073709551616"), None);
        assert_eq!(signed(b"-"), None);
        assert_eq!(decimal(b"4294967296"), Some(1 << 32));
    }
}
