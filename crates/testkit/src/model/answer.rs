//! What the model can answer: a message, an error, or one of the ways in which a real answer goes wrong.
//!
//! Plain data, so that a script can be written as JSON. How it looks on the wire is in `sse`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One answer to one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A complete message.
    Message(Message),
    /// An HTTP error in the API's shape.
    Http(HttpFault),
    /// A message whose stream breaks off before its end, after this many events. Asked without streaming, the body
    /// breaks off half-way.
    Cut {
        /// The message that was on its way.
        message: Message,
        /// Server-sent events delivered before the cut.
        events: usize,
    },
    /// Status 200 with this body, which is not what the API sends.
    Malformed(String),
    /// No answer at all, for as long as the client waits.
    Hang,
}

/// A message of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// Its content, in order.
    pub blocks: Vec<Block>,
    /// Why it ended; without one, `tool_use` if it calls a tool and `end_turn` if not.
    pub stop_reason: Option<StopReason>,
    /// What it cost.
    pub usage: Usage,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Words.
    Text(String),
    /// A call of a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
}

/// Why a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// The model calls a tool.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// The model declines.
    Refusal,
}

/// Tokens reported for a message. Never zero by default, so that a run costs something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input_tokens: 100, output_tokens: 20 }
    }
}

/// An HTTP error as the API reports one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpFault {
    /// The status.
    pub status: u16,
    /// `error.type`, for example `overloaded_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `error.message`.
    pub message: String,
    /// Further headers, for example `retry-after` and `anthropic-ratelimit-unified-*`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl Message {
    /// Returns why it ended, as the API spells it.
    pub(super) fn stop_reason(&self) -> &'static str {
        let calls_a_tool = self.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
        match self.stop_reason {
            Some(StopReason::EndTurn) => "end_turn",
            Some(StopReason::MaxTokens) => "max_tokens",
            Some(StopReason::Refusal) => "refusal",
            Some(StopReason::ToolUse) => "tool_use",
            None if calls_a_tool => "tool_use",
            None => "end_turn",
        }
    }
}

impl Answer {
    /// Says in a few words what was answered, for the log.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::Message(message) => {
                let blocks = message.blocks.iter().map(|block| match block {
                    Block::Text(_) => "text".to_owned(),
                    Block::Tool { name, .. } => format!("tool_use:{name}"),
                });
                blocks.collect::<Vec<_>>().join("+")
            }
            Self::Http(fault) => format!("http {} {}", fault.status, fault.kind),
            Self::Cut { events, .. } => format!("cut after {events} events"),
            Self::Malformed(_) => "malformed".to_owned(),
            Self::Hang => "hang".to_owned(),
        }
    }
}
