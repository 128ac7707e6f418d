//! Builds the actions of one reply, from its init event to its result.

use std::time::Duration;

use serde_json::{Value, json};

use super::lines;
use super::script::Action;

/// A reply under construction. The methods that take `self` and give actions end it.
#[derive(Clone, Debug)]
pub struct Reply {
    actions: Vec<Action>,
    /// Tool results so far: the agent counts one turn more than these.
    results: u32,
    text: String,
    woken_by: Option<String>,
}

/// A background shell to launch: a real process.
#[derive(Clone, Debug)]
pub struct Shell {
    id: String,
    command: String,
    announce: bool,
    wakes: Option<Vec<Action>>,
}

impl Shell {
    /// Describes a shell whose end wakes the agent, which then says "woken".
    pub fn new(id: &str, command: &str) -> Self {
        Self { id: id.to_owned(), command: command.to_owned(), announce: true, wakes: None }
    }

    /// Sets what the agent does when the end of the shell wakes it. See [`Reply::woken`].
    pub fn waking(mut self, actions: impl Into<Vec<Action>>) -> Self {
        self.wakes = Some(actions.into());
        self
    }

    /// Keeps the end of the shell off the stream.
    pub fn unannounced(mut self) -> Self {
        self.announce = false;
        self.wakes = Some(Vec::new());
        self
    }
}

impl Reply {
    /// Opens a reply to a message.
    pub fn new() -> Self {
        Self::continued().emit(lines::init())
    }

    /// Opens a reply that goes on with what was said before, without an init event.
    pub fn continued() -> Self {
        Self { actions: Vec::new(), results: 0, text: String::new(), woken_by: None }
    }

    /// Opens a reply that the agent begins by itself because background task `id` ended.
    pub fn woken(id: &str) -> Self {
        Self { woken_by: Some(id.to_owned()), ..Self::new() }
    }

    /// Says something.
    pub fn text(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self.emit(lines::assistant_text(text))
    }

    /// Prints any event.
    pub fn emit(self, line: Value) -> Self {
        self.then(Action::Emit { line })
    }

    /// Does anything.
    pub fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Pauses.
    pub fn sleep(self, time: Duration) -> Self {
        self.then(Action::Sleep { ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) })
    }

    /// Waits until the test has made a file in the script's folder.
    pub fn await_file(self, name: &str) -> Self {
        self.then(Action::AwaitFile { path: name.into() })
    }

    /// Makes a file in the script's folder, for the test to wait for.
    pub fn touch(self, name: &str) -> Self {
        self.then(Action::Touch { path: name.into() })
    }

    /// Calls a tool and gets a result of words.
    pub fn tool(mut self, name: &str, input: &Value, result: &str) -> Self {
        let id = self.tool_id();
        self.results += 1;
        self.emit(lines::tool_use(&id, name, input)).emit(lines::shell_result(&id, result))
    }

    /// Calls Bash in the foreground, without running anything.
    pub fn shell(self, command: &str, stdout: &str) -> Self {
        self.tool("Bash", &json!({"command": command, "description": "foreground"}), stdout)
    }

    /// Launches a background shell.
    pub fn launch(mut self, shell: Shell) -> Self {
        let Shell { id, command, announce, wakes } = shell;
        let tool_use_id = format!("toolu_{id}");
        let wakes = wakes.unwrap_or_else(|| Self::woken(&id).text("woken").success());
        let input = json!({"command": command, "description": id, "run_in_background": true});
        self.results += 1;
        let start = Action::Shell {
            id: id.clone(),
            tool_use_id: tool_use_id.clone(),
            command,
            description: id.clone(),
            announce,
            wakes,
        };
        self.emit(lines::tool_use(&tool_use_id, "Bash", &input))
            .then(start)
            .emit(lines::live_set())
            .emit(lines::started(&id, &tool_use_id, &id))
            .emit(lines::launched_shell(&tool_use_id, &id))
    }

    /// Launches a background agent: events only, no process. It ends with [`Self::agent_ended`].
    pub fn launch_agent(mut self, id: &str) -> Self {
        let tool_use_id = format!("toolu_{id}");
        let input = json!({"description": id, "prompt": "do your part", "subagent_type": "general-purpose",
                           "run_in_background": true});
        self.results += 1;
        self.emit(lines::tool_use(&tool_use_id, "Agent", &input))
            .emit(lines::live_set_of(&[(id, "local_agent")]))
            .emit(lines::started_agent(id, &tool_use_id))
            .emit(lines::launched_agent(&tool_use_id, id))
    }

    /// Announces the end of a background agent. Mostly first in a [`Self::continued`] reply, before a woken one.
    pub fn agent_ended(self, id: &str) -> Self {
        let summary = format!("Agent \"{id}\" completed");
        self.emit(lines::updated(id, "completed"))
            .emit(lines::notification(id, &format!("toolu_{id}"), "completed", &summary))
            .emit(lines::live_set_of(&[]))
    }

    /// Reads the output of background task `id`: a harvest.
    pub fn harvest(self, id: &str) -> Self {
        let path = format!("{{{{output:{id}}}}}");
        self.tool("Read", &json!({"file_path": path}), "1\toutput")
    }

    /// Waits, within the reply, for the end of background task `id`.
    pub fn await_shell(self, id: &str) -> Self {
        self.then(Action::AwaitShell { id: id.to_owned() })
    }

    /// Ends with success; the result is the last text.
    pub fn success(self) -> Vec<Action> {
        let result = lines::success(&self.text, self.turns());
        self.result(result)
    }

    /// Ends out of turns, `cap` being how many were allowed.
    pub fn max_turns(self, cap: u32) -> Vec<Action> {
        self.result(lines::max_turns(cap))
    }

    /// Ends with an API error; `kind` is the agent's name of it, for example `rate_limit`.
    pub fn api_error(self, status: Option<u16>, kind: &str, text: &str) -> Vec<Action> {
        self.emit(lines::api_error_text(status, kind, text)).result(lines::api_error(status, text))
    }

    /// Ends as an interrupt ends it.
    pub fn interrupted(self) -> Vec<Action> {
        let result = lines::interrupted(self.turns() + 1);
        self.result(result)
    }

    /// Ends with any result.
    pub fn result(self, result: Value) -> Vec<Action> {
        let result = match &self.woken_by {
            Some(id) => lines::woken(result, id),
            None => result,
        };
        self.emit(result).actions
    }

    /// Breaks off without a result.
    pub fn without_result(self) -> Vec<Action> {
        self.actions
    }

    fn turns(&self) -> u32 {
        self.results + 1
    }

    fn tool_id(&self) -> String {
        format!("toolu_{{{{reply}}}}_{}", self.results)
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::new()
    }
}
