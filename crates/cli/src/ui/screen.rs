//! Shows a run while it is followed: lines as they come, and the live view below them on a terminal.

use bursar_core::At;
use bursar_runner::{Clock as _, FinishedRecord, Record, RecordEvent, RunView, SystemClock};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::RunOutput;
use crate::escape;
use crate::output::{self, Output};
use crate::terminal;
use crate::ui::lines::{Line, Lines, Said};
use crate::ui::{summary, view};

/// What follows a run on the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    output: Output,
    kind: Option<RunOutput>,
    bar: Option<ProgressBar>,
    lines: Lines,
    /// Whether this process drives the run, and so logs each decision.
    drives: bool,
    /// What one can do instead of waiting, until it is said.
    way_out: Option<String>,
    view: Option<Box<RunView>>,
    /// The record that ends the run, for `--output json`.
    last: Option<Record>,
}

impl Screen {
    /// `way_out` says, on a terminal, what to do if one does not want to wait.
    pub(crate) fn new(output: Output, kind: Option<RunOutput>, way_out: String) -> Self {
        let live = kind == Some(RunOutput::Human) && !output.quiet() && output::live_view_possible();
        let bar = live.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            terminal::hush();
            output.set_view(Some(bar.clone()));
            bar
        });
        let way_out = bar.is_some().then_some(way_out);
        Self { output, kind, bar, lines: Lines::default(), drives: false, way_out, view: None, last: None }
    }

    /// Whether time alone changes what is seen.
    pub(crate) fn ticks(&self) -> bool {
        (self.bar.is_some() && self.view.is_some()) || self.lines.waits()
    }

    /// Shows a record; `replayed` ones happened before.
    pub(crate) fn record(&mut self, record: Record, replayed: bool) {
        match self.kind {
            Some(RunOutput::Ndjson) => self.output.line(&escape::json(&record.to_json())),
            Some(RunOutput::Json) | None => {}
            Some(RunOutput::Human) => {
                let logged = self.drives && !replayed && self.output.verbose();
                self.human(&record, logged);
                if !replayed {
                    self.tell_way_out(&record);
                }
            }
        }
        if matches!(record.event, RecordEvent::RunFinished(_)) {
            self.last = Some(record);
        }
    }

    /// Shows a record for people; a decision that is `logged` stands on stderr already.
    fn human(&mut self, record: &Record, logged: bool) {
        if logged && matches!(record.event, RecordEvent::Decision(_)) {
            return;
        }
        for said in self.lines.push(record, self.bar.is_none(), self.output.err_paint()) {
            self.say(said);
        }
    }

    /// Says once, at the first hold, what to do if one does not want to wait.
    fn tell_way_out(&mut self, record: &Record) {
        if let RecordEvent::Decision(decision) = &record.event
            && decision.action == "hold"
            && let Some(way_out) = self.way_out.take()
        {
            self.output.note(&self.output.err_paint().dim(&format!("  {way_out}")));
        }
    }

    fn say(&self, said: Said) {
        match said.line {
            Line::Words(words) => self.output.line(&words),
            Line::Around(around) if !self.output.quiet() => self.output.note(&around),
            Line::Around(_) => {}
        }
    }

    /// Notes whether this process drives the run.
    pub(crate) fn drives(&mut self, drives: bool) {
        self.drives = drives;
    }

    /// Shows where the run stands.
    pub(crate) fn view(&mut self, view: impl Into<Box<RunView>>) {
        self.view = Some(view.into());
        self.tick();
    }

    /// Draws the live view again.
    pub(crate) fn tick(&mut self) {
        if let Some(said) = self.lines.idle() {
            self.say(said);
        }
        if let (Some(bar), Some(view)) = (&self.bar, &self.view) {
            let now: At = SystemClock.now();
            bar.set_message(view::lines(view, now, output::size(), self.output.err_paint()).join("\n"));
            bar.tick();
        }
    }

    /// Takes the live view away.
    pub(crate) fn clear(&mut self) {
        if let Some(said) = self.lines.rest() {
            self.say(said);
        }
        if self.bar.take().is_some() {
            self.output.set_view(None);
            terminal::restore();
        }
    }

    /// Shows how the run ended.
    pub(crate) fn finish(&mut self, run: &str, finished: &FinishedRecord) {
        self.clear();
        match self.kind {
            Some(RunOutput::Ndjson) | None => {}
            Some(RunOutput::Json) => {
                if let Some(last) = &self.last {
                    self.output.line(&escape::json(&last.to_json()));
                }
            }
            Some(RunOutput::Human) => {
                for line in summary::lines(run, finished, self.output.err_paint()) {
                    self.output.note(&line);
                }
            }
        }
    }
}
