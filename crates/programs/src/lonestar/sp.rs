//! Lonestar's survey propagation for a random satisfiability problem. Clauses and variables exchange messages until
//! they settle; then the variables with the strongest bias are fixed, and the process repeats.
//!
//! An edge is an occurrence of a variable in a clause. A sweep has two kernels over the edges: `multiply` multiplies
//! over the other clauses at the edge's variable, and `survey` over the other variables in the edge's clause. After a
//! phase of several sweeps, `bias` lists the variables that are not fixed with their bias, the host sorts the list, and
//! `fix` fixes the last hundredth. All values have 4 bytes, all flags 1 byte. All kernels have as many CTAs as the GPU
//! holds at once; their threads walk over the edges or variables.
//!
//! The public program sorts on the GPU, by cub's radix sort, and stops with an error if a phase ends before the surveys
//! settle.
//!
//! Source: LonestarGPU 2.0, apps/sp/newsp.cu and sp.h; Braunstein, Mézard and Zecchina, Random Structures and
//! Algorithms, 2005.

mod reference;

use self::reference::ReferenceSurveys;
use crate::prelude::*;

/// Largest change of a survey in a sweep after which a phase ends. Source: LonestarGPU 2.0, newsp.cu (`EPSILON`).
const SETTLED: f32 = 0.01;
/// Mean bias below which surveys carry no information, and the program ends. Source: LonestarGPU 2.0, newsp.cu
/// (`PARAMAGNET`).
const TRIVIAL: f64 = 0.01;
/// Reciprocal of the fraction of all variables fixed per phase. Source: LonestarGPU 2.0, newsp.cu: one percent.
const FIXED_IN: u64 = 100;
/// Order and scope for CUDA's atomics: relaxed, at GPU scope.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);

program! {
    /// survey propagation: gathers along a random graph from its edges, short kernels
    pub(crate) static SP = "sp", "LonestarGPU 2.0 sp; Braunstein et al., 2005; NUMA-GPU, Table 2 (Lonestar-SP)";
    parameters {
        /// variables, at scale 1; scales
        variables: count(8..=1 << 24) = 17_500,
            "LonestarGPU's inputs for sp: 4.2 clauses a variable, near the threshold of satisfiability";
        /// clauses, at scale 1; scales
        clauses: count(8..=1 << 26) = 73_500, "LonestarGPU's 4.2 a variable; NUMA-GPU, Table 2: 8 MB";
        /// literals of a clause
        literals: count(2..=7) = 3, "LonestarGPU's inputs for sp: 3-SAT";
        /// sweeps of a phase, at most; fewer where surveys settle
        sweeps: count(1..=10_000) = 10,
            "assumed: LonestarGPU sp stops after 1000, and a phase takes tens until surveys settle, all alike";
        /// phases, at most; fewer where surveys turn trivial
        phases: count(1..=10_000) = 2, "assumed: a phase after variables were fixed, too";
        /// threads of a CTA
        threads: one_of(64, 128, 256, 384, 448, 512, 1024) = 384, "LonestarGPU 2.0, newsp.cu";
        /// CTAs of every kernel, at scale 1; scales
        ctas: count(1..=65_535) = 75,
            "NUMA-GPU, Table 2: as many as an SM holds on each (LonestarGPU 2.0, newsp.cu), here five on 15 SMs";
    }
    lay_out(name, request, memory) {
        let count = |key| request.values.count(key);
        let scaled = |key| request.scale.of(count(key));
        let (variables, clauses) = (scaled("variables"), scaled("clauses"));
        let edges = clauses * literals;
        check_indices(name, edges, "literals of all clauses")?;
        require(name, variables >= literals, || {
            format!("{variables} variables: a clause has {literals} different ones")
        })?;
        let mut rows = |kind: &str, count: u64| Rows {
            first: memory.array(&format!("{kind}-first"), count + 1, Scaling::Scales),
            edge: memory.array(&format!("{kind}-edge"), edges, Scaling::Scales),
            done: memory.array(&format!("{kind}-done"), count, Scaling::Scales),
        };
        let (clause_rows, variable_rows) = (rows("clause", clauses), rows("variable", variables));
    }
    struct Formula {
        clauses: Rows = clause_rows,
        variables: Rows = variable_rows,
        /// Survey per edge, from clause to variable.
        survey: Array<f32>[edges],
        /// Weights per edge, from variable to clause: the variable is free to choose, satisfies the clause, or fails
        /// it.
        free: Array<f32>[edges],
        satisfies, fails: Array<f32>[edges],
        /// Strength of the bias per variable, and its direction.
        bias: Array<f32>[variables],
        /// Biases and numbers of the variables that are not fixed, and their count.
        listed_bias: Array<f32>["listed-bias"; variables],
        value: Array<bool>[variables],
        /// Clause, variable and flag for a negated literal per edge; a clause's edges are adjacent.
        clause: Array<u32>[edges],
        variable: Array<u32>[edges],
        negated: Array<bool>[edges],
        listed: Array<u32>[variables],
        length: Array<u32>[1, fixed],
        /// Sum of the larger probabilities of the listed variables' values.
        magnitude: Array<f32>[1, fixed],
        /// Bits of the largest survey change in the last sweep.
        change: Array<u32>[1, fixed],
        literals, sweeps, phases: u64,
        threads: u32,
        ctas: u32 = scaled("ctas") as u32,
        seed: u64 = request.seed,
    }
}

/// Edges of the clauses or of the variables (`GPUCSRGraph`).
struct Rows {
    /// First index in `edge` per clause or variable, with one more at the end.
    first: Array<u32>,
    /// Edges by clause or variable.
    edge: Array<u32>,
    /// Flag per clause that a fixed variable satisfies, or per fixed variable.
    done: Array<bool>,
}

/// Probabilities that the surveys demand a variable to be true, and false, from the products over the complements of
/// the surveys from all clauses, from those with the positive literal, and from those with the negated literal.
fn demands(all: f32, positive: f32, negated: f32) -> [f32; 2] {
    let (up, down) = ((1.0 - positive) * negated, (1.0 - negated) * positive);
    let sum = all + up + down;
    if sum == 0.0 { [0.0; 2] } else { [up / sum, down / sum] }
}

/// Number of variables to fix, of `listed`: `count`, or one if fewer are listed.
fn fixed_count(count: u64, listed: u64) -> u64 {
    if count > listed { 1 } else { count }
}

impl Formula {
    fn variables(&self) -> u64 {
        self.variables.done.len()
    }

    fn clauses(&self) -> u64 {
        self.clauses.done.len()
    }

    fn grid(&self, name: &str) -> Grid {
        Grid::new(name, u64::from(self.ctas), self.threads)
    }

    /// Runs `body` for each item of `range` that falls to the warp: items are a grid of threads apart.
    fn each(&self, warp: &mut Warp<'_>, range: std::ops::Range<u64>, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
        let threads = u64::from(self.ctas) * u64::from(self.threads);
        let thread = warp.compute(ComputeClass::Int, 2, warp.global_thread());
        for turn in 0..(range.end - range.start).div_ceil(threads) {
            let item = warp.compute(ComputeClass::Int, 1, thread + (range.start + turn * threads) as i32);
            warp.when(item.lt(range.end as i32), |warp| body(warp, item));
        }
    }

    /// Runs `body(warp, edge)` for each edge of a clause or variable.
    fn each_edge(
        &self,
        warp: &mut Warp<'_>,
        rows: &Rows,
        row: Lanes<u32>,
        mut body: impl FnMut(&mut Warp<'_>, Lanes<u32>),
    ) {
        let (first, end) = (warp.load(rows.first, row), warp.load(rows.first, row + 1));
        let (first, degree) = warp.compute(ComputeClass::Int, 1, (first, end - first));
        warp.repeat(degree, |warp, at| {
            let at = warp.compute(ComputeClass::Int, 1, first + at);
            let edge = warp.load(rows.edge, at);
            body(warp, edge);
        });
    }

    /// Runs `body(warp, clause, variable)` for an edge whose clause is not satisfied and whose variable is not fixed.
    fn when_open(
        &self,
        warp: &mut Warp<'_>,
        edge: Lanes<i32>,
        body: impl FnOnce(&mut Warp<'_>, Lanes<u32>, Lanes<u32>),
    ) {
        let variable = warp.load(self.variable, edge);
        let clause = warp.load(self.clause, edge);
        let satisfied = warp.load(self.clauses.done, clause);
        warp.when(!satisfied, |warp| {
            let fixed = warp.load(self.variables.done, variable);
            warp.when(!fixed, |warp| body(warp, clause, variable));
        });
    }

    /// Computes an edge's weights from the surveys of the other clauses at its variable (`calc_pi_values`).
    fn multiply(&self, warp: &mut Warp<'_>, edge: Lanes<i32>) {
        self.when_open(warp, edge, |warp, clause, variable| {
            let negated = warp.load(self.negated, edge);
            let [mut all, mut same, mut other] = [Lanes::all(1.0_f32); 3];
            self.each_edge(warp, &self.variables, variable, |warp, edge| {
                let from = warp.load(self.clause, edge);
                let satisfied = warp.load(self.clauses.done, from);
                warp.when(!satisfied & from.zip(clause, |from, clause| from != clause), |warp| {
                    let open = warp.load(self.survey, edge).map(|survey| 1.0 - survey);
                    let equal = warp.load(self.negated, edge).zip(negated, |edge, negated| edge == negated);
                    let (open, equal) = warp.compute(ComputeClass::Fp32, 3, (open, equal));
                    all = warp.update(all, all * open);
                    same = warp.update(same, equal.select(same * open, same));
                    other = warp.update(other, equal.select(other, other * open));
                });
            });
            let fails = same.zip(other, |same, other| (1.0 - other) * same);
            let satisfies = same.zip(other, |same, other| (1.0 - same) * other);
            let (fails, satisfies) = warp.compute(ComputeClass::Fp32, 4, (fails, satisfies));
            warp.store(self.free, edge, all);
            warp.store(self.fails, edge, fails);
            warp.store(self.satisfies, edge, satisfies);
        });
    }

    /// Computes an edge's survey, the probability that all other variables fail its clause, and returns the largest of
    /// `largest` and the survey's change (`update_eta`).
    fn survey(&self, warp: &mut Warp<'_>, edge: Lanes<i32>, largest: Lanes<f32>) -> Lanes<f32> {
        let mut most = largest;
        self.when_open(warp, edge, |warp, clause, variable| {
            let (mut survey, mut possible) = (Lanes::all(1.0_f32), Lanes::all(true));
            self.each_edge(warp, &self.clauses, clause, |warp, edge| {
                let other = warp.load(self.variable, edge);
                warp.when(possible & other.zip(variable, |other, variable| other != variable), |warp| {
                    let fixed = warp.load(self.variables.done, other);
                    warp.when(!fixed, |warp| {
                        let [free, satisfies, fails] =
                            [self.free, self.satisfies, self.fails].map(|weight| warp.load(weight, edge));
                        let sum = warp.compute(ComputeClass::Fp32, 2, free + satisfies + fails);
                        let factor = fails.zip(sum, |fails, sum| if sum == 0.0 { 0.0 } else { fails / sum });
                        survey = warp.update(survey, survey * factor);
                        possible = warp.update(possible, sum.ne(0.0));
                    });
                });
            });
            let survey = warp.compute(ComputeClass::Fp32, 8 * (self.literals as u16 - 1), survey);
            let old = warp.load(self.survey, edge);
            let change = warp.compute(ComputeClass::Fp32, 2, old.zip(survey, |old, new| (new - old).abs()));
            most = warp.update(most, most.max(change));
            warp.store(self.survey, edge, survey);
        });
        most
    }

    /// Runs [`Formula::survey`] over all edges, and reduces the largest change.
    fn survey_all(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let mut largest = Lanes::all(0.0);
            self.each(warp, 0..self.survey.len(), |warp, edge| largest = self.survey(warp, edge, largest));
            warp.when(largest.gt(0.0), |warp| {
                // Non-negative floats compare like their bit patterns.
                warp.reduce(Reduction::Max, self.change, Lanes::all(0), largest.map(f32::to_bits), ATOMIC);
            });
        });
    }

    /// Computes the bias of a variable that is not fixed and lists it; returns the larger probability (`update_bias`).
    fn find_bias(&self, warp: &mut Warp<'_>, variable: Lanes<i32>) -> Lanes<f32> {
        let mut larger = Lanes::all(0.0);
        let fixed = warp.load(self.variables.done, variable);
        warp.when(!fixed, |warp| {
            let [mut all, mut positive, mut negative] = [Lanes::all(1.0_f32); 3];
            self.each_edge(warp, &self.variables, variable.cast(), |warp, edge| {
                let clause = warp.load(self.clause, edge);
                let satisfied = warp.load(self.clauses.done, clause);
                warp.when(!satisfied, |warp| {
                    let open = warp.load(self.survey, edge).map(|survey| 1.0 - survey);
                    let negated = warp.load(self.negated, edge);
                    let (open, negated) = warp.compute(ComputeClass::Fp32, 3, (open, negated));
                    all = warp.update(all, all * open);
                    negative = warp.update(negative, negated.select(negative * open, negative));
                    positive = warp.update(positive, negated.select(positive, positive * open));
                });
            });
            let products = all.zip(positive, |all, positive| (all, positive));
            let both = products.zip(negative, |(all, positive), negative| demands(all, positive, negative));
            let [up, down] = [0, 1].map(|value: usize| both.map(|both| both[value]));
            let [up, down] = warp.compute(ComputeClass::Fp32, 22, [up, down]);
            let bias = up.zip(down, |up, down| (up - down).abs());
            warp.store(self.bias, variable, bias);
            warp.store(self.value, variable, up.gt(down));
            larger = warp.update(larger, up.max(down));
            let slot = warp.atomic(Reduction::Add, self.length, Lanes::all(0), 1, ATOMIC);
            warp.store(self.listed_bias, slot, bias);
            warp.store(self.listed, slot, variable.cast::<u32>());
        });
        larger
    }

    /// Runs [`Formula::find_bias`] over all variables, and adds up each CTA's larger probabilities.
    fn find_biases(&self, cta: &mut Cta<'_>) {
        let mut sum = 0.0;
        cta.each_warp(|warp| {
            let mut own = Lanes::all(0.0);
            self.each(warp, 0..self.variables(), |warp, variable| {
                let larger = self.find_bias(warp, variable);
                own = warp.update(own, own + larger);
            });
            let width = warp.width();
            sum += warp.sum_lanes(ComputeClass::Fp32, own, width).lane(0);
            warp.shared(1);
        });
        cta.barrier();
        cta.warp(0, |warp| {
            warp.shared(1);
            warp.single(|warp| warp.add_in_order(self.magnitude, Lanes::all(0), Lanes::all(sum), ATOMIC));
        });
    }

    /// Fixes a listed variable, and marks the clauses that it satisfies (`decimate_2`).
    fn fix(&self, warp: &mut Warp<'_>, at: Lanes<i32>) {
        let variable = warp.load(self.listed, at);
        warp.store(self.variables.done, variable, true);
        self.each_edge(warp, &self.variables, variable, |warp, edge| {
            let clause = warp.load(self.clause, edge);
            let satisfied = warp.load(self.clauses.done, clause);
            warp.when(!satisfied, |warp| {
                let negated = warp.load(self.negated, edge);
                let value = warp.load(self.value, variable);
                warp.when(negated.zip(value, |negated, value| negated != value), |warp| {
                    warp.store(self.clauses.done, clause, true);
                });
            });
        });
    }

    /// Launches sweeps until surveys settle.
    fn settle(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let edges = self.survey.len();
        for _ in 0..self.sweeps {
            host.launch(self.grid("multiply"), |cta| {
                cta.each_warp(|warp| self.each(warp, 0..edges, |warp, edge| self.multiply(warp, edge)));
            })?;
            host.memory().write(self.change, 0, 0);
            host.copy_to_device(self.change);
            host.launch(self.grid("survey"), |cta| self.survey_all(cta))?;
            host.copy_to_host(self.change);
            if f32::from_bits(host.memory().read(self.change, 0)) <= SETTLED {
                break;
            }
        }
        Ok(())
    }

    /// Lists the variables that are not fixed, by ascending bias, and returns their number; 0 if surveys are trivial.
    fn list(&self, host: &mut Host<'_>) -> Result<u64, RecordError> {
        host.memory().write(self.magnitude, 0, 0.0);
        host.memory().write(self.length, 0, 0);
        host.copy_to_device(self.magnitude);
        host.copy_to_device(self.length);
        host.launch_ordered(self.grid("bias"), |cta| self.find_biases(cta))?;
        host.copy_to_host(self.magnitude);
        host.copy_to_host(self.length);
        let length = u64::from(host.memory().read(self.length, 0));
        if f64::from(host.memory().read(self.magnitude, 0)) < TRIVIAL * length.max(1) as f64 {
            return Ok(0);
        }
        host.copy_to_host(self.listed_bias);
        host.copy_to_host(self.listed);
        let (bias, listed) = (host.memory().to_vec(self.listed_bias), host.memory().to_vec(self.listed));
        let mut order: Vec<_> = bias.into_iter().zip(listed).take(length as usize).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (at, (_, variable)) in (0..).zip(order) {
            host.memory().write(self.listed, at, variable);
        }
        host.copy_to_device(self.listed);
        Ok(length)
    }

    /// Literals of a clause as (variable, negated); the clause's variables are distinct.
    fn literal(&self, clause: u64) -> Vec<(u32, bool)> {
        let mut chosen: Vec<(u32, bool)> = Vec::new();
        let mut draws = (0..).map(|draw| noise::noise(self.seed ^ (clause << 8), draw));
        while chosen.len() < self.literals as usize {
            let bits = draws.next().unwrap_or_default();
            let variable = ((u128::from(bits) * u128::from(self.variables())) >> 64) as u32;
            if chosen.iter().all(|(other, _)| *other != variable) {
                chosen.push((variable, bits & 1 == 1));
            }
        }
        chosen
    }

    fn first_survey(&self, edge: u64) -> f32 {
        noise::below(self.seed ^ (1 << 60), edge, 1 << 20) as f32 / (1 << 20) as f32
    }

    /// Number of variables to fix per phase.
    fn fixed_per_phase(&self) -> u64 {
        (self.variables() / FIXED_IN).max(1)
    }
}

impl Instance for Formula {
    fn fill(&self, memory: &Memory) {
        let mut edges = vec![Vec::new(); self.variables() as usize];
        for clause in 0..self.clauses() {
            memory.write(self.clauses.first, clause, (clause * self.literals) as u32);
            for (edge, (variable, negated)) in (clause * self.literals..).zip(self.literal(clause)) {
                memory.write(self.clause, edge, clause as u32);
                memory.write(self.variable, edge, variable);
                memory.write(self.negated, edge, negated);
                memory.write(self.clauses.edge, edge, edge as u32);
                edges[variable as usize].push(edge as u32);
            }
        }
        memory.write(self.clauses.first, self.clauses(), self.survey.len() as u32);
        let mut at = 0;
        for (variable, edges) in (0..).zip(edges) {
            memory.write(self.variables.first, variable, at as u32);
            for edge in edges {
                memory.write(self.variables.edge, at, edge);
                at += 1;
            }
        }
        memory.write(self.variables.first, self.variables(), at as u32);
        memory.fill(self.survey, |edge| self.first_survey(edge));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for rows in [&self.clauses, &self.variables] {
            host.copy_to_device(rows.first);
            host.copy_to_device(rows.edge);
            host.copy_to_device(rows.done);
        }
        host.copy_to_device(self.clause);
        host.copy_to_device(self.variable);
        host.copy_to_device(self.negated);
        [self.survey, self.free, self.satisfies, self.fails].into_iter().for_each(|array| host.copy_to_device(array));
        let mut count = self.fixed_per_phase();
        for _ in 0..self.phases {
            self.settle(host)?;
            let length = self.list(host)?;
            if length == 0 {
                break;
            }
            count = fixed_count(count, length);
            host.launch_ordered(self.grid("fix"), |cta| {
                cta.each_warp(|warp| {
                    warp.load(self.length, Lanes::all(0));
                    self.each(warp, length - count..length, |warp, at| self.fix(warp, at));
                });
            })?;
        }
        host.copy_to_host(self.variables.done);
        host.copy_to_host(self.value);
        host.copy_to_host(self.survey);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut plain = ReferenceSurveys::new(self);
        plain.run(self);
        equal("fixed variable", &memory.to_vec(self.variables.done), &plain.fixed)?;
        equal("satisfied clause", &memory.to_vec(self.clauses.done), &plain.satisfied)?;
        equal("value", &memory.to_vec(self.value), &plain.value)?;
        equal("survey", &memory.to_vec(self.survey), &plain.surveys.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_demanded_by_the_clauses_that_no_other_satisfies() {
        assert_eq!(demands(1.0, 1.0, 1.0), [0.0; 2], "no clause demands it");
        assert_eq!(demands(0.0, 0.0, 1.0), [1.0, 0.0]);
        assert_eq!(demands(0.0, 1.0, 0.0), [0.0, 1.0]);
        assert_eq!(demands(0.0, 0.0, 0.0), [0.0; 2], "the clauses contradict each other");
    }

    #[test]
    fn the_last_variables_are_fixed_one_at_a_time() {
        assert_eq!([fixed_count(5, 100), fixed_count(5, 5), fixed_count(5, 4)], [5, 5, 1]);
    }
}
