//! What an agent's words and deeds add up to: background table, ledger, replies, and the judgement on them.
//!
//! The one place where agent events are folded; a live run, a replay and `bursar fold` all come through here. It sends
//! nothing and waits for nothing: that is `run.rs`.

use std::collections::BTreeMap;

use crate::agent::{AgentEvent, Owner, Reply};
use crate::background::{Background, Change};
use crate::fault::{self, Fault, Signs};
use crate::ids::{AttemptId, SessionId};
use crate::ledger::Ledger;
use crate::notice::{ReplyOrigin, ReplySummary};
use crate::time::At;
use crate::wire::claude;
use crate::wire::claude::{Capabilities, capabilities};
use crate::wire::lines::{Line, LineCutter};
use crate::wire::transcript::{self, FileKind};

/// The longest text of a reply that is kept for the summary, in bytes.
const LONGEST_TEXT: usize = 1 << 20;

/// Cuts and decodes one stream or transcript.
#[derive(Debug)]
pub struct Reader {
    kind: FileKind,
    cutter: LineCutter,
    scratch: Vec<u8>,
    events: Vec<AgentEvent>,
    skipped: u64,
    decoded: u64,
}

impl Reader {
    /// Begins a stream or a transcript; a line longer than `max_line` bytes is skipped and counted.
    #[must_use]
    pub fn new(kind: FileKind, max_line: usize) -> Self {
        let cutter = LineCutter::new(max_line);
        Self { kind, cutter, scratch: Vec::new(), events: Vec::new(), skipped: 0, decoded: 0 }
    }

    /// Takes in bytes and hands out the events of every line that is whole by now.
    pub fn read(&mut self, bytes: &[u8], mut each: impl FnMut(&AgentEvent)) {
        self.read_lines(bytes, |_, event| each(event));
    }

    /// Takes in bytes like [`Self::read`], and hands out each event with the line it was read from.
    pub fn read_lines(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8], &AgentEvent)) {
        let Self { kind, cutter, scratch, events, skipped, decoded } = self;
        cutter.push(bytes, |line| decode(*kind, line, scratch, events, skipped, decoded, &mut each));
    }

    /// The bytes are over: hands out the events of a last line without a newline.
    pub fn finish(&mut self, mut each: impl FnMut(&AgentEvent)) {
        self.finish_lines(|_, event| each(event));
    }

    /// The bytes are over, like [`Self::finish`], with the line of each event.
    pub fn finish_lines(&mut self, mut each: impl FnMut(&[u8], &AgentEvent)) {
        let Self { kind, cutter, scratch, events, skipped, decoded } = self;
        cutter.finish(|line| decode(*kind, line, scratch, events, skipped, decoded, &mut each));
    }

    /// Returns how many lines could not be read.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns how many lines could be read.
    #[must_use]
    pub fn decoded(&self) -> u64 {
        self.decoded
    }
}

fn decode(
    kind: FileKind,
    line: Line<'_>,
    scratch: &mut Vec<u8>,
    events: &mut Vec<AgentEvent>,
    skipped: &mut u64,
    decoded: &mut u64,
    each: &mut impl FnMut(&[u8], &AgentEvent),
) {
    let Line::Whole(line) = line else {
        *skipped += 1;
        return;
    };
    events.clear();
    let read = match kind {
        FileKind::Stream => claude::decode(line, scratch, events),
        FileKind::Transcript => transcript::decode(line, scratch, events),
    };
    match read {
        Ok(()) => *decoded += u64::from(!events.is_empty()),
        Err(_) => *skipped += 1,
    }
    for event in events.iter() {
        each(line, event);
    }
}

/// The judgement on the reply to our last message and the replies after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// No result has answered our last message.
    Open,
    Clean,
    Faulty(Fault),
}

/// What the agent's words and deeds add up to.
#[derive(Debug, Default)]
pub struct Tally {
    pub table: Background,
    pub ledger: Ledger,
    pub session: Option<String>,
    pub version: Option<String>,
    pub model: Option<String>,
    pub replies: Vec<ReplySummary>,
    /// The text of the last reply that had one.
    pub text: String,
    /// Turns spent over all replies.
    pub turns_total: u64,
    /// Turns spent in the last reply.
    pub turns_last: u64,
    /// Tool calls of the main conversation and its subagents.
    pub tool_calls: u64,
    /// Tool calls the agent refused by its permissions, by tool.
    pub denied: BTreeMap<String, u64>,
    /// Whether the agent ever said or did anything.
    pub said_anything: bool,
    promises: Vec<String>,
    /// The reply that goes on is one the agent had scheduled for itself.
    scheduled: bool,
    /// Something was asked, said or done since the last reply ended.
    stirred: bool,
    /// A reply began and has not ended.
    in_reply: bool,
    /// The last thing the main conversation did was to say something.
    spoke_last: bool,
    /// The reply to our message spoke its last word, and another began before any result (DRIFT 5).
    passed_over: bool,
    signs: Signs,
    /// The judgement on the reply to our last message; None while it is open.
    message: Option<Option<Fault>>,
    /// The fault of the last reply the agent gave without a message.
    wakeup: Option<Fault>,
}

impl Tally {
    /// Folds one event other than a result.
    pub fn apply(&mut self, at: At, event: &AgentEvent) -> Vec<Change> {
        match event {
            AgentEvent::Began(began) => {
                self.passed_over |= self.spoke_last && self.message.is_none();
                self.spoke_last = false;
                self.in_reply = true;
                if let Some(session) = began.session.as_deref().and_then(SessionId::told) {
                    self.session = Some(session.0);
                }
                if began.version.is_some() {
                    self.version.clone_from(&began.version);
                }
                if began.model.is_some() {
                    self.model.clone_from(&began.model);
                }
                if !began.capabilities.is_empty() {
                    self.promises.clone_from(&began.capabilities);
                }
            }
            AgentEvent::Text { owner, text } => {
                self.said_anything = true;
                self.stirred = true;
                if *owner == Owner::Main {
                    self.signs.said |= !text.trim().is_empty();
                    self.spoke_last = true;
                }
            }
            AgentEvent::ToolCalled { owner, .. } => {
                self.spoke_last &= *owner != Owner::Main;
                self.said_anything = true;
                self.stirred = true;
                self.tool_calls += 1;
                self.signs.tool_calls += 1;
            }
            AgentEvent::ApiError { owner: Owner::Main, class, status, .. } => {
                self.stirred = true;
                self.spoke_last = false;
                self.signs.api_error = Some((class.clone(), *status));
            }
            AgentEvent::Lifecycle { wakeup: Some(_), state, .. } => {
                self.scheduled = *state == crate::agent::MessageState::Started;
            }
            AgentEvent::Prompted { wakeup, .. } => {
                self.scheduled = *wakeup;
                self.stirred = true;
            }
            AgentEvent::Denied { tool } => *self.denied.entry(tool.clone()).or_default() += 1,
            AgentEvent::RateLimit(limit) => self.signs.rate_limit = Some(limit.clone()),
            AgentEvent::ToolReturned { .. }
            | AgentEvent::ApiError { .. }
            | AgentEvent::LiveSet(_)
            | AgentEvent::Started { .. }
            | AgentEvent::Updated { .. }
            | AgentEvent::Notified(_)
            | AgentEvent::Retrying { .. }
            | AgentEvent::Lifecycle { .. }
            | AgentEvent::Interrupted
            | AgentEvent::Asked { .. }
            | AgentEvent::Withdrawn { .. }
            | AgentEvent::ControlAnswered { .. }
            | AgentEvent::Replied(_)
            | AgentEvent::Other => {}
        }
        let changes = self.table.apply(at, event);
        self.ledger.apply(event, &changes);
        changes
    }

    /// Folds a result. Who began the reply is known to the caller, who knows which messages were sent.
    pub fn replied(&mut self, at: At, attempt: AttemptId, reply: &Reply, origin: ReplyOrigin) -> Vec<Change> {
        // In a transcript, the mark at the end of a turn may follow the error that ended it (INTERACTIVE 1).
        let bare_mark = !reply.is_error && reply.turns == 0 && reply.text.is_none();
        if bare_mark && !std::mem::take(&mut self.stirred) && !self.replies.is_empty() {
            return Vec::new();
        }
        self.stirred = false;
        self.in_reply = false;
        let event = AgentEvent::Replied(reply.clone());
        let changes = self.table.apply(at, &event);
        self.ledger.apply(&event, &changes);
        if let Some(session) = reply.session.as_deref().and_then(SessionId::told) {
            self.session = Some(session.0);
        }
        self.replies.push(ReplySummary {
            attempt,
            origin,
            subtype: reply.subtype.as_str().to_owned(),
            is_error: reply.is_error,
            terminal_reason: reply.terminal_reason.clone(),
            turns: reply.turns,
        });
        if origin == ReplyOrigin::Empty {
            return changes;
        }
        self.scheduled = false;
        self.spoke_last = false;
        self.turns_last = reply.turns;
        self.turns_total = self.turns_total.saturating_add(reply.turns);
        if let Some(text) = reply.text.as_deref().filter(|text| !text.is_empty()) {
            self.text = cut(text, LONGEST_TEXT).to_owned();
        }
        let judged = fault::judge(reply, &self.signs, at);
        match origin {
            ReplyOrigin::Message => {
                self.message = Some(judged);
                self.wakeup = None;
            }
            ReplyOrigin::Wakeup => {
                if self.passed_over && self.message.is_none() {
                    // Its result is never printed: this one speaks for both.
                    self.message = Some(None);
                }
                self.wakeup = judged;
            }
            ReplyOrigin::Empty => {}
        }
        // What the service said about its limits stands until it says otherwise.
        let rate_limit =
            self.signs.rate_limit.take().filter(|limit| limit.rejected && self.fault().is_some());
        self.signs = Signs { rate_limit, ..Signs::default() };
        changes
    }

    /// Whether the reply that ends was begun by the agent itself, as far as it tells.
    #[must_use]
    pub fn woke_itself(&self, reply: &Reply) -> bool {
        reply.woken || self.scheduled
    }

    /// A message of ours goes out: what follows is judged by the reply to it.
    pub fn expect_reply(&mut self) {
        self.message = None;
        self.wakeup = None;
        self.passed_over = false;
        self.signs.rate_limit = None;
    }

    /// A message never reached the agent: the judgement before it stands again.
    pub fn restore(&mut self, judgement: &Judgement) {
        self.message = match judgement {
            Judgement::Open => None,
            Judgement::Clean => Some(None),
            Judgement::Faulty(fault) => Some(Some(fault.clone())),
        };
    }

    /// The agent's process ended.
    pub fn process_ended(&mut self, at: At) -> Vec<Change> {
        let Self { ledger, table, .. } = self;
        ledger.process_ended(|call| table.started_by_call(call).map(str::to_owned));
        let changes = self.table.process_ended(at);
        self.ledger.changed(&changes);
        let Self { ledger, table, .. } = self;
        table.mark_cut_after_look(|id| ledger.is_settled(id));
        if std::mem::take(&mut self.in_reply) && self.message == Some(None) {
            // What was cut off is no success, whoever began it.
            self.wakeup = Some(Fault::NoResult);
        }
        self.signs = Signs::default();
        changes
    }

    /// Returns the judgement so far. A wake-up's success never heals the reply to our message; a wake-up's own error
    /// stands until the next wake-up.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        match &self.message {
            None => Judgement::Open,
            Some(Some(fault)) => Judgement::Faulty(fault.clone()),
            Some(None) => self.wakeup.clone().map_or(Judgement::Clean, Judgement::Faulty),
        }
    }

    /// Returns what the agent's version can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        capabilities(self.version.as_deref(), &self.promises)
    }

    fn fault(&self) -> Option<&Fault> {
        self.message.as_ref().and_then(Option::as_ref).or(self.wakeup.as_ref())
    }
}

/// Returns at most the first `most` bytes of `text`, cut between characters.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
