//! What a transport has to offer: run a POSIX sh script on a host, with its three streams and its end.
//! It must not know about agents, runs or spools; those live in [`crate::Holder`], built on this trait.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::HostError;

/// A boxed future, so that [`Host`] can be used as `Arc<dyn Host>`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A machine scripts can be run on.
///
/// Rules every implementation keeps:
/// - The command is exactly `sh -s`, by the user's login shell where there is one; nothing else survives
///   every login shell. The script is the first thing written to its stdin, and [`Shell::stdin`] goes on
///   after it.
/// - Dropping the streams ends the script's stdin, and every script ends then by itself. A transport kills
///   nothing.
/// - No policy: no retries, no time limits on agents, no reading of what goes through.
pub trait Host: Send + Sync + fmt::Debug {
    /// The name the user gave: `local`, an alias, `user@host:port`.
    fn name(&self) -> &str;

    /// The kind of transport: `local` or `ssh`.
    fn transport(&self) -> &'static str;

    /// Starts `script`.
    ///
    /// # Errors
    ///
    /// [`HostError::Refused`] and [`HostError::Unreachable`] mean that not one line of the script ran;
    /// anything else means that it may have.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the script started, with its stdin closed.
    fn open(&self, script: Bytes) -> BoxFuture<'_, Result<Shell, HostError>>;
}

/// A running script.
pub struct Shell {
    /// The script's stdin, after the script. `shutdown` ends it while the other streams stay open.
    pub stdin: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    /// The script's stdout. Start-up files of the login shell may have printed here first.
    pub stdout: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// The script's stderr.
    pub stderr: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// Resolves when the script ended, or fails when that cannot be known any more. It may be dropped:
    /// the end is then collected in the background.
    pub exit: Pin<Box<dyn Future<Output = Result<ShellExit, HostError>> + Send + Sync>>,
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").finish_non_exhaustive()
    }
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellExit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it; the name is without `SIG` (`KILL`), or a number where there is no name.
    Signal(String),
}
