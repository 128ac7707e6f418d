//! What a tool result says about background work that it leaves behind (FACTS 1, "Launch results").

use super::content::text_of;
use crate::agent::Launch;
use crate::background::Kind;
use crate::time::At;
use crate::wire::Undecodable;
use crate::wire::json::{Cursor, Raw};

/// The fields of a structured tool result that tell what it left running.
#[derive(Debug, Clone, Default)]
pub(in crate::wire) struct ToolResult<'a> {
    shell: Option<Raw<'a>>,
    resumed: Option<Raw<'a>>,
    agent: Option<Raw<'a>>,
    followed: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    output: Option<Raw<'a>>,
    scheduled_for: Option<Raw<'a>>,
    next_fire_at: Option<Raw<'a>>,
    is_async: bool,
    is_workflow: bool,
    is_monitor: bool,
    is_cron: bool,
    is_plain_output: bool,
}

impl<'a> ToolResult<'a> {
    /// Reads the result that starts at `cursor`; None for anything but an object (an error is a string).
    pub(in crate::wire) fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Undecodable> {
        if !cursor.enter(b'{') {
            cursor.value()?;
            return Ok(None);
        }
        let mut result = Self::default();
        while let Some(key) = cursor.key()? {
            let value = cursor.value()?;
            match &*key {
                b"backgroundTaskId" => result.shell = Some(value),
                b"resumedAgentId" => result.resumed = Some(value),
                b"agentId" => result.agent = Some(value),
                b"taskId" => result.followed = Some(value),
                b"isAsync" => result.is_async |= value.is_true(),
                b"status" => result.is_async |= value.is("async_launched"),
                b"taskType" => result.is_workflow |= value.is("local_workflow"),
                b"timeoutMs" | b"persistent" => result.is_monitor = true,
                b"outputFile" => result.output = Some(value),
                b"scheduledFor" => result.scheduled_for = Some(value),
                b"id" => result.id = Some(value),
                b"humanSchedule" => result.is_cron = true,
                b"nextFireAt" => result.next_fire_at = Some(value),
                b"stdout" | b"file" => result.is_plain_output = true,
                _ => {}
            }
        }
        Ok(Some(result))
    }

    /// Whether it speaks for itself, so that the text beside it is only what a command printed or a file holds.
    pub(in crate::wire) fn is_plain_output(&self) -> bool {
        self.is_plain_output
    }

    /// Returns the launch it announces, with its output path if it names one.
    pub(in crate::wire) fn launch(&self) -> Option<Launch> {
        let filled = |value: Option<Raw<'_>>| value.and_then(Raw::filled);
        let moment = |value: Option<Raw<'_>>| value.and_then(Raw::unsigned).filter(|due| *due > 0).map(At);
        let launch = |id: String, kind: Kind| Launch {
            id,
            kind,
            output: filled(self.output),
            due: None,
            again: false,
        };
        if let Some(id) = filled(self.shell) {
            return Some(launch(id, Kind::Shell));
        }
        if let Some(id) = filled(self.resumed) {
            return Some(Launch { again: true, ..launch(id, Kind::Agent) });
        }
        if self.is_async
            && let Some(id) = filled(self.agent)
        {
            return Some(launch(id, Kind::Agent));
        }
        if let Some(id) = filled(self.followed) {
            // A bare `taskId` is the agent's to-do list.
            if self.is_async || self.is_workflow {
                return Some(launch(id, Kind::Workflow));
            }
            return self.is_monitor.then(|| launch(id, Kind::Monitor));
        }
        // A refused wake-up is scheduled for 0 (measured on 2.1.231, m-wakeup-open-nonoop).
        if let Some(due) = moment(self.scheduled_for) {
            return Some(Launch { due: Some(due), ..launch(format!("wakeup-{}", due.0), Kind::Wakeup) });
        }
        let id = filled(self.id).filter(|_| self.is_cron)?;
        Some(Launch { due: moment(self.next_fire_at), ..launch(format!("cron-{id}"), Kind::Wakeup) })
    }
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

#[cfg(test)]
mod tests {
    use super::super::line::Line;
    use super::*;

    #[track_caller]
    fn check(result: &str, expected: Option<(&str, Kind)>) {
        let line = format!("{{\"tool_use_result\":{result}}}");
        let line = Line::read(line.as_bytes()).unwrap().unwrap();
        let launch = line.tool_result.and_then(|result| result.launch());
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
