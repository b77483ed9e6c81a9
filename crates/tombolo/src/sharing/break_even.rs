//! Searches the link rate at which two sharing policies break even. The search moves from the machine's own rate
//! outwards in both directions, then bisects on a logarithmic scale. Every time is measured in a real run.

use crate::failure::CommandFailure;
use tombolo_types::Rate;

/// Largest distance from the machine's own rate, in the form of a factor.
pub(crate) const SPAN: u64 = 64;
/// Factor between consecutive rates during the outward search.
const STRIDE: u64 = 4;
/// Times closer than this relative difference count as equal: half the tolerance promised for a rerun at the printed
/// rate.
const LEVEL: f64 = 0.01;
/// Maximum number of bisections: a bracket with ratio [`STRIDE`] is then narrower than the digits of a rate.
const HALVINGS: u32 = 14;

/// Comparison of two policies over all rates tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BreakEven {
    /// Both take equal time at this rate.
    At(Rate),
    /// The order changes at this rate because times jump: they are never equal.
    Jump(Rate),
    /// A single policy is ahead at every rate.
    Never,
}

/// Searches from the rate `own`, at which both policies take the times `there`. `times` runs both at a given rate.
pub(crate) fn search(
    own: Rate,
    there: [f64; 2],
    mut times: impl FnMut(Rate) -> Result<[f64; 2], CommandFailure>,
) -> Result<BreakEven, CommandFailure> {
    if own.is_infinite() || there[0] == there[1] {
        return Ok(if own.is_infinite() { BreakEven::Never } else { BreakEven::At(own) });
    }
    let first = gap(there);
    let [mut below, mut above] = [own.0; 2];
    let mut factor = 1;
    while factor < SPAN {
        factor *= STRIDE;
        for (inner, outer) in [(&mut below, own.0 / factor), (&mut above, own.0.saturating_mul(factor))] {
            let outer = rounded(outer as f64);
            if (gap(times(Rate(outer))?) > 0.0) != (first > 0.0) {
                return halve(*inner, outer, first > 0.0, &mut times);
            }
            *inner = outer;
        }
    }
    Ok(BreakEven::Never)
}

/// Bisects between two rates. At `near` the first policy is behind if `is_behind` is set; at `far` the order is
/// reversed.
fn halve(
    mut near: u64,
    mut far: u64,
    is_behind: bool,
    times: &mut impl FnMut(Rate) -> Result<[f64; 2], CommandFailure>,
) -> Result<BreakEven, CommandFailure> {
    for _ in 0..HALVINGS {
        let middle = rounded((near as f64 * far as f64).sqrt());
        if middle == near || middle == far {
            break;
        }
        let gap = gap(times(Rate(middle))?);
        if gap.abs() <= LEVEL {
            return Ok(BreakEven::At(Rate(middle)));
        }
        *(if (gap > 0.0) == is_behind { &mut near } else { &mut far }) = middle;
    }
    Ok(BreakEven::Jump(Rate(far)))
}

/// Returns the lag of the first policy, relative to the shorter time; negative if the first is ahead.
fn gap([first, second]: [f64; 2]) -> f64 {
    (first - second) / first.min(second)
}

/// Rounds to four digits, so that the printed rate equals the simulated rate.
fn rounded(rate: f64) -> u64 {
    let rate = rate.max(1.0);
    let unit = 10_f64.powf(rate.log10().floor() - 3.0).max(1.0);
    ((rate / unit).round() * unit).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times of a policy that moves `bytes` and has additional work independent of the rate.
    fn moving(bytes: f64, work: f64) -> impl Fn(Rate) -> f64 {
        move |rate| work + bytes / rate.0 as f64
    }

    fn found(own: u64, first: impl Fn(Rate) -> f64, second: impl Fn(Rate) -> f64) -> BreakEven {
        let both = |rate| [first(rate), second(rate)];
        search(Rate(own), both(Rate(own)), |rate| Ok(both(rate))).expect("no run fails")
    }

    #[test]
    fn it_is_where_both_take_as_long_on_either_side_of_the_machines_rate() {
        // 2 s + 100 MB and 1 s + 200 MB: equal at 100 MB/s.
        for own in [3_000_000, 80_000_000, 100_000_000, 5_000_000_000] {
            let (first, second) = (moving(1e8, 2.0), moving(2e8, 1.0));
            let BreakEven::At(rate) = found(own, &first, &second) else { panic!("they change places") };
            assert!((first(rate) / second(rate) - 1.0).abs() <= LEVEL, "{rate:?}");
            assert!((rate.0 as f64 / 1e8 - 1.0).abs() < 0.05, "{rate:?}");
        }
    }

    #[test]
    fn who_is_ahead_everywhere_has_none() {
        assert_eq!(found(1_000_000_000, moving(1e8, 1.0), moving(2e8, 1.0)), BreakEven::Never);
        assert_eq!(found(0, moving(1e8, 2.0), moving(2e8, 1.0)), BreakEven::Never, "links without a limit");
        let far = found(1_000_000_000_000, moving(1e8, 2.0), moving(2e8, 1.0));
        assert_eq!(far, BreakEven::Never, "it is beyond the span");
    }

    #[test]
    fn a_jump_is_told_as_one() {
        let step = |rate: Rate| if rate.0 < 50_000_000 { 1.0 } else { 3.0 };
        let BreakEven::Jump(rate) = found(100_000_000, step, |_| 2.0) else { panic!("it jumps") };
        assert!((rate.0 as f64 / 5e7 - 1.0).abs() < 0.001, "{rate:?}");
    }

    #[test]
    fn a_rate_has_four_digits() {
        assert_eq!([31_498_765_432.0, 999_960.0, 12.3].map(rounded), [31_500_000_000, 1_000_000, 12]);
    }
}
