//! Names that a shell, a table or a terminal might trip over.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;

use bursar_testkit::scripted::LogEvent;
use bursar_testkit::{AttemptScript, Reply, Shell};

use crate::rig::{Rig, Running, id};

fn builder() -> AttemptScript {
    let shell = Shell::new("b1", "sleep 0.2; echo built > built");
    AttemptScript::new().otherwise(Reply::new().launch(shell).text("it builds").success())
}

fn names() -> Vec<OsString> {
    let mut names: Vec<OsString> = [
        "two words",
        "it's \"quoted\"",
        "$HOME `id` $(id) \\",
        "two\nlines",
        "\u{1f980} caf\u{e9}",
        "-n",
        "--help",
        "*",
        "~",
        "\u{1b}[2J\u{202e}",
        "ends with a newline\n",
    ]
    .map(OsString::from)
    .into();
    names.push(OsString::from_vec(b"no \xff\xfe utf-8".to_vec()));
    names
}

#[test]
fn an_agent_works_in_a_folder_of_any_name() {
    let rig = Rig::new(builder());
    for (number, name) in names().into_iter().enumerate() {
        let folder = rig.home.work().join(&name);
        fs::create_dir(&folder).unwrap();
        // Named in an option for every second one, and as the folder one is in for the others.
        let mut command = rig.run_command(&[]);
        if number % 2 == 0 {
            let mut option = OsString::from("--dir=");
            option.push(&name);
            command.arg(option);
        } else {
            command.current_dir(&folder);
        }
        let ran = Running::start(command.arg("build it")).ended();
        ran.finished("done", 0);
        assert!(folder.join("built").exists(), "{name:?}: {ran}");
        let run = id(&rig.runs()[0]);
        for args in [vec!["show", run.as_str()], vec!["ls", "--all"], vec!["logs", &run]] {
            let ran = rig.call(&args);
            assert_eq!(ran.code, 0, "{name:?}: {ran}");
            let obeyed = ran.text().chars().any(|c| c == '\u{1b}' || c == '\u{202e}');
            assert!(!obeyed, "{name:?}: a terminal would obey {ran}");
        }
        assert_eq!(rig.call(&["ls", "--all"]).text().lines().count(), number + 2, "{name:?}: one line a run");
    }
    let worked =
        rig.agent.log().unwrap().into_iter().filter(|entry| matches!(entry.event, LogEvent::Started { .. }));
    assert_eq!(worked.count(), names().len());
}

#[test]
fn an_agent_is_started_from_a_path_of_any_name() {
    for name in names() {
        let rig = Rig::new(builder());
        let folder = rig.home.root().join("agents").join(&name);
        fs::create_dir_all(&folder).unwrap();
        for file in ["claude", "agent-script.json"] {
            symlink(fs::canonicalize(rig.agent.folder().join(file)).unwrap(), folder.join(file)).unwrap();
        }
        let mut command = rig.bursar(&["run", "--output", "ndjson", "--agent-path"]);
        let ran = Running::start(command.arg(folder.join("claude")).arg("build it")).ended();
        if std::str::from_utf8(OsStr::as_bytes(&name)).is_err() {
            // The store keeps it as text.
            ran.complains(2, &["the agent's path", "not valid UTF-8"]);
            continue;
        }
        ran.finished("done", 0);
        assert!(rig.home.work().join("built").exists(), "{name:?}: {ran}");
    }
}
