//! A scripted agent as a test holds it: a folder with its script, a program to start, and what it was told.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::log::{self, LogEntry, LogEvent};
use super::play::SCRIPT_NAME;
use super::script::AgentScript;
use crate::workspace::{BuildError, built_binary};

/// Why a scripted agent could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ScriptedError {
    /// The program could not be built.
    #[error("the scripted agent's program is not there")]
    Build(#[from] BuildError),
    /// Its folder could not be made, written or read.
    #[error("the scripted agent's folder cannot be used")]
    Folder(#[from] io::Error),
    /// The script does not fit into JSON.
    #[error("the script cannot be written as JSON")]
    Script(#[from] serde_json::Error),
}

/// A scripted agent ready to be started, as often as the product likes. Its folder is gone when dropped.
#[derive(Debug)]
pub struct ScriptedAgent {
    folder: TempDir,
}

impl ScriptedAgent {
    /// Writes the script into a folder of its own, with a link to the program beside it.
    pub fn new(script: &AgentScript) -> Result<Self, ScriptedError> {
        let program = built_binary("bursar-testkit", "bursar-scripted-agent")?;
        let folder = tempfile::Builder::new().prefix("bursar-agent-").tempdir()?;
        std::fs::write(folder.path().join(SCRIPT_NAME), serde_json::to_vec(script)?)?;
        // A link, not a shell script that sets a variable: a file written a moment ago may be "busy" when another
        // thread forks at the wrong time, and nothing has to be passed through the product's own environment.
        symlink(program, folder.path().join("claude"))?;
        Ok(Self { folder })
    }

    /// Returns the program to start in place of the agent CLI. It finds its script by itself.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("claude")
    }

    /// Returns the folder of the script, where the files of `await_file` and `touch` lie.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a file that the agent waits for.
    pub fn release(&self, name: &str) -> Result<(), ScriptedError> {
        Ok(std::fs::write(self.folder.path().join(name), "")?)
    }

    /// Returns everything that happened to its processes so far.
    pub fn log(&self) -> Result<Vec<LogEntry>, ScriptedError> {
        Ok(log::read(&self.folder.path().join(SCRIPT_NAME))?)
    }

    /// Returns how many processes were started.
    pub fn starts(&self) -> Result<usize, ScriptedError> {
        Ok(self.log()?.iter().filter(|entry| matches!(entry.event, LogEvent::Started { .. })).count())
    }

    /// Returns the words of every message, over all attempts.
    pub fn messages(&self) -> Result<Vec<String>, ScriptedError> {
        let text = |entry: LogEntry| match entry.event {
            LogEvent::Message { text, .. } => Some(text),
            LogEvent::Started { .. } | LogEvent::Control(_) | LogEvent::InputClosed | LogEvent::Exited(_) => {
                None
            }
        };
        Ok(self.log()?.into_iter().filter_map(text).collect())
    }
}
