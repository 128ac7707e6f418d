//! How a run ended, and why.
//!
//! An outcome says only what is known. `Exited` without a result is never success, and lost contact is an outcome of
//! its own, since the agent may still run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The word for how a run ended, with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The agent's reply succeeded and nothing is owed.
    Done,
    /// The agent, or its service, failed in a way no continue repairs.
    Failed,
    /// The reply succeeded but work it launched was never settled.
    Stranded,
    /// A budget is used up.
    Exhausted,
    /// The host refused or could not be reached; nothing was started.
    Refused,
    /// Contact is lost; the agent may still run.
    Lost,
    /// Only a person can go on.
    NeedsInput,
    /// Stopped on request.
    Stopped,
    /// The account's limit does not end in time.
    Limited,
}

impl Ending {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stranded => "stranded",
            Self::Exhausted => "exhausted",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::NeedsInput => "needs_input",
            Self::Stopped => "stopped",
            Self::Limited => "limited",
        }
    }

    /// Returns the exit code of `bursar run` for this ending.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Stranded => 3,
            Self::Exhausted => 4,
            Self::Refused => 5,
            Self::Lost => 6,
            Self::NeedsInput => 7,
            Self::Stopped => 8,
            Self::Limited => 9,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a run ended, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub ending: Ending,
    /// A short machine-readable reason, such as `settled`, `no_progress`, `max_turns`.
    pub reason: String,
    /// What happened, in a sentence or two for people, without what follows from the tables beside it.
    pub message: String,
    /// What to do next; empty when there is nothing to do.
    pub hint: String,
}
