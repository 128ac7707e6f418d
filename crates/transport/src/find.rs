//! Finding the agent's program on a host, and the `PATH` a terminal would have there.

use std::time::Duration;

use crate::HostError;
use crate::exchange::exchange;
use crate::holder::Holder;
use crate::payload::{push_line, unhex};
use crate::script::Script;

/// How long the user's shell may take to start, before its group is killed.
const SHELL_LIMIT: Duration = Duration::from_secs(5);

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundAgent {
    /// Its absolute path.
    pub path: Vec<u8>,
    /// The `PATH` of a login and interactive shell of the user, with the program's folder. Give all of it to
    /// the agent: a `#!/usr/bin/env node` program needs node, and an agent needs its user's tools.
    pub env_path: Vec<u8>,
    /// The user's home directory.
    pub home: Vec<u8>,
}

/// Why no program was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// It is in none of these places.
    #[error("`{name}` was not found on the host")]
    NotFound {
        /// What was looked for.
        name: String,
        /// The folders, or the explicit path, in the order they were looked at; remote text.
        places: Vec<String>,
    },
    /// The host.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// What lies at a path that is to be a working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryState {
    /// A directory that can be entered; its absolute path.
    Ok(Vec<u8>),
    /// Nothing.
    Missing,
    /// No directory.
    NotADirectory,
    /// A directory that may not be entered.
    NotAllowed,
}

impl Holder {
    /// Looks for a program: at the explicit path and nowhere else if there is one; else in the `PATH` of the
    /// user's login and interactive shell, then in the folders agents are usually installed in.
    ///
    /// The user's shell gets 5 s, then its whole process group is killed (an interactive bash ignores TERM).
    /// Its start-up files can tell by `BURSAR_RESOLVING_ENVIRONMENT=1` that nobody is there. csh and tcsh
    /// cannot be asked and are skipped.
    ///
    /// # Errors
    ///
    /// See [`FindError`].
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn find_agent(&self, name: &str, explicit: Option<&[u8]>) -> Result<FoundAgent, FindError> {
        let mut header = Vec::new();
        push_line(&mut header, "", explicit.unwrap_or_default());
        push_line(&mut header, "", name.as_bytes());
        header.extend_from_slice(format!("{}\n", SHELL_LIMIT.as_millis()).as_bytes());
        let answer = exchange(self.host().as_ref(), Script::FindAgent, &header, &[]).await?;
        if let Some(line) = answer.find("found") {
            let words: Vec<_> = line.split(' ').map(unhex).collect();
            let [path, env_path, home] = words.try_into().map_err(|_| answer.nonsense())?;
            return Ok(FoundAgent { path, env_path, home });
        }
        let places =
            answer.all("place").map(|hex| String::from_utf8_lossy(&unhex(hex)).into_owned()).collect();
        Err(FindError::NotFound { name: name.to_owned(), places })
    }

    /// Looks whether `path` can be a working directory; it is read like [`crate::StartSpec::cwd`].
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn check_dir(&self, path: &[u8]) -> Result<DirectoryState, HostError> {
        let mut header = Vec::new();
        push_line(&mut header, "", path);
        let answer = exchange(self.host().as_ref(), Script::Directory, &header, &[]).await?;
        let line = answer.find("dir").ok_or_else(|| answer.nonsense())?;
        match line.split_once(' ').unwrap_or((line, "")) {
            ("ok", hex) => {
                let mut path = unhex(hex);
                // The newline `pwd` ends with.
                path.pop();
                Ok(DirectoryState::Ok(path))
            }
            ("missing", _) => Ok(DirectoryState::Missing),
            ("other", _) => Ok(DirectoryState::NotADirectory),
            ("closed", _) => Ok(DirectoryState::NotAllowed),
            _ => Err(answer.nonsense()),
        }
    }
}
