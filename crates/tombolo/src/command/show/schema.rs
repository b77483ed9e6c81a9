//! `show schema`: prints the file format for editors.

use crate::failure::CommandFailure;
use crate::output::show;
use crate::schema::schema;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;

/// Arguments for `show schema`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Kind of file
    #[arg(value_enum)]
    of: SchemaKind,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SchemaKind {
    #[value(name = "machine")]
    Machine,
    #[value(name = "design")]
    Design,
}

impl Arguments {
    /// Prints the schema.
    pub(super) fn execute(&self) -> Result<(), CommandFailure> {
        let schema = match self.of {
            SchemaKind::Machine => schema::<MachineConfig>(),
            SchemaKind::Design => schema::<DesignConfig>(),
        };
        show(true, &schema, |_| String::new())
    }
}
