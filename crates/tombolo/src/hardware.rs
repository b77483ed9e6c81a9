//! Machine, designs, settings and scale: from the command line to checked configurations.

use crate::failure::{Failure, did_you_mean};
use crate::output::complain;
use std::sync::Arc;
use tombolo_design::{DesignConfig, apply, design};
use tombolo_machine::error::near;
use tombolo_machine::{Description, MachineConfig, Scale, machine};

/// Which machine, and how changed.
#[derive(clap::Args)]
pub(crate) struct MachineArguments {
    /// Machine: a name of `list machines`, or the path of a .toml file
    #[arg(long = "machine", value_name = "M")]
    machine: String,
    /// Replaces a value of the machine or the designs, such as l2.bytes=6MB; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
    /// Fraction of the machine and of the workload's input to run, such as 1/16 or 0.25: the nearest at which modules keep
    /// whole SMs
    #[arg(long = "scale", value_name = "F", default_value = "1", allow_negative_numbers = true)]
    scale: Scale,
}

/// What a workload runs on.
pub(crate) struct Hardware {
    /// The machine, scaled.
    pub(crate) machine: Arc<MachineConfig>,
    /// The designs, in the order given.
    pub(crate) designs: Vec<DesignConfig>,
    /// What to tell of how they were written.
    pub(crate) notes: Vec<String>,
}

impl MachineArguments {
    /// The settings, as given.
    pub(crate) fn settings(&self) -> &[String] {
        &self.settings
    }

    /// The machine as named, which may be a file.
    pub(crate) fn machine(&self) -> &str {
        &self.machine
    }

    /// The fraction of `whole`, the machine as described, that runs. Tells where it is not the one that was asked for.
    pub(crate) fn scaled(&self, whole: &MachineConfig) -> Result<MachineConfig, Failure> {
        scaled(self.scale, whole)
    }

    /// The machine with `designs` as set, not yet checked.
    pub(crate) fn described(
        &self,
        designs: &[String],
    ) -> Result<(Description<MachineConfig>, Vec<Description<DesignConfig>>), Failure> {
        self.described_from(designs, &[])
    }

    /// The same, where `before` is set first: what the user sets replaces it.
    pub(crate) fn described_from(
        &self,
        designs: &[String],
        before: &[&str],
    ) -> Result<(Description<MachineConfig>, Vec<Description<DesignConfig>>), Failure> {
        let mut machine = machine(&self.machine)?;
        let mut described = designs.iter().map(|name| design(name)).collect::<Result<Vec<_>, _>>()?;
        apply(before, &mut machine, &mut described)?;
        apply(&self.settings, &mut machine, &mut described)?;
        Ok((machine, described))
    }

    /// The machine with `designs`, all checked.
    pub(crate) fn hardware(&self, designs: &[String]) -> Result<Hardware, Failure> {
        let (machine, described) = self.described(designs)?;
        let machine = Arc::new(self.scaled(&machine.check()?)?);
        let designs = described.iter().map(|one| one.check()).collect::<Result<Vec<_>, _>>()?;
        refuse_twice("--designs", designs.iter().map(|one| one.name.as_str()))?;
        let notes = told(&described);
        Ok(Hardware { machine, designs, notes })
    }
}

/// `whole` at the scale nearest to `asked` at which modules keep whole SMs. Tells where that is another.
pub(crate) fn scaled(asked: Scale, whole: &MachineConfig) -> Result<MachineConfig, Failure> {
    let (sms, name) = (whole.topology.sms_per_module, &whole.name);
    let scale = asked.with_whole_sms([sms]);
    if scale != asked {
        complain(&format!(
            "note: --scale {asked}: runs at {scale}, the nearest at which the {sms} SMs of a module of {name} stay whole"
        ));
    }
    Ok(whole.scaled(scale)?)
}

/// The index of the baseline `asked` for among designs `names`, `given` so on the command line; the first where none is.
pub(crate) fn baseline(asked: Option<&str>, given: &[String], names: &[String]) -> Result<usize, Failure> {
    let Some(asked) = asked else { return Ok(0) };
    given.iter().zip(names).position(|(given, name)| given == asked || name == asked).ok_or_else(|| {
        let hint = did_you_mean(&near(asked, names.iter().map(String::as_str)));
        let reason = format!("not one of --designs{hint}; these are {}", names.join(", "));
        Failure::Argument { flag: "--baseline", value: asked.to_owned(), reason }
    })
}

/// Tells what there is to note of how designs were written, each note once, and returns it.
pub(crate) fn told(designs: &[Description<DesignConfig>]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in designs.iter().flat_map(Description::notes) {
        if !notes.contains(note) {
            complain(&format!("note: {note}"));
            notes.push(note.clone());
        }
    }
    notes
}

/// An error where a name occurs twice: results go by name.
pub(crate) fn refuse_twice<'a>(flag: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            let reason = "given twice; results go by name".to_owned();
            return Err(Failure::Argument { flag, value: name.to_owned(), reason });
        }
        seen.push(name);
    }
    Ok(())
}
