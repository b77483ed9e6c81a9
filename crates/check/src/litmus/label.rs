//! Parser for labels and for the branches that name them.

use super::error::LitmusError;
use super::parser::Parser;
use super::program::Instruction;

/// Labels and branches in the text up to the current token.
#[derive(Default)]
pub(super) struct Labels {
    labels: Vec<Label>,
    jumps: Vec<Jump>,
}

/// A label and the index of the next instruction.
struct Label {
    thread: usize,
    name: String,
    target: usize,
}

/// A branch with an unresolved target.
struct Jump {
    thread: usize,
    instruction: usize,
    label: String,
    /// Token index for the label's name.
    at: usize,
}

impl Parser {
    /// Parses a label of thread `thread`.
    pub(super) fn label(&mut self, thread: usize) -> Result<(), LitmusError> {
        let at = self.at;
        let name = self.word("a label or an instruction")?;
        if self.labels.labels.iter().any(|label| label.thread == thread && label.name == name) {
            return Err(self.expected_at(at, "a label that the thread does not have yet"));
        }
        let target = self.program.threads[thread].code.len();
        self.labels.labels.push(Label { thread, name, target });
        self.expect(":")
    }

    /// Records a label reference by the current instruction; it is resolved after the last row.
    pub(super) fn label_reference(&mut self, thread: usize) -> Result<(), LitmusError> {
        let at = self.at;
        let label = self.word("a label")?;
        let instruction = self.program.threads[thread].code.len();
        self.labels.jumps.push(Jump { thread, instruction, label, at });
        Ok(())
    }

    /// Sets the target of every branch.
    pub(super) fn resolve_jumps(&mut self) -> Result<(), LitmusError> {
        for jump in std::mem::take(&mut self.labels.jumps) {
            let mut labels = self.labels.labels.iter();
            let label = labels.find(|label| label.thread == jump.thread && label.name == jump.label);
            let to = label.ok_or_else(|| self.expected_at(jump.at, "a label of the same thread"))?.target;
            match &mut self.program.threads[jump.thread].code[jump.instruction] {
                Instruction::Branch { target, .. } | Instruction::Jump { target } => *target = to,
                other => unreachable!("{other:?} names no label"),
            }
        }
        Ok(())
    }
}
