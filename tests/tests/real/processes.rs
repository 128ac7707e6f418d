//! What runs on the host beside the agent: stopped with the run, told of when it stays, and never given a secret.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bursar_testkit::{Gate, Script, Step, on_every_version};
use serde_json::json;

use crate::going::Going;
use crate::rig::{PATIENCE, Rig, list, word};

#[test]
fn a_stop_from_another_terminal_leaves_nothing_of_the_run() {
    on_every_version(|version| {
        let stubborn = "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; echo $$ > grandchild; sleep 300' & \
                        while :; do sleep 0.2; done";
        let script = Script::new()
            .then(Step::background_shell(stubborn))
            .then(Step::text("it runs"))
            .then(Step::text("nobody hears this").forever());
        let rig = Rig::new(version, script);
        let going = rig.start(&[], "serve");
        let run = going.run();
        going.decision("hold/background_running");
        rig.wait_for_file("grandchild");
        let grandchild: i32 =
            crate::rig::until("the grandchild's id", || rig.text_of("grandchild").trim().parse().ok());
        assert!(rig.processes().iter().any(|process| process.pid == grandchild));

        let stop = rig.call(&["stop", &run]);
        assert_eq!(stop.code, 0, "{stop}");
        let ran = going.finish();
        let finished = ran.ended("stopped", 8);
        assert_eq!(finished["survivors"], json!([]), "{ran}");
        assert_eq!(rig.left(), [], "{ran}");
        assert!(word(&finished, "message").contains("nothing of the run is left"), "{ran}");

        let again = rig.call(&["stop", &run]);
        assert_eq!(again.code, 0, "{again}");
        assert!(again.out().contains("was over already") && again.out().contains("stopped"), "{again}");
    });
}

#[test]
fn a_message_sent_to_a_run_reaches_the_model_and_is_waited_for() {
    on_every_version(|version| {
        // Once between two tools, where the agent takes it into its reply; once in its last words, where it answers later.
        for last in [Step::shell("true"), Step::text("painted")] {
            let gate = Gate::new();
            let script = Script::new()
                .then(Step::shell("true"))
                .then(last.gated(&gate))
                .then(Step::text("in blue, then").forever());
            let rig = Rig::new(version, script);
            let going = rig.start(&[], "paint the fence");
            let run = going.run();
            rig.model.wait_for_requests(2, PATIENCE).unwrap();
            let sent = rig.call(&["send", &run, "and make it *blue*; $HOME"]);
            assert_eq!(sent.code, 0, "{sent}");
            // The driver has looked for wishes twice when it has written this one into the journal.
            crate::rig::until("the message in the journal", || {
                journal_holds(&rig, "make it *blue*; $HOME").then_some(())
            });
            gate.open();
            let ran = going.finish();
            let finished = ran.ended("done", 0);
            assert_eq!(rig.told("and make it *blue*; $HOME").len(), 1, "{ran}");
            assert_eq!(word(&finished, "text"), "in blue, then", "{ran}");
        }
    });
}

/// Whether a text is in the input of an agent of this rig.
fn journal_holds(rig: &Rig, text: &str) -> bool {
    let mut found = false;
    each_file(&rig.home.state().join("bursar/runs"), &mut |path, bytes| {
        let input = path.parent().is_some_and(|folder| folder.ends_with("in"));
        found |= input && String::from_utf8_lossy(bytes).contains(text);
    });
    found
}

#[test]
fn a_process_left_running_is_asked_about_once_listed_and_can_be_stopped_afterwards() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::shell("nohup sleep 300 > /dev/null 2>&1 & echo started"))
            .then(Step::text("the server is up"))
            .then(Step::text("it is meant to stay: it is the server"));
        let rig = Rig::new(version, script);
        let ran = rig.run(&[], "start the server");
        let finished = ran.ended("done", 0);
        assert_eq!(ran.decisions(), ["nudge/left_running", "finish/settled"], "{ran}");
        assert_eq!(finished["nudges"]["used"], 1);
        let nudge = &rig.told("These processes of yours run at this moment")[0];
        assert!(nudge.new_mentions("sleep 300") > 0, "{:?}", nudge.new_texts());

        let [survivor] = list(&finished, "survivors") else { panic!("one survivor: {ran}") };
        assert_eq!(word(survivor, "command"), "sleep 300");
        let left: Vec<i64> = rig.left().iter().map(|process| process.pid.into()).collect();
        assert_eq!(left, [survivor["pid"].as_i64().unwrap()], "{ran}");
        assert!(word(&finished, "message").contains("1 process was left running"), "{ran}");

        let run = word(&finished, "run");
        assert!(word(&finished, "hint").contains(&format!("bursar stop {run}")), "{ran}");
        let stop = rig.call(&["stop", run]);
        assert_eq!(stop.code, 0, "{stop}");
        assert_eq!(rig.left(), [], "{stop}");
        assert!(stop.out().contains("was over already") && stop.out().contains("1 process"), "{stop}");
    });
}

#[test]
fn a_secret_reaches_the_agent_and_lies_nowhere() {
    on_every_version(|version| {
        let secret = format!("hush-{:016x}", RandomState::new().hash_one(version));
        let gate = Gate::new();
        let script = Script::new()
            .then(Step::shell("printenv DOOR_CODE > received"))
            .then(Step::text("received").gated(&gate));
        let rig = Rig::new(version, script);
        let log = rig.home.root().join("bursar.log");
        let mut command = rig.run_command(&["--env", "DOOR_CODE", "-vv", "--log-file"]);
        command.arg(&log).arg("open the door").env("DOOR_CODE", &secret);

        let over = AtomicBool::new(false);
        let on_argv = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut seen = BTreeSet::new();
                while !over.load(Ordering::Relaxed) {
                    seen.extend(command_lines_with(&secret));
                }
                seen
            });
            let going = Going::begin(&mut command);
            rig.model.wait_for_requests(2, PATIENCE).unwrap();
            assert_eq!(files_with(rig.home.root(), &secret), ["work/received"], "{version} while it runs");
            gate.open();
            let ran = going.finish();
            over.store(true, Ordering::Relaxed);
            ran.ended("done", 0);
            assert!(!ran.out().contains(&secret) && !ran.stderr.contains(&secret), "{ran}");
            watch.join().unwrap()
        });
        assert_eq!(on_argv, BTreeSet::new());
        assert_eq!(rig.text_of("received").trim(), secret);
        assert_eq!(files_with(rig.home.root(), &secret), ["work/received"], "{version} after the run");
    });
}

/// Returns the command lines on this machine that hold this text.
fn command_lines_with(needle: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(needle)).collect()
}

/// Returns the files below a folder that hold this text, their names included, by their path from there.
fn files_with(root: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_file(root, &mut |path, bytes| {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if name.contains(needle) || bytes.windows(needle.len()).any(|window| window == needle.as_bytes()) {
            found.push(name);
        }
    });
    found.sort();
    found
}

/// Reads every regular file below a folder; what goes away meanwhile is passed over.
fn each_file(folder: &Path, each: &mut impl FnMut(&Path, &[u8])) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => each_file(&path, each),
            Ok(kind) if kind.is_file() => {
                if let Ok(bytes) = fs::read(&path) {
                    each(&path, &bytes);
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
}
