//! Subcommands and options, including hidden entries.

use crate::Section;
use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use std::collections::BTreeSet;

/// Returns a line per subcommand and argument.
pub(crate) fn section() -> Section {
    let mut command = tombolo::command_line();
    command.build();
    let mut lines = BTreeSet::new();
    add(&command, command.get_name(), &mut lines);
    ("command line".to_owned(), lines)
}

fn add(command: &Command, path: &str, lines: &mut BTreeSet<String>) {
    // The subcommand `help` repeats every subcommand.
    if path.ends_with(" help") || path.contains(" help ") {
        return;
    }
    let names: Vec<&str> = std::iter::once(path).chain(command.get_all_aliases()).collect();
    lines.insert(format!("{}{}", names.join(" | "), hidden(command.is_hide_set())));
    lines.extend(command.get_arguments().map(|argument| format!("{path} {}", line(argument))));
    command.get_subcommands().for_each(|one| add(one, &format!("{path} {}", one.get_name()), lines));
}

/// Formats an argument, for example `-o --out <FILE> (required)`.
fn line(argument: &Arg) -> String {
    let shorts = argument.get_short().into_iter().chain(argument.get_all_short_aliases().into_iter().flatten());
    let longs = argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten());
    let mut words: Vec<String> = shorts.map(|short| format!("-{short}")).collect();
    words.extend(longs.map(|long| format!("--{long}")));
    if argument.get_action().takes_values() {
        words.push(values(argument));
    }
    let default: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    words.extend((!default.is_empty()).then(|| format!("[{}]", default.join(" "))));
    words.extend(argument.is_required_set().then(|| "(required)".to_owned()));
    format!("{}{}", words.join(" "), hidden(argument.is_hide_set()))
}

/// Formats the value of an option or positional argument: name, possible words, and dots if repeatable.
fn values(argument: &Arg) -> String {
    let name = argument.get_value_names().map_or_else(|| argument.get_id().to_string(), |names| names.join(" "));
    let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    let dots = if many || matches!(argument.get_action(), ArgAction::Append) { "…" } else { "" };
    let optional = argument.get_num_args().is_some_and(|range| range.min_values() == 0);
    let of_flag = |value: &PossibleValue| value.get_name_and_aliases().collect::<Vec<_>>().join("|");
    let words: Vec<String> = argument.get_possible_values().iter().map(of_flag).collect();
    let words = if words.is_empty() { String::new() } else { format!(" {{{}}}", words.join("|")) };
    if optional { format!("[<{name}>]{dots}{words}") } else { format!("<{name}>{dots}{words}") }
}

fn hidden(is_hidden: bool) -> &'static str {
    if is_hidden { " (hidden)" } else { "" }
}
