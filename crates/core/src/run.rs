//! The fold: one run, from its request to its outcome.

use std::collections::VecDeque;

use crate::decision::Decision;
use crate::event::Event;
use crate::policy::Request;
use crate::time::At;

/// One run: a fold of everything that happened to it.
#[derive(Debug)]
pub struct Run {
    request: Request,
    pending: VecDeque<Decision>,
}

impl Run {
    /// Begins a run and returns it with its first decisions.
    #[must_use]
    pub fn begin(request: Request, at: At) -> (Self, Vec<Decision>) {
        let _ = at;
        (Self { request, pending: VecDeque::new() }, Vec::new())
    }

    /// Takes in one event and returns what to do about it, in order.
    #[must_use]
    pub fn apply(&mut self, at: At, event: Event<'_>) -> Vec<Decision> {
        let _ = (at, event);
        self.pending.drain(..).collect()
    }

    /// Returns the moment at which `Fact::DeadlinePassed` is due, if any.
    #[must_use]
    pub fn next_deadline(&self) -> Option<At> {
        None
    }

    /// Returns the decisions that were made but not yet answered by a fact, in order.
    #[must_use]
    pub fn outstanding(&self) -> Vec<Decision> {
        Vec::new()
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }
}
