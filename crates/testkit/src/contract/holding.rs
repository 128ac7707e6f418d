//! The holder itself: what is known when it was killed, and that it leaves nothing behind.

use std::fs;

use bursar_transport::{AgentSignal, AttemptStatus, FollowEvent};

use super::{Fixture, bounded, kill, lives, next, until};

async fn kill_holder(fixture: &Fixture, at: &bursar_transport::AttemptRef) {
    let holder = fixture.holder_pid(at);
    kill(holder, "KILL");
    until("the end of the holder", || (!lives(holder)).then_some(())).await;
}

pub async fn a_killed_holder_leaves_a_living_agent(fixture: Fixture) {
    let spec = fixture.script("echo hello; read -r line; echo \"$line\"; read -r line");
    let pid = fixture.start(&spec).await;
    kill_holder(&fixture, &spec.at).await;
    match fixture.status(&spec.at).await {
        AttemptStatus::Living { pid: living, held, .. } => assert_eq!((living, held), (pid, false)),
        other => panic!("{other:?}"),
    }
    let mut follower = bounded(fixture.holder.follow(&spec.at, 0)).await.unwrap();
    let event = next(&mut follower).await;
    assert!(matches!(event, Some(FollowEvent::Output { .. })), "{event:?}");
}

pub async fn a_killed_holder_leaves_an_end_without_record(fixture: Fixture) {
    let spec = fixture.script("echo hello; read -r line");
    let pid = fixture.start(&spec).await;
    until("its output", || fs::read(fixture.folder(&spec.at).join("out")).ok().filter(|out| out.len() == 6))
        .await;
    kill_holder(&fixture, &spec.at).await;
    kill(pid, "KILL");
    let (output, last) = fixture.follow(&spec.at, 0).await;
    assert_eq!((output, last), (b"hello\n".to_vec(), FollowEvent::Gone));
    assert_eq!(fixture.status(&spec.at).await, AttemptStatus::GoneWithoutRecord);
}

pub async fn input_arrives_though_the_holder_was_killed(fixture: Fixture) {
    let spec = fixture.script("while read -r line; do echo \"$line\" >got; done; echo end >end");
    fixture.start(&spec).await;
    kill_holder(&fixture, &spec.at).await;
    bounded(fixture.holder.append(&spec.at, 0, b"still\n")).await.unwrap();
    assert_eq!(fixture.file("got").await, "still\n");
    bounded(fixture.holder.close_input(&spec.at, 6)).await.unwrap();
    assert_eq!(fixture.file("end").await, "end\n");
}

pub async fn a_reboot_is_told(fixture: Fixture) {
    let spec = fixture.script("echo hello; read -r line");
    let pid = fixture.start(&spec).await;
    until("its output", || fs::read(fixture.folder(&spec.at).join("out")).ok().filter(|out| out.len() == 6))
        .await;
    kill_holder(&fixture, &spec.at).await;
    kill(pid, "KILL");
    let file = fixture.folder(&spec.at).join("pid");
    let text = fs::read_to_string(&file).unwrap();
    let mut words: Vec<&str> = text.split(' ').collect();
    words[2] = "0d0d0d0d-another-boot";
    fs::write(&file, words.join(" ")).unwrap();
    assert_eq!(fixture.status(&spec.at).await, AttemptStatus::Rebooted);
    assert_eq!(fixture.follow(&spec.at, 2).await, (b"llo\n".to_vec(), FollowEvent::Rebooted));
}

pub async fn a_reused_pid_is_not_the_agent(fixture: Fixture) {
    let spec = fixture.script("read -r line");
    let pid = fixture.start(&spec).await;
    kill_holder(&fixture, &spec.at).await;
    kill(pid, "KILL");
    until("its end", || (!lives(pid)).then_some(())).await;
    // Another process with the same pid: this one, which must survive what follows.
    let file = fixture.folder(&spec.at).join("pid");
    let text = fs::read_to_string(&file).unwrap();
    let me = std::process::id().to_string();
    fs::write(&file, text.replacen(&pid.to_string(), &me, 1)).unwrap();
    let signalled = bounded(fixture.holder.signal(&spec.at, AgentSignal::Kill)).await.unwrap();
    assert!(!signalled.sent);
    assert_eq!(signalled.status, AttemptStatus::GoneWithoutRecord);
    let report = bounded(fixture.holder.stop(&spec.at, std::time::Duration::ZERO)).await.unwrap();
    assert_eq!(report.killed, 0);
}

pub async fn an_interrupt_reaches_the_agent(fixture: Fixture) {
    let spec = fixture
        .script("trap 'echo interrupted; exit 9' INT; echo ready >ready; while :; do sleep 0.05; done");
    fixture.start(&spec).await;
    fixture.file("ready").await;
    assert!(bounded(fixture.holder.signal(&spec.at, AgentSignal::Interrupt)).await.unwrap().sent);
    let (output, last) = fixture.follow(&spec.at, 0).await;
    assert_eq!(output, b"interrupted\n");
    assert!(matches!(last, FollowEvent::Exited(record) if record.status == 9));
}

pub async fn a_signal_to_nobody_is_told(fixture: Fixture) {
    let spec = fixture.script("exit 0");
    fixture.run(&spec).await;
    let signalled = bounded(fixture.holder.signal(&spec.at, AgentSignal::Terminate)).await.unwrap();
    assert!(!signalled.sent);
    assert!(matches!(signalled.status, AttemptStatus::Exited(_)));
    assert_eq!(fixture.status(&fixture.attempt()).await, AttemptStatus::NeverStarted);
}

pub async fn stderr_is_kept(fixture: Fixture) {
    let spec = fixture.script("printf 'first\\n\\001\\377last' >&2");
    fixture.run(&spec).await;
    assert_eq!(bounded(fixture.holder.stderr_tail(&spec.at, 100)).await.unwrap(), b"first\n\x01\xfflast");
    assert_eq!(bounded(fixture.holder.stderr_tail(&spec.at, 4)).await.unwrap(), b"last");
    assert_eq!(bounded(fixture.holder.stderr_tail(&fixture.attempt(), 4)).await.unwrap(), b"");
}

pub async fn nothing_of_ours_is_left_at_the_end(fixture: Fixture) {
    let root = fixture.root.path().to_str().unwrap().to_owned();
    let ours = || {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.windows(root.len()).any(|part| part == root.as_bytes()) {
                found.push(fs::read(entry.path().join("cmdline")).unwrap_or_default());
            }
        }
        found
    };
    // An end with its input open, one with unread input, one by a signal, one without a holder.
    let mut unread = fixture.script("exit 0");
    unread.input = vec![b'x'; 200_000];
    for spec in [fixture.script("exit 0"), unread, fixture.script("kill -9 $$")] {
        fixture.run(&spec).await;
    }
    until("no process", || ours().is_empty().then_some(())).await;
    let spec = fixture.script("read -r line");
    let pid = fixture.start(&spec).await;
    kill_holder(&fixture, &spec.at).await;
    kill(pid, "KILL");
    until("its end", || (!lives(pid)).then_some(())).await;
    assert_eq!(fixture.status(&spec.at).await, AttemptStatus::GoneWithoutRecord);
    until("no pump", || ours().is_empty().then_some(())).await;
}
