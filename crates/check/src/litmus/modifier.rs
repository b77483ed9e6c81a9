//! Parser for the dotted suffixes of an instruction: semantics, scope, state space.

use super::error::LitmusError;
use super::lexer::TokenKind;
use super::parser::Parser;
use super::ptx;
use super::value_type::ValueType;
use tombolo_types::{Order, Scope, Semantics};

/// Meaning of a semantics keyword.
#[derive(Clone, Copy)]
pub(super) enum OrderSpelling {
    /// Semantics and scope.
    Whole(Order),
    /// Semantics; a scope follows.
    Scoped(Semantics),
}

/// Keywords and their meanings.
pub(super) type Keywords<T> = &'static [(&'static str, T)];

const WEAK: (&str, OrderSpelling) = ("weak", OrderSpelling::Whole(Order::WEAK));
const RELAXED: (&str, OrderSpelling) = ("relaxed", OrderSpelling::Scoped(Semantics::Relaxed));
const ACQUIRE: (&str, OrderSpelling) = ("acquire", OrderSpelling::Scoped(Semantics::Acquire));
const RELEASE: (&str, OrderSpelling) = ("release", OrderSpelling::Scoped(Semantics::Release));
const BOTH: (&str, OrderSpelling) = ("acq_rel", OrderSpelling::Scoped(Semantics::AcquireRelease));
const SEQUENTIAL: (&str, OrderSpelling) = ("sc", OrderSpelling::Scoped(Semantics::SequentiallyConsistent));
/// Source: PTX ISA, ld and st: the memory synchronisation semantics of `.volatile` equal `.relaxed.sys`.
const VOLATILE: (&str, OrderSpelling) = ("volatile", OrderSpelling::Whole(Order::relaxed(Scope::Sys)));

pub(super) const LOAD: Keywords<OrderSpelling> = &[WEAK, RELAXED, ACQUIRE, VOLATILE];
pub(super) const STORE: Keywords<OrderSpelling> = &[WEAK, RELAXED, RELEASE, VOLATILE];
pub(super) const ATOMIC: Keywords<Semantics> = &[
    ("relaxed", Semantics::Relaxed),
    ("acquire", Semantics::Acquire),
    ("release", Semantics::Release),
    ("acq_rel", Semantics::AcquireRelease),
];
/// Source: PTX ISA, red: a reduction returns nothing, therefore it cannot acquire.
pub(super) const REDUCTION: Keywords<Semantics> = &[("relaxed", Semantics::Relaxed), ("release", Semantics::Release)];
const FENCE: Keywords<OrderSpelling> = &[BOTH, SEQUENTIAL, ACQUIRE, RELEASE];
/// Source: PTX ISA, membar: membar levels equal `fence.sc` levels.
const MEMBAR: Keywords<Scope> = &[("cta", Scope::Cta), ("gl", Scope::Gpu), ("sys", Scope::Sys)];

/// A scope as spelled in the text.
#[derive(Clone, Copy)]
enum SpelledScope {
    Fixed(Scope),
    /// Cluster scope; the thread's placement determines its extent.
    Cluster,
}

const SCOPES: Keywords<SpelledScope> = &[
    ("cta", SpelledScope::Fixed(Scope::Cta)),
    ("cluster", SpelledScope::Cluster),
    ("gpu", SpelledScope::Fixed(Scope::Gpu)),
    ("sys", SpelledScope::Fixed(Scope::Sys)),
];

/// Keywords with their dots, for messages. Used in lists of expected alternatives.
pub(super) fn listed<T>(words: Keywords<T>) -> String {
    let dotted: Vec<String> = words.iter().map(|(word, _)| format!(".{word}")).collect();
    dotted.join(", ")
}

impl Parser {
    /// Parses the order of a load or a store. `.weak` may be omitted.
    pub(super) fn access_order(
        &mut self,
        thread: usize,
        allowed: Keywords<OrderSpelling>,
    ) -> Result<Order, LitmusError> {
        let is_weak = !self.sees(".") || self.sees_modifier("global") || self.type_ahead().is_some();
        let order = if is_weak { Order::WEAK } else { self.order(thread, allowed)? };
        self.pass_state_space()?;
        Ok(order)
    }

    /// Integer type behind the dot at the cursor.
    fn type_ahead(&self) -> Option<ValueType> {
        self.modifier().and_then(ValueType::named)
    }

    /// Consumes a dot and an integer type, if they come next.
    pub(super) fn optional_type(&mut self) -> Option<ValueType> {
        let found = self.type_ahead()?;
        self.step();
        self.step();
        Some(found)
    }

    /// Parses the order of an atomic or a reduction, with semantics from `allowed`. Defaults for omitted parts (source:
    /// PTX ISA, atom and red): semantics `.relaxed`, scope `.gpu`. On the host the only scope, and the default, is
    /// `.sys`.
    pub(super) fn atomic_order(&mut self, thread: usize, allowed: Keywords<Semantics>) -> Result<Order, LitmusError> {
        let semantics = self.optional(allowed).unwrap_or(Semantics::Relaxed);
        let at = self.at;
        let scope = match self.optional(SCOPES) {
            Some(reach) => self.resolve(thread, reach, at)?,
            None if self.is_on_host(thread) => Scope::Sys,
            None => Scope::Gpu,
        };
        self.pass_state_space()?;
        Ok(Order::new(semantics, scope))
    }

    /// Parses the order of a fence. Default for omitted semantics (source: PTX ISA, fence): `.acq_rel`.
    pub(super) fn fence_order(&mut self, thread: usize) -> Result<Order, LitmusError> {
        let at = self.at;
        match self.optional(SCOPES) {
            Some(reach) => Ok(Order::new(Semantics::AcquireRelease, self.resolve(thread, reach, at)?)),
            None => self.order(thread, FENCE),
        }
    }

    /// Parses the order of a `membar`.
    pub(super) fn membar_order(&mut self, thread: usize) -> Result<Order, LitmusError> {
        let at = self.at;
        let reach = SpelledScope::Fixed(self.required(MEMBAR)?);
        Ok(Order::new(Semantics::SequentiallyConsistent, self.resolve(thread, reach, at)?))
    }

    fn order(&mut self, thread: usize, allowed: Keywords<OrderSpelling>) -> Result<Order, LitmusError> {
        match self.required(allowed)? {
            OrderSpelling::Whole(order) => {
                let scope = self.modifier().filter(|word| SCOPES.iter().any(|(known, _)| known == word));
                match scope {
                    None => Ok(order),
                    Some(word) => Err(self.illegal(self.at, &format!(".{word}"), ".weak and .volatile take no scope")),
                }
            }
            OrderSpelling::Scoped(semantics) => {
                let at = self.at;
                let reach = self.required(SCOPES)?;
                Ok(Order::new(semantics, self.resolve(thread, reach, at)?))
            }
        }
    }

    /// Resolves the scope for thread `thread`, spelled behind the dot at token `dot`.
    fn resolve(&self, thread: usize, reach: SpelledScope, dot: usize) -> Result<Scope, LitmusError> {
        match reach {
            SpelledScope::Fixed(Scope::Sys) => Ok(Scope::Sys),
            SpelledScope::Fixed(_) | SpelledScope::Cluster if self.is_on_host(thread) => {
                Err(self.expected_at(dot + 1, "sys: a host thread has no CTA and no GPU"))
            }
            SpelledScope::Fixed(scope) => Ok(scope),
            SpelledScope::Cluster => self.cluster_scope(thread, dot),
        }
    }

    /// Skips `.global`, which is redundant: all locations are global.
    fn pass_state_space(&mut self) -> Result<(), LitmusError> {
        if self.sees_modifier("global") {
            self.step();
            self.step();
        }
        self.refuse_modifiers_of_ptx()
    }

    /// Returns an error if the next modifier exists in PTX but is not supported by this reader.
    pub(super) fn refuse_modifiers_of_ptx(&self) -> Result<(), LitmusError> {
        if self.type_ahead().is_some() {
            return Ok(());
        }
        let known = self.modifier().and_then(|word| Some((word, ptx::modifier(word)?)));
        known.map_or(Ok(()), |(word, reason)| Err(self.unsupported(self.at, &format!(".{word}"), reason)))
    }

    /// The word behind a dot at the cursor.
    pub(super) fn modifier(&self) -> Option<&str> {
        match (self.peek(), self.peek_second()) {
            (TokenKind::Symbol("."), TokenKind::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(super) fn sees_modifier(&self, word: &str) -> bool {
        self.modifier() == Some(word)
    }

    /// Consumes a dot and a word from `allowed`, if they come next.
    fn optional<T: Copy>(&mut self, allowed: Keywords<T>) -> Option<T> {
        let word = self.modifier()?;
        let (_, found) = *allowed.iter().find(|(known, _)| *known == word)?;
        self.step();
        self.step();
        Some(found)
    }

    /// Parses a dot and a word from `allowed`.
    fn required<T: Copy>(&mut self, allowed: Keywords<T>) -> Result<T, LitmusError> {
        if let Some(found) = self.optional(allowed) {
            return Ok(found);
        }
        self.refuse_modifiers_of_ptx()?;
        self.take(".");
        Err(self.expected(&listed(allowed)))
    }
}
