//! Decodes every capture in `fixtures/` and compares what it tells with the counts beside the captures.
//!
//! `streams.tsv` and `transcripts.tsv` were counted by another reader in another language, from the same files.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "helpers of tests may fail, and want one event"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bursar_core::agent::{AgentEvent, Launch, Owner, Reply};
use bursar_core::background::Kind;
use bursar_core::wire::{FileKind, Line, LineCutter, claude, sniff, transcript};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Decodes a file, and panics on a line that cannot be decoded.
fn events(path: &Path) -> Vec<AgentEvent> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let decode = match sniff(&bytes) {
        Some(FileKind::Stream) => claude::decode,
        Some(FileKind::Transcript) => transcript::decode,
        None => panic!("{}: neither a stream nor a transcript", path.display()),
    };
    let (mut events, mut scratch, mut cutter) = (Vec::new(), Vec::new(), LineCutter::new(1 << 20));
    let mut each = |line: Line<'_>| match line {
        Line::Whole(line) => {
            let before = events.len();
            let decoded = decode(line, &mut scratch, &mut events);
            assert_eq!(decoded, Ok(()), "{}: {}", path.display(), String::from_utf8_lossy(line));
            assert!(line.is_empty() || events.len() > before, "{}: a line told nothing", path.display());
        }
        Line::TooLong { bytes } => panic!("{}: a line of {bytes} bytes", path.display()),
    };
    cutter.push(&bytes, &mut each);
    cutter.finish(&mut each);
    events
}

/// Checks each row of a table against what `told` makes of the file it names first.
#[track_caller]
fn check(table: &str, file: impl Fn(&str) -> PathBuf, told: impl Fn(&[AgentEvent]) -> Vec<String>) {
    let rows = fs::read_to_string(fixtures().join(table)).unwrap();
    let mut wrong = String::new();
    let mut count = 0;
    for row in rows.lines().filter(|row| !row.starts_with('#')) {
        let (name, expected) = row.split_once('\t').unwrap();
        let found = told(&events(&file(name))).join("\t");
        if found != expected {
            writeln!(wrong, "{name}\n  expected {expected}\n  found    {found}").unwrap();
        }
        count += 1;
    }
    assert!(count > 40 && wrong.is_empty(), "{count} rows of {table}\n{wrong}");
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    let mut seen = Vec::new();
    items.retain(|item| {
        !item.is_empty() && (item.contains(':') || !seen.contains(item)) && {
            seen.push(item.clone());
            true
        }
    });
    if items.is_empty() { "-".to_owned() } else { items.join(",") }
}

fn launches(events: &[AgentEvent]) -> String {
    let name = |launch: &Launch| {
        let kind = match launch.kind {
            _ if launch.again => "again",
            Kind::Shell => "shell",
            Kind::Agent => "agent",
            Kind::Workflow => "workflow",
            Kind::Monitor => "monitor",
            Kind::Wakeup => "wakeup",
        };
        format!("{kind}:{}", launch.id)
    };
    list(events.iter().filter_map(|event| match event {
        AgentEvent::ToolReturned { launch: Some(launch), .. } => Some(name(launch)),
        _ => None,
    }))
}

fn ends(events: &[AgentEvent]) -> String {
    list(events.iter().filter_map(|event| match event {
        AgentEvent::Updated { id, status: Some(_), .. } => Some(id.clone()),
        AgentEvent::Notified(notified) if notified.status.is_some() => Some(notified.id.clone()),
        _ => None,
    }))
}

fn count(events: &[AgentEvent], wanted: impl Fn(&AgentEvent) -> bool) -> String {
    events.iter().filter(|event| wanted(event)).count().to_string()
}

fn reply(reply: &Reply) -> String {
    let woken = if reply.woken { "woken-" } else { "" };
    if reply.is_empty() {
        return format!("{woken}empty");
    }
    let error = if reply.is_error { "!" } else { "" };
    format!("{woken}{}{error}:{}", reply.subtype.as_str(), reply.turns)
}

#[test]
fn every_stream_tells_its_launches_ends_and_replies() {
    let file = |name: &str| {
        let path = fixtures().join(name);
        if path.is_dir() { path.join("stream.jsonl") } else { path }
    };
    check("streams.tsv", file, |events| {
        let exits = events.iter().filter_map(|event| match event {
            AgentEvent::Notified(notified) => notified.exit.map(|exit| exit.to_string()),
            _ => None,
        });
        let exits: Vec<_> = exits.collect();
        let replies = events.iter().filter_map(|event| match event {
            AgentEvent::Replied(told) => Some(reply(told)),
            _ => None,
        });
        let replies: Vec<_> = replies.collect();
        let or_dash = |items: Vec<String>| if items.is_empty() { "-".to_owned() } else { items.join(",") };
        vec![
            count(events, |event| matches!(event, AgentEvent::Began(_))),
            launches(events),
            ends(events),
            or_dash(exits),
            or_dash(replies),
            count(events, |event| matches!(event, AgentEvent::Asked { .. })),
            count(events, |event| matches!(event, AgentEvent::ApiError { .. })),
        ]
    });
}

#[test]
fn every_transcript_tells_its_launches_ends_and_prompts() {
    check(
        "transcripts.tsv",
        |name| fixtures().join(name),
        |events| {
            vec![
                launches(events),
                ends(events),
                count(
                    events,
                    |event| matches!(event, AgentEvent::Notified(notified) if notified.status.is_none()),
                ),
                count(events, |event| matches!(event, AgentEvent::Prompted { wakeup: false, .. })),
                count(events, |event| matches!(event, AgentEvent::Prompted { wakeup: true, .. })),
                count(events, |event| matches!(event, AgentEvent::Interrupted)),
                count(events, |event| matches!(event, AgentEvent::ApiError { .. })),
            ]
        },
    );
}

#[test]
fn every_shell_and_agent_that_was_launched_has_its_output_path() {
    for row in fs::read_to_string(fixtures().join("streams.tsv")).unwrap().lines().skip(1) {
        let name = row.split('\t').next().unwrap();
        let path = fixtures().join(name);
        let path = if path.is_dir() { path.join("stream.jsonl") } else { path };
        for event in events(&path) {
            if let AgentEvent::ToolReturned { launch: Some(launch), .. } = event
                && matches!(launch.kind, Kind::Shell | Kind::Agent)
                && !launch.again
            {
                let output = launch.output.unwrap_or_else(|| panic!("{name}: no output path"));
                assert!(output.ends_with(&format!("/tasks/{}.output", launch.id)), "{name}: {output}");
            }
        }
    }
}

#[test]
fn a_subagents_file_is_all_the_subagents() {
    let mut files = 0;
    for capture in ["claude-2.1.332/d-shell-and-agent", "interactive-2.1.332/s5-question-agent"] {
        for file in fs::read_dir(fixtures().join(capture).join("subagents")).unwrap() {
            for event in events(&file.unwrap().path()) {
                match event {
                    AgentEvent::Text { owner, .. }
                    | AgentEvent::ToolCalled { owner, .. }
                    | AgentEvent::ToolReturned { owner, .. } => assert!(matches!(owner, Owner::Subagent(_))),
                    AgentEvent::Other => {}
                    other => panic!("{capture}: {other:?}"),
                }
            }
            files += 1;
        }
    }
    assert!(files >= 2);
}

#[test]
fn a_headless_transcript_tells_where_a_turn_ended() {
    for (capture, expected) in [
        ("claude-2.1.231/a-text", vec!["success:0"]),
        ("claude-2.1.332/d-walkaway", vec!["success:0", "success:0"]),
        ("claude-2.1.231/h-maxturns-3", vec!["error_max_turns!:4"]),
        ("claude-2.1.332/d-two-then-api-error", vec!["success!:0", "success!:0"]),
        ("interactive-2.1.332/s1-agent-async", vec!["success:0", "success:0"]),
    ] {
        let events = events(&fixtures().join(capture).join("transcript.jsonl"));
        let replies: Vec<_> = events
            .iter()
            .filter_map(|event| if let AgentEvent::Replied(told) = event { Some(reply(told)) } else { None })
            .collect();
        assert_eq!(replies, expected, "{capture}");
    }
}

#[test]
fn a_transcript_names_its_session_and_version_with_each_prompt() {
    let events = events(&fixtures().join("interactive-2.1.332/s1-agent-async/transcript.jsonl"));
    let began: Vec<_> = events
        .iter()
        .filter_map(|event| if let AgentEvent::Began(began) = event { Some(began) } else { None })
        .collect();
    assert_eq!(began.len(), 2);
    for began in began {
        assert_eq!(began.version.as_deref(), Some("2.1.332"));
        assert!(began.session.as_ref().is_some_and(|session| session.len() == 36));
    }
}
