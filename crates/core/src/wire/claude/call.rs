//! What a tool call means: whether it launches background work, collects it, or stops it.
//!
//! The reference rule (launches of `Bash`; harvests by `BashOutput`, `KillShell`, `Read`, `View`) is pinned by
//! `fixtures/vectors/ledger.jsonl`. The newer names of collecting tools (FACTS 2) are marked as such.

use crate::agent::Call;
use crate::wire::escape::unescape;
use crate::wire::json::Raw;

/// Longest summary, in characters.
const SUMMARY: usize = 200;

/// Returns what a call of `tool` means, whose input is written as `input`: an object, or a string that holds one.
///
/// `scratch` is room for a string's text; what it holds afterwards has no meaning.
#[must_use]
pub fn classify(tool: &str, input: &[u8], scratch: &mut Vec<u8>) -> Call {
    match Raw::parse(input) {
        Some(input) => classify_raw(tool, input, scratch),
        None => Call::default(),
    }
}

pub(in crate::wire) fn classify_raw(tool: &str, input: Raw<'_>, scratch: &mut Vec<u8>) -> Call {
    let Some(inside) = input.escaped() else { return of_object(tool, input) };
    scratch.clear();
    unescape(inside, scratch);
    match Raw::parse(scratch) {
        // Whether a text is JSON or only looks like it decides, so the strict reader is asked.
        Some(object) if serde_json::from_slice::<serde::de::IgnoredAny>(scratch).is_ok() => {
            of_object(tool, object)
        }
        Some(_) | None => Call {
            summary: one_line(&String::from_utf8_lossy(scratch)),
            flagged_launch: tool == "Bash" && mentions_background(scratch),
            ..Call::default()
        },
    }
}

fn of_object(tool: &str, input: Raw<'_>) -> Call {
    let id = |names: [&str; 2]| names.into_iter().find_map(|name| input.field(name)?.filled());
    let mut call = Call { summary: summary(tool, input), ..Call::default() };
    match tool {
        "Bash" => {
            call.flagged_launch = input.field("run_in_background").is_some_and(Raw::is_true);
            call.harvests = input.field("command").and_then(Raw::text).and_then(|command| named_in(&command));
            call.newer_harvest = call.harvests.is_some();
        }
        "BashOutput" => call.harvests = id(["bash_id", "shell_id"]),
        "KillShell" => {
            call.harvests = id(["bash_id", "shell_id"]);
            call.stops = call.harvests.clone();
        }
        "Read" | "View" => {
            call.harvests =
                id(["file_path", "path"]).and_then(|path| collected_by_path(&path).map(str::to_owned));
        }
        "TaskOutput" => {
            call.harvests = input.field("task_id").and_then(Raw::filled);
            call.newer_harvest = call.harvests.is_some();
        }
        "TaskStop" => {
            call.harvests = id(["task_id", "shell_id"]);
            call.newer_harvest = call.harvests.is_some();
            call.stops = call.harvests.clone();
        }
        _ => {}
    }
    call
}

/// Returns the background task whose output file a path names: it ends in `/tasks/<id>.output`.
fn collected_by_path(path: &str) -> Option<&str> {
    let (folder, id) = path.strip_suffix(".output")?.rsplit_once('/')?;
    (folder.ends_with("/tasks") && is_id(id)).then_some(id)
}

/// Returns the background task whose output file a shell command names first (FACTS 2: `cat` works).
fn named_in(command: &str) -> Option<String> {
    let mut rest = command;
    while let Some((_, after)) = rest.split_once("/tasks/") {
        let end = after.find(|letter: char| !is_id_letter(letter)).unwrap_or(after.len());
        let (id, suffix) = after.split_at(end);
        if let Some(behind) = suffix.strip_prefix(".output")
            && !id.is_empty()
            && !behind.starts_with(|letter: char| is_id_letter(letter) || letter == '.')
        {
            return Some(id.to_owned());
        }
        rest = after;
    }
    None
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_id_letter)
}

fn is_id_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Looks for `"run_in_background"\s*:\s*true` in a text that is no JSON.
fn mentions_background(text: &[u8]) -> bool {
    const NAME: &[u8] = b"\"run_in_background\"";
    memchr::memmem::find_iter(text, NAME).any(|at| {
        let after = text[at + NAME.len()..].trim_ascii_start();
        after.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"true"))
    })
}

/// One line for people, from the field that says most.
fn summary(tool: &str, input: Raw<'_>) -> String {
    const FIELDS: [&str; 14] = [
        "command",
        "file_path",
        "path",
        "notebook_path",
        "url",
        "query",
        "pattern",
        "description",
        "task_id",
        "shell_id",
        "bash_id",
        "message",
        "reason",
        "prompt",
    ];
    if tool == "AskUserQuestion" {
        let question =
            input.field("questions").and_then(|list| list.items().next()?.field("question")?.text());
        return one_line(&question.unwrap_or_default());
    }
    let mut best: Option<(usize, Raw<'_>)> = None;
    for (key, value) in input.fields() {
        if let Some(rank) = FIELDS.iter().position(|field| *key == *field.as_bytes())
            && best.is_none_or(|(other, _)| rank < other)
        {
            best = Some((rank, value));
        }
    }
    best.and_then(|(_, value)| value.text()).map(|text| one_line(&text)).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String =
        line.chars().take(SUMMARY).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, input: &str) -> Call {
        classify(tool, input.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn newer_tools_collect_and_stop_too() {
        for (tool, input, harvests, stops) in [
            ("TaskOutput", r#"{"task_id":"b1","block":true}"#, Some("b1"), None),
            ("TaskStop", r#"{"task_id":"b1"}"#, Some("b1"), Some("b1")),
            ("TaskStop", r#"{"shell_id":"b1"}"#, Some("b1"), Some("b1")),
            ("Bash", r#"{"command":"cat /tmp/c/-w/s/tasks/b1.output | tail -3"}"#, Some("b1"), None),
            ("Bash", r#"{"command":"cat '/tmp/a b/tasks/b1.output'"}"#, Some("b1"), None),
            ("Bash", r#"{"command":"ls /x/tasks/ && cat /x/tasks/b2.output"}"#, Some("b2"), None),
            ("Bash", r#"{"command":"cat /tmp/tasks/b1.output.bak"}"#, None, None),
            ("Bash", r#"{"command":"cat /tmp/tasks/.output"}"#, None, None),
            ("TaskStop", r#"{"task_id":7}"#, None, None),
        ] {
            let call = call(tool, input);
            assert_eq!(
                (call.harvests.as_deref(), call.stops.as_deref()),
                (harvests, stops),
                "{tool} {input}"
            );
            assert_eq!(call.newer_harvest, harvests.is_some(), "{tool} {input}");
        }
    }

    #[test]
    fn killing_a_shell_collects_it_by_the_reference_rule_and_stops_it() {
        let call = call("KillShell", r#"{"shell_id":"b1"}"#);
        assert_eq!(
            (call.harvests.as_deref(), call.stops.as_deref(), call.newer_harvest),
            (Some("b1"), Some("b1"), false)
        );
    }

    #[test]
    fn a_summary_is_one_short_line() {
        for (tool, input, expected) in [
            ("Bash", r#"{"description":"d","command":"make -j8"}"#, "make -j8"),
            ("Bash", r#"{"command":"one\ntwo"}"#, "one…"),
            ("Agent", r#"{"prompt":"long","description":"find the bug"}"#, "find the bug"),
            ("AskUserQuestion", r#"{"questions":[{"question":"Which colour?"}]}"#, "Which colour?"),
            ("Bash", r#"{"command":["not","text"]}"#, ""),
            ("Bash", "[]", ""),
        ] {
            assert_eq!(call(tool, input).summary, expected, "{input}");
        }
        assert_eq!(
            call("Bash", &format!(r#"{{"command":"{}"}}"#, "ä".repeat(500))).summary.chars().count(),
            SUMMARY + 1
        );
    }
}
