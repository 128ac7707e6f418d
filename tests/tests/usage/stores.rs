//! Stores that this version cannot use: said with the way out, and nothing in them is touched.

use std::fs;
use std::path::Path;

use bursar_testkit::{AttemptScript, Reply};
use rusqlite::Connection;

use crate::rig::{Ran, Rig, id, lives};

fn short() -> AttemptScript {
    AttemptScript::new().otherwise(Reply::new().text("short").success())
}

fn waiting() -> AttemptScript {
    AttemptScript::new().reply(Reply::new().text("one").touch("begun").await_file("go").text("two").success())
}

#[track_caller]
fn set_version(rig: &Rig, version: i64) {
    let store = Connection::open(rig.state().join("runs.db")).unwrap();
    store.pragma_update(None, "user_version", version).unwrap();
}

/// Every command that opens the store.
fn each_command(rig: &Rig, run: &str) -> Vec<Ran> {
    let calls = [
        vec!["ls"],
        vec!["show", run],
        vec!["logs", run],
        vec!["attach", run],
        vec!["send", run, "hello"],
        vec!["stop", run],
        vec!["gc"],
    ];
    let mut all: Vec<Ran> = calls.iter().map(|args| rig.call(args)).collect();
    all.push(rig.run(&[], "talk"));
    all
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let rig = Rig::new(short());
    rig.run(&[], "talk").finished("done", 0);
    let run = rig.only_run();
    set_version(&rig, 99);
    let before = fs::read(rig.state().join("runs.db")).unwrap();
    let state = rig.state().to_string_lossy().into_owned();
    for ran in each_command(&rig, &run) {
        ran.complains(5, &["version 99", &state, "newer bursar", "XDG_STATE_HOME"]);
    }
    assert_eq!(rig.agent.starts().unwrap(), 1);
    assert!(fs::read(rig.state().join("runs.db")).unwrap() == before);
    // The way out that is named.
    let other = rig.home.root().join("other");
    let mut elsewhere = rig.run_command(&[]);
    elsewhere.arg("talk").env("XDG_STATE_HOME", &other);
    crate::rig::Running::start(&mut elsewhere).ended().finished("done", 0);
    set_version(&rig, 1);
    assert_eq!(rig.only_run(), run, "nothing was lost");
}

#[test]
fn a_damaged_store_harms_no_agent_and_can_be_moved_away() {
    for damage in [damage_head, damage_rows, cut] {
        let rig = Rig::new(waiting());
        let (running, run) = rig.run_until(&[], "talk", "begun");
        running.kill();
        let file = rig.state().join("runs.db");
        damage(&file);
        let shown = file.to_string_lossy().into_owned();
        for ran in each_command(&rig, &run) {
            assert!([5, 6].contains(&ran.code), "{ran}");
            ran.complains(
                ran.code,
                &["is damaged", "agents that run are not harmed", &format!("move {shown} away")],
            );
        }
        assert!(lives(rig.agent_pids()[0]));

        // As it says, and no more than that: what SQLite keeps beside the file stays.
        fs::rename(&file, rig.home.root().join("damaged.db")).unwrap();
        assert_eq!(rig.runs(), Vec::<serde_json::Value>::new());
        let again = Rig::new(short());
        let mut command = rig.bursar(&["run", "--output", "ndjson", "--agent-path"]);
        command.arg(again.agent.path()).arg("talk");
        crate::rig::Running::start(&mut command).ended().finished("done", 0);
        assert_eq!(rig.runs().len(), 1);
        assert!(lives(rig.agent_pids()[0]));
    }
}

/// Writes over the beginning of the file.
fn damage_head(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes[..64].fill(b'x');
    fs::write(file, bytes).unwrap();
    drop_log(file);
}

/// Writes over all pages but the first.
fn damage_rows(file: &Path) {
    checkpoint(file);
    let mut bytes = fs::read(file).unwrap();
    bytes[4096..].fill(b'x');
    fs::write(file, bytes).unwrap();
}

/// Cuts the file in the middle of its first page.
fn cut(file: &Path) {
    checkpoint(file);
    fs::File::options().write(true).open(file).unwrap().set_len(1000).unwrap();
}

/// Brings the write-ahead log into the file.
fn checkpoint(file: &Path) {
    let store = Connection::open(file).unwrap();
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

fn drop_log(file: &Path) {
    for suffix in ["-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        // There is none if the last process closed the store.
        fs::remove_file(name).ok();
    }
}

#[test]
fn an_ambiguous_prefix_names_the_runs_and_a_longer_one_is_enough() {
    let rig = Rig::new(short());
    rig.run(&[], "talk").finished("done", 0);
    let run = rig.only_run();
    let store = Connection::open(rig.state().join("runs.db")).unwrap();
    for name in ["zzab2345", "zzac2345", "zzac6789"] {
        store
            .execute(
                "INSERT INTO runs SELECT ?1, NULL, created, host, dir, agent, env, replace(request, ?2, ?1), finished_at,
                 finished FROM runs WHERE id = ?2",
                [name, &run],
            )
            .unwrap();
    }
    for command in ["show", "attach", "logs", "stop"] {
        rig.call(&[command, "zz"]).complains(2, &["3 runs", "`zz`", "zzab2345", "zzac2345", "zzac6789"]);
        rig.call(&[command, "zzac"]).complains(2, &["2 runs", "zzac2345, zzac6789"]);
    }
    let listed: Vec<String> = rig.runs().iter().map(id).collect();
    assert_eq!(listed.len(), 4, "{listed:?}");
    for name in ["zzab", "zzac2", "zzac6789"] {
        assert_eq!(rig.call(&["show", name]).code, 0, "{name}");
    }
}

#[test]
fn an_unknown_run_is_said_with_where_to_look() {
    let rig = Rig::new(short());
    for command in ["show", "attach", "logs", "stop"] {
        rig.call(&[command, "nosuch"]).complains(2, &["`nosuch`", "no runs yet", "bursar run"]);
    }
    assert!(!rig.state().exists(), "looking makes no store");
    rig.run(&[], "talk").finished("done", 0);
    for name in ["nosuch", "", "%", "_", "../..", "\u{1b}[2J", "'; DROP TABLE runs; --"] {
        for command in ["show", "attach", "logs", "stop"] {
            let ran = rig.call(&[command, name]);
            ran.complains(2, &["no run", "bursar ls --all"]);
            assert!(!ran.stderr.contains('\u{1b}'), "{ran}");
        }
        rig.call(&["send", name, "hello"]).complains(2, &["no run", "bursar ls --all"]);
    }
    assert_eq!(rig.runs().len(), 1);
}

#[test]
fn what_is_asked_of_a_run_that_is_over_changes_nothing() {
    let rig = Rig::new(short());
    rig.run(&[], "talk").finished("done", 0);
    let run = rig.only_run();
    rig.call(&["send", &run, "more"]).complains(2, &[&run, "over", "bursar show"]);
    assert_eq!(rig.call(&["show", &run]).code, 0, "the next step works");
    let stopped = rig.call(&["stop", &run]);
    assert_eq!(stopped.code, 0, "{stopped}");
    assert!(stopped.text().contains("was over already"), "{stopped}");
    assert_eq!(rig.attach(&run).code, 0);
    assert_eq!(rig.agent.messages().unwrap().len(), 1);
}
