//! The entries: drive a run or watch it being driven.

use std::time::Duration;

use bursar_core::RunId;
use bursar_core::event::Ask;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::error::{RunnerError, StoreError};
use crate::record::{FinishedRecord, Record};
use crate::store::Store;
use crate::updates::Updates;
use crate::view::RunView;

/// Sees a run to its end: drives it, or watches while another process drives it and takes over when that one dies.
///
/// What comes over `asks` reaches the fold, here or through the other driver. Returns how the run ended; for a run
/// that is over already, at once.
///
/// Cancel safe, and this is how to detach: dropping the future at any point loses nothing and leaves the agent
/// running; the next call, in any process, goes on from there.
pub async fn attend(
    context: &Context,
    run: &RunId,
    updates: &Updates,
    asks: mpsc::Receiver<Ask>,
) -> Result<FinishedRecord, RunnerError> {
    let _ = (context, updates, asks);
    Err(RunnerError::UnknownRun { run: run.clone() })
}

/// Watches a run to its end without ever driving it; returns None if it is not over and nobody drives it.
///
/// Cancel safe.
pub async fn watch(
    context: &Context,
    run: &RunId,
    updates: &Updates,
) -> Result<Option<FinishedRecord>, RunnerError> {
    let _ = (context, updates);
    Err(RunnerError::UnknownRun { run: run.clone() })
}

/// Folds a run's log without contacting its host, handing out each record in order, and returns where it stands.
pub fn replay(store: &Store, run: &RunId, each: impl FnMut(Record)) -> Result<RunView, RunnerError> {
    let _ = (store, each);
    Err(RunnerError::UnknownRun { run: run.clone() })
}

/// What was cleaned up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Runs removed from this machine's store.
    pub runs: Vec<RunId>,
    /// Bytes of mirrors removed.
    pub bytes: u64,
    /// What each host removed, or why it did not.
    pub hosts: Vec<(String, Result<u64, String>)>,
}

/// Removes runs that ended at least this long ago, from the store and from their hosts.
pub async fn gc(context: &Context, older_than: Duration) -> Result<Collected, StoreError> {
    let _ = (context, older_than);
    Ok(Collected::default())
}
