//! Lines of the agent's stream, as 2.1.332 writes them, without what the fold does not read.

use super::SESSION;

pub(super) fn init() -> String {
    format!(
        r#"{{"type":"system","subtype":"init","session_id":"{SESSION}","cwd":"/w","model":"m","claude_code_version":"2.1.332","capabilities":["msg_lifecycle_v1"]}}"#
    )
}

pub(super) fn text(text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null}}"#
    )
}

pub(super) fn call(id: &str, name: &str, input: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m","content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]}},"parent_tool_use_id":null}}"#
    )
}

pub(super) fn returned(id: &str, result: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{id}","type":"tool_result","content":"x","is_error":false}}]}},"parent_tool_use_id":null,"tool_use_result":{result}}}"#
    )
}

pub(super) fn launch(call_id: &str, id: &str) -> Vec<String> {
    vec![
        call(call_id, "Bash", r#"{"command":"make","run_in_background":true}"#),
        set(&[id]),
        returned(call_id, &format!(r#"{{"stdout":"","backgroundTaskId":"{id}"}}"#)),
    ]
}

pub(super) fn set(ids: &[&str]) -> String {
    let entries: Vec<_> = ids
        .iter()
        .map(|id| format!(r#"{{"task_id":"{id}","task_type":"local_bash","description":"make"}}"#))
        .collect();
    format!(r#"{{"type":"system","subtype":"background_tasks_changed","tasks":[{}]}}"#, entries.join(","))
}

pub(super) fn note(id: &str, status: &str, summary: &str) -> String {
    format!(
        r#"{{"type":"system","subtype":"task_notification","task_id":"{id}","tool_use_id":"c1","status":"{status}","output_file":"/t/tasks/{id}.output","summary":"{summary}"}}"#
    )
}

pub(super) fn end(id: &str) -> Vec<String> {
    vec![
        format!(
            r#"{{"type":"system","subtype":"task_updated","task_id":"{id}","patch":{{"status":"completed"}}}}"#
        ),
        note(id, "completed", "Background command \\\"make\\\" completed (exit code 0)"),
        set(&[]),
    ]
}

pub(super) fn result(rest: &str) -> String {
    format!(r#"{{"type":"result","session_id":"{SESSION}",{rest}}}"#)
}

pub(super) fn success(turns: u64) -> String {
    result(&format!(
        r#""subtype":"success","is_error":false,"num_turns":{turns},"result":"ok","terminal_reason":"completed","total_cost_usd":0.01"#
    ))
}

pub(super) fn woken() -> String {
    result(
        r#""subtype":"success","is_error":false,"num_turns":1,"result":"it finished","terminal_reason":"completed","total_cost_usd":0.02,"origin":{"kind":"task-notification"}"#,
    )
}

pub(super) fn empty() -> String {
    result(
        r#""subtype":"success","is_error":false,"num_turns":0,"result":"","origin":{"kind":"task-notification"}"#,
    )
}

pub(super) fn max_turns(turns: u64) -> String {
    result(&format!(
        r#""subtype":"error_max_turns","is_error":true,"num_turns":{turns},"terminal_reason":"max_turns","errors":["Reached maximum number of turns"]"#
    ))
}

pub(super) fn api_error(status: u16, class: &str, text: &str) -> Vec<String> {
    vec![
        format!(
            r#"{{"type":"assistant","message":{{"model":"<synthetic>","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null,"error":"{class}","is_api_error_message":true}}"#
        ),
        result(&format!(
            r#""subtype":"success","is_error":true,"num_turns":1,"result":"{text}","terminal_reason":"api_error","api_error_status":{status}"#
        )),
    ]
}

pub(super) fn reply() -> Vec<String> {
    vec![init(), text("done"), success(1)]
}
