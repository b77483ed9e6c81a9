//! Comparison of results with a reference that sums in another order.

/// Largest difference, relative to the larger of the value and 1. Source: assumed; far above the roundings of
/// some thousand operations (2^-53 each) and far below any wrong term.
const TOLERANCE: f64 = 1e-10;

/// `Err` names the first element of `what` that differs.
pub(crate) fn agree(what: &str, found: &[f64], expected: &[f64]) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} elements of {what}, expected {}", found.len(), expected.len()));
    }
    let wrong = |(found, expected): (&f64, &f64)| {
        let near = (found - expected).abs() <= TOLERANCE * expected.abs().max(1.0);
        !near
    };
    match found.iter().zip(expected).position(wrong) {
        Some(at) => Err(format!("{what} {at} is {}, expected {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// Compares a single-precision sum with its reference: relative to the sum of the magnitudes of the terms.
pub(crate) fn compare(what: &str, found: f32, expected: f64, magnitude: f64) -> Result<(), String> {
    let tolerance = 1e-5 * magnitude.max(1.0);
    if (f64::from(found) - expected).abs() <= tolerance {
        return Ok(());
    }
    Err(format!("{what} is {found}, expected {expected} within {tolerance}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_beyond_rounding_is_named() {
        assert!(agree("sum", &[1.0, 1e6], &[1.0, 1e6 + 1e-5]).is_ok());
        assert_eq!(agree("sum", &[1.0, 2.0], &[1.0, 2.5]).unwrap_err(), "sum 1 is 2, expected 2.5");
        assert!(agree("sum", &[f64::NAN], &[1.0]).is_err());
        assert!(agree("sum", &[1.0], &[]).is_err());
    }
}
