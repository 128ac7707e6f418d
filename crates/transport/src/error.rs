//! What can go wrong between us and a host, sorted by what a caller can do about it.

use std::error::Error;

type Cause = Box<dyn Error + Send + Sync>;

/// A host that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The host answered and said no (sign-in, host key). Nothing ran. Asking again will not help.
    #[error("`{host}` refused: {reason}")]
    Refused {
        /// The host's name.
        host: String,
        /// What it said, or what we found wrong.
        reason: String,
    },
    /// No connection came about. Nothing ran. Asking again may help.
    #[error("cannot reach `{host}`")]
    Unreachable {
        /// The host's name.
        host: String,
        /// Why.
        #[source]
        source: Cause,
    },
    /// The connection ended in the middle. What was asked may or may not have happened.
    #[error("lost `{host}` while {doing}")]
    Lost {
        /// The host's name.
        host: String,
        /// What was being done.
        doing: &'static str,
        /// Why, where it is known.
        #[source]
        source: Option<Cause>,
    },
    /// The script ran to its end but could not do its work, or answered nonsense: a tool is missing, the
    /// state directory is damaged.
    #[error("`{host}` failed while {doing}: {message}")]
    Unusable {
        /// The host's name.
        host: String,
        /// What was being done.
        doing: &'static str,
        /// What the host said; remote text, not escaped.
        message: String,
    },
}

impl HostError {
    /// Returns true if it is certain that nothing ran.
    #[must_use]
    pub fn nothing_ran(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Unreachable { .. })
    }
}
