//! `bursar fold` on captures and on files that are none.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::json;
use support::{Home, json_lines};

fn capture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    path.canonicalize().unwrap().into_os_string().into_string().unwrap()
}

#[test]
fn a_walk_away_that_was_woken_folds_to_done() {
    let home = Home::new();
    let file = capture("claude-2.1.332/d-walkaway/stream.jsonl");
    let printed = home.run(&["fold", &file]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    assert_snapshot!(printed.stdout.replace(&file, "[file]"));

    let printed = home.run(&["fold", "--output", "json", &file]);
    assert_snapshot!(printed.stdout.replace(&file, "[file]"));
}

#[test]
fn files_are_judged_one_by_one_and_with_run_together() {
    let home = Home::new();
    let files = ["g-sigkill-text.1-walkaway", "g-sigkill-text.2-resume"]
        .map(|name| capture(&format!("claude-2.1.332/{name}/stream.jsonl")));
    let [first, second] = &files;

    let apart = json_lines(&home.run(&["fold", "--output", "json", first, second]).stdout);
    assert_eq!(apart.len(), 2);
    assert_eq!(apart[0]["file"], json!(first));

    let together = json_lines(&home.run(&["fold", "--output", "json", "--run", first, second]).stdout);
    assert_eq!(together.len(), 1);
    let replies = |value: &serde_json::Value| value["replies"].as_array().unwrap().len();
    assert_eq!(replies(&together[0]), replies(&apart[0]) + replies(&apart[1]));
}

#[test]
fn a_file_that_cannot_be_judged_is_named_and_the_others_are_judged() {
    let home = Home::new();
    let file = capture("claude-2.1.332/a-text/stream.jsonl");
    std::fs::write(home.path().join("notes.txt"), "buy milk\nand bread\n").unwrap();
    let printed = home.run(&["fold", "--output", "json", "nowhere.jsonl", "notes.txt", &file]);
    assert_eq!(printed.code, 2);
    assert_eq!(json_lines(&printed.stdout)[0]["outcome"], "done");
    assert_snapshot!(printed.stderr);
}

#[test]
fn an_empty_file_is_never_success() {
    let home = Home::new();
    std::fs::write(home.path().join("empty.jsonl"), "").unwrap();
    let args = ["fold", "--output", "json", "--exit-code", "0", "empty.jsonl"];
    let folded = json_lines(&home.run(&args).stdout);
    assert_eq!(folded[0]["decision"], json!({"action": "continue", "reason": "no_result"}));
    let args = [&args[..], &["--continues-used", "3"]].concat();
    let folded = json_lines(&home.run(&args).stdout);
    assert_eq!(folded[0]["outcome"], "exhausted");
}

#[test]
fn nothing_in_a_file_commands_the_terminal() {
    let home = Home::new();
    let evil = "\u{1b}]0;x\u{7}\u{202e}";
    let launch = json!({"type": "assistant", "session_id": format!("s{evil}"), "message": {"role": "assistant", "content": [
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x", "description": evil, "run_in_background": true}}]}});
    let result = json!({"type": "user", "session_id": "s", "tool_use_result": {"backgroundTaskId": format!("b{evil}")},
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": evil}]}});
    std::fs::write(home.path().join("evil.jsonl"), format!("{launch}\n{result}\n")).unwrap();
    for form in ["human", "json"] {
        let printed = home.run(&["fold", "--output", form, "evil.jsonl"]);
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        assert!(!printed.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{}", printed.stdout);
        assert!(printed.stdout.contains("202e"), "{}", printed.stdout);
    }
}
