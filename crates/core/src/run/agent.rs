//! Folding what the agent says and does: bytes in, notices out, and the ladder's turn where a reply ends.

use super::stage::{Reach, Stage};
use super::{MessageKind, Run};
use crate::agent::{AgentEvent, MessageState, Owner, Reply};
use crate::ids::{AttemptId, MessageId, SessionId};
use crate::notice::{ReplyOrigin, What};

impl Run {
    pub(super) fn output(&mut self, id: AttemptId, offset: u64, bytes: &[u8]) {
        let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.id == id) else { return };
        // Late and repeated bytes change nothing; a gap would be a fault of the loop and is never folded over.
        let Some(seen) = attempt.offset.checked_sub(offset) else { return };
        let Some(fresh) = usize::try_from(seen).ok().and_then(|seen| bytes.get(seen..)) else { return };
        attempt.offset += fresh.len() as u64;
        if attempt.end.is_some() {
            // A background child that holds stdout may write after the end; it is mirrored, but judged no more.
            return;
        }
        let mut reader = std::mem::replace(
            &mut attempt.reader,
            crate::tally::Reader::new(crate::wire::FileKind::Stream, 0),
        );
        reader.read(fresh, |event| self.agent_event(event));
        if let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.id == id) {
            attempt.reader = reader;
        }
    }

    pub(super) fn agent_event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Began(began) => {
                self.in_reply = true;
                self.announced = false;
                self.quiet_kept = false;
                self.strays_checked = false;
                self.folded_in = false;
                if let Some(attempt) = self.attempts.last_mut() {
                    if let Some(session) = began.session.as_deref().and_then(SessionId::told) {
                        attempt.session = Some(session.0);
                    }
                    if began.version.is_some() {
                        attempt.agent_version.clone_from(&began.version);
                    }
                }
                if !self.unanswered() {
                    let changes = self.tally.table.woke_unasked(self.now);
                    self.tally.ledger.changed(&changes);
                    self.show_changes(&changes);
                }
                match self.stage {
                    Stage::Holding { .. } | Stage::Quiet { .. } | Stage::Checking | Stage::Starting => {
                        self.enter(Stage::Replying);
                    }
                    Stage::Replying
                    | Stage::Closing { .. }
                    | Stage::Surveying { .. }
                    | Stage::Orphans { .. }
                    | Stage::Pause { .. }
                    | Stage::Stopping { .. }
                    | Stage::Ended => {}
                }
            }
            AgentEvent::Text { owner, text } => {
                self.announce(None);
                self.tell(What::Text { owner: owner.clone(), text: text.clone() });
            }
            AgentEvent::ToolCalled { owner, id, name, call } => {
                self.announce(None);
                self.tools_since_message += 1;
                let summary = call.summary.clone();
                self.tell(What::ToolCalled {
                    owner: owner.clone(),
                    id: id.clone(),
                    name: name.clone(),
                    summary,
                });
            }
            AgentEvent::ToolReturned { owner, id, is_error, .. } => {
                self.tell(What::ToolReturned { owner: owner.clone(), id: id.clone(), is_error: *is_error });
            }
            AgentEvent::ApiError { owner: Owner::Main, text, .. } => {
                self.announce(None);
                self.remark(format!("the agent reports an error of its service: {text}"));
            }
            AgentEvent::Retrying { try_number, of, delay_ms, status, class } => {
                let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
                self.remark(format!(
                    "the agent retries its service by itself: {class} ({status}), try {try_number} of {of} in {:.1} s",
                    *delay_ms as f64 / 1000.0
                ));
            }
            AgentEvent::Asked { request, tool, .. } => {
                self.asked.insert(request.clone());
                self.remark(format!("the agent asks for a decision on {tool} and waits"));
            }
            AgentEvent::Withdrawn { request } => {
                self.asked.remove(request);
            }
            AgentEvent::Denied { tool } => {
                self.remark(format!("{tool} was not permitted; --permissions decides that"));
            }
            AgentEvent::Lifecycle { message, state, .. } => {
                let reach = match state {
                    MessageState::Queued => Reach::Queued,
                    MessageState::Started => Reach::Started,
                    MessageState::Completed => Reach::Answered,
                };
                let message = MessageId(message.clone());
                if let Some(attempt) = self.living() {
                    self.message_reached(attempt, &message, reach);
                }
            }
            AgentEvent::Replied(reply) => return self.replied(reply),
            AgentEvent::ApiError { .. }
            | AgentEvent::LiveSet(_)
            | AgentEvent::Started { .. }
            | AgentEvent::Updated { .. }
            | AgentEvent::Notified(_)
            | AgentEvent::RateLimit(_)
            | AgentEvent::Prompted { .. }
            | AgentEvent::Interrupted
            | AgentEvent::ControlAnswered { .. }
            | AgentEvent::Other => {}
        }
        let version = self.tally.version.clone();
        let changes = self.tally.apply(self.now, event);
        if version != self.tally.version {
            self.tell_of_an_old_agent();
        }
        self.show_changes(&changes);
        if !changes.is_empty() {
            self.background_changed();
        }
        if matches!(event, AgentEvent::Lifecycle { state: MessageState::Completed, .. })
            && self.stage == Stage::Replying
            && !self.in_reply
        {
            self.reconsider();
        }
    }

    /// Everything said of runs holds from 2.1.212 on; older agents are driven with less (DRIFT 7).
    fn tell_of_an_old_agent(&mut self) {
        let able = self.tally.capabilities();
        let Some(version) = self.tally.version.clone().filter(|_| !able.dies_clean) else { return };
        let held = self.request.limits.hold.is_some();
        self.remark(match (able.known, able.held) {
            (false, _) => format!("the agent's version {version} is not known; its behaviour is taken as it comes"),
            (true, false) if held => format!(
                "the agent's version {version} does not fully work with an open input (2.1.181 does); --no-hold is safer"
            ),
            (true, _) => format!(
                "the agent's version {version} is older than 2.1.212: a signal may leave its commands running, and messages \
                 may not be followed one by one"
            ),
        });
    }

    /// Work began or ended while nobody replies.
    fn background_changed(&mut self) {
        let (now, any_live) = (self.now, self.tally.table.any_live());
        match &mut self.stage {
            Stage::Holding { idle, .. } => *idle = if any_live { None } else { idle.or(Some(now)) },
            // The set was empty for an instant only.
            Stage::Quiet { .. } | Stage::Checking => {
                self.quiet_kept = false;
                self.reconsider();
            }
            Stage::Starting
            | Stage::Replying
            | Stage::Closing { .. }
            | Stage::Surveying { .. }
            | Stage::Orphans { .. }
            | Stage::Pause { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => {}
        }
    }

    fn replied(&mut self, reply: &Reply) {
        let origin = self.origin_of(reply);
        if origin != ReplyOrigin::Empty {
            self.announce(Some(origin));
        }
        self.in_reply = false;
        self.announced = false;
        self.folded_in = false;
        self.asked.clear();
        let Some(attempt) = self.attempts.last().map(|attempt| attempt.id) else { return };
        let can_carry =
            self.tally.capabilities().carries_cost && self.attempts.last().is_some_and(|a| a.resumed);
        if let Some(figure) = reply.cost_usd.filter(|_| origin != ReplyOrigin::Empty) {
            self.cost.told(figure, can_carry);
        }
        let changes = self.tally.replied(self.now, attempt, reply, origin);
        self.show_changes(&changes);
        match origin {
            ReplyOrigin::Empty => {}
            ReplyOrigin::Message => self.mark_answered(attempt, reply),
            ReplyOrigin::Wakeup => {}
        }
        if !matches!(self.tally.judgement(), crate::tally::Judgement::Faulty(crate::fault::Fault::Overloaded))
        {
            self.spent.backoffs = 0;
        }
        if origin == ReplyOrigin::Empty { self.ignore_empty() } else { self.reconsider() }
    }

    /// Who began the reply that ended: the agent says so of its own wake-ups (`origin`), names the messages it answers
    /// where a version tells, and otherwise answers what was sent and is open.
    fn origin_of(&self, reply: &Reply) -> ReplyOrigin {
        if reply.is_empty() {
            return ReplyOrigin::Empty;
        }
        // A message that came during a wake-up is folded into it: the reply is one to the message, whoever began it.
        let ours = reply.answers.iter().any(|id| self.messages.iter().any(|message| message.id.0 == *id));
        if ours || self.folded_in {
            return ReplyOrigin::Message;
        }
        if self.tally.woke_itself(reply) {
            return ReplyOrigin::Wakeup;
        }
        if self.unanswered() || self.tally.replies.iter().all(|r| r.origin == ReplyOrigin::Empty) {
            ReplyOrigin::Message
        } else {
            ReplyOrigin::Wakeup
        }
    }

    /// Marks what a reply to a message answered: the messages it names; else those the agent had begun; else, from an agent
    /// that follows messages one by one, the eldest that is open, and from any other all that was sent.
    fn mark_answered(&mut self, attempt: AttemptId, reply: &Reply) {
        let follows = self.tally.capabilities().lifecycle;
        let mut open: Vec<&mut super::stage::Message> = self
            .messages
            .iter_mut()
            .filter(|m| m.attempt == attempt && m.kind != MessageKind::Control && m.reach != Reach::Answered)
            .collect();
        let any_started = open.iter().any(|message| message.reach == Reach::Started);
        if !reply.answers.is_empty() {
            open.retain(|message| reply.answers.contains(&message.id.0));
        } else if any_started {
            open.retain(|message| message.reach == Reach::Started);
        } else if follows {
            open.truncate(1);
        }
        for message in open {
            message.reach = Reach::Answered;
        }
    }

    pub(super) fn message_reached(&mut self, attempt: AttemptId, id: &MessageId, reach: Reach) {
        let Some(message) = self.messages.iter_mut().find(|m| m.attempt == attempt && m.id == *id) else {
            return;
        };
        let newly = message.reach < Reach::Answered && reach == Reach::Answered;
        self.folded_in |= newly && self.in_reply && message.kind != MessageKind::Control;
        message.reach = message.reach.max(reach);
    }

    /// Tells watchers that a reply began, once it said or did something: the EMPTY ones never do.
    fn announce(&mut self, origin: Option<ReplyOrigin>) {
        if self.announced {
            return;
        }
        self.announced = true;
        self.replies_begun += 1;
        let open = self.unanswered() || self.tally.replies.is_empty();
        let origin = origin.unwrap_or(if open { ReplyOrigin::Message } else { ReplyOrigin::Wakeup });
        let Some(attempt) = self.attempts.last().map(|attempt| attempt.id) else { return };
        self.tell(What::ReplyStarted {
            attempt,
            reply: self.replies_begun,
            origin,
            model: self.tally.model.clone(),
            agent_version: self.tally.version.clone(),
        });
    }
}
