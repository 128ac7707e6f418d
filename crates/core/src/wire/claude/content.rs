//! The messages inside lines, which the stream and the transcript write alike.

use super::call::classify_raw;
use super::launch;
pub(in crate::wire) use super::launch::text_of;
use super::notification;
use crate::agent::{AgentEvent, Launch, Owner};
use crate::wire::json::{Object, Raw};

/// Whose message an `assistant` line is, and whether it stands for a failure.
#[derive(Debug)]
pub(in crate::wire) struct Speaker {
    pub(in crate::wire) owner: Owner,
    /// The service answered with an error; the text is the agent's wording of it (FACTS 12).
    pub(in crate::wire) failed: bool,
    pub(in crate::wire) status: Option<u16>,
}

/// What a `user` line says beside its message.
#[derive(Debug)]
pub(in crate::wire) struct UserLine<'a> {
    pub(in crate::wire) owner: Owner,
    /// The structured tool result.
    pub(in crate::wire) result: Option<Raw<'a>>,
    /// Whether its text can be a prompt; the agent also writes lines to itself.
    pub(in crate::wire) own_words: bool,
}

/// Reads an `assistant` line: texts and tool calls, or an error of the service.
pub(in crate::wire) fn assistant(
    speaker: &Speaker,
    line: &Object<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<AgentEvent>,
) {
    let Some(content) = content(line) else { return };
    if speaker.failed {
        out.push(AgentEvent::ApiError {
            owner: speaker.owner.clone(),
            class: line.filled("error").unwrap_or_default(),
            status: speaker.status,
            text: text_of(content, scratch).to_owned(),
        });
        return;
    }
    if let Some(text) = content.filled() {
        out.push(AgentEvent::Text { owner: speaker.owner.clone(), text });
    }
    for block in content.items() {
        out.extend(said(Block::of(block), &speaker.owner, scratch));
    }
}

fn said(block: Block<'_>, owner: &Owner, scratch: &mut Vec<u8>) -> Option<AgentEvent> {
    let kind = block.kind?;
    if kind.is("text") {
        let text = block.text.and_then(Raw::filled)?;
        return Some(AgentEvent::Text { owner: owner.clone(), text });
    }
    if !kind.is("tool_use") {
        return None;
    }
    let name = block.name.and_then(Raw::filled).unwrap_or_default();
    let call = block.input.map(|input| classify_raw(&name, input, scratch)).unwrap_or_default();
    Some(AgentEvent::ToolCalled { owner: owner.clone(), id: block.id.and_then(Raw::filled)?, name, call })
}

/// Reads a `user` line: tool results with what they launched, notifications, prompts, interrupts.
pub(in crate::wire) fn user(
    line: &UserLine<'_>,
    keys: &Object<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<AgentEvent>,
) {
    let Some(content) = content(keys) else { return };
    let mut launch = line.result.and_then(launch::of_result);
    let results = content
        .items()
        .filter(|block| block.field("type").is_some_and(|kind| kind.is("tool_result")))
        .count();
    for block in content.items().map(Block::of) {
        if block.kind.is_some_and(|kind| kind.is("tool_result")) {
            out.extend(returned(line, block, results, &mut launch, scratch));
        }
    }
    // What is told to a subagent is neither a prompt nor an interrupt of the conversation.
    if results == 0 && line.owner == Owner::Main {
        told(line, text_of(content, scratch), keys, out);
    }
}

/// One tool result of a line with `results` of them. The line's one structured result belongs to one of them only.
fn returned(
    line: &UserLine<'_>,
    block: Block<'_>,
    results: usize,
    launch: &mut Option<Launch>,
    scratch: &mut Vec<u8>,
) -> Option<AgentEvent> {
    let id = block.tool_use_id.and_then(Raw::filled)?;
    let is_error = block.is_error.is_some_and(Raw::is_true);
    let of_this = |launch: &Launch, block: Block<'_>| {
        results == 1
            || block
                .content
                .is_some_and(|text| memchr::memmem::find(text.bytes(), launch.id.as_bytes()).is_some())
    };
    let launched = if is_error {
        None
    } else if launch.as_ref().is_some_and(|launch| of_this(launch, block)) {
        launch.take().map(|launch| with_output(launch, block, scratch))
    } else if line.result.is_none_or(|result| !launch::is_plain_output(result)) {
        block.content.and_then(|content| launch::of_text(content, scratch))
    } else {
        None
    };
    Some(AgentEvent::ToolReturned { owner: line.owner.clone(), id, is_error, launch: launched })
}

fn with_output(mut launch: Launch, block: Block<'_>, scratch: &mut Vec<u8>) -> Launch {
    if launch.output.is_none() {
        launch.output = block.content.and_then(|content| launch::output_path(content, &launch.id, scratch));
    }
    launch
}

fn told(line: &UserLine<'_>, text: &str, keys: &Object<'_>, out: &mut Vec<AgentEvent>) {
    if notification::is_notification_text(text) {
        out.extend(notification::notifications(text).into_iter().map(AgentEvent::Notified));
        if line.own_words {
            out.push(AgentEvent::Prompted { message: keys.filled("uuid"), wakeup: true });
        }
    } else if text.starts_with("[Request interrupted by user") {
        out.push(AgentEvent::Interrupted);
    } else if line.own_words && !text.is_empty() {
        out.push(AgentEvent::Prompted { message: keys.filled("uuid"), wakeup: false });
    }
}

fn content<'a>(line: &Object<'a>) -> Option<Raw<'a>> {
    line.get("message")?.field("content")
}

/// The fields of a content block that mean something.
#[derive(Debug, Clone, Copy, Default)]
struct Block<'a> {
    kind: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    name: Option<Raw<'a>>,
    input: Option<Raw<'a>>,
    text: Option<Raw<'a>>,
    tool_use_id: Option<Raw<'a>>,
    content: Option<Raw<'a>>,
    is_error: Option<Raw<'a>>,
}

impl<'a> Block<'a> {
    fn of(block: Raw<'a>) -> Self {
        let mut fields = Self::default();
        for (key, value) in block.fields() {
            match &*key {
                b"type" => fields.kind = Some(value),
                b"id" => fields.id = Some(value),
                b"name" => fields.name = Some(value),
                b"input" => fields.input = Some(value),
                b"text" => fields.text = Some(value),
                b"tool_use_id" => fields.tool_use_id = Some(value),
                b"content" => fields.content = Some(value),
                b"is_error" => fields.is_error = Some(value),
                _ => {}
            }
        }
        fields
    }
}
