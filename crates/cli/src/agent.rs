//! Why an agent cannot be started on this machine, in words that lead on.

use std::path::Path;

use bursar_core::event::{Refusal, RefusalKind};
use bursar_runner::AgentChoice;
use bursar_transport::FindError;

use crate::hosts;

/// Returns what keeps an agent from being started here; None if it is nothing of the agent's program.
pub(crate) async fn refusal(agent: &AgentChoice) -> Option<Refusal> {
    match &agent.path {
        Some(path) => at(Path::new(path)),
        None => anywhere(&agent.name).await,
    }
}

fn at(path: &Path) -> Option<Refusal> {
    let shown = path.display();
    let refused = |what: &str, hint: String| {
        let detail = format!("the agent's program `{shown}` on `{}` {what}", hosts::LOCAL);
        Some(Refusal { kind: RefusalKind::NoAgent, detail, hint })
    };
    let Ok(found) = std::fs::metadata(path) else {
        return refused(
            "does not exist",
            "check the spelling, or leave --agent-path out to have it looked for".to_owned(),
        );
    };
    if found.is_dir() {
        return refused(
            "is a folder",
            format!("--agent-path takes the program in it, such as {shown}/claude"),
        );
    }
    if rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_err() {
        return refused(
            "is not executable",
            format!("chmod +x {shown}, if --agent-path names the right file"),
        );
    }
    None
}

/// Looks where a login shell and the usual installers have it.
async fn anywhere(name: &str) -> Option<Refusal> {
    let Err(FindError::NotFound { places, .. }) = hosts::here().find_agent(name, None).await else {
        return None;
    };
    let mut looked: Vec<String> = Vec::new();
    for place in places {
        if !looked.contains(&place) {
            looked.push(place);
        }
    }
    Some(Refusal {
        kind: RefusalKind::NoAgent,
        detail: format!("`{name}` was not found on `{}`", hosts::LOCAL),
        hint: format!(
            "install it (npm install -g @anthropic-ai/claude-code) or name its place with --agent-path; looked at {}",
            looked.join(", ")
        ),
    })
}
