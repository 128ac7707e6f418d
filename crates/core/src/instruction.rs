//! The standing instruction, and the messages a run sends by itself.
//!
//! The texts are bursar's own. They travel by the channel that reaches the model on every version: FACTS 6 and DRIFT 28
//! show one version dropping an appended system prompt on resume and another ignoring a new one.

use serde::{Deserialize, Serialize};

/// Who calls the run, which decides how the standing instruction travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// A person: appended system prompt when fresh, in the message when resumed.
    Chat,
    /// A board: in the prompt.
    Kanban,
    /// A timer: in the prompt.
    Scheduled,
    /// Goes on with another's session: in the message.
    Worker,
    /// A bot: its system prompt when fresh, a standing block in the message when resumed.
    Bot,
}
