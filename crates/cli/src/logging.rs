//! Where bursar's own log goes: warnings to stderr, more with `-v`, and all of it to `--log-file`.
//!
//! Fields may hold text of agents and hosts, so each line is escaped on its way out.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{Global, LogFormat};
use crate::escape;
use crate::failure::Failure;
use crate::output::Output;

/// Begins to log.
pub(crate) fn init(global: &Global, output: &Output) -> Result<(), Failure> {
    let stderr_level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let file_level = if global.verbose > 1 { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let file = global.log_file.as_deref().map(open).transpose()?;
    let json = global.log_format == LogFormat::Json;
    let stderr_layer = layer(json, Target { json, sink: Sink::Stderr(output.clone()) }, stderr_level);
    let file_layer = file
        .map(|file| layer(json, Target { json, sink: Sink::File(Arc::new(Mutex::new(file))) }, file_level));
    // Set once per process; a second call cannot happen outside of tests.
    drop(tracing_subscriber::registry().with(stderr_layer).with(file_layer).try_init());
    Ok(())
}

fn open(path: &std::path::Path) -> Result<File, Failure> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(|error| {
        Failure::usage(format!("cannot write the log file `{}`", path.display()))
            .caused_by(&error)
            .hint("name another file with --log-file, or leave it out")
    })
}

fn layer<S>(
    json: bool,
    target: Target,
    level: LevelFilter,
) -> Box<dyn tracing_subscriber::Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(target);
    if json { layer.json().with_filter(level).boxed() } else { layer.with_filter(level).boxed() }
}

#[derive(Debug, Clone)]
struct Target {
    json: bool,
    sink: Sink,
}

#[derive(Debug, Clone)]
enum Sink {
    Stderr(Output),
    File(Arc<Mutex<File>>),
}

impl<'a> MakeWriter<'a> for Target {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

impl Write for &Target {
    /// The subscriber hands over one whole line a call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let safe = if self.json { escape::json(&text) } else { escape::text(&text) };
        match &self.sink {
            Sink::Stderr(output) => output.err(safe.as_bytes()),
            // A full disk must not stop a run: the line is lost, the run is not.
            Sink::File(file) => {
                drop(file.lock().unwrap_or_else(PoisonError::into_inner).write_all(safe.as_bytes()));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
