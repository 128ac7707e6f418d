//! A run folded as far as its log is read: the same thing for a driver, a watcher and `show`.
//!
//! [`Folded`] applies one entry at a time and sorts what the fold decides into records (numbered here) and orders.
//! It neither writes the log nor carries anything out; a driver is a watcher that does both.

use std::collections::BTreeMap;

use bursar_core::event::Fact;
use bursar_core::notice::{Notice, What};
use bursar_core::phase::Link;
use bursar_core::policy::Request;
use bursar_core::{At, AttemptId, Decision, Event, Outcome, RunId};

use crate::error::{RunnerError, StoreError};
use crate::fold::{Begin, Fold};
use crate::record::{DecisionRecord, FinishedRecord, Record, RecordEvent};
use crate::store::Store;
use crate::store::log::{Body, Entry};
use crate::store::mirror::Mirrors;
use crate::view::{RunView, Viewer};

/// Entries read from the log at once.
const BATCH: u32 = 256;

/// A run as far as its log is folded.
pub(crate) struct Folded {
    request: Request,
    begin: Begin,
    /// None until the log's first entry.
    fold: Option<Box<dyn Fold>>,
    next_seq: u64,
    last_at: At,
    attempts: BTreeMap<AttemptId, Attempt>,
    link: Link,
    records: u64,
    viewer: Viewer,
    finished: Option<FinishedRecord>,
    over: bool,
    /// Whether the fold decided otherwise than the log says it did.
    differs: bool,
}

/// What the loop itself must know of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Bytes of its stdout that were folded.
    pub(crate) fed: u64,
    pub(crate) started: bool,
    /// Nothing more will come from it.
    pub(crate) ended: bool,
}

/// What came of one entry.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) records: Vec<Record>,
    /// What was decided, as JSON, for the log.
    pub(crate) decided: Vec<String>,
    pub(crate) orders: Vec<Decision>,
    /// Whether a screen would change.
    pub(crate) seen: bool,
    /// The last record, as JSON, if this entry ended the run.
    pub(crate) finished: Option<String>,
}

/// Why the log could not be folded to its end.
#[derive(Debug)]
pub(crate) enum Stuck {
    Store(StoreError),
    /// The mirror lacks bytes the log has folded. Folding goes on once they are back.
    Short {
        attempt: AttemptId,
        have: u64,
        need: u64,
    },
}

impl From<StoreError> for Stuck {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Stuck {
    /// Turns it into an error for those who cannot bring the bytes back.
    pub(crate) fn into_error(self, run: &RunId, cause: &str) -> RunnerError {
        match self {
            Self::Store(error) => error.into(),
            Self::Short { attempt, have, need } => {
                RunnerError::MirrorShort { run: run.clone(), attempt, have, need, cause: cause.to_owned() }
            }
        }
    }
}

impl Folded {
    pub(crate) fn new(request: Request, created: At, begin: Begin) -> Self {
        Self {
            viewer: Viewer::new(&request, created),
            request,
            begin,
            fold: None,
            next_seq: 0,
            last_at: created,
            attempts: BTreeMap::new(),
            link: Link::Live,
            records: 0,
            finished: None,
            over: false,
            differs: false,
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.fold.is_some()
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn last_at(&self) -> At {
        self.last_at
    }

    pub(crate) fn link(&self) -> Link {
        self.link
    }

    pub(crate) fn attempt(&self, attempt: AttemptId) -> Attempt {
        self.attempts.get(&attempt).copied().unwrap_or_default()
    }

    pub(crate) fn attempts(&self) -> impl Iterator<Item = (AttemptId, Attempt)> + '_ {
        self.attempts.iter().map(|(id, attempt)| (*id, *attempt))
    }

    pub(crate) fn view(&self) -> &RunView {
        self.viewer.view()
    }

    pub(crate) fn next_deadline(&self) -> Option<At> {
        self.fold.as_ref().and_then(|fold| fold.next_deadline())
    }

    pub(crate) fn outstanding(&self) -> Vec<Decision> {
        self.fold.as_ref().map(|fold| fold.outstanding()).unwrap_or_default()
    }

    /// Returns how the run ended, if it did.
    pub(crate) fn finished(&self) -> Option<&FinishedRecord> {
        self.finished.as_ref().filter(|_| self.over)
    }

    /// Takes in the next entry; `bytes` are those of an [`Body::Output`], which end at its offset.
    pub(crate) fn apply(&mut self, entry: &Entry, bytes: &[u8]) -> Step {
        self.next_seq = entry.seq + 1;
        self.last_at = entry.at;
        let decisions = match (&entry.body, &mut self.fold) {
            (Body::Begun, fold) => {
                let (begun, decisions) = self.begin.begin(self.request.clone(), entry.at);
                *fold = Some(begun);
                decisions
            }
            (Body::Output { attempt, end }, Some(fold)) => {
                self.attempts.entry(*attempt).or_default().fed = *end;
                let offset = end.saturating_sub(u64::try_from(bytes.len()).unwrap_or_default());
                fold.apply(entry.at, Event::Output { attempt: *attempt, offset, bytes })
            }
            (Body::Fact(fact), Some(fold)) => {
                let decisions = fold.apply(entry.at, Event::Fact(fact.clone()));
                self.note(fact);
                decisions
            }
            // No store holds such a log; nothing is lost by skipping the entry.
            (Body::Output { .. } | Body::Fact(_), None) => Vec::new(),
        };
        self.sort(entry.at, decisions)
    }

    /// Reads a part of the log that was not read yet and folds it; false once there is no more.
    ///
    /// Hands out what each entry told. Orders are dropped: [`Self::outstanding`] knows those that still matter.
    pub(crate) fn catch_up(
        &mut self,
        store: &Store,
        mirrors: &mut Mirrors,
        mut each: impl FnMut(Record),
    ) -> Result<bool, Stuck> {
        let run = self.request.run.clone();
        let entries = store.entries(&run, self.next_seq, BATCH)?;
        let Some(last) = entries.last() else {
            return Ok(false);
        };
        let stored = store.decisions(&run, self.next_seq, last.seq)?;
        let mut bytes = Vec::new();
        for entry in entries {
            bytes.clear();
            if let Body::Output { attempt, end } = entry.body {
                self.read(mirrors, attempt, end, &mut bytes)?;
            }
            let step = self.apply(&entry, &bytes);
            if !self.differs && stored.get(&entry.seq).map_or(&[][..], Vec::as_slice) != step.decided {
                self.differs = true;
                tracing::warn!(
                    target: "bursar::runner",
                    run = %run,
                    entry = entry.seq,
                    "this bursar decides otherwise than the one that wrote the log"
                );
            }
            step.records.into_iter().for_each(&mut each);
        }
        Ok(true)
    }

    fn read(
        &self,
        mirrors: &mut Mirrors,
        attempt: AttemptId,
        end: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Stuck> {
        let fed = self.attempt(attempt).fed;
        bytes.resize(usize::try_from(end.saturating_sub(fed)).unwrap_or_default(), 0);
        if mirrors.read(attempt, fed, bytes)? < bytes.len() {
            return Err(Stuck::Short { attempt, have: mirrors.length(attempt)?, need: end });
        }
        Ok(())
    }

    fn note(&mut self, fact: &Fact) {
        match fact {
            Fact::Started { attempt, .. } => self.attempts.entry(*attempt).or_default().started = true,
            Fact::Refused { attempt, .. }
            | Fact::Exited { attempt, .. }
            | Fact::Vanished { attempt, .. }
            | Fact::Lost { attempt, .. } => self.attempts.entry(*attempt).or_default().ended = true,
            Fact::LinkChanged { link } => self.link = *link,
            Fact::Written { .. }
            | Fact::Undeliverable { .. }
            | Fact::InputClosed { .. }
            | Fact::Surveyed { .. }
            | Fact::Stopped { .. }
            | Fact::PickedUp { .. }
            | Fact::Asked { .. }
            | Fact::DeadlinePassed => {}
        }
    }

    fn sort(&mut self, at: At, decisions: Vec<Decision>) -> Step {
        let mut step = Step::default();
        for decision in decisions {
            match decision {
                Decision::Report(notice) => self.tell(*notice, &mut step),
                Decision::Finish(outcome) => {
                    self.over = true;
                    if self.finished.is_none() {
                        self.tell(bare_end(at, *outcome), &mut step);
                    }
                }
                Decision::Start(_)
                | Decision::Write { .. }
                | Decision::CloseInput { .. }
                | Decision::Survey { .. }
                | Decision::Stop { .. } => step.orders.push(decision),
            }
        }
        if self.over {
            step.finished = self.finished.as_ref().and_then(|finished| serde_json::to_string(finished).ok());
        }
        step
    }

    fn tell(&mut self, notice: Notice, step: &mut Step) {
        self.records += 1;
        let record = Record::new(&self.request, self.records, notice);
        if let RecordEvent::Decision(decision) = &record.event {
            step.decided.push(json(decision));
        }
        if let RecordEvent::RunFinished(finished) = &record.event {
            self.finished = Some((**finished).clone());
        }
        step.seen |= self.viewer.apply(&record);
        step.records.push(record);
    }
}

fn json(decision: &DecisionRecord) -> String {
    serde_json::to_string(decision).unwrap_or_default()
}

/// The last notice of a fold that finished without one.
fn bare_end(at: At, outcome: Outcome) -> Notice {
    let finished = bursar_core::notice::Finished {
        outcome,
        session: None,
        turn_budget: 0,
        turns_spent: 0,
        turns_spent_total: 0,
        continues_used: 0,
        continues_limit: 0,
        nudges_used: 0,
        nudges_limit: 0,
        debt: 0,
        background: Vec::new(),
        survivors: Vec::new(),
        cost_usd: 0.0,
        duration_ms: 0,
        text: String::new(),
        attempts: Vec::new(),
        replies: Vec::new(),
        skipped_lines: 0,
    };
    Notice { at, what: What::RunFinished(Box::new(finished)) }
}
