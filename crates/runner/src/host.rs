//! The host as the loop sees it: what can be asked of the machine an agent runs on.
//!
//! [`AgentHost`] knows nothing of runs, budgets or outcomes; it neither retries nor waits for a link to come back.
//! Production uses `bursar_transport`'s holder behind it, tests and the simulator use their own. Every method may be
//! asked again after a cut, with the same effect as once.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bursar_core::decision::Start;
use bursar_core::event::{ExitStatus, OutputTail, Refusal, Survivor};
use bursar_core::{AttemptId, RunId};
use bytes::Bytes;

/// The answer of a host, in time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, HostError>> + Send + 'a>>;

/// A machine that agents run on.
///
/// Dropping an answer half-way leaves the host in a state from which the same question, asked again, succeeds.
pub trait AgentHost: Send + Sync + fmt::Debug {
    /// Starts the attempt's agent, or finds the one that was started for it before.
    fn start<'a>(&'a self, order: &'a StartOrder) -> Answer<'a, Started>;

    /// Follows the attempt's stdout from this offset.
    fn follow<'a>(&'a self, run: &'a RunId, attempt: AttemptId, from: u64) -> Answer<'a, Box<dyn Follow>>;

    /// Appends to the attempt's input journal, if it is `offset` bytes long; if it holds these bytes there already,
    /// nothing changes.
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        attempt: AttemptId,
        offset: u64,
        bytes: &'a [u8],
    ) -> Answer<'a, Appended>;

    /// Closes the attempt's input at this length of the journal; closing twice is closing once.
    fn close_input<'a>(&'a self, run: &'a RunId, attempt: AttemptId, offset: u64) -> Answer<'a, ()>;

    /// Stops everything that carries the run's marker, and returns what could not be stopped.
    fn stop<'a>(&'a self, run: &'a RunId, attempt: AttemptId, now: bool) -> Answer<'a, Vec<Survivor>>;

    /// Returns what still runs of this run, and the ends of these background tasks' output files (id, path).
    fn survey<'a>(&'a self, run: &'a RunId, outputs: &'a [(String, String)]) -> Answer<'a, Survey>;

    /// Returns the last lines of the attempt's stderr.
    fn stderr_tail<'a>(&'a self, run: &'a RunId, attempt: AttemptId) -> Answer<'a, String>;

    /// Removes runs from the host that ended there at least this long ago, but none of `keep`, and returns how many.
    fn gc<'a>(&'a self, older_than: Duration, keep: &'a [RunId]) -> Answer<'a, u64>;
}

/// Where an attempt's stdout is read from.
pub trait Follow: Send {
    /// Returns the next piece, or how the attempt ended once all of its stdout was handed out.
    ///
    /// Cancel safe: a dropped answer loses no bytes. After an error or an end, it is not called again.
    fn next(&mut self) -> Answer<'_, Followed>;
}

/// What came while following.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// Bytes of stdout at this offset.
    Bytes { offset: u64, bytes: Bytes },
    /// All that the host had when this following began was handed out: what comes now is news.
    CaughtUp,
    /// The process ended, the host recorded how, and all of its stdout was handed out.
    Exited { status: ExitStatus, spooled: u64 },
    /// The process is gone, nobody recorded how, and all that is left of its stdout was handed out.
    Vanished { rebooted: bool },
}

/// Everything a host needs to start an attempt.
#[derive(Clone, PartialEq, Eq)]
pub struct StartOrder {
    pub run: RunId,
    /// Which agent, and where to look for it.
    pub agent: AgentChoice,
    /// The working directory on the host; empty means the user's home there.
    pub dir: Vec<u8>,
    /// The values of `--env NAME`; they are kept nowhere else.
    pub env: Vec<(String, Vec<u8>)>,
    /// `--key`: it has at most one living agent on a host, whoever starts it.
    pub key: Option<String>,
    pub start: Start,
}

impl fmt::Debug for StartOrder {
    /// Leaves out values of the environment, which may be secret, and the input, which is a prompt.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartOrder")
            .field("run", &self.run)
            .field("attempt", &self.start.attempt)
            .field("session", &self.start.session)
            .field("agent", &self.agent)
            .field("env", &self.env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Which agent to start.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AgentChoice {
    /// The command's name, such as `claude`.
    pub name: String,
    /// Its path on the host; None looks for it.
    pub path: Option<String>,
}

/// The agent's process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub pid: u32,
    /// It was there before this call.
    pub found: bool,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The journal holds the bytes.
    Written,
    /// The agent's process is gone, or its input is closed.
    Gone,
}

/// The host's answer to a survey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    pub survivors: Vec<Survivor>,
    pub outputs: Vec<OutputTail>,
}

/// Why a host did not answer, by what the loop can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The host could not be reached, and nothing was done there: ask again later.
    #[error("could not reach the host: {detail}")]
    Unreachable { detail: String, hint: String },
    /// The link broke while the answer was awaited: ask again.
    #[error("the link broke: {detail}")]
    Cut { detail: String },
    /// The host was reached but could not do it: a tool is missing, its disk is full, it answered nonsense.
    #[error("the host failed: {detail}")]
    Failed { detail: String, hint: String },
    /// The host, or its sign-in, said no; asking again would not help.
    #[error("the host refused: {}", .0.detail)]
    Refused(Refusal),
    /// The host knows nothing of this attempt: its files are gone.
    #[error("the host has no record of the attempt: {detail}")]
    Unknown { detail: String },
}
