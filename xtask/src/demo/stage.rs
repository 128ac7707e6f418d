//! One run of the demo: a scripted model, a sealed home, the built binary, and what is left to look at.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bursar_testkit::{AgentHome, AgentVersion, ModelServer, Script, agent, workspace};
use serde_json::Value;

/// Variables that make the home; the others are the agent's own and have to be passed on by name.
const OF_THE_HOME: [&str; 5] = ["HOME", "PATH", "SHELL", "LANG", "XDG_STATE_HOME"];

/// The version whose plain behaviour is nearest to what the product wants.
const VERSION: AgentVersion = AgentVersion::Waits;

#[derive(Debug)]
pub(super) struct Stage {
    model: ModelServer,
    home: AgentHome,
    agent: PathBuf,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    run: String,
    log: PathBuf,
}

impl Stage {
    pub(super) fn set(script: Script) -> Result<Self, Box<dyn Error>> {
        let model = ModelServer::start(script)?;
        let home = AgentHome::new(model.base_url())?.with_git()?;
        let agent = agent::install(VERSION)?.path;
        Ok(Self { model, home, agent })
    }

    pub(super) fn model(&self) -> &ModelServer {
        &self.model
    }

    /// Says whether the agent made this file in its work folder.
    pub(super) fn made(&self, name: &str) -> bool {
        self.home.work().join(name).exists()
    }

    /// Counts the processes of the run that still live.
    pub(super) fn left_running(&self) -> usize {
        self.home.processes().len()
    }

    /// Runs `bursar run` with its output on this terminal, and waits for its end.
    pub(super) fn run(&self, options: &[&str], prompt: &str) -> Result<Ended, Box<dyn Error>> {
        let log = self.home.root().join("bursar.log");
        let mut command = self.bursar();
        command.args(["--log-format", "json", "--log-file"]).arg(&log).arg("run");
        command.args(["--permissions", "bypass", "--agent-path"]).arg(&self.agent);
        for (name, _) in self.home.env().iter().filter(|(name, _)| !OF_THE_HOME.contains(&name.as_str())) {
            command.args(["--env", name]);
        }
        command.args(options).arg(prompt);
        announce(&command);
        let code = command.status()?.code();
        println!("  exit code {}", code.map_or_else(|| "none".to_owned(), |code| code.to_string()));
        let run = run_in(&log)?;
        Ok(Ended { code, run, log })
    }

    /// Prints `bursar show` for people.
    pub(super) fn show(&self, ended: &Ended) -> Result<(), Box<dyn Error>> {
        let mut command = self.bursar();
        command.args(["show", &ended.run]);
        announce(&command);
        crate::step::status(&mut command)
    }

    /// Returns `bursar show` for programs.
    pub(super) fn shown(&self, ended: &Ended) -> Result<Value, Box<dyn Error>> {
        let mut command = self.bursar();
        command.args(["show", &ended.run, "--output", "json"]);
        announce(&command);
        Ok(serde_json::from_str(&crate::step::output(&mut command)?)?)
    }

    fn bursar(&self) -> Command {
        self.home.command(workspace::target_dir().join("debug/bursar"))
    }
}

impl Ended {
    /// Returns the fields of the log's records that tell of a decision.
    pub(super) fn decisions(&self) -> Result<Vec<Value>, Box<dyn Error>> {
        let log = fs::read_to_string(&self.log)?;
        let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let fields = records.map(|mut record| record["fields"].take());
        Ok(fields.filter(|fields| fields.get("action").is_some()).collect())
    }
}

/// Returns the run that a log tells of.
fn run_in(log: &PathBuf) -> Result<String, Box<dyn Error>> {
    let text = fs::read_to_string(log).map_err(|error| format!("the run left no log: {error}"))?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let run =
        lines.into_iter().find_map(|line| find(&line, "run").and_then(Value::as_str).map(str::to_owned));
    Ok(run.ok_or("the log names no run")?)
}

/// Looks for a member anywhere in a log line: as a field of its own or of the span it lies in.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => {
            members.get(name).or_else(|| members.values().find_map(|member| find(member, name)))
        }
        Value::Array(items) => items.iter().find_map(|item| find(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Prints a command as one could type it, with the folder of the program left out. A long one has one option a line,
/// and the variables that only point the agent at the scripted model are counted instead.
fn announce(command: &Command) {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let quoted = |argument: &std::ffi::OsStr| {
        let argument = argument.to_string_lossy().into_owned();
        if argument.contains([' ', '$', '\'', '"']) { format!("'{argument}'") } else { argument }
    };
    let mut groups: Vec<String> = Vec::new();
    let mut variables = 0;
    let mut arguments = command.get_args().map(quoted).peekable();
    while let Some(mut argument) = arguments.next() {
        if argument.starts_with("--")
            && let Some(value) = arguments.next_if(|value| !value.starts_with("--"))
        {
            if argument == "--env" {
                variables += 1;
                continue;
            }
            argument = format!("{argument} {value}");
        }
        groups.push(argument);
    }
    let short = groups.iter().map(String::len).sum::<usize>() < 80;
    println!("\n$ {program} {}", groups.join(if short { " " } else { " \\\n    " }));
    if variables > 0 {
        println!("  (left out: --env for {variables} variables that point the agent at the scripted model)");
    }
}
