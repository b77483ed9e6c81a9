//! Starting files: a machine or a design with every key, and the source of a workload.

use crate::failure::CommandFailure;
use serde::Serialize;
use serde_json::Value;
use tombolo_machine::{Description, DescriptionKind, Key, ResolvedValue, ValueForm};
use tombolo_programs::TEMPLATE;

/// Line width for comments. Source: the width used in the shipped files.
const COLUMNS: usize = 120;

/// Returns the text of a file called `name` that builds on the preset `base` without any change. Each key appears in a
/// comment with its meaning, its allowed values, its default, and the value from the base.
pub(crate) fn of_described<T: DescriptionKind + Serialize>(name: &str, base: &str) -> Result<String, CommandFailure> {
    let description = Description::<T>::named(base)?;
    let checked = serde_json::to_value(description.check()?).expect("its keys are strings");
    let kind = T::KIND;
    let mut text = comment(&format!(
        "A {kind} of your own, for --{kind} {name}.toml: it is its base but for what is changed below. Take the # from a \
         line to change its value, and say where the new one comes from. `tombolo show {kind} {base} --sources` says where \
         those of the base come from, `tombolo show schema {kind}` has a schema for editors."
    ));
    text += &format!("base = {}\n", quoted(base));
    let values = description.resolved()?;
    for (section, keys) in T::sections() {
        let is_there = description.has_section(section);
        text += &heading::<T>(section, is_there);
        for key in keys {
            text += &format!("\n{}", comment(&meaning(key)));
            text += &match values.iter().find(|value| value.section == section && value.key.name == key.name) {
                Some(value) => format!("#{} = {}\n", key.name, written(value, name, base, &checked)),
                None if is_there => comment(&format!("{}: of an option that the base does not choose.", key.name)),
                None => comment(&format!("{}: of a section that the base does not have.", key.name)),
            };
        }
    }
    Ok(text)
}

/// Returns a section's start: the name, or a comment listing further sections required in the file.
fn heading<T: DescriptionKind>(section: &str, is_there: bool) -> String {
    if section.is_empty() {
        return String::new();
    }
    match T::optional_sections().iter().find(|optional| optional.name == section) {
        Some(optional) if !is_there => {
            let about = format!("[{section}]: the base does not have it. It needs {}.", optional.needs.join(", "));
            format!("\n{}", comment(&about).trim_end())
        }
        _ => format!("\n[{section}]"),
    }
}

/// Describes a key: meaning, allowed values, and default value.
fn meaning(key: &Key) -> String {
    let default = (key.default)().map_or_else(String::new, |default| format!(" Default: {default}."));
    format!("{} Takes {}.{default}", key.doc, key.expected)
}

/// Formats a value for a file, with the spelling used in the base. Values other than numbers, flags and lists are
/// quoted.
fn written(value: &ResolvedValue, name: &str, base: &str, checked: &Value) -> String {
    let path = value.path();
    match path.as_str() {
        "name" => return quoted(name),
        "description" => return quoted(&format!("based on {base}")),
        _ => {}
    }
    match (value.key.form, path.split('.').try_fold(checked, |value, part| value.get(part))) {
        (_, Some(list @ Value::Array(_))) => list.to_string(),
        (ValueForm::Text | ValueForm::Words(_), _) => quoted(&value.value),
        _ if value.value.parse::<u64>().is_ok() || value.value.parse::<bool>().is_ok() => value.value.clone(),
        _ => quoted(&value.value),
    }
}

/// Quotes text in a form common to TOML and JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Formats `text` as comment lines.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(format!("# {word}"));
        } else {
            line.push_str(&format!(" {word}"));
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the source of a workload called `name`, for example `my-kernel`. The source compiles unchanged after an
/// entry is added to the table.
pub(crate) fn of_workload(name: &str) -> String {
    let module = name.replace('-', "_");
    let text =
        TEMPLATE.replace("mod template", &format!("mod {module}")).replace("::template::", &format!("::{module}::"));
    let text = text.replace("/template.rs", &format!("/{module}.rs")).replace("\"template\"", &quoted(name));
    text.replace("TEMPLATE", &module.to_uppercase()).replace("//! Template:", &format!("//! {name}:"))
}

/// A file of a new crate: its path in the crate's folder, and its text.
pub(crate) type CrateFile = (&'static str, String);

/// Returns the files of a crate called `name` that adds a program with this name to the command line. `library`: path of
/// the crate `tombolo`.
pub(crate) fn of_crate(name: &str, library: &str) -> Vec<CrateFile> {
    let manifest = format!(
        "[package]\nname = {}\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\ntombolo = {{ \
         path = {} }}\n\n[profile.release]\nlto = \"thin\"\ncodegen-units = 4\n\n# Of no other workspace.\n[workspace]\n",
        quoted(name),
        quoted(library)
    );
    let main = format!(
        "//! The command line of tombolo, with the program `{name}`: `cargo run --release -- run --machine hmg-4x4 --design hmg \
         --scale 1/16 --workload {name}`.\n//!\n//! `App::machine` and `App::design` add files that `tombolo new machine` \
         and `tombolo new design` write.\n\nmod program;\n\nuse std::process::ExitCode;\n\nfn main() -> ExitCode {{\n    \
         tombolo::App::new().program(&program::PROGRAM).execute()\n}}\n"
    );
    let head = TEMPLATE.find("\nuse tombolo_workload::").expect("the template imports the language");
    let body = TEMPLATE.find("/// Threads per CTA").expect("the template begins with its constants");
    assert!(head < body, "imports come first");
    let program = TEMPLATE[body..].replace("pub(crate) static TEMPLATE", "pub(crate) static PROGRAM");
    let program = program.replace("\"template\"", &quoted(name));
    let heading = format!("//! {name}: a line about the computed result.\n\nuse tombolo::program::prelude::*;\n\n");
    vec![("Cargo.toml", manifest), ("src/main.rs", main), ("src/program.rs", heading + &program)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_design::DesignConfig;
    use tombolo_machine::{MachineConfig, list};

    /// Returns the text with the `#` removed from lines with keys.
    fn uncommented(text: &str) -> String {
        let lines = text.lines().map(|line| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Parses a text and returns its checked values, without name and description.
    fn read<T: DescriptionKind + Serialize>(text: &str) -> Value {
        let checked = Description::<T>::parse("mine", text).and_then(|read| read.check());
        let mut value = serde_json::to_value(checked.unwrap_or_else(|error| panic!("{error}\n{text}"))).expect("JSON");
        for called in ["name", "description"] {
            value[called].take();
        }
        value
    }

    fn every_base_is_kept<T: DescriptionKind + Serialize>() {
        for listed in list::<T>() {
            let template = of_described::<T>("mine", listed.name).expect("it ships");
            let base = read::<T>(&format!("base = \"{}\"", listed.name));
            assert_eq!(read::<T>(&template), base, "{}", listed.name);
            assert_eq!(read::<T>(&uncommented(&template)), base, "{}", listed.name);
            for (section, keys) in T::sections() {
                let begins =
                    [format!("\n[{section}]\n"), format!("\n# [{section}]: the base does not have it. It needs ")];
                assert!(section.is_empty() || begins.iter().any(|line| template.contains(line)), "{section}");
                for key in keys {
                    let stands = ["#{} = ", "# {}: of an option", "# {}: of a section"];
                    let stands = stands.map(|line| format!("\n{}", line.replace("{}", key.name)));
                    assert!(stands.iter().any(|line| template.contains(line)), "{section}.{}", key.name);
                }
            }
        }
    }

    #[test]
    fn a_machine_as_it_is_written_is_its_base_and_so_it_is_with_every_key_given() {
        every_base_is_kept::<MachineConfig>();
    }

    #[test]
    fn a_design_as_it_is_written_is_its_base_and_so_it_is_with_every_key_given() {
        every_base_is_kept::<DesignConfig>();
    }

    #[test]
    fn a_key_stands_with_its_meaning_what_it_takes_and_its_default() {
        let text = of_described::<MachineConfig>("mine", "hmg-4x4").expect("it ships");
        let (before, _) = text.split_once("\n#turn_cycles = 1\n").expect("it stands there");
        let told = before.rsplit_once("\n\n").expect("a gap").1.replace("\n#", "");
        assert!(
            told.contains("Minimum cycles") && told.contains("Takes a whole number") && told.ends_with("Default: 1."),
            "{told}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "lines that an editor shows");
    }

    #[test]
    fn a_crate_names_its_program_and_the_library() {
        let files = of_crate("my-study", "../tombolo");
        let [(_, manifest), (_, main), (_, program)] = &files[..] else { panic!("three files") };
        assert!(manifest.contains("name = \"my-study\"") && manifest.contains("path = \"../tombolo\""), "{manifest}");
        assert!(main.lines().count() <= 40 && main.contains("&program::PROGRAM"), "{main}");
        assert!(program.contains("static PROGRAM = \"my-study\""), "{program}");
        assert!(!program.contains("crate::") && !program.to_lowercase().contains("template"), "{program}");
    }

    #[test]
    fn a_workload_has_its_own_name_everywhere() {
        let text = of_workload("my-kernel");
        assert!(!text.to_lowercase().contains("template"), "{text}");
        for word in ["mod my_kernel;", "SUITE::my_kernel::MY_KERNEL", "static MY_KERNEL = \"my-kernel\""] {
            assert!(text.contains(word), "{word}");
        }
    }
}
