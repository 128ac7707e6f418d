//! Runs programs as steps: each is announced with the command that reruns it, timed, and remembered.

use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bursar_testkit::workspace;

use crate::Outcome;

/// The steps of one gate, and how each ended.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<Done>,
}

#[derive(Debug)]
struct Done {
    name: &'static str,
    rerun: String,
    time: Duration,
    error: Option<String>,
}

impl Steps {
    /// Runs one step. A failure is remembered and does not keep later steps from running; it returns whether it
    /// succeeded.
    pub(crate) fn run(&mut self, name: &'static str, rerun: &str, step: impl FnOnce() -> Outcome) -> bool {
        println!("\n=== {name}\n    rerun alone: {rerun}");
        let began = Instant::now();
        let error = step().err().map(|error| chain(&*error));
        let time = began.elapsed();
        match &error {
            None => println!("=== {name}: ok in {:.1} s", time.as_secs_f64()),
            Some(error) => eprintln!("=== {name}: FAILED after {:.1} s: {error}", time.as_secs_f64()),
        }
        let succeeded = error.is_none();
        self.done.push(Done { name, rerun: rerun.to_owned(), time, error });
        succeeded
    }

    /// Runs one step that is a cargo command.
    pub(crate) fn cargo(&mut self, name: &'static str, args: &[&str], env: &[(&str, &str)]) -> bool {
        let settings: String = env.iter().map(|(key, value)| format!("{key}='{value}' ")).collect();
        let rerun = format!("{settings}cargo {}", args.join(" "));
        self.run(name, &rerun, || status(cargo().args(args).envs(env.iter().copied())))
    }

    /// Prints the summary; an error names the steps that failed.
    pub(crate) fn finish(self) -> Outcome {
        println!("\n=== summary");
        for Done { name, rerun, time, error } in &self.done {
            let verdict = if error.is_none() { "ok" } else { "FAILED" };
            println!("    {verdict:<6} {:>7.1} s  {name:<10} {rerun}", time.as_secs_f64());
        }
        let failed: Vec<&str> =
            self.done.iter().filter(|done| done.error.is_some()).map(|done| done.name).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
    }
}

/// Returns a cargo command in the checkout.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root());
    command
}

/// Runs a command with this process's streams; an error names the program and how it ended.
pub(crate) fn status(command: &mut Command) -> Outcome {
    let name = name(command);
    let status = command.status().map_err(|error| format!("cannot run `{name}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` ended with {status}").into()) }
}

/// Runs a command in the checkout and returns its stdout.
pub(crate) fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let name = name(command);
    let output = command.output().map_err(|error| format!("cannot run `{name}`: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("`{name}` ended with {}: {stderr}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns a program's name without its folder.
fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// Says whether a program is on `PATH`.
pub(crate) fn on_path(program: impl AsRef<OsStr>) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program.as_ref()).is_file())
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
