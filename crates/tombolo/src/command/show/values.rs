//! `show machine` and `show design`: prints every value and the value's source.

use crate::failure::CommandFailure;
use crate::output::show;
use crate::table::{Cell, Look, Table};
use serde::Serialize;
use serde_json::Value;
use tombolo_machine::{Description, DescriptionKind, ResolvedValue};

/// Arguments for `show machine` and `show design`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A name from `list`, or the path to a .toml file
    name: String,
    /// Shows only values different from OTHER's, side by side
    #[arg(long = "diff", value_name = "OTHER")]
    diff: Option<String>,
    /// Shows each value's origin: its source, and the line in the setting file
    #[arg(long = "sources")]
    sources: bool,
    /// Prints a JSON document instead of text, sources included
    #[arg(long = "json")]
    json: bool,
}

/// Origin for a value not set by any file.
const DEFAULT: &str = "default";

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ValueWithOrigin {
    value: String,
    /// File and line that set the value, or `default`.
    from: String,
    source: String,
}

/// A key with its value.
#[derive(Serialize)]
struct KeyValue {
    path: String,
    #[serde(flatten)]
    told: ValueWithOrigin,
}

/// All values of a machine or design.
#[derive(Serialize)]
struct AllValues {
    kind: &'static str,
    name: String,
    description: String,
    values: Vec<KeyValue>,
}

/// A key with two different values.
#[derive(Serialize)]
struct Difference {
    path: String,
    of: ValueWithOrigin,
    other: ValueWithOrigin,
}

/// Differences between two machines or designs.
#[derive(Serialize)]
struct Differences {
    kind: &'static str,
    name: String,
    other: String,
    differences: Vec<Difference>,
}

/// A machine or design in the output.
struct ResolvedDescription {
    /// Name from the description.
    name: String,
    /// Checked values in canonical units, for comparison.
    checked: Value,
    values: Vec<ResolvedValue>,
}

impl Arguments {
    /// Prints the values or the differences.
    pub(super) fn execute<T: DescriptionKind + Serialize>(&self) -> Result<(), CommandFailure> {
        let one = ResolvedDescription::read::<T>(&self.name)?;
        let Some(other) = &self.diff else {
            let whole = one.whole(T::KIND);
            return show(self.json, &whole, |colours| whole.text(self.sources, colours));
        };
        let differences = one.differences(&ResolvedDescription::read::<T>(other)?, T::KIND);
        show(self.json, &differences, |colours| differences.text(self.sources, colours))
    }
}

impl ResolvedDescription {
    fn read<T: DescriptionKind + Serialize>(name: &str) -> Result<ResolvedDescription, CommandFailure> {
        let description = Description::<T>::named(name)?;
        let checked = serde_json::to_value(description.check()?).expect("its keys are strings");
        let name = checked["name"].as_str().unwrap_or(name).to_owned();
        Ok(ResolvedDescription { name, checked, values: description.resolved()? })
    }

    /// Returns the values, except for name and description.
    fn values(&self) -> impl Iterator<Item = &ResolvedValue> {
        self.values.iter().filter(|value| !matches!(value.path().as_str(), "name" | "description"))
    }

    /// Returns the checked value at `path`, in canonical units.
    fn checked(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(&self.checked, |value, part| value.get(part))
    }

    fn whole(&self, kind: &'static str) -> AllValues {
        let entry = |value: &ResolvedValue| KeyValue { path: value.path(), told: ValueWithOrigin::of(value) };
        AllValues {
            kind,
            name: self.name.clone(),
            description: self.checked["description"].as_str().unwrap_or_default().to_owned(),
            values: self.values().map(entry).collect(),
        }
    }

    fn differences(&self, other: &ResolvedDescription, kind: &'static str) -> Differences {
        let mut paths: Vec<String> = self.values().map(ResolvedValue::path).collect();
        // Adds keys that only the second side's chosen option reads.
        paths.extend(other.values().map(ResolvedValue::path).filter(|path| self.value(path).is_none()));
        let differences = paths.into_iter().filter_map(|path| self.difference(other, path)).collect();
        Differences { kind, name: self.name.clone(), other: other.name.clone(), differences }
    }

    fn value(&self, path: &str) -> Option<&ResolvedValue> {
        self.values().find(|value| value.path() == path)
    }

    fn difference(&self, other: &ResolvedDescription, path: String) -> Option<Difference> {
        let [one, two] = [self, other].map(|side| side.value(&path));
        let [a, b] = [self, other].map(|side| side.checked(&path).filter(|checked| !checked.is_object()));
        let same = match (one, two) {
            (Some(one), Some(two)) if a.is_none() || b.is_none() => one.value == two.value,
            (Some(_), Some(_)) => a == b,
            _ => false,
        };
        let [mut of, mut beside] =
            [one, two].map(|value| value.map_or_else(ValueWithOrigin::none, ValueWithOrigin::of));
        if of.value == beside.value {
            // Equal cycle counts under two different clocks: the converted values show the difference.
            of.add(a);
            beside.add(b);
        }
        (!same).then_some(Difference { path, of, other: beside })
    }
}

impl ValueWithOrigin {
    fn of(value: &ResolvedValue) -> ValueWithOrigin {
        let from = value.place.as_ref().map_or_else(|| DEFAULT.to_owned(), ToString::to_string);
        ValueWithOrigin { value: value.value.clone(), from, source: value.source.clone() }
    }

    /// Placeholder for a key that the side does not read.
    fn none() -> ValueWithOrigin {
        ValueWithOrigin { value: "-".to_owned(), from: "not read".to_owned(), source: String::new() }
    }

    /// Appends the converted value to the text.
    fn add(&mut self, checked: Option<&Value>) {
        if let Some(checked) = checked {
            let text = checked.as_str().map_or_else(|| checked.to_string(), str::to_owned);
            self.value = format!("{} = {text}", self.value);
        }
    }

    /// Returns the table cells: the value, and with `sources` also its origin.
    fn cells(&self, sources: bool) -> Vec<Cell> {
        let more = if sources { vec![self.from.as_str(), self.source.as_str()] } else { Vec::new() };
        std::iter::once(self.value.as_str()).chain(more).map(Cell::plain).collect()
    }
}

impl AllValues {
    fn text(&self, sources: bool, colours: bool) -> String {
        let mut table = Table::new(4);
        for KeyValue { path, told } in &self.values {
            table.row([vec![Cell::new(path, Look::Strong)], told.cells(sources)].concat());
        }
        let heading = Look::Strong.paint(&format!("{} {}", self.kind, self.name), colours);
        format!("{heading}: {}\n{}", tombolo_report::clean(&self.description), table.render(colours))
    }
}

impl Differences {
    fn text(&self, sources: bool, colours: bool) -> String {
        let Differences { kind, name, other, differences } = self;
        if differences.is_empty() {
            return format!(
                "{} and {} have the same values\n",
                tombolo_report::clean(name),
                tombolo_report::clean(other)
            );
        }
        let mut table = match sources {
            true => Table::new(5),
            false => Table::new(3).with_headings([kind, name.as_str(), other]),
        };
        for Difference { path, of, other: beside } in differences {
            let key = Cell::new(path, Look::Strong);
            if sources {
                table.row([vec![key, Cell::plain(name)], of.cells(true)].concat());
                table.row([vec![Cell::plain(""), Cell::plain(other)], beside.cells(true)].concat());
            } else {
                table.row([vec![key], of.cells(false), beside.cells(false)].concat());
            }
        }
        table.render(colours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_machine::MachineConfig;

    fn differing(one: &str, other: &str) -> Vec<(String, String, String)> {
        let [one, other] = [one, other].map(|name| ResolvedDescription::read::<MachineConfig>(name).expect("it ships"));
        let all = one.differences(&other, "machine").differences.into_iter();
        all.map(|one| (one.path, one.of.value, one.other.value)).collect()
    }

    #[test]
    fn one_gpu_of_a_machine_differs_in_the_number_of_gpus_alone() {
        let gpus = ("topology.gpus".to_owned(), "4".to_owned(), "1".to_owned());
        assert_eq!(differing("hmg-4x4", "hmg-1x4"), [gpus]);
        assert!(differing("hmg-4x4", "hmg-4x4").is_empty());
    }

    #[test]
    fn one_value_in_two_units_is_no_difference_and_cycles_of_two_clocks_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("UTF-8").to_owned()
        };
        let sized = file("sized.toml", "base = \"hmg-4x4\"\n[l2]\nbytes = \"3072KB\"\n");
        assert!(differing("hmg-4x4", &sized).is_empty());
        let latency = "[crossbar]\nlatency = \"2 cycles\"\n[sm]\nclock = ";
        let slow = file("slow.toml", &format!("base = \"hmg-4x4\"\n{latency}\"1GHz\"\n"));
        let fast = file("fast.toml", &format!("base = \"hmg-4x4\"\n{latency}\"2GHz\"\n"));
        let found = differing(&slow, &fast);
        let expected = ("crossbar.latency".to_owned(), "2 cycles = 2ns".to_owned(), "2 cycles = 1ns".to_owned());
        assert!(found.contains(&expected), "{found:?}");
    }
}
