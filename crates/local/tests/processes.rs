//! What only a local host can get wrong: process groups, the driver's end, zombies, and shells of users.

#![allow(clippy::unwrap_used, reason = "tests, with helpers outside #[test]")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bursar_local::LocalHost;
use bursar_testkit::contract::{BOUND, Fixture, Folders, bounded, required, until};
use bursar_transport::{Host, ShellExit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn output(script: &'static str) -> (String, ShellExit) {
    let mut shell = LocalHost::new().open(script.into()).await.unwrap();
    shell.stdin.shutdown().await.unwrap();
    let mut text = String::new();
    bounded(shell.stdout.read_to_string(&mut text)).await.unwrap();
    (text, bounded(shell.exit).await.unwrap())
}

#[tokio::test]
async fn a_script_has_its_own_process_group() {
    let (text, _) = output("cat /proc/$$/stat\n").await;
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    let pid = text.split(' ').next().unwrap();
    assert_eq!(fields[2], pid, "a Ctrl-C on the terminal would reach it");
}

#[tokio::test]
async fn the_end_of_a_script_is_told() {
    assert_eq!(output("exit 7\n").await.1, ShellExit::Code(7));
    assert_eq!(output("kill -KILL $$\n").await.1, ShellExit::Signal("KILL".to_owned()));
}

#[tokio::test]
async fn stdin_goes_on_after_the_script_and_ends_at_shutdown() {
    let mut shell = LocalHost::new().open("{ echo ready; cat; exit; }\n".into()).await.unwrap();
    // Sent at once, some shells would have read it along with the script.
    let mut ready = [0; 6];
    bounded(shell.stdout.read_exact(&mut ready)).await.unwrap();
    shell.stdin.write_all(b"more").await.unwrap();
    shell.stdin.shutdown().await.unwrap();
    let mut text = String::new();
    bounded(shell.stdout.read_to_string(&mut text)).await.unwrap();
    assert_eq!(text, "more");
}

#[tokio::test]
async fn a_missing_shell_means_that_nothing_ran() {
    let error = LocalHost::new().shell("/no/such/sh", ["-s"]).open("true\n".into()).await.unwrap_err();
    assert!(error.nothing_ran(), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_scripts_leave_no_zombies() {
    for _ in 0..20 {
        drop(LocalHost::new().open("{ cat; exit; }\n".into()).await.unwrap());
    }
    let me = std::process::id().to_string();
    let zombies = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let stats = all.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter(|stat| stat.rsplit_once(") ").unwrap().1.starts_with(&format!("Z {me} "))).count()
    };
    until("no zombies", || (zombies() == 0).then_some(())).await;
}

/// A host whose user has this login shell, with start-up files that print, and set the PATH late.
fn user(shell: &Path, files: &[&str], text: &str) -> Fixture {
    let folders = Folders::new();
    let home = folders.root.path().join("home");
    let tools = home.join("my tools");
    fs::create_dir(&tools).unwrap();
    let agent = tools.join("agent-y");
    fs::write(&agent, "#!/bin/sh\n").unwrap();
    assert!(Command::new("chmod").arg("755").arg(agent).status().unwrap().success());
    for file in files {
        let path = home.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let host =
        LocalHost::new().envs(folders.variables()).env("SHELL", shell).env("ENV", home.join(".mkshrc"));
    folders.with(Arc::new(host))
}

const NOISE: &str = "echo Welcome; printf 'no newline'; echo oops >&2\n\
    [ -z \"$BURSAR_RESOLVING_ENVIRONMENT\" ] || export PATH=\"$HOME/my tools:$PATH\"\n";

async fn finds(fixture: Fixture) {
    let found = bounded(fixture.holder.find_agent("agent-y", None)).await.unwrap();
    let home = fixture.root.path().join("home");
    assert_eq!(found.path, home.join("my tools/agent-y").to_str().unwrap().as_bytes());
    let path = String::from_utf8(found.env_path).unwrap();
    assert!(path.starts_with(&format!("{}/my tools:", home.display())), "{path}");
    assert!(path.contains(":/"), "the whole PATH: {path}");
}

#[tokio::test]
async fn an_agent_is_found_by_the_path_of_bash() {
    finds(user(&required("bash", "bash"), &[".bashrc", ".bash_profile"], NOISE)).await;
}

#[tokio::test]
async fn an_agent_is_found_by_the_path_of_zsh() {
    finds(user(&required("zsh", "zsh"), &[".zshrc"], NOISE)).await;
}

#[tokio::test]
async fn an_agent_is_found_by_the_path_of_mksh() {
    finds(user(&required("mksh", "mksh"), &[".mkshrc"], NOISE)).await;
}

#[tokio::test]
async fn an_agent_is_found_by_the_path_of_fish() {
    let text = "echo Welcome\nset -gx PATH \"$HOME/my tools\" $PATH\n";
    finds(user(&required("fish", "fish"), &[".config/fish/config.fish"], text)).await;
}

#[tokio::test]
async fn a_shell_that_never_gets_ready_is_killed_with_its_group() {
    let text = "sleep 1000 & echo $! >~/sleeper; trap '' TERM INT HUP; sleep 1000\n";
    let fixture = user(&required("bash", "bash"), &[".bashrc", ".bash_profile"], text);
    let home = fixture.root.path().join("home");
    let since = Instant::now();
    bounded(fixture.holder.find_agent("agent-y", None)).await.unwrap_err();
    assert!(since.elapsed() > Duration::from_secs(4) && since.elapsed() < BOUND);
    let sleeper: u32 = fs::read_to_string(home.join("sleeper")).unwrap().trim().parse().unwrap();
    until("the end of the sleeper", || (!bursar_testkit::contract::lives(sleeper)).then_some(())).await;
}
