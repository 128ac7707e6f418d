//! The entries: drive a run, watch it being driven, fold its log, clean up.

use std::time::Duration;

use bursar_core::event::Ask;
use bursar_core::{At, RunId};
use tokio::sync::mpsc;

use crate::context::Context;
use crate::driver::Driver;
use crate::error::{RunnerError, StoreError};
use crate::fold::Begin;
use crate::folded::Folded;
use crate::lock::DriverLock;
use crate::reader::Reader;
use crate::record::{FinishedRecord, Record};
use crate::store::Store;
use crate::store::mirror::Mirrors;
use crate::updates::{Update, Updates};
use crate::view::RunView;

/// How often a watcher looks whether the log grew, and whether the driver is gone.
const GLANCE: Duration = Duration::from_millis(100);

/// How long a driver must not have moved to be told of; it notes each second that it does.
const STILL: Duration = Duration::from_secs(10);

/// Why a watcher does not fetch lost bytes again.
const WATCHES: &str = "only the process that drives it can fetch them again";

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
    mut asks: mpsc::Receiver<Ask>,
) -> Result<FinishedRecord, RunnerError> {
    let mut reader = Reader::new(context, run, updates)?;
    let dir = context.store.run_dir(run);
    // A run that is over needs no driver, and its folder may lie on a disk that is full.
    let mut lock = if reader.stored.finished.is_some() { None } else { DriverLock::try_take(&dir)? };
    let (mut told, mut warned) = (false, false);
    loop {
        if let Some(lock) = lock {
            // Another driver may have ended the run meanwhile. Its word counts, even if this bursar would fold the
            // log to another end.
            if let Some(finished) = context.store.load(run)?.and_then(|stored| stored.finished) {
                reader.read().await.map_err(|stuck| stuck.into_error(run, WATCHES))?;
                return Ok(finished);
            }
            updates.send(Update::Driving(true));
            let host = (context.hosts)(&reader.stored.request.host);
            // Boxed: the loop's state is large, and lives in whatever future the caller builds around this one.
            let driver = Box::pin(Driver::take_up(reader, lock, host)).await?;
            return Box::pin(driver.drive(&mut asks)).await;
        }
        match reader.read().await {
            Ok(Some(finished)) => return Ok(finished),
            Ok(None) => {}
            Err(stuck) => return Err(stuck.into_error(run, WATCHES)),
        }
        if let Some(finished) = reader.stored.finished {
            return Ok(finished);
        }
        if !told {
            told = true;
            updates.send(Update::Driving(false));
        }
        if !warned {
            warned = warn_of_a_still_driver(context, run, updates);
        }
        glance(context, run, &mut asks).await?;
        lock = DriverLock::try_take(&dir)?;
    }
}

/// Says so if the process that drives the run does not move, as one that was suspended with Ctrl-Z: nobody else can.
fn warn_of_a_still_driver(context: &Context, run: &RunId, updates: &Updates) -> bool {
    let now = context.clock.now();
    let Some((span, pid)) = DriverLock::still_for(&context.store.run_dir(run), now) else { return false };
    if span < STILL {
        return false;
    }
    let (name, wake) = match pid {
        Some(pid) => {
            (format!("the process that drives it (pid {pid})"), format!("`kill -CONT {pid}` wakes it"))
        }
        None => ("the process that drives it".to_owned(), "`fg` in its terminal wakes it".to_owned()),
    };
    updates.send(Update::Warning(format!(
        "run {run} waits: {name} has not moved for {} s and may be suspended; {wake}",
        span.as_secs()
    )));
    true
}

/// Waits for a moment and passes on what is asked meanwhile.
async fn glance(context: &Context, run: &RunId, asks: &mut mpsc::Receiver<Ask>) -> Result<(), RunnerError> {
    let end = tokio::time::Instant::now() + GLANCE;
    loop {
        tokio::select! {
            Some(ask) = asks.recv() => {
                // Whoever drives takes it; if nobody does, that is us in a moment.
                context.store.ask(run, &ask, context.clock.now())?;
            }
            () = tokio::time::sleep_until(end) => return Ok(()),
        }
    }
}

/// Watches a run to its end without ever driving it; returns None if it is not over and nobody drives it.
///
/// Cancel safe.
pub async fn watch(
    context: &Context,
    run: &RunId,
    updates: &Updates,
) -> Result<Option<FinishedRecord>, RunnerError> {
    let mut reader = Reader::new(context, run, updates)?;
    let dir = context.store.run_dir(run);
    updates.send(Update::Driving(false));
    loop {
        // Looked at before the log is read: a driver's last entry is there before its lock is gone.
        let driven = DriverLock::is_taken(&dir)?;
        let finished = reader.read().await.map_err(|stuck| stuck.into_error(run, WATCHES))?;
        let finished = finished.or_else(|| reader.stored.finished.clone());
        if finished.is_some() || !driven {
            return Ok(finished);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// Folds a run's log without contacting its host, handing out each record in order, and returns where it stands.
pub fn replay(store: &Store, run: &RunId, each: impl FnMut(Record)) -> Result<RunView, RunnerError> {
    replay_with(store, run, Begin::default(), each)
}

pub(crate) fn replay_with(
    store: &Store,
    run: &RunId,
    begin: Begin,
    mut each: impl FnMut(Record),
) -> Result<RunView, RunnerError> {
    let Some(stored) = store.load(run)? else {
        return Err(RunnerError::UnknownRun { run: run.clone() });
    };
    let mut folded = Folded::new(stored.request, stored.created, begin);
    let mut mirrors = Mirrors::new(store.run_dir(run));
    loop {
        match folded.catch_up(store, &mut mirrors, &mut each) {
            Ok(true) => {}
            Ok(false) => return Ok(folded.view().clone()),
            Err(stuck) => return Err(stuck.into_error(run, WATCHES)),
        }
    }
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

/// Removes runs that ended at least this long ago, from the store and from their hosts. A run that is not over stays,
/// and a host that does not answer keeps nobody else from being cleaned.
pub async fn gc(context: &Context, older_than: Duration) -> Result<Collected, StoreError> {
    let store = &context.store;
    let mut collected = Collected::default();
    // What ended on its host while nobody looked is not over for us, and its output is still to be fetched.
    let keep = store.unfinished()?;
    for name in store.host_names()? {
        let host = (context.hosts)(&name);
        let removed = host.gc(older_than, &keep).await.map_err(|error| error.to_string());
        collected.hosts.push((name, removed));
    }
    let age = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
    let before = At(context.clock.now().0.saturating_sub(age));
    for run in store.ended_before(before)? {
        collected.bytes += store.remove(&run)?;
        collected.runs.push(run);
    }
    Ok(collected)
}
