//! What is known of an attempt, signals to its agent, and what it said on stderr.

use std::time::{Duration, SystemTime};

use crate::HostError;
use crate::exchange::{Answer, exchange};
use crate::holder::Holder;
use crate::name::AttemptRef;
use crate::payload::unhex;
use crate::script::Script;

/// How the agent's process ended, as its holder wrote it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitRecord {
    /// What a shell reports: the exit code, or 128 + the signal's number. A program that exits with such a
    /// code by itself cannot be told apart.
    pub status: i32,
    /// The length of the spool when the process ended, in bytes. What children of the agent that held its
    /// stdout wrote later lies beyond it.
    pub spool_length: u64,
    /// When, by the host's clock, in whole seconds.
    pub ended: SystemTime,
}

impl ExitRecord {
    /// Returns the signal that ended the agent, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        (129..=192).contains(&self.status).then(|| self.status - 128)
    }

    /// Reads `status length seconds`.
    pub(crate) fn read(words: &str) -> Option<Self> {
        let mut words = words.split(' ');
        let status = words.next()?.parse().ok()?;
        let spool_length = words.next()?.parse().ok()?;
        let ended = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(words.next()?.parse().ok()?))?;
        Some(Self { status, spool_length, ended })
    }
}

/// What is known of an attempt. None of it is an outcome by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptStatus {
    /// Nothing was ever started under this name, or its folder is gone.
    NeverStarted,
    /// It is being started at this moment.
    Starting,
    /// The agent lives.
    Living {
        /// Its process.
        pid: u32,
        /// Whether its holder lives: if not, how the agent ends will never be known.
        held: bool,
        /// How many bytes of the input journal were handed to the agent's stdin.
        fed: u64,
    },
    /// The agent ended, and this is how.
    Exited(ExitRecord),
    /// The agent ended, and how is not known: its holder was killed.
    GoneWithoutRecord,
    /// The host was restarted since; how the agent ended is not known.
    Rebooted,
}

impl AttemptStatus {
    pub(crate) fn read(answer: &Answer) -> Result<Self, HostError> {
        let text = answer.find("state").ok_or_else(|| answer.nonsense())?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let status = match word {
            "never" => Some(Self::NeverStarted),
            "starting" => Some(Self::Starting),
            "gone" => Some(Self::GoneWithoutRecord),
            "rebooted" => Some(Self::Rebooted),
            "exited" => rest.strip_prefix("exit ").and_then(ExitRecord::read).map(Self::Exited),
            "living" | "ending" => living(rest),
            _ => None,
        };
        status.ok_or_else(|| answer.nonsense())
    }
}

fn living(words: &str) -> Option<AttemptStatus> {
    let mut words = words.split(' ');
    let pid = words.next()?.parse().ok()?;
    let held = words.next()? == "1";
    let fed = words.next()?.parse().ok()?;
    Some(AttemptStatus::Living { pid, held, fed })
}

/// A signal to the agent's own process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSignal {
    /// `SIGINT`.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// `SIGKILL`; leaves what the agent started alive. [`Holder::stop`] does not.
    Kill,
}

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signalled {
    /// False if there was no living agent to send it to.
    pub sent: bool,
    /// What was known of the attempt when it was sent.
    pub status: AttemptStatus,
}

impl Holder {
    /// Asks what is known of an attempt. Waits up to 3 s for a record that is just being written.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn status(&self, at: &AttemptRef) -> Result<AttemptStatus, HostError> {
        let answer = exchange(self.host().as_ref(), Script::Status, &at.lines(), &[]).await?;
        AttemptStatus::read(&answer)
    }

    /// Sends a signal to the agent's process, and to nothing else: boot, pid and start time are compared
    /// with those of the process that was started.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the signal was sent or not.
    pub async fn signal(&self, at: &AttemptRef, signal: AgentSignal) -> Result<Signalled, HostError> {
        let name = match signal {
            AgentSignal::Interrupt => "INT",
            AgentSignal::Terminate => "TERM",
            AgentSignal::Kill => "KILL",
        };
        let mut header = at.lines();
        header.extend_from_slice(format!("{name}\n").as_bytes());
        let answer = exchange(self.host().as_ref(), Script::Signal, &header, &[]).await?;
        let sent = answer.find("sent").ok_or_else(|| answer.nonsense())? == "1";
        Ok(Signalled { sent, status: AttemptStatus::read(&answer)? })
    }

    /// Returns the last bytes, at most `max`, of what the agent wrote to stderr; nothing if it was never
    /// started.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn stderr_tail(&self, at: &AttemptRef, max: usize) -> Result<Vec<u8>, HostError> {
        let mut header = at.lines();
        header.extend_from_slice(format!("{max}\n").as_bytes());
        let answer = exchange(self.host().as_ref(), Script::StderrTail, &header, &[]).await?;
        Ok(answer.find("bytes").map(unhex).unwrap_or_default())
    }
}
