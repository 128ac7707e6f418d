//! The background driver: this program again, without a terminal, seeing one run to its end.
//!
//! `attach --background RUN` is started twice: the first process has a process group of its own, which a hang-up of
//! our terminal cannot reach; as a leader it cannot begin a session, so it starts the second, which does.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use bursar_core::RunId;
use bursar_runner::Store;

use crate::exit;
use crate::failure::Failure;

/// Returns the log of a run's background driver.
pub(crate) fn log_file(store: &Store, run: &RunId) -> PathBuf {
    store.root().join("mirror").join(&run.0).join("driver.log")
}

/// Starts a background driver for a run and returns once it is on its own.
pub(crate) fn spawn(store: &Store, run: &RunId) -> Result<(), Failure> {
    let failed = |error: &io::Error| {
        Failure::new(exit::LOST, format!("cannot start the background driver of run `{run}`"))
            .caused_by(error)
            .hint(format!("the run is stored; `bursar attach {run}` drives it from a terminal"))
    };
    let mut first = command(store, run).map_err(|error| failed(&error))?;
    let status = first.process_group(0).status().map_err(|error| failed(&error))?;
    if !status.success() {
        return Err(failed(&io::Error::other(format!("it ended with {status}")))
            .hint(format!("see {}", log_file(store, run).display())));
    }
    Ok(())
}

/// Leaves the terminal's session. Returns false in the first of the two processes, which has nothing more to do.
pub(crate) fn leave_terminal(store: &Store, run: &RunId) -> io::Result<bool> {
    if rustix::process::getpgrp() == rustix::process::getpid() {
        drop(command(store, run)?.spawn()?);
        return Ok(false);
    }
    rustix::process::setsid()?;
    Ok(true)
}

fn command(store: &Store, run: &RunId) -> io::Result<Command> {
    let log = log_file(store, run);
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let stderr = OpenOptions::new().create(true).append(true).mode(0o600).open(&log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["attach", "--background", "--output", "json", "--log-file"])
        .arg(&log)
        .arg(&run.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    Ok(command)
}
