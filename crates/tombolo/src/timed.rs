//! Which time of runs is compared.

use clap::builder::PossibleValue;
use tombolo_system::TimeChoice;

/// The choice.
#[derive(clap::Args)]
pub(crate) struct TimeArgument {
    /// The time that is told and compared: from the first kernel's opening to the last one's end; of the kernels alone; of the
    /// whole program, with its copies [default: region]
    #[arg(long = "time", value_name = "region|kernels|whole", value_enum, hide_possible_values = true)]
    time: Option<Word>,
}

/// A choice by its word.
#[derive(Clone, Copy)]
struct Word(TimeChoice);

impl clap::ValueEnum for Word {
    fn value_variants<'a>() -> &'a [Word] {
        const { &[Word(TimeChoice::ALL[0]), Word(TimeChoice::ALL[1]), Word(TimeChoice::ALL[2])] }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.word()))
    }
}

impl TimeArgument {
    /// What was chosen.
    pub(crate) fn choice(&self) -> TimeChoice {
        self.given().unwrap_or_default()
    }

    /// The same where it was chosen at all: a set of readings may have a time of its own.
    pub(crate) fn given(&self) -> Option<TimeChoice> {
        self.time.map(|word| word.0)
    }
}
