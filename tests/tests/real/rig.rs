//! One run of the `bursar` binary over the real agent CLI and the scripted model.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bursar_testkit::workspace::built_binary;
use bursar_testkit::{AgentHome, AgentVersion, ModelServer, Script, agent_path};
use serde_json::Value;

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

    /// Returns a command for the product in the sealed home.
    pub(crate) fn bursar(&self) -> Command {
        let mut command = self.home.command(&self.bursar);
        command.stdin(Stdio::null());
        command
    }

    /// Returns a command for `bursar run` with every tool allowed and NDJSON on stdout; add options and the prompt.
    pub(crate) fn run_command(&self, options: &[&str]) -> Command {
        let mut command = self.bursar();
        command.args(["run", "--output", "ndjson", "--permissions", "bypass", "--agent-path"]);
        command.arg(agent_path(self.version)).args(options);
        command
    }

    /// Runs a prompt to its end.
    #[track_caller]
    pub(crate) fn run(&self, options: &[&str], prompt: &str) -> Ran {
        let mut command = self.run_command(options);
        command.arg(prompt);
        finish(&mut command)
    }

    /// Runs another command of the product to its end.
    #[track_caller]
    pub(crate) fn call(&self, args: &[&str]) -> Ran {
        finish(self.bursar().args(args))
    }

    /// Whether a file of the working directory is there.
    pub(crate) fn made(&self, name: &str) -> bool {
        self.home.work().join(name).exists()
    }
}

#[track_caller]
pub(crate) fn finish(command: &mut Command) -> Ran {
    let begun = Instant::now();
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: begun.elapsed(),
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
        let word = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
        self.events("decision")
            .iter()
            .map(|d| format!("{}/{}", word(d, "action"), word(d, "reason")))
            .collect()
    }

    /// Checks the outcome and the exit code, and returns the `run_finished` record.
    #[track_caller]
    pub(crate) fn ended(&self, outcome: &str, code: i32) -> Value {
        let finished = self.finished();
        assert_eq!((finished["outcome"].as_str(), self.code), (Some(outcome), code), "{self}");
        assert_eq!(finished["exit_code"], code);
        finished
    }
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
