//! Formats numbers for people.

/// Text in place of a missing number.
pub(crate) const MISSING: &str = "–";

/// Formats a number with about four digits: `1.260`, `84.5`, `12,345`, `1.2e-7`; a dash for a missing number.
pub(crate) fn number(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => MISSING.to_owned(),
        Some(value) => finite(value),
    }
}

/// Formats a number with about three digits, for the space next to a bar: `1.26`, `84.5`, `12.3 M`.
pub(crate) fn brief(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        _ if value == 0.0 => "0".to_owned(),
        _ if size < 0.001 => format!("{value:.1e}"),
        _ if size < 0.0995 => format!("{value:.3}"),
        _ if size < 9.995 => format!("{value:.2}"),
        _ if size < 99.95 => format!("{value:.1}"),
        _ if size < 9999.5 => format!("{value:.0}"),
        _ if value < 0.0 => format!("-{}", si(size)),
        _ => si(size),
    };
    text.replace('-', "\u{2212}")
}

/// Formats a number, followed by the unit.
pub(crate) fn quantity(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(_) if !unit.is_empty() => format!("{} {unit}", number(value)),
        _ => number(value),
    }
}

fn finite(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        _ if value == 0.0 => "0".to_owned(),
        _ if !(1e-3..1e15).contains(&size) => format!("{value:.3e}"),
        _ if value.fract() == 0.0 || size >= 999.95 => grouped(value),
        _ if size >= 99.995 => format!("{value:.1}"),
        _ if size >= 9.9995 => format!("{value:.2}"),
        _ if size >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    };
    // A true minus sign is as wide as a digit.
    text.replace('-', "\u{2212}")
}

/// Formats `value` with a decimal prefix, three or four digits: `12.3 M`.
fn si(value: f64) -> String {
    const PREFIXES: [(f64, &str); 4] = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    match PREFIXES.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{}{name}", short(value / unit)),
        None => short(value),
    }
}

fn short(value: f64) -> String {
    match value {
        _ if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a count.
pub fn count(value: u64) -> String {
    si(value as f64)
}

/// Formats bytes in decimal units, the customary units for links and memories: `1.23 GB`.
pub fn bytes(value: u64) -> String {
    let text = si(value as f64);
    if text.contains(' ') { format!("{text}B") } else { format!("{text} B") }
}

/// Formats a whole number with thousands separators.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_about_four_digits() {
        let given = [0.0, 1.26, 0.0371, 84.0, 99.999, 123.45, 999.96, 12_345.6, -1_234_567.0, 1.2e-7, 3e20];
        let shown = given.map(|value| number(Some(value)));
        let expected =
            ["0", "1.260", "0.03710", "84", "100.0", "123.5", "1,000", "12,346", "−1,234,567", "1.200e−7", "3.000e20"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_number_beside_a_bar_has_three_digits() {
        let shown = [0.0, 1.264, 0.0371, 84.53, 123.45, 12_345.6, -0.5, -2e6].map(brief);
        assert_eq!(shown, ["0", "1.26", "0.037", "84.5", "123", "12.3 k", "−0.50", "−2 M"]);
    }

    #[test]
    fn prefixes_keep_numbers_short() {
        let counts = [0, 7, 1500, 12_345, 123_456, 5_000_000];
        assert_eq!(counts.map(count), ["0", "7", "1.50 k", "12.3 k", "123 k", "5 M"]);
        assert_eq!((bytes(17), bytes(2_500_000_000)), ("17 B".into(), "2.50 GB".into()));
    }

    #[test]
    fn what_is_not_a_number_is_a_dash() {
        assert_eq!([None, Some(f64::NAN), Some(f64::INFINITY)].map(number), [MISSING; 3]);
        assert_eq!((quantity(None, "GB/s"), quantity(Some(2.0), "GB/s")), (MISSING.into(), "2 GB/s".into()));
    }
}
