//! Talks to an agent process with nothing in between: for tests of the test kit and of the agent's own behaviour.
//!
//! Stdin stays open until [`DirectAgent::close_input`]; every line of stdout is kept. Waiting is always for a condition
//! and always bounded. It knows the wire only as far as "one JSON object a line".

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Why a conversation with an agent process went wrong.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// The process could not be started.
    #[error("the agent could not be started")]
    Spawn(#[source] io::Error),
    /// Its input is closed.
    #[error("the agent's input is closed")]
    Input(#[source] io::Error),
    /// Nothing that was waited for came in time.
    #[error("the agent did not {awaited} within {within:?}; stdout so far:\n{stdout}\nstderr:\n{stderr}")]
    TooLate {
        /// What was waited for.
        awaited: &'static str,
        /// The bound.
        within: Duration,
        /// All lines so far, each cut short.
        stdout: String,
        /// All of stderr.
        stderr: String,
    },
}

/// One running agent process. Dropping it kills the process, not what the process started.
#[derive(Debug)]
pub struct DirectAgent {
    child: Child,
    stdin: Option<ChildStdin>,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    stdout_closed: bool,
    stderr: String,
}

impl DirectAgent {
    /// Starts `command` with all three streams piped.
    pub fn start(mut command: Command) -> Result<Self, DirectError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(DirectError::Spawn)?;
        let seen = Arc::new(Seen::default());
        if let Some(stdout) = child.stdout.take() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || seen.read_lines(stdout));
        }
        if let Some(stderr) = child.stderr.take() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || seen.read_stderr(stderr));
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, seen })
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends one user message, with `uuid` if there is one.
    pub fn send(&mut self, text: &str, uuid: Option<&str>) -> Result<(), DirectError> {
        let mut message = json!({"type": "user", "message": {"role": "user", "content": text}});
        if let Some(uuid) = uuid {
            message["uuid"] = Value::from(uuid);
        }
        self.write(format!("{message}\n").as_bytes())
    }

    /// Sends one control request, for example `interrupt` or `end_session`.
    pub fn control(&mut self, request_id: &str, subtype: &str) -> Result<(), DirectError> {
        let request =
            json!({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype}});
        self.write(format!("{request}\n").as_bytes())
    }

    /// Writes bytes to stdin as they are.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DirectError> {
        let Some(stdin) = self.stdin.as_mut() else {
            return Err(DirectError::Input(io::ErrorKind::BrokenPipe.into()));
        };
        stdin.write_all(bytes).and_then(|()| stdin.flush()).map_err(DirectError::Input)
    }

    /// Closes stdin.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Returns every line of stdout so far.
    pub fn lines(&self) -> Vec<String> {
        self.seen.state.lock().unwrap_or_else(PoisonError::into_inner).lines.clone()
    }

    /// Returns every event so far whose `type` is `kind`; lines that are not JSON are passed over.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        events_in(&self.lines(), kind)
    }

    /// Waits until stdout holds `count` events of the type `kind` and returns all of them.
    pub fn wait_for(&self, kind: &str, count: usize, within: Duration) -> Result<Vec<Value>, DirectError> {
        self.wait(within, "print the events awaited", |state| {
            let events = events_in(&state.lines, kind);
            (events.len() >= count).then_some(events)
        })
    }

    /// Waits until the process has ended and stdout is closed.
    pub fn wait_for_exit(&mut self, within: Duration) -> Result<ExitStatus, DirectError> {
        self.wait(within, "close its stdout", |state| state.stdout_closed.then_some(()))?;
        // Stdout closes a moment before the process is gone, so this poll is short.
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(self.too_late("exit", within))
    }

    fn wait<T>(
        &self,
        within: Duration,
        awaited: &'static str,
        ready: impl Fn(&State) -> Option<T>,
    ) -> Result<T, DirectError> {
        let deadline = Instant::now() + within;
        let mut state = self.seen.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(value) = ready(&state) {
                return Ok(value);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.stdout_closed {
                drop(state);
                return Err(self.too_late(awaited, within));
            }
            state = self.seen.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn too_late(&self, awaited: &'static str, within: Duration) -> DirectError {
        let state = self.seen.state.lock().unwrap_or_else(PoisonError::into_inner);
        let short = |line: &String| line.chars().take(300).collect::<String>();
        let stdout = state.lines.iter().map(short).collect::<Vec<_>>().join("\n");
        DirectError::TooLate { awaited, within, stdout, stderr: state.stderr.clone() }
    }
}

impl Drop for DirectAgent {
    fn drop(&mut self) {
        // An error here means that it has ended already, which is what is wanted.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Seen {
    fn read_lines(&self, stdout: impl Read) {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while let Ok(1..) = stdout.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            self.update(|state| state.lines.push(text));
            line.clear();
        }
        self.update(|state| state.stdout_closed = true);
    }

    fn read_stderr(&self, mut stderr: impl Read) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            self.update(|state| state.stderr.push_str(&text));
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

fn events_in(lines: &[String], kind: &str) -> Vec<Value> {
    let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["type"] == kind).collect()
}
