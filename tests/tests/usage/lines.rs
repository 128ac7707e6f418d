//! Command lines that are wrong, and surroundings that are bare.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use bursar_testkit::{AttemptScript, Reply};

use crate::rig::{Rig, Running};

fn short() -> AttemptScript {
    AttemptScript::new().otherwise(Reply::new().text("short").success())
}

#[test]
fn a_wrong_command_line_starts_nothing_and_leaves_no_run() {
    let rig = Rig::new(short());
    fs::write(rig.home.work().join("file"), "").unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--dir", "nowhere", "talk"], &["nowhere", "local", "does not exist", "--dir"]),
        (&["--dir", "file", "talk"], &["file", "local", "is not a folder", "--dir"]),
        (&["--dir", "file/below", "talk"], &["local", "--dir"]),
        (&[""], &["prompt is empty", "bursar run"]),
        (&[" \n\t"], &["prompt is empty", "bursar run"]),
        (&["-"], &["prompt is empty", "bursar run"]),
        (&[], &["prompt"]),
        (&["--nonsense", "talk"], &["--nonsense", "--help"]),
        (&["--hold", "1m", "--no-hold", "talk"], &["--hold", "--no-hold", "cannot be used with"]),
        (&["--hold", "10", "talk"], &["10", "number and a unit", "30m"]),
        (&["--hold", "5x", "talk"], &["5x", "number and a unit"]),
        (&["--hold", "-5s", "talk"], &["-5"]),
        (&["--hold", "99999999999999999d", "talk"], &["99999999999999999d", "longer than"]),
        (&["--max-wait", "soon", "talk"], &["soon", "number and a unit"]),
        (&["--timeout", "", "talk"], &["--timeout"]),
        (&["--max-turns", "0", "talk"], &["--max-turns", "0"]),
        (&["--max-turns", "many", "talk"], &["--max-turns", "many"]),
        (&["--continues", "-1", "talk"], &["-1"]),
        (&["--max-cost", "0", "talk"], &["--max-cost", "above 0"]),
        (&["--max-cost", "nan", "talk"], &["--max-cost", "above 0"]),
        (&["--env", "SURELY_NOT_SET", "talk"], &["SURELY_NOT_SET", "not set", "export SURELY_NOT_SET="]),
        (&["--env", "A=b", "talk"], &["A=b", "not the name of a variable"]),
        (&["--host", "elsewhere", "talk"], &["elsewhere", "--host local"]),
        (&["--agent", "unheard-of", "talk"], &["unheard-of", "claude", "--agent-path"]),
        (&["--as", "king", "talk"], &["king", "kanban"]),
        (&["two", "prompts"], &["prompts", "--help"]),
    ];
    for (args, words) in cases {
        let ran = rig.run_without_prompt(args);
        ran.complains(2, words);
        assert!(ran.stderr.starts_with("error:"), "{ran}");
        assert_eq!(ran.stdout, b"", "{ran}");
    }
    for args in [
        &["nonsense"][..],
        &["run", "--output", "xml", "talk"],
        &["show"],
        &["send", "x"],
        &["completions", "cmd"],
        &["gc", "--older-than", "9"],
    ] {
        rig.call(args).complains(2, &["error:"]);
    }
    let odd = OsString::from_vec(b"say \xff".to_vec());
    let ran = Running::start(rig.run_command(&[]).arg(odd)).ended();
    ran.complains(2, &["the prompt is not valid UTF-8", "iconv"]);
    assert_eq!(rig.agent.starts().unwrap(), 0);
    assert!(!rig.state().exists(), "no store was made");
}

impl Rig {
    #[track_caller]
    fn run_without_prompt(&self, args: &[&str]) -> crate::rig::Ran {
        Running::start(&mut self.run_command(args)).ended()
    }
}

#[test]
fn an_agent_that_cannot_be_started_is_refused_with_where_it_was_looked_for() {
    let rig = Rig::new(short());
    let run = |path: Option<&str>| {
        let mut command = rig.bursar(&["run", "--output", "ndjson"]);
        if let Some(path) = path {
            command.args(["--agent-path", path]);
        }
        // So that none that is installed here is found.
        command.env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh");
        Running::start(command.arg("talk")).ended()
    };
    fs::write(rig.home.work().join("plain"), "no program").unwrap();
    fs::create_dir(rig.home.work().join("folder")).unwrap();
    let broken = rig.home.work().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();

    for path in ["./missing", "plain", "folder"] {
        let ran = run(Some(path));
        let finished = ran.finished("refused", 5);
        assert_eq!(finished["reason"], "no_agent", "{ran}");
        let words = format!("{} {}", finished["message"], finished["hint"]);
        let name = path.trim_start_matches("./");
        assert!(words.contains(&format!("work/{name}")) && words.contains("--agent-path"), "{ran}");
        assert!(words.contains("local"), "{ran}");
    }
    let ran = run(None);
    let finished = ran.finished("refused", 5);
    let words = format!("{} {}", finished["message"], finished["hint"]);
    for place in ["/usr/bin", ".local/bin", "--agent-path"] {
        assert!(words.contains(place), "every place is named, {place} too: {ran}");
    }
    // It is there and may be run, but does not: that is the agent's failure, and never taken for success.
    let ran = run(Some("./broken"));
    assert!([1, 4, 5].contains(&ran.code), "{ran}");
    assert_eq!(rig.runs().len(), 5, "all of it is told by the store");
    assert_eq!(rig.agent.starts().unwrap(), 0);
    rig.assert_nothing_left();
}

#[test]
fn bare_surroundings_are_enough_or_are_said() {
    let rig = Rig::new(short());
    let mut command = rig.run_command(&[]);
    command.arg("talk").env_remove("HOME").env_remove("XDG_STATE_HOME");
    Running::start(&mut command).ended().complains(2, &["XDG_STATE_HOME", "HOME", "set HOME"]);
    let mut command = rig.run_command(&[]);
    command.arg("talk").env("HOME", "relative").env_remove("XDG_STATE_HOME");
    Running::start(&mut command).ended().complains(2, &["HOME"]);
    assert_eq!(rig.agent.starts().unwrap(), 0);

    // A store is all that is needed.
    let mut command = rig.run_command(&[]);
    command.arg("talk").env_clear().env("XDG_STATE_HOME", rig.home.state());
    Running::start(&mut command).ended().finished("done", 0);
    let mut command = rig.run_command(&[]);
    command.arg("talk").env("TMPDIR", "/no/such/folder").env("TERM", "no-such-terminal").env("LANG", "C");
    Running::start(&mut command).ended().finished("done", 0);
    // A folder that is deleted while one is in it.
    let gone = rig.home.root().join("gone");
    fs::create_dir(&gone).unwrap();
    let mut command = rig.home.command("/bin/sh");
    command.args(["-c", "cd \"$0\" && rmdir \"$0\" && exec \"$@\""]).arg(&gone).arg(rig.program());
    command.args(["run", "--agent-path"]).arg(rig.agent.path()).arg("talk");
    Running::start(&mut command).ended().complains(2, &["current folder", "--dir"]);
}

#[test]
fn json_is_exactly_one_object() {
    let rig = Rig::new(short());
    let mut command = rig.bursar(&["run", "--output", "json", "--agent-path"]);
    let ran = Running::start(command.arg(rig.agent.path()).arg("talk")).ended();
    ran.finished("done", 0);
    assert_eq!((ran.records().len(), ran.text().lines().count()), (1, 1), "{ran}");
    let run = rig.only_run();
    for args in [
        vec!["attach", "--output", "json", &run],
        vec!["show", "--output", "json", &run],
        vec!["ls", "--all", "--output", "json"],
        vec!["stop", "--output", "json", &run],
        vec!["gc", "--output", "json"],
    ] {
        let ran = rig.call(&args);
        assert_eq!((ran.code, ran.records().len(), ran.text().lines().count()), (0, 1, 1), "{args:?}: {ran}");
        assert_eq!(ran.records()[0]["v"], 1, "{args:?}");
    }
}

#[test]
fn colour_and_width_are_respected() {
    let rig = Rig::new(short());
    rig.run(&[], &"a long prompt ".repeat(30)).finished("done", 0);
    let run = rig.only_run();
    for args in [vec!["ls", "--all"], vec!["show", &run], vec!["attach", &run], vec!["logs", &run]] {
        let colourful = |options: &[&str], no_color: &str| {
            let mut command = rig.bursar(&args);
            command
                .args(options)
                .env("NO_COLOR", no_color)
                .env("TERM", "xterm-256color")
                .env("COLUMNS", "30");
            let ran = Running::start(&mut command).ended();
            assert_eq!(ran.code, 0, "{ran}");
            format!("{}{}", ran.text(), ran.stderr).contains('\u{1b}')
        };
        assert!(!colourful(&[], ""), "{args:?}: a pipe is no terminal");
        assert!(!colourful(&[], "1"), "{args:?}");
        assert!(colourful(&["--color", "always"], ""), "{args:?}");
        assert!(!colourful(&["--color", "never"], ""), "{args:?}");
    }
    for columns in ["20", "1", "0", "nonsense", "99999999999999999999"] {
        let mut command = rig.bursar(&["ls", "--all"]);
        let ran = Running::start(command.env("COLUMNS", columns)).ended();
        assert_eq!(ran.code, 0, "{columns}: {ran}");
        if columns == "20" {
            assert!(ran.text().lines().all(|line| line.chars().count() <= 20), "{ran}");
        }
    }
}

#[test]
fn completions_are_scripts_for_their_shell() {
    let rig = Rig::new(short());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = rig.call(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        for word in ["bursar", "attach", "max-turns"] {
            assert!(ran.text().contains(word), "{shell}: {word}");
        }
        if shell == "bash" {
            let script = rig.home.root().join("completions");
            fs::write(&script, &ran.stdout).unwrap();
            let checked = Running::start(rig.home.command("bash").arg("-n").arg(&script)).ended();
            assert_eq!((checked.code, checked.stderr.as_str()), (0, ""));
        }
    }
    rig.call(&["completions", "cmd"]).complains(2, &["cmd", "bash"]);
}
