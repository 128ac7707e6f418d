//! The messages inside lines, which the stream and the transcript write alike.

use super::call::classify_raw;
use super::launch;
use super::line::{Block, Content, Line};
use super::notification;
use crate::agent::{AgentEvent, Launch, Owner};
use crate::wire::escape::unescape;
use crate::wire::json::Raw;

/// Whose message an `assistant` line is, and whether it stands for a failure.
#[derive(Debug)]
pub(in crate::wire) struct Speaker {
    pub(in crate::wire) owner: Owner,
    /// The service answered with an error; the text is the agent's wording of it (FACTS 12).
    pub(in crate::wire) failed: bool,
    pub(in crate::wire) status: Option<u16>,
}

/// Reads an `assistant` line: texts and tool calls, or an error of the service.
pub(in crate::wire) fn assistant(
    speaker: &Speaker,
    line: &Line<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<AgentEvent>,
) {
    let owner = &speaker.owner;
    if speaker.failed {
        let class = line.filled("error").unwrap_or_default();
        let text = told_text(&line.message.content, scratch).to_owned();
        out.push(AgentEvent::ApiError { owner: owner.clone(), class, status: speaker.status, text });
        return;
    }
    let said = |text: Option<Raw<'_>>| Some(AgentEvent::Text { owner: owner.clone(), text: text?.filled()? });
    match &line.message.content {
        Content::Nothing => {}
        Content::Text(text) => out.extend(said(Some(*text))),
        Content::Blocks(blocks) => {
            for block in blocks {
                if block.is("text") {
                    out.extend(said(block.text));
                } else if block.is("tool_use") {
                    out.extend(called(*block, owner, scratch));
                }
            }
        }
    }
}

fn called(block: Block<'_>, owner: &Owner, scratch: &mut Vec<u8>) -> Option<AgentEvent> {
    let name = block.name.and_then(Raw::filled).unwrap_or_default();
    let call = block.input.map(|input| classify_raw(&name, input, scratch)).unwrap_or_default();
    Some(AgentEvent::ToolCalled { owner: owner.clone(), id: block.id?.filled()?, name, call })
}

/// What the text of a `user` line can be, if it is neither a notification nor an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::wire) enum Words {
    /// A message of the user's.
    Message,
    /// A message the agent scheduled for itself.
    Wakeup,
    /// Something for the record, that starts nothing.
    Aside,
}

/// Reads a `user` line of `owner`: tool results with what they launched, notifications, prompts, interrupts.
pub(in crate::wire) fn user(
    owner: &Owner,
    words: Words,
    line: &Line<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<AgentEvent>,
) {
    let mut launch = line.tool_result.as_ref().and_then(launch::ToolResult::launch);
    let blocks = if let Content::Blocks(blocks) = &line.message.content { blocks.as_slice() } else { &[] };
    let results = || blocks.iter().filter(|block| block.is("tool_result"));
    let only = results().nth(1).is_none();
    for block in results() {
        let Some(id) = block.tool_use_id.and_then(Raw::filled) else { continue };
        let is_error = block.is_error.is_some_and(Raw::is_true);
        let launch = if is_error { None } else { launched(line, *block, only, &mut launch, scratch) };
        out.push(AgentEvent::ToolReturned { owner: owner.clone(), id, is_error, launch });
    }
    // What is told to a subagent is neither a prompt nor an interrupt of the conversation.
    if results().next().is_none() && *owner == Owner::Main {
        told(told_text(&line.message.content, scratch), words, line, out);
    }
}

/// What one tool result launched. A line has one structured result, which belongs to one of several tool results.
fn launched(
    line: &Line<'_>,
    block: Block<'_>,
    only: bool,
    structured: &mut Option<Launch>,
    scratch: &mut Vec<u8>,
) -> Option<Launch> {
    let names = |launch: &mut Launch| {
        let text = block.content.map(Raw::bytes).unwrap_or_default();
        only || memchr::memmem::find(text, launch.id.as_bytes()).is_some()
    };
    if let Some(mut launch) = structured.take_if(names) {
        if launch.output.is_none() {
            launch.output = launch::output_path(block.content?, &launch.id, scratch);
        }
        return Some(launch);
    }
    if line.tool_result.as_ref().is_some_and(launch::ToolResult::is_plain_output) {
        return None;
    }
    launch::of_text(block.content?, scratch)
}

fn told(text: &str, words: Words, line: &Line<'_>, out: &mut Vec<AgentEvent>) {
    if notification::is_notification_text(text) {
        out.extend(notification::notifications(text).into_iter().map(AgentEvent::Notified));
        if words != Words::Aside {
            out.push(AgentEvent::Prompted { message: line.filled("uuid"), wakeup: true });
        }
    } else if text.starts_with("[Request interrupted by user") {
        out.push(AgentEvent::Interrupted);
    } else if words != Words::Aside && !text.is_empty() {
        out.push(AgentEvent::Prompted { message: line.filled("uuid"), wakeup: words == Words::Wakeup });
    }
}

fn told_text<'s>(content: &Content<'_>, scratch: &'s mut Vec<u8>) -> &'s str {
    match content {
        Content::Nothing => "",
        Content::Text(text) => joined([*text], scratch),
        Content::Blocks(blocks) => joined(blocks.iter().filter_map(|block| block.text), scratch),
    }
}

/// Returns the text of a `content` that is no message's: a string, or a list of text blocks.
pub(in crate::wire) fn text_of<'s>(content: Raw<'_>, scratch: &'s mut Vec<u8>) -> &'s str {
    if content.is_list() {
        joined(content.items().filter_map(|block| block.field("text")), scratch)
    } else {
        joined([content], scratch)
    }
}

fn joined<'s, 'a>(texts: impl IntoIterator<Item = Raw<'a>>, scratch: &'s mut Vec<u8>) -> &'s str {
    scratch.clear();
    for text in texts.into_iter().filter_map(Raw::escaped) {
        if !scratch.is_empty() {
            scratch.push(b'\n');
        }
        unescape(text, scratch);
    }
    std::str::from_utf8(scratch).unwrap_or_default()
}
