//! Starts the `bursar` of this build with a home of its own and nothing of the user's environment.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a helper of a test fails as a test does")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// What must have happened by then; reached only by a failing test.
pub(crate) const BOUND: Duration = Duration::from_secs(40);

/// A home folder for one test.
pub(crate) struct Home {
    folder: TempDir,
}

/// What a finished command printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("bursar-cli-").tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of the store.
    pub(crate) fn store(&self) -> PathBuf {
        self.path().join(".local/state/bursar")
    }

    /// Prepares a command; it runs in the home folder, without a terminal.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bursar"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("NO_COLOR", "1")
            .env("TMPDIR", self.path())
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Printed {
        self.bounded(self.command(args).spawn().unwrap(), args)
    }

    /// Runs a command to its end, with this on its stdin.
    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &[u8]) -> Printed {
        use std::io::Write as _;
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A command that does not read its stdin may be gone already.
        pipe.write_all(stdin).ok();
        drop(pipe);
        self.bounded(child, args)
    }

    /// Reads all that a command prints, and kills it if it does not end.
    fn bounded(&self, child: Child, args: &[&str]) -> Printed {
        let id = child.id();
        let (send, ended) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let output = child.wait_with_output();
            send.send(()).ok();
            output
        });
        let late = ended.recv_timeout(BOUND).is_err();
        if late {
            Command::new("kill").args(["-s", "KILL", &id.to_string()]).status().unwrap();
        }
        let printed = Printed::of(reader.join().unwrap().unwrap(), self);
        assert!(!late, "{args:?} did not end in {BOUND:?}: {printed:?}");
        printed
    }

    /// Returns the id of the youngest run.
    pub(crate) fn youngest_run(&self) -> String {
        let listed = self.run(&["ls", "--all", "--output", "json"]);
        let first: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
        first["run"].as_str().unwrap().to_owned()
    }

    /// Returns the records of a run.
    pub(crate) fn records(&self, run: &str) -> Vec<Value> {
        json_lines(&self.run(&["logs", run, "--output", "ndjson"]).stdout)
    }
}

impl Printed {
    fn of(output: Output, home: &Home) -> Self {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(home.path().to_str().unwrap(), "[home]")
        };
        Self { code: code(output.status), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Returns everything as one text, for snapshots.
    pub(crate) fn whole(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Returns the exit code; minus the signal's number if there was one.
pub(crate) fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| -status.signal().unwrap_or_default())
}

/// Reads NDJSON.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits for a line on stderr that holds `part`, and returns the reader for what follows. Kills a process that does
/// not say it, which ends its stderr.
#[track_caller]
pub(crate) fn wait_for_line(child: &mut Child, part: &str) -> BufReader<ChildStderr> {
    let mut reader = BufReader::new(child.stderr.take().unwrap());
    let id = child.id().to_string();
    let (_said, saying) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if saying.recv_timeout(BOUND) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            Command::new("kill").args(["-s", "KILL", &id]).status().ok();
        }
    });
    let mut seen = String::new();
    loop {
        let start = seen.len();
        if reader.read_line(&mut seen).unwrap() == 0 {
            panic!("`{part}` never came:\n{seen}");
        }
        if seen[start..].contains(part) {
            return reader;
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + BOUND;
    while !so() {
        assert!(Instant::now() < end, "{what} did not happen in {BOUND:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of a process.
#[track_caller]
pub(crate) fn wait_for_exit(child: &mut Child) -> i32 {
    let mut status = None;
    wait_until("the process's end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    code(status.unwrap())
}
