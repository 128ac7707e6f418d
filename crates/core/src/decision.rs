//! Everything a run may want done.
//!
//! Decisions are orders. Each can be carried out again without harm, and each (but `Report`) is answered by a
//! [`crate::event::Fact`]; until the answer came, [`crate::Run::outstanding`] names it, which is how a run is picked up
//! after its driver was killed.

use crate::ids::{AttemptId, MessageId, SessionId};
use crate::notice::Notice;
use crate::outcome::Outcome;

/// One order to the shell around the fold.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Start (or find) the attempt's process. Answered by `Started` or `Refused`, then `Exited`, `Vanished` or `Lost`.
    Start(Start),
    /// Append these bytes to the agent's input journal at this offset. Answered by `Written` or `Undeliverable`.
    Write { attempt: AttemptId, message: MessageId, offset: u64, bytes: Vec<u8> },
    /// Close the agent's input at this length of the journal. Answered by `InputClosed`.
    CloseInput { attempt: AttemptId, offset: u64 },
    /// Ask the host what still runs, and read the ends of these background tasks' output files.
    /// Answered by `Surveyed` with the same number.
    Survey { survey: u32, outputs: Vec<(String, String)> },
    /// Stop the whole marked tree and verify it. Answered by `Stopped` (and the attempt's end).
    Stop { attempt: AttemptId, now: bool },
    /// Tell whoever watches. Needs no answer.
    Report(Box<Notice>),
    /// The run is over.
    Finish(Box<Outcome>),
}

/// What the host needs to start an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub attempt: AttemptId,
    /// The session the agent will hold: one living agent per session and host.
    pub session: Option<SessionId>,
    /// Arguments after the agent's own path.
    pub args: Vec<String>,
    /// Environment the dialect needs, besides the user's.
    pub env: Vec<(String, String)>,
    /// The first bytes of the input journal.
    pub input: Vec<u8>,
    /// Whether the input is closed right after them.
    pub close: bool,
}
