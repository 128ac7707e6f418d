//! The program: takes a script and plays it, message by message, until its input ends.
//!
//! The script is the file `BURSAR_AGENT_SCRIPT` names, else `agent-script.json` in the folder the program was called
//! from, so that a link to the program beside a script is an agent of its own. One thread plays; a thread reads stdin
//! and one thread a shell waits for its end, and all of them report to the player through one channel.
//!
//! Placeholders in lines and texts: `{{session}}`, `{{message}}` and `{{messages}}` (the id of the message being
//! answered; what holds it is left out when there is none), `{{text}}` (its words), `{{uuid}}` (a fresh one), `{{now}}`,
//! `{{now_ms}}`, `{{cwd}}`, `{{model}}`, `{{version}}`, `{{live}}` (the shells that run), `{{output:ID}}`,
//! `{{exit:ID}}`, `{{cost}}`, `{{line}}`, `{{reply}}` and `{{result}}` (counters).

mod action;
mod args;
mod control;
mod player;
mod values;

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::args::Args;
use self::player::Player;
use super::script::{AgentScript, AttemptScript};
use super::{log, shells};

/// The variable that names the script.
pub const SCRIPT_VARIABLE: &str = "BURSAR_AGENT_SCRIPT";

/// The script's name where it lies beside the program.
pub const SCRIPT_NAME: &str = "agent-script.json";

/// Runs the scripted agent with the arguments and streams of this process.
pub fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // With stderr gone there is nobody left to tell.
            writeln!(io::stderr(), "scripted agent: {error}").ok();
            ExitCode::from(70)
        }
    }
}

fn run() -> io::Result<u8> {
    let mut arguments = env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    if let [first, command] = arguments.as_slice()
        && first == shells::OWN_SESSION
    {
        return Err(shells::become_shell(command));
    }
    let path = match env::var_os(SCRIPT_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => program.with_file_name(SCRIPT_NAME),
    };
    let script = load(&path)?;
    let args = match Args::parse(arguments) {
        Ok(args) => args,
        Err(message) => {
            writeln!(io::stderr(), "{message}")?;
            return Ok(1);
        }
    };
    if args.version {
        let version = &attempt(&script, 0).version;
        writeln!(io::stdout(), "{version} (Claude Code)")?;
        return Ok(0);
    }
    let (number, log) = log::LogWriter::open(&path)?;
    Player::new(&path, args, attempt(&script, number), log)?.run()
}

fn load(path: &Path) -> io::Result<AgentScript> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("script {}: {error}", path.display()));
    let text = fs::read(path).map_err(named)?;
    serde_json::from_slice(&text).map_err(|error| named(error.into()))
}

fn attempt(script: &AgentScript, number: usize) -> AttemptScript {
    script.attempts.get(number).or_else(|| script.attempts.last()).cloned().unwrap_or_default()
}
