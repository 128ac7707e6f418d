//! The agent's own session file, `<home>/.claude/projects/<folder>/<session>.jsonl` (FACTS 11, INTERACTIVE 1-3).
//!
//! It tells the same things as the stream in other lines: ends come as notification texts in up to three carriers,
//! turns end without a `result`, and there is no live set. What a watcher must get from elsewhere (an open permission
//! prompt, an interrupt before the first word) is not in this file at all.

use super::Undecodable;
use super::claude::content::{self, Speaker, Words};
use super::claude::line::{Content, Line};
use super::claude::{notification, status_code};
use super::json::{Cursor, Raw};
use crate::agent::{AgentEvent, Began, Owner, Reply, Subtype};

/// Appends what `line` means to `out`: at least one event, or none for an empty line.
///
/// `scratch` and an undecodable line are as in [`super::claude::decode`]. One end of background work comes two or three
/// times, as in the file; a prompt comes with the session and version it was written by, a turn's end as a reply
/// that names neither turns nor cost.
pub fn decode(line: &[u8], scratch: &mut Vec<u8>, out: &mut Vec<AgentEvent>) -> Result<(), Undecodable> {
    let Some(line) = Line::read(line)? else { return Ok(()) };
    let before = out.len();
    let kind = line.get("type").and_then(Raw::text).unwrap_or_default();
    match &*kind {
        "assistant" => assistant(&line, scratch, out),
        "user" => user(&line, scratch, out),
        "attachment" => attachment(&line, scratch, out),
        "queue-operation" if line.is("operation", "enqueue") => {
            notified(line.get("content"), scratch, out);
        }
        "system" if line.is("subtype", "turn_duration") => {
            out.push(AgentEvent::Replied(reply(&line, Subtype::Success, "completed")));
        }
        _ => {}
    }
    if out.len() == before {
        out.push(AgentEvent::Other);
    }
    Ok(())
}

/// A sidechain's lines are a subagent's. They do not name the tool call that started it, so its own id stands for it.
fn owner(line: &Line<'_>) -> Owner {
    if line.is_true("isSidechain") {
        Owner::Subagent(line.filled("agentId").unwrap_or_default())
    } else {
        Owner::Main
    }
}

fn assistant(line: &Line<'_>, scratch: &mut Vec<u8>, out: &mut Vec<AgentEvent>) {
    let failed = line.is_true("isApiErrorMessage");
    if !failed && line.message.model.is_some_and(|model| model.is("<synthetic>")) {
        // "No response requested." fills a gap at resume and answers nothing (INTERACTIVE 2).
        return;
    }
    let speaker =
        Speaker { owner: owner(line), failed, status: line.get("apiErrorStatus").and_then(status_code) };
    let before = out.len();
    content::assistant(&speaker, line, scratch, out);
    // Headless sessions write no line at a turn's end; interactive ones do (`turn_duration`).
    let headless = line.is("entrypoint", "sdk-cli");
    if !headless || speaker.owner != Owner::Main {
        return;
    }
    match out.get(before..) {
        Some([AgentEvent::ApiError { status, text, .. }]) => {
            let (api_status, text) = (*status, Some(text.clone()));
            let reply = reply(line, Subtype::Success, "api_error");
            out.push(AgentEvent::Replied(Reply { is_error: true, api_status, text, ..reply }));
        }
        Some([AgentEvent::Text { text, .. }])
            if line.message.stop_reason.is_some_and(|why| why.is("end_turn")) =>
        {
            let text = Some(text.clone());
            out.push(AgentEvent::Replied(Reply { text, ..reply(line, Subtype::Success, "completed") }));
        }
        Some(_) | None => {}
    }
}

fn user(line: &Line<'_>, scratch: &mut Vec<u8>, out: &mut Vec<AgentEvent>) {
    let before = out.len();
    content::user(&owner(line), words(line), line, scratch, out);
    if out[before..].iter().any(|event| matches!(event, AgentEvent::Prompted { .. })) {
        out.push(AgentEvent::Began(Began {
            session: line.filled("sessionId"),
            version: line.filled("version"),
            cwd: line.filled("cwd"),
            permission_mode: line.filled("permissionMode"),
            ..Began::default()
        }));
    }
}

fn words(line: &Line<'_>) -> Words {
    // A lost task that is only noted for the record starts no turn (2.1.332, INTERACTIVE 4).
    let asides = ["isCompactSummary", "isVisibleInTranscriptOnly", "queueTranscriptOnly"];
    if asides.into_iter().any(|name| line.is_true(name)) || is_local_command(line) {
        Words::Aside
    } else if !line.is_true("isMeta") {
        Words::Message
    } else if line.get("promptSource").is_some() {
        // Of the lines the agent wrote itself, only a scheduled message names a source (m-cron-open, m-wakeup-open).
        Words::Wakeup
    } else {
        Words::Aside
    }
}

/// `/exit` and its like, and what they print: no turn follows. (One follows `<bash-input>`, the user's own command.)
fn is_local_command(line: &Line<'_>) -> bool {
    let Content::Text(text) = line.message.content else { return false };
    let marks: [&[u8]; 3] = [b"<command-name>", b"<local-command-", b"<bash-stdout>"];
    text.escaped().is_some_and(|text| marks.into_iter().any(|mark| text.starts_with(mark)))
}

fn attachment(line: &Line<'_>, scratch: &mut Vec<u8>, out: &mut Vec<AgentEvent>) {
    let Some(attachment) = line.get("attachment") else { return };
    let field = |name| attachment.field(name);
    if owner(line) != Owner::Main {
        return;
    }
    if field("type").is_some_and(|kind| kind.is("max_turns_reached")) {
        let turns = field("turnCount").and_then(Raw::unsigned).unwrap_or_default();
        let reply = reply(line, Subtype::MaxTurns, "max_turns");
        out.push(AgentEvent::Replied(Reply { is_error: true, turns, ..reply }));
    } else if field("type").is_some_and(|kind| kind.is("queued_command")) {
        notified(field("prompt"), scratch, out);
        if field("commandMode").is_some_and(|mode| mode.is("prompt")) {
            // Typed while a turn ran, and taken into it.
            out.push(AgentEvent::Prompted {
                message: field("source_uuid").and_then(Raw::filled),
                wakeup: false,
            });
        }
    }
}

fn notified(content: Option<Raw<'_>>, scratch: &mut Vec<u8>, out: &mut Vec<AgentEvent>) {
    let Some(content) = content else { return };
    let text = content::text_of(content, scratch);
    if notification::is_notification_text(text) {
        out.extend(notification::notifications(text).into_iter().map(AgentEvent::Notified));
    }
}

fn reply(line: &Line<'_>, subtype: Subtype, reason: &str) -> Reply {
    Reply {
        subtype,
        is_error: false,
        turns: 0,
        text: None,
        terminal_reason: Some(reason.to_owned()),
        api_status: None,
        errors: Vec::new(),
        cost_usd: None,
        woken: false,
        answers: Vec::new(),
        session: line.filled("sessionId"),
    }
}

/// The two kinds of file an agent leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// What the agent printed: [`super::claude::decode`].
    Stream,
    /// The agent's session file: [`decode`].
    Transcript,
}

/// Tells from the first lines of a file what it is; None if none of them gives it away.
///
/// A last line that is cut off still counts as far as it goes.
#[must_use]
pub fn sniff(first_lines: &[u8]) -> Option<FileKind> {
    let mut stream = false;
    for line in first_lines.split(|byte| *byte == b'\n') {
        let Ok(Some(mut cursor)) = Cursor::of_line(line) else { continue };
        while let Ok(Some(key)) = cursor.key() {
            match &*key {
                // Newer transcripts spell the session in both ways, streams in one only.
                b"sessionId" | b"parentUuid" | b"isSidechain" | b"isSnapshotUpdate" => {
                    return Some(FileKind::Transcript);
                }
                b"session_id" => stream = true,
                _ => {}
            }
            let value = cursor.value();
            stream |= *key == *b"type"
                && value.is_ok_and(|kind| kind.text().is_some_and(|kind| kind.starts_with("control_")));
        }
    }
    stream.then_some(FileKind::Stream)
}
