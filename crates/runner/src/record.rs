//! What watchers and the run log are told: versioned records, one JSON object each.
//!
//! Records are made by hand from `bursar_core`'s notices (`record/convert.rs`), so that the fold can change its types
//! without changing what others parse. Version 1 may gain fields; it loses and renames none. Text in a record is as
//! the agent wrote it and must be escaped before it reaches a terminal.

use bursar_core::At;
use bursar_core::background::{Kind, State};
use bursar_core::outcome::Ending;
use bursar_core::phase::{Link, Phase};
use serde::{Deserialize, Serialize};

mod convert;
mod stamp;

/// The version that every record names.
pub const RECORD_VERSION: u32 = 1;

/// One thing worth telling about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub v: u32,
    /// Number of the record since the run began, from 1: the same in a live run, a replay and a second terminal.
    pub seq: u64,
    #[serde(with = "stamp")]
    pub at: At,
    pub run: String,
    #[serde(flatten)]
    pub event: RecordEvent,
}

impl Record {
    /// Returns the record as one line of NDJSON, without the line break.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The kinds of record; the name of each is the value of `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RecordEvent {
    RunStarted {
        prompt_bytes: u64,
        resume: Option<String>,
    },
    AttemptStarted {
        attempt: u32,
        pid: u32,
        found: bool,
    },
    ReplyStarted {
        attempt: u32,
        reply: u32,
        origin: String,
        model: Option<String>,
        agent_version: Option<String>,
    },
    Text {
        /// The tool call that started the subagent that speaks; None is the main conversation.
        subagent: Option<String>,
        text: String,
    },
    Tool(ToolRecord),
    Background(BackgroundRecord),
    Phase {
        phase: Phase,
    },
    Link {
        link: Link,
    },
    /// Something a person should know that changes nothing.
    Remark {
        text: String,
    },
    Decision(Box<DecisionRecord>),
    AttemptEnded {
        attempt: u32,
        end: EndRecord,
        skipped_lines: u64,
    },
    RunFinished(Box<FinishedRecord>),
}

impl RecordEvent {
    /// Returns the value of `event` for this kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::AttemptStarted { .. } => "attempt_started",
            Self::ReplyStarted { .. } => "reply_started",
            Self::Text { .. } => "text",
            Self::Tool(_) => "tool",
            Self::Background(_) => "background",
            Self::Phase { .. } => "phase",
            Self::Link { .. } => "link",
            Self::Remark { .. } => "remark",
            Self::Decision(_) => "decision",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::RunFinished(_) => "run_finished",
        }
    }
}

/// A tool call, when it is made and when it comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRecord {
    pub subagent: Option<String>,
    pub id: String,
    pub state: ToolState,
    /// Only when called.
    pub name: Option<String>,
    /// Only when called: one line for people.
    pub summary: Option<String>,
    /// Only when returned.
    pub is_error: Option<bool>,
}

/// Whether a tool call was made or came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    Called,
    Returned,
}

/// One background task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundRecord {
    pub id: String,
    pub kind: Kind,
    pub state: State,
    pub exit: Option<i32>,
    pub description: String,
    pub owed: bool,
    pub output: Option<String>,
    pub by_subagent: bool,
    #[serde(with = "stamp")]
    pub began: At,
    /// Frozen once it ended.
    #[serde(with = "stamp::option")]
    pub ended: Option<At>,
    /// The agent looked at it while it ran, and the agent's own exit ended it.
    pub cut_after_look: bool,
}

/// One step of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionRecord {
    pub host: String,
    pub transport: String,
    pub attempt: u32,
    pub reply: u32,
    pub action: String,
    pub reason: String,
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
    #[serde(with = "stamp::option")]
    pub until: Option<At>,
}

/// How an attempt's process ended: `exited` (with `code` or `signal`), `vanished`, `lost` or `refused`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndRecord {
    pub how: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebooted: Option<bool>,
}

/// How a run ended, with all its accounts; `--output json` prints the record that holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinishedRecord {
    pub outcome: Ending,
    pub reason: String,
    /// For people: what happened.
    pub message: String,
    /// For people: what to do next; may be empty.
    pub hint: String,
    pub exit_code: u8,
    pub session: Option<String>,
    pub host: String,
    pub attempts: Vec<AttemptRecord>,
    pub replies: Vec<ReplyRecord>,
    pub turns: Turns,
    pub continues: Used,
    pub nudges: Used,
    pub debt: u64,
    pub background: Vec<BackgroundRecord>,
    pub survivors: Vec<SurvivorRecord>,
    pub cost_usd: f64,
    pub duration_ms: u64,
    pub skipped_lines: u64,
    /// The text of the last reply.
    pub text: String,
}

/// The turn budget of one reply, and the turns spent: in the last reply, and in all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    pub budget: u64,
    pub spent: u64,
    pub total: u64,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    pub used: u32,
    pub limit: u32,
}

/// One attempt in a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    pub attempt: u32,
    pub session: Option<String>,
    pub agent_version: Option<String>,
    pub end: Option<EndRecord>,
    pub bytes: u64,
    pub skipped_lines: u64,
}

/// One reply in a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRecord {
    pub attempt: u32,
    pub origin: String,
    pub subtype: String,
    pub is_error: bool,
    pub terminal_reason: Option<String>,
    pub turns: u64,
}

/// A process of the run that outlived what started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurvivorRecord {
    pub pid: u32,
    pub command: String,
}
