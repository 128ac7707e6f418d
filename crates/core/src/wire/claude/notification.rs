//! What the agent says about the end of background work: status words, summaries, and the notification texts that a
//! transcript holds (and the model is sent).

use crate::agent::{EndStatus, Notification};
use crate::background::Kind;

/// Returns how something ended, for the words measured in FACTS 1 and 10 (`killed` is what updates and texts say where
/// the stream's notification says `stopped`).
///
/// Any other word is interim and ends nothing: an end is also told by the live set or a second event, while work
/// taken for ended by a word nobody has seen would be forgotten.
pub(in crate::wire) fn end_status(word: &str) -> Option<EndStatus> {
    match word {
        "completed" => Some(EndStatus::Completed),
        "failed" => Some(EndStatus::Failed),
        "stopped" | "killed" => Some(EndStatus::Stopped),
        _ => None,
    }
}

/// Returns the kind a `task_type` stands for.
///
/// Measured are `local_bash` (a Monitor's too: only its launch result tells the two apart), `local_agent` and
/// `local_workflow`; the endings cover their likely relatives.
pub(in crate::wire) fn kind(task_type: &str) -> Option<Kind> {
    match task_type {
        "local_bash" => Some(Kind::Shell),
        "local_workflow" => Some(Kind::Workflow),
        _ if task_type.ends_with("_agent") || task_type.ends_with("_teammate") => Some(Kind::Agent),
        _ if task_type.ends_with("_workflow") => Some(Kind::Workflow),
        _ if task_type.starts_with("monitor") || task_type.ends_with("_monitor") => Some(Kind::Monitor),
        _ => None,
    }
}

/// Builds a notification from its parts and reads the exit code and the time limit out of its summary.
pub(in crate::wire) fn notification(
    id: String,
    tool_call: Option<String>,
    status: Option<EndStatus>,
    summary: String,
    output: Option<String>,
) -> Notification {
    let exit = exit_code(&summary, status);
    // FACTS 4.
    let timed_out = status == Some(EndStatus::Stopped)
        && summary.trim_end_matches('.').ends_with("was stopped after reaching its background time limit");
    Notification { id, tool_call, status, summary, exit, output, timed_out }
}

/// Returns the exit code that ends a summary: `… completed (exit code 0)`, `… failed with exit code 3` (FACTS 9).
///
/// A summary can also be nothing but the agent's own words (a foreground command, a subagent's report), so a code that
/// contradicts the status is not believed: completed is 0, failed is anything else (FACTS 9).
fn exit_code(summary: &str, status: Option<EndStatus>) -> Option<i32> {
    let summary = summary.trim_end().trim_end_matches('.');
    let number = match summary.strip_suffix(')') {
        Some(inside) => inside.rsplit_once("(exit code ")?.1,
        None => summary.rsplit_once("failed with exit code ")?.1,
    };
    let code: i32 = number.parse().ok()?;
    match status? {
        EndStatus::Completed if code == 0 => Some(code),
        EndStatus::Failed if code != 0 => Some(code),
        EndStatus::Completed | EndStatus::Failed | EndStatus::Stopped => None,
    }
}

/// Whether a text is a notification, and not one that talks about notifications.
pub(in crate::wire) fn is_notification_text(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<task-notification>") || text.starts_with("&lt;task-notification&gt;")
}

/// Returns the notifications that a text consists of, one after the other (FACTS 10).
///
/// One that is quoted inside another's report does not follow it directly, and is not read.
/// The brackets may be escaped as `&lt;` and `&gt;`. A monitor's interim event has no status, and ends nothing.
pub(in crate::wire) fn notifications(text: &str) -> Vec<Notification> {
    let plain;
    let text = if text.trim_start().starts_with("&lt;") {
        plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        plain.as_str()
    } else {
        text
    };
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(after) = rest.trim_start().strip_prefix("<task-notification>") {
        let (inside, behind) = after.split_once("</task-notification>").unwrap_or((after, ""));
        rest = behind;
        // The summary quotes commands, and a report may follow it: both can hold anything, so everything else is
        // read from what stands before it.
        let (head, tail) = inside.split_once("<summary>").unwrap_or((inside, ""));
        let summary = tail.split_once("</summary>").map_or(tail, |(summary, _)| summary);
        let id = element(head, "task-id");
        let tool_call = element(head, "tool-use-id");
        let output = element(head, "output-file");
        let status = element(head, "status").and_then(end_status);
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            let filled = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
            found.push(notification(
                id.to_owned(),
                filled(tool_call),
                status,
                summary.to_owned(),
                filled(output),
            ));
        }
    }
    found
}

fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    after.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_exit(summary: &str, status: EndStatus, expected: Option<i32>) {
        assert_eq!(exit_code(summary, Some(status)), expected, "{summary}");
    }

    #[test]
    fn the_exit_code_is_the_summarys_own_and_never_a_number_in_a_command() {
        use EndStatus::{Completed, Failed, Stopped};
        check_exit(r#"Background command "bg" completed (exit code 0)"#, Completed, Some(0));
        check_exit(r#"Background command "bg" failed with exit code 144"#, Failed, Some(144));
        check_exit(r#"Background command "bg" failed with exit code -1"#, Failed, Some(-1));
        check_exit(r#"Background command "echo exit code 3" completed (exit code 0)"#, Completed, Some(0));
        check_exit(
            r#"Background command "x failed with exit code 3" completed (exit code 0)"#,
            Completed,
            Some(0),
        );
        check_exit(r#"Background command "x (exit code 3)" was stopped"#, Stopped, None);
        check_exit("retry until it failed with exit code 3", Completed, None);
        check_exit("run the tests (exit code 3)", Completed, None);
        check_exit("bg (exit code 0)", Stopped, None);
        check_exit("exit code 3", Failed, None);
        check_exit("", Failed, None);
    }

    #[test]
    fn a_report_that_quotes_a_notification_ends_nothing_else() {
        let text = "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>t</tool-use-id>\n<output-file></output-file>\n\
                    <status>completed</status>\n<summary>Agent \"a\" finished</summary>\n\
                    <result>it said <status>failed</status> <task-id>b2</task-id>\n<task-notification><task-id>b3</task-id>\
                    <status>failed</status><summary>s</summary></task-notification> and more</result>\n</task-notification>";
        let found = notifications(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id.as_str(), found[0].status), ("a1", Some(EndStatus::Completed)));
        assert_eq!(found[0].output, None);
    }

    #[test]
    fn a_command_that_prints_a_status_does_not_end_a_monitor() {
        let found = notifications(
            "<task-notification><task-id>m1</task-id><task-type>local_bash</task-type>\
             <summary>Monitor event: \"echo <status>completed</status>\"</summary></task-notification>",
        );
        assert_eq!((found[0].id.as_str(), found[0].status), ("m1", None));
    }

    #[test]
    fn an_interim_event_has_no_status_and_escaped_brackets_read_the_same() {
        let text = "<task-notification>\n<task-id>b1</task-id>\n<summary>Monitor event: \"w\"</summary>\n\
                    <event>tick</event>\n</task-notification>";
        let escaped = text.replace('<', "&lt;").replace('>', "&gt;");
        assert!(is_notification_text(text) && is_notification_text(&escaped));
        let found = notifications(text);
        assert_eq!((found[0].id.as_str(), found[0].status), ("b1", None));
        assert_eq!(found, notifications(&escaped));
    }

    #[test]
    fn several_notifications_in_one_text_are_all_read() {
        let one = |id: &str| {
            format!(
                "<task-notification><task-id>{id}</task-id><status>killed</status><summary>s</summary></task-notification>"
            )
        };
        let found = notifications(&format!("{}\n{}", one("b1"), one("b2")));
        let ids: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.status)).collect();
        assert_eq!(ids, [("b1", Some(EndStatus::Stopped)), ("b2", Some(EndStatus::Stopped))]);
    }

    #[test]
    fn a_time_limit_is_told_from_a_stop() {
        let told = |summary: &str| {
            notification("b".into(), None, Some(EndStatus::Stopped), summary.into(), None).timed_out
        };
        assert!(told(r#"Background command "x" was stopped after reaching its background time limit"#));
        assert!(!told(r#"Background command "x" was stopped"#));
    }
}
