//! Writing to the agent: once, in order, without ever hanging, and with an end that comes when we say so.

use bursar_transport::{AppendError, Appended, AttemptStatus, FollowEvent};

use super::{Fixture, bounded, kill, lives, next, until};

pub async fn input_stays_open_until_it_is_closed(fixture: Fixture) {
    let mut spec = fixture.script("while read -r line; do echo \"got $line\"; done; echo end");
    spec.input = b"one\n".to_vec();
    fixture.start(&spec).await;
    let mut follower = bounded(fixture.holder.follow(&spec.at, 0)).await.unwrap();
    let mut output = Vec::new();
    let mut length = 4;
    for line in ["", "two\n", "three\n"] {
        length = bounded(fixture.holder.append(&spec.at, length, line.as_bytes())).await.unwrap().length;
        let wanted = output.len() + 4 + if line.is_empty() { 4 } else { line.len() };
        while output.len() < wanted {
            match next(&mut follower).await.unwrap() {
                FollowEvent::Output { bytes, .. } => output.extend_from_slice(&bytes),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(output, b"got one\ngot two\ngot three\n");
    assert!(matches!(fixture.status(&spec.at).await, AttemptStatus::Living { held: true, .. }));
    bounded(fixture.holder.close_input(&spec.at, length)).await.unwrap();
    assert!(fixture.follow(&spec.at, 0).await.0.ends_with(b"end\n"));
}

pub async fn an_append_that_is_repeated_counts_once(fixture: Fixture) {
    let spec = fixture.program(&["cat"]);
    fixture.start(&spec).await;
    let first = bounded(fixture.holder.append(&spec.at, 0, b"once\n")).await.unwrap();
    assert_eq!(first, Appended { length: 5, already: false, agent_gone: false });
    for _ in 0..3 {
        let again = bounded(fixture.holder.append(&spec.at, 0, b"once\n")).await.unwrap();
        assert_eq!(again, Appended { length: 5, already: true, agent_gone: false });
    }
    bounded(fixture.holder.append(&spec.at, 5, b"twice\n")).await.unwrap();
    // Also when later entries came since.
    assert!(bounded(fixture.holder.append(&spec.at, 0, b"once\n")).await.unwrap().already);
    bounded(fixture.holder.close_input(&spec.at, 11)).await.unwrap();
    assert_eq!(fixture.follow(&spec.at, 0).await.0, b"once\ntwice\n");
    let late = bounded(fixture.holder.append(&spec.at, 5, b"twice\n")).await.unwrap();
    assert_eq!(late, Appended { length: 11, already: true, agent_gone: true });
}

pub async fn a_conflicting_append_is_told(fixture: Fixture) {
    let mut spec = fixture.program(&["cat"]);
    spec.input = b"12345\n".to_vec();
    fixture.start(&spec).await;
    for (offset, bytes) in [(0, &b"54321\n"[..]), (0, b"123"), (3, b"45\n"), (7, b"gap\n")] {
        match bounded(fixture.holder.append(&spec.at, offset, bytes)).await {
            Err(AppendError::Conflict { length: 6, closed: false, .. }) => {}
            other => panic!("{offset}: {other:?}"),
        }
    }
    bounded(fixture.holder.close_input(&spec.at, 6)).await.unwrap();
    assert_eq!(fixture.follow(&spec.at, 0).await.0, b"12345\n");
}

pub async fn two_appends_at_one_offset_give_one_entry(fixture: Fixture) {
    let spec = fixture.program(&["cat"]);
    fixture.start(&spec).await;
    let tries: Vec<_> = (0..6_u8)
        .map(|n| {
            let (holder, at) = (fixture.holder.clone(), spec.at.clone());
            tokio::spawn(async move { bounded(holder.append(&at, 0, &[b'a' + n, b'\n'])).await })
        })
        .collect();
    let mut won = 0;
    for attempt in tries {
        match attempt.await.unwrap() {
            Ok(appended) => {
                assert!(!appended.already);
                won += 1;
            }
            Err(AppendError::Conflict { length: 2, .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(won, 1);
    bounded(fixture.holder.close_input(&spec.at, 2)).await.unwrap();
    assert_eq!(fixture.follow(&spec.at, 0).await.0.len(), 2);
}

pub async fn an_append_after_the_end_is_told(fixture: Fixture) {
    let spec = fixture.script("read -r line; exit 0");
    let pid = fixture.start(&spec).await;
    kill(pid, "KILL");
    until("its end", || (!lives(pid)).then_some(())).await;
    for _ in 0..2 {
        let error = bounded(fixture.holder.append(&spec.at, 0, b"late\n")).await.unwrap_err();
        assert!(matches!(error, AppendError::AgentGone), "{error:?}");
    }
    let error = bounded(fixture.holder.append(&fixture.attempt(), 0, b"x")).await.unwrap_err();
    assert!(matches!(error, AppendError::NeverStarted), "{error:?}");
}

pub async fn closing_gives_an_end_of_input(fixture: Fixture) {
    let mut spec = fixture.program(&["cat"]);
    spec.input = b"all there is".to_vec();
    fixture.start(&spec).await;
    bounded(fixture.holder.close_input(&spec.at, 12)).await.unwrap();
    let (output, last) = fixture.follow(&spec.at, 0).await;
    assert_eq!(output, b"all there is");
    assert!(matches!(last, FollowEvent::Exited(record) if record.status == 0));
}

pub async fn closing_is_idempotent(fixture: Fixture) {
    let spec = fixture.script("cat; echo closed; read -r x <wait");
    let fifo = fixture.work().join("wait");
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    fixture.start(&spec).await;
    assert!(!bounded(fixture.holder.close_input(&spec.at, 0)).await.unwrap().already);
    assert!(bounded(fixture.holder.close_input(&spec.at, 0)).await.unwrap().already);
    let error = bounded(fixture.holder.close_input(&spec.at, 9)).await.unwrap_err();
    assert!(matches!(error, AppendError::Conflict { length: 0, closed: true, .. }), "{error:?}");
}

pub async fn an_append_after_closing_is_told(fixture: Fixture) {
    let mut spec = fixture.script("cat; read -r x <wait");
    assert!(
        std::process::Command::new("mkfifo").arg(fixture.work().join("wait")).status().unwrap().success()
    );
    spec.input = b"x".to_vec();
    spec.close_after_input = true;
    fixture.start(&spec).await;
    let error = bounded(fixture.holder.append(&spec.at, 1, b"more")).await.unwrap_err();
    assert!(matches!(error, AppendError::Conflict { length: 1, closed: true, .. }), "{error:?}");
}

pub async fn an_agent_that_never_reads_does_not_block_us(fixture: Fixture) {
    let mut spec = fixture.script("read -r x <wait");
    assert!(
        std::process::Command::new("mkfifo").arg(fixture.work().join("wait")).status().unwrap().success()
    );
    spec.input = vec![b'x'; 300_000];
    let pid = fixture.start(&spec).await;
    for n in 0..3 {
        bounded(fixture.holder.append(&spec.at, 300_000 + n * 100_000, &[b'y'; 100_000])).await.unwrap();
    }
    assert!(matches!(fixture.status(&spec.at).await, AttemptStatus::Living { fed: 0, .. }));
    kill(pid, "KILL");
    let (_, last) = fixture.follow(&spec.at, 0).await;
    assert!(matches!(last, FollowEvent::Exited(record) if record.status == 137));
}

pub async fn large_entries_keep_every_byte(fixture: Fixture) {
    let spec = fixture.program(&["cat"]);
    fixture.start(&spec).await;
    let entry: Vec<u8> = (0..=255_u8).cycle().take(700_001).collect();
    let mut length = 0;
    for _ in 0..3 {
        length = bounded(fixture.holder.append(&spec.at, length, &entry)).await.unwrap().length;
    }
    bounded(fixture.holder.close_input(&spec.at, length)).await.unwrap();
    let (output, _) = fixture.follow(&spec.at, 0).await;
    assert!(output == entry.repeat(3), "{} bytes", output.len());
}
