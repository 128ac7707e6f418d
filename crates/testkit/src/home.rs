//! A home of its own for a real agent: no key, no settings, no network beyond loopback, no update, no telemetry.
//!
//! The environment is a closed list, never a copy of the caller's, so the tester's own key or sign-in cannot leak into
//! a test, and a base URL off this machine is refused before anything starts. The variables are those under which the
//! agent's behaviour was measured; `IS_SANDBOX` lets `bypassPermissions` run as root.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::agent::{AgentVersion, agent_path};
use crate::processes;

/// Why a home could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The model's address is not on this machine.
    #[error(
        "the model's base URL {url:?} is not an http URL of a loopback address; nothing may leave this machine"
    )]
    NotLoopback {
        /// The URL given.
        url: String,
    },
    /// The variable would weaken the seal.
    #[error("`{name}` is set by the home itself and cannot be changed")]
    Sealed {
        /// The variable.
        name: String,
    },
    /// A file operation failed.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Folders and environment for one agent. When dropped, the folders are gone and so is every process that carries
/// this environment: an orphaned shell, a holder, an agent that a failed test left behind.
#[derive(Debug)]
pub struct AgentHome {
    root: TempDir,
    base_url: String,
    /// The made-up credential: its variable and its value.
    credential: (&'static str, &'static str),
    extra: Vec<(String, String)>,
}

/// Variables that keep the agent from reaching a real service; no test may set them.
const SEALED: [&str; 4] =
    ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

impl AgentHome {
    /// Makes the folders `home`, `work`, `tmp` and `state` for an agent whose model answers at `base_url`.
    pub fn new(base_url: impl Into<String>) -> Result<Self, HomeError> {
        let base_url = base_url.into();
        if !is_loopback(&base_url) {
            return Err(HomeError::NotLoopback { url: base_url });
        }
        let root = tempfile::Builder::new()
            .prefix("bursar-")
            .tempdir()
            .map_err(|source| HomeError::Io { doing: "make a temporary folder", source })?;
        for folder in ["home", "work", "tmp", "state"] {
            fs::create_dir(root.path().join(folder))
                .map_err(|source| HomeError::Io { doing: "make the folders of the home", source })?;
        }
        Ok(Self { root, base_url, credential: ("ANTHROPIC_API_KEY", "dummy"), extra: Vec::new() })
    }

    /// Makes the agent believe that it is signed in with a subscription, by a made-up token in place of the made-up key.
    ///
    /// Only then does it read the usage limits in the model's headers and tell of them in `rate_limit_event`.
    pub fn with_subscription(mut self) -> Self {
        self.credential = ("CLAUDE_CODE_OAUTH_TOKEN", "dummy");
        self
    }

    /// Makes `work` a git repository with no commit.
    pub fn with_git(self) -> Result<Self, HomeError> {
        let fail = |source| HomeError::Io { doing: "run `git init` in the work folder", source };
        let output = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(self.work())
            .env_clear()
            .envs(self.env())
            .output()
            .map_err(fail)?;
        if output.status.success() {
            return Ok(self);
        }
        Err(fail(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())))
    }

    /// Adds a variable, for example `BASH_DEFAULT_TIMEOUT_MS`, or replaces one of the defaults.
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Result<Self, HomeError> {
        let name = name.into();
        let proxy = name.to_ascii_lowercase().ends_with("_proxy");
        if proxy || SEALED.contains(&name.as_str()) || name.starts_with("CLAUDE_CODE_USE_") {
            return Err(HomeError::Sealed { name });
        }
        self.extra.push((name, value.into()));
        Ok(self)
    }

    /// Returns the folder everything else lies in.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns the agent's `HOME`.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Returns the folder the agent works in.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Returns the folder under which the agent keeps the output of background tasks.
    pub fn tmp(&self) -> PathBuf {
        self.root().join("tmp")
    }

    /// Returns the `XDG_STATE_HOME`, where the product keeps its runs.
    pub fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Returns the whole environment: what is not in it is not set.
    pub fn env(&self) -> Vec<(String, String)> {
        let folder = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut env: Vec<(String, String)> = [
            ("HOME", folder(self.home())),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("SHELL", "/bin/bash".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("XDG_STATE_HOME", folder(self.state())),
            ("ANTHROPIC_BASE_URL", self.base_url.clone()),
            (self.credential.0, self.credential.1.to_owned()),
            ("CLAUDE_CODE_TMPDIR", folder(self.tmp())),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("IS_SANDBOX", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in &self.extra {
            match env.iter_mut().find(|(known, _)| known == name) {
                Some(entry) => entry.1.clone_from(value),
                None => env.push((name.clone(), value.clone())),
            }
        }
        env
    }

    /// Returns the ids of the processes that run with this environment, wherever they are in the process tree.
    pub fn processes(&self) -> Vec<i32> {
        processes::marked(&self.root().to_string_lossy())
    }

    /// Returns a command that runs `program` in `work` with this environment and nothing else.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env()).current_dir(self.work());
        command
    }

    /// Returns a command for the real agent at `version` with `-p`, stream-json output and every tool allowed.
    ///
    /// # Panics
    /// When the agent cannot be installed.
    #[track_caller]
    pub fn agent(&self, version: AgentVersion) -> Command {
        let mut command = self.command(agent_path(version));
        command.args([
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
        ]);
        command
    }
}

impl Drop for AgentHome {
    fn drop(&mut self) {
        processes::kill_marked(&self.root().to_string_lossy());
    }
}

/// Says whether `url` is plain http to an address of this machine, given as a number: a name could be resolved to
/// anything.
fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => authority,
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for url in ["http://127.0.0.1:8080", "http://127.0.0.1:1/", "http://[::1]:99", "http://127.8.8.8"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "https://127.0.0.1:8080",
            "http://api.example.com",
            "http://localhost:80",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1@example.com",
            "http://example.com/127.0.0.1",
            "http://10.0.0.1:80",
            "",
        ] {
            assert!(matches!(AgentHome::new(url), Err(HomeError::NotLoopback { .. })), "{url}");
        }
    }

    #[test]
    fn environment_is_a_closed_list() {
        let home = AgentHome::new("http://127.0.0.1:9")
            .unwrap()
            .with_env("BASH_DEFAULT_TIMEOUT_MS", "2000")
            .unwrap();

        let output = home.command("/usr/bin/env").output().unwrap();

        let printed = String::from_utf8(output.stdout).unwrap();
        let mut names: Vec<&str> = printed.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        let mut expected: Vec<String> = home.env().into_iter().map(|(name, _)| name).collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert!(printed.contains("ANTHROPIC_API_KEY=dummy\n"));
    }

    #[test]
    fn what_seals_the_agent_off_cannot_be_changed() {
        for name in ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "HTTPS_PROXY", "CLAUDE_CODE_USE_BEDROCK"] {
            let home = AgentHome::new("http://127.0.0.1:9").unwrap();
            assert!(matches!(home.with_env(name, "x"), Err(HomeError::Sealed { .. })), "{name}");
        }
    }

    #[test]
    fn what_runs_with_the_environment_is_found_and_ended_with_it() {
        let home = AgentHome::new("http://127.0.0.1:9").unwrap();
        let mut child = home.command("/bin/sleep").arg("60").spawn().unwrap();
        assert_eq!(home.processes(), [i32::try_from(child.id()).unwrap()]);

        drop(home);

        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_default_can_be_replaced() {
        let home = AgentHome::new("http://127.0.0.1:9").unwrap().with_env("SHELL", "/bin/dash").unwrap();
        let shells: Vec<_> = home.env().into_iter().filter(|(name, _)| name == "SHELL").collect();
        assert_eq!(shells, [("SHELL".to_owned(), "/bin/dash".to_owned())]);
    }
}
