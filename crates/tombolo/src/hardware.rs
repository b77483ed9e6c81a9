//! Machine, designs, settings and scale: from the command line to checked configurations.

use crate::failure::{CommandFailure, did_you_mean};
use crate::output::complain;
use std::sync::Arc;
use tombolo_design::{DesignConfig, apply, design};
use tombolo_machine::error::near;
use tombolo_machine::{Description, MachineConfig, MachineScale, machine};

/// Arguments that select and modify a machine.
#[derive(clap::Args)]
pub(crate) struct MachineArguments {
    /// Machine: a name from `list machines`, or the path to a .toml file
    #[arg(long = "machine", value_name = "M")]
    machine: String,
    /// Replaces a value of the machine or the designs, like l2.bytes=6MB; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
    /// Fraction of the machine and of the workload's input to run, like 1/16 or 0.25: rounded to the nearest with whole
    /// SMs in each module
    #[arg(long = "scale", value_name = "F", default_value = "1", allow_negative_numbers = true)]
    scale: MachineScale,
}

/// Machine and designs to run a workload on.
pub(crate) struct Hardware {
    /// The scaled machine.
    pub(crate) machine: Arc<MachineConfig>,
    /// The designs, in the given order.
    pub(crate) designs: Vec<DesignConfig>,
    /// Notes about the spelling of the designs.
    pub(crate) notes: Vec<String>,
}

impl MachineArguments {
    /// Creates the arguments of a machine with these settings at this scale.
    pub(crate) fn new(machine: String, settings: Vec<String>, scale: MachineScale) -> MachineArguments {
        MachineArguments { machine, settings, scale }
    }

    /// Returns the settings given by the user.
    pub(crate) fn settings(&self) -> &[String] {
        &self.settings
    }

    /// Returns the name given for the machine, which may be a file.
    pub(crate) fn machine(&self) -> &str {
        &self.machine
    }

    /// Scales `whole`, the machine described by the user. Prints a note if the scale differs from the requested scale.
    pub(crate) fn scaled(&self, whole: &MachineConfig) -> Result<MachineConfig, CommandFailure> {
        scaled(self.scale, whole)
    }

    /// Returns the machine and `designs` after all settings, before any checks.
    pub(crate) fn described(
        &self,
        designs: &[String],
    ) -> Result<(Description<MachineConfig>, Vec<Description<DesignConfig>>), CommandFailure> {
        self.described_from(designs, &[])
    }

    /// Like [`Self::described`], with `before` applied first: user settings override them.
    pub(crate) fn described_from(
        &self,
        designs: &[String],
        before: &[&str],
    ) -> Result<(Description<MachineConfig>, Vec<Description<DesignConfig>>), CommandFailure> {
        let mut machine = machine(&self.machine)?;
        let mut described = designs.iter().map(|name| design(name)).collect::<Result<Vec<_>, _>>()?;
        apply(before, &mut machine, &mut described)?;
        apply(&self.settings, &mut machine, &mut described)?;
        Ok((machine, described))
    }

    /// Returns the machine and `designs`, all checked.
    pub(crate) fn hardware(&self, designs: &[String]) -> Result<Hardware, CommandFailure> {
        let (machine, described) = self.described(designs)?;
        let machine = Arc::new(self.scaled(&machine.check()?)?);
        let designs = described.iter().map(|one| one.check()).collect::<Result<Vec<_>, _>>()?;
        refuse_twice("--designs", designs.iter().map(|one| one.name.as_str()))?;
        let notes = print_notes(&described);
        Ok(Hardware { machine, designs, notes })
    }
}

/// Scales `whole` to the scale nearest to `asked` that leaves modules with whole SMs. Prints a note if the two scales
/// differ.
pub(crate) fn scaled(asked: MachineScale, whole: &MachineConfig) -> Result<MachineConfig, CommandFailure> {
    let (sms, name) = (whole.topology.sms_per_module, &whole.name);
    let scale = asked.with_whole_sms([sms]);
    if scale != asked {
        complain(&format!(
            "note: --scale {asked}: runs at {scale}, the nearest at which the {sms} SMs of a module of {name} stay whole"
        ));
    }
    Ok(whole.scaled(scale)?)
}

/// Returns the index of the baseline `asked` among the designs `names`, whose command-line spelling is `given`. The
/// first design is the default.
pub(crate) fn baseline(asked: Option<&str>, given: &[String], names: &[String]) -> Result<usize, CommandFailure> {
    let Some(asked) = asked else { return Ok(0) };
    given.iter().zip(names).position(|(given, name)| given == asked || name == asked).ok_or_else(|| {
        let hint = did_you_mean(&near(asked, names.iter().map(String::as_str)));
        let reason = format!("not one of --designs{hint}; these are {}", names.join(", "));
        CommandFailure::Argument { flag: "--baseline", value: asked.to_owned(), reason }
    })
}

/// Prints each distinct note about the spelling of designs, and returns the notes.
pub(crate) fn print_notes(designs: &[Description<DesignConfig>]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in designs.iter().flat_map(Description::notes) {
        if !notes.contains(note) {
            complain(&format!("note: {note}"));
            notes.push(note.clone());
        }
    }
    notes
}

/// Returns an error if a name occurs twice, because results are identified by name.
pub(crate) fn refuse_twice<'a>(flag: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), CommandFailure> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            let reason = "given twice; results go by name".to_owned();
            return Err(CommandFailure::Argument { flag, value: name.to_owned(), reason });
        }
        seen.push(name);
    }
    Ok(())
}
