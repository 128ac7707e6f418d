//! What of a run still lives on its host, and what its output files end with.

use std::time::Duration;

use crate::HostError;
use crate::exchange::{Answer, exchange};
use crate::holder::Holder;
use crate::name::{AttemptRef, Name};
use crate::payload::{push_line, unhex};
use crate::script::Script;
use crate::status::AttemptStatus;

/// A living process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProcess {
    /// Its id.
    pub pid: u32,
    /// Its parent's id; 1, or a reaper, for an orphan.
    pub ppid: u32,
    /// Its arguments, each ended by a NUL where the host tells them apart, at most 4096 bytes. Any bytes:
    /// escape before showing.
    pub command: Vec<u8>,
    /// Since when it runs, where the host can tell.
    pub age: Option<Duration>,
    /// It is the agent of an attempt.
    pub is_agent: bool,
    /// A living agent is among its ancestors.
    pub under_agent: bool,
    /// A living holder of this run is among its ancestors.
    pub in_holder: bool,
}

impl RunProcess {
    /// Returns the command with spaces between the arguments; still any bytes.
    #[must_use]
    pub fn command_line(&self) -> Vec<u8> {
        let mut line: Vec<u8> =
            self.command.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
        while line.last() == Some(&b' ') {
            line.pop();
        }
        line
    }
}

/// What lies at an output path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputFile {
    /// Nothing.
    Missing,
    /// A link, a FIFO, a directory, a device: it was not opened.
    Other,
    /// A regular file.
    Regular {
        /// Its size in bytes.
        size: u64,
        /// Its last bytes, at most 256.
        tail: Vec<u8>,
    },
}

/// The answer to [`Holder::survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The living processes, never the searcher, a holder or its pump.
    pub processes: Vec<RunProcess>,
    /// One entry for each path asked for, in that order.
    pub outputs: Vec<OutputFile>,
}

/// What [`Holder::stop`] found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReport {
    /// What it took to end the agent.
    pub agent: AgentEnd,
    /// How many processes got a KILL, the agent included if it did.
    pub killed: u32,
    /// What is known of the attempt afterwards.
    pub status: AttemptStatus,
    /// What still lives, looked for after the last KILL. Empty, or the stop failed.
    pub left: Vec<RunProcess>,
}

/// What it took to end an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEnd {
    /// It had ended before, or was never started.
    AlreadyGone,
    /// It left when its input was closed.
    Closed,
    /// It left after a TERM.
    Terminated,
    /// It had to be killed.
    Killed,
}

impl Holder {
    /// Lists the living processes of a run, of all its attempts, and looks at output files.
    ///
    /// A process belongs to the run if it carries `BURSAR_RUN` in its environment, or has a living agent of
    /// the run among its ancestors. One that cleared its environment and was orphaned is not found; processes
    /// of other users are not readable. Paths are looked at before they are opened, and only regular files
    /// are.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn survey(&self, run: &Name, outputs: &[Vec<u8>]) -> Result<Survey, HostError> {
        let mut header = format!("{run}\n").into_bytes();
        for path in outputs {
            push_line(&mut header, "p", path);
        }
        header.extend_from_slice(b".\n");
        let answer = exchange(self.host().as_ref(), Script::Survey, &header, &[]).await?;
        let found: Option<Vec<_>> = answer.all("file").map(output).collect();
        let found = found.filter(|found| found.len() == outputs.len()).ok_or_else(|| answer.nonsense())?;
        Ok(Survey { processes: processes(&answer)?, outputs: found })
    }

    /// Ends an attempt's agent and everything else of its run, and looks whether that worked.
    ///
    /// Closes the input; after a quarter of `grace` sends TERM to the agent; after the rest sends KILL to
    /// every process of the run (see [`Holder::survey`]), in any session or process group, until two looks
    /// in a row find none. The same if the agent is gone and only survivors live; if nothing lives,
    /// [`AgentEnd::AlreadyGone`] is a success.
    ///
    /// # Errors
    ///
    /// When the host does not answer. Stopping again is always right.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the host goes on with it.
    pub async fn stop(&self, at: &AttemptRef, grace: Duration) -> Result<StopReport, HostError> {
        let mut header = at.lines();
        header.extend_from_slice(format!("{}\n", grace.as_millis()).as_bytes());
        let answer = exchange(self.host().as_ref(), Script::Stop, &header, &[]).await?;
        let line = answer.find("stopped").ok_or_else(|| answer.nonsense())?;
        let (how, killed) = line.split_once(' ').ok_or_else(|| answer.nonsense())?;
        Ok(StopReport {
            agent: match how {
                "gone" => AgentEnd::AlreadyGone,
                "closed" => AgentEnd::Closed,
                "terminated" => AgentEnd::Terminated,
                "killed" => AgentEnd::Killed,
                _ => return Err(answer.nonsense()),
            },
            killed: killed.parse().map_err(|_| answer.nonsense())?,
            status: AttemptStatus::read(&answer)?,
            left: processes(&answer)?,
        })
    }
}

fn processes(answer: &Answer) -> Result<Vec<RunProcess>, HostError> {
    let all: Option<Vec<_>> = answer.all("proc").map(process).collect();
    let mut all = all.ok_or_else(|| answer.nonsense())?;
    all.sort_by_key(|process| process.pid);
    Ok(all)
}

fn process(line: &str) -> Option<RunProcess> {
    let mut words = line.split(' ');
    Some(RunProcess {
        pid: words.next()?.parse().ok()?,
        ppid: words.next()?.parse().ok()?,
        age: words.next()?.parse().ok().map(Duration::from_secs),
        is_agent: words.next()? == "1",
        under_agent: words.next()? == "1",
        in_holder: words.next()? == "1",
        command: unhex(words.next()?),
    })
}

fn output(line: &str) -> Option<OutputFile> {
    let mut words = line.split(' ');
    match words.next()? {
        "missing" => Some(OutputFile::Missing),
        "other" => Some(OutputFile::Other),
        "regular" => Some(OutputFile::Regular {
            size: words.next()?.parse().ok()?,
            tail: unhex(words.next().unwrap_or_default()),
        }),
        _ => None,
    }
}
