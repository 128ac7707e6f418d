//! `bursar stop`: stops a run, waits until it is over, and tells what was stopped.

use bursar_core::event::Ask;
use bursar_core::outcome::Ending;
use clap::Args;
use serde_json::json;

use crate::args::{DataOutput, RunName};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{End, Role, Session};
use crate::ui::summary;
use crate::{escape, exit, hosts, state};

/// Stop a run: the agent, and everything it started
///
/// Waits until it is over. A run that is over already is left as it is.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    name: RunName,
    /// Do not let the agent finish what it is doing
    #[arg(long)]
    now: bool,
    /// How the result is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl StopArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: &Output) -> Result<u8, Failure> {
        let (store, run) = state::find(&self.name.run)?;
        let over = store.load(&run)?.and_then(|stored| stored.finished);
        let was_over = over.is_some();
        let finished = if let Some(finished) = over {
            finished
        } else {
            let context = hosts::context(store);
            let session = Session {
                context: &context,
                run: &run,
                output,
                // What the run said before is not what was asked for.
                kind: None,
                role: Role::Visitor,
                ask: Some(Ask::Stop { now: self.now }),
            };
            match session.follow().await? {
                End::Over(finished) => *finished,
                End::Left(_) => {
                    output.note(&format!(
                        "run {run} is being stopped; `bursar attach {run}` shows how it goes"
                    ));
                    return Ok(exit::LOST);
                }
            }
        };
        match self.output {
            DataOutput::Json => {
                let value = json!({"v": 1, "run": run.0, "was_over": was_over, "finished": finished});
                output.line(&escape::json(&value.to_string()));
            }
            DataOutput::Human if was_over => {
                output
                    .line(&format!("run {run} was over already: {} ({})", finished.outcome, finished.reason));
            }
            DataOutput::Human => {
                for line in summary::lines(&run.0, &finished, output.paint()) {
                    output.line(&line);
                }
            }
        }
        Ok(if finished.outcome == Ending::Lost { exit::LOST } else { exit::DONE })
    }
}
