//! `bursar stop`: stops a run, waits until it is over, and tells what was stopped.

use bursar_core::event::{Ask, Survivor};
use bursar_core::outcome::Ending;
use bursar_core::{AttemptId, RunId};
use bursar_runner::{Context, FinishedRecord, HostError, RunnerError, StoredRun, replay};
use clap::Args;
use serde_json::{Value, json};

use crate::args::{DataOutput, RunName};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{End, Role, Session};
use crate::ui::summary;
use crate::{escape, exit, hosts, state};

/// Stop a run: the agent, and everything it started
///
/// Waits until it is over. Of a run that is over already, what it left running is stopped.
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
        if let Some(stored @ StoredRun { finished: Some(_), .. }) = store.load(&run)? {
            return self.sweep(&hosts::context(store), &stored, output).await;
        }
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
        let finished = match session.follow().await {
            Err(failure) => return self.stop_unread(&context, &run, failure, output).await,
            Ok(End::Over(finished)) => *finished,
            Ok(End::Left(_)) => {
                output.note(&format!("run {run} is being stopped; `bursar attach {run}` shows how it goes"));
                return Ok(exit::LOST);
            }
        };
        match self.output {
            DataOutput::Json => {
                let value = json!({"v": 1, "run": run.0, "was_over": false, "finished": finished});
                output.line(&escape::json(&value.to_string()));
            }
            DataOutput::Human => {
                for line in summary::lines(&run.0, &finished, output.paint()) {
                    output.line(&line);
                }
            }
        }
        Ok(if finished.outcome == Ending::Lost { exit::LOST } else { exit::DONE })
    }

    /// Stops what carries the run's marker on its host if the run cannot be followed because its output is lost.
    async fn stop_unread(
        &self,
        context: &Context,
        run: &RunId,
        failure: Failure,
        output: &Output,
    ) -> Result<u8, Failure> {
        let Err(RunnerError::MirrorShort { attempt, .. }) = replay(&context.store, run, |_| {}) else {
            return Err(failure);
        };
        let Some(stored) = context.store.load(run)? else { return Err(failure) };
        let host = (context.hosts)(&stored.request.host);
        let left = host.stop(run, attempt, self.now).await.map_err(|error| not_stopped(&error))?;
        match self.output {
            DataOutput::Json => {
                let left: Vec<Value> = left.iter().map(process).collect();
                let value = json!({"v": 1, "run": run.0, "was_over": false, "finished": null, "left": left});
                output.line(&escape::json(&value.to_string()));
            }
            DataOutput::Human if left.is_empty() => output.line(&format!(
                "nothing of run {run} runs any more; how it ended cannot be told, since its output is lost"
            )),
            DataOutput::Human => {
                let count = processes(left.len() as u64);
                output.line(&format!("{count} of run {run} could not be stopped:"));
                for process in &left {
                    output.line(&format!("  pid {} · {}", process.pid, escape::line(&process.command)));
                }
            }
        }
        Ok(if left.is_empty() { exit::DONE } else { exit::LOST })
    }

    /// Stops what a run that is over left running, as far as it told of any.
    async fn sweep(&self, context: &Context, stored: &StoredRun, output: &Output) -> Result<u8, Failure> {
        let run = &stored.request.run;
        let Some(finished) = &stored.finished else { return Ok(exit::DONE) };
        let known = finished.survivors.len() as u64;
        let left = match finished.attempts.last() {
            Some(last) if known > 0 || finished.outcome == Ending::Lost => {
                let host = (context.hosts)(&stored.request.host);
                let stopped = host.stop(run, AttemptId(last.attempt), self.now).await;
                Some(stopped.map_err(|error| not_stopped(&error))?)
            }
            Some(_) | None => None,
        };
        match self.output {
            DataOutput::Json => {
                let mut value = json!({"v": 1, "run": run.0, "was_over": true, "finished": finished});
                value["left"] = left.iter().flatten().map(process).collect();
                output.line(&escape::json(&value.to_string()));
            }
            DataOutput::Human => {
                output.line(&was_over(run, finished, known, left.as_deref()));
                for process in left.iter().flatten() {
                    output.line(&format!("  pid {} · {}", process.pid, escape::line(&process.command)));
                }
            }
        }
        Ok(if left.is_some_and(|left| !left.is_empty()) { exit::LOST } else { exit::DONE })
    }
}

fn was_over(run: &RunId, finished: &FinishedRecord, known: u64, left: Option<&[Survivor]>) -> String {
    let over = format!("run {run} was over already: {} ({})", finished.outcome, finished.reason);
    match left {
        None => over,
        Some([]) if known == 0 => format!("{over}; nothing of it runs any more"),
        Some([]) => format!("{over}; what it had left ({}) runs no more", processes(known)),
        Some(left) => format!("{over}; {} of it could not be stopped:", processes(left.len() as u64)),
    }
}

fn processes(count: u64) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

fn process(process: &Survivor) -> Value {
    json!({"pid": process.pid, "command": process.command})
}

fn not_stopped(error: &HostError) -> Failure {
    let failure = Failure::new(exit::LOST, error.to_string());
    match error {
        HostError::Unreachable { hint, .. } | HostError::Failed { hint, .. } => failure.hint(hint),
        HostError::Refused(refusal) => failure.hint(&refusal.hint),
        HostError::Cut { .. } => failure.hint("stop it again: that is always right"),
        HostError::Unknown { .. } => failure,
    }
}
