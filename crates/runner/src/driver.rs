//! The driver: the one loop that feeds a run's fold and has its orders carried out.
//!
//! For every event the order is: the bytes go to the mirror, the fold takes the event in, event and decisions go to
//! the log in one transaction, watchers are told, orders are carried out. Nobody outside sees a thing before it is in
//! the log, so a driver can be killed, or its future dropped, at any point.

use std::collections::BTreeSet;
use std::time::Duration;

use bursar_core::event::{Ask, Fact};
use bursar_core::phase::Link;
use bursar_core::{At, AttemptId};
use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::carry::{Carrier, Report};
use crate::decision_log::log_decision;
use crate::error::RunnerError;
use crate::host::AgentHost;
use crate::lock::DriverLock;
use crate::reader::Reader;
use crate::record::FinishedRecord;
use crate::refold::refold;
use crate::run_clock::RunClock;
use crate::store::Mark;
use crate::store::log::{Beside, Body, Entry};
use crate::updates::Update;

/// How often wishes of other processes are looked for.
const LOOK: Duration = Duration::from_millis(250);

/// How long a deadline waits for the first news of a host whose link is up.
const NEWS_WITHIN: Duration = Duration::from_secs(30);

/// How often is noted that the run is driven.
const BEAT: Duration = Duration::from_secs(1);

/// How long the loop must not have come round to have been asleep.
const ASLEEP: Duration = Duration::from_secs(2);

/// The most bytes one entry of the log stands for.
const CHUNK: usize = 256 * 1024;

/// When the fold wants to be called again.
enum Due {
    /// It was, just now.
    Fed,
    In(Duration),
    Never,
}

/// A run that this process drives.
pub(crate) struct Driver<'a> {
    reader: Reader<'a>,
    carrier: Carrier,
    reports: mpsc::Receiver<Report>,
    /// A report that was taken from the channel but not handled.
    held: Option<Report>,
    clock: RunClock,
    /// Whether orders are carried out as they are made; before, the fold keeps them.
    carrying: bool,
    /// The conversations whose link is down.
    down: BTreeSet<u64>,
    down_since: Option<Instant>,
    /// The followers that have handed out all that their host had.
    current: BTreeSet<u64>,
    /// Since when a deadline waits for news.
    silent_since: Option<Instant>,
    /// When the loop last came round, by the run's clock.
    round: At,
    /// A deadline that came and that the fold still names: it must not spin, and is fed again at the next look.
    stale: Option<At>,
    /// The store when wishes were last looked for.
    looked: Option<Mark>,
    /// When it was last noted that the run is driven.
    beaten: Instant,
    /// Kept to the end.
    lock: DriverLock,
}

impl<'a> Driver<'a> {
    /// Takes a run up where its log ends.
    pub(crate) async fn take_up(
        mut reader: Reader<'a>,
        lock: DriverLock,
        host: std::sync::Arc<dyn AgentHost>,
    ) -> Result<Self, RunnerError> {
        refold(&mut reader, &*host).await?;
        let (carrier, reports) = Carrier::new(reader.context, &reader.stored, host);
        let mut clock = RunClock::new(reader.context.clock.clone(), reader.folded.last_at());
        let round = clock.now();
        let mut driver = Self {
            reader,
            carrier,
            reports,
            held: None,
            clock,
            carrying: false,
            down: BTreeSet::new(),
            down_since: None,
            current: BTreeSet::new(),
            silent_since: None,
            round,
            stale: None,
            looked: None,
            beaten: Instant::now(),
            lock,
        };
        if driver.reader.folded.has_begun() {
            let noted = driver.lock.driven_before().unwrap_or(round);
            driver.picked_up(noted.max(driver.reader.folded.last_at()))?;
        } else {
            driver.feed(Body::Begun, &[], None)?;
        }
        driver.lock.beat(driver.clock.now());
        driver.feed_tails()?;
        driver.resume();
        Ok(driver)
    }

    /// Drives the run to its end.
    pub(crate) async fn drive(
        mut self,
        asks: &mut mpsc::Receiver<Ask>,
    ) -> Result<FinishedRecord, RunnerError> {
        let mut look = Instant::now();
        let mut asks_open = true;
        loop {
            if let Some(finished) = self.reader.folded.finished() {
                return Ok(finished.clone());
            }
            self.notice_sleep()?;
            let sleep = match self.deadline()? {
                Due::Fed => continue,
                Due::In(span) => Some(span),
                Due::Never => None,
            };
            if Instant::now() >= look {
                self.look()?;
                look = Instant::now() + LOOK;
                continue;
            }
            if let Some(report) = self.held.take() {
                self.handle(report)?;
                continue;
            }
            tokio::select! {
                biased;
                ask = asks.recv(), if asks_open => match ask {
                    Some(ask) => self.fact(Fact::Asked { ask })?,
                    None => asks_open = false,
                },
                // The carrier keeps a sender, so the channel never closes.
                Some(report) = self.reports.recv() => {
                    // A wish that was there before the end of a run is not too late.
                    self.take_wishes()?;
                    self.handle(report)?;
                }
                what = self.carrier.broken() => return Err(RunnerError::Bug { what }),
                () = tokio::time::sleep_until(look) => {}
                () = tokio::time::sleep(sleep.unwrap_or(LOOK)), if sleep.is_some() => {}
            }
        }
    }

    /// Feeds the deadline if it came.
    fn deadline(&mut self) -> Result<Due, RunnerError> {
        let Some(due) = self.reader.folded.next_deadline() else {
            return Ok(Due::Never);
        };
        let now = self.clock.now();
        if due > now {
            return Ok(Due::In(due.since(now)));
        }
        if self.stale == Some(due) || self.awaits_news() {
            return Ok(Due::Never);
        }
        self.fact(Fact::DeadlinePassed)?;
        self.stale = self.reader.folded.next_deadline().filter(|next| *next == due);
        Ok(Due::Fed)
    }

    /// Whether a deadline has to wait for the host's news. A link that is up and brings none for long holds back nothing: a
    /// follower can be stopped and never say a word.
    fn awaits_news(&mut self) -> bool {
        if self.is_current() {
            self.silent_since = None;
            return false;
        }
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        !self.down.is_empty() || since.elapsed() < NEWS_WITHIN
    }

    /// Whether all is known that the living agents' host knew a moment ago. While it is not (this process was dead or
    /// asleep, or the link is down), no deadline comes: what happened in time may lie on the host, still unread.
    fn is_current(&self) -> bool {
        let mut living =
            self.reader.folded.attempts().filter(|(_, attempt)| attempt.started && !attempt.ended);
        living.all(|(attempt, _)| self.carrier.follower(attempt).is_some_and(|id| self.current.contains(&id)))
    }

    /// Follows all living agents afresh if this process did not run for a while: what it knows is old, and the link
    /// may be dead without having said so.
    fn notice_sleep(&mut self) -> Result<(), RunnerError> {
        let now = self.clock.now();
        let before = std::mem::replace(&mut self.round, now);
        if now.since(before) < ASLEEP {
            return Ok(());
        }
        self.picked_up(before)?;
        let attempts: Vec<_> = self.reader.folded.attempts().collect();
        for (attempt, state) in attempts {
            // One that is not current is about to be anyway.
            let current = self.carrier.follower(attempt).is_some_and(|id| self.current.remove(&id));
            if current && state.started && !state.ended {
                self.carrier.follow_afresh(attempt, state.fed);
            }
        }
        Ok(())
    }

    /// Tells the fold that nobody drove the run since then, if that is long ago.
    fn picked_up(&mut self, undriven_since: At) -> Result<(), RunnerError> {
        if self.clock.now().since(undriven_since) < ASLEEP {
            return Ok(());
        }
        self.fact(Fact::PickedUp { undriven_since })
    }

    /// Looks for wishes of other processes, and for a link that has been down for too long to know anything.
    fn look(&mut self) -> Result<(), RunnerError> {
        self.stale = None;
        if self.beaten.elapsed() >= BEAT {
            self.beaten = Instant::now();
            self.lock.beat(self.clock.now());
        }
        self.take_wishes()?;
        let long =
            self.down_since.is_some_and(|since| since.elapsed() >= self.reader.context.patience.unverifiable);
        if long && self.reader.folded.link() == Link::Reconnecting {
            self.fact(Fact::LinkChanged { link: Link::Unverifiable })?;
        }
        Ok(())
    }

    /// Takes up what other processes want, if the store was written to since.
    fn take_wishes(&mut self) -> Result<(), RunnerError> {
        let mark = self.reader.context.store.mark()?;
        if self.looked == Some(mark) {
            return Ok(());
        }
        self.looked = Some(mark);
        for (id, ask) in self.reader.context.store.open_asks(self.reader.run())? {
            self.feed(Body::Fact(Fact::Asked { ask }), &[], Some(id))?;
        }
        Ok(())
    }

    fn handle(&mut self, report: Report) -> Result<(), RunnerError> {
        match report {
            Report::Output { attempt, offset, bytes } => self.output(attempt, offset, bytes),
            Report::Fact(fact) => {
                // An attempt ends once, whoever says so first.
                let again = match &fact {
                    Fact::Exited { attempt, .. }
                    | Fact::Vanished { attempt, .. }
                    | Fact::Refused { attempt, .. } => self.reader.folded.attempt(*attempt).ended,
                    // Contact can also be given up when the attempt is over and a survey is due.
                    Fact::Lost { .. }
                    | Fact::Started { .. }
                    | Fact::LinkChanged { .. }
                    | Fact::Written { .. }
                    | Fact::Undeliverable { .. }
                    | Fact::InputClosed { .. }
                    | Fact::Surveyed { .. }
                    | Fact::PickedUp { .. }
                    | Fact::Stopped { .. }
                    | Fact::Asked { .. }
                    | Fact::DeadlinePassed => false,
                };
                if again { Ok(()) } else { self.fact(fact) }
            }
            Report::CaughtUp(id) => {
                self.current.insert(id);
                Ok(())
            }
            Report::Behind(id) => {
                self.current.remove(&id);
                Ok(())
            }
            Report::Down(id) | Report::Up(id) if self.carrier.is_over(id) => Ok(()),
            Report::Down(id) => {
                self.down.insert(id);
                self.down_since.get_or_insert_with(Instant::now);
                self.link(Link::Reconnecting, |link| link == Link::Live)
            }
            Report::Up(id) => {
                self.down.remove(&id);
                if !self.down.is_empty() {
                    return Ok(());
                }
                self.down_since = None;
                self.link(Link::Live, |link| link != Link::Live)
            }
        }
    }

    fn link(&mut self, link: Link, from: impl Fn(Link) -> bool) -> Result<(), RunnerError> {
        if from(self.reader.folded.link()) { self.fact(Fact::LinkChanged { link }) } else { Ok(()) }
    }

    /// Feeds output, together with what waits behind it, up to a size.
    fn output(&mut self, attempt: AttemptId, offset: u64, bytes: Bytes) -> Result<(), RunnerError> {
        let fed = self.reader.folded.attempt(attempt).fed;
        if offset > fed {
            let what = format!("the host skipped bytes {fed} to {offset} of attempt {attempt}");
            return Err(RunnerError::Bug { what });
        }
        let mut end = offset + length(&bytes);
        let mut bytes = bytes.slice(usize::try_from(fed - offset).unwrap_or(usize::MAX).min(bytes.len())..);
        let mut joined: Option<BytesMut> = None;
        while joined.as_ref().map_or(bytes.len(), BytesMut::len) < CHUNK {
            match self.reports.try_recv() {
                Ok(Report::Output { attempt: next, offset, bytes: more })
                    if next == attempt && offset == end =>
                {
                    end += length(&more);
                    joined.get_or_insert_with(|| BytesMut::from(&bytes[..])).extend_from_slice(&more);
                }
                Ok(other) => {
                    self.held = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        if let Some(joined) = joined {
            bytes = joined.freeze();
        }
        if bytes.is_empty() {
            return Ok(());
        }
        #[cfg(test)]
        self.crash_in(|mirrors| mirrors.append(attempt, &bytes[..bytes.len() / 2]))?;
        self.reader.mirrors.append(attempt, &bytes)?;
        self.feed(Body::Output { attempt, end }, &bytes, None)
    }

    /// Fails here if a test wants the driver to die at this point, after its `last` act.
    #[cfg(test)]
    fn crash_in(
        &mut self,
        last: impl FnOnce(&mut crate::store::mirror::Mirrors) -> Result<(), crate::StoreError>,
    ) -> Result<(), RunnerError> {
        if self.reader.context.crash.is_due() {
            last(&mut self.reader.mirrors)?;
            return Err(RunnerError::Bug { what: "crashed for a test".to_owned() });
        }
        Ok(())
    }

    fn fact(&mut self, fact: Fact) -> Result<(), RunnerError> {
        self.feed(Body::Fact(fact), &[], None)
    }

    /// Takes in one event: fold, log, watchers, orders. Bytes are in the mirror already.
    fn feed(&mut self, body: Body, bytes: &[u8], ask: Option<i64>) -> Result<(), RunnerError> {
        #[cfg(test)]
        self.crash_in(|_| Ok(()))?;
        let at = self.clock.now();
        let entry = Entry { seq: self.reader.folded.next_seq(), at, body };
        let step = self.reader.folded.apply(&entry, bytes);
        let beside = Beside { decisions: &step.decided, ask, finished: step.finished.as_deref() };
        self.reader.context.store.append(self.reader.run(), &entry, &beside)?;
        #[cfg(test)]
        self.crash_in(|_| Ok(()))?;
        for record in step.records {
            log_decision(&record);
            self.reader.updates.send(Update::Live(record));
        }
        if step.seen {
            self.reader.show();
        }
        if !self.carrying {
            return Ok(());
        }
        #[cfg(test)]
        self.crash_in(|_| Ok(()))?;
        if let Body::Fact(Fact::Started { attempt, .. }) = &entry.body {
            self.carrier.follow(*attempt, self.reader.folded.attempt(*attempt).fed);
        }
        self.carry(step.orders);
        Ok(())
    }

    fn carry(&mut self, orders: Vec<bursar_core::Decision>) {
        let folded = &self.reader.folded;
        let last = folded.attempts().last().map_or(AttemptId(1), |(attempt, _)| attempt);
        let reached = folded.attempts().any(|(_, attempt)| attempt.started);
        for order in orders {
            let missing = self.carrier.carry(order, last, reached);
            if !missing.is_empty() {
                let names = missing.join(", ");
                self.reader.updates.send(Update::Warning(format!(
                    "the agent starts without {names}: asked for with --env, but not set here"
                )));
            }
        }
    }

    /// Feeds bytes that an earlier driver mirrored but did not get to fold.
    fn feed_tails(&mut self) -> Result<(), RunnerError> {
        for (attempt, _) in self.reader.context.store.mirrors(self.reader.run())? {
            let attempt = AttemptId(attempt);
            let mut buffer = vec![0; CHUNK];
            loop {
                let fed = self.reader.folded.attempt(attempt).fed;
                let read = self.reader.mirrors.read(attempt, fed, &mut buffer)?;
                let Some(bytes @ [_, ..]) = buffer.get(..read) else {
                    break;
                };
                let end = fed + length(bytes);
                self.feed(Body::Output { attempt, end }, bytes, None)?;
            }
        }
        Ok(())
    }

    /// Has everything carried out that was decided and not answered, and follows every agent that may live.
    fn resume(&mut self) {
        self.carrying = true;
        let outstanding = self.reader.folded.outstanding();
        self.carry(outstanding);
        for (attempt, state) in self.reader.folded.attempts() {
            if state.started && !state.ended {
                self.carrier.follow(attempt, state.fed);
            }
        }
    }
}

pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
