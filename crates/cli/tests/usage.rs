//! What the command line says when nothing runs: help, wrong usage, an unknown run, a store that cannot be used.

mod support;

use insta::assert_snapshot;
use support::Home;

#[test]
fn help_fits_100_columns_and_names_every_exit_code() {
    let home = Home::new();
    for args in [&["--help"][..], &["run", "--help"]] {
        let printed = home.run(args);
        assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
        for line in printed.stdout.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for code in [
            "0  done",
            "1  failed",
            "2  usage",
            "3  stranded",
            "4  exhausted",
            "5  refused",
            "6  lost",
            "7  needs_input",
            "8  stopped",
            "9  limited",
            "70  a bug",
        ] {
            assert!(printed.stdout.contains(code), "{code}");
        }
    }
}

#[test]
fn help_of_every_command() {
    let home = Home::new();
    assert_snapshot!("help", home.run(&["--help"]).stdout);
    assert_snapshot!("help_short", home.run(&["-h"]).stdout);
    for command in
        ["run", "attach", "ls", "show", "logs", "send", "stop", "gc", "fold", "schema", "completions"]
    {
        assert_snapshot!(format!("help_{command}"), home.run(&[command, "--help"]).stdout);
    }
}

#[test]
fn a_wrong_command_line_exits_with_2_and_says_what_to_do() {
    let home = Home::new();
    let mut told = String::new();
    for args in [
        &["run"][..],
        &["run", ""],
        &["run", "  \n"],
        &["run", "fix", "the", "test"],
        &["run", "x", "--resume", "zzz"],
        &["run", "x", "--host", "build-3"],
        &["run", "x", "--pool", "all"],
        &["run", "x", "--key", "card-7"],
        &["run", "x", "--permissions", "ask"],
        &["run", "x", "--agent", "other"],
        &["run", "x", "--dir", "nowhere"],
        &["run", "x", "--dir", "/dev/null"],
        &["run", "x", "--env", "NOT_SET_ANYWHERE"],
        &["run", "x", "--env", "A=b"],
        &["run", "x", "--hold", "30"],
        &["run", "x", "--hold", "5m", "--no-hold"],
        &["run", "x", "--max-turns", "0"],
        &["run", "x", "--max-cost", "-1"],
        &["run", "x", "--as", "nobody"],
        &["run", "x", "--log-file", "no/such/folder/log"],
        &["attach"],
        &["attach", "zzz"],
        &["show", "zzz"],
        &["logs", "zzz"],
        &["stop", "zzz"],
        &["send", "zzz", "hello"],
        &["fold", "nowhere.jsonl"],
        &["fold", "/dev"],
        &["frobnicate"],
    ] {
        let printed = home.run(args);
        assert_eq!((printed.code, printed.stdout.as_str()), (2, ""), "{args:?}: {}", printed.stderr);
        told.push_str(&format!("$ bursar {}\n{}\n", args.join(" "), printed.stderr));
    }
    assert_snapshot!(told);
    assert!(!home.store().exists(), "a wrong command line leaves nothing behind");
}

#[test]
fn a_prompt_that_is_not_utf_8_is_refused() {
    let home = Home::new();
    let printed = home.run_with_stdin(&["run", "-"], b"caf\xe9");
    assert_snapshot!(printed.whole(), @r"
    exit 2
    --- stdout
    --- stderr
    error: the prompt is not valid UTF-8
    hint: agents take UTF-8 only; convert it first, for example with iconv
    ");
}

#[test]
fn commands_that_only_look_make_no_store() {
    let home = Home::new();
    assert_snapshot!(home.run(&["ls"]).whole(), @r#"
    exit 0
    --- stdout
    --- stderr
    no runs yet; `bursar run "..."` makes the first one
    "#);
    assert_eq!(home.run(&["ls", "--output", "json"]).whole(), "exit 0\n--- stdout\n--- stderr\n");
    assert_snapshot!(home.run(&["gc"]).whole(), @r"
    exit 0
    --- stdout
    removed 0 runs (0 KB)
    --- stderr
    ");
    assert!(!home.store().exists());
}

#[test]
fn without_a_home_there_is_no_store() {
    let home = Home::new();
    let output = home.command(&["ls"]).env_remove("HOME").output().unwrap();
    assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r"
    error: there is no place for the store: neither XDG_STATE_HOME nor HOME names a folder
    hint: set HOME, or set XDG_STATE_HOME to a folder that you can write to
    ");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_store_that_cannot_be_made_starts_nothing() {
    let home = Home::new();
    // A file where the folder should be: root is stopped by it too, which a mode of 0500 does not do.
    std::fs::write(home.path().join(".local"), "").unwrap();
    let printed = home.run(&["run", "x", "--agent-path", "/bin/true"]);
    assert_eq!(printed.code, 5, "{}", printed.stderr);
    assert!(printed.stderr.contains("error: the store at [home]/.local/state/bursar"), "{}", printed.stderr);
    assert!(printed.stderr.contains("caused by: "), "{}", printed.stderr);
    let hint = "hint: nothing was started; set XDG_STATE_HOME to a folder you can write\n";
    assert!(printed.stderr.ends_with(hint), "{}", printed.stderr);
}

#[test]
fn a_store_that_is_no_database_is_said_to_be_damaged() {
    let home = Home::new();
    std::fs::create_dir_all(home.store()).unwrap();
    std::fs::write(home.store().join("runs.db"), "no database\n".repeat(400)).unwrap();
    let printed = home.run(&["ls"]);
    assert_eq!(printed.code, 5);
    assert!(printed.stderr.contains("is damaged") && printed.stderr.contains("hint: "), "{}", printed.stderr);
}

#[test]
fn help_is_a_command_too() {
    let home = Home::new();
    assert_eq!(home.run(&["help"]).whole(), home.run(&["--help"]).whole());
    assert_eq!(home.run(&["help", "send"]).whole(), home.run(&["send", "--help"]).whole());
}

#[test]
fn each_kind_of_wrong_agent_path_is_told_apart() {
    let home = Home::new();
    std::fs::write(home.path().join("plain"), "").unwrap();
    let mut told = String::new();
    for path in ["nowhere", ".", "plain"] {
        let printed = home.run(&["run", "x", "--agent-path", path]);
        assert_eq!((printed.code, printed.stdout.as_str()), (5, ""), "{}", printed.stderr);
        for line in
            printed.stderr.lines().filter(|line| line.starts_with(['r', 'h']) && !line.starts_with("run "))
        {
            told.push_str(&format!("{line}\n"));
        }
    }
    assert_snapshot!(told, @r"
    refused: the agent's program `[home]/nowhere` on `local` does not exist (no_agent)
    hint: check the spelling, or leave --agent-path out to have it looked for
    refused: the agent's program `[home]` on `local` is a folder (no_agent)
    hint: --agent-path takes the program in it, such as [home]/claude
    refused: the agent's program `[home]/plain` on `local` is not executable (no_agent)
    hint: chmod +x [home]/plain, if --agent-path names the right file
    ");
}

#[test]
fn a_stream_is_judged_from_stdin() {
    let home = Home::new();
    let printed = home.run_with_stdin(&["fold", "-"], b"");
    assert_eq!((printed.code, printed.stdout.lines().next()), (0, Some("-")), "{}", printed.stderr);
}

#[test]
fn completions_name_the_commands() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let printed = home.run(&["completions", shell]);
        assert_eq!(printed.code, 0);
        assert!(printed.stdout.contains("attach") && !printed.stdout.contains("--background-"), "{shell}");
    }
}

#[test]
fn a_log_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    home.run(&["ls", "--log-file", "log"]);
    let mode = std::fs::metadata(home.path().join("log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
