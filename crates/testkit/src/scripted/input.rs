//! Stdin of a scripted agent: a thread that cuts it into lines and hands them to the player.

use std::io::{BufRead, Read};
use std::sync::mpsc::Sender;

use serde_json::Value;

/// Something that reaches the player from outside.
#[derive(Debug)]
pub(super) enum Input {
    /// A user message.
    Message { uuid: Option<String>, text: String },
    /// A control request, whole.
    Control(Value),
    /// A line that is not JSON.
    Garbage,
    /// The end of stdin.
    Closed,
    /// A shell has ended, with its exit code.
    ShellEnded { id: String, code: i32 },
}

/// Reads stdin to its end: lines of stream-json, or else the whole of it as one message.
pub(super) fn read(stream_json: bool, inputs: &Sender<Input>) {
    let mut stdin = std::io::stdin().lock();
    if stream_json {
        let mut line = Vec::new();
        while let Ok(1..) = stdin.read_until(b'\n', &mut line) {
            // A failed send means that the player is gone, and the process with it.
            if let Some(input) = parse(&line) {
                inputs.send(input).ok();
            }
            line.clear();
        }
    } else {
        let mut text = Vec::new();
        if stdin.read_to_end(&mut text).is_ok() && !text.is_empty() {
            let text = String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned();
            inputs.send(Input::Message { uuid: None, text }).ok();
        }
    }
    inputs.send(Input::Closed).ok();
}

/// Says what a line is; an empty one or one of an unknown type is nothing, as for the real agent.
fn parse(line: &[u8]) -> Option<Input> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return Some(Input::Garbage) };
    match value["type"].as_str() {
        Some("user") => {
            let uuid = value["uuid"].as_str().map(str::to_owned);
            Some(Input::Message { uuid, text: text_of(&value["message"]["content"]) })
        }
        Some("control_request") => Some(Input::Control(value)),
        Some(_) | None => None,
    }
}

fn text_of(content: &Value) -> String {
    match content.as_array() {
        Some(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        None => content.as_str().unwrap_or_default().to_owned(),
    }
}
