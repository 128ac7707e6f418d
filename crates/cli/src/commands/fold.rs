//! `bursar fold`: judges recorded streams and transcripts, as if the agent's process had then ended.

use std::path::PathBuf;

use clap::Args;

use crate::args::DataOutput;
use crate::failure::Failure;
use crate::output::Output;

/// Judge recorded streams or transcripts offline, as if the agent's process then ended
#[derive(Debug, Args)]
pub(crate) struct FoldArgs {
    /// Streams (`--output-format stream-json`) or the agent's session files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How it is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl FoldArgs {
    /// Runs the command.
    pub(crate) fn run(self, output: &Output) -> Result<u8, Failure> {
        drop((self.files, self.output, output.quiet()));
        Err(Failure::usage("not yet"))
    }
}
