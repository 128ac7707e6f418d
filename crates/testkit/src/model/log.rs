//! What happened at the server so far, shared between the server's thread and the test.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::ModelRequest;

/// A request and what it was answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// What was asked.
    pub request: ModelRequest,
    /// What was answered, in a few words; empty while the answer is held back.
    pub answered: String,
}

/// What was waited for did not happen.
#[derive(Debug, thiserror::Error)]
#[error("the model did not receive {awaited} within {within:?}; it received {received:#?}")]
pub struct TooFew {
    /// What was waited for.
    pub awaited: String,
    /// The bound.
    pub within: Duration,
    /// One line a request.
    pub received: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) faults: Vec<String>,
}

impl Log {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Files a request under the next number.
    pub(super) fn asked(&self, make: impl FnOnce(usize) -> ModelRequest) -> ModelRequest {
        let mut state = self.state();
        let request = make(state.exchanges.len());
        state.exchanges.push(Exchange { request: request.clone(), answered: String::new() });
        drop(state);
        self.changed.notify_all();
        request
    }

    pub(super) fn answered(&self, number: usize, answer: String) {
        if let Some(exchange) = self.state().exchanges.get_mut(number) {
            exchange.answered = answer;
        }
        self.changed.notify_all();
    }

    pub(super) fn fault(&self, fault: String) {
        self.state().faults.push(fault);
        self.changed.notify_all();
    }

    /// Blocks until `ready` gives a value.
    pub(super) fn wait<T>(
        self: &Arc<Self>,
        awaited: &str,
        within: Duration,
        ready: impl Fn(&State) -> Option<T>,
    ) -> Result<T, TooFew> {
        let deadline = Instant::now() + within;
        let mut state = self.state();
        loop {
            if let Some(value) = ready(&state) {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let received = state.exchanges.iter().map(describe).collect();
                return Err(TooFew { awaited: awaited.to_owned(), within, received });
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn describe(exchange: &Exchange) -> String {
    let request = &exchange.request;
    let newest = request.new_texts().last().map(|text| text.chars().take(120).collect::<String>());
    format!("{} {} {:?} -> {}", request.number, request.route, newest.unwrap_or_default(), exchange.answered)
}
