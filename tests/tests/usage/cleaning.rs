//! `gc`: what is over is removed on both sides, what goes on is never touched.

use std::fs;

use bursar_testkit::{AgentScript, AttemptScript, Reply};

use crate::rig::{Rig, id, send, until};
use rustix::process::Signal;

fn waiting() -> AttemptScript {
    AttemptScript::new().reply(Reply::new().text("one").touch("begun").await_file("go").text("two").success())
}

fn short() -> AttemptScript {
    AttemptScript::new().otherwise(Reply::new().text("short").success())
}

#[test]
fn what_is_over_is_removed_on_both_sides_and_living_runs_stay() {
    let rig = Rig::of(&AgentScript::new(short()).then(waiting()).then(waiting()));
    rig.run(&[], "talk").finished("done", 0);
    let over = rig.only_run();
    // One that is driven, and one whose driver was killed.
    let driven = crate::rig::Running::start(rig.run_command(&[]).arg("talk"));
    rig.wait_for("begun");
    let first: Vec<String> = rig.runs().iter().map(id).filter(|run| *run != over).collect();
    fs::remove_file(rig.agent.folder().join("begun")).unwrap();
    let killed = crate::rig::Running::start(rig.run_command(&[]).arg("talk"));
    rig.wait_for("begun");
    killed.kill();
    let living: Vec<String> = rig.runs().iter().map(id).filter(|run| *run != over).collect();
    assert_eq!((first.len(), living.len()), (1, 2));

    let kept = rig.call(&["gc"]);
    assert!(kept.text().contains("removed 0 runs"), "nothing is old enough: {kept}");
    let ran = rig.call(&["gc", "--older-than", "0s"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.text().contains("removed 1 run"), "{ran}");
    assert!(!rig.mirror(&over, 1).exists() && !rig.attempt_dir(&over, 1).exists());
    let left: Vec<String> = rig.runs().iter().map(id).collect();
    assert_eq!(left, living);

    rig.agent.release("go").unwrap();
    driven.ended().finished("done", 0);
    for run in &living {
        rig.attach(run).finished("done", 0);
    }
    let ran = rig.call(&["gc", "--older-than", "0s", "--output", "json"]);
    assert_eq!(ran.records()[0]["runs"].as_array().map(Vec::len), Some(2), "{ran}");
    assert_eq!(rig.runs(), Vec::<serde_json::Value>::new());
    let empty = |folder: &str| fs::read_dir(rig.state().join(folder)).map_or(0, Iterator::count);
    assert_eq!((empty("mirror"), empty("runs")), (0, 0), "no litter");
    rig.call(&["show", &over]).complains(2, &["no run", &over]);
}

#[test]
fn an_agent_whose_run_is_not_in_the_store_is_left_alone() {
    let rig = Rig::new(waiting());
    let (running, run) = rig.run_until(&[], "talk", "begun");
    running.kill();
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(rig.state().join(format!("runs.db{suffix}"))).ok();
    }
    // A store without any run knows no host; one with another run does.
    let other = Rig::new(short());
    let mut command = rig.bursar(&["run", "--agent-path"]);
    command.arg(other.agent.path()).arg("talk");
    assert_eq!(crate::rig::Running::start(&mut command).ended().code, 0);
    let agent = rig.agent_pids()[0];
    assert_eq!(rig.call(&["gc", "--older-than", "0s"]).code, 0);
    assert!(crate::rig::lives(agent));
    assert!(rig.attempt_dir(&run, 1).join("out").exists(), "what it says is still kept");
    send(agent, Signal::KILL);
    until("its end", || rig.attempt_dir(&run, 1).join("exit").exists());
}
