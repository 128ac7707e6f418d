//! One run of the `bursar` binary over the real agent CLI and the scripted model.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bursar_testkit::workspace::built_binary;
use bursar_testkit::{AgentHome, AgentVersion, ModelRequest, ModelServer, Script, agent_path};
use serde_json::Value;

use crate::going::Going;

/// Longer than anything here takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// How often to look again for what nothing announces: files and processes.
const GLANCE: Duration = Duration::from_millis(20);

/// A model, a sealed home, and the product.
pub(crate) struct Rig {
    pub(crate) model: ModelServer,
    pub(crate) home: AgentHome,
    pub(crate) version: AgentVersion,
    bursar: PathBuf,
}

/// What one call of the product gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// A process of a rig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) command: String,
}

impl Rig {
    #[track_caller]
    pub(crate) fn new(version: AgentVersion, script: Script) -> Self {
        Self::tuned(version, script, |home| home)
    }

    #[track_caller]
    pub(crate) fn tuned(
        version: AgentVersion,
        script: Script,
        tune: impl FnOnce(AgentHome) -> AgentHome,
    ) -> Self {
        let model = ModelServer::start(script).unwrap();
        let home = tune(AgentHome::new(model.base_url()).unwrap());
        Self { model, home, version, bursar: built_binary("bursar", "bursar").unwrap() }
    }

    /// Makes a rig whose agent repeats a failed request once, instead of for three minutes.
    #[track_caller]
    pub(crate) fn impatient(version: AgentVersion, script: Script) -> Self {
        Self::tuned(version, script, |home| home.with_env("CLAUDE_CODE_MAX_RETRIES", "1").unwrap())
    }

    /// Returns a command for the product in the sealed home.
    pub(crate) fn bursar(&self) -> Command {
        let mut command = self.home.command(&self.bursar);
        command.stdin(Stdio::null());
        command
    }

    /// Returns a command for `bursar run` with every tool allowed and NDJSON on stdout; add options and the prompt.
    pub(crate) fn run_command(&self, options: &[&str]) -> Command {
        self.run_of(&agent_path(self.version), "ndjson", options)
    }

    /// Returns a command for `bursar run` of any program, in any form of output.
    pub(crate) fn run_of(&self, agent: &Path, output: &str, options: &[&str]) -> Command {
        let mut command = self.bursar();
        command.args(["run", "--output", output, "--permissions", "bypass", "--agent-path"]);
        command.arg(agent).args(options);
        command
    }

    /// Runs a prompt to its end.
    #[track_caller]
    pub(crate) fn run(&self, options: &[&str], prompt: &str) -> Ran {
        self.start(options, prompt).finish()
    }

    /// Runs a prompt that comes over stdin to its end.
    #[track_caller]
    pub(crate) fn run_piped(&self, options: &[&str], prompt: &str) -> Ran {
        let mut command = self.run_command(options);
        command.arg("-").stdin(Stdio::piped());
        let mut going = Going::begin(&mut command);
        let mut stdin = going.stdin();
        let prompt = prompt.as_bytes().to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(&prompt));
        let ran = going.finish();
        writer.join().unwrap().unwrap();
        ran
    }

    /// Starts a run and returns while it goes on.
    #[track_caller]
    pub(crate) fn start(&self, options: &[&str], prompt: &str) -> Going {
        let mut command = self.run_command(options);
        command.arg(prompt);
        Going::begin(&mut command)
    }

    /// Runs another command of the product to its end.
    #[track_caller]
    pub(crate) fn call(&self, args: &[&str]) -> Ran {
        Going::begin(self.bursar().args(args)).finish()
    }

    /// Whether a file of the working directory is there.
    pub(crate) fn made(&self, name: &str) -> bool {
        self.home.work().join(name).exists()
    }

    /// Makes an empty file in the working directory.
    #[track_caller]
    pub(crate) fn make(&self, name: &str) {
        std::fs::write(self.home.work().join(name), "").unwrap();
    }

    /// Returns what a file of the working directory holds.
    #[track_caller]
    pub(crate) fn text_of(&self, name: &str) -> String {
        let path = self.home.work().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Waits until a file of the working directory is there.
    #[track_caller]
    pub(crate) fn wait_for_file(&self, name: &str) {
        until(&format!("the file {name}"), || self.made(name).then_some(()));
    }

    /// Returns the processes of this rig that live, whatever started them.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let read = |pid: i32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
            // A process that has ended and waits for its parent has no command any more.
            (!command.is_empty()).then_some(Process { pid, command })
        };
        self.home.processes().into_iter().filter_map(read).collect()
    }

    /// Returns the processes of this rig that stay once a run is over: its holder and the scripts that spoke to it are
    /// gone within moments, which is waited for.
    #[track_caller]
    pub(crate) fn left(&self) -> Vec<Process> {
        let helps =
            |process: &Process| process.command.contains("bursar-holder") || process.command == "sh -s";
        until("the end of the holder", || {
            let left = self.processes();
            (!left.iter().any(helps)).then_some(left)
        })
    }

    /// Returns the agent's own session files.
    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let entries =
            |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let projects = entries(self.home.home().join(".claude/projects"));
        projects
            .flat_map(|project| entries(project.path()))
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
            .collect()
    }

    /// Waits until the agent has written this to a session file: it does so some time after it said it.
    #[track_caller]
    pub(crate) fn wait_for_transcript(&self, needle: &str) {
        let written = || {
            self.transcripts()
                .iter()
                .any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(needle)))
        };
        until(&format!("{needle:?} in a transcript"), || written().then_some(()));
    }

    /// Returns the requests of the main conversation that hold this text in what was new to the model.
    pub(crate) fn told(&self, needle: &str) -> Vec<ModelRequest> {
        self.model.main_requests().into_iter().filter(|request| request.new_mentions(needle) > 0).collect()
    }
}

/// Looks again and again until there is something to return.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited for {what} in vain");
        std::thread::sleep(GLANCE);
    }
}

impl Ran {
    /// Returns every record of the NDJSON output.
    #[track_caller]
    pub(crate) fn records(&self) -> Vec<Value> {
        String::from_utf8(self.stdout.clone())
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    #[track_caller]
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record["event"] == name).collect()
    }

    /// Returns the `run_finished` record.
    #[track_caller]
    pub(crate) fn finished(&self) -> Value {
        let mut all = self.events("run_finished");
        assert_eq!(all.len(), 1, "{self}");
        all.remove(0)
    }

    /// Returns `action/reason` of every decision.
    #[track_caller]
    pub(crate) fn decisions(&self) -> Vec<String> {
        self.events("decision").iter().map(decision).collect()
    }

    /// Returns the decision with this `action/reason`, the first if there are several.
    #[track_caller]
    pub(crate) fn decided(&self, wanted: &str) -> Value {
        let found = self.events("decision").into_iter().find(|record| decision(record) == wanted);
        found.unwrap_or_else(|| panic!("no decision {wanted}: {self}"))
    }

    /// Checks the outcome and the exit code, and returns the `run_finished` record.
    #[track_caller]
    pub(crate) fn ended(&self, outcome: &str, code: i32) -> Value {
        let finished = self.finished();
        assert_eq!((finished["outcome"].as_str(), self.code), (Some(outcome), code), "{self}");
        assert_eq!(finished["exit_code"], code);
        finished
    }

    /// Returns what went to stdout, which must be UTF-8.
    #[track_caller]
    pub(crate) fn out(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

/// Returns `action/reason` of a decision's record.
pub(crate) fn decision(record: &Value) -> String {
    format!("{}/{}", word(record, "action"), word(record, "reason"))
}

/// Returns a text of a record, empty where there is none.
pub(crate) fn word<'a>(record: &'a Value, key: &str) -> &'a str {
    record[key].as_str().unwrap_or_default()
}

/// Returns the entries of a list in a record.
pub(crate) fn list<'a>(record: &'a Value, key: &str) -> &'a [Value] {
    record[key].as_array().map_or(&[], Vec::as_slice)
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit {} after {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.code,
            self.took,
            String::from_utf8_lossy(&self.stdout),
            self.stderr
        )
    }
}
