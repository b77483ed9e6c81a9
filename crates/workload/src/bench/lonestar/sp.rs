//! Lonestar's survey propagation for a random satisfiability problem. Clauses and variables exchange messages until
//! they settle; then the variables with the strongest bias are fixed, and the process repeats.
//!
//! A sweep has two kernels: each variable gathers its clauses' surveys, and each clause combines its variables'
//! answers. After a phase with several sweeps, kernels compute biases, fix variables, and remove clauses.
//!
//! Source: Braunstein, Mézard and Zecchina, Random Structures and Algorithms, 2005.

mod reference;

use self::reference::ReferenceSurveys;
use crate::bench::benchmark::{Benchmark, require};
use crate::bench::reference::compare_f64;
use crate::bench::workload::{Instance, Request, WorkloadError, check_indices};
use crate::noise;
use crate::parameter::{Parameter, ParameterKind};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Reduction, Scaling, Warp};
use tombolo_types::{Order, Scope};

/// Threshold below which a factor counts as zero and is left out of a product. Source: assumed, far below any relevant
/// survey and far above underflow.
const ZERO: f64 = 1e-9;
/// Minimum bias threshold for a phase that fixes variables: below it, surveys carry no information. Source: assumed,
/// because the programs by Braunstein et al. stop if surveys are trivial.
const TRIVIAL: f64 = 0.01;
/// Reciprocal of the fraction of free variables fixed per phase. Source: Braunstein et al., 2005: one percent.
const FIXED_IN: u64 = 100;
/// Variable states.
const FREE: u32 = 0;
const TRUE: u32 = 1;
const FALSE: u32 = 2;
/// Memory order for the maximum: relaxed, at system scope, because CTAs on all GPUs contribute.
const MAXIMUM: Order = Order::relaxed(Scope::Sys);

static PARAMETERS: [Parameter; 6] = [
    Parameter {
        name: "variables",
        kind: ParameterKind::Count { low: 8, high: 1 << 24 },
        default: "21905",
        about: "variables, at scale 1; scales",
        source: "LonestarGPU sp: 4.2 clauses a variable, near the threshold of satisfiability; clauses as there",
    },
    Parameter {
        name: "clauses",
        kind: ParameterKind::Count { low: 8, high: 1 << 26 },
        default: "92000",
        about: "clauses, at scale 1; scales",
        source: "LonestarGPU sp's 4.2 a variable; NUMA-GPU, Table 2: 8 MB",
    },
    Parameter {
        name: "literals",
        kind: ParameterKind::Count { low: 2, high: 7 },
        default: "3",
        about: "literals of a clause",
        source: "LonestarGPU sp: 3-SAT",
    },
    Parameter {
        name: "sweeps",
        kind: ParameterKind::Count { low: 1, high: 10_000 },
        default: "10",
        about: "sweeps of a phase",
        source: "assumed: a phase takes tens until surveys settle, all alike",
    },
    Parameter {
        name: "phases",
        kind: ParameterKind::Count { low: 1, high: 10_000 },
        default: "2",
        about: "phases, at most; fewer where surveys turn trivial",
        source: "assumed: a phase after variables were fixed, too",
    },
    Parameter {
        name: "threads",
        kind: ParameterKind::Choice(&["64", "128", "256", "448", "512", "1024"]),
        default: "448",
        about: "threads of a CTA",
        source: "NUMA-GPU, Table 2: 75 CTAs, weighted by time",
    },
];

/// The survey propagation benchmark.
pub(crate) static SP: Benchmark = Benchmark {
    name: "sp",
    about: "survey propagation: gathers along a random graph in both directions, short kernels",
    source: "LonestarGPU sp; Braunstein et al., 2005; NUMA-GPU, Table 2 (Lonestar-SP)",
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: false,
    lay_out,
};

struct Formula {
    /// Variable per edge, and 1 for a negated literal; a clause's edges are adjacent.
    variable: Array<u32>,
    negated: Array<u32>,
    /// Survey per edge, from clause to variable; answer per edge, from variable to clause.
    survey: Array<f64>,
    answer: Array<f64>,
    /// First edge per variable in `edge`, with one more at the end; edges by variable.
    first: Array<u32>,
    edge: Array<u32>,
    /// State per variable: [`FREE`], [`TRUE`] or [`FALSE`]; bias per variable towards true (negative: towards false).
    state: Array<u32>,
    bias: Array<f64>,
    /// Flag per clause: 1 if a fixed variable satisfies it.
    satisfied: Array<u32>,
    /// Bits of the largest survey change in the last sweep.
    change: Array<u64>,
    literals: u64,
    sweeps: u64,
    phases: u64,
    threads: u32,
    seed: u64,
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let count = |key| request.values.count(key);
    let scaled = |key| request.scale.of(count(key));
    let (variables, clauses, literals) = (scaled("variables"), scaled("clauses"), count("literals"));
    let edges = clauses * literals;
    check_indices(name, edges, "literals of all clauses")?;
    require(name, variables >= literals, || format!("{variables} variables: a clause has {literals} different ones"))?;
    let mut reals = |field, len| memory.array(field, len, Scaling::Scales);
    let (survey, answer, bias) = (reals("survey", edges), reals("answer", edges), reals("bias", variables));
    let mut wholes = |field, len| memory.array(field, len, Scaling::Scales);
    Ok(Box::new(Formula {
        variable: wholes("variable", edges),
        negated: wholes("negated", edges),
        survey,
        answer,
        first: wholes("first", variables + 1),
        edge: wholes("edge", edges),
        state: wholes("state", variables),
        bias,
        satisfied: wholes("satisfied", clauses),
        change: memory.array("change", 1, Scaling::Fixed),
        literals,
        sweeps: count("sweeps"),
        phases: count("phases"),
        threads: count("threads") as u32,
        seed: request.seed,
    }))
}

/// Products over the complements of surveys, for positive and for negated occurrences. Zero factors are left out and
/// counted separately.
#[derive(Clone, Copy, Debug)]
struct SurveyProducts {
    products: [Lanes<f64>; 2],
    zeros: [Lanes<u32>; 2],
}

/// Full product, from a product without its zero factors and the zero count.
fn full_product(product: f64, zeros: u32) -> f64 {
    if zeros == 0 { product } else { 0.0 }
}

/// Probability that a variable cannot satisfy a clause. Inputs are the products over the other clauses with equal sign
/// (`same`) and with opposite sign (`other`).
fn unable_probability(same: f64, other: f64) -> f64 {
    let (forced, helped, open) = ((1.0 - other) * same, (1.0 - same) * other, same * other);
    let sum = forced + helped + open;
    if sum > 0.0 { forced / sum } else { 0.0 }
}

/// Bias of a variable towards true.
fn bias_towards_true(positive: f64, negated: f64) -> f64 {
    let (up, down, open) = ((1.0 - positive) * negated, (1.0 - negated) * positive, positive * negated);
    let sum = up + down + open;
    if sum > 0.0 { (up - down) / sum } else { 0.0 }
}

type RecordResult = Result<(), RecordError>;

impl Formula {
    fn variables(&self) -> u64 {
        self.state.len()
    }

    fn clauses(&self) -> u64 {
        self.satisfied.len()
    }

    /// Runs `body` with one thread for each of `count` items.
    fn each(
        &self,
        host: &mut Host<'_>,
        name: &str,
        count: u64,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let ctas = count.div_ceil(u64::from(self.threads));
        host.launch(Grid::new(name, ctas, self.threads), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let item = warp.compute(ComputeClass::Int, 2, warp.global_thread());
                warp.when(item.lt(count as i32), |warp| body(warp, item));
            });
        })
    }

    /// Runs `body(warp, edge, negated, survey)` for each edge at a variable.
    fn each_edge(
        &self,
        warp: &mut Warp<'_>,
        variable: Lanes<i32>,
        mut body: impl FnMut(&mut Warp<'_>, Lanes<u32>, Lanes<bool>, Lanes<f64>),
    ) {
        let (first, end) = (warp.load(self.first, variable), warp.load(self.first, variable + 1));
        let (first, degree) = warp.compute(ComputeClass::Int, 1, (first, end - first));
        warp.repeat(degree, |warp, at| {
            let at = warp.compute(ComputeClass::Int, 1, first + at);
            let edge = warp.load(self.edge, at);
            let negated = warp.load(self.negated, edge).eq(1);
            let survey = warp.load(self.survey, edge);
            body(warp, edge, negated, survey);
        });
    }

    /// Computes the products over a variable's surveys.
    fn fold(&self, warp: &mut Warp<'_>, variable: Lanes<i32>) -> SurveyProducts {
        let mut open = SurveyProducts { products: [Lanes::all(1.0); 2], zeros: [Lanes::all(0); 2] };
        self.each_edge(warp, variable, |warp, _, negated, survey| {
            let factor = warp.compute(ComputeClass::Fp64, 1, survey.map(|survey| 1.0 - survey));
            let (negated, zero) = warp.compute(ComputeClass::Fp64, 4, (negated, factor.lt(ZERO)));
            for (sign, here) in [!negated, negated].into_iter().enumerate() {
                let product = (here & !zero).select(open.products[sign] * factor, open.products[sign]);
                open.products[sign] = warp.update(open.products[sign], product);
                let zeros = (here & zero).select(open.zeros[sign] + 1, open.zeros[sign]);
                open.zeros[sign] = warp.update(open.zeros[sign], zeros);
            }
        });
        open
    }

    /// Sends a free variable's answers to each of its clauses.
    fn answer_clauses(&self, warp: &mut Warp<'_>, variable: Lanes<i32>) {
        let state = warp.load(self.state, variable);
        warp.when(state.eq(FREE), |warp| {
            let open = self.fold(warp, variable);
            self.each_edge(warp, variable, |warp, edge, negated, survey| {
                let negated = warp.compute(ComputeClass::Other, 2, negated);
                let factor = survey.map(|survey| 1.0 - survey);
                let zero = factor.lt(ZERO);
                let pair = |positive: bool| {
                    let here = if positive { !negated } else { negated };
                    (here.select(open.products[0], open.products[1]), here.select(open.zeros[0], open.zeros[1]))
                };
                let ((same, same_zeros), (other, other_zeros)) = (pair(true), pair(false));
                // The clause's own survey is divided out.
                let same = zero.select(same, same.zip(factor, |product, factor| product / factor));
                let zeros = zero.select(same_zeros - Lanes::all(1), same_zeros);
                let (same, other) = (same.zip(zeros, full_product), other.zip(other_zeros, full_product));
                let answer = warp.compute(ComputeClass::Fp64, 24, same.zip(other, unable_probability));
                warp.store(self.answer, edge, answer);
            });
        });
    }

    /// Sends new surveys from an unsatisfied clause: to each variable, the probability that all other variables fail
    /// the clause.
    fn survey_variables(&self, warp: &mut Warp<'_>, clause: Lanes<i32>) {
        let satisfied = warp.load(self.satisfied, clause);
        warp.when(satisfied.eq(0), |warp| {
            let first = warp.compute(ComputeClass::Int, 2, clause * self.literals as i32);
            let edges: Vec<_> = (0..self.literals as i32).map(|at| first + at).collect();
            let answers: Vec<_> = edges.iter().map(|edge| warp.load(self.answer, *edge)).collect();
            let mut largest = Lanes::all(0.0);
            for (at, edge) in edges.iter().enumerate() {
                let variable = warp.load(self.variable, *edge);
                let free = warp.load(self.state, variable).eq(FREE);
                let others = answers.iter().enumerate().filter(|(other, _)| *other != at);
                let survey = others.fold(Lanes::all(1.0), |product, (_, answer)| product * *answer);
                let old = warp.load(self.survey, *edge);
                let survey = warp.compute(ComputeClass::Fp64, self.literals as u16 - 1, survey);
                warp.when(free, |warp| {
                    warp.store(self.survey, *edge, survey);
                    let change = old.zip(survey, |old, survey| (old - survey).abs());
                    let change = warp.compute(ComputeClass::Fp64, 2, largest.max(change));
                    largest = warp.update(largest, change);
                });
            }
            // Non-negative floats compare like their bit patterns.
            let bits = largest.map(f64::to_bits);
            warp.reduce(Reduction::Max, self.change, Lanes::all(0), bits, MAXIMUM);
        });
    }

    fn find_bias(&self, warp: &mut Warp<'_>, variable: Lanes<i32>) {
        let state = warp.load(self.state, variable);
        warp.when(state.eq(FREE), |warp| {
            let SurveyProducts { products, zeros } = self.fold(warp, variable);
            let [positive, negated] = [0, 1].map(|sign: usize| products[sign].zip(zeros[sign], full_product));
            let bias = warp.compute(ComputeClass::Fp64, 20, positive.zip(negated, bias_towards_true));
            warp.store(self.bias, variable, bias);
        });
    }

    /// Fixes a free variable whose bias reaches the threshold, to the value favoured by the bias.
    fn fix(&self, warp: &mut Warp<'_>, variable: Lanes<i32>, threshold: f64) {
        let (state, bias) = (warp.load(self.state, variable), warp.load(self.bias, variable));
        let chosen = state.eq(FREE) & bias.map(|bias| bias.abs() >= threshold);
        warp.when(chosen, |warp| {
            let value = warp.compute(ComputeClass::Fp64, 1, bias.map(|bias| if bias > 0.0 { TRUE } else { FALSE }));
            warp.store(self.state, variable, value);
        });
    }

    /// Removes satisfied clauses: they send no more surveys. A fixed variable that fails a clause answers 1 forever.
    fn simplify(&self, warp: &mut Warp<'_>, clause: Lanes<i32>) {
        let satisfied = warp.load(self.satisfied, clause);
        warp.when(satisfied.eq(0), |warp| {
            let first = warp.compute(ComputeClass::Int, 2, clause * self.literals as i32);
            let mut met = Lanes::all(false);
            for edge in (0..self.literals as i32).map(|at| first + at) {
                let variable = warp.load(self.variable, edge);
                let state = warp.load(self.state, variable);
                let negated = warp.load(self.negated, edge);
                let helps = negated.eq(1).select(state.eq(FALSE), state.eq(TRUE));
                met = warp.compute(ComputeClass::Int, 3, met | helps);
                warp.when(!helps & state.ne(FREE), |warp| {
                    warp.store(self.survey, edge, 0.0);
                    warp.store(self.answer, edge, 1.0);
                });
            }
            warp.when(met, |warp| {
                warp.store(self.satisfied, clause, 1);
                (0..self.literals as i32).for_each(|at| warp.store(self.survey, first + at, 0.0));
            });
        });
    }

    /// Bias threshold for fixing: the bias of the last variable in the strongest hundredth among the free variables.
    fn threshold(state: &[u32], bias: &[f64]) -> f64 {
        let free = state.iter().zip(bias).filter(|(state, _)| **state == FREE);
        let mut sizes: Vec<f64> = free.map(|(_, bias)| bias.abs()).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let chosen = (sizes.len() as u64).div_ceil(FIXED_IN) as usize;
        chosen.checked_sub(1).map_or(0.0, |last| sizes[last])
    }

    /// Literals of a clause as (variable, negated); the clause's variables are distinct.
    fn literal(&self, clause: u64) -> Vec<(u32, u32)> {
        let mut chosen: Vec<(u32, u32)> = Vec::new();
        let mut draws = (0..).map(|draw| noise::noise(self.seed ^ (clause << 8), draw));
        while chosen.len() < self.literals as usize {
            let bits = draws.next().unwrap_or_default();
            let variable = ((u128::from(bits) * u128::from(self.variables())) >> 64) as u32;
            if chosen.iter().all(|(other, _)| *other != variable) {
                chosen.push((variable, bits as u32 & 1));
            }
        }
        chosen
    }

    fn first_survey(&self, edge: u64) -> f64 {
        noise::below(self.seed ^ (1 << 60), edge, 1 << 20) as f64 / f64::from(1 << 20)
    }
}

impl Instance for Formula {
    fn fill(&self, memory: &Memory) {
        let mut edges = vec![Vec::new(); self.variables() as usize];
        for clause in 0..self.clauses() {
            for (edge, (variable, negated)) in (clause * self.literals..).zip(self.literal(clause)) {
                memory.write(self.variable, edge, variable);
                memory.write(self.negated, edge, negated);
                edges[variable as usize].push(edge as u32);
            }
        }
        let mut at = 0;
        for (variable, edges) in (0..).zip(edges) {
            memory.write(self.first, variable, at as u32);
            for edge in edges {
                memory.write(self.edge, at, edge);
                at += 1;
            }
        }
        memory.write(self.first, self.variables(), at as u32);
        memory.fill(self.survey, |edge| self.first_survey(edge));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for array in [self.variable, self.negated, self.first, self.edge, self.state, self.satisfied] {
            host.copy_to_device(array);
        }
        host.copy_to_device(self.survey);
        for _ in 0..self.phases {
            for _ in 0..self.sweeps {
                host.memory().write(self.change, 0, 0);
                host.copy_to_device(self.change);
                self.each(host, "answer", self.variables(), |warp, variable| self.answer_clauses(warp, variable))?;
                self.each(host, "survey", self.clauses(), |warp, clause| self.survey_variables(warp, clause))?;
                host.copy_to_host(self.change);
            }
            self.each(host, "bias", self.variables(), |warp, variable| self.find_bias(warp, variable))?;
            host.copy_to_host(self.bias);
            let (state, bias) = (host.memory().to_vec(self.state), host.memory().to_vec(self.bias));
            let threshold = Self::threshold(&state, &bias);
            if threshold < TRIVIAL {
                break;
            }
            self.each(host, "fix", self.variables(), |warp, variable| self.fix(warp, variable, threshold))?;
            self.each(host, "simplify", self.clauses(), |warp, clause| self.simplify(warp, clause))?;
        }
        host.copy_to_host(self.state);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut plain = ReferenceSurveys::new(self);
        for _ in 0..self.phases {
            (0..self.sweeps).for_each(|_| plain.sweep());
            if !plain.fix() {
                break;
            }
        }
        if let Some(at) = memory.to_vec(self.state).iter().zip(&plain.state).position(|(found, state)| found != state) {
            return Err(format!("variable {at} is in state {}", memory.read(self.state, at as u64)));
        }
        let surveys: Vec<f64> = plain.surveys.concat();
        compare_f64("survey", &memory.to_vec(self.survey), &surveys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_needed_elsewhere_fails_a_clause() {
        // Without other demands, the variable can always satisfy the clause. If it is negated elsewhere with certainty,
        // it cannot.
        assert_eq!(
            (unable_probability(1.0, 1.0), unable_probability(1.0, 0.0), unable_probability(0.0, 1.0)),
            (0.0, 1.0, 0.0)
        );
        assert_eq!(
            (bias_towards_true(1.0, 1.0), bias_towards_true(0.0, 1.0), bias_towards_true(1.0, 0.0)),
            (0.0, 1.0, -1.0)
        );
    }
}
