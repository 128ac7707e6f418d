//! Time as the fold sees it: a number that is handed in, never read.
//!
//! A run outlives processes, laptops' sleeps and reboots, so its times are wall-clock times that can be stored.
//! The caller keeps them from running backwards.

use std::fmt;
use std::time::Duration;

/// A moment: milliseconds since the Unix epoch (UTC).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct At(pub u64);

impl At {
    /// Returns the time that passed from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the moment `span` after `self`.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Returns the moment as an RFC 3339 timestamp in UTC with milliseconds.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(millis) {
            Ok(stamp) => format!("{stamp:.3}"),
            Err(_) => format!("{}ms", self.0),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}
