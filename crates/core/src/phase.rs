//! What a run is doing, in one word for a board.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// An agent's process is being started.
    Starting,
    /// The agent works, or agents it started do.
    Working,
    /// The agent's reply is over and shells it left are held for.
    Waiting,
    /// A question to the user stands open.
    Question,
    /// Something only a person can decide or repair.
    NeedsInput,
    /// A limit or an overloaded service is waited out.
    Limited,
    /// Replies are over; accounts are being settled (quiet time, survey, end of the process).
    Settling,
    /// The run is over.
    Ended,
}

impl Phase {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Question => "question",
            Self::NeedsInput => "needs_input",
            Self::Limited => "limited",
            Self::Settling => "settling",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of the link to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Answers come.
    #[default]
    Live,
    /// The link is down and being built again.
    Reconnecting,
    /// Nobody can tell at present whether the agent runs.
    Unverifiable,
}

impl Link {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Reconnecting => "reconnecting",
            Self::Unverifiable => "unverifiable",
        }
    }
}
