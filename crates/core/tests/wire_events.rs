//! What single captures are there for: one look at each kind of event.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail")]

use std::fs;
use std::path::Path;

use bursar_core::agent::{AgentEvent, MessageState, Owner, RateLimit, Wakeup};
use bursar_core::time::At;
use bursar_core::wire::{FileKind, claude, sniff, transcript};

fn events(file: &str) -> Vec<AgentEvent> {
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(file)).unwrap();
    let decode = if file.contains("transcript") { transcript::decode } else { claude::decode };
    let mut events = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        decode(line, &mut Vec::new(), &mut events).unwrap();
    }
    events
}

#[track_caller]
fn check(file: &str, wanted: impl Fn(&AgentEvent) -> bool, count: usize) {
    let events = events(file);
    let found = events.iter().filter(|event| wanted(event)).count();
    assert_eq!(found, count, "{file}: {events:#?}");
}

#[test]
fn a_wake_up_is_scheduled_with_its_time_and_told_when_it_comes() {
    let due = Some(At(1_796_072_820_000));
    check(
        "claude-2.1.332/m-wakeup-open/stream.jsonl",
        |event| matches!(event, AgentEvent::ToolReturned { launch: Some(launch), .. } if launch.due == due),
        1,
    );
    let came = Some(Wakeup { source: "loop_wakeup".into(), due });
    check(
        "claude-2.1.332/m-wakeup-open/stream.jsonl",
        |event| matches!(event, AgentEvent::Lifecycle { state: MessageState::Started, wakeup, .. } if *wakeup == came),
        1,
    );
    check(
        "claude-2.1.332/m-cron-open/transcript.jsonl",
        |event| matches!(event, AgentEvent::Prompted { message: Some(_), wakeup: true }),
        1,
    );
}

#[test]
fn a_usage_limit_names_its_window_and_its_reset_and_a_warning_refuses_nothing() {
    let limit = RateLimit { rejected: true, window: "five_hour".into(), resets: Some(At(1_796_090_000_000)) };
    let told = |event: &AgentEvent| matches!(event, AgentEvent::RateLimit(told) if *told == limit);
    check("claude-2.1.332/i-429-oauth/stream.jsonl", told, 1);
    check("claude-2.1.231/i-429-oauth/stream.jsonl", told, 1);
    let warned = |event: &AgentEvent| matches!(event, AgentEvent::RateLimit(told) if !told.rejected);
    check("claude-2.1.332/i-warn-oauth/stream.jsonl", warned, 1);
}

#[test]
fn an_error_of_the_service_is_told_with_its_class_and_its_retries() {
    for version in ["2.1.231", "2.1.332"] {
        let file = format!("claude-{version}/i-401/stream.jsonl");
        let class = "authentication_failed";
        check(&file, |event| matches!(event, AgentEvent::ApiError { class: told, .. } if told == class), 1);
        check(
            &file,
            |event| matches!(event, AgentEvent::Retrying { try_number: 1, of: 1, status: Some(401), class: told, .. } if told == class),
            1,
        );
        check(
            &file,
            |event| matches!(event, AgentEvent::Replied(reply) if reply.is_error && reply.api_status == Some(401)),
            1,
        );
        check(&file, |event| matches!(event, AgentEvent::Text { .. }), 0);
    }
}

#[test]
fn prompts_and_questions_are_asked_withdrawn_and_denied() {
    let question = |event: &AgentEvent| matches!(event, AgentEvent::Asked { is_question: true, tool, tool_call: Some(_), .. } if tool == "AskUserQuestion");
    check("claude-2.1.231/q-ask-allow/stream.jsonl", question, 1);
    check("claude-2.1.332/q-ask-allow/stream.jsonl", question, 1);
    let prompt = |event: &AgentEvent| matches!(event, AgentEvent::Asked { is_question: false, tool, .. } if tool == "Bash");
    check("claude-2.1.332/q-allow/stream.jsonl", prompt, 1);
    let unanswered = "claude-2.1.231/q-unanswered-interrupt/stream.jsonl";
    check(unanswered, prompt, 1);
    check(unanswered, |event| matches!(event, AgentEvent::Withdrawn { .. }), 1);
    check(unanswered, |event| matches!(event, AgentEvent::Interrupted), 1);
    check(
        unanswered,
        |event| matches!(event, AgentEvent::ControlAnswered { request, ok: true } if request == "int-1"),
        1,
    );
    check(
        "claude-2.1.332/q-default-noprompt/stream.jsonl",
        |event| matches!(event, AgentEvent::Denied { tool } if tool == "Bash"),
        1,
    );
}

#[test]
fn messages_are_followed_by_their_ids() {
    let (first, second) = ("11111111-2222-4333-8444-555555555555", "21111111-2222-4333-8444-555555555555");
    let answered = |ids: &'static [&'static str]| move |event: &AgentEvent| matches!(event, AgentEvent::Replied(reply) if reply.answers == ids);
    check(
        "claude-2.1.332/p-lifecycle-mid-turn/stream.jsonl",
        answered(&["11111111-2222-4333-8444-555555555555", "21111111-2222-4333-8444-555555555555"]),
        1,
    );
    check(
        "claude-2.1.231/p-lifecycle-mid-turn/stream.jsonl",
        answered(&["11111111-2222-4333-8444-555555555555"]),
        1,
    );
    for message in [first, second] {
        for state in [MessageState::Queued, MessageState::Started, MessageState::Completed] {
            check(
                "claude-2.1.332/p-lifecycle-queue/stream.jsonl",
                |event| matches!(event, AgentEvent::Lifecycle { message: told, state: now, wakeup: None } if told == message && *now == state),
                1,
            );
        }
    }
    check(
        "claude-2.1.332/p-replay-bg/stream.jsonl",
        |event| matches!(event, AgentEvent::Prompted { message: Some(message), wakeup: false } if message == first),
        1,
    );
}

#[test]
fn a_time_limit_of_the_agent_is_told_from_a_stop() {
    let timed_out = |event: &AgentEvent| matches!(event, AgentEvent::Notified(told) if told.timed_out);
    check("claude-2.1.332/p-bg-timeout-open/stream.jsonl", timed_out, 1);
    check("claude-2.1.332/k-taskstop/stream.jsonl", timed_out, 0);
}

#[test]
fn a_stop_call_names_what_it_stops() {
    for (file, id) in [
        ("claude-2.1.332/k-taskstop/stream.jsonl", "ba2l48jom"),
        ("claude-2.1.231/k-taskstop/stream.jsonl", "b1xugdb1l"),
        ("claude-2.1.231/k-killshell/stream.jsonl", "bwm512ekv"),
    ] {
        let stops = |event: &AgentEvent| matches!(event, AgentEvent::ToolCalled { call, .. } if call.stops.as_deref() == Some(id));
        check(file, stops, if file.contains("killshell") { 2 } else { 1 });
    }
}

#[test]
fn the_live_set_comes_and_goes_and_foreground_work_is_never_in_it() {
    let sets = |event: &AgentEvent| matches!(event, AgentEvent::LiveSet(_));
    check("claude-2.1.332/d-walkaway/stream.jsonl", sets, 2);
    check("claude-2.1.332/j-agent-sync/stream.jsonl", sets, 0);
    check("drift/2.1.111-wakes-itself-without-origin.jsonl", sets, 0);
}

#[test]
fn a_subagents_calls_are_the_subagents() {
    check(
        "claude-2.1.332/d-shell-and-agent/stream.jsonl",
        |event| matches!(event, AgentEvent::ToolCalled { owner: Owner::Subagent(call), .. } if call.starts_with("toolu_")),
        1,
    );
}

#[test]
fn files_are_told_apart_by_their_first_lines() {
    for (lines, kind) in [
        (r#"{"type":"mode","mode":"normal","sessionId":"s"}"#, Some(FileKind::Transcript)),
        ("{\"type\":\"file-history-snapshot\",\"isSnapshotUpdate\":false}", Some(FileKind::Transcript)),
        ("{\"type\":\"x\",\"session_id\":\"s\",\"sessionId\":\"s\"}", Some(FileKind::Transcript)),
        ("\n{\"type\":\"control_response\",\"response\":{}}\n{\"type\":\"sys", Some(FileKind::Stream)),
        ("{\"session_id\":\"s\",\"type\":\"result\",\"cut", Some(FileKind::Stream)),
        ("follow-up\n", None),
        ("{\"type\":\"started\",\"key\":\"v2\"}\n", None),
        ("", None),
    ] {
        assert_eq!(sniff(lines.as_bytes()), kind, "{lines}");
    }
}
