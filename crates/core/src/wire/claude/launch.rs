//! What a tool result says about background work that it leaves behind (FACTS 1, "Launch results").

use crate::agent::Launch;
use crate::background::Kind;
use crate::time::At;
use crate::wire::json::{Raw, unescape};

/// Returns the launch that a structured tool result (`tool_use_result`, `toolUseResult`) announces, without its output
/// path unless the result names it.
pub(in crate::wire) fn of_result(result: Raw<'_>) -> Option<Launch> {
    let mut found = Fields::default();
    for (key, value) in result.fields() {
        match &*key {
            b"backgroundTaskId" => found.shell = value.filled(),
            b"resumedAgentId" => found.resumed = value.filled(),
            b"agentId" => found.agent = value.filled(),
            b"taskId" => found.task = value.filled(),
            b"isAsync" => found.is_async |= value.is_true(),
            b"status" => found.is_async |= value.is("async_launched"),
            b"taskType" => found.is_workflow |= value.is("local_workflow"),
            b"timeoutMs" | b"persistent" => found.is_monitor = true,
            b"outputFile" => found.output = value.filled(),
            b"scheduledFor" => found.scheduled_for = value.unsigned(),
            b"id" => found.id = value.filled(),
            b"humanSchedule" => found.is_cron = true,
            b"nextFireAt" => found.next_fire_at = value.unsigned(),
            _ => {}
        }
    }
    found.launch()
}

#[derive(Debug, Default)]
struct Fields {
    shell: Option<String>,
    resumed: Option<String>,
    agent: Option<String>,
    task: Option<String>,
    id: Option<String>,
    output: Option<String>,
    is_async: bool,
    is_workflow: bool,
    is_monitor: bool,
    is_cron: bool,
    scheduled_for: Option<u64>,
    next_fire_at: Option<u64>,
}

impl Fields {
    fn launch(self) -> Option<Launch> {
        let launch = |id: String, kind: Kind| Launch { id, kind, output: None, due: None, again: false };
        let mut launch = if let Some(id) = self.shell {
            launch(id, Kind::Shell)
        } else if let Some(id) = self.resumed {
            Launch { again: true, ..launch(id, Kind::Agent) }
        } else if let (true, Some(id)) = (self.is_async, self.agent) {
            launch(id, Kind::Agent)
        } else if let (true, Some(id)) = (self.is_async || self.is_workflow, &self.task) {
            launch(id.clone(), Kind::Workflow)
        } else if let (true, Some(id)) = (self.is_monitor, self.task) {
            launch(id, Kind::Monitor)
        } else if let Some(due) = self.scheduled_for.filter(|due| *due > 0) {
            // A refused wake-up says 0 (measured on 2.1.231, m-wakeup-open-nonoop).
            Launch { due: Some(At(due)), ..launch(format!("wakeup-{due}"), Kind::Wakeup) }
        } else if let (true, Some(id)) = (self.is_cron, self.id) {
            Launch { due: self.next_fire_at.map(At), ..launch(format!("cron-{id}"), Kind::Wakeup) }
        } else {
            return None;
        };
        launch.output = self.output;
        Some(launch)
    }
}

/// Whether a structured result speaks for itself, so that the text beside it is only what a command printed.
pub(in crate::wire) fn is_plain_output(result: Raw<'_>) -> bool {
    result.is_object() && result.fields().any(|(key, _)| matches!(&*key, b"stdout" | b"file"))
}

/// Returns the launch that the text of a result announces; for results that come without their structured part, as a
/// subagent's do.
///
/// The wordings are those of DRIFT 32-33 and INTERACTIVE 3. The two short ones must begin the text and all of them must
/// name the output file, so that a printed log is not taken for a launch.
pub(in crate::wire) fn of_text(content: Raw<'_>, scratch: &mut Vec<u8>) -> Option<Launch> {
    const BEGINNINGS: [&str; 2] =
        ["Command running in background with ID: ", "Command was manually backgrounded by user with ID: "];
    const MOVED: &str = "was moved to the background (ID: ";
    const AGENT: &str = "Async agent launched successfully";

    if !may_contain(content, b"background") && !may_contain(content, AGENT.as_bytes()) {
        return None;
    }
    let text = text_of(content, scratch);
    let beginning = BEGINNINGS.into_iter().find_map(|beginning| text.strip_prefix(beginning));
    let after = beginning.or_else(|| text.rsplit_once(MOVED).map(|(_, after)| after));
    let (after, kind) = match after {
        Some(after) => (after, Kind::Shell),
        None => (text.strip_prefix(AGENT)?.split_once("agentId: ")?.1, Kind::Agent),
    };
    let end = after.find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')))?;
    let id = &after[..end];
    let output = output_in(text, id);
    if id.is_empty() || (kind == Kind::Shell && output.is_none()) {
        return None;
    }
    Some(Launch { id: id.to_owned(), kind, output, due: None, again: false })
}

/// Returns the path of a task's output file that the text of a result names.
pub(in crate::wire) fn output_path(content: Raw<'_>, id: &str, scratch: &mut Vec<u8>) -> Option<String> {
    if !may_contain(content, b".output") {
        return None;
    }
    output_in(text_of(content, scratch), id)
}

/// The path ends with `.output`, whatever the sentence puts behind it (DRIFT 33).
fn output_in(text: &str, id: &str) -> Option<String> {
    let name = format!("/tasks/{id}.output");
    let end = text.rfind(&name)? + name.len();
    let before = &text[..end];
    let path = match before.rsplit_once("Output is being written to: ") {
        Some((_, path)) => path,
        None => before.rsplit_once(char::is_whitespace).map_or(before, |(_, path)| path),
    };
    path.starts_with('/').then(|| path.to_owned())
}

/// A look at the bytes as they are written: words of plain letters are never escaped by the agent.
fn may_contain(content: Raw<'_>, word: &[u8]) -> bool {
    memchr::memmem::find(content.bytes(), word).is_some()
}

/// Returns the text of a `content`: a string, or the text blocks of a list, put together in `scratch`.
pub(in crate::wire) fn text_of<'s>(content: Raw<'_>, scratch: &'s mut Vec<u8>) -> &'s str {
    scratch.clear();
    if let Some(inside) = content.escaped() {
        unescape(inside, scratch);
    }
    for block in content.items() {
        if let Some(inside) = block.field("text").and_then(Raw::escaped) {
            if !scratch.is_empty() {
                scratch.push(b'\n');
            }
            unescape(inside, scratch);
        }
    }
    std::str::from_utf8(scratch).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &str, expected: Option<(&str, Kind)>) {
        let launch = of_result(Raw::parse(result.as_bytes()).unwrap());
        assert_eq!(launch.as_ref().map(|launch| (launch.id.as_str(), launch.kind)), expected, "{result}");
    }

    #[test]
    fn a_result_tells_what_it_left_running() {
        check(r#"{"stdout":"","backgroundTaskId":"b1"}"#, Some(("b1", Kind::Shell)));
        check(r#"{"isAsync":true,"status":"async_launched","agentId":"a1"}"#, Some(("a1", Kind::Agent)));
        check(r#"{"status":"async_launched","agentId":"a1"}"#, Some(("a1", Kind::Agent)));
        check(
            r#"{"status":"async_launched","taskId":"w1","taskType":"local_workflow"}"#,
            Some(("w1", Kind::Workflow)),
        );
        check(r#"{"taskId":"m1","timeoutMs":60000,"persistent":false}"#, Some(("m1", Kind::Monitor)));
        check(
            r#"{"scheduledFor":1796072820000,"wasClamped":false}"#,
            Some(("wakeup-1796072820000", Kind::Wakeup)),
        );
        check(
            r#"{"id":"c1","humanSchedule":"Every minute","recurring":false}"#,
            Some(("cron-c1", Kind::Wakeup)),
        );
        check(r#"{"success":true,"resumedAgentId":"a1"}"#, Some(("a1", Kind::Agent)));
    }

    #[test]
    fn what_left_nothing_running_is_no_launch() {
        check(r#"{"status":"completed","agentId":"a1"}"#, None);
        check(r#"{"message":"stopped","task_id":"b1","task_type":"local_bash","command":"x"}"#, None);
        check(r#"{"scheduledFor":0,"clampedDelaySeconds":0,"wasClamped":false}"#, None);
        check(r#"{"success":true,"taskId":"7","updatedFields":["status"]}"#, None);
        check(r#"{"retrieval_status":"success","task":{"task_id":"b1"}}"#, None);
        check(r#"{"id":"x"}"#, None);
        check(r#"{"backgroundTaskId":""}"#, None);
        check(r#"{"backgroundTaskId":7}"#, None);
        check(r#""Error: boom""#, None);
    }

    #[track_caller]
    fn check_text(text: &str, expected: Option<(&str, &str)>) {
        let content = serde_json::to_vec(text).unwrap();
        let launch = of_text(Raw::parse(&content).unwrap(), &mut Vec::new());
        let launch =
            launch.as_ref().map(|launch| (launch.id.as_str(), launch.output.as_deref().unwrap_or_default()));
        assert_eq!(launch, expected, "{text}");
    }

    #[test]
    fn every_wording_of_a_launch_is_read_when_the_structured_part_is_missing() {
        let path = "/tmp/claude-0/-w/s/tasks/b1.output";
        for text in [
            format!("Command running in background with ID: b1. Output is being written to: {path}"),
            format!(
                "Command running in background with ID: b1. Output is being written to: {path}. You will be notified"
            ),
            format!(
                "Command was manually backgrounded by user with ID: b1. Output is being written to: {path}."
            ),
            format!(
                "so far\nCommand did not complete within its 2s timeout and was moved to the background (ID: b1). Output is being written to: {path}. x"
            ),
        ] {
            check_text(&text, Some(("b1", path)));
        }
        check_text("Async agent launched successfully. (x)\nagentId: a1 (internal ID)", Some(("a1", "")));
    }

    #[test]
    fn a_printed_log_is_no_launch() {
        check_text(
            "$ cat log\nCommand running in background with ID: b1. Output is being written to: /t/tasks/b1.output",
            None,
        );
        check_text("Command running in background with ID: b1", None);
        check_text("the background is blue", None);
    }

    #[test]
    fn a_path_with_a_blank_in_it_is_read_whole() {
        let text = "\"Command running in background with ID: b1. Output is being written to: /tmp/my dir/tasks/b1.output. You\"";
        let path = output_path(Raw::parse(text.as_bytes()).unwrap(), "b1", &mut Vec::new());
        assert_eq!(path.as_deref(), Some("/tmp/my dir/tasks/b1.output"));
    }
}
