//! Readers that go away, second terminals, background drivers, Ctrl-C: the run is told truthfully and ends once.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use bursar_testkit::processes::marked;
use bursar_testkit::scripted::Action;
use bursar_testkit::{AttemptScript, Reply, Shell};
use rustix::process::Signal;

use crate::rig::{BOUND, Ran, Rig, Running, lives, until};

/// Talks, waits for the test, and talks again.
fn two_parts() -> AttemptScript {
    AttemptScript::new().reply(
        Reply::new().text("one").shell("ls", "a b").touch("begun").await_file("go").text("two").success(),
    )
}

/// Checks that the records are all there, in order and once.
#[track_caller]
fn assert_whole(ran: &Ran) {
    let numbers: Vec<u64> = ran.records().iter().filter_map(|record| record["seq"].as_u64()).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "{ran}");
}

/// Says about 5 MB.
fn long_talk() -> AttemptScript {
    let words = "word ".repeat(10_000);
    let talk = (0..100).fold(Reply::new(), |reply, part| reply.text(&format!("{part} {words}")));
    AttemptScript::new().reply(talk.success())
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let rig = Rig::new(long_talk());
    let mut running = Running::start_unread(rig.run_command(&[]).arg("talk").stdout(Stdio::piped()));
    let mut stdout = running.stdout();
    let mut some = [0; 100];
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    let ran = running.ended();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran}");

    let run = rig.only_run();
    let attached = rig.attach(&run);
    attached.finished("done", 0);
    assert_whole(&attached);
    rig.assert_mirrored(&run, 1);
}

#[test]
fn a_stdout_that_is_closed_from_the_beginning_does_not_end_the_run() {
    let rig = Rig::new(long_talk());
    let mut command = rig.home.command("/bin/sh");
    command.args(["-c", "exec \"$@\" >&-", "sh"]).arg(rig.program());
    command.args(["run", "--output", "ndjson", "--agent-path"]).arg(rig.agent.path()).arg("talk");
    let ran = Running::start(&mut command).ended();
    assert_eq!(ran.code, 0, "{ran}");
    rig.attach(&rig.only_run()).finished("done", 0);
    rig.assert_mirrored(&rig.only_run(), 1);
}

#[test]
fn a_slow_reader_gets_every_record_and_the_agent_does_not_wait_for_it() {
    let rig = Rig::new(long_talk());
    let mut running = Running::start_unread(rig.run_command(&[]).arg("talk").stdout(Stdio::piped()));
    std::thread::sleep(Duration::from_secs(3));
    let run = rig.only_run();
    assert!(rig.attempt_dir(&run, 1).join("exit").exists(), "the agent has ended meanwhile");
    running.read_on();
    let ran = running.ended();
    ran.finished("done", 0);
    assert_whole(&ran);
    assert_eq!(ran.events("text").len(), 100);
}

#[test]
fn of_two_terminals_one_drives_and_the_other_takes_over_when_it_is_killed() {
    let rig = Rig::new(two_parts());
    let (driver, run) = rig.run_until(&[], "go on", "begun");
    let viewer = Running::start(&mut rig.bursar(&["attach", "--output", "ndjson", &run]));
    let people = Running::start(&mut rig.bursar(&["attach", &run]));
    // So that both watch before there is nothing left to watch.
    viewer.catches(Signal::INT);
    people.catches(Signal::INT);
    let (lived, driven) = driver.kill();
    assert!(lived);
    rig.agent.release("go").unwrap();
    let viewed = viewer.ended();
    viewed.finished("done", 0);
    assert_whole(&viewed);
    assert_eq!(driven.records(), viewed.records()[..driven.records().len()], "both tell the same");
    assert_eq!(driven.events("text").len(), 1, "{driven}");
    assert_eq!(rig.attach(&run).records(), viewed.records());
    let read = people.ended();
    assert_eq!(read.code, 0, "{read}");
    assert!(read.text().contains("one") && read.text().contains("two"), "{read}");
    assert_eq!(rig.agent.starts().unwrap(), 1);
    assert_eq!(rig.agent.messages().unwrap().len(), 1);
}

#[test]
fn a_detached_run_is_finished_in_the_background() {
    let shell = Shell::new("b1", "sleep 1; echo built > built");
    let attempt = AttemptScript::new()
        .reply(Reply::new().text("one").await_file("go").launch(shell).text("it builds").success());
    let rig = Rig::new(attempt);
    let started =
        Running::start(rig.bursar(&["run", "--detach", "--agent-path"]).arg(rig.agent.path()).arg("build"));
    let started = started.ended_within(Duration::from_secs(20));
    assert_eq!(started.code, 0, "{started}");
    let run = started.text().trim().to_owned();
    assert_eq!(run, rig.only_run());
    assert_eq!(rig.agent.messages().map_or(0, |all| all.len()).max(1), 1);

    rig.agent.release("go").unwrap();
    let listed = || rig.runs().remove(0);
    until("the end", || listed()["outcome"] == "done");
    let attached = rig.attach(&run);
    attached.finished("done", 0);
    assert_whole(&attached);
    assert!(rig.home.work().join("built").exists());
    rig.assert_mirrored(&run, 1);
    rig.assert_nothing_left();
}

#[test]
fn ctrl_c_stops_the_run_gracefully_and_leaves_nothing() {
    let shell = Shell::new("b1", "sleep 300");
    let reply = Reply::new().text("one").launch(shell).touch("begun").await_file("never").success();
    let rig = Rig::new(AttemptScript::new().reply(reply));
    let (running, run) = rig.run_until(&[], "build", "begun");
    running.signal(Signal::INT);
    let ran = running.ended();
    let finished = ran.finished("stopped", 8);
    assert_eq!(finished["reason"], "user_stop");
    assert_eq!(finished["survivors"].as_array().map(Vec::len), Some(0), "{ran}");
    assert!(ran.stderr.contains("gracefully"), "{ran}");
    // The stop itself has verified it; only what it was done with may still be on its way out.
    assert_eq!(marked(&format!("BURSAR_RUN={run}")), Vec::<i32>::new(), "everything of the run is gone");
    rig.assert_nothing_left();
    assert_eq!(rig.attach(&run).code, 8);
}

#[test]
fn ctrl_c_twice_stops_at_once() {
    let shell = Shell::new("b1", "trap '' TERM HUP INT; while :; do sleep 1; done");
    let reply = Reply::new().text("one").launch(shell).touch("begun").then(Action::Park);
    let rig = Rig::new(AttemptScript::new().reply(reply.without_result()).ignoring_term());
    let (running, run) = rig.run_until(&[], "build", "begun");
    running.signal(Signal::INT);
    until("the stop that the first one asked for", || rig.runs()[0]["phase"] == "settling");
    running.signal(Signal::INT);
    // The grace of a graceful stop is 10 s.
    let ran = running.ended_within(Duration::from_secs(8));
    ran.finished("stopped", 8);
    // The stop itself has verified it; only what it was done with may still be on its way out.
    assert_eq!(marked(&format!("BURSAR_RUN={run}")), Vec::<i32>::new(), "everything of the run is gone");
    rig.assert_nothing_left();
    assert_eq!(rig.attach(&run).code, 8);
}

#[test]
fn ctrl_c_in_a_second_terminal_leaves_the_run_alone() {
    let rig = Rig::new(two_parts());
    let (driver, run) = rig.run_until(&[], "go on", "begun");
    let viewer = Running::start(&mut rig.bursar(&["attach", &run]));
    viewer.catches(Signal::INT);
    viewer.signal(Signal::INT);
    let left = viewer.ended();
    left.complains(0, &["left run", &run, "bursar attach", "bursar stop"]);
    assert!(lives(rig.agent_pids()[0]));
    rig.agent.release("go").unwrap();
    driver.ended_within(BOUND).finished("done", 0);
}

#[test]
fn a_driver_that_is_interrupted_in_attach_hands_the_run_over() {
    let rig = Rig::new(two_parts());
    let (driver, run) = rig.run_until(&[], "go on", "begun");
    driver.kill();
    let attached = Running::start(&mut rig.bursar(&["attach", &run]));
    attached.catches(Signal::INT);
    attached.signal(Signal::INT);
    attached.ended().complains(0, &["left run", &run]);
    rig.agent.release("go").unwrap();
    until("the end", || rig.runs()[0]["outcome"] == "done");
    assert_whole(&rig.attach(&run));
}
