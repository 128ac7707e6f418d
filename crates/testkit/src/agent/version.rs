//! The agent versions every test with a real agent runs on.
//!
//! Chosen where behaviour changes: left shells are killed 5 s after the end of a plain `-p` turn from 2.1.163 to
//! 2.1.291 and waited for from 2.1.292 on; an appended system prompt is forgotten at resume up to 2.1.265 and frozen
//! from 2.1.270 on; 2.1.212 is the floor for honest signals and per-message accounting.

use std::fmt;

/// A pinned version of the agent CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentVersion {
    /// 2.1.212: the oldest version the product supports in full.
    Floor,
    /// 2.1.231: kills shells that were left running 5 s after a plain `-p` turn.
    Kills,
    /// 2.1.332: waits for shells that were left running, and wakes the model when they end.
    Waits,
}

impl AgentVersion {
    /// Every pinned version, oldest first.
    pub const ALL: [Self; 3] = [Self::Floor, Self::Kills, Self::Waits];

    /// Returns the version as the agent prints it.
    pub const fn number(self) -> &'static str {
        match self {
            Self::Floor => "2.1.212",
            Self::Kills => "2.1.231",
            Self::Waits => "2.1.332",
        }
    }

    /// Says whether a plain `-p` process waits for the shells its turn left running.
    pub const fn waits_for_shells(self) -> bool {
        matches!(self, Self::Waits)
    }

    /// Says whether the output file of a background shell ends with a line that tells its exit code.
    pub const fn writes_output_trailer(self) -> bool {
        matches!(self, Self::Kills | Self::Waits)
    }

    /// Says whether the system prompt of a conversation's first request is kept for ever, so that one given at resume
    /// is ignored. Where it is not, one not given at resume is gone.
    pub const fn freezes_system_prompt(self) -> bool {
        matches!(self, Self::Waits)
    }
}

impl fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number())
    }
}
