//! `bursar send`: a further message to the agent of a run.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::time::{Duration, Instant};

use bursar_core::RunId;
use bursar_core::event::Ask;
use bursar_core::run::NOT_SENT;
use bursar_runner::{Clock as _, RecordEvent, RunnerError, Store, SystemClock};
use clap::Args;

use crate::args::{RunName, utf8};
use crate::failure::Failure;
use crate::output::Output;
use crate::{driver, exit, state};

/// How long the driver of a run is given to take the message up before it is only said to wait.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// How often is looked whether it did.
const LOOK: Duration = Duration::from_millis(20);

/// Send a further message to the agent of a run
///
/// The agent reads it between two of its steps. If nobody drives the run, a background process does from now on.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    name: RunName,
    /// The message; `-` reads it from stdin
    #[arg(value_name = "TEXT | -")]
    text: OsString,
}

impl SendArgs {
    /// Runs the command.
    pub(crate) fn run(self, output: &Output) -> Result<u8, Failure> {
        let (store, run) = state::find(&self.name.run)?;
        let text = if self.text == "-" {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|error| Failure::usage("cannot read the message from stdin").caused_by(&error))?;
            OsString::from_vec(bytes)
        } else {
            self.text
        };
        let text = utf8("the message", text)?;
        if text.trim().is_empty() {
            return Err(Failure::usage("the message is empty"));
        }
        if store.load(&run)?.is_some_and(|stored| stored.finished.is_some()) {
            return Err(over(&run));
        }
        let refused = || refusals(&store, &run);
        let before = refused()?;
        let driven = store.ask(&run, &Ask::Say { text }, SystemClock.now())?;
        if !driven {
            driver::spawn(&store, &run)?;
        }
        let end = Instant::now() + TAKEN_WITHIN;
        while store.open_wishes(&run)? > 0 && Instant::now() < end {
            if store.load(&run)?.is_some_and(|stored| stored.finished.is_some()) {
                // It ended in the same moment.
                return Err(over(&run));
            }
            std::thread::sleep(LOOK);
        }
        if refused()? > before {
            return Err(Failure::new(exit::USAGE, format!("the message was not sent: run {run} is ending"))
                .hint(format!(
                    "`bursar show {run}` tells how it ends and how to go on in the same session"
                )));
        }
        output.note(&format!(
            "the message waits for the agent of run {run}; `bursar attach {run}` shows what comes of it"
        ));
        Ok(exit::DONE)
    }
}

fn over(run: &RunId) -> Failure {
    Failure::usage(format!("run `{run}` is over"))
        .hint(format!("`bursar run --resume {run} \"...\"` goes on in its session"))
        .hint(format!("`bursar show {run}` tells how it ended"))
}

/// How often the run told that a message came too late.
fn refusals(store: &Store, run: &RunId) -> Result<usize, RunnerError> {
    let mut count = 0;
    bursar_runner::replay(store, run, |record| {
        count += usize::from(matches!(&record.event, RecordEvent::Remark { text } if text == NOT_SENT));
    })?;
    Ok(count)
}
