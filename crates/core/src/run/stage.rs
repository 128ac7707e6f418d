//! What a run can be waiting for, and until when.

use std::time::Duration;

use super::Run;
use crate::decision::Decision;
use crate::ids::{AttemptId, MessageId};
use crate::outcome::Outcome;
use crate::phase::Phase;
use crate::tally::Judgement;
use crate::time::At;

/// What a run is waiting for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// The host, to start an attempt.
    Starting,
    /// The agent, to answer.
    Replying,
    /// Background work of a living agent, to end and wake it; `idle` is since when nothing runs any more.
    Holding { since: At, idle: Option<At> },
    /// A moment of quiet after all was settled.
    Quiet { since: At },
    /// The host, to tell of stray processes while the agent lives.
    Checking,
    /// The agent, to leave after its input was closed; `outcome` None means that it is to be judged afresh.
    Closing { since: At, outcome: Option<Box<Outcome>>, forced: bool },
    /// The host, to tell what is left of an attempt that ended; `outcome` as in `Closing`.
    Surveying { outcome: Option<Box<Outcome>> },
    /// Orphans of an attempt that ended, to finish.
    Orphans { since: At, look: At },
    /// A limit or an overloaded service, to pass.
    Pause { until: At },
    /// The host, to stop everything.
    Stopping { confirmed: bool },
    /// Nothing: the run is over.
    Ended,
}

impl Stage {
    /// Whether the end of the run is decided and only being carried out.
    pub(super) fn is_leaving(&self) -> bool {
        match self {
            Self::Closing { outcome, .. } | Self::Surveying { outcome } => outcome.is_some(),
            Self::Stopping { .. } | Self::Ended => true,
            Self::Starting
            | Self::Replying
            | Self::Holding { .. }
            | Self::Quiet { .. }
            | Self::Checking
            | Self::Orphans { .. }
            | Self::Pause { .. } => false,
        }
    }
}

/// Why a message was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Prompt,
    Continue,
    Nudge,
    /// After a wait or a back-off.
    Again,
    /// A person's further words.
    Said,
    /// A control request, which no reply answers.
    Control,
}

/// How far a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    Sent,
    Written,
    Queued,
    Started,
    Answered,
}

/// One message of ours.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) id: MessageId,
    pub(super) attempt: AttemptId,
    pub(super) kind: MessageKind,
    pub(super) text: String,
    pub(super) reach: Reach,
    /// The judgement that stood before it was sent.
    pub(super) before: Judgement,
}

impl Run {
    /// Whether a message of ours to the living process has no answer.
    pub(super) fn unanswered(&self) -> bool {
        let Some(living) = self.living() else { return false };
        self.messages
            .iter()
            .any(|m| m.attempt == living && m.kind != MessageKind::Control && m.reach != Reach::Answered)
    }

    /// Whether the host was ordered to stop everything at once, and has not answered.
    fn stops_at_once(&self) -> bool {
        self.outstanding.iter().any(|decision| matches!(decision, Decision::Stop { now: true, .. }))
    }

    /// Whether the run's time budget can still change what happens.
    pub(super) fn heeds_timeout(&self) -> bool {
        match &self.stage {
            // Found done, and on the way out.
            Stage::Closing { outcome: None, .. } => self.told_done.is_none() || self.in_reply,
            // The judgement that follows looks at the time.
            Stage::Surveying { .. } => false,
            Stage::Starting
            | Stage::Replying
            | Stage::Holding { .. }
            | Stage::Quiet { .. }
            | Stage::Checking
            | Stage::Closing { .. }
            | Stage::Orphans { .. }
            | Stage::Pause { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => !self.stage.is_leaving(),
        }
    }

    /// Nobody drove the run since then: a hold that is going on does not count that time.
    pub(super) fn skip(&mut self, undriven_since: At) {
        let now = self.now;
        let later = |moment: &mut At| *moment = moment.after(now.since(undriven_since.max(*moment)));
        match &mut self.stage {
            Stage::Holding { since, idle } => {
                later(since);
                idle.iter_mut().for_each(later);
            }
            Stage::Orphans { since, .. } => later(since),
            Stage::Starting
            | Stage::Replying
            | Stage::Quiet { .. }
            | Stage::Checking
            | Stage::Closing { .. }
            | Stage::Surveying { .. }
            | Stage::Pause { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => {}
        }
    }

    /// Returns the time spent holding, with the hold that is going on.
    pub(super) fn hold_spent(&self) -> Duration {
        match self.stage {
            Stage::Holding { since, .. } | Stage::Orphans { since, .. } => {
                self.held_for + self.now.since(since)
            }
            Stage::Starting
            | Stage::Replying
            | Stage::Quiet { .. }
            | Stage::Checking
            | Stage::Closing { .. }
            | Stage::Surveying { .. }
            | Stage::Pause { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => self.held_for,
        }
    }

    /// Whether some of the hold is left.
    pub(super) fn hold_left(&self) -> bool {
        self.request.limits.hold.is_some_and(|hold| self.hold_spent() < hold)
    }

    /// Goes over to another stage, and books the hold that ends with it.
    pub(super) fn enter(&mut self, stage: Stage) {
        self.held_for = self.hold_spent();
        self.stage = stage;
    }

    pub(super) fn stage_deadline(&self) -> Option<At> {
        let limits = &self.request.limits;
        let hold_ends = |since: At| {
            let left = limits.hold.unwrap_or_default().saturating_sub(self.held_for);
            since.after(left)
        };
        match &self.stage {
            Stage::Holding { since, idle } => {
                // A wake-up follows an end within moments; if none comes, nobody will.
                let idle_ends = idle.map(|idle| idle.after(limits.quiet * 2));
                Some(hold_ends(*since)).into_iter().chain(idle_ends).min()
            }
            Stage::Quiet { since } => Some(since.after(limits.quiet)),
            // Nothing is left to do but to wait for the host.
            Stage::Closing { forced: true, .. } if self.stops_at_once() => None,
            // Once the end is decided, the agent has a moment to leave, whatever it does.
            Stage::Closing { since, outcome: Some(_), .. } | Stage::Closing { since, forced: true, .. } => {
                Some(since.after(limits.leave))
            }
            // While a reply goes on, an agent that may leave is not late.
            Stage::Closing { since, .. } if !self.in_reply => {
                let patience = if limits.hold.is_some() { limits.leave } else { limits.linger };
                Some(since.after(patience))
            }
            Stage::Orphans { since, look } => Some(hold_ends(*since).min(*look)),
            Stage::Pause { until } => Some(*until),
            Stage::Starting
            | Stage::Replying
            | Stage::Checking
            | Stage::Closing { .. }
            | Stage::Surveying { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => None,
        }
    }

    pub(super) fn phase_of_stage(&self) -> Phase {
        match &self.stage {
            Stage::Ended => Phase::Ended,
            Stage::Pause { .. } => Phase::Limited,
            _ if !self.asked.is_empty() => Phase::NeedsInput,
            Stage::Starting if self.attempts.len() <= 1 => Phase::Starting,
            Stage::Starting | Stage::Replying => Phase::Working,
            Stage::Holding { .. } if self.tally.table.any_agent_live() => Phase::Working,
            Stage::Holding { .. } | Stage::Orphans { .. } => Phase::Waiting,
            Stage::Closing { .. } if self.in_reply => Phase::Working,
            Stage::Closing { outcome: None, forced: false, .. } if self.tally.table.any_live() => {
                Phase::Waiting
            }
            Stage::Quiet { .. }
            | Stage::Checking
            | Stage::Closing { .. }
            | Stage::Surveying { .. }
            | Stage::Stopping { .. } => Phase::Settling,
        }
    }
}
