//! Parser for the final condition.

use super::condition::{ComparisonOperator, Condition, Formula, Quantifier, Term};
use super::error::LitmusError;
use super::lexer::TokenKind;
use super::parser::{Parser, is_register};

/// Deepest nesting of parentheses and negations. Source: assumed; bounds the recursion.
const DEPTH: u32 = 100;

impl Parser {
    /// Parses `exists C`, `~exists C` or `forall C`, up to the file end.
    pub(super) fn condition(&mut self) -> Result<Condition, LitmusError> {
        let quantifier = self.quantifier()?;
        let formula = self.disjunction(DEPTH)?;
        self.take(";");
        match self.peek() {
            TokenKind::End => Ok(Condition { quantifier, formula }),
            _ => Err(self.expected("`/\\`, `\\/` or the end of the file")),
        }
    }

    fn quantifier(&mut self) -> Result<Quantifier, LitmusError> {
        let negated = self.negation();
        let quantifier = match self.peek() {
            TokenKind::Word(word) if word == "exists" && negated => Quantifier::NotExists,
            TokenKind::Word(word) if word == "exists" => Quantifier::Exists,
            TokenKind::Word(word) if word == "forall" && !negated => Quantifier::Forall,
            _ => return Err(self.expected(if negated { "`exists`" } else { "`exists`, `~exists` or `forall`" })),
        };
        self.step();
        Ok(quantifier)
    }

    fn negation(&mut self) -> bool {
        let found = self.sees("~") || self.sees_word("not");
        if found {
            self.step();
        }
        found
    }

    fn disjunction(&mut self, depth: u32) -> Result<Formula, LitmusError> {
        let first = self.conjunction(depth)?;
        let mut parts = vec![first];
        while self.take("\\/") {
            parts.push(self.conjunction(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Formula::Or(parts) })
    }

    fn conjunction(&mut self, depth: u32) -> Result<Formula, LitmusError> {
        let first = self.factor(depth)?;
        let mut parts = vec![first];
        while self.take("/\\") {
            parts.push(self.factor(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Formula::And(parts) })
    }

    fn factor(&mut self, depth: u32) -> Result<Formula, LitmusError> {
        if depth == 0 {
            return Err(self.expected(&format!("at most {DEPTH} nested parentheses and negations")));
        }
        if self.negation() {
            return Ok(Formula::Not(Box::new(self.factor(depth - 1)?)));
        }
        if self.take("(") {
            let inner = self.disjunction(depth - 1)?;
            self.expect(")")?;
            return Ok(inner);
        }
        let left = self.term()?;
        let comparison = self.comparison()?;
        Ok(Formula::Compare(comparison, left, self.term()?))
    }

    fn comparison(&mut self) -> Result<ComparisonOperator, LitmusError> {
        let TokenKind::Symbol(found) = *self.peek() else {
            return Err(self.expected("a comparison (== != < <= > >=)"));
        };
        let written = if found == "=" { "==" } else { found };
        let known = ComparisonOperator::ALL.iter().find(|(_, symbol, _)| *symbol == written);
        let (comparison, _, _) = *known.ok_or_else(|| self.expected("a comparison (== != < <= > >=)"))?;
        self.step();
        Ok(comparison)
    }

    /// Parses `P0:r1`, `0:r1` or `x`: a register or a location that exists in the test.
    pub(super) fn variable(&mut self) -> Result<Term, LitmusError> {
        if *self.peek_second() != TokenKind::Symbol(":") {
            return self.known_location().map(Term::Location);
        }
        let at = self.at;
        let number = self.thread_number()?;
        let thread = self.thread_index(number, at)?;
        self.expect(":")?;
        let (at, known) = (self.at, self.registers_of(thread));
        let register = self.register(thread)?;
        if usize::from(register.0) >= known {
            return Err(self.expected_at(at, "a register that the thread has"));
        }
        Ok(Term::Register(thread, register))
    }

    /// Parses `P0:r1`, `0:r1`, `x`, `[x]` or an integer.
    fn term(&mut self) -> Result<Term, LitmusError> {
        const EXPECTED: &str = "a register with its thread (P0:r1), a location or an integer";
        if *self.peek_second() == TokenKind::Symbol(":") {
            return self.variable();
        }
        if self.take("[") {
            let location = self.known_location()?;
            self.expect("]")?;
            return Ok(Term::Location(location));
        }
        match self.peek() {
            TokenKind::Word(word) if is_register(word) => Err(self.expected(EXPECTED)),
            TokenKind::Word(_) => self.known_location().map(Term::Location),
            _ => self.integer(EXPECTED).map(Term::Value),
        }
    }
}
