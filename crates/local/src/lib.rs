//! This machine as a host: scripts are child processes. It must not know what the scripts do; see
//! `bursar-transport` for what every transport has to keep.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll};

use bursar_transport::{BoxFuture, Host, HostError, Shell, ShellExit};
use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

/// Runs scripts as child processes, each in a process group of its own, so that Ctrl-C or the end of the
/// terminal does not reach them.
#[derive(Debug, Clone)]
pub struct LocalHost {
    program: OsString,
    args: Vec<OsString>,
    clear: bool,
    envs: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
}

impl Default for LocalHost {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalHost {
    /// Makes a host whose scripts run by `sh -s` in the current environment and directory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            program: "sh".into(),
            args: vec!["-s".into()],
            clear: false,
            envs: Vec::new(),
            directory: None,
        }
    }

    /// Runs scripts by another shell, which has to read them from its stdin.
    #[must_use]
    pub fn shell<A: Into<OsString>>(
        mut self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        self.program = program.into();
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Starts from an empty environment.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.clear = true;
        self.envs.clear();
        self
    }

    /// Sets a variable of the scripts.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Sets variables of the scripts.
    #[must_use]
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(self, pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        pairs.into_iter().fold(self, |host, (name, value)| host.env(name, value))
    }

    /// Takes a variable away from the scripts.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), None));
        self
    }

    /// Runs scripts in a directory.
    #[must_use]
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A terminal sends INT and HUP to its foreground group, never to this one.
        command.process_group(0);
        if self.clear {
            command.env_clear();
        }
        for (name, value) in &self.envs {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Command::from(command).spawn()
    }
}

impl Host for LocalHost {
    fn name(&self) -> &'static str {
        "local"
    }

    fn transport(&self) -> &'static str {
        "local"
    }

    fn open(&self, script: Bytes) -> BoxFuture<'_, Result<Shell, HostError>> {
        Box::pin(async move {
            let unreachable = |source: io::Error| HostError::Unreachable {
                host: "local".to_owned(),
                source: source.into(),
            };
            let mut child = self.spawn().map_err(unreachable)?;
            let (Some(mut stdin), Some(stdout), Some(stderr)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Err(unreachable(io::Error::other("the pipes of the shell are missing")));
            };
            stdin.write_all(&script).await.map_err(lost("sending a script"))?;
            // Waited for by a runtime task, so that it leaves no zombie if nobody asks how it ended.
            let ended = tokio::spawn(async move { child.wait().await });
            Ok(Shell {
                stdin: Box::new(Stdin(Some(stdin))),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
                exit: Box::pin(async move {
                    let status = ended.await.map_err(io::Error::other).and_then(|status| status);
                    status.map(exit).map_err(lost("waiting for a script"))
                }),
            })
        })
    }
}

/// The script's stdin. tokio's own closes when dropped, not at `shutdown`.
struct Stdin(Option<ChildStdin>);

impl AsyncWrite for Stdin {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Some(stdin) => Pin::new(stdin).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Some(stdin) => Pin::new(stdin).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

fn lost(doing: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::Lost { host: "local".to_owned(), doing, source: Some(source.into()) }
}

fn exit(status: ExitStatus) -> ShellExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ShellExit::Code(code),
        (None, Some(signal)) => ShellExit::Signal(signal_name(signal)),
        (None, None) => ShellExit::Signal("unknown".to_owned()),
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        1 => "HUP".to_owned(),
        2 => "INT".to_owned(),
        9 => "KILL".to_owned(),
        13 => "PIPE".to_owned(),
        15 => "TERM".to_owned(),
        other => other.to_string(),
    }
}
