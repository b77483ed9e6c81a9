//! A numeric axis: range, ticks, and number positions along the axis.

/// Approximate number of intervals on an axis.
const PARTS: f64 = 5.0;

/// Maximum number of decades on a logarithmic axis with a tick each.
const DECADES: i32 = 8;

/// A numeric axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChartAxis {
    /// Ends of the axis.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<f64>,
    log: bool,
}

impl ChartAxis {
    /// Creates an axis that covers `values`, and zero if `from_zero` is set. The axis is logarithmic if `log` is set
    /// and positive numbers exist.
    pub(super) fn over(values: &[f64], log: bool, from_zero: bool) -> ChartAxis {
        let finite = values.iter().copied().filter(|value| value.is_finite() && value.abs() < 1e300);
        if log {
            let above: Vec<f64> = finite.filter(|value| *value > 1e-300).collect();
            return ChartAxis::logarithmic(
                above.iter().copied().fold(f64::INFINITY, f64::min),
                above.iter().copied().fold(0.0, f64::max),
            );
        }
        let (mut low, mut high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        ChartAxis::linear(low, high)
    }

    fn linear(low: f64, high: f64) -> ChartAxis {
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let (low, high) = match high - low {
            span if span > high.abs().max(low.abs()) * 1e-9 => (low, high),
            _ if high == 0.0 => (0.0, 1.0),
            _ if high > 0.0 => (low.min(0.0), high),
            _ => (low, 0.0),
        };
        let step = round((high - low) / PARTS);
        let first = (low / step + 1e-9).floor();
        let last = (high / step - 1e-9).ceil();
        let ticks: Vec<f64> = (0..=(last - first) as u32).map(|index| (first + f64::from(index)) * step).collect();
        ChartAxis { low: first * step, high: last * step, ticks, log: false }
    }

    fn logarithmic(low: f64, high: f64) -> ChartAxis {
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let first = (low.log10() + 1e-9).floor() as i32;
        let last = ((high.log10() - 1e-9).ceil() as i32).max(first + 1);
        let stride = (last - first + DECADES - 1) / DECADES;
        let decades = (first..=last).filter(|decade| (decade - first) % stride == 0);
        ChartAxis {
            low: 10f64.powi(first),
            high: 10f64.powi(last),
            ticks: decades.map(|one| 10f64.powi(one)).collect(),
            log: true,
        }
    }

    /// Returns the position of `value` between the ends, 0 to 1; `None` if a logarithmic axis cannot show the value.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let share = match self.log {
            true if value <= 0.0 => return None,
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.is_finite().then_some(share.clamp(0.0, 1.0))
    }

    /// Returns the short label at a tick: `0.25`, `20 k`.
    pub(super) fn label(&self, tick: f64) -> String {
        let step = if self.log { tick } else { self.ticks[1] - self.ticks[0] };
        let (unit, name) = scale(self.high.abs().max(self.low.abs()).min(if self.log { tick } else { f64::INFINITY }));
        let digits = (-(step / unit).log10() - 1e-9).ceil().max(0.0);
        // A step like 2.5 or 0.25 needs an additional digit.
        let whole = (step / unit * 10f64.powf(digits)).fract().abs();
        let digits = digits as usize + usize::from(whole > 1e-6 && whole < 1.0 - 1e-6);
        format!("{:.digits$}{name}", tick / unit).replace('-', "\u{2212}")
    }
}

/// Returns the power of a thousand used to label numbers with this magnitude.
fn scale(size: f64) -> (f64, &'static str) {
    let prefixes = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")];
    let found = prefixes.into_iter().find(|(unit, _)| size >= *unit);
    found.map_or((1.0, ""), |(unit, name)| (if name == " k" { 1e3 } else { unit }, name))
}

/// Rounds `step` up to the next round value: 1, 2, 2.5 or 5 times a power of ten.
fn round(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &ChartAxis) -> Vec<String> {
        axis.ticks.iter().map(|tick| axis.label(*tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let axis = ChartAxis::over(&[1.0, 2.61], false, true);
        assert_eq!(labels(&axis), ["0", "1", "2", "3"]);
        assert_eq!(
            labels(&ChartAxis::over(&[1.02, 1.21], false, false)),
            ["1.00", "1.05", "1.10", "1.15", "1.20", "1.25"]
        );
        assert_eq!(
            labels(&ChartAxis::over(&[-3.0, 9.0], false, true)),
            ["−5.0", "−2.5", "0.0", "2.5", "5.0", "7.5", "10.0"]
        );
        assert_eq!(labels(&ChartAxis::over(&[80_000.0], false, true)), ["0 k", "20 k", "40 k", "60 k", "80 k"]);
    }

    #[test]
    fn a_logarithmic_axis_has_a_tick_a_decade_and_no_place_for_zero() {
        let axis = ChartAxis::over(&[0.0, 30.0, 2e4], true, true);
        assert_eq!(labels(&axis), ["10", "100", "1000", "10 k", "100 k"]);
        assert_eq!((axis.share(0.0), axis.share(10.0), axis.share(1e3)), (None, Some(0.0), Some(0.5)));
    }

    #[test]
    fn an_axis_stands_whatever_the_values_are() {
        for values in [&[][..], &[0.0], &[-1.0], &[5.0, 5.0], &[f64::NAN, 1e12, 1e-9, -1e6], &[f64::MAX]] {
            for (log, from_zero) in [(false, false), (false, true), (true, true)] {
                let axis = ChartAxis::over(values, log, from_zero);
                assert!(axis.low < axis.high && axis.ticks.len() > 1, "{values:?}: {axis:?}");
                assert!(axis.ticks.len() < 15 && axis.ticks.iter().all(|tick| !axis.label(*tick).contains("NaN")));
            }
        }
    }
}
