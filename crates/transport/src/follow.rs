//! Following what agents print: bytes of their spools from an offset on, and how they end.

use std::fmt;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use crate::HostError;
use crate::exchange::LineReader;
use crate::holder::Holder;
use crate::host::Shell;
use crate::name::AttemptRef;
use crate::script::{Marker, Script};
use crate::status::ExitRecord;

/// What happened to an attempt that is followed. All but `Output` and `CaughtUp` are the last event of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FollowEvent {
    /// The agent printed. Events of one attempt come in order, without gap or overlap.
    Output {
        /// Where in the spool the bytes begin.
        offset: u64,
        /// The bytes, cut anywhere.
        bytes: Bytes,
    },
    /// All that the spool held when the following began was handed out: what comes now is news. Comes once an
    /// attempt, and never after its last event; an attempt that is over may go without it.
    CaughtUp,
    /// The agent's process ended. Every byte up to the recorded length came before; bytes that a child of
    /// the agent wrote in between may have come too.
    Exited(ExitRecord),
    /// The agent ended without a record: its holder had been killed. The spool was read to its end.
    Gone,
    /// The host was restarted: how the agent ended is not known.
    Rebooted,
    /// Nothing was ever started under this name.
    NeverStarted,
    /// The attempt's folder was removed while it was followed.
    Deleted,
    /// The spool is shorter than the offset that was asked for, or than its recorded length: it was cut, or
    /// belongs to another attempt.
    Short {
        /// Its length in bytes.
        length: u64,
    },
}

/// What carries out the following on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FollowEngine {
    /// The best there is: perl, else python3, else sh.
    #[default]
    Auto,
    /// perl: looks every 10 to 50 ms.
    Perl,
    /// python3: the same.
    Python3,
    /// Nothing but sh: looks every 200 ms.
    Sh,
}

impl FollowEngine {
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Perl => "perl",
            Self::Python3 => "python3",
            Self::Sh => "sh",
        }
    }
}

impl Holder {
    /// Follows one attempt from byte `from` of its spool.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn follow(&self, at: &AttemptRef, from: u64) -> Result<Follower, HostError> {
        Ok(Follower { all: self.follow_many(&[(at.clone(), from)]).await? })
    }

    /// Follows several attempts by one process on the host. To follow others, open another one; offsets
    /// make sure that nothing is lost or repeated.
    ///
    /// # Errors
    ///
    /// When the host does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing; may be dropped at any time.
    pub async fn follow_many(&self, attempts: &[(AttemptRef, u64)]) -> Result<Followers, HostError> {
        let marker = Marker::random();
        let host = self.host();
        let shell = host.open(Script::Follow.text(&marker)).await?;
        let mut request = format!("{}\n", self.engine().word()).into_bytes();
        for (at, from) in attempts {
            request.extend_from_slice(format!("{} {} {from}\n", at.run, at.attempt).as_bytes());
        }
        request.extend_from_slice(b".\n");
        let mut followers = Followers {
            host: host.name().to_owned(),
            lines: LineReader::new(marker.as_str()),
            shell,
            buffer: BytesMut::with_capacity(64 * 1024),
            inside: None,
            open: vec![true; attempts.len()],
        };
        followers.begin(&request).await?;
        Ok(followers)
    }
}

/// Yields what happens to one attempt.
///
/// Nothing is read ahead: a caller that does not ask lets the pipe fill up and the host wait, without
/// losing anything. Dropping it ends the process on the host.
#[derive(Debug)]
pub struct Follower {
    all: Followers,
}

impl Follower {
    /// Waits for the next event; none after the last.
    ///
    /// # Errors
    ///
    /// [`HostError::Lost`] if the connection ended without a last event: the agent may still run. Follow
    /// again from the end of the last output.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing that was read is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, HostError> {
        Ok(self.all.next().await?.map(|(_, event)| event))
    }
}

/// Yields what happens to several attempts.
pub struct Followers {
    host: String,
    shell: Shell,
    lines: LineReader,
    buffer: BytesMut,
    /// The output that is being received: which attempt, where, how many bytes are to come.
    inside: Option<(usize, u64, u64)>,
    /// Which attempts have not had their last event.
    open: Vec<bool>,
}

impl fmt::Debug for Followers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followers")
            .field("host", &self.host)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Followers {
    /// Waits for the next event of any attempt, with its place in the list that was asked for; none once
    /// every attempt had its last event.
    ///
    /// # Errors
    ///
    /// [`HostError::Lost`], as for [`Follower::next`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing that was read is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<(usize, FollowEvent)>, HostError> {
        loop {
            if !self.open.contains(&true) {
                return Ok(None);
            }
            if let Some(event) = self.take()? {
                return Ok(Some(event));
            }
            self.fill().await?;
        }
    }

    async fn begin(&mut self, request: &[u8]) -> Result<(), HostError> {
        while self.line().await? != "ready" {}
        let sent = async {
            use tokio::io::AsyncWriteExt;
            self.shell.stdin.write_all(request).await?;
            self.shell.stdin.flush().await
        };
        sent.await.map_err(|source| self.lost(Some(source.into())))
    }

    async fn line(&mut self) -> Result<String, HostError> {
        loop {
            if let Some(line) = self.lines.next(&mut self.buffer) {
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    /// Reads more; cancel safe, since `read_buf` is.
    async fn fill(&mut self) -> Result<(), HostError> {
        self.buffer.reserve(64 * 1024);
        let mut complaint = [0; 512];
        loop {
            tokio::select! {
                read = self.shell.stdout.read_buf(&mut self.buffer) => {
                    return match read {
                        Ok(0) => Err(self.lost(None)),
                        Ok(_) => Ok(()),
                        Err(source) => Err(self.lost(Some(source.into()))),
                    };
                }
                // Drained so that the script cannot block on it; a closed one is not polled again.
                n = self.shell.stderr.read(&mut complaint) => match n {
                    Ok(n @ 1..) => {
                        let text = String::from_utf8_lossy(&complaint[..n]).into_owned();
                        tracing::debug!(host = self.host, text, "stderr of the follower");
                    }
                    Ok(0) | Err(_) => self.shell.stderr = Box::new(Silent),
                },
            }
        }
    }

    fn take(&mut self) -> Result<Option<(usize, FollowEvent)>, HostError> {
        if let Some((id, offset, left)) = self.inside {
            if self.buffer.is_empty() {
                return Ok(None);
            }
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
            let bytes = self.buffer.split_to(n).freeze();
            let n = n as u64;
            self.inside = (left > n).then_some((id, offset + n, left - n));
            return Ok(Some((id, FollowEvent::Output { offset, bytes })));
        }
        let Some(line) = self.lines.next(&mut self.buffer) else { return Ok(None) };
        let words: Vec<&str> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().ok();
        let event = match words.as_slice() {
            ["following", engine] => {
                tracing::debug!(host = self.host, engine, "following");
                return self.take();
            }
            ["out", id, offset, length] => match (id.parse(), number(offset), number(length)) {
                (Ok(id), Some(offset), Some(length)) => {
                    self.inside = Some((id, offset, length));
                    return self.take();
                }
                _ => None,
            },
            ["caught", id] => match id.parse() {
                Ok(id) if self.open.get(id) == Some(&true) => return Ok(Some((id, FollowEvent::CaughtUp))),
                Ok(_) | Err(_) => None,
            },
            ["exit", id, rest @ ..] => {
                ExitRecord::read(&rest.join(" ")).map(|record| (*id, FollowEvent::Exited(record)))
            }
            ["short", id, length] => number(length).map(|length| (*id, FollowEvent::Short { length })),
            ["gone", id] => Some((*id, FollowEvent::Gone)),
            ["rebooted", id] => Some((*id, FollowEvent::Rebooted)),
            ["never", id] => Some((*id, FollowEvent::NeverStarted)),
            ["deleted", id] => Some((*id, FollowEvent::Deleted)),
            _ => None,
        };
        let event = event.and_then(|(id, event)| Some((id.parse::<usize>().ok()?, event)));
        match event {
            Some((id, event)) if self.open.get(id) == Some(&true) => {
                self.open[id] = false;
                Ok(Some((id, event)))
            }
            _ => Err(HostError::Unusable {
                host: self.host.clone(),
                doing: Script::Follow.doing(),
                message: format!("unexpected answer {line:?}"),
            }),
        }
    }

    fn lost(&self, source: Option<Box<dyn std::error::Error + Send + Sync>>) -> HostError {
        HostError::Lost { host: self.host.clone(), doing: Script::Follow.doing(), source }
    }
}

/// A stream that never has anything, and never ends.
struct Silent;

impl tokio::io::AsyncRead for Silent {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Pending
    }
}
