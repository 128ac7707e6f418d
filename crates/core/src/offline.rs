//! Folding captured streams and transcripts, as if the process then ended.
//!
//! The same reader, tally and ladder as a live run; only the host is missing. So work that no event ended counts as
//! running, and is held for while the hold is on: whether it truly runs could only be asked on the host.

use crate::agent::{AgentEvent, Owner, Reply, Subtype};
use crate::background::Snapshot;
use crate::fault::Fault;
use crate::ids::AttemptId;
use crate::ladder::{self, Facts, Spent, Step, Verdict};
use crate::notice::{ReplyOrigin, ReplySummary};
use crate::outcome::Ending;
use crate::phase::Phase;
use crate::policy::Limits;
use crate::tally::{Judgement, Reader, Tally};
use crate::time::At;
use crate::wire::{FileKind, sniff};

/// How much of a file is looked at to tell a stream from a transcript, in bytes.
const SNIFFED: usize = 256 << 10;

/// How much of a line is searched for its time, from its end, in bytes: no output of a tool is searched.
const TIME_SOUGHT: usize = 1 << 10;

/// What the run would have spent and been allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub max_turns: u64,
    pub nudges_used: u32,
    pub continues_used: u32,
    pub exit_code: Option<i32>,
    /// Whether background work is held for.
    pub hold: bool,
}

impl Default for Options {
    fn default() -> Self {
        let limits = Limits::default();
        Self { max_turns: limits.max_turns, nudges_used: 0, continues_used: 0, exit_code: None, hold: true }
    }
}

/// What a capture folds to.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    pub kind: FileKind,
    pub session: Option<String>,
    pub agent_version: Option<String>,
    pub replies: Vec<ReplySummary>,
    pub launched: u64,
    pub settled: u64,
    pub debt: u64,
    pub background: Vec<Snapshot>,
    pub phase: Phase,
    pub verdict: Verdict,
    pub fault: Option<Fault>,
    pub outcome: Option<Ending>,
    pub turns_total: u64,
    pub skipped_lines: u64,
}

/// Folds one capture, or several as the attempts of one run.
#[derive(Debug)]
pub struct Folder {
    options: Options,
    tally: Tally,
    /// The first bytes of a file whose kind is not known yet.
    head: Vec<u8>,
    reader: Option<(FileKind, Reader)>,
    last_kind: FileKind,
    attempt: AttemptId,
    skipped: u64,
    decoded_here: u64,
    clock: Clock,
    /// The reply that an error of the service ended, until the file says so itself.
    failed: Option<Reply>,
}

impl Folder {
    /// Begins; `now` stands in where a capture tells no times.
    #[must_use]
    pub fn new(options: Options, now: At) -> Self {
        Self {
            options,
            tally: Tally::default(),
            head: Vec::new(),
            reader: None,
            last_kind: FileKind::Stream,
            attempt: AttemptId(1),
            skipped: 0,
            decoded_here: 0,
            clock: Clock { now, told: false },
            failed: None,
        }
    }

    /// Takes in the next bytes of the file; memory stays flat.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        // Line by line, so that it does not matter how the bytes were cut.
        while self.reader.is_none() && !bytes.is_empty() {
            let line = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
            let (taken, rest) = bytes.split_at(line.min(SNIFFED - self.head.len()));
            self.head.extend_from_slice(taken);
            bytes = rest;
            let full = self.head.len() == SNIFFED;
            if full || taken.ends_with(b"\n") {
                let before = &self.head[..self.head.len() - 1];
                let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
                match sniff(&self.head[start..]) {
                    Some(kind) => self.begin(kind),
                    None if full => self.begin(FileKind::Stream),
                    None => {}
                }
            }
        }
        self.read(bytes);
    }

    /// The file is over, and the next one is the next attempt of the same run.
    pub fn next_file(&mut self) {
        self.end_file();
        let _shown_by_the_snapshot = self.tally.process_ended(self.clock.now);
        self.tally.expect_reply();
        self.attempt = AttemptId(self.attempt.0 + 1);
        self.decoded_here = 0;
    }

    /// The last file is over: the process ended.
    #[must_use]
    pub fn finish(mut self) -> Folded {
        self.end_file();
        let running = self.tally.table.any_live();
        let agents = self.tally.table.any_agent_live();
        let ledger = &self.tally.ledger;
        let background = self.tally.table.snapshots(|id| ledger.owes(id));
        let _shown_above = self.tally.process_ended(self.clock.now);
        let complained = matches!(self.options.exit_code, Some(1..=127)) && self.decoded_here == 0;
        let fault = match self.tally.judgement() {
            Judgement::Clean => None,
            Judgement::Faulty(fault) => Some(fault),
            Judgement::Open if complained => Some(Fault::AgentRefused),
            Judgement::Open => Some(Fault::NoResult),
        };
        let facts = Facts {
            stop_asked: false,
            fault: fault.clone(),
            running,
            debt: self.tally.ledger.debt(),
            hold_left: self.options.hold,
            spent: Spent {
                continues: self.options.continues_used,
                nudges: self.options.nudges_used,
                ..Spent::default()
            },
            over_budget: None,
            now: self.clock.now,
        };
        let limits = Limits { max_turns: self.options.max_turns, ..Limits::default() };
        let verdict = ladder::decide(&facts, &limits);
        let (phase, outcome) = match verdict.step {
            Step::Finish(ending) => (Phase::Ended, Some(ending)),
            Step::Hold if agents => (Phase::Working, None),
            Step::Hold => (Phase::Waiting, None),
            Step::Wait { .. } | Step::Backoff { .. } => (Phase::Limited, None),
            Step::Nudge | Step::Restart | Step::Continue => (Phase::Working, None),
        };
        Folded {
            kind: self.last_kind,
            session: self.tally.session.clone(),
            agent_version: self.tally.version.clone(),
            launched: self.tally.ledger.launched(),
            settled: self.tally.ledger.settled(),
            debt: self.tally.ledger.debt(),
            background,
            phase,
            verdict,
            fault,
            outcome,
            turns_total: self.tally.turns_total,
            replies: self.tally.replies,
            skipped_lines: self.skipped,
        }
    }

    fn begin(&mut self, kind: FileKind) {
        self.last_kind = kind;
        self.reader = Some((kind, Reader::new(kind, Limits::default().max_line)));
        let head = std::mem::take(&mut self.head);
        self.read(&head);
    }

    fn read(&mut self, bytes: &[u8]) {
        let Self { reader: Some((kind, reader)), tally, clock, attempt, failed, .. } = self else { return };
        reader.read_lines(bytes, |line, event| {
            fold_event(tally, failed, *kind, clock.read(line), *attempt, event);
        });
    }

    fn end_file(&mut self) {
        if self.reader.is_none() {
            let kind = sniff(&self.head).unwrap_or(FileKind::Stream);
            self.begin(kind);
        }
        let Some((kind, mut reader)) = self.reader.take() else { return };
        let Self { tally, clock, attempt, failed, .. } = self;
        reader.finish_lines(|line, event| {
            fold_event(tally, failed, kind, clock.read(line), *attempt, event);
        });
        if let Some(reply) = failed.take() {
            end_reply(tally, clock.now, *attempt, &reply);
        }
        self.skipped += reader.skipped();
        self.decoded_here = reader.decoded();
    }
}

/// The time of the last line that tells one: a limit's reset is judged by the time of the capture.
#[derive(Debug)]
struct Clock {
    now: At,
    told: bool,
}

impl Clock {
    /// Returns the time as of `line`; it never runs backwards once a line has told it.
    fn read(&mut self, line: &[u8]) -> At {
        if let Some(told) = stamp(line) {
            self.now = if self.told { self.now.max(told) } else { told };
            self.told = true;
        }
        self.now
    }
}

fn stamp(line: &[u8]) -> Option<At> {
    const KEY: &[u8] = b"\"timestamp\":\"";
    let line = &line[line.len().saturating_sub(TIME_SOUGHT)..];
    let rest = &line[memchr::memmem::rfind(line, KEY)? + KEY.len()..];
    let text = std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()?;
    let millis = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    u64::try_from(millis).ok().map(At)
}

fn fold_event(
    tally: &mut Tally,
    failed: &mut Option<Reply>,
    kind: FileKind,
    now: At,
    attempt: AttemptId,
    event: &AgentEvent,
) {
    let transcript = kind == FileKind::Transcript;
    if let Some(unsaid) = failed.take()
        && !matches!(event, AgentEvent::Replied(reply) if reply.is_error)
    {
        end_reply(tally, now, attempt, &unsaid);
    }
    if let AgentEvent::Replied(reply) = event {
        return end_reply(tally, now, attempt, reply);
    }
    if transcript && matches!(event, AgentEvent::Prompted { wakeup: false, .. }) {
        // Nobody but the file tells which messages were sent.
        tally.expect_reply();
    }
    let _nobody_watches = tally.apply(now, event);
    if !transcript {
        return;
    }
    // Where a stream goes on with a result, a transcript may say no more.
    if *event == AgentEvent::Interrupted {
        end_reply(tally, now, attempt, &broken_off(Subtype::Execution, "aborted_tools"));
    }
    if let AgentEvent::ApiError { owner: Owner::Main, status, text, .. } = event {
        let (api_status, text) = (*status, Some(text.clone()));
        *failed = Some(Reply { api_status, text, ..broken_off(Subtype::Success, "api_error") });
    }
}

fn end_reply(tally: &mut Tally, now: At, attempt: AttemptId, reply: &Reply) {
    let _nobody_watches = tally.replied(now, attempt, reply, origin(tally, reply));
}

fn origin(tally: &Tally, reply: &Reply) -> ReplyOrigin {
    if reply.is_empty() {
        ReplyOrigin::Empty
    } else if tally.woke_itself(reply) {
        ReplyOrigin::Wakeup
    } else {
        ReplyOrigin::Message
    }
}

/// The result that a stream would have shown (FACTS 3).
fn broken_off(subtype: Subtype, reason: &str) -> Reply {
    Reply {
        subtype,
        is_error: true,
        turns: 0,
        text: None,
        terminal_reason: Some(reason.to_owned()),
        api_status: None,
        errors: Vec::new(),
        cost_usd: None,
        woken: false,
        answers: Vec::new(),
        session: None,
    }
}
