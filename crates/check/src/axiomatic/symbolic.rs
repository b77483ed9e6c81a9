//! Values as expressions over the values returned by reads.
//!
//! Threads are executed once, symbolically. A candidate execution then only supplies the source of each read's value.

use super::relation::{CAPACITY, Set, only};
use crate::litmus::{Arithmetic, ComparisonOperator, Value};

/// An expression: an index into [`Expressions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expression(u32);

#[derive(Clone, Copy, Debug)]
enum ExpressionNode {
    Constant(Value),
    /// Value returned by a read event.
    Read(u8),
    Compute(Arithmetic, Expression, Expression),
    /// `new` if `old` equals `compare`, else `old`.
    Swap {
        old: Expression,
        compare: Expression,
        new: Expression,
    },
}

/// A branch condition for the current path: `holds` is true if the branch is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assumption {
    pub(super) comparison: ComparisonOperator,
    pub(super) left: Expression,
    pub(super) right: Expression,
    pub(super) holds: bool,
}

/// All expressions of a straight-line program; operands precede their users.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    nodes: Vec<ExpressionNode>,
    /// Per expression: the reads on which its value depends.
    reads: Vec<Set>,
}

impl Expressions {
    fn push(&mut self, node: ExpressionNode, reads: Set) -> Expression {
        self.nodes.push(node);
        self.reads.push(reads);
        Expression(u32::try_from(self.nodes.len() - 1).expect("a path has fewer than 2^32 expressions"))
    }

    pub(super) fn constant(&mut self, value: Value) -> Expression {
        self.push(ExpressionNode::Constant(value), 0)
    }

    pub(super) fn read(&mut self, event: usize) -> Expression {
        debug_assert!(event < CAPACITY);
        self.push(ExpressionNode::Read(event as u8), only(event))
    }

    pub(super) fn compute(&mut self, operation: Arithmetic, left: Expression, right: Expression) -> Expression {
        let reads = self.reads(left) | self.reads(right);
        self.push(ExpressionNode::Compute(operation, left, right), reads)
    }

    pub(super) fn swap(&mut self, old: Expression, compare: Expression, new: Expression) -> Expression {
        let reads = self.reads(old) | self.reads(compare) | self.reads(new);
        self.push(ExpressionNode::Swap { old, compare, new }, reads)
    }

    /// The reads on which `expression` depends.
    pub(super) fn reads(&self, expression: Expression) -> Set {
        self.reads[expression.0 as usize]
    }
}

/// Evaluates expressions under a fixed assignment of reads to writes, each expression once.
pub(super) struct Evaluator<'a, F> {
    expressions: &'a Expressions,
    /// Maps a read event to the source expression for the returned value.
    source: F,
    known: Vec<Option<Value>>,
}

impl<'a, F: Fn(usize) -> Expression> Evaluator<'a, F> {
    /// Creates an evaluator. `source` must not lead back from a read to itself: the axiom of no thin air.
    pub(super) fn new(expressions: &'a Expressions, source: F) -> Evaluator<'a, F> {
        Evaluator { expressions, source, known: vec![None; expressions.nodes.len()] }
    }

    pub(super) fn value(&mut self, expression: Expression) -> Value {
        let index = expression.0 as usize;
        if let Some(value) = self.known[index] {
            return value;
        }
        let value = match self.expressions.nodes[index] {
            ExpressionNode::Constant(value) => value,
            ExpressionNode::Read(event) => self.value((self.source)(usize::from(event))),
            ExpressionNode::Compute(operation, left, right) => operation.apply(self.value(left), self.value(right)),
            ExpressionNode::Swap { old, compare, new } => {
                let old = self.value(old);
                if self.value(compare) == old { self.value(new) } else { old }
            }
        };
        self.known[index] = Some(value);
        value
    }

    pub(super) fn satisfies(&mut self, assumption: &Assumption) -> bool {
        let (left, right) = (self.value(assumption.left), self.value(assumption.right));
        assumption.comparison.holds(left, right) == assumption.holds
    }
}
