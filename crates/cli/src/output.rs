//! The one place that writes to stdout and stderr.
//!
//! A reader that went away (a closed pipe, a closed terminal) is noted and never stops a run: what would have been
//! written is dropped. While the live view stands on the terminal, everything else is written above it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::args::{ColorChoice, Global};
use crate::failure::Failure;
use crate::paint::Paint;

/// Where output goes. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Output(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stdout_gone: AtomicBool,
    stderr_gone: AtomicBool,
    /// The live view, while there is one.
    view: Mutex<Option<ProgressBar>>,
    stdout_paint: Paint,
    stderr_paint: Paint,
    quiet: bool,
    verbose: bool,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let paint = |terminal: bool| match global.color {
            ColorChoice::Always => Paint::new(true),
            ColorChoice::Never => Paint::new(false),
            ColorChoice::Auto => Paint::new(terminal && !no_color() && !dumb()),
        };
        Self(Arc::new(Shared {
            stdout_gone: AtomicBool::new(false),
            stderr_gone: AtomicBool::new(false),
            view: Mutex::new(None),
            stdout_paint: paint(io::stdout().is_terminal()),
            stderr_paint: paint(io::stderr().is_terminal()),
            quiet: global.quiet,
            verbose: global.verbose > 0,
        }))
    }

    /// Returns the colours of stdout.
    pub(crate) fn paint(&self) -> Paint {
        self.0.stdout_paint
    }

    /// Returns the colours of stderr.
    pub(crate) fn err_paint(&self) -> Paint {
        self.0.stderr_paint
    }

    pub(crate) fn quiet(&self) -> bool {
        self.0.quiet
    }

    /// Whether bursar's own log goes to stderr, decisions included.
    pub(crate) fn verbose(&self) -> bool {
        self.0.verbose
    }

    /// Writes to stdout and flushes; data only.
    pub(crate) fn data(&self, bytes: &[u8]) {
        if self.stdout_gone() {
            return;
        }
        let written = self.above_view(|| {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        });
        let Err(error) = written else { return };
        self.0.stdout_gone.store(true, Ordering::Relaxed);
        // A reader that goes away has seen enough; anything else lost what was asked for.
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.err(format!("error: cannot write to stdout: {error}\n").as_bytes());
        }
    }

    /// Writes a line to stdout.
    pub(crate) fn line(&self, line: &str) {
        self.data(format!("{line}\n").as_bytes());
    }

    /// Writes to stderr.
    pub(crate) fn err(&self, bytes: &[u8]) {
        if self.0.stderr_gone.load(Ordering::Relaxed) {
            return;
        }
        if self.above_view(|| io::stderr().lock().write_all(bytes)).is_err() {
            self.0.stderr_gone.store(true, Ordering::Relaxed);
        }
    }

    /// Writes a line to stderr.
    pub(crate) fn note(&self, line: &str) {
        self.err(format!("{line}\n").as_bytes());
    }

    /// Writes a warning to stderr.
    pub(crate) fn warn(&self, text: &str) {
        self.note(&format!("{} {}", self.err_paint().yellow("warning:"), crate::escape::line(text)));
    }

    /// Writes a failure to stderr.
    pub(crate) fn failure(&self, failure: &Failure) {
        let text = failure.render();
        let painted = text.replacen("error:", &self.err_paint().red("error:"), 1);
        self.err(painted.as_bytes());
    }

    /// Whether nobody reads stdout any more.
    pub(crate) fn stdout_gone(&self) -> bool {
        self.0.stdout_gone.load(Ordering::Relaxed)
    }

    /// Puts a live view on the terminal, or takes it away.
    pub(crate) fn set_view(&self, view: Option<ProgressBar>) {
        let mut slot = self.0.view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = slot.take() {
            old.finish_and_clear();
        }
        *slot = view;
    }

    fn above_view(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let view = self.0.view.lock().unwrap_or_else(PoisonError::into_inner);
        match &*view {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// Whether a live view fits stderr.
pub(crate) fn live_view_possible() -> bool {
    io::stderr().is_terminal() && !dumb()
}

/// Returns the width of the terminal, or 100 where there is none.
pub(crate) fn width() -> usize {
    size().0
}

/// Returns columns and rows of the terminal, or 100 and 40 where there is none.
pub(crate) fn size() -> (usize, usize) {
    let of = |found: rustix::io::Result<rustix::termios::Winsize>| {
        let found = found.ok().filter(|size| size.ws_col > 0)?;
        Some((usize::from(found.ws_col), if found.ws_row > 0 { usize::from(found.ws_row) } else { 40 }))
    };
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    of(rustix::termios::tcgetwinsize(io::stderr()))
        .or_else(|| of(rustix::termios::tcgetwinsize(io::stdout())))
        .unwrap_or_else(|| (columns().unwrap_or(100), 40))
}

fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty())
}
