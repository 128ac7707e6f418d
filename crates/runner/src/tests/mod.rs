//! The loop's own promises, kept with a fold and a host made for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bursar_core::event::Ask;
use bursar_core::policy::{Limits, Request};
use bursar_core::{At, RunId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::attend::replay_with;
use crate::record::{FinishedRecord, Record};
use crate::{
    AgentChoice, AgentHost, Clock, Context, Created, NewRun, RunnerError, Store, Update, UpdatesReader,
    attend, updates,
};

mod crashes;
mod driving;
mod fake_fold;
mod fake_host;
mod links;
mod recording;
mod storing;
mod watching;

use fake_host::FakeHost;

/// Kills a driver at a chosen point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crash(Option<Arc<AtomicI64>>);

impl Crash {
    /// Dies at the point of this number, counted from 0.
    fn at(point: i64) -> Self {
        Self(Some(Arc::new(AtomicI64::new(point))))
    }

    pub(crate) fn is_due(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.fetch_sub(1, Ordering::Relaxed) == 0)
    }
}

/// A clock that follows tokio's and jumps when told.
#[derive(Debug)]
struct TestClock {
    begun: Instant,
    base: AtomicU64,
}

impl TestClock {
    fn new() -> Self {
        Self { begun: Instant::now(), base: AtomicU64::new(1_800_000_000_000) }
    }

    fn jump(&self, millis: i64) {
        let base = self.base.load(Ordering::Relaxed);
        self.base.store(base.saturating_add_signed(millis), Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> At {
        At(self.base.load(Ordering::Relaxed)).after(self.begun.elapsed())
    }
}

/// A store with one run of the fake agent in it.
struct Setup {
    dir: tempfile::TempDir,
    run: RunId,
    host: Arc<FakeHost>,
    clock: Arc<TestClock>,
    context: Context,
}

fn request(run: &str) -> Request {
    Request {
        run: RunId(run.to_owned()),
        host: "fake".to_owned(),
        transport: "fake".to_owned(),
        prompt: "\n  Do it.\nWell.".to_owned(),
        resume: None,
        model: None,
        permission_mode: None,
        agent_args: Vec::new(),
        delivery: None,
        seed: 7,
        limits: Limits::default(),
    }
}

fn new_run(run: &str) -> NewRun {
    NewRun {
        request: request(run),
        dir: b"/srv".to_vec(),
        agent: AgentChoice { name: "claude".to_owned(), path: None },
        env: Vec::new(),
        key: None,
    }
}

impl Setup {
    /// The agent writes `reactions[n]` once its input journal holds n messages, and exits when its input is closed.
    fn new(reactions: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let clock = Arc::new(TestClock::new());
        let new = new_run("abcd2345");
        assert_eq!(store.create(&new, clock.now()).unwrap(), Created::New);
        let host = Arc::new(FakeHost::new(reactions));
        let context = context(store, &host, &clock);
        Self { dir, run: new.request.run, host, clock, context }
    }

    /// A second process: its own connection to the store, the same host.
    fn other_process(&self) -> Context {
        context(Store::open(self.dir.path()).unwrap(), &self.host, &self.clock)
    }

    async fn attend(&self) -> (Result<FinishedRecord, RunnerError>, Vec<Update>) {
        let (send, reader) = updates();
        let (_ask, asks) = mpsc::channel(1);
        let result = attend(&self.context, &self.run, &send, asks).await;
        drop(send);
        (result, drain(reader).await)
    }

    /// Folds the log and returns all records without their times, which a crash may change.
    fn replayed(&self) -> Vec<Record> {
        let mut records = Vec::new();
        replay_with(&self.context.store, &self.run, self.context.begin.clone(), |record| {
            records.push(timeless(record));
        })
        .unwrap();
        records
    }

    /// Asserts that the mirrors hold what the host's spools hold.
    #[track_caller]
    fn assert_mirrored(&self) {
        let mirrors = self.context.store.mirrors(&self.run).unwrap();
        let mirrored: Vec<_> =
            mirrors.into_iter().map(|(attempt, path)| (attempt, std::fs::read(path).unwrap())).collect();
        assert_eq!(mirrored, self.host.spools());
    }
}

fn context(store: Store, host: &Arc<FakeHost>, clock: &Arc<TestClock>) -> Context {
    let host = Arc::clone(host);
    let hosts = Arc::new(move |_: &str| -> Arc<dyn AgentHost> { Arc::clone(&host) as Arc<dyn AgentHost> });
    let mut context = Context::new(Arc::new(store), hosts);
    context.clock = Arc::clone(clock) as Arc<dyn Clock>;
    context.begin = fake_fold::begin();
    context
}

async fn drain(mut reader: UpdatesReader) -> Vec<Update> {
    let mut all = Vec::new();
    while let Some(update) = reader.next().await {
        all.push(update);
    }
    all
}

fn timeless(mut record: Record) -> Record {
    record.at = At(0);
    record
}

/// The records among updates, without their times.
fn records(updates: &[Update]) -> Vec<Record> {
    updates
        .iter()
        .filter_map(|update| match update {
            Update::Replayed(record) | Update::Live(record) => Some(timeless(record.clone())),
            Update::View(_) | Update::Driving(_) | Update::Warning(_) => None,
        })
        .collect()
}

fn names(updates: &[Update]) -> Vec<&'static str> {
    records(updates).iter().map(|record| record.event.name()).collect()
}

/// Waits until something holds, for at most a virtual minute.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn stop() -> Ask {
    Ask::Stop { now: false }
}
