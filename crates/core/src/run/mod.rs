//! The fold: one run, from its request to its outcome.
//!
//! [`Run::apply`] takes in what happened and returns what to do. It never fails; an event that makes no sense is
//! survived. The words and deeds of the agent are added up in `tally.rs`, what follows from them is decided in
//! `ladder.rs`, and this module keeps what is between: which messages were sent, what is waited for, and until when.
//!
//! Read next: `control.rs` for what is done about a verdict, `stage.rs` for what a run can be waiting for.

mod agent;
mod control;
mod explain;
mod stage;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::decision::Decision;
use crate::event::{Ask, Event, ExitStatus, Fact, OutputTail, Refusal, RefusalKind, Survivor};
use crate::ids::{AttemptId, IdSource, MessageId, SessionId};
use crate::ladder::Spent;
use crate::notice::{AttemptEnd, AttemptSummary, Notice, What};
use crate::outcome::{Ending, Outcome};
use crate::phase::{Link, Phase};
use crate::policy::Request;
use crate::tally::{Judgement, Reader, Tally};
use crate::time::At;
use crate::wire::FileKind;
pub use control::NOT_SENT;
use stage::{Message, MessageKind, Reach, Stage};

/// The longest stderr text that is quoted in an outcome, in characters.
const QUOTED_STDERR: usize = 600;

/// One run: a fold of everything that happened to it.
#[derive(Debug)]
pub struct Run {
    request: Request,
    ids: IdSource,
    begun: At,
    now: At,
    tally: Tally,
    attempts: Vec<Attempt>,
    messages: Vec<Message>,
    spent: Spent,
    /// Time spent holding, without the hold that is going on.
    held_for: Duration,
    cost: Cost,
    stage: Stage,
    phase: Phase,
    link: Link,
    /// A person asked to stop; true means at once.
    stop: Option<bool>,
    /// The host's last word on what lives beside the agent.
    survivors: Vec<Survivor>,
    /// Surveys ordered so far.
    surveys: u32,
    /// The last words of an attempt that ended are being folded: the ladder waits.
    booking_end: bool,
    /// A message of ours was completed within the reply that goes on: it was folded into it.
    folded_in: bool,
    /// The reply that goes on now was announced to watchers.
    announced: bool,
    /// Between the begin of a reply and its result.
    in_reply: bool,
    /// Everything stayed quiet since it was settled.
    quiet_kept: bool,
    /// The host was asked for stray processes since the last reply.
    strays_checked: bool,
    /// Tool calls since our last message, for rows 11 and 12.
    tools_since_message: u64,
    /// Requests of the agent that wait for an answer.
    asked: BTreeSet<String>,
    /// Texts a person sent that no process has taken yet.
    unsent: Vec<String>,
    /// Why a reply was broken off by us, if it was.
    refusal: Option<Refusal>,
    outstanding: Vec<Decision>,
    out: Vec<Decision>,
    replies_begun: u32,
    /// Why the run is done, if that was the last verdict.
    told_done: Option<&'static str>,
}

/// One agent process.
#[derive(Debug)]
struct Attempt {
    id: AttemptId,
    session: Option<String>,
    agent_version: Option<String>,
    resumed: bool,
    reader: Reader,
    /// Bytes of stdout that were folded.
    offset: u64,
    /// Bytes that are in the input journal, or on the way there.
    journal: u64,
    started: bool,
    input_open: bool,
    end: Option<AttemptEnd>,
    stderr: String,
}

/// What the run cost. The agent's figure is cumulative in a process, and some versions carry it over a resume.
#[derive(Debug, Default)]
struct Cost {
    /// What the attempts before this one cost.
    before: f64,
    /// Whether this attempt's figure includes `before`; decided at its first figure.
    carried: Option<bool>,
    total: f64,
}

impl Cost {
    fn attempt_begins(&mut self) {
        self.before = self.total;
        self.carried = None;
    }

    fn told(&mut self, figure: f64, can_carry: bool) {
        if !figure.is_finite() || figure <= 0.0 {
            return;
        }
        let before = self.before;
        let carried = *self.carried.get_or_insert(can_carry && figure >= before);
        self.total = self.total.max(if carried { figure } else { before + figure });
    }
}

impl Run {
    /// Begins a run and returns it with its first decisions.
    #[must_use]
    pub fn begin(request: Request, at: At) -> (Self, Vec<Decision>) {
        let mut run = Self {
            ids: IdSource::new(request.seed),
            begun: at,
            now: at,
            tally: Tally::default(),
            attempts: Vec::new(),
            messages: Vec::new(),
            spent: Spent::default(),
            held_for: Duration::ZERO,
            cost: Cost::default(),
            stage: Stage::Starting,
            phase: Phase::Starting,
            link: Link::Live,
            stop: None,
            survivors: Vec::new(),
            surveys: 0,
            booking_end: false,
            folded_in: false,
            announced: false,
            in_reply: false,
            quiet_kept: false,
            strays_checked: false,
            tools_since_message: 0,
            asked: BTreeSet::new(),
            unsent: Vec::new(),
            refusal: None,
            outstanding: Vec::new(),
            out: Vec::new(),
            replies_begun: 0,
            told_done: None,
            request,
        };
        run.tell(What::RunStarted {
            prompt_bytes: run.request.prompt.len(),
            resume: run.request.resume.clone(),
        });
        let resume = run.request.resume.clone();
        run.start_attempt(MessageKind::Prompt, run.request.prompt.clone(), resume);
        let decisions = run.drain();
        (run, decisions)
    }

    /// Takes in one event and returns what to do about it, in order.
    #[must_use]
    pub fn apply(&mut self, at: At, event: Event<'_>) -> Vec<Decision> {
        self.now = self.now.max(at);
        if self.stage == Stage::Ended {
            return Vec::new();
        }
        match event {
            Event::Output { attempt, offset, bytes } => self.output(attempt, offset, bytes),
            Event::Fact(fact) => self.fact(fact),
        }
        self.show_phase();
        self.drain()
    }

    /// Returns the moment at which `Fact::DeadlinePassed` is due, if any.
    #[must_use]
    pub fn next_deadline(&self) -> Option<At> {
        if self.stage == Stage::Ended {
            return None;
        }
        let timeout = self.request.limits.timeout.map(|span| self.begun.after(span));
        let timeout = timeout.filter(|_| self.heeds_timeout());
        self.stage_deadline().into_iter().chain(timeout).min()
    }

    /// Returns the decisions that were made but not yet answered by a fact, in order.
    #[must_use]
    pub fn outstanding(&self) -> Vec<Decision> {
        self.outstanding.clone()
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the attempt whose process lives, as far as the fold knows.
    #[must_use]
    pub fn living(&self) -> Option<AttemptId> {
        self.attempts.last().filter(|attempt| attempt.lives()).map(|attempt| attempt.id)
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Ended
    }

    fn drain(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.out)
    }

    fn tell(&mut self, what: What) {
        self.out.push(Decision::Report(Box::new(Notice { at: self.now, what })));
    }

    fn remark(&mut self, text: impl Into<String>) {
        self.tell(What::Remark { text: text.into() });
    }

    /// Gives an order that a fact will answer.
    fn order(&mut self, decision: Decision) {
        self.outstanding.push(decision.clone());
        self.out.push(decision);
    }

    fn answered(&mut self, is_it: impl Fn(&Decision) -> bool) -> bool {
        let before = self.outstanding.len();
        self.outstanding.retain(|decision| !is_it(decision));
        before != self.outstanding.len()
    }

    fn current(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut()
    }

    fn is_current(&self, id: AttemptId) -> bool {
        self.attempts.last().is_some_and(|attempt| attempt.id == id)
    }

    fn fact(&mut self, fact: Fact) {
        match fact {
            Fact::Started { attempt, pid, found } => self.started(attempt, pid, found),
            Fact::Refused { attempt, refusal } => self.refused(attempt, refusal),
            Fact::Exited { attempt, status, stderr, .. } => {
                self.ended(attempt, AttemptEnd::Exited(status), stderr);
            }
            Fact::Vanished { attempt, rebooted, stderr } => {
                self.ended(attempt, AttemptEnd::Vanished { rebooted }, stderr);
            }
            Fact::Lost { attempt, cause } => self.lost(attempt, &cause),
            Fact::LinkChanged { link } => {
                if self.link != link {
                    self.link = link;
                    self.tell(What::LinkChanged { link });
                }
            }
            Fact::Written { attempt, message } => {
                self.answered(|d| matches!(d, Decision::Write { message: m, .. } if *m == message));
                self.message_reached(attempt, &message, Reach::Written);
            }
            Fact::Undeliverable { attempt, message } => self.undeliverable(attempt, &message),
            Fact::InputClosed { attempt } => {
                self.answered(|d| matches!(d, Decision::CloseInput { attempt: a, .. } if *a == attempt));
            }
            Fact::Surveyed { survey, survivors, outputs } => self.surveyed(survey, survivors, &outputs),
            Fact::PickedUp { undriven_since } => self.skip(undriven_since),
            Fact::Stopped { attempt, left } => self.stopped(attempt, left),
            Fact::Asked { ask } => self.asked(ask),
            Fact::DeadlinePassed => self.deadline(),
        }
    }

    fn started(&mut self, id: AttemptId, pid: u32, found: bool) {
        self.answered(|d| matches!(d, Decision::Start(start) if start.attempt == id));
        if !self.is_current(id) {
            return;
        }
        let Some(attempt) = self.current() else { return };
        if attempt.started || attempt.end.is_some() {
            return;
        }
        attempt.started = true;
        self.tell(What::AttemptStarted { attempt: id, pid, found });
        if self.stage == Stage::Starting {
            self.stage = Stage::Replying;
        }
    }

    fn refused(&mut self, id: AttemptId, refusal: Refusal) {
        self.answered(|d| matches!(d, Decision::Start(start) if start.attempt == id));
        if !self.is_current(id) {
            return;
        }
        let first = id == AttemptId(1);
        if matches!(self.stage, Stage::Stopping { confirmed: false }) && !first {
            // What ran before may still run: the host's word on the stop counts.
            if let Some(attempt) = self.current() {
                attempt.end = Some(AttemptEnd::Refused);
                attempt.input_open = false;
            }
            self.tell(What::AttemptEnded { attempt: id, end: AttemptEnd::Refused, skipped_lines: 0 });
            return;
        }
        if let Some(attempt) = self.current() {
            attempt.end = Some(AttemptEnd::Refused);
            attempt.input_open = false;
        }
        self.tell(What::AttemptEnded { attempt: id, end: AttemptEnd::Refused, skipped_lines: 0 });
        // Nothing was started by a first attempt; a later one leaves behind what the run did before.
        let ending = if first { Ending::Refused } else { Ending::Failed };
        let reason = match refusal.kind {
            RefusalKind::Host => "host",
            RefusalKind::NoAgent => "no_agent",
            RefusalKind::NoDirectory => "no_directory",
            RefusalKind::SessionBusy => "session_busy",
            RefusalKind::NoSpace => "no_space",
        };
        let outcome = Outcome {
            ending: if self.stop.is_some() { Ending::Stopped } else { ending },
            reason: if self.stop.is_some() { "user_stop".to_owned() } else { reason.to_owned() },
            message: refusal.detail.clone(),
            hint: refusal.hint.clone(),
        };
        self.refusal = Some(refusal);
        self.finalize(outcome);
    }

    fn ended(&mut self, id: AttemptId, end: AttemptEnd, stderr: String) {
        if !self.is_current(id) {
            return;
        }
        let Some(attempt) = self.attempts.last_mut() else { return };
        if attempt.end.is_some() {
            return;
        }
        attempt.started = true;
        // A last line without a newline is still a line; what follows from it waits until the end is booked.
        let mut events = Vec::new();
        attempt.reader.finish(|event| events.push(event.clone()));
        let skipped_lines = attempt.reader.skipped();
        self.booking_end = true;
        for event in &events {
            self.agent_event(event);
        }
        self.booking_end = false;
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.end = Some(end);
            attempt.input_open = false;
            attempt.stderr = stderr;
        }
        self.in_reply = false;
        self.announced = false;
        self.asked.clear();
        self.answered(|d| match d {
            Decision::Start(start) => start.attempt == id,
            Decision::CloseInput { attempt, .. } | Decision::Write { attempt, .. } => *attempt == id,
            Decision::Survey { .. } | Decision::Stop { .. } | Decision::Report(_) | Decision::Finish(_) => {
                false
            }
        });
        self.tell(What::AttemptEnded { attempt: id, end, skipped_lines });
        let changes = self.tally.process_ended(self.now);
        self.show_changes(&changes);
        self.after_end();
    }

    fn lost(&mut self, id: AttemptId, cause: &str) {
        if !self.is_current(id) {
            return;
        }
        let busy = self.in_reply || self.unanswered();
        if let Some(attempt) = self.attempts.last_mut().filter(|attempt| attempt.end.is_none()) {
            attempt.end = Some(AttemptEnd::Lost);
            attempt.input_open = false;
            let skipped_lines = attempt.reader.skipped();
            self.tell(What::AttemptEnded { attempt: id, end: AttemptEnd::Lost, skipped_lines });
        }
        self.link = Link::Unverifiable;
        let settled = self.tally.judgement() == Judgement::Clean
            && !self.tally.table.any_live()
            && self.tally.ledger.debt() == 0
            && !busy;
        let outcome = if settled && self.stop.is_none() {
            self.done_outcome("settled")
        } else {
            Outcome {
                ending: Ending::Lost,
                reason: "link".to_owned(),
                message: format!("lost contact with {}: {cause}", self.request.host),
                hint: format!(
                    "the agent may still be running there; `bursar stop {}` stops it once the host answers",
                    self.request.run
                ),
            }
        };
        self.finalize(outcome);
    }

    fn asked(&mut self, ask: Ask) {
        match ask {
            Ask::Stop { now } => self.stop_asked(now),
            Ask::Say { text } => self.say(text),
        }
    }

    fn surveyed(&mut self, number: u32, survivors: Vec<Survivor>, outputs: &[OutputTail]) {
        if !self.answered(|d| matches!(d, Decision::Survey { survey, .. } if *survey == number)) {
            return;
        }
        let some_live = !survivors.is_empty();
        self.survivors = survivors;
        if self.living().is_none() {
            let mut changes = Vec::new();
            for (id, _) in self.tally.table.unexplained() {
                let output = outputs.iter().find(|output| output.id == id && output.size.is_some());
                let tail = output.map(|output| output.tail.as_str());
                changes.extend(self.tally.table.host_evidence(self.now, &id, some_live, tail));
            }
            if !some_live {
                changes.extend(self.tally.table.none_lives(self.now));
            }
            let ledger = &self.tally.ledger;
            self.tally.table.mark_cut_after_look(|id| ledger.is_settled(id));
            self.show_changes(&changes);
        }
        self.after_survey();
    }

    fn show_changes(&mut self, changes: &[crate::background::Change]) {
        for change in changes {
            let owed = self.tally.ledger.owes(change.id());
            if let Some(snapshot) = self.tally.table.snapshot(change.id(), owed) {
                self.tell(What::Background(snapshot));
            }
        }
    }

    fn show_phase(&mut self) {
        let phase = self.phase_of_stage();
        if phase != self.phase {
            self.phase = phase;
            self.tell(What::PhaseChanged { phase });
        }
    }

    fn attempt_summaries(&self) -> Vec<AttemptSummary> {
        self.attempts
            .iter()
            .map(|attempt| AttemptSummary {
                attempt: attempt.id,
                session: attempt.session.clone(),
                agent_version: attempt.agent_version.clone(),
                end: attempt.end,
                bytes: attempt.offset,
                skipped_lines: attempt.reader.skipped(),
            })
            .collect()
    }
}

impl Attempt {
    fn new(id: AttemptId, session: Option<&SessionId>, resumed: bool, max_line: usize) -> Self {
        Self {
            id,
            session: session.map(|session| session.0.clone()),
            agent_version: None,
            resumed,
            reader: Reader::new(FileKind::Stream, max_line),
            offset: 0,
            journal: 0,
            started: false,
            input_open: false,
            end: None,
            stderr: String::new(),
        }
    }

    fn lives(&self) -> bool {
        self.end.is_none()
    }

    /// Whether the agent left at once and with a complaint of its own, before it said anything on its stream: wrong
    /// arguments, not allowed as root, a session id in use.
    fn refused_by_agent(&self) -> bool {
        let complained = matches!(self.end, Some(AttemptEnd::Exited(ExitStatus::Code(1..=127))));
        complained && self.reader.decoded() == 0
    }

    /// Returns the end of what the agent wrote to stderr, on one line.
    fn quoted_stderr(&self) -> Option<String> {
        let line = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let skip = line.chars().count().saturating_sub(QUOTED_STDERR);
        (!line.is_empty()).then(|| line.chars().skip(skip).collect())
    }
}

#[cfg(test)]
mod tests;

impl MessageId {
    fn drawn(ids: &mut IdSource) -> Self {
        Self(ids.uuid())
    }
}
