//! Follows one run to its end and obeys this process's signals: the common half of `run`, `attach` and `stop`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use bursar_core::RunId;
use bursar_core::event::Ask;
use bursar_runner::{Context, FinishedRecord, Update, attend, updates};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::args::RunOutput;
use crate::driver;
use crate::exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::{Signals, Wish};
use crate::terminal;
use crate::ui::screen::Screen;

/// What a signal means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ctrl-C stops the run; a closed terminal hands it over.
    Owner,
    /// Any signal leaves the run alone.
    Visitor,
}

/// How following ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The run is over.
    Over(Box<FinishedRecord>),
    /// This process leaves; the run goes on.
    Left(Wish),
}

/// A run to be followed.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) context: &'a Context,
    pub(crate) run: &'a RunId,
    pub(crate) output: &'a Output,
    /// How the run is shown; None shows nothing of it.
    pub(crate) kind: Option<RunOutput>,
    pub(crate) role: Role,
    /// What to ask of the run at once.
    pub(crate) ask: Option<Ask>,
}

/// What the signals' own loop tells the screen's.
#[derive(Debug)]
enum Told {
    Say(&'static str),
    Leave(Wish),
}

impl Session<'_> {
    /// Follows the run until it is over, or until this process is to leave.
    pub(crate) async fn follow(self) -> Result<End, Failure> {
        let (updates, mut reader) = updates();
        let (ask, asks) = mpsc::channel(8);
        if let Some(first) = self.ask.clone() {
            // The channel is empty, so this does not wait.
            drop(ask.send(first).await);
        }
        let (context, run) = (self.context.clone(), self.run.clone());
        let driving = Arc::new(AtomicBool::new(false));
        let mut driver = tokio::spawn(async move { attend(&context, &run, &updates, asks).await });
        let (told, mut tell) = mpsc::unbounded_channel();
        let listener = tokio::spawn(obey(Signals::listen(), self.role, ask, told));

        let mut screen = Screen::new(self.output.clone(), self.kind, self.way_out());
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let left = loop {
            tokio::select! {
                biased;
                Some(told) = tell.recv() => match told {
                    Told::Say(text) => self.output.note(text),
                    Told::Leave(wish) => break Some(wish),
                },
                update = reader.next() => match update {
                    Some(Update::Replayed(record)) => screen.record(record, true),
                    Some(Update::Live(record)) => screen.record(record, false),
                    Some(Update::View(view)) => screen.view(view),
                    Some(Update::Driving(drives)) => {
                        screen.drives(drives);
                        self.driving(&driving, drives);
                    }
                    Some(Update::Warning(text)) => self.output.warn(&text),
                    None => break None,
                },
                _ = tick.tick(), if screen.ticks() => screen.tick(),
            }
        };
        if let Some(wish) = left {
            // The driver must have let go of the run before another one takes it.
            driver.abort();
            let ended = (&mut driver).await;
            listener.abort();
            screen.clear();
            if let Ok(Ok(finished)) = ended {
                screen.finish(&self.run.0, &finished);
                return Ok(End::Over(Box::new(finished)));
            }
            if driving.load(Ordering::Relaxed) {
                driver::spawn(&self.context.store, self.run)?;
            }
            return Ok(End::Left(wish));
        }
        let finished = driver.await;
        listener.abort();
        screen.clear();
        match finished {
            Ok(Ok(finished)) => {
                screen.finish(&self.run.0, &finished);
                Ok(End::Over(Box::new(finished)))
            }
            Ok(Err(error)) => Err(error.into()),
            Err(error) => {
                Err(Failure::new(exit::BUG, "bursar has a bug: the driver broke off").caused_by(&error))
            }
        }
    }

    /// Says what to do if one does not want to wait.
    fn way_out(&self) -> String {
        let run = self.run;
        let stops = match self.role {
            Role::Owner => "Ctrl-C stops the run".to_owned(),
            Role::Visitor => format!("`bursar stop {run}` stops the run, Ctrl-C only leaves it"),
        };
        format!("no need to wait: {stops}; `bursar send {run} \"...\"` tells the agent something")
    }

    fn driving(&self, driving: &AtomicBool, drives: bool) {
        driving.store(drives, Ordering::Relaxed);
        if self.kind != Some(RunOutput::Human) || self.output.quiet() || self.role == Role::Owner {
            return;
        }
        self.output.note(&self.output.err_paint().dim(if drives {
            "this terminal drives the run"
        } else {
            "another process drives the run; this terminal watches"
        }));
    }
}

/// Turns signals into wishes for the run. It is a loop of its own so that Ctrl-C works while the screen's loop waits
/// for a reader of its output.
async fn obey(mut signals: Signals, role: Role, ask: mpsc::Sender<Ask>, told: mpsc::UnboundedSender<Told>) {
    let stops = AtomicU32::new(0);
    loop {
        let wish = signals.next().await;
        let told_to = |what| drop(told.send(what));
        let before = stops.fetch_add(1, Ordering::Relaxed);
        match (role, wish) {
            (_, Wish::HangUp) => told_to(Told::Leave(wish)),
            (Role::Visitor, Wish::Interrupt | Wish::Terminate) => {
                if before > 0 {
                    // The screen's loop did not answer; leaving at once harms nothing.
                    terminal::restore();
                    std::process::exit(i32::from(exit::DONE));
                }
                told_to(Told::Leave(wish));
            }
            (Role::Owner, Wish::Interrupt | Wish::Terminate) => {
                told_to(Told::Say(match before {
                    0 => "stopping the run gracefully; Ctrl-C again stops it at once",
                    1 => "stopping the run at once",
                    _ => "still stopping; `kill -9` of this process would leave the agent running",
                }));
                if before < 2 {
                    // A closed channel means that the run is over already.
                    drop(ask.send(Ask::Stop { now: before > 0 }).await);
                }
            }
        }
    }
}
