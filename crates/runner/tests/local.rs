//! The real fold, the real holder and the scripted agent, on this machine.
#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bursar_core::event::Ask;
use bursar_core::outcome::Ending;
use bursar_core::policy::{Limits, Request};
use bursar_core::{At, RunId};
use bursar_local::LocalHost;
use bursar_runner::{
    AgentChoice, AgentHost, Clock, Context, Created, FinishedRecord, HolderHost, NewRun, Record, Store,
    SystemClock, Update, attend, replay, updates,
};
use bursar_testkit::scripted::{AgentScript, AttemptScript, Reply, ScriptedAgent, Shell};
use bursar_transport::Holder;
use tokio::sync::mpsc;

struct Machine {
    home: tempfile::TempDir,
    agent: ScriptedAgent,
    run: RunId,
}

impl Machine {
    /// The id marks the run's processes on this machine, so each test has its own.
    fn new(run: &str, script: AttemptScript) -> Self {
        let machine = Self {
            home: tempfile::tempdir().unwrap(),
            agent: ScriptedAgent::new(&AgentScript { attempts: vec![script] }).unwrap(),
            run: RunId(format!("{run}{}", std::process::id())),
        };
        let new = NewRun {
            request: Request {
                run: machine.run.clone(),
                host: "local".to_owned(),
                transport: "local".to_owned(),
                prompt: "Do it.".to_owned(),
                resume: None,
                model: None,
                permission_mode: None,
                agent_args: Vec::new(),
                delivery: None,
                seed: 7,
                limits: Limits { quiet: Duration::from_millis(100), ..Limits::default() },
            },
            dir: machine.home.path().to_str().unwrap().into(),
            agent: AgentChoice {
                name: "claude".to_owned(),
                path: Some(machine.agent.path().to_str().unwrap().to_owned()),
            },
            env: Vec::new(),
            key: None,
        };
        assert_eq!(machine.store().create(&new, SystemClock.now()).unwrap(), Created::New);
        machine
    }

    fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    fn store(&self) -> Arc<Store> {
        Arc::new(Store::open(&self.state().join("bursar")).unwrap())
    }

    /// What one process of bursar has.
    fn context(&self) -> Context {
        context(&self.state())
    }

    async fn attend(&self) -> (FinishedRecord, Vec<Record>) {
        let (send, mut reader) = updates();
        let (_ask, asks) = mpsc::channel::<Ask>(1);
        let context = self.context();
        let finished =
            tokio::time::timeout(Duration::from_secs(60), attend(&context, &self.run, &send, asks)).await;
        drop(send);
        let mut records = Vec::new();
        while let Some(update) = reader.next().await {
            if let Update::Replayed(record) | Update::Live(record) = update {
                records.push(record);
            }
        }
        (finished.unwrap().unwrap(), records)
    }

    fn replayed(&self) -> Vec<Record> {
        let mut records = Vec::new();
        replay(&self.store(), &self.run, |record| records.push(record)).unwrap();
        records
    }
}

fn context(state: &Path) -> Context {
    let store = Arc::new(Store::open(&state.join("bursar")).unwrap());
    let local = LocalHost::new().env("XDG_STATE_HOME", state);
    let host: Arc<dyn AgentHost> =
        Arc::new(HolderHost::new(Holder::new(Arc::new(local)), Arc::clone(&store)));
    Context::new(store, Arc::new(move |_| Arc::clone(&host)))
}

fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| record.event.name()).collect()
}

fn replies(replies: Vec<Vec<bursar_testkit::scripted::Action>>) -> AttemptScript {
    AttemptScript { replies, ..AttemptScript::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_answers_at_once_is_done_and_its_log_replays_alike() {
    let machine = Machine::new("done", replies(vec![Reply::new().text("hello").success()]));
    let begun = Instant::now();
    let (finished, records) = machine.attend().await;
    let took = begun.elapsed();
    assert_eq!((finished.outcome, finished.text.as_str()), (Ending::Done, "hello"), "{finished:?}");
    assert_eq!(records, machine.replayed());
    assert_eq!(names(&records).last(), Some(&"run_finished"));
    assert_eq!(machine.agent.starts().unwrap(), 1);
    // Not an assertion on speed: a machine under test load is slow. It catches waits that should not be.
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_that_die_one_after_the_other_lose_nothing() {
    let woken = Reply::woken("b1").text("collected").success();
    let script = Reply::new()
        .text("started")
        .launch(Shell::new("b1", "sleep 1").waking(woken))
        .text("left it running")
        .success();
    let machine = Machine::new("dies", replies(vec![script]));
    for lived in [5, 20, 60, 120, 200, 300, 400] {
        let context = machine.context();
        let (send, _reader) = updates();
        let (_ask, asks) = mpsc::channel(1);
        // Dropped wherever it is by then.
        let cut =
            tokio::time::timeout(Duration::from_millis(lived), attend(&context, &machine.run, &send, asks));
        drop(cut.await);
    }
    let (finished, records) = machine.attend().await;
    assert_eq!((finished.outcome, finished.text.as_str()), (Ending::Done, "collected"), "{finished:?}");
    assert_eq!(finished.debt, 0);
    assert_eq!(machine.agent.starts().unwrap(), 1);
    assert_eq!(machine.agent.messages().unwrap().len(), 1);
    let numbers: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=u64::try_from(records.len()).unwrap()).collect::<Vec<_>>());
    assert_eq!(records, machine.replayed());
}

/// Names the state folder and the run to a child process of the next test.
const CHILD: [&str; 2] = ["BURSAR_TEST_STATE", "BURSAR_TEST_RUN"];

#[tokio::test(flavor = "multi_thread")]
async fn drivers_that_are_killed_lose_nothing() {
    if let [Some(state), Some(run)] = CHILD.map(std::env::var_os) {
        // This is the child: drive until killed.
        let (send, _reader) = updates();
        let (_ask, asks) = mpsc::channel(1);
        let run = RunId(run.into_string().unwrap());
        attend(&context(state.as_ref()), &run, &send, asks).await.unwrap();
        return;
    }
    let woken = Reply::woken("b1").text("collected").success();
    let script = Reply::new()
        .text("started")
        .launch(Shell::new("b1", "sleep 1").waking(woken))
        .text("left it running")
        .success();
    let machine = Machine::new("killed", replies(vec![script]));
    for lived in [15, 30, 45, 60, 100, 200, 400, 800] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "drivers_that_are_killed_lose_nothing"])
            .envs([(CHILD[0], machine.state().as_os_str()), (CHILD[1], machine.run.0.as_ref())])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Not waited for anything: it dies wherever it is by then.
        tokio::time::sleep(Duration::from_millis(lived)).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (finished, records) = machine.attend().await;
    assert_eq!((finished.outcome, finished.text.as_str()), (Ending::Done, "collected"), "{finished:?}");
    assert_eq!((machine.agent.starts().unwrap(), machine.agent.messages().unwrap().len()), (1, 1));
    assert_eq!(records, machine.replayed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_agent_and_what_it_started() {
    let script = Reply::new().launch(Shell::new("b1", "sleep 600")).text("left it running").success();
    let machine = Machine::new("stop", replies(vec![script]));
    let context = machine.context();
    let (send, mut reader) = updates();
    let (ask, asks) = mpsc::channel(1);
    let run = machine.run.clone();
    let driver = tokio::spawn(async move { attend(&context, &run, &send, asks).await });
    while let Some(update) = reader.next().await {
        let Update::Live(record) = update else { continue };
        if record.event.name() == "background" {
            ask.send(Ask::Stop { now: true }).await.unwrap();
            break;
        }
    }
    let finished = driver.await.unwrap().unwrap();
    assert_eq!((finished.outcome, finished.exit_code), (Ending::Stopped, 8), "{finished:?}");
    assert_eq!(finished.survivors, []);
}

#[test]
fn what_never_began_replays_to_nothing() {
    let machine = Machine::new("none", replies(Vec::new()));
    assert_eq!(machine.replayed(), []);
    assert_eq!(machine.store().list(false).unwrap().len(), 1);
    assert!(replay(&machine.store(), &RunId("unknown2".to_owned()), |_| {}).is_err());
    assert!(SystemClock.now() > At(0));
}
