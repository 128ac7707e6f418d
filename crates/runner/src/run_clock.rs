//! The time of one run: the wall clock's, but it never runs backwards and never stands still.

use std::fmt;
use std::sync::Arc;

use bursar_core::At;
use tokio::time::Instant;

use crate::context::Clock;

/// Follows the wall clock forwards (a laptop's sleep is time that passed); while that lags behind what the run has
/// seen, counts on by the monotonic clock, so that deadlines still come.
pub(crate) struct RunClock {
    wall: Arc<dyn Clock>,
    anchor: At,
    anchored: Instant,
}

impl RunClock {
    /// Makes a clock for a run whose last known moment is `last`.
    pub(crate) fn new(wall: Arc<dyn Clock>, last: At) -> Self {
        Self { wall, anchor: last, anchored: Instant::now() }
    }

    pub(crate) fn now(&mut self) -> At {
        let counted = self.anchor.after(self.anchored.elapsed());
        let wall = self.wall.now();
        if wall > counted {
            self.anchor = wall;
            self.anchored = Instant::now();
            return wall;
        }
        counted
    }
}

impl fmt::Debug for RunClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunClock").field("anchor", &self.anchor).finish_non_exhaustive()
    }
}
