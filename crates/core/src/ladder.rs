//! The ladder of decisions.

/// What the ladder wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Finish,
    Hold,
    Nudge,
    Wait,
    Backoff,
    Restart,
    Continue,
}

impl Action {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::Hold => "hold",
            Self::Nudge => "nudge",
            Self::Wait => "wait",
            Self::Backoff => "backoff",
            Self::Restart => "restart",
            Self::Continue => "continue",
        }
    }
}
