//! Looks for the agent on this machine before a run is made, so that a missing one is said in full and leaves nothing.

use std::path::Path;

use bursar_runner::AgentChoice;
use bursar_transport::FindError;

use crate::exit;
use crate::failure::Failure;
use crate::hosts;

/// Refuses an agent that cannot be started here. What the host itself says later still counts.
pub(crate) async fn check(agent: &AgentChoice) -> Result<(), Failure> {
    match &agent.path {
        Some(path) => at(Path::new(path)),
        None if in_path(&agent.name) => Ok(()),
        None => anywhere(&agent.name).await,
    }
}

fn at(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let refused = |what: &str| Failure::new(exit::REFUSED, format!("the agent's program `{shown}` {what}"));
    let Ok(found) = std::fs::metadata(path) else {
        return Err(
            refused("does not exist").hint("check the spelling, or leave --agent-path out to look for it")
        );
    };
    if found.is_dir() {
        return Err(refused("is a folder").hint(format!("name the program in it, such as {shown}/claude")));
    }
    if !executable(path) {
        return Err(refused("is not executable").hint(format!("chmod +x {shown}, if it is the right file")));
    }
    Ok(())
}

fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        let file = folder.join(name);
        file.is_file() && executable(&file)
    })
}

fn executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Looks where a login shell and the usual installers have it.
async fn anywhere(name: &str) -> Result<(), Failure> {
    let Err(FindError::NotFound { places, .. }) = hosts::here().find_agent(name, None).await else {
        return Ok(());
    };
    let mut looked: Vec<String> = Vec::new();
    for place in places {
        if !looked.contains(&place) {
            looked.push(place);
        }
    }
    Err(Failure::new(exit::REFUSED, format!("no agent: `{name}` was not found on this machine"))
        .hint("install it (npm install -g @anthropic-ai/claude-code) or name its place with --agent-path")
        .hint(format!("looked at {}", looked.join(", "))))
}
