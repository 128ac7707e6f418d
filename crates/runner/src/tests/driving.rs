//! A run driven from begin to end.

use std::time::Duration;

use bursar_core::event::Ask;
use bursar_core::outcome::Ending;
use tokio::sync::mpsc;

use super::{Setup, names, records};
use crate::{Update, attend, updates};

#[tokio::test(start_paused = true)]
async fn a_run_is_driven_through_messages_and_attempts_to_its_end() {
    let setup = Setup::new(&["text hello\nask one\n", "text again\nagain\nclose\n", "text second\nclose\n"]);
    let (finished, told) = setup.attend().await;
    let finished = finished.unwrap();
    assert_eq!((finished.outcome, finished.exit_code), (Ending::Done, 0));
    assert_eq!(
        names(&told),
        [
            "run_started",
            "attempt_started",
            "text",
            "decision",
            "text",
            "attempt_ended",
            "attempt_started",
            "text",
            "attempt_ended",
            "decision",
            "run_finished"
        ]
    );
    assert!(told.iter().all(|update| !matches!(update, Update::Replayed(_))));
    assert_eq!(setup.host.journals(), ["one\n", ""]);
    setup.assert_mirrored();
}

#[tokio::test(start_paused = true)]
async fn a_replay_tells_the_same_records_as_the_live_run() {
    let setup = Setup::new(&["text hello\nask one\n", "text again\nclose\n"]);
    let (_, told) = setup.attend().await;
    let live = records(&told);
    assert_eq!(live, setup.replayed());
    let numbers: Vec<_> = live.iter().map(|record| record.seq).collect();
    assert_eq!(numbers, (1..=u64::try_from(live.len()).unwrap()).collect::<Vec<_>>());

    // Attending a run that is over tells it again and contacts nobody.
    setup.host.set_down(true);
    let (again, told) = setup.attend().await;
    assert_eq!(again.unwrap().outcome, Ending::Done);
    assert_eq!(records(&told), live);
    assert!(told.iter().all(|update| !matches!(update, Update::Live(_))));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_comes_on_time() {
    let setup = Setup::new(&["wake 5000\n", "close\n"]);
    let begun = tokio::time::Instant::now();
    let (finished, told) = setup.attend().await;
    finished.unwrap();
    assert!(names(&told).contains(&"remark"));
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_millis(5100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_comes_when_the_wall_clock_jumps_over_it() {
    let setup = Setup::new(&["text up\nwake 3600000\n", "close\n"]);
    let begun = tokio::time::Instant::now();
    let jump = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The laptop slept for two hours.
        setup.clock.jump(2 * 3_600_000);
    };
    let ((finished, _), ()) = tokio::join!(setup.attend(), jump);
    finished.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_neither_turns_time_nor_delays_a_deadline() {
    let setup = Setup::new(&["text up\nwake 10000\n", "close\n"]);
    let begun = tokio::time::Instant::now();
    let jump = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        setup.clock.jump(-3_600_000);
    };
    let ((finished, told), ()) = tokio::join!(setup.attend(), jump);
    finished.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(11), "{:?}", begun.elapsed());
    let times: Vec<_> = told
        .iter()
        .filter_map(|update| if let Update::Live(record) = update { Some(record.at) } else { None })
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_here_reaches_the_agent() {
    let setup = Setup::new(&["text up\n", "close\n"]);
    let (send, _reader) = updates();
    let (ask, asks) = mpsc::channel(1);
    ask.send(Ask::Say { text: "hi".to_owned() }).await.unwrap();
    attend(&setup.context, &setup.run, &send, asks).await.unwrap();
    assert_eq!(setup.host.journals(), ["hi\n"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_start_that_is_under_way() {
    let setup = Setup::new(&["text up\n"]);
    let (send, _reader) = updates();
    let (ask, asks) = mpsc::channel(1);
    ask.send(super::stop()).await.unwrap();
    let finished = attend(&setup.context, &setup.run, &send, asks).await.unwrap();
    assert_eq!(finished.outcome, Ending::Done);
    assert_eq!((setup.host.starts(), setup.host.stops()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_gone_stops_nothing() {
    let setup = Setup::new(&["text hello\nask one\n", "close\n"]);
    let (send, reader) = updates();
    drop(reader);
    let (_, asks) = mpsc::channel(1);
    let finished = attend(&setup.context, &setup.run, &send, asks).await.unwrap();
    assert_eq!(finished.outcome, Ending::Done);
}

#[tokio::test(start_paused = true)]
async fn a_name_without_a_value_is_said_and_the_others_reach_the_host() {
    let mut setup = Setup::new(&["close\n"]);
    let mut new = super::new_run("withenv2");
    new.env = vec!["SET".to_owned(), "UNSET".to_owned()];
    setup.context.store.create(&new, bursar_core::At(1)).unwrap();
    setup.run = new.request.run;
    setup.context.environment =
        std::sync::Arc::new(|name| if name == "SET" { Some(b"value".to_vec()) } else { None });
    let (_, told) = setup.attend().await;
    let warnings: Vec<_> = told
        .iter()
        .filter_map(|update| if let Update::Warning(text) = update { Some(text) } else { None })
        .collect();
    assert_eq!(warnings, ["the agent starts without UNSET: asked for with --env, but not set here"]);
    assert_eq!(setup.host.env(), [("SET".to_owned(), b"value".to_vec())]);
}

#[tokio::test(start_paused = true)]
async fn much_output_becomes_few_entries_of_the_log() {
    let mut said = String::new();
    while said.len() < 4 << 20 {
        said.push_str("text 0123456789012345678901234567890123456789\n");
    }
    said.push_str("close\n");
    let setup = Setup::new(&[&said]);
    setup.host.hand_out(64 * 1024);
    setup.attend().await.0.unwrap();
    setup.assert_mirrored();
    let entries = setup.context.store.entries(&setup.run, 0, 1000).unwrap();
    assert!(entries.len() < 40, "{}", entries.len());
}
