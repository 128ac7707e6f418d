//! Output that is no clean stream: folded, or counted as skipped and said; memory stays flat.

use bursar_testkit::scripted::{Action, Chunk, lines};
use bursar_testkit::{AgentScript, AttemptScript, Reply};
use serde_json::json;

use crate::rig::{Rig, Running};

fn text(text: &str) -> Chunk {
    Chunk::Text(text.to_owned())
}

fn write(chunks: impl Into<Vec<Chunk>>) -> Action {
    Action::Write { chunks: chunks.into() }
}

/// Wraps some bytes into an event that says something, with a few letters around them.
fn speech(bytes: impl Into<Vec<Chunk>>) -> Action {
    let around = json!({"type": "assistant", "parent_tool_use_id": null,
        "message": {"role": "assistant", "content": [{"type": "text", "text": "<>"}]}});
    let around = around.to_string();
    let (before, after) = around.split_once("<>").unwrap();
    let mut chunks = vec![text(before)];
    chunks.extend(bytes.into());
    chunks.push(text(after));
    chunks.push(text("\n"));
    write(chunks)
}

/// One attempt after which nothing more comes: the end of the run is decided by it alone.
fn once(actions: impl Into<Vec<Action>>) -> Rig {
    let attempt = AttemptScript::new().reply(actions);
    Rig::of(&AgentScript::new(attempt).then(AttemptScript::new().starting([Action::Exit { code: 3 }])))
}

/// What a tool printed, which nobody is told.
fn printed(bytes: Chunk) -> Action {
    let around = json!({"type": "user", "parent_tool_use_id": null,
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "<>"}]}});
    let around = around.to_string();
    let (before, after) = around.split_once("<>").unwrap();
    write([text(before), bytes, text(after), text("\n")])
}

const LONG: u64 = 100_000_000;

/// Runs an agent that prints a line of 100 MB, and returns the most memory bursar used for it, in KiB.
fn peak_of(what: &str, line: Action) -> u64 {
    let rig = Rig::new(AttemptScript::new().reply(Reply::new().then(line).text("after it").success()));
    let mut command = rig.bursar(&["run", "--output", "json", "--agent-path"]);
    let (ran, peak) = Running::start(command.arg(rig.agent.path()).arg("talk")).ended_measured();
    println!("{what} of 100 MB in a line: {} MiB at most, {:?}", peak >> 10, ran.took);
    let finished = ran.finished("done", 0);
    assert_eq!((&finished["skipped_lines"], &finished["text"]), (&json!(0), &json!("after it")));
    rig.assert_mirrored(&rig.only_run(), 1);
    peak
}

#[test]
fn a_line_of_100_mb_is_read_and_costs_its_size_once() {
    let long = || Chunk::Repeat { text: "0123456789".to_owned(), count: LONG / 10 };
    let peak = peak_of("a tool's output", printed(long()));
    assert!(peak < (LONG >> 10) + (64 << 10), "{} MiB", peak >> 10);
    // Words are told to whoever watches, so they are there as the line, as text, and on their way.
    let peak = peak_of("words", speech([long()]));
    assert!(peak < 3 * (LONG >> 10) + (64 << 10), "{} MiB", peak >> 10);
}

#[test]
fn half_a_gigabyte_of_output_leaves_memory_flat() {
    let long = Chunk::Repeat { text: "0123456789".to_owned(), count: 100_000 };
    let mut reply = Reply::new().text("before it");
    for _ in 0..500 {
        reply = reply.then(printed(long.clone()));
    }
    let rig = Rig::new(AttemptScript::new().reply(reply.text("after it").success()));
    let mut command = rig.bursar(&["run", "--output", "json", "--agent-path"]);
    let (ran, peak) = Running::start(command.arg(rig.agent.path()).arg("talk")).ended_measured();
    println!("500 MB in 500 lines: {} MiB at most, {:?}", peak >> 10, ran.took);
    ran.finished("done", 0);
    assert!(peak < 64 << 10, "{} MiB", peak >> 10);
}

#[test]
fn odd_lines_are_read_or_counted_and_the_rest_goes_on() {
    let unknown = json!({"type": "tomorrow", "subtype": "unheard_of", "deep": [{"er": null}]});
    let reply = Reply::new()
        .text("begins")
        // An escaped lone surrogate, which no Rust string can hold.
        .then(speech([text("half \\ud83d a pair")]))
        // Invalid UTF-8 within a string.
        .then(speech([text("broken "), Chunk::Bytes(vec![0xff, 0xfe, 0xc3]), text(" bytes")]))
        .emit(unknown)
        .then(write([
            text("npm WARN this is no JSON\n"),
            text("{\"type\": \"assistant\", \"mess\n"),
            text("\n\n"),
        ]))
        .then(write([Chunk::Bytes(vec![0x00, 0x80, 0x1b, b'[', b'2', b'J', b'\n'])]))
        .text("ends")
        .success();
    let rig = Rig::new(AttemptScript::new().reply(reply));
    let ran = rig.run(&[], "talk");
    let finished = ran.finished("done", 0);
    let texts: Vec<String> = ran
        .events("text")
        .iter()
        .map(|record| record["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!((texts.len(), texts[0].as_str(), texts[3].as_str()), (4, "begins", "ends"), "{texts:#?}");
    assert!(texts[1].starts_with("half ") && texts[1].ends_with(" a pair"), "{texts:#?}");
    assert!(texts[2].starts_with("broken ") && texts[2].ends_with(" bytes"), "{texts:#?}");
    // The warning, the cut event and the control characters; empty lines are nothing, an unknown event is read.
    assert_eq!(finished["skipped_lines"], 3, "{ran}");

    let run = rig.only_run();
    let shown = rig.call(&["show", &run]);
    assert!(shown.text().contains("3 lines"), "it says what was skipped: {shown}");
    let read = rig.call(&["attach", &run]);
    assert!(
        format!("{}{}", read.text(), read.stderr).contains("3 lines"),
        "it says what was skipped: {read}"
    );
    // What the agent printed is not obeyed by the terminal of whoever reads about it.
    assert!(!read.stdout.contains(&0x1b) && !read.stderr.contains('\u{1b}'), "{read}");
}

#[test]
fn a_last_line_without_a_newline_counts() {
    let result = lines::success("it is done", 1).to_string();
    let rig = once(
        Reply::new()
            .text("it is done")
            .then(write([text(&filled(&result))]))
            .then(Action::Exit { code: 0 })
            .without_result(),
    );
    let ran = rig.run(&[], "talk");
    ran.finished("done", 0);
    rig.assert_mirrored(&rig.only_run(), 1);
}

/// Puts values into the places that only an emitted event has filled.
fn filled(line: &str) -> String {
    let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
    for name in ["user_message_uuid", "user_message_uuids"] {
        line.as_object_mut().unwrap().remove(name);
    }
    line["total_cost_usd"] = json!(0.5);
    line["session_id"] = json!("6f1c1c0e-0000-4000-8000-000000000001");
    line["uuid"] = json!("6f1c1c0e-0000-4000-8000-000000000002");
    line["result_index"] = json!(1);
    line.to_string()
}

#[test]
fn without_a_result_nothing_is_success() {
    let half = lines::success("it is done", 1).to_string();
    let half = &half[..half.len() - 20];
    let cases = [
        ("nothing at all", vec![Action::Exit { code: 0 }]),
        ("only noise", vec![write([text("Killed\n")]), Action::Exit { code: 0 }]),
        ("text alone", Reply::new().text("all done").then(Action::Exit { code: 0 }).without_result()),
        (
            "half a result",
            Reply::new()
                .text("all done")
                .then(write([text(half)]))
                .then(Action::Exit { code: 0 })
                .without_result(),
        ),
        (
            "a closed stdout",
            Reply::new()
                .text("all done")
                .then(Action::CloseStdout)
                .then(Action::Exit { code: 0 })
                .without_result(),
        ),
    ];
    for (what, actions) in cases {
        let rig = Rig::new(AttemptScript::new().otherwise(actions));
        let ran = rig.run(&[], "talk");
        let finished = ran.events("run_finished").remove(0);
        let outcome = finished["outcome"].as_str().unwrap_or_default();
        assert!(["failed", "exhausted"].contains(&outcome), "{what}: {ran}");
        assert_eq!(finished["exit_code"], ran.code, "{what}");
        assert!(ran.code == 1 || ran.code == 4, "{what}: {ran}");
        assert!(rig.agent.starts().unwrap() <= 4, "{what}: no endless loop");
    }
}
