//! Shows a run while it is followed: lines as they come, and the live view below them on a terminal.

use bursar_core::At;
use bursar_runner::{Clock as _, FinishedRecord, Record, RecordEvent, RunView, SystemClock};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::RunOutput;
use crate::escape;
use crate::output::{self, Output};
use crate::terminal;
use crate::ui::lines::{Line, Lines};
use crate::ui::{summary, view};

/// What follows a run on the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    output: Output,
    kind: Option<RunOutput>,
    bar: Option<ProgressBar>,
    lines: Lines,
    view: Option<Box<RunView>>,
    /// The record that ends the run, for `--output json`.
    last: Option<Record>,
}

impl Screen {
    pub(crate) fn new(output: Output, kind: Option<RunOutput>) -> Self {
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
        Self { output, kind, bar, lines: Lines::default(), view: None, last: None }
    }

    /// Whether time alone changes what is seen.
    pub(crate) fn ticks(&self) -> bool {
        self.bar.is_some() && self.view.is_some()
    }

    /// Shows a record; `replayed` ones happened before.
    pub(crate) fn record(&mut self, record: Record, replayed: bool) {
        match self.kind {
            Some(RunOutput::Ndjson) => self.output.line(&escape::json(&record.to_json())),
            Some(RunOutput::Json) | None => {}
            Some(RunOutput::Human) => {
                let all = self.bar.is_none() && !replayed;
                self.human(&record, all);
            }
        }
        if matches!(record.event, RecordEvent::RunFinished(_)) {
            self.last = Some(record);
        }
    }

    fn human(&mut self, record: &Record, all: bool) {
        match self.lines.line(record, all, self.output.err_paint()) {
            Some(Line::Words(words)) => self.output.line(&words),
            Some(Line::Around(around)) if !self.output.quiet() => self.output.note(&around),
            Some(Line::Around(_)) | None => {}
        }
    }

    /// Shows where the run stands.
    pub(crate) fn view(&mut self, view: impl Into<Box<RunView>>) {
        self.view = Some(view.into());
        self.tick();
    }

    /// Draws the live view again.
    pub(crate) fn tick(&self) {
        if let (Some(bar), Some(view)) = (&self.bar, &self.view) {
            let now: At = SystemClock.now();
            bar.set_message(view::lines(view, now, output::size(), self.output.err_paint()).join("\n"));
            bar.tick();
        }
    }

    /// Takes the live view away.
    pub(crate) fn clear(&mut self) {
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
