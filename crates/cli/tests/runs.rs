//! Whole runs against the scripted agent: outcomes, forms of output, signals, readers that go away.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Stdio;

use bursar_testkit::scripted::{Action, LogEvent};
use bursar_testkit::{AgentScript, AttemptScript, Reply, ScriptedAgent, Shell};
use serde_json::Value;
use support::{Home, json_lines, signal, wait_for_exit, wait_for_line, wait_until};

const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";

fn agent(attempt: AttemptScript) -> (ScriptedAgent, String) {
    let agent = ScriptedAgent::new(&AgentScript::new(attempt)).unwrap();
    let path = agent.path().into_os_string().into_string().unwrap();
    (agent, path)
}

fn answer(text: &str) -> AttemptScript {
    AttemptScript::new().reply(Reply::new().text(text).success())
}

/// Says something, then works until the test makes the file `go`.
fn patient() -> AttemptScript {
    AttemptScript::new()
        .reply(Reply::new().text("working on it").touch("begun").await_file("go").text("all done").success())
}

#[test]
fn the_agents_words_are_stdout_and_the_rest_is_stderr() {
    let home = Home::new();
    let (scripted, path) = agent(answer("The answer is 42."));
    let printed = home.run(&["run", "what is it?", "--agent-path", &path]);
    assert_eq!((printed.code, printed.stdout.as_str()), (0, "The answer is 42.\n"), "{}", printed.stderr);
    assert!(printed.stderr.contains("\ndone: "), "{}", printed.stderr);
    assert!(printed.stderr.contains("turns 1 of 50, 1 in all · continues 0/3 · nudges 0/1 · debt 0"));
    let messages = scripted.messages().unwrap();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("what is it?"));
}

#[test]
fn a_prompt_from_stdin_arrives_byte_for_byte() {
    let home = Home::new();
    let (scripted, path) = agent(answer("ok"));
    let prompt = "it's $HOME `id` \"x\" ; rm -rf ~ !!\n\nline three 🦀\u{202e}\\n";
    let printed = home.run_with_stdin(&["run", "-", "--agent-path", &path], prompt.as_bytes());
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    assert_eq!(scripted.messages().unwrap(), [prompt]);
}

#[test]
fn ndjson_holds_every_event_and_fits_the_schema() {
    let home = Home::new();
    let shell = Shell::new("b1", "exit 3");
    let reply = Reply::new().text(EVIL).shell("ls", "").launch(shell).success();
    let (_scripted, path) = agent(AttemptScript::new().reply(reply));
    let printed = home.run(&["run", "x", "--output", "ndjson", "--agent-path", &path]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""), "{}", printed.stdout);
    assert!(!printed.stdout.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']));

    let records = json_lines(&printed.stdout);
    let schema: Value = serde_json::from_str(&home.run(&["schema"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], at + 1);
        let errors: Vec<String> = validator.iter_errors(record).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{record}: {errors:?}");
    }
    let events: Vec<&str> = records.iter().map(|record| record["event"].as_str().unwrap()).collect();
    assert_eq!((events[0], events[events.len() - 1]), ("run_started", "run_finished"));
    for event in [
        "attempt_started",
        "reply_started",
        "text",
        "tool",
        "background",
        "phase",
        "decision",
        "attempt_ended",
    ] {
        assert!(events.contains(&event), "{event} is missing in {events:?}");
    }
    let text = records.iter().find(|record| record["event"] == "text").unwrap();
    assert_eq!(text["text"], EVIL, "what is escaped is still exact");
    assert_eq!(home.records(&home.youngest_run()), records, "the log tells the same again");
}

#[test]
fn the_schema_refuses_what_is_no_record() {
    let home = Home::new();
    let schema: Value = serde_json::from_str(&home.run(&["schema"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let phase =
        r#"{"v":1,"seq":1,"at":"2026-01-01T00:00:00.000Z","run":"r","event":"phase","phase":"working"}"#;
    let good: Value = serde_json::from_str(phase).unwrap();
    assert!(validator.is_valid(&good));
    for (field, value) in
        [("v", 2.into()), ("event", "text".into()), ("phase", "sleeping".into()), ("seq", 0.into())]
    {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

#[test]
fn json_is_the_end_alone() {
    let home = Home::new();
    let (_scripted, path) = agent(answer("the last words"));
    let printed = home.run(&["run", "x", "--output", "json", "--agent-path", &path]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    let lines = json_lines(&printed.stdout);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["event"], "run_finished");
    assert_eq!(lines[0]["outcome"], "done");
    assert_eq!(lines[0]["text"], "the last words");
    assert_eq!(lines[0]["turns"], serde_json::json!({"budget": 50, "spent": 1, "total": 1}));
}

#[test]
fn nothing_the_agent_says_commands_the_terminal() {
    let home = Home::new();
    let reply =
        Reply::new().text(EVIL).shell(EVIL, EVIL).launch(Shell::new("b1", &format!("true {EVIL}"))).success();
    let (_scripted, path) = agent(AttemptScript::new().reply(reply));
    let ran = home.run(&["run", &format!("hello {EVIL}"), "-vv", "--agent-path", &path]);
    let run = home.youngest_run();
    for printed in [ran, home.run(&["show", &run]), home.run(&["logs", &run]), home.run(&["attach", &run])] {
        let whole = printed.whole();
        assert!(!whole.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{whole}");
        assert!(whole.contains("\\u{202e}"), "{whole}");
    }
}

#[test]
fn ctrl_c_stops_the_run_gracefully() {
    let home = Home::new();
    let (scripted, path) = agent(patient());
    let mut child = home.command(&["run", "x", "--agent-path", &path]).spawn().unwrap();
    wait_until("the reply", || scripted.folder().join("begun").exists());
    signal(&child, "INT");
    let code = wait_for_exit(&mut child);
    let stderr = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("Ctrl-C again stops it at once"), "{stderr}");
    assert!(stderr.contains("\nstopped: "), "{stderr}");
}

#[test]
fn a_second_ctrl_c_stops_the_run_at_once() {
    let home = Home::new();
    // Neither an interrupt nor TERM moves this one.
    let reply = Reply::new().touch("begun").then(Action::Park).without_result();
    let (scripted, path) = agent(AttemptScript::new().ignoring_term().reply(reply));
    let mut child = home.command(&["run", "x", "--agent-path", &path]).spawn().unwrap();
    wait_until("the reply", || scripted.folder().join("begun").exists());
    signal(&child, "INT");
    let stderr = wait_for_line(&mut child, "Ctrl-C again stops it at once");
    signal(&child, "INT");
    assert_eq!(wait_for_exit(&mut child), 8);
    let stderr = std::io::read_to_string(stderr).unwrap();
    assert!(stderr.contains("stopping the run at once"), "{stderr}");
    let pid = scripted.log().unwrap().into_iter().find_map(|entry| match entry.event {
        LogEvent::Started { pid, .. } => Some(pid),
        LogEvent::Message { .. } | LogEvent::Control(_) | LogEvent::InputClosed | LogEvent::Exited(_) => None,
    });
    wait_until("the agent's end", || !std::path::Path::new(&format!("/proc/{}", pid.unwrap())).exists());
}

#[test]
fn after_a_kill_attach_goes_on_as_if_nothing_had_happened() {
    let home = Home::new();
    let (scripted, path) = agent(patient());
    let mut child = home.command(&["run", "x", "--agent-path", &path]).spawn().unwrap();
    wait_until("the reply", || scripted.folder().join("begun").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let run = home.youngest_run();
    let listed = home.run(&["ls"]).stdout;
    assert!(listed.contains("undriven"), "{listed}");
    scripted.release("go").unwrap();
    let printed = home.run(&["attach", &run]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (0, "working on it\nall done\n"),
        "{}",
        printed.stderr
    );
    assert!(printed.stderr.contains("this terminal drives the run"), "{}", printed.stderr);
    assert_eq!(scripted.starts().unwrap(), 1);
}

#[test]
fn a_detached_run_that_cannot_start_says_so_at_once() {
    let home = Home::new();
    let printed = home.run(&["run", "x", "--detach", "--agent-path", "/nowhere/claude"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (5, ""), "no run, no id");
    assert!(
        printed.stderr.contains("does not exist") && printed.stderr.contains("hint: "),
        "{}",
        printed.stderr
    );
}

#[test]
fn a_closed_terminal_hands_the_run_over_and_attach_shows_all_of_it() {
    let home = Home::new();
    let (scripted, path) = agent(patient());
    let mut child = home.command(&["run", "x", "--agent-path", &path]).spawn().unwrap();
    wait_until("the reply", || scripted.folder().join("begun").exists());
    signal(&child, "HUP");
    assert_eq!(wait_for_exit(&mut child), 6);
    let run = home.youngest_run();
    wait_until("a background driver", || {
        json_lines(&home.run(&["ls", "--output", "json"]).stdout)[0]["driven"] == true
    });
    scripted.release("go").unwrap();
    let printed = home.run(&["attach", &run]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (0, "working on it\nall done\n"),
        "{}",
        printed.stderr
    );
    assert_eq!(scripted.starts().unwrap(), 1);
}

#[test]
fn ctrl_c_in_attach_leaves_the_run_alone() {
    let home = Home::new();
    let (scripted, path) = agent(patient());
    let started = home.run(&["run", "x", "--detach", "--agent-path", &path]);
    let run = started.stdout.trim().to_owned();
    assert_eq!(started.code, 0, "{}", started.stderr);
    let mut attach = home.command(&["attach", &run]).spawn().unwrap();
    let stderr = wait_for_line(&mut attach, "another process drives the run");
    signal(&attach, "INT");
    assert_eq!(wait_for_exit(&mut attach), 0);
    assert!(std::io::read_to_string(stderr).unwrap().contains("which goes on"));
    scripted.release("go").unwrap();
    assert_eq!(home.run(&["attach", &run]).code, 0);
}

#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let home = Home::new();
    let mut reply = Reply::new().touch("begun").await_file("go");
    for n in 0..2000 {
        reply = reply.text(&format!("line {n} of very many that nobody reads"));
    }
    let (scripted, path) = agent(AttemptScript::new().reply(reply.success()));
    for form in ["human", "ndjson"] {
        let mut child = home.command(&["run", "x", "--output", form, "--agent-path", &path]).spawn().unwrap();
        wait_until("the reply", || scripted.folder().join("begun").exists());
        drop((child.stdout.take(), child.stderr.take()));
        scripted.release("go").unwrap();
        assert_eq!(wait_for_exit(&mut child), 0);
        let last = home.records(&home.youngest_run()).pop().unwrap();
        assert_eq!(last["outcome"], "done");
    }
}

#[test]
fn stop_waits_until_it_is_over_and_says_what_was_stopped() {
    let home = Home::new();
    let reply = Reply::new().launch(Shell::new("srv", "sleep 600")).text("served").success();
    let (_scripted, path) = agent(AttemptScript::new().reply(reply));
    let run = home.run(&["run", "x", "--detach", "--agent-path", &path]).stdout.trim().to_owned();
    wait_until("the hold", || home.run(&["show", &run]).stdout.starts_with("waiting"));
    let printed = home.run(&["stop", &run[..4]]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    assert!(printed.stdout.starts_with("stopped: "), "{}", printed.stdout);
    assert!(printed.stdout.contains("shell srv · stopped"), "{}", printed.stdout);
    let again = home.run(&["stop", &run]);
    assert_eq!((again.code, again.stdout.contains("was over already: stopped")), (0, true));
    assert_eq!(home.run(&["attach", &run]).code, 8, "attach tells the run's own outcome");
}

#[test]
fn a_message_reaches_the_agent() {
    let home = Home::new();
    let attempt = patient().reply(Reply::new().text("and that too").success());
    let (scripted, path) = agent(attempt);
    let run = home.run(&["run", "x", "--detach", "--agent-path", &path]).stdout.trim().to_owned();
    wait_until("the reply", || scripted.folder().join("begun").exists());
    let printed = home.run(&["send", &run, "do that too"]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    wait_until("the message", || scripted.messages().unwrap().len() == 2);
    scripted.release("go").unwrap();
    let printed = home.run(&["attach", &run]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (0, "working on it\nall done\nand that too\n"),
        "{:?}\n{}",
        scripted.messages(),
        home.run(&["logs", &run]).stdout
    );
    assert!(scripted.messages().unwrap().iter().any(|message| message.contains("do that too")));
    let late = home.run(&["send", &run, "more"]);
    assert_eq!(late.code, 2);
    let hint = format!("hint: `bursar run --resume {run} \"...\"` goes on in its session\n");
    assert!(late.stderr.contains("is over") && late.stderr.contains(&hint), "{}", late.stderr);
}

#[test]
fn an_agent_that_is_nowhere_is_refused_with_every_place_named() {
    let home = Home::new();
    let printed = home.run(&["run", "x", "--agent-path", "/nowhere/claude"]);
    assert_eq!(printed.code, 5, "{}", printed.stderr);
    assert!(
        printed.stderr.contains("/nowhere/claude") && printed.stderr.contains("hint: "),
        "{}",
        printed.stderr
    );
    let mut command = home.command(&["run", "x"]);
    command.env("PATH", "/usr/bin:/bin");
    let output = command.stdout(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(5) {
        assert!(stderr.contains("\nhint: install it (npm install -g "), "{stderr}");
        let (_, places) = stderr.trim_end().split_once("; looked at ").unwrap();
        let places: Vec<&str> = places.split(", ").collect();
        let different: std::collections::BTreeSet<&&str> = places.iter().collect();
        assert!(places.contains(&"/usr/bin") && different.len() == places.len(), "{stderr}");
    }
}

#[test]
fn a_run_is_resumed_by_its_own_id_or_its_sessions() {
    let home = Home::new();
    let (scripted, path) = agent(answer("ok").otherwise(Reply::new().text("again").success()));
    let first = home.run(&["run", "x", "--agent-path", &path, "--output", "json"]);
    let first = json_lines(&first.stdout).remove(0);
    let (run, session) = (first["run"].as_str().unwrap(), first["session"].as_str().unwrap());
    for name in [run, &run[..5], session] {
        let printed = home.run(&["run", "y", "--agent-path", &path, "--resume", name, "--output", "ndjson"]);
        assert_eq!(json_lines(&printed.stdout)[0]["resume"], session, "{name}: {}", printed.stderr);
    }
    drop(scripted);
}

#[test]
fn people_are_told_an_ending_once_and_alike_by_run_attach_and_logs() {
    let home = Home::new();
    let reply = Reply::new().text("begun").launch(Shell::new("b1", "exit 3")).success();
    let (_scripted, path) = agent(AttemptScript::new().reply(reply));
    let ran = home.run(&["run", "x", "--agent-path", &path]).stderr;
    for gone in ["→ finish", "phase: working", "phase: settling", "phase: ended", "attempt 1 ended"] {
        assert!(!ran.contains(gone), "{gone}: {ran}");
    }
    let run = home.youngest_run();
    assert_eq!(home.run(&["attach", &run]).stderr, ran);
    let logged = home.run(&["logs", &run]).stdout;
    let logged: Vec<&str> =
        logged.lines().map(|line| &line[9..]).filter(|line| !["begun", "woken"].contains(line)).collect();
    assert_eq!(logged, ran.lines().collect::<Vec<_>>());

    let wordy = home.run(&["run", "x", "-v", "--agent-path", &path]).stderr;
    assert_eq!(wordy.matches("holding the agent's input open").count(), 1, "{wordy}");
    assert!(wordy.contains("action=\"hold\""), "the log has all its fields: {wordy}");
}

#[test]
fn a_long_prefix_is_not_needed_but_an_ambiguous_one_is_said() {
    let home = Home::new();
    let (_scripted, path) = agent(answer("ok").otherwise(Reply::new().text("ok").success()));
    let mut firsts = std::collections::BTreeSet::new();
    // Among 33 ids two begin with the same of 32 letters.
    let ambiguous = loop {
        home.run(&["run", "x", "--agent-path", &path, "--no-hold"]);
        let first = home.youngest_run()[..1].to_owned();
        if !firsts.insert(first.clone()) {
            break first;
        }
    };
    let printed = home.run(&["show", &ambiguous]);
    assert_eq!(printed.code, 2);
    assert!(printed.stderr.contains("2 runs have an id that begins with"), "{}", printed.stderr);
    assert!(printed.stderr.contains("hint: write more letters: "), "{}", printed.stderr);
}

#[test]
fn raw_logs_are_the_bytes_of_the_agent() {
    let home = Home::new();
    let (_scripted, path) = agent(answer(EVIL));
    home.run(&["run", "x", "--agent-path", &path]);
    let run = home.youngest_run();
    let raw = home.command(&["logs", "--raw", &run]).output().unwrap().stdout;
    let spool = std::fs::read(home.store().join("runs").join(&run).join("1/out")).unwrap();
    assert!(!raw.is_empty());
    assert_eq!(raw, spool);
}

#[test]
fn decisions_are_in_the_log_file() {
    let home = Home::new();
    let (_scripted, path) = agent(answer("ok"));
    let printed =
        home.run(&["run", "x", "--agent-path", &path, "--log-file", "log", "--log-format", "json", "-q"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (0, "ok\n"));
    let log = json_lines(&std::fs::read_to_string(home.path().join("log")).unwrap());
    let decision = log.iter().find(|line| line["target"] == "bursar::decision").unwrap();
    for field in [
        "run",
        "host",
        "transport",
        "attempt",
        "reply",
        "reason",
        "action",
        "turn_budget",
        "turns_spent",
        "turns_spent_total",
        "continues_used",
        "continues_limit",
        "nudges_used",
        "nudges_limit",
        "debt",
        "cost_usd",
    ] {
        assert!(!decision["fields"][field].is_null(), "{field} is missing in {decision}");
    }
}

#[test]
fn a_narrow_list_gives_up_columns_before_the_prompt() {
    let home = Home::new();
    let (_scripted, path) = agent(answer("ok"));
    home.run(&["run", "fix the failing test", "--agent-path", &path]);
    for (columns, titles) in
        [("40", "RUN STATUS AGE PROMPT"), ("120", "RUN STATUS AGE TURNS DEBT DIR PROMPT")]
    {
        let listed = home.command(&["ls", "--all"]).env("COLUMNS", columns).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let first: Vec<&str> = listed.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(first.join(" "), titles, "{listed}");
        assert!(listed.contains("fix the failing"), "{listed}");
    }
}

#[test]
fn gc_says_what_goes_before_and_after() {
    let home = Home::new();
    let (_scripted, path) = agent(answer("ok"));
    home.run(&["run", "fix the failing test", "--agent-path", &path]);
    let run = home.youngest_run();
    let kept = home.run(&["gc", "--dry-run"]);
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "would remove 0 runs\n"), "it is too young");
    let line = |printed: &str| printed.lines().next().unwrap().to_owned();
    let foretold = home.run(&["gc", "--dry-run", "--older-than", "0s"]).stdout;
    assert!(foretold.ends_with("\nwould remove 1 run\n"), "{foretold}");
    assert!(line(&foretold).starts_with(&format!("{run} · done · ended ")), "{foretold}");
    assert!(line(&foretold).ends_with("ago · fix the failing test"), "{foretold}");
    let removed = home.run(&["gc", "--older-than", "0s"]).stdout;
    assert!(line(&removed).starts_with(&run) && removed.contains("\nremoved 1 run ("), "{removed}");
    assert_eq!(home.run(&["show", &run]).code, 2);
}
