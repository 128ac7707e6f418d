//! Everything that can happen to a run.
//!
//! Events are facts in the past tense. An event that makes no sense at this point is survived: `apply` has no error.
//! Every event but [`Event::Output`] is small and is stored in the run log as it is; the bytes of an `Output` are
//! stored in the mirror, and the log keeps how far they went.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, MessageId};
use crate::phase::Link;
use crate::time::At;

/// One fact, as handed to [`crate::Run::apply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes of an attempt's stdout, with their offset in it. Bytes that were seen already are dropped.
    Output { attempt: AttemptId, offset: u64, bytes: &'a [u8] },
    /// Anything else.
    Fact(Fact),
}

/// The events that are stored in the run log as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// The host holds the agent's process: just started, or found alive (`found`).
    Started { attempt: AttemptId, pid: u32, found: bool },
    /// The host did not start the agent; nothing runs.
    Refused { attempt: AttemptId, refusal: Refusal },
    /// The agent's process ended and the host recorded how; its stdout holds `spooled` bytes.
    Exited { attempt: AttemptId, status: ExitStatus, spooled: u64, stderr: String },
    /// The agent's process is gone and nobody recorded how (its holder was killed, or the host restarted).
    Vanished { attempt: AttemptId, rebooted: bool, stderr: String },
    /// Contact is given up; the agent may still run.
    Lost { attempt: AttemptId, cause: String },
    /// The state of the link to the host changed.
    LinkChanged { link: Link },
    /// The host has a message of ours in the agent's input journal.
    Written { attempt: AttemptId, message: MessageId },
    /// A message could not be handed over, because the agent's process is gone.
    Undeliverable { attempt: AttemptId, message: MessageId },
    /// The host closed the agent's input, or it was closed before.
    InputClosed { attempt: AttemptId },
    /// The host answered the survey of this number; the answer to an earlier one is out of date.
    Surveyed { survey: u32, survivors: Vec<Survivor>, outputs: Vec<OutputTail> },
    /// The host stopped all that carried the run's marker; `left` is what it could not stop.
    Stopped { attempt: AttemptId, left: Vec<Survivor> },
    /// A driver takes the run up again that nobody drove since then (its driver was killed, or the machine slept): time in
    /// which nobody could act is not held against the run.
    PickedUp { undriven_since: At },
    /// A person, or a program, wants something.
    Asked { ask: Ask },
    /// The time of [`crate::Run::next_deadline`] came.
    DeadlinePassed,
}

/// What a person, or a program, can want of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Stop gracefully, or at once.
    Stop { now: bool },
    /// Send this text to the agent as a further message.
    Say { text: String },
}

/// Why an agent was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// What happened, with the host's words.
    pub detail: String,
    /// What to do next.
    pub hint: String,
}

/// The kinds of refusal, by what the caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The host could not be reached or refused us.
    Host,
    /// No agent was found there.
    NoAgent,
    /// The working directory is not there.
    NoDirectory,
    /// A living agent serves the session already.
    SessionBusy,
    /// The host has no room, or its state folder cannot be written.
    NoSpace,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

/// A process of the run that outlived what started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    pub pid: u32,
    pub command: String,
}

/// What the host found at the path of a background task's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTail {
    /// The background task.
    pub id: String,
    /// Bytes in the file; None if there is no regular file.
    pub size: Option<u64>,
    /// At most its last 256 bytes, made printable as UTF-8.
    pub tail: String,
}
