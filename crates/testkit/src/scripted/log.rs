//! What a scripted agent was told, for the test to ask. One JSON object a line beside the script, over all attempts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that happened to one process of a scripted agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Which start it was, from 0.
    pub attempt: usize,
    /// What happened.
    pub event: LogEvent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEvent {
    /// The process began.
    Started {
        /// Its process id.
        pid: u32,
        /// Its arguments, without the program.
        args: Vec<String>,
        /// The session it serves.
        session: String,
        /// Its working folder.
        cwd: String,
    },
    /// A user message came.
    Message {
        /// Its id, if it had one.
        uuid: Option<String>,
        /// Its words.
        text: String,
    },
    /// A control request came.
    Control(Value),
    /// The input ended.
    InputClosed,
    /// The process ended by itself.
    Exited(u8),
}

/// Writes the log of one process.
#[derive(Debug)]
pub(super) struct LogWriter {
    attempt: usize,
    file: File,
}

impl LogWriter {
    /// Takes the next attempt number of `script` and opens the log for it.
    pub(super) fn open(script: &Path) -> io::Result<(usize, Self)> {
        let mut attempt = 0;
        // Creating a file that must not exist yet makes two starts at one time two attempts.
        while let Err(error) = File::create_new(beside(script, &format!("attempt-{attempt}"))) {
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(error);
            }
            attempt += 1;
        }
        let file = OpenOptions::new().create(true).append(true).open(beside(script, "log"))?;
        Ok((attempt, Self { attempt, file }))
    }

    /// Appends an entry by a single write, so that entries of two processes do not mix.
    pub(super) fn write(&mut self, event: LogEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(&LogEntry { attempt: self.attempt, event })?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// Reads the log of all processes so far; a line that is still being written is left out.
pub(super) fn read(script: &Path) -> io::Result<Vec<LogEntry>> {
    match fs::read_to_string(beside(script, "log")) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn beside(script: &Path, suffix: &str) -> PathBuf {
    script.with_extension(suffix)
}
