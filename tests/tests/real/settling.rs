//! Background work: held for, collected, nudged about, or stranded; never forgotten.

use bursar_testkit::{AgentVersion, Script, Step, on_every_version};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig, list, word};

#[test]
fn an_obedient_agent_is_done_without_a_nudge() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 1; echo built > built"))
            .then(Step::until_notified("sleep 0.2"))
            .then(Step::read_background_output())
            .then(Step::text("all is built"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "build it");
        let finished = ran.ended("done", 0);
        assert_eq!(finished["nudges"]["used"], 0, "{ran}");
        assert_eq!(finished["debt"], 0);
        assert_eq!(list(&finished, "attempts").len(), 1);
        assert!(rig.made("built"));
    });
}

#[test]
fn a_walk_away_is_held_until_its_shell_has_run_to_its_end() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 30; echo built > built"))
            .then(Step::text("I will wait for it"))
            .then(Step::text("it has finished"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "build it");
        let finished = ran.ended("done", 0);
        assert!(rig.made("built"), "{ran}");
        assert_eq!(finished["nudges"]["used"], 0);
        assert_eq!(list(&finished, "attempts").len(), 1, "one process");
        assert_eq!(ran.decisions(), ["hold/background_running", "finish/settled"]);
        assert_eq!(finished["background"][0]["state"], "done");
        assert_eq!(finished["background"][0]["exit"], 0);
    });
}

#[test]
fn a_text_only_walk_away_is_nudged_once_after_the_hold_and_then_stranded() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 60; echo late > late"))
            .then(Step::text("it runs, and I am off"))
            .then(Step::text("it will end by itself"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&["--hold", "3s"], "build it");
        let finished = ran.ended("stranded", 3);
        assert_eq!(ran.decisions(), ["hold/background_running", "nudge/debt", "finish/nudge_spent"], "{ran}");
        assert_eq!((&finished["debt"], &finished["nudges"]["used"]), (&json!(1), &json!(1)));

        let task = &finished["background"][0];
        let (id, output) = (word(task, "id"), word(task, "output"));
        assert!(output.ends_with(&format!("/tasks/{id}.output")), "{ran}");
        let nudge = &rig.told("You ended your reply")[0];
        assert!(nudge.new_mentions(id) > 0 && nudge.new_mentions(output) > 0, "{:?}", nudge.new_texts());
        assert!(nudge.new_mentions("still running") > 0, "{:?}", nudge.new_texts());

        assert!(word(&finished, "message").contains(id), "{ran}");
        says_what_runs(&rig, &finished);
        rig.model.assert_no_faults();
    });
}

#[test]
fn an_agent_that_collects_one_of_two_is_stranded_over_the_other() {
    on_every_version(|version| {
        let second = json!({"command": "sleep 60; echo second > second", "description": "the second build",
                            "run_in_background": true});
        let script = Script::new()
            .then(Step::background_shell("sleep 1; echo first > first").and_tool("Bash", second))
            .then(Step::until_notified("sleep 0.2"))
            .then(Step::read_background_output())
            .then(Step::text("the first is built"))
            .then(Step::text("the second is no business of mine"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&["--hold", "3s"], "build both");
        let finished = ran.ended("stranded", 3);
        assert_eq!(finished["debt"], 1, "{ran}");
        let [first, second] = list(&finished, "background") else { panic!("two tasks: {ran}") };
        assert_eq!((&first["owed"], &second["owed"]), (&json!(false), &json!(true)), "{ran}");
        assert_eq!((&first["state"], &first["exit"]), (&json!("done"), &json!(0)));
        let message = word(&finished, "message");
        assert!(message.contains(word(second, "id")) && !message.contains(word(first, "id")), "{message}");
        assert!(message.contains("the second build"), "{message}");
        assert!(rig.made("first") && !rig.made("second"));
        says_what_runs(&rig, &finished);
    });
}

#[test]
fn a_shell_that_the_agent_kills_at_its_end_costs_a_nudge_that_resumes_the_session() {
    on_every_version(|version| {
        if version.waits_for_shells() {
            return a_plain_agent_that_waits_needs_no_nudge(version);
        }
        let script = walk_away_from("sleep 60; echo built > built")
            .then(Step::read_background_output())
            .then(Step::text("it was cut off, I have read what there is"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&["--no-hold"], "build it");
        let finished = ran.ended("done", 0);
        one_session_two_attempts(&finished, &ran);
        assert_eq!(ran.decisions(), ["nudge/debt", "finish/settled"], "{ran}");
        assert_eq!(finished["background"][0]["state"], "stopped");
        assert!(!rig.made("built"), "the shell was lost");
        rig.model.assert_no_faults();
    });
}

fn a_plain_agent_that_waits_needs_no_nudge(version: AgentVersion) {
    let script = walk_away_from("sleep 6; echo built > built").then(Step::text("it has finished"));
    let rig = Rig::new(version, script);
    let ran = rig.run(&["--no-hold"], "build it");
    let finished = ran.ended("done", 0);
    assert_eq!(ran.decisions(), ["finish/settled"], "{ran}");
    assert_eq!(list(&finished, "attempts").len(), 1);
    assert!(rig.made("built"));
}

#[test]
fn a_lost_shell_that_nobody_collects_strands_the_run() {
    on_every_version(|version| {
        if version.waits_for_shells() {
            return;
        }
        let script = walk_away_from("sleep 60; echo built > built").then(Step::text("never mind"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&["--no-hold"], "build it");
        let finished = ran.ended("stranded", 3);
        one_session_two_attempts(&finished, &ran);
        assert_eq!(ran.decisions(), ["nudge/debt", "finish/nudge_spent"], "{ran}");
        assert!(word(&finished, "message").contains("was ended with the agent"), "{ran}");
        says_what_runs(&rig, &finished);
    });
}

#[test]
fn every_kind_of_background_work_is_settled_by_its_end() {
    let moved = json!({"command": "for i in 1 2 3 4 5; do sleep 1; done; echo built > built",
                       "description": "slow build", "timeout": 2000});
    let workflow = "export const meta = { name: 'mini', description: 'one agent', phases: [{ title: 'Only' }] }\n\
                    phase('Only')\nconst r = await agent('[[sub:part]] say hi', { label: 'hi' })\nreturn { r }\n";
    let launches = [
        ("shell", Step::tool("Bash", moved)),
        ("agent", Step::background_agent("part")),
        ("workflow", Step::tool("Workflow", json!({"script": workflow}))),
    ];
    on_every_version(|version| {
        for (kind, launch) in &launches {
            let script = Script::new()
                .then(launch.clone())
                .then(Step::text("it runs"))
                .then(Step::text("it has finished").forever())
                .sub("part", Step::text("my part is done").forever());
            let rig = Rig::new(version, script);
            let ran = rig.run(&[], "do it in the background");
            let finished = ran.ended("done", 0);
            let [task] = list(&finished, "background") else { panic!("one task: {ran}") };
            assert_eq!(word(task, "kind"), *kind, "{ran}");
            assert_eq!((&task["state"], &task["owed"]), (&json!("done"), &json!(false)), "{ran}");
            assert_eq!((&finished["nudges"]["used"], &finished["debt"]), (&json!(0), &json!(0)), "{ran}");
            assert_eq!(rig.made("built"), *kind == "shell");
        }
    });
}

#[test]
fn a_foreground_command_of_five_seconds_is_no_background_work() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::shell("for i in 1 2 3 4 5; do sleep 1; done; echo built > built"))
            .then(Step::text("built"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "build it");
        let finished = ran.ended("done", 0);
        assert_eq!(finished["background"], json!([]), "{ran}");
        assert_eq!(ran.decisions(), ["finish/settled"]);
        assert!(ran.events("background").is_empty());
        assert!(rig.made("built"));
    });
}

#[test]
fn two_shells_that_end_in_the_same_instant_are_both_settled() {
    on_every_version(|version| {
        let waiting = |name: &str| {
            let command = format!("until [ -e go ]; do sleep 0.02; done; echo {name} > {name}");
            json!({"command": command, "description": name, "run_in_background": true})
        };
        let script = Script::new()
            .then(Step::tool("Bash", waiting("left")).and_tool("Bash", waiting("right")))
            .then(Step::text("both run"))
            .then(Step::text("I have heard of it").forever());
        let rig = Rig::new(version, script);
        let going = rig.start(&[], "build both");
        going.decision("hold/background_running");
        rig.make("go");
        let ran = going.finish();
        let finished = ran.ended("done", 0);
        let tasks = list(&finished, "background");
        assert_eq!(tasks.len(), 2, "{ran}");
        assert!(tasks.iter().all(|task| task["owed"] == false && task["state"] == "done"), "{ran}");
        assert_eq!(finished["nudges"]["used"], 0, "{ran}");
        assert!(rig.made("left") && rig.made("right"));
    });
}

/// A model that leaves a shell running and says so.
fn walk_away_from(command: &str) -> Script {
    Script::new().then(Step::background_shell(command)).then(Step::text("it runs, and I am off"))
}

#[track_caller]
fn one_session_two_attempts(finished: &Value, ran: &Ran) {
    let [first, second] = list(finished, "attempts") else { panic!("two attempts: {ran}") };
    assert!(first["session"].is_string() && first["session"] == second["session"], "{ran}");
    assert_eq!(finished["nudges"]["used"], 1, "{ran}");
}

/// Checks the run's word on what still runs against the process table.
#[track_caller]
fn says_what_runs(rig: &Rig, finished: &Value) {
    let left: Vec<i64> = rig.left().iter().map(|process| process.pid.into()).collect();
    let told: Vec<i64> = list(finished, "survivors").iter().filter_map(|s| s["pid"].as_i64()).collect();
    assert_eq!(told, left, "{finished}");
    let message = word(finished, "message");
    assert_eq!(message.contains("nothing of the run still runs"), left.is_empty(), "{message}");
    assert!(!left.is_empty() || !message.contains("still running on"), "{message}");
}
