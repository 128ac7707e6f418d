//! The `bursar` binary over the scripted agent: a sealed home, calls that end, and calls that are ended.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bursar_testkit::scripted::LogEvent;
use bursar_testkit::workspace::built_binary;
use bursar_testkit::{AgentHome, AgentScript, AttemptScript, ScriptedAgent};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long anything may take before a test gives up on it.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// A scripted agent, a sealed home, and the product.
pub(crate) struct Rig {
    pub(crate) agent: ScriptedAgent,
    pub(crate) home: AgentHome,
    bursar: PathBuf,
}

impl Rig {
    #[track_caller]
    pub(crate) fn new(attempt: AttemptScript) -> Self {
        Self::of(&AgentScript::new(attempt))
    }

    #[track_caller]
    pub(crate) fn of(script: &AgentScript) -> Self {
        Self::tuned(script, |home| home)
    }

    #[track_caller]
    pub(crate) fn tuned(script: &AgentScript, tune: impl FnOnce(AgentHome) -> AgentHome) -> Self {
        Self {
            agent: ScriptedAgent::new(script).unwrap(),
            // Nothing listens there, and the scripted agent asks nobody.
            home: tune(AgentHome::new("http://127.0.0.1:9").unwrap()),
            bursar: built_binary("bursar", "bursar").unwrap(),
        }
    }

    /// Returns the product's path.
    pub(crate) fn program(&self) -> &Path {
        &self.bursar
    }

    /// Returns a command for the product in the sealed home.
    pub(crate) fn bursar(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(&self.bursar);
        command.args(args).stdin(Stdio::null());
        command
    }

    /// Returns a command for `bursar run` with NDJSON on stdout; add options and the prompt.
    pub(crate) fn run_command(&self, options: &[&str]) -> Command {
        let mut command = self.bursar(&["run", "--output", "ndjson", "--agent-path"]);
        command.arg(self.agent.path()).args(options);
        command
    }

    /// Runs a prompt to its end.
    #[track_caller]
    pub(crate) fn run(&self, options: &[&str], prompt: &str) -> Ran {
        Running::start(self.run_command(options).arg(prompt)).ended()
    }

    /// Runs another command of the product to its end.
    #[track_caller]
    pub(crate) fn call(&self, args: &[&str]) -> Ran {
        Running::start(&mut self.bursar(args)).ended()
    }

    /// Attaches to a run and waits for its end.
    #[track_caller]
    pub(crate) fn attach(&self, run: &str) -> Ran {
        self.call(&["attach", "--output", "ndjson", run])
    }

    /// Starts a run that goes on, waits until its agent has made a file, and returns both.
    #[track_caller]
    pub(crate) fn run_until(&self, options: &[&str], prompt: &str, file: &str) -> (Running, String) {
        let running = Running::start(self.run_command(options).arg(prompt));
        self.wait_for(file);
        (running, self.only_run())
    }

    /// Waits until the agent has made a file.
    #[track_caller]
    pub(crate) fn wait_for(&self, file: &str) {
        until(file, || self.agent.folder().join(file).exists());
    }

    /// Returns every run in the store, as `ls` lists it.
    #[track_caller]
    pub(crate) fn runs(&self) -> Vec<Value> {
        let listed = self.call(&["ls", "--all", "--output", "json"]);
        assert_eq!(listed.code, 0, "{listed}");
        listed.records()
    }

    /// Returns the id of the only run there is.
    #[track_caller]
    pub(crate) fn only_run(&self) -> String {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:#?}");
        id(&runs.remove(0))
    }

    /// Returns the folder of the product's state.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.state().join("bursar")
    }

    /// Returns the copy of an attempt's output on this machine.
    pub(crate) fn mirror(&self, run: &str, attempt: u32) -> PathBuf {
        self.state().join(format!("mirror/{run}/{attempt}.stdout"))
    }

    /// Returns the folder of an attempt on the host.
    pub(crate) fn attempt_dir(&self, run: &str, attempt: u32) -> PathBuf {
        self.state().join(format!("runs/{run}/{attempt}"))
    }

    /// Checks that what this machine keeps of an attempt is what the host has, byte for byte.
    #[track_caller]
    pub(crate) fn assert_mirrored(&self, run: &str, attempt: u32) {
        let mirror = fs::read(self.mirror(run, attempt)).unwrap();
        let spool = fs::read(self.attempt_dir(run, attempt).join("out")).unwrap();
        assert!(mirror == spool, "the mirror has {} bytes, the spool {}", mirror.len(), spool.len());
    }

    /// Returns the process id of each start of the agent.
    #[track_caller]
    pub(crate) fn agent_pids(&self) -> Vec<i32> {
        let log = self.agent.log().unwrap();
        let pid = |event: &LogEvent| match event {
            LogEvent::Started { pid, .. } => i32::try_from(*pid).ok(),
            LogEvent::Message { .. } | LogEvent::Control(_) | LogEvent::InputClosed | LogEvent::Exited(_) => {
                None
            }
        };
        log.iter().filter_map(|entry| pid(&entry.event)).collect()
    }

    /// Returns the holder of the first attempt.
    #[track_caller]
    pub(crate) fn holder_pid(&self, run: &str) -> i32 {
        let text = fs::read_to_string(self.attempt_dir(run, 1).join("pid")).unwrap();
        text.split(' ').nth(3).unwrap().parse().unwrap()
    }

    /// Checks that nothing that was started in this home runs any more.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        until("every process to be gone", || self.home.processes().is_empty());
    }
}

/// A process of the product that goes on. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    begun: Instant,
}

impl Running {
    /// Starts a command and reads all that it prints.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut running = Self::start_unread(command.stdout(Stdio::piped()));
        running.stdout = running.child.stdout.take().map(collect);
        running
    }

    /// Starts a command whose stdout is as the command says; see [`Self::stdout`].
    #[track_caller]
    pub(crate) fn start_unread(command: &mut Command) -> Self {
        let begun = Instant::now();
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().map(collect);
        Self { child, stdout: None, stderr, begun }
    }

    /// Takes the reader's end of stdout: dropping it is to go away.
    #[track_caller]
    pub(crate) fn stdout(&mut self) -> std::process::ChildStdout {
        self.child.stdout.take().unwrap()
    }

    /// Begins to read stdout.
    pub(crate) fn read_on(&mut self) {
        self.stdout = self.child.stdout.take().map(collect);
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    /// Waits until it catches this signal (`SigCgt` of proc(5)): before, the signal would simply end it.
    #[track_caller]
    pub(crate) fn catches(&self, signal: Signal) {
        let status = format!("/proc/{}/status", self.pid());
        until("its signal handlers", || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught =
                caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
            caught >> (signal.as_raw() - 1) & 1 == 1
        });
    }

    /// Sends it a signal.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Kills it with SIGKILL and returns what it had printed; says also whether it was still there to be killed.
    #[track_caller]
    pub(crate) fn kill(mut self) -> (bool, Ran) {
        let lived = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        (lived, self.collected())
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ended(self) -> Ran {
        self.ended_within(BOUND)
    }

    /// Waits for its end for so long at most.
    #[track_caller]
    pub(crate) fn ended_within(mut self, bound: Duration) -> Ran {
        let due = Instant::now() + bound;
        while self.child.try_wait().unwrap().is_none() {
            if Instant::now() > due {
                self.child.kill().unwrap();
                panic!("it did not end within {bound:?}\n{}", self.collected());
            }
            pause();
        }
        self.collected()
    }

    /// Waits for its end and returns the most memory it ever used, in KiB.
    #[track_caller]
    pub(crate) fn ended_measured(mut self) -> (Ran, u64) {
        let due = Instant::now() + 3 * BOUND;
        let status = format!("/proc/{}/status", self.child.id());
        let mut peak = 0;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < due, "it does not end");
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let figure = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            peak = peak.max(figure.unwrap_or_default());
            pause();
        }
        (self.collected(), peak)
    }

    fn collected(&mut self) -> Ran {
        let status = self.child.wait().unwrap();
        let took = self.begun.elapsed();
        let all = |reader: Option<JoinHandle<Vec<u8>>>| reader.map(|reader| reader.join().unwrap());
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: all(self.stdout.take()).unwrap_or_default(),
            stderr: String::from_utf8_lossy(&all(self.stderr.take()).unwrap_or_default()).into_owned(),
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have been waited for already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error counts.
        from.read_to_end(&mut bytes).ok();
        bytes
    })
}

/// What one call of the product gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns every whole line of stdout as JSON.
    #[track_caller]
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = String::from_utf8(self.stdout.clone()).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    #[track_caller]
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record["event"] == name).collect()
    }

    /// Checks the outcome and the exit code, and returns the `run_finished` record.
    #[track_caller]
    pub(crate) fn finished(&self, outcome: &str, code: i32) -> Value {
        let mut all = self.events("run_finished");
        assert_eq!(all.len(), 1, "{self}");
        let finished = all.remove(0);
        assert_eq!((finished["outcome"].as_str(), self.code), (Some(outcome), code), "{self}");
        assert_eq!(finished["exit_code"], code, "{self}");
        finished
    }

    /// Checks the exit code, and that stderr holds each of these words.
    #[track_caller]
    pub(crate) fn complains(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self}");
        for word in words {
            assert!(self.stderr.contains(word), "it does not say {word:?}\n{self}");
        }
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        // The last of a long output tells the most.
        let start = text.len().saturating_sub(6000);
        let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(start);
        write!(
            f,
            "exit {} after {:?}\n--- the end of stdout\n{}\n--- stderr\n{}",
            self.code,
            self.took,
            &text[start..],
            self.stderr
        )
    }
}

/// Returns the id of a run in a record or a list.
#[track_caller]
pub(crate) fn id(value: &Value) -> String {
    value["run"].as_str().unwrap().to_owned()
}

/// Sends a signal to a process.
#[track_caller]
pub(crate) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let due = Instant::now() + BOUND;
    while !holds() {
        assert!(Instant::now() < due, "waited in vain for {what}");
        pause();
    }
}

/// Waits a moment between two looks.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Whether a process runs: a zombie does not.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
