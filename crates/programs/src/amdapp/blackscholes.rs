//! BlackScholes from the AMD APP SDK: prices of European options, four per thread, in groups of 16 x 16 threads.
//!
//! A thread draws a number for each option and derives stock price, strike price, time, interest and volatility from
//! this number.

use super::square_grid::{SquareGrid, fit_square};
use crate::prelude::*;

/// Threads along a group's side: the sample doubles both sides in turn up to 256 threads.
const SIDE: i32 = 16;
/// Options per thread (`float4`).
const VECTOR: u64 = 4;

/// Work before the load.
const ADDRESS: InstructionCounts = InstructionCounts { fp32: 8, int: 10, other: 0, special: 0 };
/// Work from the load to the call's price. Loads from tables of logarithms, among the constants, are left out.
const CALL: InstructionCounts = InstructionCounts { fp32: 668, int: 105, other: 96, special: 36 };
/// Work from the call's price to the put's price.
const PUT: InstructionCounts = InstructionCounts { fp32: 132, int: 1, other: 16, special: 8 };

/// Lowest and highest price for stock and strike.
const PRICE: [f64; 2] = [10.0, 100.0];
/// Shortest and longest time.
const TIME: [f64; 2] = [1.0, 10.0];
/// Lowest and highest interest rate.
const INTEREST: [f64; 2] = [0.01, 0.05];
/// Lowest and highest volatility.
const VOLATILITY: [f64; 2] = [0.01, 0.10];
/// Weights for the powers of t = 1 / (1 + [`SLOPE`] |x|), from the first power, in the normal distribution's tail
/// beyond x. Source: Abramowitz and Stegun, 26.2.17.
const WEIGHTS: [f64; 5] = [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
/// Slope in the formula for t. Source: Abramowitz and Stegun, 26.2.17.
const SLOPE: f64 = 0.231_641_9;

program! {
    /// prices of options, four a thread: one array read, two written, each once
    pub(crate) static BLACKSCHOLES = "blackscholes",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), BlackScholes; UMH, Table I";
    properties: data_independent;
    parameters {
        /// options, 4-byte floats, before rounding, at scale 1; scales
        samples: count(1..=1 << 30) = 2_097_152, "UMH, Table I: 2097152, of which the sample makes 1048576";
    }
    lay_out(name, request, memory) {
        let width = fit_square(request, "samples", SIDE as u64);
        let options = VECTOR * width * width;
        check_indices(name, options, "options")?;
    }
    struct EuropeanOptions {
        draws, call, put: Array<f32>[options],
        grid: SquareGrid = SquareGrid { width: width as i32, side: SIDE },
        seed: u64 = request.seed,
    }
}

/// Call and put prices in single precision.
fn prices(draw: f32) -> [f32; 2] {
    let between = |[low, high]: [f64; 2]| low as f32 * draw + high as f32 * (1.0 - draw);
    let (stock, strike, time) = (between(PRICE), between(PRICE), between(TIME));
    let (interest, volatility) = (between(INTEREST), between(VOLATILITY));
    let spread = volatility * time.sqrt();
    let near = ((stock / strike).ln() + (interest + volatility * volatility / 2.0) * time) / spread;
    let far = near - spread;
    let discounted = strike * (-interest * time).exp();
    let call = stock * below(near) - discounted * below(far);
    [call, discounted * below(-far) - stock * below(-near)]
}

/// The normal distribution's probability below `x`.
fn below(x: f32) -> f32 {
    let t = 1.0 / (1.0 + SLOPE as f32 * x.abs());
    let sum = WEIGHTS.iter().rev().fold(0.0, |sum, weight| (sum + *weight as f32) * t);
    let above = (-x * x / 2.0).exp() / std::f32::consts::TAU.sqrt() * sum;
    if x < 0.0 { above } else { 1.0 - above }
}

impl EuropeanOptions {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            ADDRESS.alone(warp);
            let [column, row] = self.grid.global(warp);
            let first = (row * self.grid.width + column) * VECTOR as i32;
            let draws: [_; VECTOR as usize] = warp.load_vector(self.draws, first);
            let draws = CALL.on(warp, draws);
            let prices = draws.map(|draw| warp.calculate(ComputeClass::Fp32, 0, [draw], |[draw]| prices(draw)));
            warp.store_vector(self.call, first, prices.map(|[call, _]| call));
            PUT.alone(warp);
            warp.store_vector(self.put, first, prices.map(|[_, put]| put));
        });
    }

    /// A number from 0 to 1, both included.
    fn draw(&self, index: u64) -> f32 {
        noise::below(self.seed, index, (1 << 24) + 1) as f32 / (1 << 24) as f32
    }

    /// Call and put prices in double precision; the put price follows from the call price by put-call parity.
    fn expected(&self, index: u64) -> [f64; 2] {
        let draw = f64::from(self.draw(index));
        let between = |[low, high]: [f64; 2]| high - draw * (high - low);
        let (price, time, interest, volatility) =
            (between(PRICE), between(TIME), between(INTEREST), between(VOLATILITY));
        // Stock and strike have equal prices, so the logarithm of their quotient is zero.
        let normal = |x: f64| {
            let t = 1.0 / (1.0 + SLOPE * x.abs());
            let sum: f64 = (1..).zip(WEIGHTS).map(|(power, weight)| weight * t.powi(power)).sum();
            let above = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum;
            if x < 0.0 { above } else { 1.0 - above }
        };
        let drift = interest * time.sqrt() / volatility;
        let half = volatility * time.sqrt() / 2.0;
        let discounted = price * (-interest * time).exp();
        let call = price * normal(drift + half) - discounted * normal(drift - half);
        [call, call - price + discounted]
    }
}

impl Instance for EuropeanOptions {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.draws, |index| self.draw(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.draws);
        let groups = self.draws.len() / VECTOR / u64::from(self.grid.threads());
        host.launch(Grid::new("blackscholes", groups, self.grid.threads()), |cta| self.kernel(cta))?;
        host.copy_to_host(self.call);
        host.copy_to_host(self.put);
        Ok(())
    }

    /// Compares prices of up to 100 in single precision, to within a thousandth.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = |which: usize| (0..self.draws.len()).map(move |index| self.expected(index)[which] as f32);
        compare("call", memory.to_vec(self.call), expected(0), 1e-3)?;
        compare("put", memory.to_vec(self.put), expected(1), 1e-3)
    }
}
