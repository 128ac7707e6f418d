//! `bursar gc`: removes runs that ended long ago.

use std::time::Duration;

use bursar_runner::{Clock as _, RunLine, SystemClock};
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
    /// Remove nothing, say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// How the result is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl GcArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: &Output) -> Result<u8, Failure> {
        let store = state::open_existing()?;
        // Afterwards nobody can tell what they were.
        let over: Vec<RunLine> = match &store {
            Some(store) => store.list(true)?.into_iter().filter(|run| run.finished_at.is_some()).collect(),
            None => Vec::new(),
        };
        if self.dry_run {
            self.foretell(&over, output);
            return Ok(exit::DONE);
        }
        let collected = match store {
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
                for run in over.iter().filter(|run| collected.runs.contains(&run.run)) {
                    output.line(&line(run));
                }
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

    fn foretell(&self, over: &[RunLine], output: &Output) {
        let now = SystemClock.now();
        let old: Vec<&RunLine> = over
            .iter()
            .filter(|run| run.finished_at.is_some_and(|ended| now.since(ended) > self.older_than))
            .collect();
        if self.output == DataOutput::Json {
            let runs: Vec<&str> = old.iter().map(|run| run.run.0.as_str()).collect();
            output.line(&escape::json(&json!({"v": 1, "dry_run": true, "runs": runs}).to_string()));
            return;
        }
        for run in &old {
            output.line(&line(run));
        }
        let runs = u64::try_from(old.len()).unwrap_or(u64::MAX);
        output.line(&format!("would remove {}", count(runs, "run")));
    }
}

/// Returns `k7f2abcd · done · ended 20d ago · fix the failing test`.
fn line(run: &RunLine) -> String {
    let mut parts = vec![escape::line(&run.run.0).into_owned()];
    parts.extend(run.finished.as_ref().map(|finished| finished.outcome.as_str().replace('_', " ")));
    let ago = |ended| format!("ended {} ago", span::age(SystemClock.now().since(ended)));
    parts.extend(run.finished_at.map(ago));
    parts.push(escape::line(&run.title).into_owned());
    parts.join(" · ")
}
