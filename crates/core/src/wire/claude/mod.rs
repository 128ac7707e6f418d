//! The stream dialect of `claude -p --output-format stream-json`.
//!
//! [`decode`] turns one line into what it means; `content.rs` reads messages, `launch.rs` tool results, `call.rs` tool
//! calls, `notification.rs` ends. `input.rs` writes the command line and what goes into the agent's stdin.
//! It holds for every version from 2.1.111 on: fields that a version lacks are None, and none is required.

mod call;
mod capability;
pub(in crate::wire) mod content;
mod input;
mod launch;
pub(in crate::wire) mod line;
pub(in crate::wire) mod notification;

pub use call::classify;
pub use capability::{Capabilities, capabilities};
pub use input::{Control, Launching, args, control_line, message_line};

use self::content::{Speaker, Words};
use self::line::Line;
use super::Undecodable;
use super::json::Raw;
use crate::agent::{AgentEvent, Began, LiveEntry, MessageState, Owner, RateLimit, Reply, Subtype, Wakeup};
use crate::background::Kind;
use crate::time::At;

/// Appends what `line` means to `out`: at least one event, or none for an empty line.
///
/// `scratch` is room for texts that are looked at and not kept; what it holds afterwards has no meaning. Pass the same
/// one for each line. When a line is undecodable, `out` is as before.
pub fn decode(line: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<AgentEvent>) -> Result<(), Undecodable> {
    let Some(line) = Line::read(line)? else { return Ok(()) };
    let before = out.len();
    let kind = line.get("type").and_then(Raw::text).unwrap_or_default();
    match &*kind {
        "assistant" => content::assistant(&speaker(&line), &line, scratch, out),
        "user" => content::user(&owner(&line), words(&line), &line, scratch, out),
        "system" => system(&line, out),
        "result" => out.push(AgentEvent::Replied(reply(&line))),
        "command_lifecycle" => out.extend(lifecycle(&line)),
        "rate_limit_event" => out.extend(rate_limit(&line)),
        "control_request" => out.extend(asked(&line)),
        "control_cancel_request" => {
            out.extend(line.filled("request_id").map(|request| AgentEvent::Withdrawn { request }));
        }
        "control_response" => out.extend(answered(&line)),
        _ => {}
    }
    if out.len() == before {
        out.push(AgentEvent::Other);
    }
    Ok(())
}

fn owner(line: &Line<'_>) -> Owner {
    line.filled("parent_tool_use_id").map_or(Owner::Main, Owner::Subagent)
}

/// The agent nudges itself, too (after an empty reply, say).
fn words(line: &Line<'_>) -> Words {
    if line.is_true("isSynthetic") { Words::Aside } else { Words::Message }
}

fn speaker(line: &Line<'_>) -> Speaker {
    // `is_api_error_message` is there from 2.1.222 on, `error` always (DRIFT 2, 5).
    let failed = line.is_true("is_api_error_message") || line.filled("error").is_some();
    Speaker { owner: owner(line), failed, status: line.get("api_error_status").and_then(status_code) }
}

fn system(line: &Line<'_>, out: &mut Vec<AgentEvent>) {
    let subtype = line.get("subtype").and_then(Raw::text).unwrap_or_default();
    match &*subtype {
        "init" => out.push(AgentEvent::Began(Began {
            session: line.filled("session_id"),
            version: line.filled("claude_code_version"),
            model: line.filled("model"),
            cwd: line.filled("cwd"),
            permission_mode: line.filled("permissionMode"),
            capabilities: texts(line.get("capabilities")),
        })),
        "task_started" => out.extend(line.filled("task_id").map(|id| AgentEvent::Started {
            id,
            tool_call: line.filled("tool_use_id"),
            kind: line.get("task_type").and_then(Raw::text).and_then(|name| notification::kind(&name)),
            description: line.filled("description").unwrap_or_default(),
            by_subagent: line.is_true("owned_by_subagent"),
        })),
        "task_updated" => out.extend(line.filled("task_id").map(|id| {
            let patch = |name| line.get("patch").and_then(|patch| patch.field(name));
            AgentEvent::Updated {
                id,
                status: patch("status").and_then(Raw::text).and_then(|word| notification::end_status(&word)),
                ended: patch("end_time").and_then(Raw::unsigned).map(At),
                detail: patch("error").and_then(Raw::filled),
            }
        })),
        "task_notification" => out.extend(line.filled("task_id").map(|id| {
            AgentEvent::Notified(notification::notification(
                id,
                line.filled("tool_use_id"),
                line.get("status").and_then(Raw::text).and_then(|word| notification::end_status(&word)),
                line.filled("summary").unwrap_or_default(),
                line.filled("output_file"),
            ))
        })),
        "background_tasks_changed" => {
            out.extend(line.get("tasks").filter(|tasks| tasks.is_list()).map(live_set));
        }
        "api_retry" => out.push(AgentEvent::Retrying {
            try_number: count(line.get("attempt")),
            of: count(line.get("max_retries")),
            delay_ms: line.get("retry_delay_ms").and_then(Raw::unsigned).unwrap_or_default(),
            status: line.get("error_status").and_then(status_code),
            class: line.filled("error").unwrap_or_default(),
        }),
        "permission_denied" => {
            out.push(AgentEvent::Denied { tool: line.filled("tool_name").unwrap_or_default() });
        }
        _ => {}
    }
}

/// A kind nobody has seen counts as a shell: it is waited for within the hold and never promises to wake anyone.
fn live_set(tasks: Raw<'_>) -> AgentEvent {
    let entry = |task: Raw<'_>| {
        let text = |name| task.field(name).and_then(Raw::filled);
        let kind = text("task_type").and_then(|name| notification::kind(&name)).unwrap_or(Kind::Shell);
        Some(LiveEntry { id: text("task_id")?, kind, description: text("description").unwrap_or_default() })
    };
    AgentEvent::LiveSet(tasks.items().filter_map(entry).collect())
}

fn reply(line: &Line<'_>) -> Reply {
    let subtype = match line.filled("subtype").unwrap_or_default() {
        success if success == "success" => Subtype::Success,
        turns if turns == "error_max_turns" => Subtype::MaxTurns,
        budget if budget == "error_max_budget_usd" => Subtype::Budget,
        execution if execution == "error_during_execution" => Subtype::Execution,
        other => Subtype::Other(other),
    };
    let mut answers = texts(line.get("user_message_uuids"));
    if answers.is_empty() {
        // 2.1.231 names only the first (FACTS 5).
        answers.extend(line.filled("user_message_uuid"));
    }
    // `is_error` is never absent on a measured version (DRIFT 5); a result that lacks it is judged by its subtype.
    let is_error = line.get("is_error").map_or(subtype != Subtype::Success, Raw::is_true);
    Reply {
        subtype,
        is_error,
        turns: line.get("num_turns").and_then(Raw::unsigned).unwrap_or_default(),
        text: line.get("result").and_then(Raw::text).map(Into::into),
        terminal_reason: line.filled("terminal_reason"),
        api_status: line.get("api_error_status").and_then(status_code),
        errors: texts(line.get("errors")),
        cost_usd: line.get("total_cost_usd").and_then(Raw::float),
        woken: line
            .get("origin")
            .and_then(|origin| origin.field("kind"))
            .is_some_and(|kind| kind.is("task-notification")),
        answers,
        session: line.filled("session_id"),
    }
}

fn lifecycle(line: &Line<'_>) -> Option<AgentEvent> {
    let state = match &*line.get("state")?.text()? {
        "queued" => MessageState::Queued,
        "started" => MessageState::Started,
        "completed" => MessageState::Completed,
        _ => return None,
    };
    let due = line.get("scheduled_for").and_then(Raw::unsigned).map(At);
    let wakeup = line.filled("wakeup_source").map(|source| Wakeup { source, due });
    Some(AgentEvent::Lifecycle { message: line.filled("command_uuid")?, state, wakeup })
}

fn rate_limit(line: &Line<'_>) -> Option<AgentEvent> {
    let info = line.get("rate_limit_info").filter(|info| info.is_object())?;
    // Whole seconds since the epoch (FACTS 1); a number that large can only be milliseconds.
    let moment = |stamp: u64| At(if stamp < 100_000_000_000 { stamp * 1000 } else { stamp });
    Some(AgentEvent::RateLimit(RateLimit {
        rejected: info.field("status").is_some_and(|status| status.is("rejected")),
        window: info.field("rateLimitType").and_then(Raw::filled).unwrap_or_default(),
        resets: info.field("resetsAt").and_then(Raw::unsigned).map(moment),
    }))
}

/// FACTS 7: a permission prompt, or a question that only a person can answer.
fn asked(line: &Line<'_>) -> Option<AgentEvent> {
    let request = line
        .get("request")
        .filter(|request| request.field("subtype").is_some_and(|kind| kind.is("can_use_tool")))?;
    let tool = request.field("tool_name").and_then(Raw::filled).unwrap_or_default();
    Some(AgentEvent::Asked {
        request: line.filled("request_id")?,
        is_question: tool == "AskUserQuestion"
            || request.field("requires_user_interaction").is_some_and(Raw::is_true),
        tool,
        tool_call: request.field("tool_use_id").and_then(Raw::filled),
    })
}

fn answered(line: &Line<'_>) -> Option<AgentEvent> {
    let response = line.get("response")?;
    let ok = response.field("subtype").is_some_and(|kind| kind.is("success"));
    Some(AgentEvent::ControlAnswered { request: response.field("request_id").and_then(Raw::filled)?, ok })
}

pub(in crate::wire) fn status_code(value: Raw<'_>) -> Option<u16> {
    value.unsigned().and_then(|code| u16::try_from(code).ok())
}

fn count(value: Option<Raw<'_>>) -> u32 {
    value.and_then(Raw::unsigned).map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX))
}

fn texts(list: Option<Raw<'_>>) -> Vec<String> {
    list.map(|list| list.items().filter_map(Raw::filled).collect()).unwrap_or_default()
}
