//! Reference survey propagation without shared products.

use super::{FALSE, FREE, Formula, TRIVIAL, TRUE, bias_towards_true, unable_probability};

/// Surveys computed directly from their definition: each message from all other messages, without shared products.
pub(super) struct ReferenceSurveys {
    literals: Vec<Vec<(u32, u32)>>,
    /// Clause number and position in the clause for each occurrence, by variable.
    occurrences: Vec<Vec<(usize, usize)>>,
    pub(super) surveys: Vec<Vec<f64>>,
    satisfied: Vec<bool>,
    pub(super) state: Vec<u32>,
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
            state: vec![FREE; occurrences.len()],
            literals,
            occurrences,
        }
    }

    /// Product over the complements of surveys for a variable's occurrences with one sign, excluding clause `without`.
    fn open(&self, variable: u32, sign: u32, without: usize) -> f64 {
        let others = self.occurrences[variable as usize].iter().filter(|(clause, place)| {
            *clause != without && self.literals[*clause][*place].1 == sign && !self.satisfied[*clause]
        });
        others.map(|&(clause, place)| 1.0 - self.surveys[clause][place]).product()
    }

    fn answer(&self, clause: usize, place: usize) -> f64 {
        let (variable, sign) = self.literals[clause][place];
        if self.state[variable as usize] != FREE {
            return 1.0;
        }
        unable_probability(self.open(variable, sign, clause), self.open(variable, 1 - sign, clause))
    }

    pub(super) fn sweep(&mut self) {
        let answers: Vec<Vec<f64>> = (0..self.literals.len())
            .map(|clause| (0..self.literals[clause].len()).map(|place| self.answer(clause, place)).collect())
            .collect();
        for (clause, answers) in answers.iter().enumerate().filter(|(clause, _)| !self.satisfied[*clause]) {
            for place in 0..answers.len() {
                let others = answers.iter().enumerate().filter(|(other, _)| *other != place);
                let (variable, _) = self.literals[clause][place];
                if self.state[variable as usize] == FREE {
                    self.surveys[clause][place] = others.map(|(_, answer)| answer).product();
                }
            }
        }
    }

    /// Fixes the variables with the strongest bias; returns false if surveys are trivial.
    pub(super) fn fix(&mut self) -> bool {
        let all = 0..self.state.len() as u32;
        let bias: Vec<f64> = all
            .map(|variable| bias_towards_true(self.open(variable, 0, usize::MAX), self.open(variable, 1, usize::MAX)))
            .collect();
        let threshold = Formula::threshold(&self.state, &bias);
        if threshold < TRIVIAL {
            return false;
        }
        for (state, bias) in self.state.iter_mut().zip(bias) {
            if *state == FREE && bias.abs() >= threshold {
                *state = if bias > 0.0 { TRUE } else { FALSE };
            }
        }
        for (clause, literals) in self.literals.iter().enumerate() {
            for (place, (variable, sign)) in literals.iter().enumerate() {
                let state = self.state[*variable as usize];
                self.satisfied[clause] |= state == TRUE + sign;
                if state != FREE {
                    self.surveys[clause][place] = 0.0;
                }
            }
        }
        for (surveys, _) in self.surveys.iter_mut().zip(&self.satisfied).filter(|(_, satisfied)| **satisfied) {
            surveys.fill(0.0);
        }
        true
    }
}
