//! What each action of a script does.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use super::super::input::Input;
use super::super::lines;
use super::super::script::{Action, Chunk};
use super::player::{Player, Stop};

/// How often a file that is waited for is looked for.
const POLL: Duration = Duration::from_millis(5);

/// How long a stopped command may take to leave before it is killed.
const STOP_GRACE: Duration = Duration::from_millis(1300);

impl Player {
    pub(super) fn play(&mut self, actions: &[Action]) -> Result<(), Stop> {
        actions.iter().try_for_each(|action| self.act(action))
    }

    fn act(&mut self, action: &Action) -> Result<(), Stop> {
        match action {
            Action::Emit { line } => self.emit(line)?,
            Action::Replay { path, from, to } => self.replay(path, *from, *to)?,
            Action::Write { chunks } => chunks.iter().for_each(|chunk| self.write(chunk)),
            Action::Stderr { text } => {
                let text = self.filled(text);
                io::stderr().write_all(text.as_bytes())?;
            }
            Action::Sleep { ms } => {
                self.pause(Some(Instant::now() + Duration::from_millis(*ms)), |_| false)?;
            }
            Action::AwaitFile { path } => {
                let path = self.folder.join(path);
                self.pause_polling(None, Some(POLL), |_| path.exists())?;
            }
            Action::Touch { path } => {
                File::create(self.folder.join(path))?;
            }
            Action::Shell { id, tool_use_id, command, description, announce, wakes } => {
                self.shells.start(id, tool_use_id, command, description, *announce, wakes)?;
            }
            Action::AwaitShell { id } => self.await_shell(id, None)?,
            Action::StopShell { id } => self.stop_shell(id)?,
            Action::AwaitEof => self.pause(None, |player| player.input_closed)?,
            Action::CloseStdout => {
                let nowhere = File::options().write(true).open("/dev/null")?;
                rustix::stdio::dup2_stdout(&nowhere).map_err(io::Error::from)?;
            }
            Action::Exit { code } => return Err(Stop::Exit(*code)),
            Action::Signal { signal } => {
                let signal = Signal::from_named_raw(*signal).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidInput, format!("no signal {signal}"))
                })?;
                kill_process(getpid(), signal).map_err(io::Error::from)?;
            }
            Action::Park => loop {
                thread::park();
            },
        }
        Ok(())
    }

    fn replay(&self, path: &Path, from: usize, to: Option<usize>) -> io::Result<()> {
        let capture = fs::read(self.folder.join(path))?;
        let lines = capture.split_inclusive(|byte| *byte == b'\n').enumerate();
        for (_, line) in lines.filter(|(index, _)| *index >= from && to.is_none_or(|to| *index < to)) {
            self.print(line);
        }
        Ok(())
    }

    fn write(&self, chunk: &Chunk) {
        match chunk {
            Chunk::Text(text) => self.print(text.as_bytes()),
            Chunk::Bytes(bytes) => self.print(bytes),
            Chunk::Repeat { text, count } => {
                // In blocks, so that a line of any length needs little memory here.
                let block = (64 << 10) / text.len().max(1) as u64 + 1;
                let whole = text.repeat(usize::try_from(block.min(*count)).unwrap_or(1));
                for _ in 0..count / block {
                    self.print(whole.as_bytes());
                }
                let rest = usize::try_from(count % block).unwrap_or(0);
                self.print(text.repeat(rest).as_bytes());
            }
        }
    }

    /// Waits for the end of a shell and announces it; without a shell of this id it returns at once.
    fn await_shell(&mut self, id: &str, deadline: Option<Instant>) -> Result<(), Stop> {
        if !self.shells.ids().iter().any(|running| running == id) {
            return Ok(());
        }
        self.pause(deadline, |player| player.end_in_backlog(id).is_some())?;
        let Some(index) = self.end_in_backlog(id) else { return Ok(()) };
        if let Some(Input::ShellEnded { id, code }) = self.backlog.remove(index) {
            self.announce_end(&id, code)?;
        }
        Ok(())
    }

    fn end_in_backlog(&self, wanted: &str) -> Option<usize> {
        self.backlog.iter().position(|input| matches!(input, Input::ShellEnded { id, .. } if id == wanted))
    }

    pub(super) fn stop_shell(&mut self, id: &str) -> Result<(), Stop> {
        self.shells.signal(id, Signal::TERM);
        self.await_shell(id, Some(Instant::now() + STOP_GRACE))?;
        self.shells.signal(id, Signal::KILL);
        self.await_shell(id, None)
    }

    pub(super) fn stop_all_shells(&mut self) -> Result<(), Stop> {
        self.shells.ids().iter().try_for_each(|id| self.stop_shell(id))
    }

    /// Prints the events of a shell's end, and returns what it makes the agent do.
    pub(super) fn announce_end(&mut self, id: &str, code: i32) -> io::Result<Vec<Action>> {
        let Some((shell, stopped)) = self.shells.ended(id) else { return Ok(Vec::new()) };
        let (updated, notified, summary) = match (stopped, code) {
            (true, _) => ("killed", "stopped", id.to_owned()),
            (false, 0) => {
                ("completed", "completed", format!("Background command \"{id}\" completed (exit code 0)"))
            }
            (false, code) => {
                ("failed", "failed", format!("Background command \"{id}\" failed with exit code {code}"))
            }
        };
        if shell.announce {
            self.emit(&lines::updated(id, updated))?;
            self.emit(&lines::notification(id, &shell.tool_use_id, notified, &summary))?;
            self.emit(&lines::live_set())?;
        }
        Ok(if stopped { Vec::new() } else { shell.wakes })
    }
}
