//! What people, logs and programs are told: the same truth, and nothing a terminal would obey.

use bursar_testkit::{Script, Step, agent_path, on_every_version};
use serde_json::{Value, json};

use crate::going::Going;
use crate::rig::{Ran, Rig, decision, list, word};

#[test]
fn nothing_an_agent_writes_commands_the_terminal() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}evil\u{2066}x\u{200f}\u{8}\u{feff}";
    on_every_version(|version| {
        let name = format!("task {HOSTILE}");
        let background = json!({"command": "sleep 0.5", "description": name, "run_in_background": true});
        let foreground = json!({"command": format!("echo '{HOSTILE}'"), "description": name});
        let script = Script::new()
            .then(Step::tool("Bash", foreground).saying(&format!("first {HOSTILE} words")))
            .then(Step::tool("Bash", background))
            .then(Step::text(format!("middle {HOSTILE} words")))
            .then(Step::text(format!("last {HOSTILE} words")).forever());
        let rig = Rig::new(version, script);
        let mut command = rig.run_of(&agent_path(version), "human", &["-vv"]);
        command.arg(format!("prompt {HOSTILE}"));
        let ran = Going::begin(&mut command).finish();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out().contains("first ") && ran.out().contains("last "), "{ran:?}");
        assert!(ran.out().contains(r"\u{1b}]0;owned\u{7}"), "made visible, not dropped: {ran:?}");
        assert!(ran.stderr.contains("task "), "{ran:?}");
        harmless(&ran);

        let run = list(&lines_of(&rig.call(&["ls", "--all", "--output", "json"])), "lines")[0].clone();
        let run = word(&run, "run");
        for args in [
            &["ls", "--all"][..],
            &["ls", "--all", "--output", "json"],
            &["show", run],
            &["show", run, "--output", "json"],
            &["logs", run],
            &["logs", run, "--output", "ndjson"],
            &["attach", run],
        ] {
            let told = rig.call(args);
            assert_eq!(told.code, 0, "{args:?}: {told:?}");
            harmless(&told);
        }
    });
}

/// Checks that neither stream holds a character a terminal could obey or a reader be deceived by.
#[track_caller]
fn harmless(ran: &Ran) {
    let hostile = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    for text in [ran.out(), &ran.stderr] {
        let found: Vec<char> = text.chars().filter(hostile).collect();
        assert!(found.is_empty(), "{found:?} in {text:?}");
    }
}

#[test]
fn every_decision_is_in_the_log_with_all_its_figures() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::shell("echo step").times(2))
            .then(Step::background_shell("sleep 60"))
            .then(Step::text("it runs, and I am off"))
            .then(Step::text("never mind"));
        let rig = Rig::new(version, script);
        let log = rig.home.root().join("bursar.log");
        let mut command =
            rig.run_command(&["--max-turns", "2", "--hold", "1s", "--log-format", "json", "--log-file"]);
        command.arg(&log).arg("build it");
        let ran = Going::begin(&mut command).finish();
        ran.ended("stranded", 3);
        let expected = ["continue/max_turns", "hold/background_running", "nudge/debt", "finish/nudge_spent"];
        assert_eq!(ran.decisions(), expected, "{ran}");

        let text = std::fs::read_to_string(&log).unwrap();
        let logged: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .filter(|line| line["target"] == "bursar::decision")
            .map(|line| line["fields"].clone())
            .collect();
        let told = ran.events("decision");
        assert_eq!(logged.len(), told.len(), "{text}");
        for (logged, told) in logged.iter().zip(&told) {
            for key in [
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
                "message",
            ] {
                assert!(!logged[key].is_null() && logged[key] == told[key], "{key}: {logged} {told}");
            }
        }
        let first = &logged[0];
        assert_eq!((&first["turn_budget"], &first["turns_spent"]), (&json!(2), &json!(3)), "{first}");
        let last = &logged[3];
        assert_eq!(
            (&last["debt"], &last["nudges_used"], &last["continues_used"]),
            (&json!(1), &json!(1), &json!(1))
        );
        assert!(last["cost_usd"].as_f64().unwrap() > 0.0, "{last}");
        agrees(&rig, &ran);
    });
}

#[test]
fn what_is_shown_of_a_run_afterwards_is_how_it_ended() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::background_shell("sleep 1; echo built > built; exit 3"))
            .then(Step::text("it runs"))
            .then(Step::text("it failed, and that is fine"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "build it");
        let finished = ran.ended("done", 0);
        assert_eq!(
            (&finished["background"][0]["state"], &finished["background"][0]["exit"]),
            (&json!("failed"), &json!(3))
        );
        agrees(&rig, &ran);
    });
}

/// Checks that `show`, `ls`, `logs` and `attach` tell of a run what its own last record told.
#[track_caller]
fn agrees(rig: &Rig, ran: &Ran) {
    let finished = ran.finished();
    let run = word(&finished, "run");
    let shown = rig.call(&["show", run, "--output", "json"]);
    let shown: Value = serde_json::from_str(shown.out()).unwrap();
    for key in shown["finished"].as_object().unwrap().keys() {
        assert_eq!(shown["finished"][key], finished[key], "{key}");
    }
    for key in ["outcome", "debt", "cost_usd", "background"] {
        assert_eq!(shown[key], finished[key], "{key}");
    }
    assert_eq!(shown["turns"]["total"], finished["turns"]["total"]);
    assert_eq!(list(&shown, "decisions").iter().map(decision).collect::<Vec<_>>(), ran.decisions());

    let rows = lines_of(&rig.call(&["ls", "--all", "--output", "json"]));
    let row = list(&rows, "lines").iter().find(|row| row["run"] == run).unwrap();
    assert_eq!((&row["outcome"], &row["reason"]), (&finished["outcome"], &finished["reason"]));
    assert_eq!((&row["debt"], &row["turns"]), (&finished["debt"], &finished["turns"]["total"]));

    let human = rig.call(&["show", run]);
    assert!(
        human.out().contains(&format!("{}: {}", word(&finished, "outcome"), word(&finished, "message"))),
        "{human}"
    );
    assert!(human.out().contains(word(&finished, "hint")), "{human}");
    for task in list(&finished, "background") {
        let beginning = format!("{} {} · {}", word(task, "kind"), word(task, "id"), word(task, "state"));
        assert!(human.out().contains(&beginning), "{beginning} in {human}");
        assert_eq!(human.out().contains("not collected"), finished["debt"] != 0, "{human}");
    }
    let listed = rig.call(&["ls", "--all"]);
    assert!(listed.out().contains(run) && listed.out().contains(word(&finished, "outcome")), "{listed}");
    assert!(rig.call(&["ls"]).out().is_empty(), "it is over");

    let logged = rig.call(&["logs", run, "--output", "ndjson"]);
    assert_eq!(logged.records(), ran.records(), "a replay tells the same");
    let attached = rig.call(&["attach", run, "--output", "json"]);
    assert_eq!(attached.code, ran.code, "{attached}");
    assert_eq!(serde_json::from_str::<Value>(attached.out()).unwrap(), finished);
}

/// Returns lines of JSON as one list.
#[track_caller]
fn lines_of(ran: &Ran) -> Value {
    let lines: Vec<Value> = ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    json!({ "lines": lines })
}
