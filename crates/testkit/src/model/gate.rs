//! A gate that holds an answer back until the test opens it: order without sleeping.

use std::sync::Arc;

use tokio::sync::watch;

/// Starts closed; once open it stays open. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// Makes a closed gate.
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)) }
    }

    /// Lets everything through that waits here, or will.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until the gate is open. May be dropped half-way.
    pub(super) async fn passed(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        self.open.subscribe().wait_for(|open| *open).await.ok();
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
