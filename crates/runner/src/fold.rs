//! The fold as this crate sees it.
//!
//! `bursar_core::Run` is the only one in use. The trait is here so that the loop's own promises (order, crashes,
//! hand-over) are tested with a fold that asks for every kind of order, and stay tested whatever the ladder decides.

use std::fmt;
use std::sync::Arc;

use bursar_core::policy::Request;
use bursar_core::{At, Decision, Event, Run};

/// A pure fold: the same events at the same times give the same decisions.
pub(crate) trait Fold: Send {
    fn apply(&mut self, at: At, event: Event<'_>) -> Vec<Decision>;
    fn next_deadline(&self) -> Option<At>;
    fn outstanding(&self) -> Vec<Decision>;
}

impl Fold for Run {
    fn apply(&mut self, at: At, event: Event<'_>) -> Vec<Decision> {
        Self::apply(self, at, event)
    }

    fn next_deadline(&self) -> Option<At> {
        Self::next_deadline(self)
    }

    fn outstanding(&self) -> Vec<Decision> {
        Self::outstanding(self)
    }
}

/// Begins the fold of a run.
#[derive(Clone)]
pub(crate) struct Begin(Arc<BeginFn>);

type BeginFn = dyn Fn(Request, At) -> (Box<dyn Fold>, Vec<Decision>) + Send + Sync;

impl Begin {
    #[cfg(test)]
    pub(crate) fn with(
        begin: impl Fn(Request, At) -> (Box<dyn Fold>, Vec<Decision>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(begin))
    }

    pub(crate) fn begin(&self, request: Request, at: At) -> (Box<dyn Fold>, Vec<Decision>) {
        (self.0)(request, at)
    }
}

impl Default for Begin {
    fn default() -> Self {
        Self(Arc::new(|request, at| {
            let (run, decisions) = Run::begin(request, at);
            (Box::new(run), decisions)
        }))
    }
}

impl fmt::Debug for Begin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Begin")
    }
}
