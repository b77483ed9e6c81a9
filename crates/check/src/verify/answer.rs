//! Complete answers of the memory model: every allowed final state, each marked if sequentially consistent.

use super::case::{Case, INTERLEAVED, JudgedTest, Obstacle, bounded_by_repetitions, stem_or};
use super::report::{ModelVerdict, Outcome, TestVerdict};
use super::{ProgressObserver, side_by_side};
use crate::litmus::Assignments;
use crate::sequential::interleavings;
use serde::Serialize;

/// Maximum number of candidate executions examined by the model for a test.
const CANDIDATES: u64 = 10_000_000;

/// The model's name in progress reports, in place of a design's name.
const MODEL: &str = "the model";

/// The model's answer for a test.
#[derive(Clone, Debug, Serialize)]
pub struct ModelOutcomes {
    /// The test.
    pub name: String,
    /// File that contains the test.
    pub file: Option<String>,
    /// `ok` if the outcomes are complete. `bounded` if loops are unrolled to a number of repetitions, which the
    /// reason names: the outcomes are then those up to this number. In all other cases the list is empty.
    pub verdict: TestVerdict,
    /// Reason for a verdict other than `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Condition of the test; `None` if it has no condition or was not read.
    pub condition: Option<String>,
    /// The model's verdict on the condition's event; `None` without an answer, and if the event is not among bounded
    /// outcomes.
    pub expected: Option<ModelVerdict>,
    /// Every outcome allowed by the axioms, in the order of the values.
    pub outcomes: Vec<AllowedOutcome>,
}

/// Outcome that the axioms allow.
#[derive(Clone, Debug, Serialize)]
pub struct AllowedOutcome {
    /// Values of registers and locations.
    pub values: Outcome,
    /// The values on a single line, in the syntax of an observation table: `P1:r0=1 [x]=1`.
    pub outcome: String,
    /// True if some interleaving of the threads shows the outcome; `None` if there are too many interleavings.
    pub sequential: Option<bool>,
    /// True if the outcome shows the event of the condition.
    pub event: bool,
}

/// Computes answers for `cases`, in order, with `threads` threads.
pub fn answers(cases: &[Case], threads: usize, watch: &dyn ProgressObserver) -> Vec<ModelOutcomes> {
    side_by_side(threads, cases.len(), |index| {
        let case = &cases[index];
        watch.started(&case.name, MODEL);
        let answer = case.answer();
        watch.finished(&case.name, MODEL);
        answer
    })
}

impl ModelOutcomes {
    /// Stem of the file name without folder and extension, or the test's name.
    pub fn stem(&self) -> &str {
        stem_or(self.file.as_deref(), &self.name)
    }

    /// True if the outcomes are complete.
    pub fn is_complete(&self) -> bool {
        self.verdict == TestVerdict::Ok
    }
}

impl Case {
    /// Queries the model for all outcomes.
    pub fn answer(&self) -> ModelOutcomes {
        match self.query_model(CANDIDATES) {
            Ok(judged) => self.complete(&judged),
            Err(Obstacle::Unreadable(reason)) => self.incomplete(TestVerdict::Unreadable, reason),
            Err(Obstacle::Unsupported(reason)) => self.incomplete(TestVerdict::Unsupported, reason),
            Err(Obstacle::Bounded(reason)) => self.incomplete(TestVerdict::Bounded, reason),
        }
    }

    fn incomplete(&self, verdict: TestVerdict, reason: String) -> ModelOutcomes {
        ModelOutcomes {
            name: self.name.clone(),
            file: self.file.clone(),
            verdict,
            reason: Some(reason),
            condition: None,
            expected: None,
            outcomes: Vec::new(),
        }
    }

    fn complete(&self, judged: &JudgedTest) -> ModelOutcomes {
        let program = &judged.program;
        let sequential = interleavings(program, INTERLEAVED);
        let states = judged.allowed.iter().flat_map(|allowed| allowed.states());
        let outcomes = states.map(|state| {
            let entries = || Assignments { program, state }.entries().collect::<Vec<_>>();
            let words: Vec<String> = entries().iter().map(|(name, value)| format!("{name}={value}")).collect();
            AllowedOutcome {
                values: entries().into_iter().collect(),
                outcome: words.join(" "),
                sequential: sequential.as_ref().map(|sequential| sequential.contains(state)),
                event: judged.is_event(state),
            }
        });
        let event = judged.allows_event();
        let repetitions = judged.allowed.as_ref().and_then(|allowed| allowed.repetitions);
        ModelOutcomes {
            name: self.name.clone(),
            file: self.file.clone(),
            verdict: if repetitions.is_some() { TestVerdict::Bounded } else { TestVerdict::Ok },
            reason: repetitions.map(bounded_by_repetitions),
            condition: judged.condition.as_ref().map(|condition| program.condition(condition).to_string()),
            expected: match event {
                Some(true) => Some(ModelVerdict::Allowed),
                Some(false) if repetitions.is_none() => Some(ModelVerdict::Forbidden),
                Some(false) | None => None,
            },
            outcomes: outcomes.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> ModelOutcomes {
        Case::parse("folder/test.litmus", text).answer()
    }

    #[test]
    fn an_answer_has_every_outcome_and_tells_the_sequential_ones() {
        let answer = answer(
            "PTX SB {x=0; y=0;} P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ; st.weak x,1 | st.weak y,1 ;
             ld.weak r0,y | ld.weak r0,x ; exists (P0:r0 = 0 /\\ P1:r0 = 0)",
        );
        let listed: Vec<_> =
            answer.outcomes.iter().map(|one| (one.outcome.as_str(), one.sequential, one.event)).collect();
        assert_eq!(
            listed,
            [
                ("P0:r0=0 P1:r0=0 [x]=1 [y]=1", Some(false), true),
                ("P0:r0=0 P1:r0=1 [x]=1 [y]=1", Some(true), false),
                ("P0:r0=1 P1:r0=0 [x]=1 [y]=1", Some(true), false),
                ("P0:r0=1 P1:r0=1 [x]=1 [y]=1", Some(true), false),
            ]
        );
        assert_eq!(answer.outcomes[0].values.get("[x]"), Some(&1));
        assert_eq!((answer.expected, answer.is_complete()), (Some(ModelVerdict::Allowed), true));
        assert_eq!(answer.condition.as_deref(), Some("exists (P0:r0 == 0 /\\ P1:r0 == 0)"));
    }

    #[test]
    fn a_test_that_is_not_answered_says_why() {
        let hanging = "PTX t {x=0;} P0@cta 0,gpu 0 ; bar.cta.sync 0, 64 ; exists x=0";
        for (text, verdict, reason) in [
            ("", TestVerdict::Unreadable, "expected `PTX`"),
            (hanging, TestVerdict::Unsupported, "never meet"),
            ("PTX t {x=0;} P0@cta 0,gpu 0 ; fence.proxy.alias ; exists x=0", TestVerdict::Unsupported, "proxy"),
        ] {
            let answer = answer(text);
            assert_eq!((answer.verdict, answer.outcomes.len(), answer.expected), (verdict, 0, None));
            assert!(answer.reason.is_some_and(|found| found.contains(reason)));
        }
    }

    #[test]
    fn a_loop_that_writes_is_answered_to_a_bound_and_one_that_polls_to_the_end() {
        let text = |body: &str| {
            format!(
                "PTX t {{x=0;}} P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ; LC00: | st.relaxed.gpu x, 1 ; {body} exists (P0:r0 == 0)"
            )
        };
        let polling = answer(&text("ld.relaxed.gpu r0, x | ; bne r0, 1, LC00 | ;"));
        assert_eq!(
            (polling.verdict, polling.expected, &polling.reason),
            (TestVerdict::Ok, Some(ModelVerdict::Forbidden), &None)
        );
        let writing = answer(&text("atom.relaxed.gpu.or r0, x, 0 | ; bne r0, 1, LC00 | ;"));
        assert_eq!((writing.verdict, writing.expected), (TestVerdict::Bounded, None), "more repetitions may allow it");
        assert!(writing.reason.is_some_and(|reason| reason.contains("3 repetitions")));
        assert_eq!(writing.outcomes.len(), 1);
    }

    #[test]
    fn the_model_takes_more_threads_than_are_explored() {
        let (placements, stores): (Vec<String>, Vec<&str>) =
            (0..12).map(|thread| (format!("P{thread}@cta {thread},gpu {thread}"), "ld.weak r0, x")).unzip();
        let text = format!("PTX t {{x=0;}} {} ; {} ; exists x=0", placements.join(" | "), stores.join(" | "));
        assert!(answer(&text).is_complete(), "{:?}", answer(&text).reason);
    }
}
