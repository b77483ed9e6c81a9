//! Reference survey propagation over lists of literals, in one thread.
//!
//! Products run over a variable's clauses in ascending order, as in the kernels: single precision gives equal results.

use super::{Formula, SETTLED, TRIVIAL, demands, fixed_count};

/// Surveys computed directly from their definition.
pub(super) struct ReferenceSurveys {
    literals: Vec<Vec<(u32, bool)>>,
    /// Clause number and position in the clause for each occurrence, by variable.
    occurrences: Vec<Vec<(usize, usize)>>,
    /// Surveys by clause and position.
    pub(super) surveys: Vec<Vec<f32>>,
    pub(super) satisfied: Vec<bool>,
    pub(super) fixed: Vec<bool>,
    pub(super) value: Vec<bool>,
}

/// Weights of a variable's three answers to a clause.
#[derive(Clone, Copy, Default)]
struct Answer {
    free: f32,
    satisfies: f32,
    fails: f32,
}

impl ReferenceSurveys {
    pub(super) fn new(formula: &Formula) -> ReferenceSurveys {
        let literals: Vec<_> = (0..formula.clauses()).map(|clause| formula.literal(clause)).collect();
        let mut occurrences = vec![Vec::new(); formula.variables() as usize];
        for (clause, literals) in literals.iter().enumerate() {
            for (place, (variable, _)) in literals.iter().enumerate() {
                occurrences[*variable as usize].push((clause, place));
            }
        }
        let size = formula.literals as usize;
        let survey = |clause: usize, place: usize| formula.first_survey((clause * size + place) as u64);
        let surveys = (0..literals.len()).map(|clause| (0..size).map(|place| survey(clause, place)).collect());
        ReferenceSurveys {
            surveys: surveys.collect(),
            satisfied: vec![false; literals.len()],
            fixed: vec![false; occurrences.len()],
            value: vec![false; occurrences.len()],
            literals,
            occurrences,
        }
    }

    pub(super) fn run(&mut self, formula: &Formula) {
        let mut count = formula.fixed_per_phase();
        for _ in 0..formula.phases {
            for _ in 0..formula.sweeps {
                if self.sweep() <= SETTLED {
                    break;
                }
            }
            let listed = self.biases();
            if listed.is_empty() {
                break;
            }
            count = fixed_count(count, listed.len() as u64);
            listed[listed.len() - count as usize..].iter().for_each(|&(_, variable)| self.fix(variable));
        }
    }

    /// Product over the complements of the surveys at a variable, from unsatisfied clauses other than `without` whose
    /// literal passes `literal`.
    fn open(&self, variable: usize, without: usize, literal: impl Fn(bool) -> bool) -> f32 {
        let others = self.occurrences[variable].iter().filter(|&&(clause, place)| {
            clause != without && !self.satisfied[clause] && literal(self.literals[clause][place].1)
        });
        others.map(|&(clause, place)| 1.0 - self.surveys[clause][place]).product()
    }

    fn answer(&self, clause: usize, place: usize) -> Answer {
        let (variable, sign) = self.literals[clause][place];
        let open = |literal: &dyn Fn(bool) -> bool| self.open(variable as usize, clause, literal);
        let (free, same, other) = (open(&|_| true), open(&|negated| negated == sign), open(&|negated| negated != sign));
        Answer { free, satisfies: (1.0 - same) * other, fails: (1.0 - other) * same }
    }

    /// Probability that the clause's variables other than that at `place` all fail it.
    fn survey(&self, clause: usize, place: usize, answers: &[Answer]) -> f32 {
        let free = |at: &usize| !self.fixed[self.literals[clause][*at].0 as usize];
        let mut survey = 1.0;
        for at in (0..answers.len()).filter(|at| *at != place).filter(free) {
            let sum = answers[at].free + answers[at].satisfies + answers[at].fails;
            if sum == 0.0 {
                return 0.0;
            }
            survey *= answers[at].fails / sum;
        }
        survey
    }

    /// Computes all surveys anew and returns the largest change.
    fn sweep(&mut self) -> f32 {
        let answers: Vec<Vec<Answer>> = (0..self.literals.len())
            .map(|clause| (0..self.literals[clause].len()).map(|place| self.answer(clause, place)).collect())
            .collect();
        let mut largest = 0.0_f32;
        for (clause, answers) in answers.iter().enumerate().filter(|(clause, _)| !self.satisfied[*clause]) {
            for place in 0..answers.len() {
                if !self.fixed[self.literals[clause][place].0 as usize] {
                    let survey = self.survey(clause, place, answers);
                    largest = largest.max((survey - self.surveys[clause][place]).abs());
                    self.surveys[clause][place] = survey;
                }
            }
        }
        largest
    }

    /// Biases and numbers of the variables that are not fixed, in ascending order; empty if surveys are trivial.
    fn biases(&mut self) -> Vec<(f32, usize)> {
        let (mut listed, mut magnitude) = (Vec::new(), 0.0);
        for variable in (0..self.fixed.len()).filter(|&variable| !self.fixed[variable]) {
            let open = |literal: &dyn Fn(bool) -> bool| self.open(variable, usize::MAX, literal);
            let [up, down] = demands(open(&|_| true), open(&|negated| !negated), open(&|negated| negated));
            magnitude += f64::from(up.max(down));
            listed.push(((up - down).abs(), variable, up > down));
        }
        listed.iter().for_each(|&(_, variable, up)| self.value[variable] = up);
        let mut listed: Vec<_> = listed.into_iter().map(|(bias, variable, _)| (bias, variable)).collect();
        if magnitude < TRIVIAL * listed.len().max(1) as f64 {
            return Vec::new();
        }
        listed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        listed
    }

    fn fix(&mut self, variable: usize) {
        self.fixed[variable] = true;
        for &(clause, place) in &self.occurrences[variable] {
            self.satisfied[clause] |= self.literals[clause][place].1 != self.value[variable];
        }
    }
}
