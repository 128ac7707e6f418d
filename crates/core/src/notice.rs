//! What watchers are told, in the order it happened.
//!
//! A notice is made by the fold and by nothing else, so that a live run, a replay after a restart and a second
//! terminal all tell the same. `runner` numbers and prints them; text in here is as the agent wrote it and must be
//! escaped before it reaches a terminal.

use crate::agent::Owner;
use crate::background::Snapshot;
use crate::event::{ExitStatus, Survivor};
use crate::ids::{AttemptId, SessionId};
use crate::ladder::Action;
use crate::outcome::Outcome;
use crate::phase::{Link, Phase};
use crate::time::At;

/// One thing worth telling, with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    pub at: At,
    pub what: What,
}

/// The kinds of notice; each is one event of the NDJSON output.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    RunStarted {
        prompt_bytes: usize,
        resume: Option<SessionId>,
    },
    AttemptStarted {
        attempt: AttemptId,
        pid: u32,
        found: bool,
    },
    ReplyStarted {
        attempt: AttemptId,
        reply: u32,
        origin: ReplyOrigin,
        model: Option<String>,
        agent_version: Option<String>,
    },
    Text {
        owner: Owner,
        text: String,
    },
    ToolCalled {
        owner: Owner,
        id: String,
        name: String,
        summary: String,
    },
    ToolReturned {
        owner: Owner,
        id: String,
        is_error: bool,
    },
    /// A background task changed.
    Background(Snapshot),
    PhaseChanged {
        phase: Phase,
    },
    LinkChanged {
        link: Link,
    },
    /// Something a person should know that changes nothing.
    Remark {
        text: String,
    },
    Decided(Box<Decided>),
    AttemptEnded {
        attempt: AttemptId,
        end: AttemptEnd,
        skipped_lines: u64,
    },
    RunFinished(Box<Finished>),
}

/// Why a reply began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyOrigin {
    /// A message of ours.
    Message,
    /// The agent woke itself.
    Wakeup,
    /// The EMPTY result that answers nothing.
    Empty,
}

impl ReplyOrigin {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Wakeup => "wakeup",
            Self::Empty => "empty",
        }
    }
}

/// How an attempt's process ended, as far as anyone knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    Exited(ExitStatus),
    Vanished { rebooted: bool },
    Lost,
    Refused,
}

/// One step of the ladder, with all that a reader of the log needs to judge it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    pub run: String,
    pub host: String,
    pub transport: String,
    pub attempt: u32,
    pub reply: u32,
    pub action: Action,
    pub reason: String,
    /// For people: what was decided and why.
    pub message: String,
    pub turn_budget: u64,
    pub turns_spent: u64,
    pub turns_spent_total: u64,
    pub continues_used: u32,
    pub continues_limit: u32,
    pub nudges_used: u32,
    pub nudges_limit: u32,
    pub debt: u64,
    pub cost_usd: f64,
    /// When a wait, a back-off or a hold ends at the latest.
    pub until: Option<At>,
}

/// The last notice of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub outcome: Outcome,
    pub session: Option<String>,
    pub turn_budget: u64,
    pub turns_spent: u64,
    pub turns_spent_total: u64,
    pub continues_used: u32,
    pub continues_limit: u32,
    pub nudges_used: u32,
    pub nudges_limit: u32,
    pub debt: u64,
    pub background: Vec<Snapshot>,
    pub survivors: Vec<Survivor>,
    pub cost_usd: f64,
    pub duration_ms: u64,
    pub text: String,
    pub attempts: Vec<AttemptSummary>,
    pub replies: Vec<ReplySummary>,
    pub skipped_lines: u64,
}

/// One attempt in a summary.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptSummary {
    pub attempt: AttemptId,
    pub session: Option<String>,
    pub agent_version: Option<String>,
    pub end: Option<AttemptEnd>,
    pub bytes: u64,
    pub skipped_lines: u64,
}

/// One reply in a summary.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplySummary {
    pub attempt: AttemptId,
    pub origin: ReplyOrigin,
    pub subtype: String,
    pub is_error: bool,
    pub terminal_reason: Option<String>,
    pub turns: u64,
}
