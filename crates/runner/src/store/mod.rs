//! The store: one SQLite file for all runs of this machine's user, and a mirror of every attempt's stdout beside it.
//!
//! A run's state is in here once: as its request, the facts that reached it, and the bytes its agents wrote. All else
//! (its phase, its ledger, its records) is folded from these. `runs.finished` is the one exception, a copy of the last
//! record, so that a list need not fold every run there ever was.

use std::path::{Path, PathBuf};

use bursar_core::event::Ask;
use bursar_core::policy::Request;
use bursar_core::{At, RunId};

use crate::error::{FindError, StoreError};
use crate::host::AgentChoice;
use crate::record::FinishedRecord;

/// The store. Any number of processes may have it open.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
}

/// What a run is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    pub request: Request,
    /// The working directory on the host, as the user gave it.
    pub dir: Vec<u8>,
    pub agent: AgentChoice,
    /// Names of `--env`; their values are looked up through `Context::environment` when an agent is started.
    pub env: Vec<String>,
    /// `--key`: a second run of the same key is the first one.
    pub key: Option<String>,
}

/// What became of [`Store::create`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The run is there and can be driven.
    New,
    /// This run has the same key: attach to it, or show it if it is over.
    Existing { run: RunId, finished: bool },
}

/// One run as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    pub request: Request,
    pub dir: Vec<u8>,
    pub agent: AgentChoice,
    pub env: Vec<String>,
    pub key: Option<String>,
    pub created: At,
    pub finished: Option<FinishedRecord>,
}

/// One line of a list of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLine {
    pub run: RunId,
    pub host: String,
    pub dir: Vec<u8>,
    pub key: Option<String>,
    /// The first line of the prompt.
    pub title: String,
    pub created: At,
    /// Whether a process drives it at this moment.
    pub driven: bool,
    pub finished: Option<FinishedRecord>,
}

impl Store {
    /// Opens the store in this folder (`${XDG_STATE_HOME:-$HOME/.local/state}/bursar`), making both if need be.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        Ok(Self { root: root.to_owned() })
    }

    /// Stores a run; `now` is when it begins.
    pub fn create(&self, new: &NewRun, now: At) -> Result<Created, StoreError> {
        let _ = (new, now);
        Err(self.unwritten())
    }

    /// Finds the one run whose id begins like this.
    pub fn find(&self, prefix: &str) -> Result<RunId, FindError> {
        Err(FindError::Unknown { prefix: prefix.to_owned() })
    }

    /// Lists runs, the youngest first: those that are not over, or all.
    pub fn list(&self, all: bool) -> Result<Vec<RunLine>, StoreError> {
        let _ = all;
        Err(self.unwritten())
    }

    /// Loads a run.
    pub fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        let _ = run;
        Err(self.unwritten())
    }

    /// Leaves a wish for whoever drives the run, and returns whether somebody does at this moment. If nobody does,
    /// the next driver finds it.
    pub fn ask(&self, run: &RunId, ask: &Ask, now: At) -> Result<bool, StoreError> {
        let _ = (run, ask, now);
        Err(self.unwritten())
    }

    /// Returns the mirrors of the run's attempts in order: what `bursar logs --raw` prints.
    pub fn mirrors(&self, run: &RunId) -> Result<Vec<(u32, PathBuf)>, StoreError> {
        let _ = run;
        Err(self.unwritten())
    }

    fn unwritten(&self) -> StoreError {
        StoreError::Io { path: self.root.clone(), source: std::io::ErrorKind::Unsupported.into() }
    }
}
