//! Which conversation a request belongs to.
//!
//! A subagent is recognised by a `[[sub:KEY]]` tag that the script put into the prompt it was launched with: that
//! prompt is the first user message of every request the subagent makes. The main conversation carries the same tag
//! only inside its own tool calls, which are the assistant's.

use std::fmt;

use serde_json::Value;

/// The conversation a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// The agent's main loop.
    Main,
    /// The subagent whose prompt carried `[[sub:KEY]]`.
    Sub(String),
    /// A request on the side, such as the title of a session: one that offers no tools.
    Side,
}

impl Route {
    /// Tells the route from a request body.
    pub(super) fn of(body: &Value) -> Self {
        let first =
            body["messages"].as_array().into_iter().flatten().find(|message| message["role"] == "user");
        if let Some(key) = first.and_then(|message| texts(&message["content"]).into_iter().find_map(sub_key))
        {
            return Self::Sub(key.to_owned());
        }
        if body["tools"].as_array().is_none_or(Vec::is_empty) {
            return Self::Side;
        }
        Self::Main
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::Sub(key) => write!(f, "sub:{key}"),
            Self::Side => f.write_str("side"),
        }
    }
}

fn sub_key(text: &str) -> Option<&str> {
    let rest = &text[text.find("[[sub:")? + "[[sub:".len()..];
    Some(&rest[..rest.find("]]")?])
}

/// Returns the texts of a message's content, which is a string or a list of blocks.
pub(super) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(body: &Value, expected: &str) {
        assert_eq!(Route::of(body).to_string(), expected);
    }

    #[test]
    fn requests_go_to_the_conversation_they_belong_to() {
        let tools = json!([{"name": "Bash"}]);
        check(&json!({"tools": tools, "messages": [{"role": "user", "content": "hi"}]}), "main");
        check(&json!({"messages": [{"role": "user", "content": "title, please"}]}), "side");
        check(&json!({"tools": [], "messages": []}), "side");
        check(
            &json!({"tools": tools, "messages": [{"role": "user", "content": [
            {"type": "text", "text": "<reminder>"}, {"type": "text", "text": "[[sub:a]] do it"}]}]}),
            "sub:a",
        );
    }

    #[test]
    fn a_tag_in_the_main_conversation_s_own_tool_call_is_not_a_subagent() {
        check(
            &json!({"tools": [{"name": "Agent"}], "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", "input": {"prompt": "[[sub:a]] x"}}]},
                {"role": "user", "content": [{"type": "tool_result", "content": "[[sub:a]]"}]}]}),
            "main",
        );
    }
}
