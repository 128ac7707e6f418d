//! What one request carried, kept for the test to ask.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::route::{Route, texts};

/// One `POST /v1/messages`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Counts from 0 over all routes of one server.
    pub number: usize,
    /// Since the server began.
    pub at: Duration,
    /// The conversation it belongs to.
    pub route: Route,
    /// The model asked for.
    pub model: String,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// The whole system prompt, blocks joined by newlines.
    pub system: String,
    /// The conversation so far, as sent.
    pub messages: Vec<Value>,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// The headers, with keys and tokens replaced by `[redacted]`.
    pub headers: BTreeMap<String, String>,
}

impl ModelRequest {
    pub(super) fn new(number: usize, at: Duration, headers: BTreeMap<String, String>, body: &Value) -> Self {
        let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
        Self {
            number,
            at,
            route: Route::of(body),
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            stream: body["stream"] == true,
            system: texts(&body["system"]).join("\n"),
            messages: list("messages"),
            tools: list("tools").iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect(),
            headers,
        }
    }

    /// Returns the messages that came after the model's own last one: what is new to it.
    pub fn new_messages(&self) -> &[Value] {
        let last = self.messages.iter().rposition(|message| message["role"] == "assistant");
        &self.messages[last.map_or(0, |index| index + 1)..]
    }

    /// Returns every text in the new messages: prompts, reminders, and the text of tool results.
    pub fn new_texts(&self) -> Vec<&str> {
        self.new_messages().iter().flat_map(|message| all_texts(&message["content"])).collect()
    }

    /// Says whether one text of the new messages is `text`, byte for byte, with nothing around it.
    pub fn received_exactly(&self, text: &str) -> bool {
        self.new_texts().contains(&text)
    }

    /// Counts how often `needle` occurs in the new messages.
    pub fn new_mentions(&self, needle: &str) -> usize {
        self.new_texts().iter().map(|text| text.matches(needle).count()).sum()
    }

    /// Says whether the new messages tell of the end of a background task.
    pub fn notified(&self) -> bool {
        self.new_texts().iter().any(|text| text.contains("<task-notification>"))
    }

    /// Returns the path of the newest background task's output that the conversation mentions, for a model that wants
    /// to read it. The launch's text ends the sentence right after the path, so a final stop is not part of it.
    pub fn background_output(&self) -> Option<String> {
        self.messages
            .iter()
            .rev()
            .flat_map(|message| all_texts(&message["content"]).into_iter().rev())
            .find_map(output_path)
    }
}

/// Returns the texts of content blocks, those inside tool results included.
fn all_texts(content: &Value) -> Vec<&str> {
    let nested = content.as_array().into_iter().flatten().flat_map(|block| texts(&block["content"]));
    texts(content).into_iter().chain(nested).collect()
}

fn output_path(text: &str) -> Option<String> {
    const END: &str = ".output";
    let tasks = text.rfind("/tasks/")?;
    let end = tasks + text[tasks..].find(END)? + END.len();
    let start = text[..tasks].rfind([' ', '\n', '>', '"']).map_or(0, |index| index + 1);
    Some(text[start..end].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(messages: Value) -> ModelRequest {
        ModelRequest::new(0, Duration::ZERO, BTreeMap::new(), &json!({"messages": messages}))
    }

    #[test]
    fn new_is_what_follows_the_model_s_last_message() {
        let request = request(json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "text", "text": "answer"}]},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "out"}]},
                                         {"type": "text", "text": "two"}]}]));
        assert!(request.received_exactly("two") && request.received_exactly("out"));
        assert!(!request.received_exactly("one") && !request.received_exactly("tw"));
    }

    #[test]
    fn output_path_is_found_without_the_full_stop() {
        for (text, path) in [
            (
                "Output is being written to: /t/c/s/tasks/b1.output. You will be notified",
                "/t/c/s/tasks/b1.output",
            ),
            ("written to: /t/c/s/tasks/b1.output", "/t/c/s/tasks/b1.output"),
            ("<output-file>/t/tasks/b2.output</output-file>", "/t/tasks/b2.output"),
        ] {
            let request =
                request(json!([{"role": "user", "content": [{"type": "tool_result", "content": text}]}]));
            assert_eq!(request.background_output().as_deref(), Some(path));
        }
    }
}
