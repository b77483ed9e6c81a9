//! Repetitions of directions: alternative seeds, alternative scales, and assumed values halved and doubled.

use crate::claim::{is_as_claimed, measured};
use crate::error::SpecError;
use crate::figure::FigureTable;
use crate::grid::{Change, Inputs, Numbers};
use crate::plan::{ExperimentPlan, ScaleChoice};
use crate::spec::{self, Kind, Repeat, Text};
use tombolo_machine::MachineScale;
use tombolo_report::document::Repetition;

impl ExperimentPlan {
    /// Rejects every repetition with an impossible change.
    pub(crate) fn check_repeats(&self) -> Result<(), SpecError> {
        for repeat in &self.spec.repeat {
            for text in &repeat.scales {
                self.scale_of(text)?;
            }
            for path in &repeat.assumed {
                self.halved_and_doubled(path)?;
            }
            for label in &repeat.only {
                // At quick scale the figure itself may contain fewer workloads.
                if self.choice != ScaleChoice::Quick {
                    self.index("repeat.only", label, spec::Dimension::Workload)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the repetitions for this run. Long repetitions, including all at paper scale, are returned only if
    /// `robust` is set.
    pub(crate) fn changes(&self, robust: bool) -> Result<Vec<Change>, SpecError> {
        if self.spec.claim.iter().all(|claim| claim.kind != Kind::Direction || claim.mechanism.is_some()) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        let takes_long = |repeat: &Repeat| repeat.on_request || self.choice == ScaleChoice::Paper;
        for repeat in self.spec.repeat.iter().filter(|repeat| robust || !takes_long(repeat)) {
            let only = self.only(repeat);
            if only.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let one = |label: String| Change { label, only: only.clone(), ..Change::default() };
            for seed in &repeat.seeds {
                changes.push(Change { seed: Some(*seed), ..one(format!("seed {seed}")) });
            }
            for text in &repeat.scales {
                let scale = self.scale_of(text)?;
                if !self.is_own_scale(scale, &only) {
                    changes.push(Change { scale: Some(scale), ..one(format!("scale {scale}")) });
                }
            }
            for (wanted, inputs, label) in [
                (repeat.whole_inputs, Inputs::Whole, "inputs of scale 1"),
                (repeat.second_inputs, Inputs::Second, "second inputs"),
            ] {
                let has = |index: &usize| self.workloads[*index].inputs(inputs).is_some();
                if wanted && self.workloads_of(&one(String::new())).iter().any(has) {
                    changes.push(Change { inputs, ..one(label.to_owned()) });
                }
            }
            for path in &repeat.assumed {
                for (label, setting) in self.halved_and_doubled(path)? {
                    changes.push(Change { set: vec![setting], ..one(label) });
                }
            }
        }
        Ok(changes)
    }

    /// True if these workloads already run at `scale`.
    fn is_own_scale(&self, scale: MachineScale, only: &Option<Vec<usize>>) -> bool {
        let mut all = (0..self.workloads.len()).filter(|index| only.as_ref().is_none_or(|only| only.contains(index)));
        all.all(|index| self.workloads[index].scale == scale)
    }

    /// Describes the scales at which directions are not repeated because the run itself has this scale.
    pub(crate) fn own_scales(&self) -> Vec<String> {
        let repeats = self.spec.repeat.iter().map(|repeat| (self.only(repeat), &repeat.scales));
        let named = repeats.flat_map(|(only, scales)| scales.iter().map(move |text| (only.clone(), text)));
        let own = named.filter(|(only, text)| self.scale_of(text).is_ok_and(|scale| self.is_own_scale(scale, only)));
        own.map(|(_, text)| {
            format!(
                "{}: directions are not repeated at a second scale, {} is the run's own.",
                self.heading(),
                text.get()
            )
        })
        .collect()
    }

    fn only(&self, repeat: &Repeat) -> Option<Vec<usize>> {
        let index = |label: &Text| self.workloads.iter().position(|one| one.label == label.get());
        (!repeat.only.is_empty()).then(|| repeat.only.iter().filter_map(index).collect())
    }

    fn scale_of(&self, text: &Text) -> Result<MachineScale, SpecError> {
        let refuse = |error: tombolo_machine::ConfigError| self.file.refuse("repeat.scales", text, error.to_string());
        let scale = text.get().parse().map_err(refuse)?;
        for machine in &self.machines {
            machine.description.check().and_then(|machine| machine.scaled(scale)).map_err(refuse)?;
        }
        Ok(scale)
    }

    /// Returns a label and a setting each for half and twice the value at `path` in the first machine, after the
    /// experiment's settings.
    fn halved_and_doubled(&self, path: &Text) -> Result<[(String, String); 2], SpecError> {
        let refuse = |reason: String| self.file.refuse("repeat.assumed", path, reason);
        let named = &self.machines[0];
        let is_it = |other: &str| of_machine(other) == of_machine(path.get());
        let sets = |setting: &Text| setting.get().split_once('=').is_some_and(|(set, _)| is_it(set));
        if self.spec.axis.iter().flat_map(|axis| &axis.step).flat_map(|step| &step.set).any(sets) {
            return Err(refuse("steps of an axis set it".to_owned()));
        }
        let mut described = named.description.clone();
        for setting in self.spec.set.iter().filter(|setting| sets(setting)) {
            tombolo_design::apply(&[setting.get()], &mut described, &mut [])
                .map_err(|error| refuse(error.to_string()))?;
        }
        let values = described.values();
        let value = values.iter().find(|value| is_it(&value.path)).map(|value| &value.value);
        let value = value.ok_or_else(|| refuse(format!("machine {} has no value there", named.name)))?;
        let [half, twice] = half_and_twice(value)
            .ok_or_else(|| refuse(format!("{value} cannot be halved and doubled: a number with a unit can")))?;
        let setting = |value: String| format!("{}={value}", path.get());
        for value in [&half, &twice] {
            let mut changed = described.clone();
            let set = changed.set(path.get(), value).and_then(|()| changed.check().map(drop));
            set.map_err(|error| refuse(error.to_string()))?;
        }
        let label = |factor: &str| format!("{} × {factor}", path.get());
        Ok([(label("1/2"), setting(half)), (label("2"), setting(twice))])
    }
}

/// Returns a machine path without the optional prefix `machine.`, spelled like the machine's own values.
pub(crate) fn of_machine(path: &str) -> &str {
    path.trim().strip_prefix("machine.").unwrap_or(path.trim())
}

/// Halves and doubles a whole number with its unit. Half a count is rounded down to a whole number, except for a count
/// of one.
fn half_and_twice(value: &str) -> Option<[String; 2]> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = value.split_at(digits(value));
    if let Some(rest) = unit.strip_prefix('.') {
        let (decimals, unit) = rest.split_at(digits(rest));
        // The half has an additional digit: half a whole number in units of the last place.
        let places: u64 = format!("{number}{decimals}").parse().ok().filter(|places| *places > 0)?;
        let decimal = |places: u64, count: usize| {
            let text = format!("{places:0width$}", width = count + 1);
            let (whole, part) = text.split_at(text.len() - count);
            format!("{whole}.{part}").trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let half = decimal(places.checked_mul(5)?, decimals.len() + 1);
        let twice = decimal(places.checked_mul(2)?, decimals.len());
        return Some([half + unit, twice + unit]);
    }
    let number: u64 = number.parse().ok().filter(|number| *number > 0 && !unit.starts_with('/'))?;
    let half = match (number % 2, unit) {
        (0, _) => format!("{}{unit}", number / 2),
        (_, "") if number > 1 => (number / 2).to_string(),
        _ => format!("{}.5{unit}", number / 2),
    };
    Some([half, format!("{}{unit}", number.checked_mul(2)?)])
}

/// Evaluates each direction under each change, by claim in file order. The comparison uses the changed workloads
/// without the change as well. A direction over all workloads may not hold for the repeated subset, and such a
/// repetition then gives no information.
pub(crate) fn repetitions(
    plan: &ExperimentPlan,
    changes: &[Change],
    numbers: &mut Numbers<'_>,
) -> Vec<Vec<Repetition>> {
    let mut all = vec![Vec::new(); plan.spec.claim.len()];
    let whole = FigureTable::of(plan, &Change::default(), numbers);
    for change in changes {
        let table = FigureTable::of(plan, change, numbers);
        let nothing = Change { only: change.only.clone(), ..Change::default() };
        let unchanged = FigureTable::of(plan, &nothing, numbers);
        for (claim, repetitions) in plan.spec.claim.iter().zip(&mut all) {
            let is_direction = claim.kind == Kind::Direction && claim.mechanism.is_none();
            if !is_direction || !has_rows(claim, &table) || !has_columns(plan, claim, change) {
                continue;
            }
            let holds = |value: Option<f64>| value.is_some_and(|value| is_as_claimed(claim, value));
            let of_all = holds(measured(claim, &whole));
            let (measured, unchanged) = (measured(claim, &table), measured(claim, &unchanged));
            let agrees =
                agreement(of_all, unchanged.map(|value| holds(Some(value))), measured.map(|value| holds(Some(value))));
            let of = change.only.as_ref().map(|only| only.iter().map(|index| plan.workloads[*index].label.as_str()));
            let of = of.map(|labels| format!(" ({})", labels.collect::<Vec<_>>().join(", "))).unwrap_or_default();
            let change = format!("{}{of}", change.label);
            repetitions.push(Repetition { change, measured, holds: holds(measured), unchanged, agrees });
        }
    }
    all
}

/// Compares the outcome of a direction with and without a change. Inputs are the outcome on all workloads, on the
/// repeated workloads unchanged, and on the repeated workloads changed.
fn agreement(of_all: bool, unchanged: Option<bool>, changed: Option<bool>) -> Option<bool> {
    let unchanged = unchanged?;
    if changed != Some(unchanged) {
        return Some(false);
    }
    (unchanged == of_all).then_some(true)
}

/// True if all rows named by a claim are part of a repetition.
fn has_rows(claim: &spec::Claim, table: &FigureTable) -> bool {
    let cells = claim.of.iter().chain(&claim.to);
    cells.filter_map(|cell| cell.row.as_ref()).all(|row| table.row(row.get()).is_some())
}

/// True if all columns named by a claim are part of a repetition; workload columns may be absent.
fn has_columns(plan: &ExperimentPlan, claim: &spec::Claim, change: &Change) -> bool {
    let ran = plan.workloads_of(change);
    let is_part = |column: &Text| ran.iter().any(|index| plan.workloads[*index].label == column.get());
    let mut columns = claim.of.iter().chain(&claim.to).flat_map(|cell| &cell.columns);
    plan.layout.columns != spec::Dimension::Workload || columns.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_do_not_show_a_direction_say_nothing_of_it() {
        assert_eq!(agreement(true, Some(true), Some(true)), Some(true));
        assert_eq!(agreement(true, Some(true), Some(false)), Some(false));
        assert_eq!(agreement(true, Some(false), Some(false)), None, "they contradict it with and without the change");
        assert_eq!(agreement(true, Some(false), Some(true)), Some(false), "the change decides");
        assert_eq!(agreement(false, Some(false), Some(false)), Some(true), "it fails either way");
        assert_eq!(agreement(true, Some(true), None), Some(false), "a run under the change gave no result");
        assert_eq!(agreement(true, None, Some(true)), None, "nothing to compare with");
    }

    #[test]
    fn second_inputs_are_those_of_quick_scale_with_some_replaced() {
        let plan = |choice| {
            let (_, experiments) = crate::preset::paper("umh").unwrap();
            let (file, spec) = experiments.into_iter().find(|(_, spec)| spec.id == "figure-13-1").unwrap();
            ExperimentPlan::new(file, spec, choice).unwrap()
        };
        let quick = plan(ScaleChoice::Quick);
        let labels: Vec<String> = quick.changes(false).unwrap().into_iter().map(|change| change.label).collect();
        assert_eq!(labels, ["seed 2", "seed 3", "second inputs"]);
        let [dct, product] = ["DCT", "MM"].map(|label| quick.workloads.iter().find(|one| one.label == label).unwrap());
        assert_eq!(dct.choice.label, "dct");
        assert_eq!(dct.inputs(Inputs::Second).unwrap().label, "dct,columns=512,rows=512");
        assert_eq!(product.choice.label, "amdapp-matrixmultiplication,side=512");
        assert_eq!(product.inputs(Inputs::Second).unwrap().label, "amdapp-matrixmultiplication,side=256");
        assert_eq!(product.inputs(Inputs::Whole).unwrap().label, "amdapp-matrixmultiplication");
        let second = |change: &Change| change.inputs == Inputs::Second;
        assert!(!plan(ScaleChoice::Paper).changes(true).unwrap().iter().any(second));
    }

    #[test]
    fn a_value_is_halved_and_doubled_with_its_unit() {
        let both = |half: &str, twice: &str| Some([half.to_owned(), twice.to_owned()]);
        assert_eq!(half_and_twice("256"), both("128", "512"));
        assert_eq!(half_and_twice("1us"), both("0.5us", "2us"));
        assert_eq!(half_and_twice("40 cycles"), both("20 cycles", "80 cycles"));
        assert_eq!(half_and_twice("5"), both("2", "10"));
        assert_eq!(half_and_twice("1"), both("0.5", "2"), "what takes no half refuses it");
        assert_eq!(half_and_twice("156.25fJ"), both("78.125fJ", "312.5fJ"));
        assert_eq!(half_and_twice("0.54pJ"), both("0.27pJ", "1.08pJ"));
        assert_eq!(half_and_twice("2.5 cycles"), both("1.25 cycles", "5 cycles"));
        assert_eq!(half_and_twice("greedy-oldest"), None);
        assert_eq!(half_and_twice("infinite"), None);
    }
}
