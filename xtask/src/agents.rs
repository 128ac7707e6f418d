//! Installs the pinned versions of the real agent CLI.

use bursar_testkit::{AgentVersion, agent};

use crate::Outcome;
use crate::step::on_path;

pub(crate) fn run() -> Outcome {
    if on_path("claude") {
        println!("`claude` is on PATH; the tests leave it alone and use their own pinned versions");
    }
    println!("pinned versions that are missing come from npm, which may take a minute");
    for version in AgentVersion::ALL {
        let installed = agent::install(version)?;
        let verb = if installed.fresh { "installed" } else { "present" };
        println!("agent {version}: {verb}, {}", installed.path.display());
    }
    Ok(())
}
