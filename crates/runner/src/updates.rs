//! From the loop to whoever watches.
//!
//! Records are never lost and never make the loop wait, so their channel has no bound: it holds at most what the run
//! has told, which the fold has in memory in another shape anyway. A bounded one was rejected, since its full case
//! would be either a lost record or a run that waits for a pager. Views are only the latest.

use tokio::sync::{mpsc, watch};

use crate::record::Record;
use crate::view::RunView;

/// One thing for a watcher.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "updates are moved once or twice, and few are alive")]
pub enum Update {
    /// A record that was made before this driver or watcher began.
    Replayed(Record),
    /// A record that was made just now.
    Live(Record),
    /// The run as it stands; older views that were not picked up yet are skipped.
    View(RunView),
    /// Whether this process drives the run (true) or watches another that does (false).
    Driving(bool),
    /// Something the user should know about this driver, which is no part of the run.
    Warning(String),
}

/// The loop's end.
#[derive(Debug, Clone)]
pub struct Updates {
    records: mpsc::UnboundedSender<Update>,
    view: watch::Sender<Option<RunView>>,
}

/// The watcher's end. Dropping it never harms the run.
#[derive(Debug)]
pub struct UpdatesReader {
    records: mpsc::UnboundedReceiver<Update>,
    view: watch::Receiver<Option<RunView>>,
    view_open: bool,
}

/// Makes a pair of ends.
#[must_use]
pub fn updates() -> (Updates, UpdatesReader) {
    let (records, records_out) = mpsc::unbounded_channel();
    let (view, view_out) = watch::channel(None);
    (Updates { records, view }, UpdatesReader { records: records_out, view: view_out, view_open: true })
}

impl Updates {
    /// Hands an update over; nobody listening is fine.
    pub(crate) fn send(&self, update: Update) {
        if let Update::View(view) = update {
            drop(self.view.send_replace(Some(view)));
        } else {
            // A closed channel only means that nobody watches.
            drop(self.records.send(update));
        }
    }

    /// Whether anybody would see a view.
    pub(crate) fn watched(&self) -> bool {
        !self.view.is_closed()
    }
}

impl UpdatesReader {
    /// Returns the next update, records first; None once the loop is gone and all of its records were handed out.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            tokio::select! {
                biased;
                update = self.records.recv() => return update,
                changed = self.view.changed(), if self.view_open => {
                    if changed.is_err() {
                        self.view_open = false;
                    } else if let Some(view) = self.view.borrow_and_update().clone() {
                        return Some(Update::View(view));
                    }
                }
            }
        }
    }
}
