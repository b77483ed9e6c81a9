//! Names of types: homonyms and verb forms.

use crate::Bounds;
use crate::source::Source;
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt;

/// Definitions from which a name counts as a homonym.
const HOMONYM: usize = 3;

/// Participles and verb forms that are no names. A cache `Set` is a noun, and stands in the glossary.
const VERB_FORMS: &str = "Asked Told Held Kept Found Wanted Taken Tried Spent Given Ended Answered Known Looked Seen Drawn \
    Judged Built Scaled Shown Written Read Counted Moved Copied Noted Missed Filled Published Described Listed Made Staged \
    Chosen Followed Adjusted Left Passed Sent Queued Parked Begun Done Timed Measured Shipped Resolved Thinned Directed \
    Gathered Settled Compared Explained Wished Named Placed Ordered Marked Joined Paired Cut Arriving Filling Flushing \
    Resuming Waits Departs Uses Holds Owes";

/// Type names of a set of sources.
pub(crate) struct Names {
    /// Files of all definitions per name; a file with two definitions is listed twice.
    definitions: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// Names of structures, enumerations and traits outside tests.
    pub(crate) fn of(sources: &[Source]) -> Names {
        let definition = Regex::new(r"(?m)^[ \t]*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait) ([A-Za-z0-9_]+)")
            .expect("the pattern is valid");
        let mut definitions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for source in sources {
            for name in definition.captures_iter(source.product().unwrap_or_default()) {
                definitions.entry(name[1].to_owned()).or_default().push(source.name.clone());
            }
        }
        Names { definitions }
    }

    /// Names with three or more definitions, and the files of these.
    fn homonyms(&self) -> impl Iterator<Item = (&String, &Vec<String>)> {
        self.definitions.iter().filter(|(_, files)| files.len() >= HOMONYM)
    }

    fn verb_forms(&self) -> impl Iterator<Item = (&String, &Vec<String>)> {
        self.definitions.iter().filter(|(name, _)| VERB_FORMS.split_whitespace().any(|form| form == *name))
    }

    /// One line per bound that the names exceed, with the names.
    pub(crate) fn excess(&self, bounds: &Bounds) -> Vec<String> {
        let mut faults = Vec::new();
        if self.homonyms().count() > bounds.homonyms {
            let names: Vec<String> = self.homonyms().map(|(name, files)| format!("{name} ({})", files.len())).collect();
            faults.push(format!(
                "{} type names have {HOMONYM} or more definitions, at most {}: {}",
                names.len(),
                bounds.homonyms,
                names.join(", ")
            ));
        }
        if self.verb_forms().count() > bounds.verb_forms {
            faults.extend(self.verb_forms().flat_map(|(name, files)| {
                files.iter().map(move |file| format!("{file}: type `{name}` is named by a verb form"))
            }));
        }
        faults
    }
}

impl fmt::Display for Names {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (homonyms, verb_forms) = (self.homonyms().count(), self.verb_forms().count());
        write!(
            out,
            "{} type names, {homonyms} with three or more definitions, {verb_forms} verb forms",
            self.definitions.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homonyms_and_verb_forms_are_told_with_their_files() {
        let file = |name: &str| Source::new(name, "pub(super) struct Place;\n/// A.\nenum Asked { A }\n");
        let names = Names::of(&[file("a/src/x.rs"), file("a/src/y.rs"), file("b/src/x.rs")]);
        let bounds = Bounds { homonyms: 1, ..crate::BOUNDS };
        let told = names.excess(&bounds);
        assert_eq!(told[0], "2 type names have 3 or more definitions, at most 1: Asked (3), Place (3)");
        assert_eq!(told[1], "a/src/x.rs: type `Asked` is named by a verb form");
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn types_of_tests_do_not_count() {
        let sources = [
            Source::new("a/tests/x.rs", "struct Asked;"),
            Source::new("a/src/tests.rs", "struct Asked;"),
            Source::new("a/src/x.rs", "struct Hit;\n#[cfg(test)]\nmod tests {\n    struct Asked;\n}"),
        ];
        assert_eq!(Names::of(&sources).to_string(), "1 type names, 0 with three or more definitions, 0 verb forms");
    }
}
