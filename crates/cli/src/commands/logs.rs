//! `bursar logs`: what happened in a run, or the agent's own output as it came.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use bursar_core::{At, RunId};
use bursar_runner::{Record, RunnerError, Store, Update, replay, updates, watch};
use clap::Args;

use crate::args::{RunName, RunOutput};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Signals;
use crate::ui::lines::{Line, Lines, Said};
use crate::ui::summary;
use crate::{escape, exit, hosts, span, state};

/// How often the mirrors are looked at for more.
const GLANCE: Duration = Duration::from_millis(200);
/// How long nothing must come until a line is printed that the next one could have made better; twice as long at most.
const IDLE: Duration = Duration::from_secs(1);

/// Print what happened in a run, with the time since it began
///
/// Neither contacts the host nor drives the run.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    name: RunName,
    /// Go on until the run is over
    #[arg(long, short)]
    follow: bool,
    /// The agent's own output, byte for byte (escaped on a terminal), of all attempts
    #[arg(long, conflicts_with = "output")]
    raw: bool,
    /// How it is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: RunOutput,
}

impl LogsArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: &Output) -> Result<u8, Failure> {
        let (store, run) = state::find(&self.name.run)?;
        let mut signals = Signals::listen();
        let follow = self.follow;
        let left = {
            let printing = async {
                if self.raw {
                    raw(&store, &run, follow, output).await
                } else {
                    self.records(&store, &run, output).await
                }
            };
            tokio::select! {
                done = printing => return done.map(|()| exit::DONE),
                left = signals.next() => left,
            }
        };
        tracing::debug!(?left, "leaving");
        output.note(&format!("left run {run} alone; `bursar attach {run}` shows it again"));
        Ok(exit::DONE)
    }

    async fn records(
        &self,
        store: &std::sync::Arc<Store>,
        run: &RunId,
        output: &Output,
    ) -> Result<(), Failure> {
        let begun = store.load(run)?.map(|stored| stored.created).unwrap_or_default();
        let mut lines = Lines::default();
        if !self.follow {
            replay(store, run, |record| self.print(&mut lines, &record, begun, output))?;
            if let Some(said) = lines.rest() {
                say(said, begun, output);
            }
            return Ok(());
        }
        let context = hosts::context(store.clone());
        let (updates, mut reader) = updates();
        let watched = async {
            let finished = watch(&context, run, &updates).await;
            drop(updates);
            finished
        };
        let printing = async {
            loop {
                let update = match tokio::time::timeout(IDLE, reader.next()).await {
                    Ok(Some(update)) => update,
                    Ok(None) => break,
                    Err(_) => {
                        if let Some(said) = lines.idle() {
                            say(said, begun, output);
                        }
                        continue;
                    }
                };
                match update {
                    Update::Replayed(record) | Update::Live(record) => {
                        self.print(&mut lines, &record, begun, output);
                    }
                    Update::Warning(text) => output.warn(&text),
                    Update::View(_) | Update::Driving(_) => {}
                }
                if output.stdout_gone() {
                    break;
                }
            }
            if let Some(said) = lines.rest() {
                say(said, begun, output);
            }
        };
        let (finished, ()) = tokio::join!(watched, printing);
        if finished?.is_none() {
            output.note(&format!("nobody drives run {run}; `bursar attach {run}` goes on with it"));
        }
        Ok(())
    }

    fn print(&self, lines: &mut Lines, record: &Record, begun: At, output: &Output) {
        match (self.output, &record.event) {
            (RunOutput::Ndjson, _) => output.line(&escape::json(&record.to_json())),
            (RunOutput::Json, bursar_runner::RecordEvent::RunFinished(_)) => {
                output.line(&escape::json(&record.to_json()));
            }
            (RunOutput::Json, _) => {}
            (RunOutput::Human, event) => {
                for said in lines.push(record, true, output.paint()) {
                    say(said, begun, output);
                }
                if let bursar_runner::RecordEvent::RunFinished(finished) = event {
                    let text = summary::lines(&record.run, finished, output.paint()).join("\n");
                    say(Said { at: record.at, line: Line::Around(text) }, begun, output);
                }
            }
        }
    }
}

fn say(Said { at, line: Line::Words(text) | Line::Around(text) }: Said, begun: At, output: &Output) {
    let clock = format!("{:>7}  ", span::clock(at.since(begun)));
    for (at, line) in text.lines().enumerate() {
        let margin = if at == 0 { output.paint().dim(&clock) } else { " ".repeat(9) };
        output.line(&format!("{margin}{line}"));
    }
}

/// Copies the mirrors of all attempts to stdout; with `follow`, until the run is over.
async fn raw(store: &Store, run: &RunId, follow: bool, output: &Output) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal();
    // How much of the present attempt was copied; attempts come one after the other.
    let (mut attempt, mut copied) = (0, 0);
    loop {
        // Looked at first: what was written before the end is copied after it.
        let over =
            store.load(run)?.ok_or_else(|| RunnerError::UnknownRun { run: run.clone() })?.finished.is_some();
        for (number, path) in store.mirrors(run)? {
            if number < attempt {
                continue;
            }
            if number > attempt {
                (attempt, copied) = (number, 0);
            }
            copied += copy(&path, copied, terminal, output).map_err(|error| {
                Failure::new(exit::LOST, format!("cannot read {}", path.display())).caused_by(&error)
            })?;
        }
        if over || !follow || output.stdout_gone() {
            return Ok(());
        }
        tokio::time::sleep(GLANCE).await;
    }
}

fn copy(path: &std::path::Path, from: u64, terminal: bool, output: &Output) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut buffer = vec![0; 64 << 10];
    let mut copied = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 || output.stdout_gone() {
            return Ok(copied);
        }
        let bytes = &buffer[..read];
        copied += u64::try_from(read).unwrap_or_default();
        if terminal {
            output.data(escape::text(&String::from_utf8_lossy(bytes)).as_bytes());
        } else {
            output.data(bytes);
        }
    }
}
