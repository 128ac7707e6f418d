//! Writing to the agent: an append-only journal on the host, pumped into the agent's stdin there.

use crate::HostError;
use crate::exchange::exchange;
use crate::holder::Holder;
use crate::name::AttemptRef;
use crate::script::Script;

/// An entry that lies in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The length of the journal after this entry, in bytes: the offset of the next one.
    pub length: u64,
    /// True if the entry lay there already: an earlier try had arrived.
    pub already: bool,
    /// True if the agent has ended, so that whether it read the entry is not known. Only with `already`.
    pub agent_gone: bool,
}

/// Why an entry was not appended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Something else lies at this offset, or the journal does not reach it.
    #[error("the input is {length} bytes long, not {offset}")]
    Conflict {
        /// The offset that was asked for.
        offset: u64,
        /// The journal's length.
        length: u64,
        /// True if the journal is closed there.
        closed: bool,
    },
    /// The agent ended; nothing was appended.
    #[error("the agent has ended")]
    AgentGone,
    /// The attempt was never started.
    #[error("the attempt was never started")]
    NeverStarted,
    /// The disk or the quota of the host is full; nothing was appended.
    #[error("no space left on the host")]
    NoSpace,
    /// The host.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Holder {
    /// Appends `bytes` at `offset`, which has to be the length of the journal.
    ///
    /// May be sent again after any error: the same bytes at the same offset are appended once. Returns when
    /// the entry is in the journal, not when the agent has read it. An empty entry is not possible.
    ///
    /// # Errors
    ///
    /// See [`AppendError`].
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the entry was appended whole or not at all; sending it again finds out.
    pub async fn append(&self, at: &AttemptRef, offset: u64, bytes: &[u8]) -> Result<Appended, AppendError> {
        if bytes.is_empty() {
            return Ok(Appended { length: offset, already: true, agent_gone: false });
        }
        self.entry(at, offset, &bytes.len().to_string(), bytes).await
    }

    /// Closes the journal at `offset`, which has to be its length. The agent's stdin ends once it has read
    /// what comes before. May be sent again, like [`Holder::append`].
    ///
    /// # Errors
    ///
    /// See [`AppendError`].
    ///
    /// # Cancel safety
    ///
    /// As for [`Holder::append`].
    pub async fn close_input(&self, at: &AttemptRef, offset: u64) -> Result<Appended, AppendError> {
        self.entry(at, offset, "close", &[]).await
    }

    async fn entry(
        &self,
        at: &AttemptRef,
        offset: u64,
        size: &str,
        bytes: &[u8],
    ) -> Result<Appended, AppendError> {
        let mut header = at.lines();
        header.extend_from_slice(format!("{offset}\n{size}\n").as_bytes());
        let answer = exchange(self.host().as_ref(), Script::Append, &header, bytes).await?;
        let line = answer.lines.first().ok_or_else(|| answer.nonsense())?;
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["appended", length, already, gone] => Ok(Appended {
                length: length.parse().map_err(|_| answer.nonsense())?,
                already: *already == "1",
                agent_gone: *gone == "1",
            }),
            ["conflict", length, closed] => Err(AppendError::Conflict {
                offset,
                length: length.parse().map_err(|_| answer.nonsense())?,
                closed: *closed == "1",
            }),
            ["gone"] => Err(AppendError::AgentGone),
            ["never"] => Err(AppendError::NeverStarted),
            ["nospace"] => Err(AppendError::NoSpace),
            _ => Err(answer.nonsense().into()),
        }
    }
}
