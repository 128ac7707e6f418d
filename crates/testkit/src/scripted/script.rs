//! What a scripted agent is told to do. Plain data: it reaches the agent as a JSON file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reply::Reply;

/// What the agent does, process by process: the first start plays the first attempt, and so on; when there are more
/// starts than attempts the last one is played again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentScript {
    /// One entry a process.
    pub attempts: Vec<AttemptScript>,
}

/// What one process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttemptScript {
    /// Played before any message is read, for example what a resume says first.
    pub on_start: Vec<Action>,
    /// Played for the first message, the second, ….
    pub replies: Vec<Vec<Action>>,
    /// Played for every message beyond `replies`.
    pub otherwise: Vec<Action>,
    /// Played when an interrupt has cut a reply short.
    pub on_interrupt: Vec<Action>,
    /// What happens to running shells when the input ends.
    pub at_eof: AtEof,
    /// What SIGTERM does.
    pub on_term: OnTerm,
    /// Whether messages with an id are followed by `command_lifecycle` events.
    pub lifecycle: bool,
    /// Whether control requests are answered.
    pub control: bool,
    /// What `--version` prints and init events name.
    pub version: String,
}

impl Default for AttemptScript {
    fn default() -> Self {
        Self {
            on_start: Vec::new(),
            replies: Vec::new(),
            otherwise: Reply::new().text("nothing scripted").success(),
            on_interrupt: Reply::continued().interrupted(),
            at_eof: AtEof::Wait,
            on_term: OnTerm::Die,
            lifecycle: true,
            control: true,
            version: "2.1.332".to_owned(),
        }
    }
}

/// What happens to running shells when the input ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEof {
    /// They are waited for, and wake the agent (2.1.292 and later).
    Wait,
    /// They are stopped after so many milliseconds (2.1.163 to 2.1.291: 5000).
    Stop(u64),
    /// They are left behind.
    Abandon,
}

/// What SIGTERM does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTerm {
    /// The process dies of it.
    Die,
    /// Nothing: only SIGKILL ends the process.
    Ignore,
}

/// One thing the agent does. Texts and lines may hold placeholders, see [`super::play`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Prints one event.
    Emit {
        /// The event.
        line: Value,
    },
    /// Prints lines of a recorded capture as they are.
    Replay {
        /// The capture.
        path: PathBuf,
        /// The first line, counted from 0.
        #[serde(default)]
        from: usize,
        /// The line after the last; without it, to the end.
        #[serde(default)]
        to: Option<usize>,
    },
    /// Writes bytes to stdout as they are, with no newline added.
    Write {
        /// The bytes.
        chunks: Vec<Chunk>,
    },
    /// Writes a text to stderr.
    Stderr {
        /// The text.
        text: String,
    },
    /// Does nothing for a while; an interrupt cuts it short.
    Sleep {
        /// How long, in milliseconds.
        ms: u64,
    },
    /// Waits until a file exists; an interrupt cuts it short.
    AwaitFile {
        /// The file; a relative path lies in the script's folder.
        path: PathBuf,
    },
    /// Makes an empty file, so that a test can tell how far the agent is.
    Touch {
        /// The file; a relative path lies in the script's folder.
        path: PathBuf,
    },
    /// Starts a real shell command in a session of its own. Its end is announced, and `wakes` is played then unless it
    /// is awaited within a reply.
    Shell {
        /// The id of the background task.
        id: String,
        /// The call that launched it.
        tool_use_id: String,
        /// The command.
        command: String,
        /// Its description.
        description: String,
        /// Whether its end is announced on the stream.
        announce: bool,
        /// What its end makes the agent do when it is idle.
        wakes: Vec<Self>,
    },
    /// Waits for the end of a shell within the reply; its end is announced but wakes nobody.
    AwaitShell {
        /// The id of the background task.
        id: String,
    },
    /// Stops a shell as the agent does: TERM to its process group, KILL 1.3 s later.
    StopShell {
        /// The id of the background task.
        id: String,
    },
    /// Waits until the input has ended.
    AwaitEof,
    /// Closes stdout and goes on.
    CloseStdout,
    /// Ends the process at once, leaving shells behind.
    Exit {
        /// The exit code.
        code: u8,
    },
    /// Sends the process itself a signal.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// Does nothing for ever; not even an interrupt helps.
    Park,
}

/// Bytes to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// A text.
    Text(String),
    /// Single bytes, for what is no text.
    Bytes(Vec<u8>),
    /// A text over and over, for what is too long to write down.
    Repeat {
        /// The text.
        text: String,
        /// How many times.
        count: u64,
    },
}

impl AgentScript {
    /// Makes a script of one attempt.
    pub fn new(attempt: AttemptScript) -> Self {
        Self { attempts: vec![attempt] }
    }

    /// Adds another attempt.
    pub fn then(mut self, attempt: AttemptScript) -> Self {
        self.attempts.push(attempt);
        self
    }
}

impl AttemptScript {
    /// Makes an attempt that answers every message with "nothing scripted".
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what the next message is answered with.
    pub fn reply(mut self, actions: impl Into<Vec<Action>>) -> Self {
        self.replies.push(actions.into());
        self
    }

    /// Sets what every further message is answered with.
    pub fn otherwise(mut self, actions: impl Into<Vec<Action>>) -> Self {
        self.otherwise = actions.into();
        self
    }

    /// Sets what happens before any message is read.
    pub fn starting(mut self, actions: impl Into<Vec<Action>>) -> Self {
        self.on_start = actions.into();
        self
    }

    /// Sets what happens to running shells when the input ends.
    pub fn at_eof(mut self, at_eof: AtEof) -> Self {
        self.at_eof = at_eof;
        self
    }

    /// Makes SIGTERM do nothing.
    pub fn ignoring_term(mut self) -> Self {
        self.on_term = OnTerm::Ignore;
        self
    }

    /// Makes an attempt that knows nothing of the session it is to resume.
    pub fn unknown_session() -> Self {
        let text = "No conversation found with session ID: {{session}}";
        Self::new().starting([
            Action::Emit { line: super::lines::unknown_session(text) },
            Action::Stderr { text: format!("{text}\n") },
            Action::Exit { code: 1 },
        ])
    }

    /// Makes an attempt that replays a recorded stream for its first message, whatever that message is.
    pub fn replaying(capture: impl Into<PathBuf>) -> Self {
        Self::new().reply([Action::Replay { path: capture.into(), from: 0, to: None }])
    }
}
