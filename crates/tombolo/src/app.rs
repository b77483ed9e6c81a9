//! The command line of a user's own crate: the shipped one, with what the crate adds.

use crate::failure::CommandFailure;
use crate::{WRONG_INPUT, observer, output, program, protocol};
use serde::Serialize;
use std::process::ExitCode;
use tombolo_design::DesignConfig;
use tombolo_experiment::error::PointError;
use tombolo_machine::MachineConfig;
use tombolo_machine::preset::{self, Preset};

/// Programs, protocols, machines, designs and observers to add to the command line.
///
/// What is added has a name of its own, and is known to every command: `run`, `compare`, `sweep`, `explain`, `share`,
/// `scale`, `list` and `show`, and files of experiments. `tombolo new crate` writes a crate that uses it.
///
/// ```
/// /// The command line with a program of [`tombolo::program`].
/// fn command_line(program: &'static dyn tombolo::program::Workload) -> std::process::ExitCode {
///     tombolo::App::new().program(program).execute()
/// }
/// ```
#[derive(Default)]
pub struct App {
    failure: Option<CommandFailure>,
}

impl App {
    /// The shipped command line.
    pub fn new() -> App {
        App::default()
    }

    /// Adds a program. Its suite is [`program::REGISTERED`].
    #[must_use]
    pub fn program(self, program: &'static dyn program::Workload) -> App {
        self.with(|| Ok(program::register(program).map_err(PointError::from)?))
    }

    /// Adds a machine: a name, and the text of a TOML file as `tombolo new machine` writes it.
    #[must_use]
    pub fn machine(self, name: &'static str, text: &'static str) -> App {
        self.with(|| Ok(preset::register::<MachineConfig>(Preset { name, text })?))
    }

    /// Adds a protocol, by the name that designs choose as their `coherence`. Its designs are added after it.
    #[must_use]
    pub fn protocol<F: protocol::ProtocolFamily>(self, name: &'static str) -> App {
        self.with(|| Ok(protocol::register::<F>(name)?))
    }

    /// Adds a design: a name, and the text of a TOML file as `tombolo new design` writes it.
    #[must_use]
    pub fn design(self, name: &'static str, text: &'static str) -> App {
        self.with(|| Ok(preset::register::<DesignConfig>(Preset { name, text })?))
    }

    /// Adds an observer for `run --observe NAME`. Each run creates an observer, and serialises it into the run's document
    /// as `observed.NAME`.
    #[must_use]
    pub fn observer<O: observer::Observer + Default + Serialize + 'static>(self, name: &'static str) -> App {
        self.with(|| observer::register::<O>(name))
    }

    /// Keeps the first failure.
    fn with(mut self, add: impl FnOnce() -> Result<(), CommandFailure>) -> App {
        if self.failure.is_none() {
            self.failure = add().err();
        }
        self
    }

    /// Parses the arguments of this process, runs the command, and returns its exit status: 2 if something could not be
    /// added.
    pub fn execute(self) -> ExitCode {
        match self.failure {
            None => crate::execute(),
            Some(failure) => {
                output::complain(&format!("error: {failure}"));
                ExitCode::from(WRONG_INPUT)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    program::program! {
        /// nothing
        static OWN = "own-of-a-test", "assumed";
        lay_out: |_, _, _| unreachable!("it is listed alone");
    }

    fn failure(app: App) -> Option<String> {
        app.failure.map(|failure| failure.to_string())
    }

    #[test]
    fn what_is_added_is_found_by_its_name_and_a_second_one_of_that_name_is_refused() {
        let text = "base = \"hmg-4x4\"\ndescription = \"Twice the rate\"\ngpu_link.rate = \"400GB/s\"\n";
        let design = "base = \"hmg\"\ndescription = \"Writes back\"\nl2_write = \"back\"\n";
        let app = App::new().program(&OWN).machine("own-machine", text).design("own-design", design);
        assert_eq!(failure(app), None);
        assert_eq!(program::find("own-of-a-test").map(program::suite).ok(), Some(program::REGISTERED));
        let machine = tombolo_machine::machine("own-machine").and_then(|machine| machine.check()).expect("registered");
        assert_eq!((machine.gpu_link.rate.0, machine.name.as_str()), (400_000_000_000, "own-machine"));
        assert!(tombolo_design::design("own-design").and_then(|design| design.check()).is_ok());
        assert!(tombolo_design::list_designs().iter().any(|listed| listed.name == "own-design"));
        let again = failure(App::new().program(&OWN)).expect("the name is taken");
        assert!(again.contains("`own-of-a-test` is there already"), "{again}");
        let shipped = failure(App::new().design("hmg", design)).expect("the name is taken");
        assert!(shipped.contains("design called \"hmg\" is there already"), "{shipped}");
        let protocol = failure(App::new().protocol::<tombolo_protocol::nhcc::NhccRules>("nhcc")).expect("it is taken");
        assert_eq!(protocol, "a protocol called \"nhcc\" is there already");
        let wrong = failure(App::new().machine("wrong", "base = \"hmg-4x4\"\nl2.ways = 0\n")).expect("no ways");
        assert!(wrong.contains("wrong") && wrong.contains("l2.ways"), "{wrong}");
    }
}
