//! `bursar gc`: removes runs that ended long ago.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::args::DataOutput;
use crate::failure::Failure;
use crate::output::Output;
use crate::ui::count;
use crate::{escape, exit, hosts, span, state};

/// Remove runs that ended long ago, here and on their hosts
///
/// A run that is not over is never removed.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Keep runs that ended within this time
    #[arg(long, value_name = "TIME", default_value = "14d", value_parser = span::parse)]
    older_than: Duration,
    /// How the result is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl GcArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: &Output) -> Result<u8, Failure> {
        let collected = match state::open_existing()? {
            Some(store) => bursar_runner::gc(&hosts::context(store), self.older_than).await?,
            None => bursar_runner::Collected::default(),
        };
        match self.output {
            DataOutput::Json => {
                let runs: Vec<&str> = collected.runs.iter().map(|run| run.0.as_str()).collect();
                let hosts: Vec<_> = collected
                    .hosts
                    .iter()
                    .map(|(host, removed)| match removed {
                        Ok(removed) => json!({"host": host, "removed": removed}),
                        Err(error) => json!({"host": host, "error": error}),
                    })
                    .collect();
                let value = json!({"v": 1, "runs": runs, "bytes": collected.bytes, "hosts": hosts});
                output.line(&escape::json(&value.to_string()));
            }
            DataOutput::Human => {
                let runs = u64::try_from(collected.runs.len()).unwrap_or(u64::MAX);
                output.line(&format!(
                    "removed {} ({} KB)",
                    count(runs, "run"),
                    collected.bytes.div_ceil(1024)
                ));
                for (host, removed) in &collected.hosts {
                    if let Err(error) = removed {
                        output.warn(&format!("host `{host}` was not cleaned: {error}"));
                    }
                }
            }
        }
        Ok(exit::DONE)
    }
}
