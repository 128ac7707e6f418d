//! What an agent tells on its stream or in its transcript, free of any dialect.
//!
//! `wire/` makes these from lines; `background.rs`, `ledger.rs` and `run.rs` fold them. A dialect fills in what its
//! agent says and leaves the rest `None`; nothing optional is ever required by the fold.

use crate::background::Kind;
use crate::time::At;

/// Who speaks or acts: the conversation itself, or a subagent it started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The main conversation.
    Main,
    /// A subagent, named by the tool call that started it.
    Subagent(String),
}

/// One thing an agent said or did.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// A reply begins (`system/init`, once per reply, not once per process).
    Began(Began),
    /// A piece of finished text.
    Text { owner: Owner, text: String },
    /// A tool call was made.
    ToolCalled { owner: Owner, id: String, name: String, call: Call },
    /// A tool call came back.
    ToolReturned { owner: Owner, id: String, is_error: bool, launch: Option<Launch> },
    /// The model's service answered with an error, told in place of a text.
    ApiError { owner: Owner, class: String, status: Option<u16>, text: String },
    /// The full set of background tasks that run at this moment.
    LiveSet(Vec<LiveEntry>),
    /// Something that is followed by an id began; NOT by itself evidence of background work (FACTS 1).
    Started {
        id: String,
        tool_call: Option<String>,
        kind: Option<Kind>,
        description: String,
        by_subagent: bool,
    },
    /// A followed piece of work moved on or ended; `status` None is interim and ends nothing.
    Updated { id: String, status: Option<EndStatus>, ended: Option<At>, detail: Option<String> },
    /// The agent was notified about a followed piece of work; `status` None is interim and ends nothing.
    Notified(Notification),
    /// The agent retries a request to its service by itself.
    Retrying { try_number: u32, of: u32, delay_ms: u64, status: Option<u16>, class: String },
    /// What the service says about the account's limits.
    RateLimit(RateLimit),
    /// The state of one message in the agent's queue.
    Lifecycle { message: String, state: MessageState, wakeup: Option<Wakeup> },
    /// A message of ours, a wake-up or a prompt as the agent recorded it (transcripts; echoes on the stream).
    Prompted { message: Option<String>, wakeup: bool },
    /// The reply was interrupted by a person.
    Interrupted,
    /// The agent refused a tool by its own rules.
    Denied { tool: String },
    /// The agent asks its driver for a decision or an answer and waits.
    Asked { request: String, tool: String, is_question: bool, tool_call: Option<String> },
    /// The agent withdrew what it asked.
    Withdrawn { request: String },
    /// The agent answered a control request of ours.
    ControlAnswered { request: String, ok: bool },
    /// A reply ended.
    Replied(Reply),
    /// A line that is well-formed but of a kind this dialect does not know or need.
    Other,
}

/// The facts at the start of a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Began {
    pub session: Option<String>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub cwd: Option<String>,
    pub permission_mode: Option<String>,
    /// The agent's own list of what it can do; empty where a version does not tell.
    pub capabilities: Vec<String>,
}

/// What a tool call means for the ledger and the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// One line for people: the command, the path, the description.
    pub summary: String,
    /// The reference rule calls it a launch (design: `Bash` with `run_in_background` exactly `true`).
    pub flagged_launch: bool,
    /// The background task it collects by the reference rule (`BashOutput`, `KillShell`, `Read` of an output file).
    pub harvests: Option<String>,
    /// Whether that collection is by one of the newer tools the reference rule does not know (`TaskOutput`,
    /// `TaskStop`, a shell command that prints the output file).
    pub newer_harvest: bool,
    /// The background task it asks to stop.
    pub stops: Option<String>,
}

/// Background work that a tool result announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub id: String,
    pub kind: Kind,
    /// Where its output lies on the host, if told.
    pub output: Option<String>,
    /// When a wake-up is due.
    pub due: Option<At>,
    /// Whether the id ran before and was started again (a message to a finished subagent).
    pub again: bool,
}

/// One entry of the live set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveEntry {
    pub id: String,
    pub kind: Kind,
    pub description: String,
}

/// How a followed piece of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndStatus {
    Completed,
    Failed,
    /// `stopped` or `killed`: by a stop call, a limit, a signal or the agent's exit; which one is told elsewhere.
    Stopped,
}

/// A notification about a followed piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub id: String,
    pub tool_call: Option<String>,
    pub status: Option<EndStatus>,
    pub summary: String,
    /// The exit code its summary states, never a number in a command's text.
    pub exit: Option<i32>,
    /// The output file; empty strings become None.
    pub output: Option<String>,
    /// Whether it was stopped by a time limit of the agent (FACTS 4).
    pub timed_out: bool,
}

/// Where a message stands in the agent's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    Queued,
    Started,
    Completed,
}

/// A reply the agent scheduled for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wakeup {
    pub source: String,
    pub due: Option<At>,
}

/// What the service says about the account's limits.
#[derive(Debug, Clone, PartialEq)]
pub struct RateLimit {
    /// Whether requests are refused now; a warning is not a refusal.
    pub rejected: bool,
    /// `five_hour`, `seven_day`, …
    pub window: String,
    pub resets: Option<At>,
}

/// How a reply ended, in the agent's words.
#[derive(Debug, Clone, PartialEq)]
pub enum Subtype {
    Success,
    MaxTurns,
    Budget,
    Execution,
    Other(String),
}

impl Subtype {
    /// Returns the agent's own spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Success => "success",
            Self::MaxTurns => "error_max_turns",
            Self::Budget => "error_max_budget_usd",
            Self::Execution => "error_during_execution",
            Self::Other(other) => other,
        }
    }
}

/// The `result` event that ends a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub subtype: Subtype,
    pub is_error: bool,
    /// Turns spent in this reply, as the agent counts (`num_turns`).
    pub turns: u64,
    pub text: Option<String>,
    pub terminal_reason: Option<String>,
    pub api_status: Option<u16>,
    /// What the agent lists as errors.
    pub errors: Vec<String>,
    /// Cost in US dollars, cumulative in the process (some versions carry it over a resume).
    pub cost_usd: Option<f64>,
    /// Whether the agent started this reply by itself (`origin` of kind task-notification).
    pub woken: bool,
    /// The messages of ours it answers, where a version tells.
    pub answers: Vec<String>,
    pub session: Option<String>,
}

impl Reply {
    /// Whether this is the EMPTY result that answers nothing (FACTS 6: first of a resume; DRIFT 30: in mid-process).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subtype == Subtype::Success
            && !self.is_error
            && self.turns == 0
            && self.text.as_deref().unwrap_or_default().is_empty()
            && self.terminal_reason.is_none()
    }
}
