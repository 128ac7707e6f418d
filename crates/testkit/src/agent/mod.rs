//! The real agent CLI in tests: which versions, where they are, and a bare driver to talk to one.
//!
//! A test that needs the real agent calls [`agent_path`]; it installs what is missing and never skips.

mod direct;
mod install;
mod version;

pub use direct::{DirectAgent, DirectError};
pub use install::{InstallError, Installed, install};
pub use version::AgentVersion;

use std::path::PathBuf;

/// Returns the executable of the agent at `version`, installing it first where it is missing.
///
/// # Panics
/// When it cannot be installed: a test of the real agent must fail, not pass unseen. The message names the next step.
#[track_caller]
pub fn agent_path(version: AgentVersion) -> PathBuf {
    match install(version) {
        Ok(installed) => installed.path,
        Err(error) => panic!("{}", describe(&error)),
    }
}

/// Runs `test` on all pinned versions at once.
///
/// # Panics
/// When it fails on one; the message names the versions, each failure has been printed by itself.
pub fn on_every_version(test: impl Fn(AgentVersion) + Sync) {
    let test = &test;
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let runs = AgentVersion::ALL.map(|version| (version, scope.spawn(move || test(version))));
        runs.into_iter()
            .filter_map(|(version, run)| run.join().is_err().then_some(version.number()))
            .collect()
    });
    assert!(failed.is_empty(), "failed on {}", failed.join(" and "));
}

/// Writes an error and its causes on one line each.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str("\n  caused by: ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
