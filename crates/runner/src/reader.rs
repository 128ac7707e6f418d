//! Reads a run's log as it grows and tells what it says: all of a watcher, and the first half of a driver.

use bursar_core::RunId;

use crate::context::Context;
use crate::error::RunnerError;
use crate::folded::{Folded, Stuck};
use crate::record::{FinishedRecord, Record};
use crate::store::mirror::Mirrors;
use crate::store::{Mark, StoredRun};
use crate::updates::{Update, Updates};

/// A run's log, read as far as it goes.
pub(crate) struct Reader<'a> {
    pub(crate) context: &'a Context,
    pub(crate) stored: StoredRun,
    pub(crate) folded: Folded,
    pub(crate) mirrors: Mirrors,
    pub(crate) updates: &'a Updates,
    /// Whether the log was read to its end once: what comes then is news.
    live: bool,
    /// The store as it was when the log was last read.
    mark: Option<Mark>,
}

impl<'a> Reader<'a> {
    /// Makes a reader of a run that is in the store.
    pub(crate) fn new(context: &'a Context, run: &RunId, updates: &'a Updates) -> Result<Self, RunnerError> {
        let Some(stored) = context.store.load(run)? else {
            return Err(RunnerError::UnknownRun { run: run.clone() });
        };
        Ok(Self {
            folded: Folded::new(stored.request.clone(), stored.created, context.begin.clone()),
            mirrors: Mirrors::new(context.store.run_dir(run)),
            context,
            stored,
            updates,
            live: false,
            mark: None,
        })
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.stored.request.run
    }

    /// Reads the log to its end, if the store changed since.
    ///
    /// Cancel safe: reading goes on from where it was dropped.
    pub(crate) async fn read(&mut self) -> Result<Option<FinishedRecord>, Stuck> {
        let mark = self.context.store.mark()?;
        if self.mark == Some(mark) {
            return Ok(self.folded.finished().cloned());
        }
        let before = self.folded.next_seq();
        let (updates, live) = (self.updates, self.live);
        let mut tell = |record: Record| {
            updates.send(if live { Update::Live(record) } else { Update::Replayed(record) });
        };
        while self.folded.catch_up(&self.context.store, &mut self.mirrors, &mut tell)? {
            // Folding megabytes takes a while; others want to run too.
            tokio::task::yield_now().await;
        }
        self.live = true;
        self.mark = Some(mark);
        if self.folded.next_seq() != before {
            self.show();
        }
        Ok(self.folded.finished().cloned())
    }

    /// Hands out the view.
    pub(crate) fn show(&self) {
        if self.updates.watched() {
            self.updates.send(Update::View(self.folded.view().clone()));
        }
    }
}
