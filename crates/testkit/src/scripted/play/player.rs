//! The player: one process's state, its loop over what comes in, and its output.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::fill::{self, Filled};
use super::super::input::{self, Input};
use super::super::lines;
use super::super::log::{LogEvent, LogWriter};
use super::super::script::{Action, AtEof, AttemptScript, OnTerm};
use super::super::shells::Shells;
use super::args::Args;
use super::values::{Ids, now_ms, timestamp};

/// Why the player leaves what it is playing.
#[derive(Debug)]
pub(super) enum Stop {
    /// An interrupt: the reply is over, the process goes on.
    Interrupted,
    /// The process ends with this code.
    Exit(u8),
    /// Something failed that the script did not foresee.
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

#[derive(Debug)]
pub(super) struct Player {
    pub(super) attempt: AttemptScript,
    pub(super) log: LogWriter,
    pub(super) shells: Shells,
    /// The folder of the script: relative paths lie there.
    pub(super) folder: PathBuf,
    /// What came in and waits for its turn: messages and ends of shells.
    pub(super) backlog: VecDeque<Input>,
    pub(super) input_closed: bool,
    /// Whether a reply to a message or to an end is being played.
    pub(super) busy: bool,
    inputs: Receiver<Input>,
    args: Args,
    session: String,
    cwd: PathBuf,
    ids: Ids,
    message: Option<String>,
    text: String,
    seen: BTreeSet<String>,
    exits: BTreeMap<String, i32>,
    lines: u64,
    replies: usize,
    results: u64,
    assistants: u32,
    last_failed: bool,
}

impl Player {
    pub(super) fn new(
        script: &Path,
        args: Args,
        attempt: AttemptScript,
        mut log: LogWriter,
    ) -> io::Result<Self> {
        let mut ids = Ids::new()?;
        let cwd = env::current_dir()?;
        let session = args.session.clone().unwrap_or_else(|| ids.next());
        log.write(LogEvent::Started {
            pid: std::process::id(),
            args: args.all.clone(),
            session: session.clone(),
            cwd: cwd.to_string_lossy().into_owned(),
        })?;
        if attempt.on_term == OnTerm::Ignore {
            signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::new(AtomicBool::new(false)))?;
        }
        let (sender, inputs) = mpsc::channel();
        let shells = Shells::new(&cwd, &session, sender.clone());
        let stream_json = args.stream_json_input;
        match &args.prompt {
            Some(prompt) if !stream_json => {
                // The receiver is on this stack, so these cannot fail.
                sender.send(Input::Message { uuid: None, text: prompt.clone() }).ok();
                sender.send(Input::Closed).ok();
            }
            Some(_) | None => {
                thread::spawn(move || input::read(stream_json, &sender));
            }
        }
        Ok(Self {
            attempt,
            log,
            shells,
            folder: script.parent().map(Path::to_owned).unwrap_or_default(),
            backlog: VecDeque::new(),
            input_closed: false,
            busy: false,
            inputs,
            args,
            session,
            cwd,
            ids,
            message: None,
            text: String::new(),
            seen: BTreeSet::new(),
            exits: BTreeMap::new(),
            lines: 0,
            replies: 0,
            results: 0,
            assistants: 0,
            last_failed: false,
        })
    }

    /// Plays until the process should end, and returns its exit code.
    pub(super) fn run(mut self) -> io::Result<u8> {
        let code = match self.play_all() {
            Ok(code) | Err(Stop::Exit(code)) => code,
            Err(Stop::Interrupted) => 0,
            Err(Stop::Failed(error)) => return Err(error),
        };
        self.log.write(LogEvent::Exited(code))?;
        Ok(code)
    }

    /// The exit code is that of the last result only, as the agent's is.
    pub(super) fn exit_code(&self) -> u8 {
        u8::from(self.last_failed)
    }

    fn play_all(&mut self) -> Result<u8, Stop> {
        let start = std::mem::take(&mut self.attempt.on_start);
        self.play(&start)?;
        let mut stop_at = None;
        loop {
            if let Some(input) = self.backlog.pop_front() {
                self.serve(input)?;
                continue;
            }
            if !self.input_closed {
                self.pause(None, |player| player.input_closed || !player.backlog.is_empty())?;
                continue;
            }
            if self.shells.ids().is_empty() || self.attempt.at_eof == AtEof::Abandon {
                return Ok(self.exit_code());
            }
            if let AtEof::Stop(ms) = self.attempt.at_eof {
                // Counted once, not again after a reply that the end of a shell caused meanwhile.
                stop_at.get_or_insert_with(|| Instant::now() + Duration::from_millis(ms));
            }
            self.pause(stop_at, |player| !player.backlog.is_empty())?;
            if self.backlog.is_empty() {
                self.stop_all_shells()?;
            }
        }
    }

    fn serve(&mut self, input: Input) -> Result<(), Stop> {
        match input {
            Input::Message { uuid, text } => {
                (self.message, self.text) = (uuid, text);
                self.lifecycle("started")?;
                let actions =
                    self.attempt.replies.get(self.replies).unwrap_or(&self.attempt.otherwise).clone();
                self.replies += 1;
                self.reply(&actions)?;
                self.lifecycle("completed")?;
                self.message = None;
            }
            Input::ShellEnded { id, code } => {
                let wakes = self.announce_end(&id, code)?;
                self.reply(&wakes)?;
            }
            Input::Control(_) | Input::Garbage | Input::Closed => {}
        }
        Ok(())
    }

    fn reply(&mut self, actions: &[Action]) -> Result<(), Stop> {
        self.busy = true;
        let played = self.play(actions);
        self.busy = false;
        match played {
            Err(Stop::Interrupted) => {
                let actions = self.attempt.on_interrupt.clone();
                self.play(&actions)
            }
            Ok(()) | Err(Stop::Exit(_) | Stop::Failed(_)) => played,
        }
    }

    /// Takes in what comes until `done` or `deadline`.
    pub(super) fn pause(
        &mut self,
        deadline: Option<Instant>,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), Stop> {
        self.pause_polling(deadline, None, done)
    }

    /// Takes in what comes until `done` or `deadline`, asking `done` again every `poll` even when nothing comes.
    pub(super) fn pause_polling(
        &mut self,
        deadline: Option<Instant>,
        poll: Option<Duration>,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), Stop> {
        while !done(self) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(());
            }
            let received = match left.into_iter().chain(poll).min() {
                Some(time) => self.inputs.recv_timeout(time),
                None => self.inputs.recv().map_err(RecvTimeoutError::from),
            };
            match received {
                Ok(input) => self.take_in(input)?,
                Err(RecvTimeoutError::Timeout) => {}
                // The shells hold a sender, so this end is never alone.
                Err(RecvTimeoutError::Disconnected) => return Err(Stop::Exit(self.exit_code())),
            }
        }
        Ok(())
    }

    fn take_in(&mut self, input: Input) -> Result<(), Stop> {
        match input {
            Input::Message { uuid, text } => {
                self.log.write(LogEvent::Message { uuid: uuid.clone(), text: text.clone() })?;
                if let Some(uuid) = &uuid {
                    // A message whose id was used before is dropped without a word.
                    if !self.seen.insert(uuid.clone()) {
                        return Ok(());
                    }
                    if self.attempt.lifecycle {
                        self.emit(&lines::lifecycle(uuid, "queued"))?;
                    }
                }
                self.backlog.push_back(Input::Message { uuid, text });
            }
            Input::Control(request) => return self.control(request),
            Input::Garbage => {
                writeln!(io::stderr(), "Error parsing streaming input line")?;
                return Err(Stop::Exit(1));
            }
            Input::Closed => {
                self.log.write(LogEvent::InputClosed)?;
                self.input_closed = true;
            }
            Input::ShellEnded { id, code } => {
                self.exits.insert(id.clone(), code);
                self.backlog.push_back(Input::ShellEnded { id, code });
            }
        }
        Ok(())
    }

    fn lifecycle(&mut self, state: &str) -> io::Result<()> {
        match self.message.clone() {
            Some(message) if self.attempt.lifecycle => self.emit(&lines::lifecycle(&message, state)),
            Some(_) | None => Ok(()),
        }
    }

    /// Prints one event with its placeholders filled.
    pub(super) fn emit(&mut self, template: &Value) -> io::Result<()> {
        let line = fill::fill(template, &mut |name| self.value(name));
        self.lines += 1;
        match line["type"].as_str() {
            Some("assistant") => self.assistants += 1,
            Some("result") => {
                self.results += 1;
                self.last_failed = line["is_error"] == true;
            }
            Some(_) | None => {}
        }
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        self.print(&bytes);
        Ok(())
    }

    /// Returns a text with its placeholders filled.
    pub(super) fn filled(&mut self, text: &str) -> String {
        fill::fill_text(text, &mut |name| self.value(name))
    }

    /// Writes to stdout. A reader that is gone does not stop the agent.
    #[expect(clippy::unused_self, reason = "output belongs to the player")]
    pub(super) fn print(&self, bytes: &[u8]) {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).ok();
    }

    fn value(&mut self, name: &str) -> Filled {
        let model = self.args.model.as_deref().unwrap_or("claude-opus-5-5");
        Filled::With(match name {
            "session" => json!(self.session),
            "uuid" => json!(self.ids.next()),
            "text" => json!(self.text),
            "now" => json!(timestamp(now_ms())),
            "now_ms" => json!(now_ms()),
            "cwd" => json!(self.cwd.to_string_lossy()),
            "model" => json!(model),
            "version" => json!(self.attempt.version),
            "live" => self.shells.live(),
            "cost" => json!(f64::from(self.assistants) * 0.0008),
            "line" => json!(self.lines),
            "reply" => json!(self.replies),
            "result" => json!(self.results),
            "message" | "messages" => match &self.message {
                Some(message) if name == "message" => json!(message),
                Some(message) => json!([message]),
                None => return Filled::Absent,
            },
            _ => match name.split_once(':') {
                Some(("output", id)) => json!(self.shells.output(id).to_string_lossy()),
                Some(("exit", id)) => self.exits.get(id).map_or(Value::Null, |code| json!(code)),
                Some(_) | None => return Filled::Unknown,
            },
        })
    }
}
