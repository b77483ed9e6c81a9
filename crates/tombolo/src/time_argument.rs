//! Selection of the run time to compare.

use clap::builder::PossibleValue;
use tombolo_system::TimeChoice;

/// Argument for selecting the compared run time.
#[derive(clap::Args)]
pub(crate) struct TimeArgument {
    /// Time to report and compare: from the first kernel's start to the last kernel's end; for kernels alone; with CTAs
    /// present; with CTAs or their stores; for the whole program, copies included [default: region]
    #[arg(long = "time", value_name = "region|kernels|ctas|drained|whole", value_enum, hide_possible_values = true)]
    time: Option<Word>,
}

/// A time choice with its command-line word.
#[derive(Clone, Copy)]
struct Word(TimeChoice);

impl clap::ValueEnum for Word {
    fn value_variants<'a>() -> &'a [Word] {
        const {
            let [region, kernels, ctas, drained, whole] = TimeChoice::ALL;
            &[Word(region), Word(kernels), Word(ctas), Word(drained), Word(whole)]
        }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.word()))
    }
}

impl TimeArgument {
    /// Returns the selected time, or the default.
    pub(crate) fn choice(&self) -> TimeChoice {
        self.given().unwrap_or_default()
    }

    /// Returns the explicitly selected time, if any: a set of readings may have a different default.
    pub(crate) fn given(&self) -> Option<TimeChoice> {
        self.time.map(|word| word.0)
    }
}
