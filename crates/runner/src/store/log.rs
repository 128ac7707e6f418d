//! The log of a run: the facts that reached it in their order, what was decided upon each, and open wishes.

use std::collections::BTreeMap;

use bursar_core::event::{Ask, Fact};
use bursar_core::{At, AttemptId, RunId};
use rusqlite::{TransactionBehavior, params};

use super::Store;
use super::runs::{integer, json, moment, parse};
use crate::error::StoreError;

/// One entry of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// 0 is the beginning of the run.
    pub(crate) seq: u64,
    pub(crate) at: At,
    pub(crate) body: Body,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// A driver took the run up for the first time.
    Begun,
    /// The attempt's bytes up to here were folded.
    Output { attempt: AttemptId, end: u64 },
    /// A fact.
    Fact(Fact),
}

/// What is stored together with an entry, in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Beside<'a> {
    /// The decisions made upon it, as JSON.
    pub(crate) decisions: &'a [String],
    /// The wish it takes.
    pub(crate) ask: Option<i64>,
    /// The last record, as JSON.
    pub(crate) finished: Option<&'a str>,
}

impl Store {
    /// Adds an entry. Its number must be the next: two drivers of one run fail here rather than mix.
    pub(crate) fn append(&self, run: &RunId, entry: &Entry, beside: &Beside<'_>) -> Result<(), StoreError> {
        let at = integer(entry.at.0);
        let (kind, attempt, end, fact) = match &entry.body {
            Body::Begun => ("begun", None, None, None),
            Body::Output { attempt, end } => ("output", Some(attempt.0), Some(integer(*end)), None),
            Body::Fact(fact) => (kind(fact), attempt_of(fact), None, Some(json(run, fact)?)),
        };
        let mut connection = self.connection();
        connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                transaction
                    .prepare_cached(
                        "INSERT INTO facts (run, seq, at, kind, attempt, end_offset, fact) VALUES (?1,?2,?3,?4,?5,?6,?7)",
                    )?
                    .execute(params![run.0, integer(entry.seq), at, kind, attempt, end, fact])?;
                for (place, decision) in (0_i64..).zip(beside.decisions) {
                    transaction
                        .prepare_cached(
                            "INSERT INTO decisions (run, fact_seq, place, at, decision) VALUES (?1,?2,?3,?4,?5)",
                        )?
                        .execute(params![run.0, integer(entry.seq), place, at, decision])?;
                }
                if let Some(ask) = beside.ask {
                    transaction
                        .prepare_cached("UPDATE asks SET taken_by = ?2 WHERE id = ?1")?
                        .execute(params![ask, integer(entry.seq)])?;
                }
                if let Some(finished) = beside.finished {
                    transaction
                        .prepare_cached("UPDATE runs SET finished_at = ?2, finished = ?3 WHERE id = ?1")?
                        .execute(params![run.0, at, finished])?;
                }
                transaction.commit()
            })
            .map_err(|error| self.failed(error))?;
        drop(connection);
        self.wrote();
        Ok(())
    }

    /// Returns at most `limit` entries from number `from` on.
    pub(crate) fn entries(&self, run: &RunId, from: u64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        type Raw = (i64, i64, Option<u32>, Option<i64>, Option<String>);
        let rows = {
            let connection = self.connection();
            let mut statement = connection
                .prepare_cached(
                    "SELECT seq, at, attempt, end_offset, fact FROM facts WHERE run = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
                )
                .map_err(|error| self.failed(error))?;
            statement
                .query_map(params![run.0, integer(from), limit], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
                })
                .and_then(Iterator::collect::<Result<Vec<Raw>, _>>)
                .map_err(|error| self.failed(error))?
        };
        rows.into_iter()
            .map(|(seq, at, attempt, end, fact)| {
                let body = match (attempt, end, fact) {
                    (Some(attempt), Some(end), None) => Body::Output {
                        attempt: AttemptId(attempt),
                        end: u64::try_from(end).unwrap_or_default(),
                    },
                    (_, _, Some(fact)) => Body::Fact(parse(run, &fact)?),
                    (_, _, None) => Body::Begun,
                };
                Ok(Entry { seq: u64::try_from(seq).unwrap_or_default(), at: moment(at), body })
            })
            .collect()
    }

    /// Returns what was decided upon the entries in this range, in order.
    pub(crate) fn decisions(
        &self,
        run: &RunId,
        from: u64,
        to: u64,
    ) -> Result<BTreeMap<u64, Vec<String>>, StoreError> {
        let connection = self.connection();
        let mut statement = connection
            .prepare_cached(
                "SELECT fact_seq, decision FROM decisions WHERE run = ?1 AND fact_seq BETWEEN ?2 AND ?3
                 ORDER BY fact_seq, place",
            )
            .map_err(|error| self.failed(error))?;
        let rows = statement
            .query_map(params![run.0, integer(from), integer(to)], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| self.failed(error))?;
        let mut decisions = BTreeMap::<u64, Vec<String>>::new();
        for (seq, decision) in rows {
            decisions.entry(u64::try_from(seq).unwrap_or_default()).or_default().push(decision);
        }
        Ok(decisions)
    }

    /// Returns the wishes nobody took yet, in order. One that does not parse is from a newer bursar and stays.
    pub(crate) fn open_asks(&self, run: &RunId) -> Result<Vec<(i64, Ask)>, StoreError> {
        let connection = self.connection();
        let mut statement = connection
            .prepare_cached("SELECT id, ask FROM asks WHERE run = ?1 AND taken_by IS NULL ORDER BY id")
            .map_err(|error| self.failed(error))?;
        let rows = statement
            .query_map([&run.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| self.failed(error))?;
        Ok(rows
            .into_iter()
            .filter_map(|(id, ask)| serde_json::from_str(&ask).ok().map(|ask| (id, ask)))
            .collect())
    }
}

/// Names the fact for people who read the database; the JSON beside it is what counts.
fn kind(fact: &Fact) -> &'static str {
    match fact {
        Fact::Started { .. } => "started",
        Fact::Refused { .. } => "refused",
        Fact::Exited { .. } => "exited",
        Fact::Vanished { .. } => "vanished",
        Fact::Lost { .. } => "lost",
        Fact::LinkChanged { .. } => "link_changed",
        Fact::Written { .. } => "written",
        Fact::Undeliverable { .. } => "undeliverable",
        Fact::InputClosed { .. } => "input_closed",
        Fact::Surveyed { .. } => "surveyed",
        Fact::Stopped { .. } => "stopped",
        Fact::Asked { .. } => "asked",
        Fact::PickedUp { .. } => "picked_up",
        Fact::DeadlinePassed => "deadline_passed",
    }
}

fn attempt_of(fact: &Fact) -> Option<u32> {
    match fact {
        Fact::Started { attempt, .. }
        | Fact::Refused { attempt, .. }
        | Fact::Exited { attempt, .. }
        | Fact::Vanished { attempt, .. }
        | Fact::Lost { attempt, .. }
        | Fact::Written { attempt, .. }
        | Fact::Undeliverable { attempt, .. }
        | Fact::InputClosed { attempt }
        | Fact::Stopped { attempt, .. } => Some(attempt.0),
        Fact::LinkChanged { .. }
        | Fact::Surveyed { .. }
        | Fact::PickedUp { .. }
        | Fact::Asked { .. }
        | Fact::DeadlinePassed => None,
    }
}
