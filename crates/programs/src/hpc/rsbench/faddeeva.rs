//! Complex numbers and the Faddeeva function, which broadens resonances.

use std::f64::consts::PI;
use std::ops::{Add, Mul, Sub};
use std::sync::LazyLock;

/// A complex number with real and imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// The imaginary unit.
const I: Complex = Complex { re: 0.0, im: 1.0 };
/// Window width for the Fourier expansion. Source: Abrarov and Quine, 2011; with this width RSBench is accurate to
/// about 1e-6 after few terms.
const TAU: f64 = 12.0;
/// Number of terms in the expansion. Source: RSBench (`fast_nuclear_W`).
const TERMS: usize = 10;
/// Distance from the origin beyond which two terms in the asymptotic expansion suffice. Source: RSBench.
const FAR: f64 = 6.0;
/// Weights and positions for these terms: the two-term rational approximation for large arguments, (1/2 ± 1/√6)/√π and
/// (3 ± √6)/2.
const ASYMPTOTIC: [(f64, f64); 2] =
    [(0.512_424_224_754_768_5, 0.275_255_128_608_410_95), (0.051_765_358_792_987_824, 2.724_744_871_391_589)];

/// Position and weight per term in the Fourier expansion, computed on first use.
static EXPANSION: LazyLock<[(f64, f64); TERMS]> = LazyLock::new(|| {
    std::array::from_fn(|term| {
        let place = ((term + 1) * (term + 1)) as f64 * PI * PI;
        (place, 2.0 * PI.sqrt() / TAU * (-place / (TAU * TAU)).exp())
    })
});

impl Complex {
    pub(super) fn real(re: f64) -> Complex {
        Complex { re, im: 0.0 }
    }

    fn over(self, other: Complex) -> Complex {
        let square = other.re * other.re + other.im * other.im;
        let product = self * Complex { im: -other.im, ..other };
        Complex { re: product.re / square, im: product.im / square }
    }

    fn exp(self) -> Complex {
        let size = self.re.exp();
        Complex { re: size * self.im.cos(), im: size * self.im.sin() }
    }
}

impl Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Complex;
    fn sub(self, other: Complex) -> Complex {
        Complex { re: self.re - other.re, im: self.im - other.im }
    }
}

impl Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

impl Mul<f64> for Complex {
    type Output = Complex;
    fn mul(self, factor: f64) -> Complex {
        Complex { re: self.re * factor, im: self.im * factor }
    }
}

/// Faddeeva function at `z`, which lies in the upper half-plane and not on the real axis.
pub(super) fn faddeeva(z: Complex) -> Complex {
    let square = z * z;
    if z.re * z.re + z.im * z.im >= FAR * FAR {
        let sum = ASYMPTOTIC.iter().fold(Complex::default(), |sum, (weight, place)| {
            sum + Complex::real(*weight).over(square - Complex::real(*place))
        });
        return I * z * sum;
    }
    let wave = (I * z * TAU).exp();
    let mut sum = (Complex::real(1.0) - wave).over(z * TAU);
    let mut series = Complex::default();
    for (term, (place, weight)) in EXPANSION.iter().enumerate() {
        let sign = if term % 2 == 0 { -1.0 } else { 1.0 };
        let above = (wave * sign - Complex::real(1.0)) * *weight;
        series = series + above.over(Complex::real(*place) - square * (TAU * TAU));
    }
    sum = sum + z * series * (TAU * TAU / PI.sqrt());
    I * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_tables() {
        let near = |re, im, expected: (f64, f64), tolerance: f64| {
            let found = faddeeva(Complex { re, im });
            let error = (found.re - expected.0).abs().max((found.im - expected.1).abs());
            assert!(error < tolerance, "w({re} + {im}i) is {found:?}");
        };
        // Abramowitz and Stegun, Table 7.9; e erfc(1) on the imaginary axis.
        near(0.0, 1.0, (0.427_584, 0.0), 1e-3);
        near(1.0, 1.0, (0.304_744, 0.208_219), 1e-3);
        near(0.5, 0.1, (0.717_588, 0.424_617), 2e-2);
        near(8.0, 1.0, (0.008_932, 0.070_051), 1e-3);
    }
}
