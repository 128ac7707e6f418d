//! Folding captured streams and transcripts, as if the process then ended.
//!
//! The same reader, tally and ladder as a live run; only the host is missing. So work that no event ended counts as
//! running, and is held for while the hold is on: whether it truly runs could only be asked on the host.

use crate::agent::AgentEvent;
use crate::background::Snapshot;
use crate::event::ExitStatus;
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
    /// The time of the last event that tells one.
    now: At,
    told_time: bool,
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
            now,
            told_time: false,
        }
    }

    /// Takes in the next bytes of the file; memory stays flat.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.read_time(bytes);
        if self.reader.is_none() {
            self.head.extend_from_slice(bytes);
            let whole = memchr::memrchr(b'\n', &self.head).map_or(0, |end| end + 1);
            let Some(kind) = sniff(&self.head[..whole]) else {
                if self.head.len() >= SNIFFED {
                    self.begin(FileKind::Stream);
                }
                return;
            };
            self.begin(kind);
            return;
        }
        self.read(bytes);
    }

    /// The file is over, and the next one is the next attempt of the same run.
    pub fn next_file(&mut self) {
        self.end_file();
        let _shown_by_the_snapshot = self.tally.process_ended(self.now);
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
        let _shown_above = self.tally.process_ended(self.now);
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
            now: self.now,
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
        let Some((_, reader)) = &mut self.reader else { return };
        let (tally, now, attempt) = (&mut self.tally, self.now, self.attempt);
        reader.read(bytes, |event| fold_event(tally, now, attempt, event));
    }

    fn end_file(&mut self) {
        if self.reader.is_none() {
            let kind = sniff(&self.head).unwrap_or(FileKind::Stream);
            self.begin(kind);
        }
        let Some((_, mut reader)) = self.reader.take() else { return };
        let (tally, now, attempt) = (&mut self.tally, self.now, self.attempt);
        reader.finish(|event| fold_event(tally, now, attempt, event));
        self.skipped += reader.skipped();
        self.decoded_here = reader.decoded();
    }

    /// Takes the last `timestamp` in the bytes for the present: a limit's reset is judged by the time of the capture.
    fn read_time(&mut self, bytes: &[u8]) {
        const KEY: &[u8] = b"\"timestamp\":\"";
        let Some(found) = memchr::memmem::rfind(bytes, KEY) else { return };
        let rest = &bytes[found + KEY.len()..];
        let end = memchr::memchr(b'"', rest).unwrap_or(0);
        let stamp =
            std::str::from_utf8(&rest[..end]).ok().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        if let Some(millis) = stamp.and_then(|stamp| u64::try_from(stamp.as_millisecond()).ok()) {
            self.now = if self.told_time { self.now.max(At(millis)) } else { At(millis) };
            self.told_time = true;
        }
    }
}

fn fold_event(tally: &mut Tally, now: At, attempt: AttemptId, event: &AgentEvent) {
    let AgentEvent::Replied(reply) = event else {
        let _nobody_watches = tally.apply(now, event);
        return;
    };
    let origin = if reply.is_empty() {
        ReplyOrigin::Empty
    } else if tally.woke_itself(reply) {
        ReplyOrigin::Wakeup
    } else {
        ReplyOrigin::Message
    };
    let _nobody_watches = tally.replied(now, attempt, reply, origin);
}

/// Returns the exit status as the host would tell it, from the code a shell reports.
#[must_use]
pub fn status_of_code(code: i32) -> ExitStatus {
    if (129..=192).contains(&code) { ExitStatus::Signal(code - 128) } else { ExitStatus::Code(code) }
}
