//! Processes that die, are killed, or are not the agent at all: nothing of it is ever success.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bursar_testkit::{AgentVersion, Gate, Script, Step, on_every_version};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::going::Going;
use crate::rig::{PATIENCE, Ran, Rig, list, word};

/// A command in the foreground that ends when the file `go` is there, or by itself after a while.
const LONG: &str = "touch begun; for i in $(seq 600); do [ -e go ] && break; sleep 0.1; done";

#[test]
fn an_agent_told_to_end_in_the_middle_of_a_tool_is_resumed_and_finishes() {
    on_every_version(|version| {
        for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
            let script = Script::new()
                .then(Step::shell(LONG))
                .then(Step::text("I went on from where I was").forever());
            let rig = Rig::new(version, script);
            let going = rig.start(&[], "work");
            rig.wait_for_file("begun");
            rig.wait_for_transcript("touch begun");
            going.signal_agent(1, signal);
            going.record("attempt_ended", |_| true);
            // A command that outlived the agent ends now.
            rig.make("go");
            let ran = going.finish();
            resumed_and_done(&ran, &format!("{version} {signal:?}"));
        }
    });
}

#[test]
fn an_agent_interrupted_while_the_model_thinks_leaves_with_success_and_no_result_and_is_resumed() {
    on_every_version(|version| {
        let gate = Gate::new();
        let script = Script::new()
            .then(Step::shell("echo begun > begun"))
            .then(Step::text("nobody hears this").gated(&gate))
            .then(Step::text("I went on from where I was"));
        let rig = Rig::new(version, script);
        let going = rig.start(&[], "work");
        rig.model.wait_for_requests(2, PATIENCE).unwrap();
        rig.wait_for_transcript("echo begun");
        going.signal_agent(1, Signal::INT);
        let end = going.record("attempt_ended", |_| true);
        assert_eq!((word(&end["end"], "how"), &end["end"]["code"]), ("exited", &json!(0)), "{end}");
        let ran = going.finish();
        resumed_and_done(&ran, version.number());
        gate.open();
    });
}

/// Checks that a run went on in a second process on the same session, and ended by a success there.
#[track_caller]
fn resumed_and_done(ran: &Ran, what: &str) {
    let finished = ran.ended("done", 0);
    let [first, second] = list(&finished, "attempts") else { panic!("{what}: two attempts: {ran}") };
    assert_eq!(first["session"], second["session"], "{what}: {ran}");
    assert_eq!(finished["continues"]["used"], 1, "{what}: {ran}");
    let last = list(&finished, "replies").last().cloned().unwrap_or_default();
    let expected = (&json!(2), &json!("success"), &json!(false));
    assert_eq!((&last["attempt"], &last["subtype"], &last["is_error"]), expected, "{what}: {ran}");
    let decisions = ran.decisions();
    assert!(decisions[0].starts_with("continue/"), "{what}: {ran}");
    assert_eq!(decisions.last().map(String::as_str), Some("finish/settled"), "{what}: {ran}");
}

#[test]
fn an_orphaned_shell_is_waited_for_and_never_started_twice() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 20; echo ran >> counter"))
            .then(Step::text("I wait for it"))
            .then(Step::read_background_output())
            .then(Step::text("it ran"));
        let rig = Rig::new(version, script);
        let going = rig.start(&[], "build it");
        going.decision("hold/background_running");
        rig.wait_for_transcript("I wait for it");
        going.signal_agent(1, Signal::KILL);
        going.decision("hold/orphan_running");
        assert!(!rig.made("counter"), "the shell was to outlive its agent");
        going.decision("nudge/debt");
        assert_eq!(rig.text_of("counter"), "ran\n", "resumed before the orphan ended");
        let ran = going.finish();
        let finished = ran.ended("done", 0);
        let expected = ["hold/background_running", "hold/orphan_running", "nudge/debt", "finish/settled"];
        assert_eq!(ran.decisions(), expected, "{ran}");
        assert_eq!(finished["attempts"][0]["end"], json!({"how": "exited", "signal": 9}), "{ran}");
        assert_eq!(rig.text_of("counter"), "ran\n");
        assert_eq!(list(&finished, "attempts").len(), 2);
    });
}

#[test]
fn an_agent_killed_in_a_reply_is_continued_only_after_its_shell_has_ended() {
    on_every_version(|version| {
        let gate = Gate::new();
        let script = Script::new()
            .then(Step::background_shell("until [ -e go ]; do sleep 0.1; done; echo ran >> counter"))
            .then(Step::text("nobody hears this").gated(&gate))
            .then(Step::read_background_output())
            .then(Step::text("it ran"));
        let rig = Rig::new(version, script);
        let going = rig.start(&[], "build it");
        rig.model.wait_for_requests(2, PATIENCE).unwrap();
        rig.wait_for_transcript("Command running in background");
        going.signal_agent(1, Signal::KILL);
        going.decision("hold/orphan_running");
        rig.make("go");
        let ran = going.finish();
        let finished = ran.ended("done", 0);
        assert_eq!(ran.decisions(), ["hold/orphan_running", "continue/no_result", "finish/settled"], "{ran}");
        assert_eq!(rig.text_of("counter"), "ran\n");
        assert_eq!(finished["debt"], 0);
        gate.open();
    });
}

#[test]
fn a_session_lost_with_its_killed_agent_does_not_start_the_work_twice() {
    on_every_version(|version| {
        let gate = Gate::new();
        let script = Script::new()
            .then(Step::background_shell("until [ -e go ]; do sleep 0.1; done; echo ran >> counter"))
            .then(Step::text("nobody hears this").gated(&gate))
            .then(Step::read_background_output())
            .then(Step::text("it ran"));
        let rig = Rig::new(version, script);
        let going = rig.start(&[], "build it");
        rig.model.wait_for_requests(2, PATIENCE).unwrap();
        going.record("background", |record| record["output"].is_string());
        going.signal_agent(1, Signal::KILL);
        going.decision("hold/orphan_running");
        // An agent killed early may never have written its session down: so it is here, on every version.
        for transcript in rig.transcripts() {
            fs::remove_file(transcript).unwrap();
        }
        rig.make("go");
        let ran = going.finish();
        let finished = ran.ended("done", 0);
        let expected =
            ["hold/orphan_running", "continue/no_result", "restart/session_unknown", "finish/settled"];
        assert_eq!(ran.decisions(), expected, "{ran}");
        assert_eq!((&finished["debt"], &finished["nudges"]["used"]), (&json!(0), &json!(0)), "{ran}");
        assert_eq!(rig.text_of("counter"), "ran\n");
        let told = rig.told("already started for you").pop().unwrap();
        assert!(told.new_mentions("build it") > 0, "{:?}", told.new_texts());
        gate.open();
    });
}

#[test]
fn a_session_that_is_gone_is_begun_afresh_once() {
    on_every_version(|version| {
        let rig = Rig::new(version, Script::new().then(Step::text("a fresh start")));
        let gone = "0b5ab0a7-6f0a-4c8e-9f4e-3d1f5a2b7c90";
        let ran = rig.run(&["--resume", gone], "go on with it");
        let finished = ran.ended("done", 0);
        assert_eq!(ran.decisions(), ["restart/session_unknown", "finish/settled"], "{ran}");
        assert_eq!(finished["continues"]["used"], 1, "{ran}");
        let restart = ran.decided("restart/session_unknown");
        assert!(word(&restart, "message").contains("one fresh start"), "{restart}");
        assert_ne!(word(&finished, "session"), gone);
        assert_eq!(list(&finished, "attempts").len(), 2);
        rig.model.assert_no_faults();
    });
}

#[test]
fn a_program_that_says_nothing_and_leaves_with_success_is_never_done() {
    let rig = Rig::new(AgentVersion::Waits, Script::new());
    let ran = finish(&mut rig.run_of(Path::new("/bin/true"), "ndjson", &["hello"]));
    let finished = ran.ended("exhausted", 4);
    assert_eq!(word(&finished, "reason"), "no_progress", "{ran}");
    assert_eq!(list(&finished, "replies"), [] as [Value; 0], "{ran}");
}

#[test]
fn a_program_that_leaves_with_a_complaint_is_quoted() {
    let rig = Rig::new(AgentVersion::Waits, Script::new());
    let agent = program(&rig, "#!/bin/sh\necho 'this copy has expired;' >&2\necho 'renew it' >&2\nexit 3\n");
    let ran = finish(&mut rig.run_of(&agent, "ndjson", &["hello"]));
    let finished = ran.ended("failed", 1);
    assert_eq!(word(&finished, "reason"), "agent_refused", "{ran}");
    assert!(word(&finished, "message").contains("this copy has expired; renew it"), "{ran}");
    assert_eq!(list(&finished, "attempts").len(), 1, "not tried again: {ran}");
}

#[test]
fn an_agent_that_is_nowhere_is_answered_with_every_place_that_was_looked_at() {
    let rig = Rig::new(AgentVersion::Waits, Script::new());
    let missing = rig.home.root().join("no-such-agent");
    let named = finish(&mut rig.run_of(&missing, "ndjson", &["hello"]));
    let finished = named.ended("refused", 5);
    let told = format!("{} {}", word(&finished, "message"), word(&finished, "hint"));
    assert!(told.contains(&missing.display().to_string()), "{told}");
    assert!(told.contains("--agent-path"), "{told}");

    let mut command = rig.bursar();
    command.env("PATH", "/usr/bin:/bin").args(["run", "--output", "ndjson", "hello"]);
    let unnamed = finish(&mut command);
    let finished = unnamed.ended("refused", 5);
    let told = format!("{} {}", word(&finished, "message"), word(&finished, "hint"));
    for place in ["/usr/bin", "/bin", "/.local/bin", "/.claude/local", "/opt/homebrew/bin", "/usr/local/bin"]
    {
        assert!(told.contains(place), "{place} in: {told}");
    }
    assert!(told.contains("--agent-path"), "{told}");
    assert!(rig.model.requests().is_empty() && rig.processes().is_empty());
}

#[track_caller]
fn finish(command: &mut std::process::Command) -> Ran {
    Going::begin(command).finish()
}

/// Makes a program of this text.
#[track_caller]
fn program(rig: &Rig, text: &str) -> PathBuf {
    let path = rig.home.root().join("agent");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
