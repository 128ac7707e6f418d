//! Background shells of a scripted agent: real processes, each in a session of its own, writing to the output file the
//! real agent would name.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::input::Input;
use super::script::Action;

/// The first argument that makes the program a session leader which becomes `sh -c`.
///
/// Making a session needs a call between fork and exec, which safe Rust cannot do; a program may do it to itself.
pub(super) const OWN_SESSION: &str = "__own-session";

/// Makes this process a session leader and becomes `sh -c command`. Returns only when that fails.
pub(super) fn become_shell(command: &str) -> io::Error {
    match rustix::process::setsid() {
        Ok(_) => Command::new("/bin/sh").args(["-c", command]).exec(),
        Err(error) => error.into(),
    }
}

/// A shell that was started.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) tool_use_id: String,
    pub(super) announce: bool,
    pub(super) wakes: Vec<Action>,
    description: String,
    pid: u32,
    stopped: Arc<AtomicBool>,
}

/// All shells that run.
#[derive(Debug)]
pub(super) struct Shells {
    folder: PathBuf,
    session: String,
    inputs: Sender<Input>,
    running: BTreeMap<String, Running>,
}

impl Shells {
    /// Takes care of the shells of a process that serves `session` in the folder `cwd`.
    pub(super) fn new(cwd: &Path, session: &str, inputs: Sender<Input>) -> Self {
        let base = std::env::var_os("CLAUDE_CODE_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let dashed: String =
            cwd.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let user = rustix::process::geteuid().as_raw();
        let folder = base.join(format!("claude-{user}")).join(dashed).join(session).join("tasks");
        Self { folder, session: session.to_owned(), inputs, running: BTreeMap::new() }
    }

    /// Returns where the output of background task `id` lies.
    pub(super) fn output(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.output"))
    }

    /// Returns the live set as the stream lists it.
    pub(super) fn live(&self) -> Value {
        let entry = |(id, shell): (&String, &Running)| {
            json!({"task_id": id, "run_id": format!("run-{id}"), "task_type": "local_bash",
                   "description": shell.description})
        };
        self.running.iter().map(entry).collect()
    }

    /// Returns the ids of all shells that run.
    pub(super) fn ids(&self) -> Vec<String> {
        self.running.keys().cloned().collect()
    }

    /// Starts a shell; its end will come as [`Input::ShellEnded`].
    pub(super) fn start(
        &mut self,
        id: &str,
        tool_use_id: &str,
        command: &str,
        description: &str,
        announce: bool,
        wakes: &[Action],
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let path = self.output(id);
        let output = File::create(&path)?;
        let child = Command::new(std::env::current_exe()?)
            .args([OWN_SESSION, command])
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_SESSION_ID", &self.session)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let shell = Running {
            tool_use_id: tool_use_id.to_owned(),
            announce,
            wakes: wakes.to_vec(),
            description: description.to_owned(),
            pid: child.id(),
            stopped: Arc::clone(&stopped),
        };
        self.running.insert(id.to_owned(), shell);
        let (id, inputs) = (id.to_owned(), self.inputs.clone());
        std::thread::spawn(move || watch(child, &path, &stopped, id, &inputs));
        Ok(())
    }

    /// Sends a signal to the whole process group of a shell, and marks it as stopped by the agent.
    pub(super) fn signal(&self, id: &str, signal: Signal) {
        let Some(shell) = self.running.get(id) else { return };
        shell.stopped.store(true, Ordering::Relaxed);
        if let Some(group) = i32::try_from(shell.pid).ok().and_then(Pid::from_raw) {
            // It may have ended in this moment; then there is nothing to signal.
            kill_process_group(group, signal).ok();
        }
    }

    /// Takes a shell that has ended off the list. Says also whether it was stopped by the agent.
    pub(super) fn ended(&mut self, id: &str) -> Option<(Running, bool)> {
        let shell = self.running.remove(id)?;
        let stopped = shell.stopped.load(Ordering::Relaxed);
        Some((shell, stopped))
    }
}

/// Waits for the end of a shell, writes the last line of its output as the agent does, and reports it.
fn watch(mut child: Child, path: &Path, stopped: &AtomicBool, id: String, inputs: &Sender<Input>) {
    let code = child.wait().map_or(1, |status| {
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
    });
    let last = match stopped.load(Ordering::Relaxed) {
        true => "\n[killed]\n".to_owned(),
        false => format!("\n[exited with code {code}]\n"),
    };
    if let Ok(mut output) = OpenOptions::new().append(true).open(path) {
        output.write_all(last.as_bytes()).ok();
    }
    inputs.send(Input::ShellEnded { id, code }).ok();
}
