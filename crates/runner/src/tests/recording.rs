//! What is written down beside the facts: decisions, in the log of the run and in that of the program.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::{Crash, Setup};
use crate::record::{Record, RecordEvent};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn lines(&self) -> Vec<serde_json::Value> {
        let bytes = self.0.lock().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn subscribe(&self) -> tracing::subscriber::DefaultGuard {
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }
}

#[expect(clippy::unwrap_in_result, reason = "in a test")]
impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const SCRIPT: &[&str] = &["ask one\n", "ask two\n", "text hello\nclose\n"];

#[tokio::test(start_paused = true)]
async fn every_decision_is_logged_once_with_all_its_fields_whoever_drives() {
    let mut setup = Setup::new(SCRIPT);
    let captured = Captured::default();
    let _guard = captured.subscribe();
    setup.context.crash = Crash::at(20);
    assert!(setup.attend().await.0.is_err());
    let before = captured.lines().len();
    setup.context.crash = Crash::default();
    setup.attend().await.0.unwrap();
    setup.attend().await.0.unwrap();

    let lines = captured.lines();
    let decisions: Vec<_> = lines.iter().filter(|line| line["target"] == "bursar::decision").collect();
    let actions: Vec<_> = decisions.iter().map(|line| line["fields"]["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["continue", "continue", "finish"]);
    assert!((1..3).contains(&before), "{before} were logged before the crash");
    let fields = decisions[0]["fields"].as_object().unwrap();
    for field in [
        "run",
        "host",
        "transport",
        "attempt",
        "reply",
        "reason",
        "action",
        "turn_budget",
        "turns_spent",
        "turns_spent_total",
        "continues_used",
        "continues_limit",
        "nudges_used",
        "nudges_limit",
        "debt",
        "cost_usd",
        "message",
    ] {
        assert!(fields.contains_key(field), "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_another_bursar_decided_otherwise_is_named() {
    let setup = Setup::new(SCRIPT);
    setup.attend().await.0.unwrap();
    let database = rusqlite::Connection::open(setup.dir.path().join("runs.db")).unwrap();
    let changed = database
        .execute("UPDATE decisions SET decision = replace(decision, 'continue', 'nudge') WHERE place = 0", [])
        .unwrap();
    assert_eq!(changed, 3);
    let captured = Captured::default();
    let guard = captured.subscribe();
    setup.replayed();
    drop(guard);
    let lines = captured.lines();
    assert_eq!(lines.len(), 1, "once a fold, not once an entry: {lines:?}");
    assert_eq!((&lines[0]["level"], &lines[0]["fields"]["run"]), (&"WARN".into(), &"abcd2345".into()));
}

#[tokio::test(start_paused = true)]
async fn a_record_reads_back_as_it_was_written() {
    let setup = Setup::new(SCRIPT);
    let (_, told) = setup.attend().await;
    for update in told {
        let crate::Update::Live(record) = update else { continue };
        let json = record.to_json();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["v"], &value["event"]), (&1.into(), &record.event.name().into()));
        if let RecordEvent::RunFinished(_) = record.event {
            for field in [
                "outcome",
                "reason",
                "exit_code",
                "session",
                "host",
                "attempts",
                "replies",
                "turns",
                "continues",
                "nudges",
                "debt",
                "background",
                "survivors",
                "cost_usd",
                "duration_ms",
                "text",
            ] {
                assert!(value.get(field).is_some(), "{field}");
            }
        }
    }
}
