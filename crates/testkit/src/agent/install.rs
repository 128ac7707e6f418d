//! Installs pinned versions of the agent CLI from npm, by package name, into `target/agents/<version>/`.
//!
//! The platform packages carry the bare executable, so no install script runs and nothing global changes. An install
//! is built in a folder of its own, asked for its version, and moved into place by one rename: what lies at the final
//! path is complete. Concurrent callers, tests in several processes among them, queue on a file lock.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::AgentVersion;
use crate::workspace;

/// An agent that is ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Its executable.
    pub path: PathBuf,
    /// Whether this call put it there.
    pub fresh: bool,
}

/// Why an agent could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no package for this machine.
    #[error(
        "the agent has no npm package for {os} on {arch}; run the tests on Linux or macOS, x86_64 or aarch64"
    )]
    Platform {
        /// The operating system.
        os: &'static str,
        /// The processor family.
        arch: &'static str,
    },
    /// `npm` is not on `PATH`.
    #[error(
        "`npm` is missing, which installs {package}; install it (Debian: `apt-get install npm`) and run \
         `cargo xtask agents`"
    )]
    NpmMissing {
        /// The package wanted, with its version.
        package: String,
    },
    /// `npm` ran and failed.
    #[error(
        "`npm` could not install {package}; check the network or npm's settings, then run `cargo xtask agents`:\n{stderr}"
    )]
    Npm {
        /// The package wanted, with its version.
        package: String,
        /// The first lines npm printed.
        stderr: String,
    },
    /// The package came without the executable.
    #[error("{package} holds no executable `claude`; its layout has changed")]
    NoExecutable {
        /// The package wanted, with its version.
        package: String,
    },
    /// The executable does not answer `--version` as it should.
    #[error(
        "{package} does not start as {expected}: it printed {printed:?}; delete target/agents and try again"
    )]
    WrongVersion {
        /// The package wanted, with its version.
        package: String,
        /// The version wanted.
        expected: &'static str,
        /// What it printed on both streams.
        printed: String,
    },
    /// A file operation failed.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Makes sure the agent is there at `version` and returns where.
pub fn install(version: AgentVersion) -> Result<Installed, InstallError> {
    install_into(&workspace::target_dir().join("agents"), version)
}

fn install_into(agents: &Path, version: AgentVersion) -> Result<Installed, InstallError> {
    let home = agents.join(version.number());
    let path = home.join("claude");
    if path.is_file() {
        return Ok(Installed { path, fresh: false });
    }
    fs::create_dir_all(agents).map_err(io_error("create", agents))?;
    // The lock is released when the file is closed, so a caller that is killed blocks nobody.
    let lock_path = agents.join(format!("{version}.lock"));
    let lock = File::create(&lock_path).map_err(io_error("create", &lock_path))?;
    lock.lock().map_err(io_error("lock", &lock_path))?;
    if path.is_file() {
        return Ok(Installed { path, fresh: false });
    }

    let name = package_name()?;
    let package = format!("@anthropic-ai/{name}@{version}");
    let staging = tempfile::Builder::new()
        .prefix(".install-")
        .tempdir_in(agents)
        .map_err(io_error("create a folder in", agents))?;
    run_npm(staging.path(), &package)?;
    let unpacked = staging.path().join("node_modules/@anthropic-ai").join(name);
    let executable = unpacked.join("claude");
    if !executable.is_file() {
        return Err(InstallError::NoExecutable { package });
    }
    check_version(&executable, staging.path(), &package, version)?;
    fs::rename(&unpacked, &home).map_err(io_error("move the agent to", &home))?;
    Ok(Installed { path, fresh: true })
}

/// Returns the npm package that carries the executable for this machine, without its scope.
fn package_name() -> Result<&'static str, InstallError> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("claude-code-linux-x64"),
        ("linux", "aarch64") => Ok("claude-code-linux-arm64"),
        ("macos", "x86_64") => Ok("claude-code-darwin-x64"),
        ("macos", "aarch64") => Ok("claude-code-darwin-arm64"),
        (os, arch) => Err(InstallError::Platform { os, arch }),
    }
}

fn run_npm(staging: &Path, package: &str) -> Result<(), InstallError> {
    // npm keeps its own environment: how it reaches its registry is the machine's business.
    let output = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"])
        .arg("--prefix")
        .arg(staging)
        .arg(package)
        .current_dir(staging)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                return InstallError::NpmMissing { package: package.to_owned() };
            }
            InstallError::Io { doing: "run npm in", path: staging.to_owned(), source }
        })?;
    if output.status.success() {
        return Ok(());
    }
    // npm says what went wrong first, and then much about where to read more.
    let stderr = String::from_utf8_lossy(&output.stderr).lines().take(5).collect::<Vec<_>>().join("\n");
    Err(InstallError::Npm { package: package.to_owned(), stderr })
}

fn check_version(
    executable: &Path,
    home: &Path,
    package: &str,
    version: AgentVersion,
) -> Result<(), InstallError> {
    let output = Command::new(executable)
        .arg("--version")
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("DISABLE_TELEMETRY", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(io_error("run", executable))?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).trim().to_owned();
    if output.status.success() && printed.split_whitespace().next() == Some(version.number()) {
        return Ok(());
    }
    Err(InstallError::WrongVersion { package: package.to_owned(), expected: version.number(), printed })
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InstallError + use<> {
    let path = path.to_owned();
    move |source| InstallError::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_present_agent_is_taken_as_it_is() {
        let agents = tempfile::tempdir().unwrap();
        let home = agents.path().join("2.1.212");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("claude"), "").unwrap();

        let installed = install_into(agents.path(), AgentVersion::Floor).unwrap();

        assert_eq!(installed, Installed { path: home.join("claude"), fresh: false });
    }

    #[test]
    fn a_program_that_is_not_the_agent_is_refused() {
        let dir = tempfile::tempdir().unwrap();

        let error =
            check_version(Path::new("/bin/echo"), dir.path(), "a-package", AgentVersion::Floor).unwrap_err();

        assert!(matches!(error, InstallError::WrongVersion { expected: "2.1.212", .. }), "{error}");
    }

    #[test]
    fn missing_npm_is_named_with_the_next_step() {
        let error = InstallError::NpmMissing { package: "p@1".to_owned() };
        let text = error.to_string();
        assert!(text.contains("apt-get install npm") && text.contains("cargo xtask agents"), "{text}");
    }
}
