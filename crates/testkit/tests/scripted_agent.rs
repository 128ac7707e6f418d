//! The scripted agent behaves as the real one does where the product looks: its stream, its messages, its processes.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as a test does")]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use bursar_testkit::scripted::{Action, AtEof, Chunk, LogEvent, lines};
use bursar_testkit::{AgentScript, AttemptScript, DirectAgent, Reply, ScriptedAgent, Shell};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(20);
const ID: &str = "6f1c1c0e-0000-4000-8000-000000000001";

fn agent(attempt: AttemptScript) -> ScriptedAgent {
    ScriptedAgent::new(&AgentScript::new(attempt)).unwrap()
}

fn start_with(agent: &ScriptedAgent, args: &[&str]) -> DirectAgent {
    let mut command = Command::new(agent.path());
    command
        .args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"])
        .args(args)
        .env("CLAUDE_CODE_TMPDIR", agent.folder())
        .current_dir(agent.folder());
    DirectAgent::start(command).unwrap()
}

fn start(agent: &ScriptedAgent) -> DirectAgent {
    start_with(agent, &[])
}

/// Names the events of a stream in order: type, subtype or state, and status.
fn outline(agent: &DirectAgent) -> Vec<String> {
    let name = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        let parts =
            [&event["type"], &event["subtype"], &event["state"], &event["patch"]["status"], &event["status"]];
        parts.into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    };
    agent.lines().iter().map(name).collect()
}

#[test]
fn a_message_is_followed_from_queued_to_completed() {
    let scripted = agent(AttemptScript::new().reply(Reply::new().text("hello").success()));
    let mut process = start_with(&scripted, &["--session-id", "s-1", "--model", "m-1"]);
    process.send("say \"hello\"\n🦀", Some(ID)).unwrap();
    process.wait_for("result", 1, BOUND).unwrap();
    process.send("again", Some(ID)).unwrap();
    process.close_input();

    assert_eq!(process.wait_for_exit(BOUND).unwrap().code(), Some(0));

    assert_eq!(
        outline(&process),
        [
            "command_lifecycle queued",
            "command_lifecycle started",
            "system init",
            "assistant",
            "result success",
            "command_lifecycle completed"
        ]
    );
    let result = &process.events("result")[0];
    assert_eq!((&result["session_id"], &result["result"]), (&"s-1".into(), &"hello".into()));
    assert_eq!((&result["user_message_uuid"], &result["num_turns"]), (&ID.into(), &1.into()));
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(scripted.messages().unwrap(), ["say \"hello\"\n🦀", "again"]);
}

#[test]
fn the_end_of_a_background_shell_wakes_the_agent() {
    let shell = Shell::new("b1", "until test -e go; do sleep 0.01; done; echo built; exit 3");
    let scripted = agent(
        AttemptScript::new()
            .reply(Reply::new().text("launching").launch(shell).text("left it running").success()),
    );
    let mut process = start(&scripted);
    process.send("build", None).unwrap();
    process.wait_for("result", 1, BOUND).unwrap();
    scripted.release("go").unwrap();
    process.wait_for("result", 2, BOUND).unwrap();
    process.close_input();
    process.wait_for_exit(BOUND).unwrap();

    assert_eq!(
        outline(&process),
        [
            "system init",
            "assistant",
            "assistant",
            "system background_tasks_changed",
            "system task_started",
            "user",
            "assistant",
            "result success",
            "system task_updated failed",
            "system task_notification failed",
            "system background_tasks_changed",
            "system init",
            "assistant",
            "result success"
        ]
    );
    let events = process.events("system");
    let sets: Vec<usize> = events.iter().filter_map(|event| Some(event["tasks"].as_array()?.len())).collect();
    assert_eq!(sets, [1, 0]);
    let notification = events.iter().find(|event| event["subtype"] == "task_notification").unwrap();
    let output = std::fs::read_to_string(notification["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(output, "built\n\n[exited with code 3]\n");
    let woken = &process.events("result")[1];
    assert_eq!(woken["origin"]["kind"], "task-notification");
    assert!(woken.get("user_message_uuid").is_none());
}

#[test]
fn a_shell_awaited_within_a_reply_wakes_nobody() {
    let reply =
        Reply::new().launch(Shell::new("b1", "true")).await_shell("b1").harvest("b1").text("done").success();
    let scripted = agent(AttemptScript::new().reply(reply));
    let mut process = start(&scripted);
    process.send("go", None).unwrap();
    process.close_input();
    process.wait_for_exit(BOUND).unwrap();

    let results = process.events("result");
    assert_eq!((results.len(), &results[0]["num_turns"]), (1, &3.into()));
}

#[test]
fn shells_left_at_the_end_of_input_are_stopped_where_the_version_does_so() {
    let launch = Reply::new().launch(Shell::new("b1", "trap '' TERM; while :; do sleep 1; done")).success();
    let scripted = agent(AttemptScript::new().reply(launch).at_eof(AtEof::Stop(10)));
    let mut process = start(&scripted);
    process.send("go", None).unwrap();
    process.close_input();
    process.wait_for_exit(BOUND).unwrap();

    let outline = outline(&process);
    assert!(outline.contains(&"system task_notification stopped".to_owned()), "{outline:#?}");
}

#[test]
fn an_interrupt_ends_the_reply_and_not_the_process() {
    let attempt = AttemptScript::new()
        .reply(Reply::new().touch("begun").await_file("never").success())
        .reply(Reply::new().text("second").success());
    let scripted = agent(attempt);
    let mut process = start(&scripted);
    process.send("first", Some(ID)).unwrap();
    process.wait_for("system", 1, BOUND).unwrap();
    process.control("r-1", "interrupt").unwrap();
    let results = process.wait_for("result", 1, BOUND).unwrap();
    assert_eq!(results[0]["terminal_reason"], "aborted_tools");
    process.send("second", None).unwrap();
    process.wait_for("result", 2, BOUND).unwrap();
    process.control("r-2", "end_session").unwrap();

    assert_eq!(process.wait_for_exit(BOUND).unwrap().code(), Some(0));
    let answered = process.events("control_response");
    assert_eq!(
        answered.iter().map(|answer| &answer["response"]["request_id"]).collect::<Vec<_>>(),
        ["r-1", "r-2"]
    );
}

#[test]
fn each_start_plays_its_own_attempt() {
    let script = AgentScript::new(AttemptScript::new().reply([Action::Exit { code: 7 }]))
        .then(AttemptScript::unknown_session())
        .then(AttemptScript::new().reply(Reply::new().max_turns(5)));
    let scripted = ScriptedAgent::new(&script).unwrap();
    let mut codes = Vec::new();
    for _ in 0..4 {
        let mut process = start_with(&scripted, &["--resume", "s-1"]);
        // The second attempt ends without reading.
        process.send("go", None).ok();
        process.close_input();
        codes.push(process.wait_for_exit(BOUND).unwrap().code());
    }
    assert_eq!(codes, [Some(7), Some(1), Some(1), Some(1)]);
    assert_eq!(scripted.starts().unwrap(), 4);
    let log = scripted.log().unwrap();
    assert!(matches!(&log[0].event, LogEvent::Started { args, .. } if args.ends_with(&["s-1".to_owned()])));
}

#[test]
fn it_dies_of_the_signal_it_sends_itself() {
    let scripted = agent(AttemptScript::new().reply([Action::Signal { signal: 9 }, Action::Park]));
    let mut process = start(&scripted);
    process.send("go", None).unwrap();
    assert_eq!(process.wait_for_exit(BOUND).unwrap().signal(), Some(9));
}

#[test]
fn bytes_go_out_as_they_are() {
    let write = |chunk| Action::Write { chunks: vec![chunk] };
    let scripted = agent(AttemptScript::new().reply([
        write(Chunk::Bytes(vec![0xff, b'\n'])),
        write(Chunk::Repeat { text: "ab".to_owned(), count: 1_000_000 }),
        write(Chunk::Text("\nno newline".to_owned())),
    ]));
    let mut process = start(&scripted);
    process.send("go", None).unwrap();
    process.close_input();
    process.wait_for_exit(BOUND).unwrap();

    let lines = process.lines();
    assert_eq!(
        lines.iter().map(String::len).collect::<Vec<_>>(),
        ["\u{fffd}".len(), 2_000_000, "no newline".len()]
    );
}

#[test]
fn a_plain_prompt_is_read_to_the_end_of_input() {
    let scripted =
        agent(AttemptScript::new().reply(Reply::new().text("done").emit(lines::live_set()).success()));
    let mut command = Command::new(scripted.path());
    command.args(["-p", "--output-format", "stream-json", "--verbose"]);
    let mut process = DirectAgent::start(command).unwrap();
    process.write(b"two\nlines\n").unwrap();
    process.close_input();

    assert!(process.wait_for_exit(BOUND).unwrap().success());
    assert_eq!(scripted.messages().unwrap(), ["two\nlines"]);
}

#[test]
fn it_starts_fast_enough_for_hundreds_of_cases() {
    let scripted = agent(AttemptScript::new());
    let times = (0..20).map(|_| {
        let began = Instant::now();
        let output = Command::new(scripted.path()).arg("--version").output().unwrap();
        assert_eq!(output.stdout, b"2.1.332 (Claude Code)\n");
        began.elapsed()
    });
    // The fastest of many: a busy machine delays some, a slow program delays all.
    let fastest = times.min().unwrap();
    println!("fastest start: {fastest:?}");
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
}

#[test]
fn a_background_agent_can_be_told_by_events_alone() {
    let mut reply = Reply::new().launch_agent("a1").text("waiting").success();
    reply.extend(Reply::continued().agent_ended("a1").without_result());
    reply.extend(Reply::woken("a1").text("done").success());
    let scripted = agent(AttemptScript::new().reply(reply));
    let mut process = start(&scripted);
    process.send("delegate", None).unwrap();
    process.close_input();
    process.wait_for_exit(BOUND).unwrap();

    assert_eq!(process.events("user")[0]["tool_use_result"]["status"], "async_launched");
    let system = process.events("system");
    assert!(
        system.iter().any(|event| event["task_type"] == "local_agent" && event["subtype"] == "task_started")
    );
    assert_eq!(process.events("result")[1]["origin"]["kind"], "task-notification");
}
