//! Parameters of a workload: declared once, then checked against the user's values.

use crate::scale::Scale;
use std::fmt;
use std::ops::RangeInclusive;
use thiserror::Error;

/// The values accepted by a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// A whole number from `low` to `high`, both included.
    Count {
        /// Smallest allowed number.
        low: u64,
        /// Largest allowed number.
        high: u64,
    },
    /// A word out of this fixed list.
    Choice(&'static [&'static str]),
    /// `yes` or `no`; also `true` or `false`.
    Flag,
    /// The path of a file; empty for no file.
    File,
}

/// Prints the allowed values.
impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterKind::Count { low, high } => write!(f, "a whole number from {low} to {high}"),
            ParameterKind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            ParameterKind::Flag => f.write_str("yes or no"),
            ParameterKind::File => f.write_str("the path of a file"),
        }
    }
}

/// A parameter of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Key for setting the parameter.
    pub name: &'static str,
    /// Allowed values.
    pub kind: ParameterKind,
    /// Value used if the user gives none.
    pub default: &'static str,
    /// Description for the user, including the unit.
    pub about: &'static str,
    /// Source of the default value.
    pub source: &'static str,
}

/// Constructors, called by [`parameters!`](crate::parameters). `about` describes the parameter, with its unit; `source`
/// is that of the default.
///
/// # Panics
/// If the default is not allowed. In a constant or a static this is an error of compilation.
impl Parameter {
    /// A whole number within `allowed`.
    pub const fn count(
        name: &'static str,
        allowed: RangeInclusive<u64>,
        default: &'static str,
        about: &'static str,
        source: &'static str,
    ) -> Parameter {
        let kind = ParameterKind::Count { low: *allowed.start(), high: *allowed.end() };
        Parameter { name, kind, default, about, source }.checked()
    }

    /// A word out of a list.
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        about: &'static str,
        source: &'static str,
    ) -> Parameter {
        Parameter { name, kind: ParameterKind::Choice(words), default, about, source }.checked()
    }

    /// `yes` or `no`.
    pub const fn flag(
        name: &'static str,
        default: &'static str,
        about: &'static str,
        source: &'static str,
    ) -> Parameter {
        Parameter { name, kind: ParameterKind::Flag, default, about, source }.checked()
    }

    /// The path of a file; none by default.
    pub const fn file(name: &'static str, about: &'static str, source: &'static str) -> Parameter {
        Parameter { name, kind: ParameterKind::File, default: "", about, source }
    }

    /// Returns the parameter if its default is allowed.
    pub const fn checked(self) -> Parameter {
        match self.kind {
            ParameterKind::Count { low, high } => match u64::from_str_radix(self.default, 10) {
                Ok(count) => assert!(low <= count && count <= high, "the default is outside the allowed range"),
                Err(_) => panic!("the default is no whole number"),
            },
            ParameterKind::Choice(words) => assert!(has(words, self.default), "the default is none of the words"),
            ParameterKind::Flag => assert!(has(&["yes", "no"], self.default), "the default of a flag is yes or no"),
            ParameterKind::File => {}
        }
        self
    }
}

/// True if `word` is one of `words`, also in a constant.
const fn has(words: &[&str], word: &str) -> bool {
    let mut place = 0;
    while place < words.len() && !are_equal(words[place], word) {
        place += 1;
    }
    place < words.len()
}

/// True if two texts are equal, also in a constant.
const fn are_equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The text of a doc comment, without the space after its slashes.
#[doc(hidden)]
pub const fn help_text(comment: &'static str) -> &'static str {
    comment.trim_ascii_start()
}

/// A mismatch between the user's values and the workload's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// The workload has no parameter with the given key.
    #[error("{workload} has no parameter `{key}`; it has {allowed}")]
    Unknown {
        /// Name of the workload.
        workload: String,
        /// The key as given.
        key: String,
        /// All keys of the workload.
        allowed: String,
    },
    /// A value outside the parameter's allowed values.
    #[error("{workload}: `{key}={value}`: expected {allowed}")]
    Value {
        /// Name of the workload.
        workload: String,
        /// Key of the parameter.
        key: String,
        /// The value as given.
        value: String,
        /// Description of the allowed values.
        allowed: String,
    },
    /// A key given twice.
    #[error("{workload}: `{key}` is given twice")]
    Twice {
        /// Name of the workload.
        workload: String,
        /// The repeated key.
        key: String,
    },
}

/// A parameter set by the workload to a value different from the requested value.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjustedParameter {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Requested value, before scaling.
    pub given: String,
    /// Scale of the run.
    pub scale: Scale,
    /// Requested value multiplied by the scale.
    pub scaled: f64,
    /// Value used by the workload.
    pub used: f64,
    /// Rule for admissible values, as told to the user.
    pub rule: String,
}

impl fmt::Display for AdjustedParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AdjustedParameter { parameter, given, scale, scaled: wanted, used: taken, rule } = self;
        write!(f, "`{parameter}={given}`")?;
        if *scale != Scale::FULL {
            write!(f, ", {wanted} at scale {scale},")?;
        }
        write!(f, " is taken as {taken}: {rule}")
    }
}

/// A workload's parameters with their checked values.
#[derive(Clone, Debug)]
pub struct ParameterValues {
    parameters: &'static [Parameter],
    values: Vec<(&'static str, String)>,
    /// Names of all parameters set by the user.
    given: Vec<&'static str>,
}

impl ParameterValues {
    /// Checks `given` (key, value) against `parameters` and returns all values; parameters absent from `given` keep
    /// their defaults.
    pub fn check(
        workload: &str,
        parameters: &'static [Parameter],
        given: &[(String, String)],
    ) -> Result<ParameterValues, ParameterError> {
        for (place, (key, _)) in given.iter().enumerate() {
            if parameters.iter().all(|parameter| parameter.name != key) {
                return Err(unknown(workload, parameters, key));
            }
            if given[..place].iter().any(|(before, _)| before == key) {
                return Err(ParameterError::Twice { workload: workload.to_owned(), key: key.clone() });
            }
        }
        let value_of = |parameter: &'static Parameter| {
            let value = given.iter().find(|(key, _)| key == parameter.name).map(|(_, value)| value.as_str());
            let value = value.unwrap_or(parameter.default);
            match check_value(parameter.kind, value) {
                Ok(()) => Ok((parameter.name, spelled(parameter.kind, value))),
                Err(allowed) => Err(ParameterError::Value {
                    workload: workload.to_owned(),
                    key: parameter.name.to_owned(),
                    value: value.to_owned(),
                    allowed,
                }),
            }
        };
        let values = parameters.iter().map(value_of).collect::<Result<_, _>>()?;
        let is_given = |name: &&str| given.iter().any(|(key, _)| key == name);
        Ok(ParameterValues {
            parameters,
            values,
            given: parameters.iter().map(|parameter| parameter.name).filter(is_given).collect(),
        })
    }

    /// True if the user gave a value for the parameter.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(&name)
    }

    /// The value of a parameter. Panics if the workload does not declare the parameter.
    pub fn text(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no parameter `{name}` is declared"))
    }

    /// The word of a [`ParameterKind::Choice`] parameter. Panics if the workload declares no choice with this name.
    pub fn choice(&self, name: &str) -> &'static str {
        let parameter = self.parameters.iter().find(|parameter| parameter.name == name);
        let Some(Parameter { kind: ParameterKind::Choice(words), .. }) = parameter else {
            panic!("parameter `{name}` is declared as no choice");
        };
        let chosen = self.text(name);
        words.iter().find(|word| **word == chosen).expect("a checked value is one of the words")
    }

    /// True if a [`ParameterKind::Flag`] parameter is set.
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == "yes"
    }

    /// The value of a [`ParameterKind::Count`] parameter. Panics if the workload declares no count with this name.
    pub fn count(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_else(|_| panic!("parameter `{name}` is declared as no count"))
    }
}

/// Canonical spelling for storing a value: each value has exactly one.
fn spelled(kind: ParameterKind, value: &str) -> String {
    match (kind, value) {
        (ParameterKind::Flag, "true") => "yes".to_owned(),
        (ParameterKind::Flag, "false") => "no".to_owned(),
        _ => value.to_owned(),
    }
}

fn unknown(workload: &str, parameters: &[Parameter], key: &str) -> ParameterError {
    let names: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
    let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    ParameterError::Unknown { workload: workload.to_owned(), key: key.to_owned(), allowed }
}

/// Checks a value against a kind; `Err` describes the allowed values.
fn check_value(kind: ParameterKind, value: &str) -> Result<(), String> {
    let fits = match kind {
        ParameterKind::Count { low, high } => value.parse::<u64>().is_ok_and(|count| (low..=high).contains(&count)),
        ParameterKind::Choice(words) => words.contains(&value),
        ParameterKind::Flag => ["yes", "no", "true", "false"].contains(&value),
        ParameterKind::File => true,
    };
    if fits { Ok(()) } else { Err(kind.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMETERS: [Parameter; 3] = crate::parameters![
        /// a number
        n: count(1..=9) = 3, "";
        /// a scope,
        /// in a text of two lines
        scope: choice("gpu", "sys") = "gpu", "";
        /// both
        both: flag = "no", "";
    ];

    #[test]
    fn a_declared_parameter_has_its_comment_for_a_help_text() {
        let [n, scope, both] = &PARAMETERS;
        assert_eq!((n.name, n.kind, n.default), ("n", ParameterKind::Count { low: 1, high: 9 }, "3"));
        assert_eq!((scope.kind, both.kind), (ParameterKind::Choice(&["gpu", "sys"]), ParameterKind::Flag));
        assert_eq!(scope.about, "a scope, in a text of two lines");
    }

    #[test]
    #[should_panic(expected = "the default is none of the words")]
    fn a_default_is_one_of_the_words() {
        Parameter::choice("scope", &["gpu", "sys"], "cta", "", "");
    }

    fn check(given: &[(&str, &str)]) -> Result<ParameterValues, String> {
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        ParameterValues::check("demo", &PARAMETERS, &given).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_given_replaces_the_default() {
        let values = check(&[("n", "7")]).unwrap();
        assert_eq!((values.count("n"), values.text("scope"), values.choice("scope")), (7, "gpu", "gpu"));
        assert!(values.is_given("n") && !values.is_given("scope"));
    }

    #[test]
    fn a_flag_has_one_spelling() {
        for (given, kept) in [("yes", "yes"), ("true", "yes"), ("no", "no"), ("false", "no")] {
            let values = check(&[("both", given)]).unwrap();
            assert_eq!((values.text("both"), values.flag("both")), (kept, kept == "yes"));
        }
    }

    #[test]
    fn an_adjusted_parameter_says_what_was_asked_and_what_is_taken() {
        let rule = "whole parts of 16".to_owned();
        let at = |scale, wanted| {
            let (given, rule) = ("100".to_owned(), rule.clone());
            AdjustedParameter { parameter: "kib", given, scale, scaled: wanted, used: 144.0, rule }.to_string()
        };
        assert_eq!(at(Scale::FULL, 100.0), "`kib=100` is taken as 144: whole parts of 16");
        let half = Scale::new(1, 2).unwrap();
        assert_eq!(at(half, 50.0), "`kib=100`, 50 at scale 1/2, is taken as 144: whole parts of 16");
    }

    #[test]
    fn an_error_says_what_is_allowed() {
        let unknown = check(&[("m", "7")]).unwrap_err();
        assert_eq!(unknown, "demo has no parameter `m`; it has n, scope, both");
        let large = check(&[("n", "10")]).unwrap_err();
        assert_eq!(large, "demo: `n=10`: expected a whole number from 1 to 9");
        let word = check(&[("scope", "cta")]).unwrap_err();
        assert_eq!(word, "demo: `scope=cta`: expected one of gpu, sys");
        let flag = check(&[("both", "maybe")]).unwrap_err();
        assert_eq!(flag, "demo: `both=maybe`: expected yes or no");
        assert_eq!(check(&[("n", "1"), ("n", "1")]).unwrap_err(), "demo: `n` is given twice");
    }
}
