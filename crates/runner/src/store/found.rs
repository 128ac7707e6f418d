//! Where agents were found on hosts: a memory that saves asking, never a source of truth.

use bursar_core::At;
use rusqlite::{OptionalExtension, params};

use super::Store;
use super::runs::integer;
use crate::error::StoreError;
use crate::host::AgentChoice;

/// A place where an agent was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: Vec<u8>,
    /// The whole PATH of a terminal there; None if scripts have it anyway.
    pub(crate) env_path: Option<Vec<u8>>,
}

impl Store {
    /// Returns where this agent was last found on the host, if that was at `since` or later.
    pub(crate) fn found_agent(
        &self,
        host: &str,
        agent: &AgentChoice,
        since: At,
    ) -> Result<Option<Found>, StoreError> {
        self.connection()
            .prepare_cached(
                "SELECT path, env_path FROM found WHERE host = ?1 AND name = ?2 AND explicit = ?3 AND at >= ?4",
            )
            .and_then(|mut statement| {
                statement
                    .query_row(
                        params![host, agent.name, agent.path.as_deref().unwrap_or_default(), integer(since.0)],
                        |row| Ok(Found { path: row.get(0)?, env_path: row.get(1)? }),
                    )
                    .optional()
            })
            .map_err(|error| self.failed(error))
    }

    /// Remembers where this agent was found on the host.
    pub(crate) fn keep_found_agent(
        &self,
        host: &str,
        agent: &AgentChoice,
        found: &Found,
        now: At,
    ) -> Result<(), StoreError> {
        let explicit = agent.path.as_deref().unwrap_or_default();
        self.connection()
            .execute(
                "INSERT OR REPLACE INTO found (host, name, explicit, path, env_path, at) VALUES (?1,?2,?3,?4,?5,?6)",
                params![host, agent.name, explicit, found.path, found.env_path, integer(now.0)],
            )
            .map(|_| ())
            .map_err(|error| self.failed(error))
    }
}
