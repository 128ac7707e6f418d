//! What can go wrong around a run; nothing in here ends the agent.

use std::path::{Path, PathBuf};

use bursar_core::{AttemptId, RunId};
use rusqlite::ErrorCode;

/// The store cannot be used, by what the user can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the store at {path} is of version {found}, this bursar knows versions up to {known}")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("the store at {path} is damaged")]
    Corrupt {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store at {path} cannot be written")]
    ReadOnly {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("no space is left for the store at {path}")]
    Full {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the store at {path} is in use by another process that does not let go")]
    Busy {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store at {path} failed")]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the store at {path} failed")]
    Sql {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    /// A row does not parse, though the store is of a version that is known.
    #[error("run `{run}` has an unreadable entry in the store: {what}")]
    Unreadable { run: RunId, what: String },
}

impl StoreError {
    /// Sorts an error of the database.
    pub(crate) fn sql(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let code = source.sqlite_error_code();
        match code {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { path, source },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path, source: Box::new(source) }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path, source: Box::new(source) },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path, source },
            Some(_) | None => Self::Sql { path, source },
        }
    }

    /// Sorts an error of the file system.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let path = path.to_owned();
        let kind = source.kind();
        if matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            Self::Full { path, source: Box::new(source) }
        } else if matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) {
            Self::ReadOnly { path, source: Box::new(source) }
        } else {
            Self::Io { path, source }
        }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Newer { .. } => {
                "a newer bursar wrote it: use that one, or set XDG_STATE_HOME to another folder".to_owned()
            }
            Self::Corrupt { path, .. } => format!(
                "agents that run are not harmed; move {} away to begin with an empty store",
                path.display()
            ),
            Self::ReadOnly { path, .. } => format!(
                "make {} writable, or set XDG_STATE_HOME to a folder that is",
                path.parent().unwrap_or(path).display()
            ),
            Self::Full { .. } => {
                "free some space (`bursar gc` removes old runs), then `bursar attach RUN`: the agent goes on \
                 meanwhile and nothing it says is lost"
                    .to_owned()
            }
            Self::Busy { .. } => "try again; if it stays, look for a stopped bursar process".to_owned(),
            Self::Io { .. } | Self::Sql { .. } => {
                "the agent goes on meanwhile; `bursar attach RUN` picks it up again".to_owned()
            }
            Self::Unreadable { run, .. } => {
                format!("the agent's own output of `{run}` is still whole: see `bursar logs {run} --raw`")
            }
        }
    }
}

/// A run cannot be driven or watched further by this process. The agent is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no run `{run}`")]
    UnknownRun { run: RunId },
    /// Nothing can be asked of a run that is over.
    #[error("run `{run}` is over")]
    Over { run: RunId },
    /// Bytes that were folded are missing here; `cause` says why the host did not give them back.
    #[error(
        "run `{run}` lost output: {have} of {need} bytes of attempt {attempt} are left on this machine, and {cause}"
    )]
    MirrorShort { run: RunId, attempt: AttemptId, have: u64, need: u64, cause: String },
    /// bursar itself is wrong.
    #[error("bursar has a bug: {what}")]
    Bug { what: String },
}

impl RunnerError {
    /// Returns what to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Store(error) => error.hint(),
            Self::UnknownRun { .. } => "`bursar ls --all` lists the runs of this machine".to_owned(),
            Self::Over { run } => format!("`bursar show {run}` tells how it ended"),
            Self::MirrorShort { run, .. } => {
                format!("its state cannot be told any more; `bursar stop {run}` ends what of it still runs")
            }
            Self::Bug { .. } => "please report it; the agent is left running".to_owned(),
        }
    }

    /// Returns the exit code of `bursar run` and `attach`: the agent may still run, unless there is none.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownRun { .. } | Self::Over { .. } => 2,
            Self::Store(_) | Self::MirrorShort { .. } => 6,
            Self::Bug { .. } => 70,
        }
    }
}

/// No single run has an id that begins like this.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("no run has an id that begins with `{prefix}`")]
    Unknown { prefix: String },
    #[error("{} runs have an id that begins with `{prefix}`", .runs.len())]
    Ambiguous { prefix: String, runs: Vec<RunId> },
    #[error(transparent)]
    Store(#[from] StoreError),
}
