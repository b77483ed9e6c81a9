//! Experiments requested on the command line without a file: `compare` into a folder, and `sweep --vary`.

use crate::failure::CommandFailure;
use std::path::{MAIN_SEPARATOR, Path};
use tombolo_experiment::{ExperimentRequest, ScaleChoice, SpecError, Study};
use tombolo_machine::MachineScale;

/// Builds the study described by `asked`; errors name the command-line flag.
pub(crate) fn study(asked: &ExperimentRequest, choice: ScaleChoice) -> Result<Study, CommandFailure> {
    Study::of_request(asked, choice).map_err(|error| of_flag(asked, error))
}

/// Converts an error in the file of `asked` to an error about the flag that supplied the value.
fn of_flag(asked: &ExperimentRequest, error: SpecError) -> CommandFailure {
    let SpecError::Value { file, key, value, reason, .. } = error else { return error.into() };
    let is_varied = |(path, values): &(String, Vec<String>)| {
        *path == value || values.iter().any(|one| format!("{path}={one}") == value)
    };
    let flag = match key {
        "machines" => "--machine",
        "designs" | "metric.to.design" => "--designs",
        "workloads" => "--workload",
        "scale" => "--scale",
        "set" | "vary.set" if asked.vary.iter().any(is_varied) => "--vary",
        "set" => "--set",
        _ => return SpecError::Value { file, line: 1, key, value, reason }.into(),
    };
    CommandFailure::Argument { flag, value, reason }
}

/// Converts a scale to a study's scale choice.
pub(crate) fn choice(scale: MachineScale) -> ScaleChoice {
    if scale == MachineScale::FULL { ScaleChoice::Paper } else { ScaleChoice::Fixed(scale) }
}

/// True if `path` denotes a folder. Either a folder exists, or nothing exists and the name has no extension, or the
/// path ends with a separator.
pub(crate) fn is_folder(path: &Path) -> bool {
    let ends = path.as_os_str().to_string_lossy().ends_with(['/', MAIN_SEPARATOR]);
    path.is_dir() || ends || !path.exists() && path.extension().is_none()
}

/// Parses `KEY=A,B,…`.
pub(crate) fn vary(text: &str) -> Result<(String, Vec<String>), String> {
    let wrong = || "expected KEY=A,B,…, such as l2.bytes=3MB,6MB".to_owned();
    let (path, values) = text.split_once('=').ok_or_else(wrong)?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if path.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    if let Some((_, twice)) = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
        return Err(format!("{twice} is given twice"));
    }
    Ok((path.trim().to_owned(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swept_setting_has_a_path_and_different_values() {
        assert_eq!(vary("l2.bytes= 3MB,6MB"), Ok(("l2.bytes".into(), vec!["3MB".into(), "6MB".into()])));
        assert!(["l2.bytes", "=3MB", "l2.bytes=", "l2.bytes=3MB,,6MB"].iter().all(|text| vary(text).is_err()));
        assert_eq!(vary("a=1,2,1"), Err("1 is given twice".into()));
    }

    #[test]
    fn a_folder_is_told_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "").unwrap();
        assert!(is_folder(folder.path()) && is_folder(Path::new("not-there")) && is_folder(Path::new("a.b/")));
        assert!(!is_folder(&file) && !is_folder(Path::new("not-there.json")));
    }
}
