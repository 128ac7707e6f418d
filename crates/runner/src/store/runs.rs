//! Whole runs: making, finding, listing, removing them, and wishes left for their drivers.

use std::fs;
use std::path::{Path, PathBuf};

use bursar_core::event::Ask;
use bursar_core::policy::Request;
use bursar_core::{At, RunId};
use rusqlite::{OptionalExtension, Row, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Store, mirror};
use crate::error::{FindError, StoreError};
use crate::host::AgentChoice;
use crate::lock::DriverLock;
use crate::record::FinishedRecord;

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
    pub finished_at: Option<At>,
    pub finished: Option<FinishedRecord>,
}

/// One line of a list of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLine {
    pub run: RunId,
    pub host: String,
    pub dir: Vec<u8>,
    pub key: Option<String>,
    /// The first line of the prompt that is not empty.
    pub title: String,
    pub created: At,
    /// Whether a process drives it at this moment.
    pub driven: bool,
    pub finished_at: Option<At>,
    pub finished: Option<FinishedRecord>,
}

const COLUMNS: &str = "id, key, created, dir, agent, env, request, finished_at, finished";

impl Store {
    /// Stores a run, which begins at `now`. The id must be new: draw another if it is not.
    ///
    /// A key is taken for as long as its run is in the store, whether the run is over or not.
    pub fn create(&self, new: &NewRun, now: At) -> Result<Created, StoreError> {
        let run = &new.request.run;
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| self.failed(error))?;
        if let Some(key) = &new.key {
            let existing = transaction
                .query_row("SELECT id, finished_at IS NOT NULL FROM runs WHERE key = ?1", [key], |row| {
                    Ok(Created::Existing { run: RunId(row.get(0)?), finished: row.get(1)? })
                })
                .optional()
                .map_err(|error| self.failed(error))?;
            if let Some(existing) = existing {
                return Ok(existing);
            }
        }
        transaction
            .execute(
                "INSERT INTO runs (id, key, created, host, dir, agent, env, request) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
                params![
                    run.0,
                    new.key,
                    integer(now.0),
                    new.request.host,
                    new.dir,
                    json(run, &new.agent)?,
                    json(run, &new.env)?,
                    json(run, &new.request)?,
                ],
            )
            .map_err(|error| self.failed(error))?;
        transaction.commit().map_err(|error| self.failed(error))?;
        drop(connection);
        self.wrote();
        Ok(Created::New)
    }

    /// Finds the one run whose id begins like this; a whole id wins over longer ones.
    pub fn find(&self, prefix: &str) -> Result<RunId, FindError> {
        let connection = self.connection();
        let mut runs = connection
            .prepare_cached("SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id")
            .and_then(|mut statement| {
                statement.query_map([prefix], |row| row.get(0).map(RunId))?.collect::<Result<Vec<_>, _>>()
            })
            .map_err(|error| self.failed(error))?;
        let prefix = prefix.to_owned();
        if prefix.is_empty() || runs.is_empty() {
            return Err(FindError::Unknown { prefix });
        }
        if runs.len() == 1 || runs[0].0 == prefix {
            return Ok(runs.swap_remove(0));
        }
        Err(FindError::Ambiguous { prefix, runs })
    }

    /// Lists runs, the youngest first: those that are not over, or all.
    pub fn list(&self, all: bool) -> Result<Vec<RunLine>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM runs {} ORDER BY created DESC, id",
            if all { "" } else { "WHERE finished_at IS NULL" }
        );
        let runs = self.select(&sql, [])?;
        runs.into_iter()
            .map(|stored| {
                let run = stored.request.run;
                let driven = stored.finished.is_none() && DriverLock::is_taken(&self.run_dir(&run))?;
                let title = stored.request.prompt.lines().map(str::trim).find(|line| !line.is_empty());
                Ok(RunLine {
                    title: title.unwrap_or_default().to_owned(),
                    run,
                    host: stored.request.host,
                    dir: stored.dir,
                    key: stored.key,
                    created: stored.created,
                    driven,
                    finished_at: stored.finished_at,
                    finished: stored.finished,
                })
            })
            .collect()
    }

    /// Loads a run; None if there is none of this id.
    pub fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
        Ok(self.select(&sql, [&run.0])?.pop())
    }

    /// Leaves a wish for whoever drives the run, and returns whether somebody does at this moment. If nobody does,
    /// the next driver finds it.
    pub fn ask(&self, run: &RunId, ask: &Ask, now: At) -> Result<bool, StoreError> {
        let ask = json(run, ask)?;
        self.connection()
            .execute(
                "INSERT INTO asks (run, at, ask) VALUES (?1, ?2, ?3)",
                params![run.0, integer(now.0), ask],
            )
            .map_err(|error| self.failed(error))?;
        self.wrote();
        DriverLock::is_taken(&self.run_dir(run))
    }

    /// Returns how many wishes nobody has taken up yet. Of a run that is over, they never will be.
    pub fn open_wishes(&self, run: &RunId) -> Result<usize, StoreError> {
        self.open_asks(run).map(|asks| asks.len())
    }

    /// Returns the mirrors of the run's attempts in order: what `bursar logs --raw` prints.
    pub fn mirrors(&self, run: &RunId) -> Result<Vec<(u32, PathBuf)>, StoreError> {
        mirror::list(&self.run_dir(run))
    }

    /// Returns the runs that ended before this moment, the eldest first.
    pub(crate) fn ended_before(&self, at: At) -> Result<Vec<RunId>, StoreError> {
        let connection = self.connection();
        connection
            .prepare_cached("SELECT id FROM runs WHERE finished_at < ?1 ORDER BY finished_at, id")
            .and_then(|mut statement| {
                statement
                    .query_map([integer(at.0)], |row| row.get(0).map(RunId))?
                    .collect::<Result<Vec<_>, _>>()
            })
            .map_err(|error| self.failed(error))
    }

    /// Returns the runs that are not over.
    pub(crate) fn unfinished(&self) -> Result<Vec<RunId>, StoreError> {
        let connection = self.connection();
        connection
            .prepare_cached("SELECT id FROM runs WHERE finished_at IS NULL ORDER BY id")
            .and_then(|mut statement| {
                statement.query_map([], |row| row.get(0).map(RunId))?.collect::<Result<Vec<_>, _>>()
            })
            .map_err(|error| self.failed(error))
    }

    /// Returns the names of all hosts that runs in the store name.
    pub(crate) fn host_names(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.connection();
        connection
            .prepare_cached("SELECT DISTINCT host FROM runs ORDER BY host")
            .and_then(|mut statement| {
                statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<_>, _>>()
            })
            .map_err(|error| self.failed(error))
    }

    /// Removes all that is kept of a run, and returns how many bytes of mirrors that were.
    pub(crate) fn remove(&self, run: &RunId) -> Result<u64, StoreError> {
        let dir = self.run_dir(run);
        let mut bytes = 0;
        for (_, path) in mirror::list(&dir)? {
            bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
        }
        match self.remove_rows(run) {
            // To remove rows takes room of its own. The run is over and about to go, so its files make some.
            Err(StoreError::Full { .. }) => {
                remove_dir(&dir)?;
                self.remove_rows(run)?;
            }
            // The rows go first: a mirror without a run is litter, a run without its mirror is an error.
            removed => {
                removed?;
                remove_dir(&dir)?;
            }
        }
        Ok(bytes)
    }

    fn remove_rows(&self, run: &RunId) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let removed =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                for (table, column) in
                    [("decisions", "run"), ("asks", "run"), ("facts", "run"), ("runs", "id")]
                {
                    transaction.execute(&format!("DELETE FROM {table} WHERE {column} = ?1"), [&run.0])?;
                }
                transaction.commit()
            });
        removed.map_err(|error| self.failed(error))?;
        drop(connection);
        self.wrote();
        Ok(())
    }

    fn select(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<Vec<StoredRun>, StoreError> {
        let rows = {
            let connection = self.connection();
            let mut statement = connection.prepare_cached(sql).map_err(|error| self.failed(error))?;
            statement
                .query_map(parameters, RawRun::read)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| self.failed(error))?
        };
        rows.into_iter().map(RawRun::parse).collect()
    }
}

/// One row of `runs`, not parsed yet.
struct RawRun {
    id: RunId,
    key: Option<String>,
    created: i64,
    dir: Vec<u8>,
    agent: String,
    env: String,
    request: String,
    finished_at: Option<i64>,
    finished: Option<String>,
}

impl RawRun {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: RunId(row.get(0)?),
            key: row.get(1)?,
            created: row.get(2)?,
            dir: row.get(3)?,
            agent: row.get(4)?,
            env: row.get(5)?,
            request: row.get(6)?,
            finished_at: row.get(7)?,
            finished: row.get(8)?,
        })
    }

    fn parse(self) -> Result<StoredRun, StoreError> {
        Ok(StoredRun {
            request: parse(&self.id, &self.request)?,
            dir: self.dir,
            agent: parse(&self.id, &self.agent)?,
            env: parse(&self.id, &self.env)?,
            key: self.key,
            created: moment(self.created),
            finished_at: self.finished_at.map(moment),
            finished: self.finished.map(|finished| parse(&self.id, &finished)).transpose()?,
        })
    }
}

fn remove_dir(dir: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io(dir, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// SQLite's integers are signed; what does not fit is as good as never.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn moment(number: i64) -> At {
    At(u64::try_from(number).unwrap_or_default())
}

pub(super) fn json<T: Serialize>(run: &RunId, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Unreadable { run: run.clone(), what: error.to_string() })
}

pub(super) fn parse<T: DeserializeOwned>(run: &RunId, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Unreadable { run: run.clone(), what: error.to_string() })
}
