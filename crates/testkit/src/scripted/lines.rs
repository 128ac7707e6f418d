//! The events of agent version 2.1.332, with placeholders where a process fills in its own values.
//!
//! Field names are those of recorded streams; a field whose value no reader looks at holds a short stand-in. Keys come
//! out in no particular order, as a reader must not rely on one.

use serde_json::{Value, json};

/// `system/init`, which opens every reply.
pub fn init() -> Value {
    json!({
        "type": "system", "subtype": "init", "cwd": "{{cwd}}", "session_id": "{{session}}",
        "tools": ["Task", "Bash", "Edit", "Monitor", "Read", "ScheduleWakeup", "SendMessage", "TaskStop", "Workflow", "Write"],
        "mcp_servers": [], "model": "{{model}}", "permissionMode": "bypassPermissions",
        "slash_commands": ["clear", "compact"], "terminal_slash_commands": ["doctor"],
        "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": "{{version}}", "output_style": "default",
        "agents": ["general-purpose"], "skills": [], "plugins": [],
        "capabilities": ["interrupt_receipt_v1", "msg_lifecycle_v1", "lifecycle_wakeup_source_v1"],
        "uuid": "{{uuid}}", "original_cwd": "{{cwd}}", "additional_directories": [],
        "fast_mode_state": "off", "user_message_uuids": "{{messages}}",
    })
}

/// An `assistant` event with one content block.
pub fn assistant(block: Value) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": "msg_{{line}}", "type": "message", "role": "assistant", "model": "{{model}}",
            "content": [block], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                      "output_tokens": 1},
            "context_management": null,
        },
        "parent_tool_use_id": null, "session_id": "{{session}}", "uuid": "{{uuid}}", "timestamp": "{{now}}",
        "request_id": "req_{{line}}", "user_message_uuid": "{{message}}", "user_message_uuids": "{{messages}}",
    })
}

/// Words of the agent.
pub fn assistant_text(text: &str) -> Value {
    assistant(json!({"type": "text", "text": text}))
}

/// A tool call of the agent.
pub fn tool_use(id: &str, name: &str, input: &Value) -> Value {
    assistant(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

/// A `user` event with the result of a tool call: what the model reads, and the structured form.
pub fn tool_result(id: &str, content: &Value, is_error: bool, structured: &Value) -> Value {
    json!({
        "type": "user",
        "message": {"role": "user", "content": [
            {"tool_use_id": id, "type": "tool_result", "content": content, "is_error": is_error}]},
        "parent_tool_use_id": null, "session_id": "{{session}}", "uuid": "{{uuid}}", "timestamp": "{{now}}",
        "tool_use_result": structured,
        "tool_result_meta": [{"id": id, "permission_decision":
            {"decision": "accept", "source": "config", "reason_type": "mode"}}],
    })
}

/// The result of a foreground Bash call.
pub fn shell_result(tool_use_id: &str, stdout: &str) -> Value {
    let structured = json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false,
                            "noOutputExpected": false});
    tool_result(tool_use_id, &Value::from(stdout), false, &structured)
}

/// The result of a Bash call that launched background task `id`.
pub fn launched_shell(tool_use_id: &str, id: &str) -> Value {
    let text = format!(
        "Command running in background with ID: {id}. Output is being written to: {{{{output:{id}}}}}. You will be \
         notified when it completes. To check interim output, use Read on that file path."
    );
    let structured = json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false,
                            "noOutputExpected": false, "backgroundTaskId": id});
    tool_result(tool_use_id, &Value::from(text), false, &structured)
}

/// The result of an Agent call that launched background task `id`.
pub fn launched_agent(tool_use_id: &str, id: &str) -> Value {
    let output = format!("{{{{output:{id}}}}}");
    let text = format!(
        "Async agent launched successfully.\nagentId: {id}\nThe agent is working in the background. You will be \
         notified automatically when it completes.\noutput_file: {output}\n"
    );
    let structured = json!({"isAsync": true, "status": "async_launched", "agentId": id, "description": id,
                            "resolvedModel": "{{model}}", "prompt": "do your part", "outputFile": output,
                            "canReadOutputFile": true, "canContinueAgent": true});
    tool_result(tool_use_id, &json!([{"type": "text", "text": text}]), false, &structured)
}

/// `system/background_tasks_changed` with a set given by hand: of each task its id and its type, for example
/// `("a1", "local_agent")`.
pub fn live_set_of(tasks: &[(&str, &str)]) -> Value {
    let mut line = live_set();
    let task = |(id, kind): &(&str, &str)| json!({"task_id": id, "run_id": format!("run-{id}"), "task_type": kind, "description": id});
    line["tasks"] = tasks.iter().map(task).collect();
    line
}

/// `system/background_tasks_changed` with the shells that run at this moment.
pub fn live_set() -> Value {
    json!({"type": "system", "subtype": "background_tasks_changed", "tasks": "{{live}}", "uuid": "{{uuid}}",
           "session_id": "{{session}}"})
}

/// `system/task_started` of a background shell.
pub fn started(id: &str, tool_use_id: &str, description: &str) -> Value {
    json!({"type": "system", "subtype": "task_started", "task_id": id, "run_id": format!("run-{id}"),
           "tool_use_id": tool_use_id, "description": description, "is_backgrounded": true,
           "task_type": "local_bash", "uuid": "{{uuid}}", "session_id": "{{session}}"})
}

/// `system/task_started` of a background agent.
pub fn started_agent(id: &str, tool_use_id: &str) -> Value {
    let mut line = started(id, tool_use_id, id);
    set(
        &mut line,
        json!({"task_type": "local_agent", "subagent_type": "general-purpose", "spawn_depth": 1,
                          "prompt": "do your part"}),
    );
    line
}

/// `system/task_updated`; `status` is `completed`, `failed` or `killed`.
pub fn updated(id: &str, status: &str) -> Value {
    json!({"type": "system", "subtype": "task_updated", "task_id": id, "run_id": format!("run-{id}"),
           "patch": {"status": status, "end_time": "{{now_ms}}"}, "uuid": "{{uuid}}", "session_id": "{{session}}"})
}

/// `system/task_notification`; `status` is `completed`, `failed` or `stopped`.
pub fn notification(id: &str, tool_use_id: &str, status: &str, summary: &str) -> Value {
    json!({"type": "system", "subtype": "task_notification", "task_id": id, "run_id": format!("run-{id}"),
           "tool_use_id": tool_use_id, "status": status, "output_file": format!("{{{{output:{id}}}}}"),
           "summary": summary, "uuid": "{{uuid}}", "session_id": "{{session}}"})
}

/// What a resume says first of a shell that left no record of its end: a guess, not a check.
pub fn lost_at_resume(id: &str, tool_use_id: &str) -> Value {
    json!({"type": "system", "subtype": "task_notification", "task_id": id, "tool_use_id": tool_use_id,
           "status": "stopped", "output_file": "",
           "summary": "Background shell command didn't finish before the previous session ended",
           "uuid": "{{uuid}}", "session_id": "{{session}}"})
}

/// A `result` of success with this text and number of turns.
pub fn success(text: &str, turns: u32) -> Value {
    let mut result = result("success", false, turns);
    set(
        &mut result,
        json!({"result": text, "terminal_reason": "completed", "stop_reason": "end_turn",
                            "api_error_status": null}),
    );
    result
}

/// The `result` of a reply that the agent began by itself when background task `id` ended.
pub fn woken(mut result: Value, id: &str) -> Value {
    let origin =
        json!({"kind": "task-notification", "producer": "session-task", "runId": format!("run-{id}")});
    set(&mut result, json!({"origin": origin, "user_message_uuid": null, "user_message_uuids": null}));
    result
}

/// The EMPTY `result` that answers nothing: no turn, no terminal reason.
pub fn empty_result() -> Value {
    let mut result = result("success", false, 0);
    set(
        &mut result,
        json!({"result": "", "stop_reason": null, "origin": {"kind": "task-notification"},
                            "user_message_uuid": null, "user_message_uuids": null}),
    );
    result
}

/// The `result` of a reply that ran out of turns: it reports one more than the cap.
pub fn max_turns(cap: u32) -> Value {
    let mut result = result("error_max_turns", true, cap + 1);
    set(
        &mut result,
        json!({"terminal_reason": "max_turns", "stop_reason": "tool_use",
                            "errors": [format!("Reached maximum number of turns ({cap})")]}),
    );
    result
}

/// The `result` of a reply that an interrupt cut short.
pub fn interrupted(turns: u32) -> Value {
    let mut result = result("error_during_execution", true, turns);
    set(
        &mut result,
        json!({"terminal_reason": "aborted_tools", "stop_reason": "tool_use",
        "errors": ["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use"]}),
    );
    result
}

/// The words with which the agent tells of an API error, `kind` being its own name of it (`rate_limit`, …).
pub fn api_error_text(status: Option<u16>, kind: &str, text: &str) -> Value {
    let mut line = assistant_text(text);
    set(
        &mut line["message"],
        json!({"model": "<synthetic>", "stop_reason": "stop_sequence", "stop_sequence": ""}),
    );
    set(&mut line, json!({"error": kind, "is_api_error_message": true, "api_error_status": status}));
    line
}

/// The `result` of a reply that an API error ended: a success by its subtype, an error by its flag.
pub fn api_error(status: Option<u16>, text: &str) -> Value {
    let mut result = result("success", true, 1);
    set(
        &mut result,
        json!({"result": text, "terminal_reason": "api_error", "stop_reason": "stop_sequence",
                            "api_error_status": status}),
    );
    result
}

/// The `result` of a resume whose session is not there.
pub fn unknown_session(text: &str) -> Value {
    let mut result = result("error_during_execution", true, 0);
    set(
        &mut result,
        json!({"errors": [text], "stop_reason": null, "user_message_uuid": null, "user_message_uuids": null}),
    );
    if let Value::Object(members) = &mut result {
        // No turn was begun, so nothing is told about one.
        members.retain(|key, _| {
            !["fast_mode_state", "model_usage_since_last_result", "queued_turn_count"].contains(&key.as_str())
        });
    }
    result
}

/// `rate_limit_event`, as a subscription gets it.
pub fn rate_limit(status: &str, kind: &str, resets_at: u64) -> Value {
    json!({"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": resets_at,
           "rateLimitType": kind, "isUsingOverage": false}, "uuid": "{{uuid}}", "session_id": "{{session}}"})
}

/// `command_lifecycle` of a message; `state` is `queued`, `started` or `completed`.
pub(super) fn lifecycle(message: &str, state: &str) -> Value {
    json!({"type": "command_lifecycle", "command_uuid": message, "state": state, "uuid": "{{uuid}}",
           "session_id": "{{session}}"})
}

fn result(subtype: &str, is_error: bool, turns: u32) -> Value {
    json!({
        "type": "result", "subtype": subtype, "is_error": is_error, "num_turns": turns, "duration_ms": 10,
        "duration_api_ms": 5, "session_id": "{{session}}", "total_cost_usd": "{{cost}}",
        "usage": {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                  "output_tokens": 20, "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
                  "service_tier": "standard"},
        "modelUsage": {}, "permission_denials": [], "fast_mode_state": "off", "uuid": "{{uuid}}",
        "queued_turn_count": 0, "result_index": "{{result}}", "model_usage_since_last_result": {},
        "user_message_uuid": "{{message}}", "user_message_uuids": "{{messages}}",
    })
}

/// Sets the members of `changes` in `object`; a null one of the message ids is taken out.
fn set(object: &mut Value, changes: Value) {
    let (Value::Object(object), Value::Object(changes)) = (object, changes) else { return };
    for (key, value) in changes {
        if value.is_null() && key.starts_with("user_message_uuid") {
            object.remove(&key);
        } else {
            object.insert(key, value);
        }
    }
}
