//! The product while it runs: its records as they come, and a way to send signals.

use std::io::Read;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::rig::{PATIENCE, Ran, decision, word};

/// A call of the product that goes on. Killed when dropped before its end.
pub(crate) struct Going {
    child: Child,
    begun: Instant,
    stdout: Arc<Pipe>,
    stderr: Arc<Pipe>,
    readers: Vec<JoinHandle<()>>,
}

/// What a pipe gave so far.
#[derive(Default)]
struct Pipe {
    state: Mutex<(Vec<u8>, bool)>,
    grown: Condvar,
}

impl Going {
    #[track_caller]
    pub(crate) fn begin(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (Arc::<Pipe>::default(), Arc::<Pipe>::default());
        let readers = vec![
            drain(child.stdout.take().unwrap(), stdout.clone()),
            drain(child.stderr.take().unwrap(), stderr.clone()),
        ];
        Self { child, begun: Instant::now(), stdout, stderr, readers }
    }

    /// Returns the writing end of a stdin that was asked for as a pipe.
    #[track_caller]
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits for a record of this kind for which `wanted` holds.
    #[track_caller]
    pub(crate) fn record(&self, event: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.stdout.state.lock().unwrap();
        let mut seen = 0;
        loop {
            while let Some(length) = state.0[seen..].iter().position(|byte| *byte == b'\n') {
                let record: Value = serde_json::from_slice(&state.0[seen..seen + length]).unwrap();
                seen += length + 1;
                if record["event"] == event && wanted(&record) {
                    return record;
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.1 || left.is_zero() {
                let text = String::from_utf8_lossy(&state.0).into_owned();
                drop(state);
                panic!("no {event} as awaited in:\n{text}\n{}", self.stderr.text());
            }
            state = self.stdout.grown.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits for a decision, written `action/reason`.
    #[track_caller]
    pub(crate) fn decision(&self, wanted: &str) -> Value {
        self.record("decision", |record| decision(record) == wanted)
    }

    /// Returns the run's id, once it is told.
    #[track_caller]
    pub(crate) fn run(&self) -> String {
        word(&self.record("run_started", |_| true), "run").to_owned()
    }

    /// Returns the process of an attempt, once it runs.
    #[track_caller]
    pub(crate) fn agent(&self, attempt: u64) -> Pid {
        let record = self.record("attempt_started", |record| record["attempt"] == attempt);
        Pid::from_raw(i32::try_from(record["pid"].as_i64().unwrap()).unwrap()).unwrap()
    }

    /// Sends a signal to the process of an attempt.
    #[track_caller]
    pub(crate) fn signal_agent(&self, attempt: u64, signal: Signal) {
        kill_process(self.agent(attempt), signal).unwrap();
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= deadline {
                panic!("it does not end; so far:\n{}\n{}", self.stdout.text(), self.stderr.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = self.begun.elapsed();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let stdout = std::mem::take(&mut self.stdout.state.lock().unwrap().0);
        Ran { code: status.code().unwrap_or(-1), stdout, stderr: self.stderr.text(), took }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Pipe {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.state.lock().unwrap().0).into_owned()
    }
}

fn drain(mut from: impl Read + Send + 'static, to: Arc<Pipe>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            let mut state = to.state.lock().unwrap();
            state.0.extend_from_slice(&buffer[..count]);
            state.1 = count == 0;
            to.grown.notify_all();
            if count == 0 {
                return;
            }
        }
    })
}
