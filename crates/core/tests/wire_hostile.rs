//! Lines that no reader likes: each is read as far as it goes, and none stops the rest.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "helpers of tests may fail, and want one event"
)]

use bursar_core::agent::{AgentEvent, Owner, Reply, Subtype};
use bursar_core::wire::{claude, transcript};
use proptest::prelude::*;

const REAL: [&str; 4] = [
    include_str!("../../../fixtures/claude-2.1.332/d-shell-and-agent/stream.jsonl"),
    include_str!("../../../fixtures/claude-2.1.231/q-ask-allow/stream.jsonl"),
    include_str!("../../../fixtures/claude-2.1.332/d-two-then-api-error/transcript.jsonl"),
    include_str!("../../../fixtures/interactive-2.1.332/s8-sendmessage/transcript.jsonl"),
];

fn decode(line: impl AsRef<[u8]>) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    claude::decode(line.as_ref(), &mut Vec::new(), &mut events).unwrap();
    events
}

fn replied(line: impl AsRef<[u8]>) -> Reply {
    match decode(line.as_ref()).as_slice() {
        [AgentEvent::Replied(reply)] => reply.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_line_tells_nothing_and_an_unknown_one_is_other() {
    for line in ["", "  ", "\r", "\0\0\0", "\u{feff}"] {
        assert_eq!(decode(line), [], "{line:?}");
    }
    for line in ["{}", r#"{"type":"tomorrow"}"#, r#"{"type":7}"#, r#"{"type":"system","subtype":"new"}"#] {
        assert_eq!(decode(line), [AgentEvent::Other], "{line}");
    }
}

#[test]
fn what_is_no_whole_object_is_undecodable_and_tells_nothing() {
    for line in
        ["follow-up", "[1]", "7", "\"x\"", "{", "{\"type\":\"result\"", "{\"a\":}", "{\"a\" 1}", "{a:1}", "}"]
    {
        let mut events = vec![AgentEvent::Interrupted];
        assert!(claude::decode(line.as_bytes(), &mut Vec::new(), &mut events).is_err(), "{line}");
        assert!(transcript::decode(line.as_bytes(), &mut Vec::new(), &mut events).is_err(), "{line}");
        assert_eq!(events, [AgentEvent::Interrupted], "{line}");
    }
}

#[test]
fn a_type_that_comes_last_is_still_the_type() {
    let reply = replied(
        r#"{"is_error":false,"num_turns":2,"subtype":"success","result":"ok","uuid":"u","type":"result"}"#,
    );
    assert_eq!((reply.subtype, reply.turns, reply.text.as_deref()), (Subtype::Success, 2, Some("ok")));
}

#[test]
fn a_lone_surrogate_and_invalid_bytes_cost_one_character_and_not_the_line() {
    let lines = [
        (&b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"a\\ud800b\",\"num_turns\":1}"[..], "a\u{fffd}b"),
        (b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"a\xffb\",\"num_turns\":1}", "a\u{fffd}b"),
        (b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"a\0b\",\"num_turns\":1}", "a\0b"),
        (b"{\"junk\":\"\\udfff\xfe\",\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"ok\",\"num_turns\":1}", "ok"),
    ];
    for (line, text) in lines {
        let reply = replied(line);
        assert_eq!((reply.text.as_deref(), reply.turns), (Some(text), 1));
    }
}

#[test]
fn what_stands_around_the_object_does_not_matter() {
    let line = r#"{"type":"control_cancel_request","request_id":"r"}"#;
    for (before, after) in [("", "\r"), ("  \t", "  "), ("\u{feff}", ""), ("\0\0", "\0"), ("", " trailing")] {
        let expected = [AgentEvent::Withdrawn { request: "r".into() }];
        assert_eq!(decode(format!("{before}{line}{after}")), expected, "{before:?} {after:?}");
    }
}

#[test]
fn a_key_given_twice_counts_as_given_last() {
    let reply = replied(
        r#"{"type":"result","is_error":true,"subtype":"error_max_turns","subtype":"success","is_error":false}"#,
    );
    assert_eq!((reply.subtype, reply.is_error), (Subtype::Success, false));
}

#[test]
fn a_value_of_another_type_is_as_if_it_were_not_there() {
    let reply = replied(
        r#"{"type":"result","subtype":"success","is_error":"no","num_turns":"7","result":{"a":[1]},"errors":{"x":1},
            "origin":"task-notification","total_cost_usd":[],"session_id":null,"user_message_uuids":7,"api_error_status":1e9}"#,
    );
    assert_eq!((reply.turns, reply.text, reply.errors.len(), reply.woken), (0, None, 0, false));
    assert_eq!((reply.cost_usd, reply.session, reply.answers.len(), reply.api_status), (None, None, 0, None));
    for line in [
        r#"{"type":"assistant","message":"text","parent_tool_use_id":{}}"#,
        r#"{"type":"assistant","message":{"content":{"type":"text"}}}"#,
        r#"{"type":"assistant","message":{"content":[1,null,"x",{"type":"text","text":7},{"type":"tool_use","id":7}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":{}}]},"tool_use_result":[]}"#,
        r#"{"type":"system","subtype":"background_tasks_changed","tasks":{"task_id":"b"}}"#,
        r#"{"type":"system","subtype":"task_notification","task_id":["b"]}"#,
        r#"{"type":"control_request","request":"can_use_tool","request_id":"r"}"#,
    ] {
        assert_eq!(decode(line), [AgentEvent::Other], "{line}");
    }
}

#[test]
fn an_update_with_a_strange_patch_still_names_what_it_is_about() {
    let line = r#"{"type":"system","subtype":"task_updated","task_id":"b1","patch":{"status":"paused","end_time":"soon"}}"#;
    let expected = AgentEvent::Updated { id: "b1".into(), status: None, ended: None, detail: None };
    assert_eq!(decode(line), [expected]);
}

#[test]
fn deep_nesting_and_huge_numbers_do_not_matter() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let (objects, ends) = ("{\"a\":".repeat(100_000), "}".repeat(100_000));
    let line = format!(
        r#"{{"deep":{open}{close},"deeper":{objects}1{ends},"type":"result","subtype":"success","num_turns":1e999,
            "message":{{"content":[{{"input":{open}{close}}}]}},"tool_use_result":{{"x":{objects}1{ends}}},"is_error":false}}"#
    );
    assert_eq!(replied(&line).turns, u64::MAX);
    let input = format!("\"{}\"", objects.replace('"', "\\\""));
    assert!(!claude::classify("Bash", input.as_bytes(), &mut Vec::new()).flagged_launch);
}

#[test]
fn a_line_with_several_results_gives_the_launch_to_the_one_that_names_it() {
    let line = r#"{"type":"user","message":{"content":[
        {"type":"tool_result","tool_use_id":"t1","content":"hello"},
        {"type":"tool_result","tool_use_id":"t2","content":"Command running in background with ID: b1. Output is being written to: /t/tasks/b1.output"}
        ]},"tool_use_result":{"stdout":"","backgroundTaskId":"b1"}}"#;
    let launched: Vec<_> = decode(line)
        .into_iter()
        .map(|event| match event {
            AgentEvent::ToolReturned { id, launch, .. } => (id, launch.map(|launch| launch.id)),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(launched, [("t1".to_owned(), None), ("t2".to_owned(), Some("b1".to_owned()))]);
}

#[test]
fn an_error_launches_nothing_and_printed_words_launch_nothing() {
    let words = "Command running in background with ID: b1. Output is being written to: /t/tasks/b1.output";
    for (is_error, result) in
        [("true", r#"{"backgroundTaskId":"b1"}"#), ("false", r#"{"stdout":"x","stderr":""}"#)]
    {
        let line = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"{words}","is_error":{is_error}}}]}},"tool_use_result":{result}}}"#
        );
        let events = decode(&line);
        assert!(
            matches!(events.as_slice(), [AgentEvent::ToolReturned { launch: None, .. }]),
            "{line}: {events:?}"
        );
    }
}

#[test]
fn what_a_subagent_is_told_is_no_prompt_and_no_interrupt() {
    for text in ["go", "[Request interrupted by user]"] {
        let line = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":"toolu_1"}}"#
        );
        assert_eq!(decode(&line), [AgentEvent::Other], "{text}");
        let own = line.replace("\"toolu_1\"", "null");
        assert_ne!(decode(&own), [AgentEvent::Other], "{text}");
    }
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]},"parent_tool_use_id":"toolu_1"}"#;
    assert_eq!(
        decode(line),
        [AgentEvent::Text { owner: Owner::Subagent("toolu_1".into()), text: "hi".into() }]
    );
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut scratch, mut events) = (Vec::new(), Vec::new());
        for text in [&bytes[..], &[b"{\"type\":\"user\",", &bytes[..]].concat()] {
            for decode in [claude::decode, transcript::decode] {
                let before = events.len();
                prop_assert!(decode(text, &mut scratch, &mut events).is_ok() || events.len() == before);
            }
            prop_assert!(!claude::classify("Grep", text, &mut scratch).flagged_launch);
        }
    }

    #[test]
    fn a_real_line_cut_or_damaged_anywhere_never_panics(
        file in 0..REAL.len(), line in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let lines: Vec<_> = REAL[file].lines().filter(|line| !line.is_empty()).collect();
        let line = line.get(&lines).as_bytes();
        let at = at.index(line.len());
        let mut damaged = line.to_vec();
        damaged[at] = byte;
        let (mut scratch, mut events) = (Vec::new(), Vec::new());
        for decode in [claude::decode, transcript::decode] {
            prop_assert!(decode(line, &mut scratch, &mut events).is_ok());
            let before = events.len();
            prop_assert!(decode(&damaged, &mut scratch, &mut events).is_ok() || events.len() == before);
            let before = events.len();
            prop_assert!(at == 0 || decode(&line[..at], &mut scratch, &mut events).is_err());
            prop_assert_eq!(events.len(), before);
        }
    }
}
