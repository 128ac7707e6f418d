//! Writes a message as the Messages API sends it: as one JSON object, or as a stream of server-sent events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::answer::{Block, HttpFault, Message};

/// Names one answer, so that its ids are unique in a conversation that several servers took part in.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerId {
    /// The server's port.
    pub(super) server: u16,
    /// The request's number.
    pub(super) request: usize,
}

impl AnswerId {
    fn message(self) -> String {
        format!("msg_{:04x}_{:04}", self.server, self.request)
    }

    fn tool(self, index: usize) -> String {
        format!("toolu_{:04x}_{:04}_{index:02}", self.server, self.request)
    }

    /// Returns the value of the `request-id` header.
    pub(super) fn request(self) -> String {
        format!("req_{:04x}_{:04}", self.server, self.request)
    }
}

/// Returns the body of an answer that is not streamed.
pub(super) fn whole(id: AnswerId, model: &str, message: &Message) -> Value {
    let content: Vec<Value> = message
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Tool { name, input } => {
                json!({"type": "tool_use", "id": id.tool(index), "name": name, "input": input})
            }
        })
        .collect();
    let mut body = envelope(id, model, message);
    body["content"] = Value::from(content);
    body["stop_reason"] = Value::from(message.stop_reason());
    body["usage"]["output_tokens"] = Value::from(message.usage.output_tokens);
    body
}

/// Returns the events of a streamed answer.
pub(super) fn events(id: AnswerId, model: &str, message: &Message) -> Vec<Bytes> {
    let mut events = vec![json!({"type": "message_start", "message": envelope(id, model, message)})];
    for (index, block) in message.blocks.iter().enumerate() {
        let (start, delta) = match block {
            Block::Text(text) => {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
            }
            Block::Tool { name, input } => (
                json!({"type": "tool_use", "id": id.tool(index), "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": message.stop_reason(), "stop_sequence": null},
        "usage": {"output_tokens": message.usage.output_tokens},
    }));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(event).collect()
}

/// Returns the body of an HTTP error.
pub(super) fn error(id: AnswerId, fault: &HttpFault) -> Value {
    json!({
        "type": "error",
        "error": {"type": fault.kind, "message": fault.message},
        "request_id": id.request(),
    })
}

fn envelope(id: AnswerId, model: &str, message: &Message) -> Value {
    json!({
        "id": id.message(),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": message.usage.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
        },
    })
}

fn event(data: &Value) -> Bytes {
    let name = data["type"].as_str().unwrap_or_default();
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
