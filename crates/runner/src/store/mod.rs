//! The store: one SQLite file for all runs of this machine's user, and a mirror of every attempt's stdout beside it.
//!
//! A run's state is in here once: as its request, the facts that reached it, and the bytes its agents wrote. All else
//! (its phase, its ledger, its records) is folded from these. `runs.finished` is the one exception, a copy of the last
//! record, so that a list need not fold every run there ever was.
//!
//! Calls block for as long as a small write takes; a write waits for another process's at most ten seconds.
//! Read next: `schema.rs`, `runs.rs` for whole runs, `log.rs` for their facts, `mirror.rs` for their bytes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bursar_core::RunId;
use rusqlite::Connection;

use crate::error::StoreError;

mod found;
pub(crate) mod log;
pub(crate) mod mirror;
mod runs;
mod schema;

pub(crate) use schema::private_dir;

pub(crate) use found::Found;
pub use runs::{Created, NewRun, RunLine, StoredRun};

/// The store. Any number of processes may have it open, and any number of drivers share one in a process.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    file: PathBuf,
    connection: Mutex<Connection>,
    /// Counts our own writes, which `PRAGMA data_version` does not.
    writes: AtomicU64,
}

/// A mark that differs once anything in the store changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    others: i64,
    own: u64,
}

impl Store {
    /// Opens the store in this folder (`${XDG_STATE_HOME:-$HOME/.local/state}/bursar`), making both if need be.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let (file, connection) = schema::open(root)?;
        Ok(Self {
            root: root.to_owned(),
            file,
            connection: Mutex::new(connection),
            writes: AtomicU64::new(0),
        })
    }

    /// Returns the folder of the store.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn mark(&self) -> Result<Mark, StoreError> {
        let own = self.writes.load(Ordering::Acquire);
        let others = self
            .connection()
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|error| self.failed(error))?;
        Ok(Mark { others, own })
    }

    /// Returns the folder of what is kept of a run outside of the database.
    pub(crate) fn run_dir(&self, run: &RunId) -> PathBuf {
        self.root.join("mirror").join(&run.0)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic between two statements leaves at worst an open transaction, which its guard rolled back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::sql(&self.file, error)
    }

    fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Release);
    }
}
