//! `bursar schema`: the JSON Schema of what `--output ndjson` prints.

use clap::Args;

use crate::exit;
use crate::output::Output;

/// Print the JSON Schema of the records that `--output ndjson` prints
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {}

impl SchemaArgs {
    /// Runs the command.
    pub(crate) fn run(&self, output: &Output) -> u8 {
        let Self {} = self;
        output.data(include_bytes!("../../schema/records.v1.json"));
        exit::DONE
    }
}
