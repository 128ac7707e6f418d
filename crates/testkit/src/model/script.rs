//! What the model will say: a list of steps for each conversation.
//!
//! A step answers one request, or as many as [`Step::times`] says. The agent repeats requests by itself: it retries
//! errors (ten times unless `CLAUDE_CODE_MAX_RETRIES` says otherwise), and asks again without streaming after a stream
//! that broke off. Every such repeat takes a step, so faults are usually `forever()` or counted. A script can be
//! written as JSON, all but closures and gates.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::{Answer, Block, HttpFault, Message, StopReason, Usage};
use super::gate::Gate;
use super::request::ModelRequest;

/// Steps for every conversation of one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub(super) main: Vec<Step>,
    pub(super) sub: BTreeMap<String, Vec<Step>>,
    pub(super) side: Vec<Step>,
    pub(super) exhausted: Option<Answer>,
}

impl Script {
    /// Makes an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step to the main conversation.
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.main.push(step.into());
        self
    }

    /// Adds a step to the subagent whose prompt carries `[[sub:KEY]]`.
    pub fn sub(mut self, key: &str, step: impl Into<Step>) -> Self {
        self.sub.entry(key.to_owned()).or_default().push(step.into());
        self
    }

    /// Adds a step to the requests that offer no tools. Without any they are answered with a short text.
    pub fn side(mut self, step: impl Into<Step>) -> Self {
        self.side.push(step.into());
        self
    }

    /// Sets what a request gets for which no step is left. It counts as a fault all the same.
    pub fn when_exhausted(mut self, answer: Answer) -> Self {
        self.exhausted = Some(answer);
        self
    }
}

/// What a closure makes of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// This answer; the next request finds the next step.
    Answer(Answer),
    /// This answer; the next request comes here again.
    AnswerAndStay(Answer),
    /// Nothing: the request goes to the next step at once.
    Pass,
}

/// One step of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    #[serde(flatten)]
    act: Act,
    /// How many requests it answers; without a number, for ever.
    #[serde(default = "once")]
    pub(super) times: Option<u32>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    pause_ms: u64,
    #[serde(skip)]
    pub(super) gate: Option<Gate>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Act {
    Answer(Answer),
    /// Reads the output of the newest background task the conversation mentions.
    ReadBackgroundOutput {},
    /// Runs this command in the foreground again and again until a background task's end is told, then passes.
    UntilNotified {
        command: String,
    },
    #[serde(skip)]
    Dynamic(Arc<dyn Fn(&ModelRequest) -> Choice + Send + Sync>),
}

#[expect(clippy::unnecessary_wraps, reason = "serde wants the field's own type")]
fn once() -> Option<u32> {
    Some(1)
}

impl Step {
    /// Answers with words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([Block::Text(text.into())])
    }

    /// Calls one tool.
    pub fn tool(name: &str, input: Value) -> Self {
        Self::blocks([Block::Tool { name: name.to_owned(), input }])
    }

    /// Answers with several blocks: words and tool calls in any order.
    pub fn blocks(blocks: impl Into<Vec<Block>>) -> Self {
        Answer::Message(Message { blocks: blocks.into(), ..Message::default() }).into()
    }

    /// Runs a shell command in the foreground.
    pub fn shell(command: &str) -> Self {
        Self::tool("Bash", json!({"command": command, "description": "foreground command"}))
    }

    /// Launches a shell command in the background.
    pub fn background_shell(command: &str) -> Self {
        Self::tool(
            "Bash",
            json!({"command": command, "description": "background command", "run_in_background": true}),
        )
    }

    /// Launches a subagent in the background; its own steps are those of [`Script::sub`] with the same key.
    pub fn background_agent(key: &str) -> Self {
        Self::agent(key, Some(true))
    }

    /// Launches a subagent; `background` is left out of the call when it is `None`.
    pub fn agent(key: &str, background: Option<bool>) -> Self {
        let mut input = json!({
            "description": format!("agent {key}"),
            "prompt": format!("[[sub:{key}]] do your part"),
            "subagent_type": "general-purpose",
        });
        if let Some(background) = background {
            input["run_in_background"] = Value::from(background);
        }
        Self::tool("Agent", input)
    }

    /// Reads the output file of the newest background task the conversation mentions: a harvest.
    pub fn read_background_output() -> Self {
        Self::new(Act::ReadBackgroundOutput {})
    }

    /// Works in the foreground with `command`, again and again, until the end of a background task is told; the
    /// request that tells it goes to the next step. Notice that recent agents refuse a command that starts with a long
    /// `sleep`.
    pub fn until_notified(command: &str) -> Self {
        Self::new(Act::UntilNotified { command: command.to_owned() })
    }

    /// Asks a closure.
    pub fn dynamic(choose: impl Fn(&ModelRequest) -> Choice + Send + Sync + 'static) -> Self {
        Self::new(Act::Dynamic(Arc::new(choose)))
    }

    /// Answers with an HTTP error.
    pub fn http(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        Answer::Http(HttpFault { status, kind, message, headers: BTreeMap::new() }).into()
    }

    /// Refuses with a usage limit that resets at `reset`, in seconds since the epoch, in the headers of a subscription
    /// (`claim` is `five_hour`, `seven_day`, …), and tells the agent not to retry by itself.
    pub fn usage_limit(claim: &str, reset: u64) -> Self {
        Self::http(429, "rate_limit_error", "This request would exceed your account's rate limit.")
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", &reset.to_string())
            .header("anthropic-ratelimit-unified-representative-claim", claim)
            .header("anthropic-ratelimit-unified-overage-status", "rejected")
            .header("x-should-retry", "false")
    }

    /// Breaks the stream of a text off after `events` events.
    pub fn cut(text: &str, events: usize) -> Self {
        let message = Message { blocks: vec![Block::Text(text.to_owned())], ..Message::default() };
        Answer::Cut { message, events }.into()
    }

    /// Answers with a message that has no content.
    pub fn empty() -> Self {
        Self::blocks([])
    }

    /// Answers with words that stop at the output limit.
    pub fn max_tokens(text: &str) -> Self {
        Self::text(text).stopped_by(StopReason::MaxTokens)
    }

    /// Declines.
    pub fn refusal(text: &str) -> Self {
        Self::text(text).stopped_by(StopReason::Refusal)
    }

    /// Answers 200 with something that is not the API's.
    pub fn malformed(body: &str) -> Self {
        Answer::Malformed(body.to_owned()).into()
    }

    /// Never answers.
    pub fn hang() -> Self {
        Answer::Hang.into()
    }

    /// Puts words before what the step answers.
    pub fn saying(mut self, text: &str) -> Self {
        if let Some(message) = self.message_mut() {
            message.blocks.insert(0, Block::Text(text.to_owned()));
        }
        self
    }

    /// Adds another tool call to the same message.
    pub fn and_tool(mut self, name: &str, input: Value) -> Self {
        if let Some(message) = self.message_mut() {
            message.blocks.push(Block::Tool { name: name.to_owned(), input });
        }
        self
    }

    /// Sets why the message ended.
    pub fn stopped_by(mut self, reason: StopReason) -> Self {
        if let Some(message) = self.message_mut() {
            message.stop_reason = Some(reason);
        }
        self
    }

    /// Sets what the message cost.
    pub fn costing(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        if let Some(message) = self.message_mut() {
            message.usage = Usage { input_tokens, output_tokens };
        }
        self
    }

    /// Adds a header to an HTTP error.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Act::Answer(Answer::Http(fault)) = &mut self.act {
            fault.headers.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// Answers `count` requests instead of one.
    pub fn times(mut self, count: u32) -> Self {
        self.times = Some(count);
        self
    }

    /// Answers every further request.
    pub fn forever(mut self) -> Self {
        self.times = None;
        self
    }

    /// Holds the answer back for a while.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Holds the answer back until `gate` is open.
    pub fn gated(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Pauses before every event of the stream.
    pub fn trickling(mut self, pause: Duration) -> Self {
        self.pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    pub(super) fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    /// Says what this step makes of `request`.
    pub(super) fn choose(&self, request: &ModelRequest) -> Choice {
        match &self.act {
            Act::Answer(answer) => Choice::Answer(answer.clone()),
            Act::ReadBackgroundOutput {} => match request.background_output() {
                Some(path) => Choice::Answer(call("Read", json!({"file_path": path}))),
                None => Choice::Pass,
            },
            Act::UntilNotified { .. } if request.notified() => Choice::Pass,
            Act::UntilNotified { command } => {
                let input = json!({"command": command, "description": "wait"});
                Choice::AnswerAndStay(call("Bash", input))
            }
            Act::Dynamic(choose) => choose(request),
        }
    }

    fn new(act: Act) -> Self {
        Self { act, times: once(), delay_ms: 0, pause_ms: 0, gate: None }
    }

    fn message_mut(&mut self) -> Option<&mut Message> {
        match &mut self.act {
            Act::Answer(Answer::Message(message) | Answer::Cut { message, .. }) => Some(message),
            Act::Answer(_) | Act::ReadBackgroundOutput {} | Act::UntilNotified { .. } | Act::Dynamic(_) => {
                None
            }
        }
    }
}

impl From<Answer> for Step {
    fn from(answer: Answer) -> Self {
        Self::new(Act::Answer(answer))
    }
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(answer) => answer.fmt(f),
            Self::ReadBackgroundOutput {} => f.write_str("ReadBackgroundOutput"),
            Self::UntilNotified { command } => write!(f, "UntilNotified({command:?})"),
            Self::Dynamic(_) => f.write_str("Dynamic"),
        }
    }
}

fn call(name: &str, input: Value) -> Answer {
    Answer::Message(Message {
        blocks: vec![Block::Tool { name: name.to_owned(), input }],
        ..Message::default()
    })
}
