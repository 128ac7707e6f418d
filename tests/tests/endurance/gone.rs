//! Pieces that vanish behind bursar's back: folders, mirrors, holders, agents. What is said of it is true.

use std::fs;

use bursar_testkit::scripted::Action;
use bursar_testkit::{AgentScript, AttemptScript, Reply, Shell};
use rustix::process::Signal;

use crate::rig::{Rig, Running, lives, send, until};

fn two_parts() -> AttemptScript {
    let words = "word ".repeat(2000);
    AttemptScript::new().reply(
        Reply::new().text(&format!("one {words}")).touch("begun").await_file("go").text("two").success(),
    )
}

#[test]
fn a_folder_that_is_deleted_on_the_host_is_told_and_the_agent_can_be_stopped() {
    let rig = Rig::new(two_parts());
    let (running, run) = rig.run_until(&[], "go on", "begun");
    let agent = rig.agent_pids()[0];
    fs::remove_dir_all(rig.attempt_dir(&run, 1).parent().unwrap()).unwrap();
    let ran = running.ended();
    let finished = ran.finished("lost", 6);
    assert!(finished["message"].as_str().unwrap().contains("folder was removed"), "{ran}");
    assert!(lives(agent), "nobody was told to end it");
    // Every next step that is told of works.
    let hint = finished["hint"].as_str().unwrap();
    assert!(hint.contains(&format!("bursar stop {run}")), "{hint}");
    assert_eq!(rig.attach(&run).code, 6);
    let stopped = rig.call(&["stop", &run]);
    assert_eq!(stopped.code, 0, "{stopped}");
    until("the agent's end", || !lives(agent));
    rig.assert_nothing_left();
    assert_eq!(rig.runs()[0]["outcome"], "lost", "the store still tells how it ended");
}

#[test]
fn a_folder_that_is_deleted_while_bursar_is_dead_is_told_as_well() {
    let rig = Rig::new(two_parts());
    let (running, run) = rig.run_until(&[], "go on", "begun");
    running.kill();
    fs::remove_dir_all(rig.attempt_dir(&run, 1).parent().unwrap()).unwrap();
    let ran = rig.attach(&run);
    ran.finished("lost", 6);
    assert_eq!(rig.call(&["stop", &run]).code, 0);
    rig.assert_nothing_left();
}

#[test]
fn a_mirror_that_was_cut_or_deleted_is_fetched_from_the_host_again() {
    for keep in [None, Some(0), Some(1000)] {
        let rig = Rig::new(two_parts());
        let (running, run) = rig.run_until(&[], "go on", "begun");
        until("the first words", || {
            fs::metadata(rig.mirror(&run, 1)).is_ok_and(|mirror| mirror.len() > 10_000)
        });
        running.kill();
        match keep {
            Some(length) => {
                fs::File::options().write(true).open(rig.mirror(&run, 1)).unwrap().set_len(length).unwrap();
            }
            None => fs::remove_file(rig.mirror(&run, 1)).unwrap(),
        }
        rig.agent.release("go").unwrap();
        let ran = rig.attach(&run);
        ran.finished("done", 0);
        assert_eq!(ran.events("text").len(), 2, "{ran}");
        rig.assert_mirrored(&run, 1);
    }
}

#[test]
fn a_mirror_that_is_lost_on_both_sides_is_said_and_the_run_can_be_stopped() {
    let rig = Rig::new(two_parts());
    let (running, run) = rig.run_until(&[], "go on", "begun");
    until("the first words", || fs::metadata(rig.mirror(&run, 1)).is_ok_and(|mirror| mirror.len() > 10_000));
    running.kill();
    fs::remove_file(rig.mirror(&run, 1)).unwrap();
    fs::remove_dir_all(rig.attempt_dir(&run, 1).parent().unwrap()).unwrap();
    let ran = rig.attach(&run);
    ran.complains(6, &[&run, "lost output", &format!("bursar stop {run}")]);
    let stopped = rig.call(&["stop", &run]);
    assert_eq!(stopped.code, 0, "the next step works: {stopped}");
    rig.assert_nothing_left();
    assert_eq!(rig.runs().len(), 1);
}

#[test]
fn a_mirror_of_a_run_that_is_over_can_be_gone() {
    let rig = Rig::new(AttemptScript::new().reply(Reply::new().text("one").success()));
    rig.run(&[], "go on").finished("done", 0);
    let run = rig.only_run();
    fs::remove_file(rig.mirror(&run, 1)).unwrap();
    for command in [["attach", run.as_str()], ["show", &run], ["logs", &run]] {
        let ran = rig.call(&command);
        assert!([0, 6].contains(&ran.code), "{command:?}: {ran}");
        assert!(ran.code == 0 || ran.stderr.contains("hint:"), "{command:?}: {ran}");
    }
    assert_eq!(rig.runs()[0]["outcome"], "done");
}

#[test]
fn a_holder_that_is_killed_leaves_an_agent_that_is_followed_and_continued() {
    let shell = Shell::new("b1", "sleep 1; echo built > built");
    let reply = Reply::new().text("one").touch("begun").await_file("go").max_turns(50);
    let next = Reply::new().text("two").launch(shell).text("it builds").success();
    let rig = Rig::new(AttemptScript::new().reply(reply).reply(next));
    let (running, run) = rig.run_until(&[], "build", "begun");
    let holder = rig.holder_pid(&run);
    send(holder, Signal::KILL);
    until("the holder's end", || !lives(holder));
    rig.agent.release("go").unwrap();
    let ran = running.ended();
    let finished = ran.finished("done", 0);
    assert_eq!((&finished["continues"]["used"], rig.agent.starts().unwrap()), (&1.into(), 1), "{ran}");
    assert_eq!(ran.events("attempt_ended")[0]["end"]["how"], "vanished", "nobody recorded how it ended");
    assert!(rig.home.work().join("built").exists());
    rig.assert_mirrored(&run, 1);
    rig.assert_nothing_left();
}

#[test]
fn holder_and_agent_killed_while_bursar_is_dead_is_told_and_resumed() {
    let script = AgentScript::new(two_parts())
        .then(AttemptScript::new().reply(Reply::new().text("once more").success()));
    let rig = Rig::of(&script);
    let (running, run) = rig.run_until(&[], "go on", "begun");
    let (holder, agent) = (rig.holder_pid(&run), rig.agent_pids()[0]);
    running.kill();
    send(holder, Signal::KILL);
    send(agent, Signal::KILL);
    let ran = rig.attach(&run);
    let finished = ran.finished("done", 0);
    assert_eq!(finished["continues"]["used"], 1, "{ran}");
    assert_eq!(ran.events("attempt_ended")[0]["end"]["how"], "vanished", "{ran}");
    assert_eq!(rig.agent.starts().unwrap(), 2);
    let second = rig.agent.log().unwrap();
    assert!(format!("{second:?}").contains("--resume"), "the second goes on with the first's session");
}

#[test]
fn an_agent_killed_while_bursar_is_dead_is_told_and_resumed() {
    let script = AgentScript::new(two_parts())
        .then(AttemptScript::new().reply(Reply::new().text("once more").success()));
    let rig = Rig::of(&script);
    let (running, run) = rig.run_until(&[], "go on", "begun");
    running.kill();
    send(rig.agent_pids()[0], Signal::KILL);
    let ran = rig.attach(&run);
    let finished = ran.finished("done", 0);
    let ended = &ran.events("attempt_ended")[0]["end"];
    assert_eq!((&ended["how"], &ended["signal"]), (&"exited".into(), &9.into()), "{ran}");
    assert_eq!(finished["continues"]["used"], 1, "{ran}");
    assert_eq!(finished["attempts"].as_array().unwrap().len(), 2);
    rig.assert_mirrored(&run, 2);
}

#[test]
fn an_orphan_is_waited_for_and_not_started_twice() {
    let shell = Shell::new("b1", "sleep 3; echo built >> built");
    let first = AttemptScript::new()
        .reply(Reply::new().launch(shell).touch("begun").then(Action::Park).without_result());
    let script = AgentScript::new(first)
        .then(AttemptScript::new().otherwise(Reply::new().harvest("b1").text("it is built").success()));
    let rig = Rig::of(&script);
    let (running, run) = rig.run_until(&[], "build", "begun");
    until("bursar's knowledge of the launch", || rig.call(&["show", &run]).text().contains("shell b1"));
    send(rig.agent_pids()[0], Signal::KILL);
    let ran = running.ended();
    ran.finished("done", 0);
    assert!(rig.home.work().join("built").exists(), "{ran}");
    assert_eq!(fs::read_to_string(rig.home.work().join("built")).unwrap(), "built\n");
    let decisions: Vec<_> = ran.events("decision").into_iter().map(|one| one["reason"].clone()).collect();
    assert!(decisions.contains(&"orphan_running".into()), "{decisions:?}");
    assert_eq!(rig.agent.starts().unwrap(), 2);
}

#[test]
fn a_restart_of_the_host_while_bursar_is_dead_is_told_and_resumed() {
    let script = AgentScript::new(two_parts())
        .then(AttemptScript::new().reply(Reply::new().text("once more").success()));
    let rig = Rig::of(&script);
    let (running, run) = rig.run_until(&[], "go on", "begun");
    let (holder, agent) = (rig.holder_pid(&run), rig.agent_pids()[0]);
    running.kill();
    send(holder, Signal::KILL);
    send(agent, Signal::KILL);
    // What a restart leaves: a process that is noted with the id of another boot.
    let noted = rig.attempt_dir(&run, 1).join("pid");
    let mut words: Vec<String> = fs::read_to_string(&noted).unwrap().split(' ').map(str::to_owned).collect();
    words[2] = "00000000-0000-4000-8000-000000000000".to_owned();
    fs::write(&noted, words.join(" ")).unwrap();
    let ran = rig.attach(&run);
    ran.finished("done", 0);
    let ended = &ran.events("attempt_ended")[0]["end"];
    assert_eq!((&ended["how"], &ended["rebooted"]), (&"vanished".into(), &true.into()), "{ran}");
    assert_eq!(rig.agent.starts().unwrap(), 2);
}

#[test]
fn a_run_that_is_watched_by_nobody_ends_by_itself_and_is_judged_later() {
    let rig = Rig::new(two_parts());
    let running = Running::start(rig.run_command(&["--no-hold"]).arg("go on"));
    rig.wait_for("begun");
    let run = rig.only_run();
    running.kill();
    rig.agent.release("go").unwrap();
    until("the agent's end", || rig.attempt_dir(&run, 1).join("exit").exists());
    rig.attach(&run).finished("done", 0);
}
