//! `completion`: prints a shell script that completes command-line words.

use crate::command_line;
use crate::failure::CommandFailure;
use crate::output::show;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use std::process::ExitCode;
use tombolo_design::list_designs;
use tombolo_experiment::preset::papers;
use tombolo_machine::list_machines;

const HOW: &str = "bash: tombolo completion bash > ~/.local/share/bash-completion/completions/tombolo
zsh:  tombolo completion zsh > DIR/_tombolo, of a DIR in $fpath
fish: tombolo completion fish > ~/.config/fish/completions/tombolo.fish";

/// Arguments for `completion`.
#[derive(clap::Args)]
#[command(after_help = HOW)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Arguments {
    /// Prints the script.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let mut script = Vec::new();
        generate(self.shell, &mut with_names(command_line()), "tombolo", &mut script);
        let script = String::from_utf8(script).expect("it is made of text");
        show(false, &(), |_| script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds the possible names to the arguments for machines, designs, workloads and papers. Paths are also valid there,
/// and the names are therefore used for completion only.
fn with_names(command: Command) -> Command {
    let kind = command.get_name().to_owned();
    command.mut_args(|argument| named(&kind, argument)).mut_subcommands(with_names)
}

fn named(kind: &str, argument: Arg) -> Arg {
    let names: Vec<&'static str> = match (argument.get_id().as_str(), kind) {
        ("machine", _) | ("name" | "diff", "machine") => list_machines().iter().map(|listed| listed.name).collect(),
        ("design" | "designs" | "baseline", _) | ("name" | "diff", "design") => {
            list_designs().iter().map(|listed| listed.name).collect()
        }
        ("workload", _) | ("name", "workload") => tombolo_programs::names().collect(),
        ("paper", _) => papers(),
        _ => return argument,
    };
    // A flattened group of arguments has no value.
    if argument.get_action().takes_values() {
        argument.value_parser(PossibleValuesParser::new(names))
    } else {
        argument
    }
}
