//! Starting an attempt, exactly once.

use crate::HostError;
use crate::exchange::{Answer, exchange};
use crate::holder::Holder;
use crate::name::AttemptRef;
use crate::script::Script;
use crate::spec::{BadSpec, StartSpec};

/// An attempt that runs, or ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The agent's process; none if it was attached to and its process is not known.
    pub pid: Option<u32>,
    /// True if this attempt had been started before: nothing was started, nothing was sent to it.
    pub attached: bool,
    /// True if the host kills what its users leave behind when they log out (`KillUserProcesses=yes` of
    /// logind), and offers no scope to be safe from that: the run ends with the user's last connection.
    pub ends_at_logout: bool,
}

/// Why nothing was started. Only [`StartError::Host`] with a lost host leaves that open; sending the same
/// start again settles it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The specification itself is wrong.
    #[error(transparent)]
    Spec(#[from] BadSpec),
    /// The working directory does not exist, is no directory, or cannot be entered.
    #[error("no such directory: `{}`", .path.escape_ascii())]
    NoSuchDirectory {
        /// The directory as it was given.
        path: Vec<u8>,
    },
    /// There is no such program.
    #[error("agent not found: `{}`", .program.escape_ascii())]
    AgentNotFound {
        /// The program as it was given.
        program: Vec<u8>,
    },
    /// The program is there, but is no file that may be executed.
    #[error("agent is not executable: `{}`", .program.escape_ascii())]
    AgentNotExecutable {
        /// The program as it was given.
        program: Vec<u8>,
    },
    /// The session has a living agent already, of another attempt.
    #[error("the session is in use by attempt {} of run `{}`", .by.attempt, .by.run)]
    SessionBusy {
        /// Whose agent it is.
        by: AttemptRef,
        /// Its process, unless it is just being started.
        pid: Option<u32>,
    },
    /// The key has a living agent already, of another attempt.
    #[error("the key is in use by attempt {} of run `{}`", .by.attempt, .by.run)]
    KeyBusy {
        /// Whose agent it is.
        by: AttemptRef,
        /// Its process, unless it is just being started.
        pid: Option<u32>,
    },
    /// The disk or the quota is full.
    #[error("no space left on the host: {message}")]
    NoSpace {
        /// What the host said.
        message: String,
    },
    /// The state directory cannot be created or written to.
    #[error("the state directory cannot be written to: {message}")]
    ReadOnlyHome {
        /// What the host said.
        message: String,
    },
    /// The host.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Holder {
    /// Starts an attempt and returns once its process exists.
    ///
    /// Two starts of one attempt, at the same time or one after the other, give one process; the later one
    /// attaches, whatever its specification says. An error other than a lost host means that nothing was
    /// started.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the attempt is started or not; starting it again finds out.
    pub async fn start(&self, spec: &StartSpec) -> Result<Started, StartError> {
        let header = spec.header()?;
        let answer = exchange(self.host().as_ref(), Script::Start, &header, &spec.input).await?;
        read(spec, &answer)
    }
}

fn read(spec: &StartSpec, answer: &Answer) -> Result<Started, StartError> {
    let program = || spec.argv.first().cloned().unwrap_or_default();
    let ends_at_logout = answer.find("logout").is_some();
    let verdict = answer.lines.iter().find(|line| *line != "logout");
    let Some((word, rest)) = verdict.map(|line| line.split_once(' ').unwrap_or((line, ""))) else {
        return Err(answer.nonsense().into());
    };
    let message = || rest.to_owned();
    let pid = |text: &str| text.parse().ok().filter(|pid| *pid != 0);
    let busy = || {
        let mut words = rest.split(' ');
        let by = AttemptRef::new(words.next()?, words.next()?.parse().ok()?).ok()?;
        Some((by, words.next().and_then(pid)))
    };
    Err(match word {
        "started" | "attached" => {
            let pid = rest.split(' ').next().and_then(pid);
            return Ok(Started { pid, attached: word == "attached", ends_at_logout });
        }
        "nodir" => StartError::NoSuchDirectory { path: spec.cwd.clone() },
        "noagent" => StartError::AgentNotFound { program: program() },
        "notexec" => StartError::AgentNotExecutable { program: program() },
        "nospace" => StartError::NoSpace { message: message() },
        "readonly" => StartError::ReadOnlyHome { message: message() },
        "sessionbusy" => match busy() {
            Some((by, pid)) => StartError::SessionBusy { by, pid },
            None => answer.nonsense().into(),
        },
        "keybusy" => match busy() {
            Some((by, pid)) => StartError::KeyBusy { by, pid },
            None => answer.nonsense().into(),
        },
        _ => answer.nonsense().into(),
    })
}
