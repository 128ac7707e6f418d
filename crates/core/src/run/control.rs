//! What is done about a verdict: messages, attempts, holds, waits, and the way out.

use super::stage::{Message, MessageKind, Reach, Stage};
use super::{Attempt, Run};
use crate::background::Snapshot;
use crate::decision::{Decision, Start};
use crate::event::Survivor;
use crate::fault::Fault;
use crate::ids::{AttemptId, MessageId, SessionId};
use crate::instruction;
use crate::ladder::{self, Facts, OverBudget, Step, Verdict};
use crate::notice::{Finished, What};
use crate::outcome::{Ending, Outcome};
use crate::phase::Phase;
use crate::tally::Judgement;
use crate::wire::claude::{self, Control};

/// What is told when a message comes too late to be sent.
pub const NOT_SENT: &str = "the run is ending; the message was not sent";

impl Run {
    /// Lets the ladder look, if it is its turn: not while the agent replies, and not before our last message is answered.
    pub(super) fn reconsider(&mut self) {
        if self.booking_end {
            return;
        }
        match &mut self.stage {
            Stage::Closing { since, .. } => {
                *since = self.now;
                return;
            }
            Stage::Surveying { .. }
            | Stage::Orphans { .. }
            | Stage::Pause { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => return,
            Stage::Starting
            | Stage::Replying
            | Stage::Holding { .. }
            | Stage::Quiet { .. }
            | Stage::Checking => {}
        }
        if self.living().is_some() && (self.in_reply || self.unanswered()) {
            self.enter(Stage::Replying);
            return;
        }
        if self.living().is_some() && !self.attempts.last().is_some_and(|attempt| attempt.input_open) {
            // A plain agent has no open input: it leaves by itself, and is judged then.
            self.enter(Stage::Closing { since: self.now, outcome: None, forced: false });
            return;
        }
        self.judge();
    }

    /// An EMPTY result answers nothing: what was waited for before is waited for again.
    pub(super) fn ignore_empty(&mut self) {
        let held = self.attempts.last().is_some_and(|attempt| attempt.lives() && attempt.input_open);
        if held && !self.unanswered() && self.stage == Stage::Replying {
            let idle = (!self.tally.table.any_live()).then_some(self.now);
            self.enter(Stage::Holding { since: self.now, idle });
        }
    }

    /// Runs the ladder and does what it says.
    fn judge(&mut self) {
        let living = self.living().is_some();
        self.count_progress();
        let facts = self.facts();
        if !living && !self.unsent.is_empty() && self.stop.is_none() && facts.over_budget.is_none() {
            let text = std::mem::take(&mut self.unsent).join("\n\n");
            self.remark("the agent's process ended before it took a message; a new attempt takes it");
            self.speak(MessageKind::Said, text);
            return;
        }
        let mut verdict = ladder::decide(&facts, &self.request.limits);
        let would_resume = matches!(verdict.step, Step::Nudge | Step::Continue | Step::Hold);
        if !living && facts.running && facts.hold_left && facts.over_budget.is_none() && would_resume {
            // Resuming into "it was stopped" while it runs would have it started twice.
            verdict = Verdict { step: Step::Hold, reason: "orphan_running" };
        }
        if verdict.step == Step::Finish(Ending::Done) && !self.ready_to_close(living) {
            return;
        }
        if living && verdict.step == Step::Restart {
            // An agent without its session leaves; two at once would be one too many.
            if let Some(id) = self.living() {
                self.close_input(id);
            }
            self.enter(Stage::Closing { since: self.now, outcome: None, forced: false });
            return;
        }
        let owing = matches!(verdict.step, Step::Nudge | Step::Finish(Ending::Stranded));
        if owing && self.wakes_in_a_moment() {
            self.enter(Stage::Holding { since: self.now, idle: Some(self.now) });
            return;
        }
        let nudges_left = self.spent.nudges < self.request.limits.nudges && facts.over_budget.is_none();
        if verdict.step == Step::Finish(Ending::Done) && !self.survivors.is_empty() && nudges_left {
            verdict = Verdict { step: Step::Nudge, reason: "left_running" };
        }
        self.carry(verdict, facts.fault.as_ref());
    }

    /// Whether owed work ended between the agent's last word and the end of its reply, so that the agent does not know of
    /// it and wakes up by itself; false once that was waited for.
    fn wakes_in_a_moment(&self) -> bool {
        let open = self.attempts.last().is_some_and(|attempt| attempt.lives() && attempt.input_open);
        let waited = matches!(self.stage, Stage::Holding { idle: Some(_), .. });
        open && !waited && self.hold_left() && self.tally.ledger.any_untold()
    }

    /// Whether a run that is done may close its agent's input: after background work, everything must have stayed quiet
    /// for a moment (the set can be empty between two tasks); after tool calls, the host is asked for strays.
    fn ready_to_close(&mut self, living: bool) -> bool {
        if !living {
            return true;
        }
        if !self.quiet_kept && !self.tally.table.is_empty() && !self.tally.table.any_live() {
            self.enter(Stage::Quiet { since: self.now });
            return false;
        }
        if !self.strays_checked && self.tally.tool_calls > 0 {
            self.enter(Stage::Checking);
            self.survey(Vec::new());
            return false;
        }
        true
    }

    fn facts(&self) -> Facts {
        let limits = &self.request.limits;
        let fault = match self.tally.judgement() {
            // A clean reply to an earlier message says nothing of the one that was open when the process ended.
            Judgement::Clean if self.living().is_none() && self.left_open() => Some(Fault::NoResult),
            Judgement::Clean => None,
            Judgement::Faulty(fault) => Some(fault),
            Judgement::Open if self.attempts.last().is_some_and(Attempt::refused_by_agent) => {
                Some(Fault::AgentRefused)
            }
            Judgement::Open => Some(Fault::NoResult),
        };
        let over_cost = limits.max_cost_usd.is_some_and(|most| self.cost.total >= most);
        let over_time = limits.timeout.is_some_and(|span| self.now >= self.begun.after(span));
        Facts {
            stop_asked: self.stop.is_some(),
            fault,
            running: self.tally.table.any_live(),
            debt: self.tally.ledger.debt(),
            hold_left: self.hold_left(),
            spent: self.spent,
            over_budget: match (over_cost, over_time) {
                (true, _) => Some(OverBudget::Cost),
                (_, true) => Some(OverBudget::Time),
                (false, false) => None,
            },
            now: self.now,
        }
    }

    /// Whether the last attempt ended with a message of ours unanswered.
    fn left_open(&self) -> bool {
        let last = self.attempts.last().map(|attempt| attempt.id);
        self.messages
            .iter()
            .any(|m| Some(m.attempt) == last && m.kind != MessageKind::Control && m.reach != Reach::Answered)
    }

    /// Counts continues in a row that brought no tool call, each once.
    fn count_progress(&mut self) {
        if self.tools_since_message > 0 {
            self.spent.idle_continues = 0;
        }
        let Some(last) = self.messages.iter_mut().rev().find(|message| message.kind != MessageKind::Control)
        else {
            return;
        };
        if last.kind == MessageKind::Continue && !last.text.is_empty() {
            // The text is not needed again once the continue was judged.
            last.text.clear();
            let idle = self.tools_since_message == 0;
            self.spent.idle_continues = if idle { self.spent.idle_continues + 1 } else { 0 };
        }
    }

    fn carry(&mut self, verdict: Verdict, fault: Option<&Fault>) {
        let already_holding = matches!(self.stage, Stage::Orphans { .. }) && verdict.step == Step::Hold;
        let done = verdict.step == Step::Finish(Ending::Done);
        // A run that was found done is judged once more when its agent has left.
        let told = self.told_done.take().filter(|_| done && matches!(self.stage, Stage::Surveying { .. }));
        let verdict = Verdict { reason: told.unwrap_or(verdict.reason), ..verdict };
        if !already_holding && told.is_none() {
            self.report(verdict, fault);
        }
        self.told_done = done.then_some(verdict.reason);
        match verdict.step {
            Step::Finish(ending) => {
                let outcome = self.outcome(ending, verdict.reason, fault);
                self.leave(outcome);
            }
            Step::Hold if self.living().is_some() => {
                let idle = (!self.tally.table.any_live()).then_some(self.now);
                self.enter(Stage::Holding { since: self.now, idle });
            }
            Step::Hold => {
                let look = self.now.after(self.request.limits.survey_every);
                self.enter(Stage::Orphans { since: self.now, look });
            }
            Step::Nudge => {
                let text = instruction::nudging(&self.owed(), self.tally.ledger.unpaired(), &self.survivors);
                self.spent.nudges += 1;
                self.speak(MessageKind::Nudge, text);
            }
            Step::Wait { until } => {
                self.spent.waits += 1;
                self.enter(Stage::Pause { until });
            }
            Step::Backoff { until } => {
                self.spent.backoffs += 1;
                self.enter(Stage::Pause { until });
            }
            Step::Restart => {
                self.spent.restarts += 1;
                self.spent.continues += 1;
                self.remark("the session is not known on the host; starting afresh with the same prompt");
                // The session may have been lost with a killed agent, and what it launched goes on all the same.
                let mut text = self.request.prompt.clone() + &self.reminder();
                for said in self.unheard() {
                    text.push_str("\n\n");
                    text.push_str(&said);
                }
                self.tally.session = None;
                self.start_attempt(MessageKind::Continue, text, None);
            }
            Step::Continue => {
                self.spent.continues += 1;
                let text = self.continuation(fault.unwrap_or(&Fault::NoResult));
                self.speak(MessageKind::Continue, text);
            }
        }
    }

    /// The message that goes on after `fault`; the prompt itself where nothing was ever said.
    fn continuation(&self, fault: &Fault) -> String {
        if !self.tally.said_anything && *fault != Fault::EmptyReply {
            return self.request.prompt.clone();
        }
        let (spent, budget) = (self.tally.turns_last, self.request.limits.max_turns);
        let mut text = instruction::continuing(fault, spent, budget, self.limit_is_foreign());
        if self.living().is_none() {
            // A killed agent may have lost even the memory of what it launched.
            text.push_str(&self.reminder());
        }
        text
    }

    fn reminder(&self) -> String {
        instruction::reminding(&self.owed(), self.tally.ledger.unpaired(), &self.survivors)
    }

    /// What the run launched and has not settled.
    fn owed(&self) -> Vec<Snapshot> {
        let ledger = &self.tally.ledger;
        self.tally.table.snapshots(|id| ledger.owes(id)).into_iter().filter(|piece| piece.owed).collect()
    }

    /// Sends a message: to the living process, else as a new attempt on the resumed session.
    fn speak(&mut self, kind: MessageKind, text: String) {
        let open = self
            .attempts
            .last()
            .filter(|attempt| attempt.lives() && attempt.input_open)
            .map(|attempt| attempt.id);
        let Some(attempt) = open else {
            // A session the agent never confirmed may not exist.
            let session = self.tally.session.clone().map(SessionId).or_else(|| self.request.resume.clone());
            let text = match (&session, kind) {
                (Some(_), _) => text,
                (None, MessageKind::Said) => format!("{}\n\n{text}", self.request.prompt),
                (None, _) => self.request.prompt.clone(),
            };
            self.start_attempt(kind, text, session);
            return;
        };
        let id = MessageId::drawn(&mut self.ids);
        let bytes = claude::message_line(&id, &text);
        self.note_message(id.clone(), attempt, kind, text, Reach::Sent);
        self.write(attempt, id, bytes);
        self.enter(Stage::Replying);
    }

    fn note_message(
        &mut self,
        id: MessageId,
        attempt: AttemptId,
        kind: MessageKind,
        text: String,
        reach: Reach,
    ) {
        let before = self.tally.judgement();
        self.tally.expect_reply();
        self.tools_since_message = 0;
        self.quiet_kept = false;
        self.strays_checked = false;
        self.messages.push(Message { id, attempt, kind, text, reach, before });
    }

    fn write(&mut self, id: AttemptId, message: MessageId, bytes: Vec<u8>) {
        let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.id == id) else { return };
        let offset = attempt.journal;
        attempt.journal += bytes.len() as u64;
        self.order(Decision::Write { attempt: id, message, offset, bytes });
    }

    /// Takes what a person said that the last attempt did not answer.
    fn unheard(&mut self) -> Vec<String> {
        let last = self.attempts.last().map(|attempt| attempt.id);
        let mut texts = std::mem::take(&mut self.unsent);
        let open = self.messages.iter().filter(|m| Some(m.attempt) == last && m.reach != Reach::Answered);
        texts.extend(open.filter(|m| m.kind == MessageKind::Said).map(|m| m.text.clone()));
        texts
    }

    pub(super) fn start_attempt(&mut self, kind: MessageKind, text: String, resume: Option<SessionId>) {
        let id = AttemptId(u32::try_from(self.attempts.len() + 1).unwrap_or(u32::MAX));
        let resumed = resume.is_some();
        let session = resume.clone().unwrap_or_else(|| SessionId(self.ids.uuid()));
        let opening = instruction::opening(&text, self.request.delivery, resumed);
        let held = self.request.limits.hold.is_some();
        let args = claude::args(&claude::Launching {
            held,
            session: (!resumed).then_some(&session),
            resume: resume.as_ref(),
            model: self.request.model.as_deref(),
            permission_mode: self.request.permission_mode.as_deref(),
            max_turns: Some(self.request.limits.max_turns),
            append_system_prompt: opening.system.as_deref(),
            extra: &self.request.agent_args,
        });
        let message = MessageId::drawn(&mut self.ids);
        let input = if held {
            claude::message_line(&message, &opening.message)
        } else {
            opening.message.into_bytes()
        };
        let mut attempt = Attempt::new(id, Some(&session), resumed, self.request.limits.max_line);
        attempt.journal = input.len() as u64;
        attempt.input_open = held;
        self.attempts.push(attempt);
        self.cost.attempt_begins();
        self.survivors.clear();
        self.note_message(message, id, kind, text, Reach::Written);
        self.enter(Stage::Starting);
        self.order(Decision::Start(Start {
            attempt: id,
            session: Some(session),
            args,
            env: Vec::new(),
            input,
            close: !held,
        }));
    }

    fn close_input(&mut self, id: AttemptId) {
        let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.id == id) else { return };
        if !std::mem::replace(&mut attempt.input_open, false) {
            return;
        }
        let offset = attempt.journal;
        self.order(Decision::CloseInput { attempt: id, offset });
    }

    /// Control requests, as one entry of the journal.
    fn control(&mut self, id: AttemptId, requests: &[Control]) {
        let message = MessageId::drawn(&mut self.ids);
        let mut bytes = Vec::new();
        for request in requests {
            bytes.extend(claude::control_line(&self.ids.uuid(), request.clone()));
        }
        self.messages.push(Message {
            id: message.clone(),
            attempt: id,
            kind: MessageKind::Control,
            text: String::new(),
            reach: Reach::Sent,
            before: self.tally.judgement(),
        });
        self.write(id, message, bytes);
    }

    /// Ends the run with this outcome, once a living agent has left.
    fn leave(&mut self, outcome: Outcome) {
        let Some(id) = self.living() else {
            self.finalize(outcome);
            return;
        };
        let done = outcome.ending == Ending::Done;
        let open = self.attempts.last().is_some_and(|attempt| attempt.input_open);
        if open {
            if self.in_reply {
                self.control(id, &[Control::Interrupt, Control::EndSession]);
            } else if !done || self.tally.table.any_live() {
                self.control(id, &[Control::EndSession]);
            }
            self.close_input(id);
        }
        let outcome = (!done).then(|| Box::new(outcome));
        // An agent whose input is closed cannot be asked to leave.
        let forced = !open && !done;
        self.enter(Stage::Closing { since: self.now, outcome, forced });
        if forced {
            self.order(Decision::Stop { attempt: id, now: false });
        }
    }

    /// The process of the attempt is gone.
    pub(super) fn after_end(&mut self) {
        self.recall_unsent();
        let outcome = match &mut self.stage {
            Stage::Ended => return,
            Stage::Stopping { confirmed: true } => {
                self.finish_stopped();
                return;
            }
            Stage::Stopping { confirmed: false } => return,
            // The wait goes on without it; what follows starts an attempt of its own.
            Stage::Pause { .. } => return,
            Stage::Closing { outcome, .. } => outcome.take(),
            Stage::Starting
            | Stage::Replying
            | Stage::Holding { .. }
            | Stage::Quiet { .. }
            | Stage::Checking
            | Stage::Surveying { .. }
            | Stage::Orphans { .. } => None,
        };
        self.answered(|d| matches!(d, Decision::Survey { .. }));
        self.enter(Stage::Surveying { outcome });
        self.look_at_what_is_left();
    }

    /// Asks the host what the attempt that ended left. A stop that is under way comes first: it reaches all that carries
    /// the run's mark, and must not reach what a next attempt starts.
    fn look_at_what_is_left(&mut self) {
        if self.outstanding.iter().any(|d| matches!(d, Decision::Stop { .. })) {
            return;
        }
        // An agent that used no tool left no process.
        if self.tally.tool_calls == 0 && self.tally.table.is_empty() {
            self.after_survey();
        } else {
            self.survey_unexplained();
        }
    }

    fn survey_unexplained(&mut self) {
        let told = self.tally.table.unexplained();
        self.survey(told.into_iter().filter_map(|(id, path)| path.map(|path| (id, path))).collect());
    }

    fn survey(&mut self, outputs: Vec<(String, String)>) {
        self.surveys += 1;
        self.order(Decision::Survey { survey: self.surveys, outputs });
    }

    pub(super) fn after_survey(&mut self) {
        match &mut self.stage {
            Stage::Checking => {
                self.strays_checked = true;
                self.judge();
            }
            Stage::Surveying { outcome: Some(outcome) } => {
                let mut outcome = (**outcome).clone();
                if outcome.ending == Ending::Stranded {
                    // What the host says now is what the outcome says.
                    outcome = self.outcome(Ending::Stranded, &outcome.reason.clone(), None);
                }
                self.finalize(outcome);
            }
            Stage::Surveying { outcome: None } => self.judge(),
            Stage::Orphans { look, .. } => {
                *look = self.now.after(self.request.limits.survey_every);
                if !self.tally.table.any_live() || !self.hold_left() {
                    self.judge();
                }
            }
            Stage::Starting
            | Stage::Replying
            | Stage::Holding { .. }
            | Stage::Quiet { .. }
            | Stage::Closing { .. }
            | Stage::Pause { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => {}
        }
    }

    /// Messages that were not in the journal when the process ended, or that it never began to answer, were not heard:
    /// what they spent is given back. The message that began an attempt is not among them, so that an agent which dies
    /// at once, again and again, is given up.
    fn recall_unsent(&mut self) {
        let Some(attempt) = self.attempts.last().map(|attempt| attempt.id) else { return };
        // A process that said nothing heard nothing.
        let mute = self.attempts.last().is_some_and(|attempt| attempt.reader.decoded() == 0);
        let tells = mute || self.tally.capabilities().lifecycle;
        let opening = self.messages.iter().find(|m| m.attempt == attempt).map(|m| m.id.clone());
        let lost: Vec<Message> = {
            let untaken = |m: &Message| {
                let follows = m.kind != MessageKind::Control && Some(&m.id) != opening.as_ref();
                tells && follows && matches!(m.reach, Reach::Written | Reach::Queued)
            };
            let is_lost = |m: &Message| m.attempt == attempt && (m.reach == Reach::Sent || untaken(m));
            let lost = self.messages.iter().filter(|m| is_lost(m)).cloned().collect();
            self.messages.retain(|m| !is_lost(m));
            lost
        };
        self.give_back(lost);
    }

    pub(super) fn undeliverable(&mut self, attempt: AttemptId, id: &MessageId) {
        self.answered(|d| matches!(d, Decision::Write { message, .. } if message == id));
        let Some(index) = self.messages.iter().position(|m| m.attempt == attempt && m.id == *id) else {
            return;
        };
        let message = self.messages.remove(index);
        self.give_back(vec![message]);
        // The end of the process follows, and is judged by what stood before.
    }

    fn give_back(&mut self, lost: Vec<Message>) {
        for message in lost.into_iter().rev() {
            match message.kind {
                MessageKind::Control => continue,
                MessageKind::Nudge => self.spent.nudges = self.spent.nudges.saturating_sub(1),
                MessageKind::Continue => self.spent.continues = self.spent.continues.saturating_sub(1),
                MessageKind::Said => self.unsent.insert(0, message.text),
                MessageKind::Prompt | MessageKind::Again => {}
            }
            self.tally.restore(&message.before);
        }
    }

    pub(super) fn say(&mut self, text: String) {
        if !self.stage.is_leaving() {
            self.remark(format!("a message for the agent: {text}"));
        }
        match &self.stage {
            Stage::Stopping { .. } | Stage::Ended => {
                self.remark(NOT_SENT);
            }
            Stage::Closing { outcome: Some(_), .. } | Stage::Surveying { outcome: Some(_) } => {
                self.remark(NOT_SENT);
            }
            // There is no process to send it to now; the next one takes it.
            Stage::Closing { .. } | Stage::Surveying { .. } | Stage::Orphans { .. } => self.unsent.push(text),
            Stage::Starting
            | Stage::Replying
            | Stage::Holding { .. }
            | Stage::Quiet { .. }
            | Stage::Checking => {
                if self.attempts.last().is_some_and(|attempt| attempt.input_open) {
                    self.answered(|d| matches!(d, Decision::Survey { .. }));
                    self.speak(MessageKind::Said, text);
                } else {
                    self.unsent.push(text);
                }
            }
            Stage::Pause { .. } => {
                self.unsent.push(text);
                self.remark("the message is sent when the wait is over");
            }
        }
    }

    pub(super) fn stop_asked(&mut self, now: bool) {
        let Some(attempt) = self.attempts.last().map(|attempt| attempt.id) else { return };
        let again = self.stop.is_some();
        let now = now || again;
        if matches!(self.stage, Stage::Stopping { .. }) {
            if now && self.stop != Some(true) {
                self.stop = Some(true);
                self.answered(|d| matches!(d, Decision::Stop { .. }));
                self.order(Decision::Stop { attempt, now: true });
            }
            return;
        }
        self.stop = Some(now);
        self.report(Verdict { step: Step::Finish(Ending::Stopped), reason: "user_stop" }, None);
        let open = self.attempts.last().is_some_and(|attempt| attempt.lives() && attempt.input_open);
        if open && !now {
            self.control(attempt, &[Control::Interrupt, Control::EndSession]);
        }
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.input_open = false;
        }
        self.answered(|d| matches!(d, Decision::Survey { .. } | Decision::CloseInput { .. }));
        self.enter(Stage::Stopping { confirmed: false });
        self.order(Decision::Stop { attempt, now });
    }

    pub(super) fn stopped(&mut self, attempt: AttemptId, left: Vec<Survivor>) {
        if !self.answered(|d| matches!(d, Decision::Stop { attempt: a, .. } if *a == attempt)) {
            return;
        }
        self.survivors = left;
        match &mut self.stage {
            Stage::Stopping { confirmed } => {
                *confirmed = true;
                // What cannot be stopped may never end; the outcome names it.
                if self.living().is_none() || !self.survivors.is_empty() {
                    self.finish_stopped();
                }
            }
            Stage::Surveying { .. } => self.look_at_what_is_left(),
            Stage::Starting
            | Stage::Replying
            | Stage::Holding { .. }
            | Stage::Quiet { .. }
            | Stage::Checking
            | Stage::Closing { .. }
            | Stage::Orphans { .. }
            | Stage::Pause { .. }
            | Stage::Ended => {}
        }
    }

    /// The host stopped all it could: what nobody explains was ended by that.
    fn finish_stopped(&mut self) {
        if self.survivors.is_empty() && self.living().is_none() {
            let changes = self.tally.table.none_lives(self.now);
            self.show_changes(&changes);
        }
        let outcome = self.outcome(Ending::Stopped, "user_stop", None);
        self.finalize(outcome);
    }

    pub(super) fn deadline(&mut self) {
        let limits = &self.request.limits;
        let over_time = limits.timeout.is_some_and(|span| self.now >= self.begun.after(span));
        if over_time && self.heeds_timeout() {
            self.answered(|d| matches!(d, Decision::Survey { .. }));
            let busy = self.in_reply || self.unanswered() || matches!(self.stage, Stage::Closing { .. });
            if self.living().is_some() && busy {
                let verdict = Verdict { step: Step::Finish(Ending::Exhausted), reason: "timeout" };
                self.carry(verdict, None);
            } else {
                // There is no time left to wait for quiet.
                (self.quiet_kept, self.strays_checked) = (true, true);
                self.judge();
            }
            return;
        }
        if self.stage_deadline().is_none_or(|due| due > self.now) {
            return;
        }
        match self.stage {
            Stage::Holding { .. } => self.judge(),
            Stage::Quiet { .. } => {
                self.quiet_kept = true;
                self.judge();
            }
            Stage::Closing { forced: false, .. } => {
                let Some(attempt) = self.living() else { return };
                self.remark("the agent did not leave after its input was closed; stopping it");
                if let Stage::Closing { forced, since, .. } = &mut self.stage {
                    *forced = true;
                    *since = self.now;
                }
                self.order(Decision::Stop { attempt, now: false });
            }
            Stage::Closing { forced: true, .. } => {
                let Some(attempt) = self.living() else { return };
                if let Stage::Closing { since, .. } = &mut self.stage {
                    *since = self.now;
                }
                self.answered(|d| matches!(d, Decision::Stop { .. }));
                self.order(Decision::Stop { attempt, now: true });
            }
            Stage::Orphans { .. } if !self.hold_left() => self.judge(),
            Stage::Orphans { .. } => {
                let look = self.now.after(self.request.limits.survey_every);
                if let Stage::Orphans { look: due, .. } = &mut self.stage {
                    *due = look;
                }
                if !self.outstanding.iter().any(|d| matches!(d, Decision::Survey { .. })) {
                    self.survey_unexplained();
                }
            }
            Stage::Pause { .. } => self.go_on_after_pause(),
            Stage::Starting
            | Stage::Replying
            | Stage::Checking
            | Stage::Surveying { .. }
            | Stage::Stopping { .. }
            | Stage::Ended => {}
        }
    }

    fn go_on_after_pause(&mut self) {
        let fault = match self.tally.judgement() {
            Judgement::Faulty(fault) => fault,
            Judgement::Open | Judgement::Clean => Fault::NoResult,
        };
        let mut text = self.continuation(&fault);
        for said in std::mem::take(&mut self.unsent) {
            text.push_str("\n\n");
            text.push_str(&said);
        }
        self.speak(MessageKind::Again, text);
    }

    /// The run is over.
    pub(super) fn finalize(&mut self, outcome: Outcome) {
        self.enter(Stage::Ended);
        self.outstanding.clear();
        self.phase = Phase::Ended;
        self.tell(What::PhaseChanged { phase: Phase::Ended });
        let limits = &self.request.limits;
        let ledger = &self.tally.ledger;
        let finished = Finished {
            outcome: outcome.clone(),
            session: self.session(),
            turn_budget: limits.max_turns,
            turns_spent: self.tally.turns_last,
            turns_spent_total: self.tally.turns_total,
            continues_used: self.spent.continues,
            continues_limit: limits.continues,
            nudges_used: self.spent.nudges,
            nudges_limit: limits.nudges,
            debt: ledger.debt(),
            background: self.tally.table.snapshots(|id| ledger.owes(id)),
            survivors: self.survivors.clone(),
            cost_usd: self.cost.total,
            duration_ms: u64::try_from(self.now.since(self.begun).as_millis()).unwrap_or(u64::MAX),
            text: self.tally.text.clone(),
            attempts: self.attempt_summaries(),
            replies: self.tally.replies.clone(),
            skipped_lines: self.attempts.iter().map(|attempt| attempt.reader.skipped()).sum(),
        };
        self.tell(What::RunFinished(Box::new(finished)));
        self.out.push(Decision::Finish(Box::new(outcome)));
    }

    /// Returns the session to go on with: one that the agent confirmed, or that was asked for.
    pub(super) fn session(&self) -> Option<String> {
        let asked = self.request.resume.as_ref().filter(|_| self.spent.restarts == 0);
        self.tally.session.clone().or_else(|| asked.map(|session| session.0.clone()))
    }
}
