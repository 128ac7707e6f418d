//! Following: every byte once, from any offset, and a last event that is true.

use std::fs;
use std::time::Instant;

use bursar_transport::FollowEvent;

use super::{Fixture, bounded, next, until};

pub async fn following_begins_at_any_offset(fixture: Fixture) {
    let spec = fixture.script("printf 'zero\\none\\ntwo'");
    let (all, last) = fixture.run(&spec).await;
    assert_eq!(all, b"zero\none\ntwo");
    for from in 0..=all.len() {
        let (rest, end) = fixture.follow(&spec.at, from as u64).await;
        assert_eq!(rest, all[from..], "from {from}");
        assert_eq!(end, last);
    }
}

pub async fn following_goes_on_after_a_cut(fixture: Fixture) {
    let spec = fixture.script("i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); echo line $i; done; read -r x");
    fixture.start(&spec).await;
    let mut got = Vec::new();
    let expected: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    while got.len() < expected.len() {
        let mut follower = bounded(fixture.holder.follow(&spec.at, got.len() as u64)).await.unwrap();
        match next(&mut follower).await.unwrap() {
            // Only a part counts as arrived, as after a cut in the middle.
            FollowEvent::Output { bytes, .. } => got.extend_from_slice(&bytes[..bytes.len().min(7001)]),
            other => panic!("{other:?}"),
        }
    }
    assert!(got == expected.as_bytes());
}

pub async fn an_offset_beyond_the_spool_is_told(fixture: Fixture) {
    let spec = fixture.script("printf 12345");
    fixture.run(&spec).await;
    let (output, last) = fixture.follow(&spec.at, 6).await;
    assert_eq!((output, last), (vec![], FollowEvent::Short { length: 5 }));
}

pub async fn output_without_a_last_newline_arrives(fixture: Fixture) {
    let (output, last) = fixture.run(&fixture.script("printf 'no newline'")).await;
    assert_eq!(output, b"no newline");
    assert!(matches!(last, FollowEvent::Exited(record) if record.spool_length == 10));
}

pub async fn fifty_megabytes_arrive(fixture: Fixture) {
    let spec = fixture.script("yes 0123456789abcdef | head -c 50000000");
    let (output, last) = fixture.run(&spec).await;
    assert_eq!(output.len(), 50_000_000);
    assert!(output.chunks(17).all(|line| b"0123456789abcdef\n".starts_with(line)));
    assert!(matches!(last, FollowEvent::Exited(record) if record.spool_length == 50_000_000));
}

pub async fn output_that_comes_slowly_arrives_at_once(fixture: Fixture) {
    let spec = fixture.script("while read -r line; do printf '%s\\n' \"$line\"; done");
    fixture.start(&spec).await;
    let mut follower = bounded(fixture.holder.follow(&spec.at, 0)).await.unwrap();
    let mut length = 0;
    for n in 0..5 {
        let line = format!("line {n}\n");
        let since = Instant::now();
        length = bounded(fixture.holder.append(&spec.at, length, line.as_bytes())).await.unwrap().length;
        match next(&mut follower).await.unwrap() {
            FollowEvent::Output { bytes, .. } => assert_eq!(bytes, line),
            other => panic!("{other:?}"),
        }
        assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
    }
}

pub async fn output_of_a_child_after_the_exit_is_told_apart(fixture: Fixture) {
    let spec = fixture.script("echo before; { read -r go <go; echo after; } & exit 4");
    let path = fixture.work().join("go");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let (output, last) = fixture.run(&spec).await;
    assert_eq!(output, b"before\n");
    let FollowEvent::Exited(record) = last else { panic!("{last:?}") };
    assert_eq!((record.status, record.spool_length), (4, 7));
    // The child lives, holds stdout, and writes: the record stays what it is, the spool grows.
    tokio::task::spawn_blocking(move || fs::write(path, "go\n")).await.unwrap().unwrap();
    let spool = fixture.folder(&spec.at).join("out");
    until("more output", || (fs::read(&spool).unwrap() == b"before\nafter\n").then_some(())).await;
    let (output, last) = fixture.follow(&spec.at, 7).await;
    assert_eq!(output, b"after\n");
    assert_eq!(last, FollowEvent::Exited(record));
}

pub async fn a_folder_that_was_deleted_is_told(fixture: Fixture) {
    let spec = fixture.script("echo hello; read -r line");
    fixture.start(&spec).await;
    let mut follower = bounded(fixture.holder.follow(&spec.at, 0)).await.unwrap();
    assert!(matches!(next(&mut follower).await, Some(FollowEvent::Output { .. })));
    fs::remove_dir_all(fixture.folder(&spec.at).parent().unwrap()).unwrap();
    assert_eq!(next(&mut follower).await, Some(FollowEvent::Deleted));
    assert_eq!(next(&mut follower).await, None);
}

pub async fn an_attempt_that_never_was_is_told(fixture: Fixture) {
    assert_eq!(fixture.follow(&fixture.attempt(), 0).await, (vec![], FollowEvent::NeverStarted));
}

pub async fn several_attempts_are_followed_by_one_process(fixture: Fixture) {
    let specs: Vec<_> =
        (0..5).map(|n| fixture.script(&format!("yes {n} | head -c 300000; exit {n}"))).collect();
    let mut asked = Vec::new();
    for spec in &specs {
        fixture.start(spec).await;
        asked.push((spec.at.clone(), 0));
    }
    asked.push((fixture.attempt(), 0));
    let mut followers = bounded(fixture.holder.follow_many(&asked)).await.unwrap();
    let mut lengths = [0; 6];
    let mut ends = vec![None; 6];
    while let Some((at, event)) = bounded(followers.next()).await.unwrap() {
        match event {
            FollowEvent::Output { offset, bytes } => {
                assert_eq!(offset, lengths[at]);
                let digit = b'0' + u8::try_from(at).unwrap();
                assert!(bytes.iter().all(|byte| *byte == digit || *byte == b'\n'), "frames are mixed");
                lengths[at] += bytes.len() as u64;
            }
            FollowEvent::CaughtUp => {}
            other => ends[at] = Some(other),
        }
    }
    assert_eq!(lengths, [300_000, 300_000, 300_000, 300_000, 300_000, 0]);
    for (n, end) in ends[..5].iter().enumerate() {
        assert!(
            matches!(end, Some(FollowEvent::Exited(record)) if record.status == i32::try_from(n).unwrap())
        );
    }
    assert_eq!(ends[5], Some(FollowEvent::NeverStarted));
}

pub async fn a_slow_reader_loses_nothing(fixture: Fixture) {
    let spec = fixture.script("yes abcdefg | head -c 4000000");
    fixture.start(&spec).await;
    let mut follower = bounded(fixture.holder.follow(&spec.at, 0)).await.unwrap();
    // The pipes are full and the agent is gone before the first byte is read.
    let record = fixture.folder(&spec.at).join("exit");
    until("the record", || record.exists().then_some(())).await;
    let mut length = 0;
    loop {
        // A future that is dropped half-way loses nothing either.
        drop(tokio::time::timeout(std::time::Duration::ZERO, std::future::pending::<()>()).await);
        match next(&mut follower).await.unwrap() {
            FollowEvent::Output { offset, bytes } => {
                assert_eq!(offset, length);
                length += bytes.len() as u64;
            }
            last => {
                assert!(matches!(last, FollowEvent::Exited(_)), "{last:?}");
                break;
            }
        }
    }
    assert_eq!(length, 4_000_000);
}

pub async fn what_was_there_is_told_from_what_comes(fixture: Fixture) {
    let spec = fixture.script(
        "yes abcdefg | head -c 1000000; echo there >there; read -r line; echo \"$line\"; read -r line",
    );
    fixture.start(&spec).await;
    fixture.file("there").await;
    for from in [0, 999_999, 1_000_000] {
        let mut follower = bounded(fixture.holder.follow(&spec.at, from)).await.unwrap();
        let mut length = from;
        loop {
            match bounded(follower.next()).await.unwrap().unwrap() {
                FollowEvent::Output { bytes, .. } => length += bytes.len() as u64,
                other => {
                    assert_eq!((other, length), (FollowEvent::CaughtUp, 1_000_000), "from {from}");
                    break;
                }
            }
        }
    }
    let mut follower = bounded(fixture.holder.follow(&spec.at, 1_000_000)).await.unwrap();
    assert_eq!(bounded(follower.next()).await.unwrap(), Some(FollowEvent::CaughtUp));
    bounded(fixture.holder.append(&spec.at, 0, b"news\n")).await.unwrap();
    // It is told once.
    let news = bounded(follower.next()).await.unwrap();
    assert!(matches!(news, Some(FollowEvent::Output { offset: 1_000_000, .. })), "{news:?}");
}

pub async fn a_dropped_follower_leaves_no_process(fixture: Fixture) {
    let spec = fixture.script("read -r line");
    fixture.start(&spec).await;
    let root = fixture.root.path().to_str().unwrap().to_owned();
    let ours = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let of_test = |path: std::path::PathBuf| {
            let environment = fs::read(path.join("environ")).ok()?;
            environment.windows(root.len()).any(|part| part == root.as_bytes()).then_some(path)
        };
        all.filter_map(|entry| of_test(entry.path())).count()
    };
    let mut before = usize::MAX;
    until("quiet", || std::mem::replace(&mut before, ours()).eq(&before).then_some(())).await;
    let mut followers = Vec::new();
    for _ in 0..3 {
        let mut follower = bounded(fixture.holder.follow(&spec.at, 0)).await.unwrap();
        drop(tokio::time::timeout(std::time::Duration::from_millis(50), follower.next()).await);
        followers.push(follower);
    }
    until("three more", || (ours() >= before + 3).then_some(())).await;
    drop(followers);
    until("none of them", || (ours() == before).then_some(())).await;
}
