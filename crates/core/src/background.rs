//! The table of background work.

use serde::{Deserialize, Serialize};

use crate::time::At;

/// The kinds of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Shell,
    Agent,
    Workflow,
    Monitor,
    Wakeup,
}

/// One background task as watchers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub id: String,
    pub kind: Kind,
    pub state: State,
    pub exit: Option<i32>,
    pub description: String,
    pub owed: bool,
    pub output: Option<String>,
    pub by_subagent: bool,
    pub began: At,
    /// Frozen once it ended.
    pub ended: Option<At>,
    /// Whether the agent looked at it while it ran and its end was caused by the agent's own exit.
    pub cut_after_look: bool,
}

/// The states of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Starting,
    Running,
    Done,
    Failed,
    Stopped,
    Unknown,
}
