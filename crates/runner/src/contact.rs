//! Bearing with a link that comes and goes: when to ask a host again, and when not to.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use bursar_core::event::{Refusal, RefusalKind};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::carry::Report;
use crate::host::HostError;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often in a row a host that is reached may fail at one thing.
const FAILURES: u32 = 5;

/// One conversation with the host, across cuts.
#[derive(Debug)]
pub(crate) struct Contact {
    id: u64,
    reports: mpsc::Sender<Report>,
    give_up: Option<Duration>,
    /// What the loop was told last.
    told: Option<bool>,
    down_since: Option<Instant>,
    pause: Duration,
    failures: u32,
    /// Whether a question was cut off, so that it may have been heard.
    cut: bool,
}

/// Asking again would not help.
#[derive(Debug)]
pub(crate) enum Hopeless {
    /// The host said no, or keeps failing at this.
    Refused(Refusal),
    /// The host has no record of the attempt.
    Unknown(String),
    /// The link was down for too long; `heard` tells whether the host may have heard the question.
    GivenUp { detail: String, hint: String, heard: bool },
}

impl Hopeless {
    /// Returns what happened, in words.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.detail.clone(),
            Self::Unknown(detail) | Self::GivenUp { detail, .. } => detail.clone(),
        }
    }
}

impl Contact {
    pub(crate) fn new(id: u64, reports: mpsc::Sender<Report>, give_up: Option<Duration>) -> Self {
        Self {
            id,
            reports,
            give_up,
            told: None,
            down_since: None,
            pause: FIRST_PAUSE,
            failures: 0,
            cut: false,
        }
    }

    /// Returns the number of the conversation.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Changes how long it bears with an outage (None is for ever), and returns how long it did.
    pub(crate) fn bear(&mut self, give_up: Option<Duration>) -> Option<Duration> {
        std::mem::replace(&mut self.give_up, give_up)
    }

    /// Notes that the host answered.
    pub(crate) async fn answered(&mut self) {
        if self.told != Some(true) {
            self.told = Some(true);
            self.tell(Report::Up(self.id)).await;
        }
    }

    /// Notes that the link carried something of use, so that the next outage is a new one. A link that is up only to
    /// break again keeps its growing pauses.
    pub(crate) fn proven(&mut self) {
        self.down_since = None;
        self.pause = FIRST_PAUSE;
        self.failures = 0;
    }

    /// Waits until it is time to ask again after this error.
    ///
    /// Cancel safe.
    pub(crate) async fn failed(&mut self, error: HostError) -> Result<(), Hopeless> {
        let (detail, hint) = match error {
            HostError::Refused(refusal) => {
                self.answered().await;
                return Err(Hopeless::Refused(refusal));
            }
            HostError::Unknown { detail } => {
                self.answered().await;
                return Err(Hopeless::Unknown(detail));
            }
            HostError::Failed { detail, hint } => {
                self.failures += 1;
                if self.failures >= FAILURES {
                    self.answered().await;
                    return Err(Hopeless::Refused(Refusal { kind: RefusalKind::Host, detail, hint }));
                }
                (detail, hint)
            }
            HostError::Unreachable { detail, hint } => {
                self.down().await;
                (detail, hint)
            }
            HostError::Cut { detail } => {
                self.cut = true;
                self.down().await;
                (detail, String::new())
            }
        };
        let since = *self.down_since.get_or_insert_with(Instant::now);
        let left = self.give_up.map(|limit| limit.saturating_sub(since.elapsed()));
        if left == Some(Duration::ZERO) {
            return Err(Hopeless::GivenUp { detail, hint, heard: self.cut });
        }
        let pause = jittered(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        tokio::time::sleep(left.map_or(pause, |left| pause.min(left))).await;
        Ok(())
    }

    async fn down(&mut self) {
        if self.told != Some(false) {
            self.told = Some(false);
            self.tell(Report::Down(self.id)).await;
        }
    }

    async fn tell(&self, report: Report) {
        // The loop is gone only when this task is about to be.
        drop(self.reports.send(report).await);
    }
}

/// Shortens a pause by up to a half, so that many runs do not dial one host in step.
fn jittered(pause: Duration) -> Duration {
    let draw = RandomState::new().hash_one(0_u8);
    let part = u32::try_from(draw % 512).unwrap_or_default();
    pause - pause / 1024 * part
}
