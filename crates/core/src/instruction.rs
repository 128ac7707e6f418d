//! The standing instruction, and the messages a run sends by itself.
//!
//! The texts are bursar's own. They travel by the channel that reaches the model on every version: one drops an appended
//! system prompt on resume unless it is given again, the other keeps the first for ever and ignores a new one (FACTS 6,
//! DRIFT 28).
//!
//! | delivery | fresh session | resumed session |
//! | --- | --- | --- |
//! | `chat` | appended system prompt | in the message |
//! | `kanban`, `scheduled` | in the prompt, with the request to verify the work | the same |
//! | `worker` | in the message | in the message |
//! | `bot` | appended system prompt | a standing block in the message |

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::background::{Snapshot, State};
use crate::event::Survivor;
use crate::fault::Fault;

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

/// The standing instruction.
pub const STANDING: &str = "\
You are run by a program that reads your results, not by a person at a terminal. Do not end your reply while anything \
you started is still running, whatever started it: a background command, a subagent, a workflow, a monitor, a server or \
a detached process. Collect it first: wait for it and read what it produced, or stop it. If something is meant to keep \
running, look at it once and say in your last message what you left running and why. Give a long background command a \
timeout that covers it, because some versions stop background commands after half an hour.";

/// The request that goes with work nobody watches.
pub const VERIFY: &str = "\
Before you say that the work is done, check it: run what proves it, and report what you ran and what it printed. If it is \
not done, say what is missing.";

/// The text of the first message, and what is appended to the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    pub message: String,
    pub system: Option<String>,
}

/// Puts the standing instruction where `delivery` wants it.
#[must_use]
pub fn opening(prompt: &str, delivery: Option<Delivery>, resumed: bool) -> Opening {
    let alone = |message: String| Opening { message, system: None };
    match (delivery, resumed) {
        (None, _) => alone(prompt.to_owned()),
        (Some(Delivery::Chat | Delivery::Bot), false) => {
            Opening { message: prompt.to_owned(), system: Some(STANDING.to_owned()) }
        }
        (Some(Delivery::Chat | Delivery::Bot | Delivery::Worker), _) => {
            alone(format!("{prompt}\n\n<standing-instruction>\n{STANDING}\n</standing-instruction>"))
        }
        (Some(Delivery::Kanban | Delivery::Scheduled), _) => alone(format!(
            "{prompt}\n\n<standing-instruction>\n{STANDING}\n\n{VERIFY}\n</standing-instruction>"
        )),
    }
}

/// The message that continues a reply which stopped short.
#[must_use]
pub fn continuing(fault: &Fault, spent: u64, budget: u64, foreign: bool) -> String {
    match fault {
        Fault::MaxTurns if foreign => format!(
            "You were stopped by a turn limit after {spent} turns, though this run allows {budget}. Go on from where you \
             were; do not repeat what is done."
        ),
        Fault::MaxTurns => format!(
            "You were stopped by the turn limit: used {spent} of {budget} turns. Go on from where you were; do not repeat \
             what is done."
        ),
        Fault::NoResult => "The process that ran you ended before you had finished. Look at what is already done, then go \
                            on from there; do not start over."
            .to_owned(),
        Fault::EmptyReply => "Your last reply was empty. Go on with the work, or say what keeps you from it.".to_owned(),
        Fault::Limit { .. }
        | Fault::Overloaded
        | Fault::SignIn
        | Fault::BadRequest
        | Fault::AgentRefused
        | Fault::SessionUnknown
        | Fault::Budget
        | Fault::Execution => {
            "Your last reply was broken off by an error that has passed. Go on from where you were; do not repeat what is \
             done."
                .to_owned()
        }
    }
}

/// The one message a run may spend on debt that is still there. It states what is known, so that nothing is started
/// twice.
#[must_use]
pub fn nudging(owed: &[Snapshot], unpaired: u64, survivors: &[Survivor]) -> String {
    let mut text = String::from("You ended your reply, but work that you started has not been settled:\n");
    known(&mut text, owed, unpaired, survivors);
    text.push_str(
        "Settle each of them before you end your reply: read its output file, or stop it. Do not start anything again \
         that still runs or that has finished. If something was stopped before it finished and the work needs it, run it \
         again and wait for it. If a process is meant to stay, say so and why.",
    );
    text
}

/// What is added to a message that goes on in a new process or a new session: what the last one launched, if it owes
/// anything.
#[must_use]
pub fn reminding(owed: &[Snapshot], unpaired: u64, survivors: &[Survivor]) -> String {
    if owed.is_empty() && unpaired == 0 && survivors.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n\nThis was already started for you and has not been settled:\n");
    known(&mut text, owed, unpaired, survivors);
    text.push_str(
        "Read the output files before you start any of it again, and do not start again what still runs or has finished.",
    );
    text
}

/// Lists what is owed, and what runs beside the agent.
fn known(text: &mut String, owed: &[Snapshot], unpaired: u64, survivors: &[Survivor]) {
    for piece in owed {
        let _infallible = write!(text, "- {} {}", piece.kind.as_str(), piece.id);
        if !piece.description.is_empty() {
            let _infallible = write!(text, " ({})", one_line(&piece.description));
        }
        let _infallible = match (piece.state, piece.exit) {
            (State::Starting | State::Running, _) => write!(text, ": still running"),
            (State::Done, Some(code)) | (State::Failed, Some(code)) => {
                write!(text, ": ended with exit code {code}")
            }
            (State::Done, None) => write!(text, ": ended"),
            (State::Failed, None) => write!(text, ": failed"),
            (State::Stopped, _) => write!(text, ": was stopped before it finished"),
            (State::Unknown, _) => write!(text, ": it is not known how it ended"),
        };
        if let Some(output) = piece.output.as_deref().filter(|path| !path.is_empty()) {
            let _infallible = write!(text, "; its output is in {output}");
        }
        text.push('\n');
    }
    if unpaired > 0 {
        let _infallible = writeln!(text, "- {unpaired} background command(s) whose id was never told");
    }
    if !survivors.is_empty() {
        text.push_str("These processes of yours run at this moment:\n");
        for process in survivors.iter().take(20) {
            let _infallible = writeln!(text, "- pid {}: {}", process.pid, one_line(&process.command));
        }
    }
}

/// A process's command or a description as one short line.
fn one_line(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(200) {
        line.truncate(cut);
        line.push('…');
    }
    line
}
