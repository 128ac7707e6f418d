//! Disks that are full or cannot be written: the run stops being driven, the agent does not stop running.

use std::fs;
use std::os::unix::fs::symlink;

use bursar_testkit::{AttemptScript, Reply};

use crate::disk::Disk;
use crate::rig::{Rig, Running, id, lives, until};

fn talk(mut reply: Reply) -> Reply {
    let words = "word ".repeat(20_000);
    for part in 0..30 {
        reply = reply.text(&format!("{part} {words}"));
    }
    reply
}

/// Waits for the test, says 3 MB, waits again.
fn long_winded() -> AttemptScript {
    let reply = talk(Reply::new().text("one").touch("begun").await_file("go"));
    AttemptScript::new()
        .reply(reply.touch("further").await_file("on").text("two").success())
        .otherwise(Reply::new().text("short").success())
}

/// A laptop whose disk is small, and a host with room: the runs' folders lie elsewhere.
fn small_laptop(rig: &Rig, size: &str) -> Disk {
    let disk = Disk::mount(rig, &rig.home.state(), size);
    let roomy = rig.home.root().join("roomy");
    fs::create_dir(&roomy).unwrap();
    fs::create_dir(disk.path(&rig.state())).unwrap();
    symlink(&roomy, disk.path(&rig.state()).join("runs")).unwrap();
    disk
}

#[test]
fn a_disk_that_fills_up_during_a_run_loses_nothing() {
    let rig = Rig::new(long_winded());
    let disk = small_laptop(&rig, "8m");
    let running = Running::start(&mut disk.inside(rig.run_command(&[]).arg("talk")));
    rig.wait_for("begun");
    let run = id(&disk.call(&rig, &["ls", "--output", "json"]).records()[0]);
    disk.fill_up_to(1 << 20);
    rig.agent.release("go").unwrap();
    let ran = running.ended();
    ran.complains(6, &["no space is left", &run, "bursar attach", "bursar gc"]);
    rig.wait_for("further");
    assert!(lives(rig.agent_pids()[0]), "the agent goes on");

    // It is still there to be seen, and nothing that is tried makes it worse.
    let listed = disk.call(&rig, &["ls", "--output", "json"]);
    assert_eq!(listed.records()[0]["run"], run.as_str(), "{listed}");
    assert_eq!(disk.call(&rig, &["show", &run]).code, 0);
    disk.call(&rig, &["attach", &run]).complains(6, &["no space is left"]);
    assert!(lives(rig.agent_pids()[0]), "the agent goes on");

    disk.free();
    rig.agent.release("on").unwrap();
    let ran = disk.call(&rig, &["attach", "--output", "ndjson", &run]);
    ran.finished("done", 0);
    assert_eq!(ran.events("text").len(), 32, "every word of it");
    let mirror = fs::read(disk.path(&rig.mirror(&run, 1))).unwrap();
    assert!(mirror == fs::read(disk.path(&rig.attempt_dir(&run, 1)).join("out")).unwrap());
    assert_eq!((rig.agent.starts().unwrap(), rig.agent.messages().unwrap().len()), (1, 1));
}

#[test]
fn a_full_disk_is_cleaned_by_the_command_that_is_named() {
    // The first run is over and lies in the way of the second.
    let old = AttemptScript::new().reply(talk(talk(Reply::new())).success());
    let rig = Rig::of(&bursar_testkit::AgentScript::new(old).then(long_winded()));
    let disk = small_laptop(&rig, "16m");
    disk.run(&rig, "talk").finished("done", 0);
    let running = Running::start(&mut disk.inside(rig.run_command(&[]).arg("talk")));
    rig.wait_for("begun");
    let run = id(&disk.call(&rig, &["ls", "--output", "json"]).records()[0]);
    disk.fill();
    rig.agent.release("go").unwrap();
    running.ended().complains(6, &["no space is left", "bursar gc"]);

    let cleaned = disk.call(&rig, &["gc", "--older-than", "0s"]);
    assert_eq!(cleaned.code, 0, "{cleaned}");
    rig.agent.release("on").unwrap();
    let ran = disk.call(&rig, &["attach", "--output", "ndjson", &run]);
    ran.finished("done", 0);
    assert_eq!(ran.events("text").len(), 32, "every word of it");
}

#[test]
fn a_disk_that_is_full_from_the_beginning_starts_nothing() {
    let rig = Rig::new(AttemptScript::new().otherwise(Reply::new().text("short").success()));
    let disk = small_laptop(&rig, "1m");
    disk.fill();
    disk.run(&rig, "talk").complains(5, &["no space is left", "free some space"]);
    assert_eq!(rig.agent.starts().unwrap(), 0);
    disk.free();
    disk.run(&rig, "talk").finished("done", 0);
    assert_eq!(disk.call(&rig, &["ls", "--all", "--output", "json"]).records().len(), 1);
}

#[test]
fn a_host_without_room_refuses_the_run() {
    let rig = Rig::new(AttemptScript::new().otherwise(Reply::new().text("short").success()));
    let runs = rig.state().join("runs");
    fs::create_dir_all(&runs).unwrap();
    let disk = Disk::mount(&rig, &runs, "64k");
    disk.fill();
    // A prompt larger than what may be left in some corner.
    let ran = disk.run(&rig, &"talk ".repeat(20_000));
    let finished = ran.finished("refused", 5);
    assert_eq!(finished["reason"], "no_space", "{ran}");
    assert!(finished["hint"].as_str().unwrap().contains("make room"), "{ran}");
    assert_eq!(rig.agent.starts().unwrap(), 0);
    disk.free();
    disk.run(&rig, "talk").finished("done", 0);
}

#[test]
fn output_that_the_agent_itself_could_not_write_is_never_taken_for_all_of_it() {
    // One disk for both sides, as on a laptop: what the agent prints while it is full is lost to everybody.
    let rig = Rig::new(long_winded());
    let disk = Disk::mount(&rig, &rig.home.state(), "4m");
    let running = Running::start(&mut disk.inside(rig.run_command(&[]).arg("talk")));
    rig.wait_for("begun");
    let run = id(&disk.call(&rig, &["ls", "--output", "json"]).records()[0]);
    disk.fill_up_to(300 << 10);
    rig.agent.release("go").unwrap();
    rig.wait_for("further");
    running.ended().complains(6, &["no space is left", &run]);
    disk.free();
    rig.agent.release("on").unwrap();
    let ran = disk.call(&rig, &["attach", "--output", "ndjson", &run]);
    let finished = ran.finished("done", 0);
    assert!(finished["skipped_lines"].as_u64().unwrap() > 0, "it says that something is missing: {ran}");
}

#[test]
fn a_read_only_home_is_said_with_a_way_out() {
    let rig = Rig::new(AttemptScript::new().otherwise(Reply::new().text("short").success()));
    let disk = Disk::mount(&rig, &rig.home.state(), "8m");
    disk.run(&rig, "talk").finished("done", 0);
    let run = id(&disk.call(&rig, &["ls", "--all", "--output", "json"]).records()[0]);
    disk.remount("ro");
    let state = rig.state().to_string_lossy().into_owned();
    for args in [vec!["ls"], vec!["show", &run], vec!["attach", &run], vec!["gc"], vec!["stop", &run]] {
        let ran = disk.call(&rig, &args);
        ran.complains(5, &["cannot be written", &state, "XDG_STATE_HOME"]);
    }
    disk.run(&rig, "talk").complains(5, &["cannot be written", &state, "XDG_STATE_HOME"]);
    // The way out that is named.
    let other = rig.home.root().join("other");
    fs::create_dir(&other).unwrap();
    let elsewhere = |args: &[&str]| {
        let mut command = rig.bursar(args);
        command.env("XDG_STATE_HOME", &other);
        Running::start(&mut disk.inside(&command)).ended()
    };
    let agent = rig.agent.path();
    let ran = elsewhere(&["run", "--output", "ndjson", "--agent-path", agent.to_str().unwrap(), "talk"]);
    ran.finished("done", 0);
    disk.remount("rw");
    assert_eq!(disk.call(&rig, &["show", &run]).code, 0, "nothing was lost");
}

#[test]
fn a_read_only_home_of_a_host_refuses_the_run() {
    let rig = Rig::new(AttemptScript::new().otherwise(Reply::new().text("short").success()));
    let runs = rig.state().join("runs");
    fs::create_dir_all(&runs).unwrap();
    let disk = Disk::mount(&rig, &runs, "1m");
    disk.remount("ro");
    let ran = disk.run(&rig, "talk");
    let finished = ran.finished("refused", 5);
    let words = format!("{} {}", finished["message"], finished["hint"]);
    assert!(words.contains("read-only") || words.contains("Read-only"), "{ran}");
    assert_eq!(rig.agent.starts().unwrap(), 0);
    disk.remount("rw");
    disk.run(&rig, "talk").finished("done", 0);
    until("the end", || rig.home.processes().len() <= 1);
}
