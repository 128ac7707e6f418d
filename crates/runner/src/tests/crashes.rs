//! Drivers that die, at every point where one can, and those that go on after them.

use std::pin::Pin;
use std::task::{Context as Polling, Poll};

use tokio::sync::mpsc;

use super::{Crash, Setup, names};
use crate::record::Record;
use crate::{RunnerError, Update, attend, updates};

const SCRIPT: &[&str] = &[
    "text hello\nask one\n",
    "text again\nwake 50\n",
    "ask two\n",
    "again\nclose\n",
    "text second\nask three\n",
    "text end\nclose\n",
];

async fn undisturbed() -> (Vec<Record>, Vec<String>) {
    let setup = Setup::new(SCRIPT);
    setup.attend().await.0.unwrap();
    (setup.replayed(), setup.host.journals())
}

#[track_caller]
fn assert_same(setup: &Setup, expected: &(Vec<Record>, Vec<String>), when: &str) {
    assert_eq!(setup.replayed(), expected.0, "records, {when}");
    assert_eq!(setup.host.journals(), expected.1, "journals, {when}");
    assert_eq!(setup.host.starts(), expected.1.len(), "processes, {when}");
    setup.assert_mirrored();
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_dies_between_any_two_acts_loses_and_repeats_nothing() {
    let expected = undisturbed().await;
    for point in 0.. {
        let mut setup = Setup::new(SCRIPT);
        setup.context.crash = Crash::at(point);
        let (crashed, before) = setup.attend().await;
        if crashed.is_ok() {
            assert!(point > 50, "only {point} points were tried");
            return;
        }
        assert!(matches!(crashed, Err(RunnerError::Bug { .. })), "{crashed:?}");
        setup.context.crash = Crash::default();
        let (finished, after) = setup.attend().await;
        finished.unwrap();
        assert_same(&setup, &expected, &format!("dead at point {point}"));
        // A record may be told to nobody, since its driver died first, but the next driver tells it as replayed.
        let replayed = after.iter().filter(|update| matches!(update, Update::Replayed(_))).count();
        assert!(replayed >= names(&before).len(), "dead at point {point}");
    }
}

#[tokio::test(start_paused = true)]
async fn driver_after_driver_dies_and_the_run_still_ends_as_if_none_had() {
    let expected = undisturbed().await;
    let mut setup = Setup::new(SCRIPT);
    for drivers in 0.. {
        // Each gets a little further than the log shows, then dies.
        setup.context.crash = Crash::at(3);
        if setup.attend().await.0.is_ok() {
            assert!(drivers > 10, "only {drivers} drivers died");
            break;
        }
    }
    assert_same(&setup, &expected, "after a chain of drivers");
}

/// Polls a future so often, then drops it.
struct CutAfter<F> {
    inner: Pin<Box<F>>,
    polls: u32,
}

impl<F: Future> Future for CutAfter<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, polling: &mut Polling<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        self.inner.as_mut().poll(polling).map(Some)
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_dropped_while_it_waits_loses_and_repeats_nothing() {
    let expected = undisturbed().await;
    for polls in 0.. {
        let setup = Setup::new(SCRIPT);
        let (send, _reader) = updates();
        let (_ask, asks) = mpsc::channel(1);
        let inner = Box::pin(attend(&setup.context, &setup.run, &send, asks));
        let cut = CutAfter { inner, polls }.await;
        if let Some(finished) = cut {
            finished.unwrap();
            assert!(polls > 15, "only {polls} drops were tried");
            return;
        }
        setup.attend().await.0.unwrap();
        assert_same(&setup, &expected, &format!("dropped after {polls} polls"));
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_in_the_mirror_that_no_entry_names_are_folded_by_the_next_driver() {
    let mut setup = Setup::new(&["text hello\nclose\n"]);
    // The agent was started and followed, then the driver died.
    setup.context.crash = Crash::at(7);
    assert!(setup.attend().await.0.is_err());
    let entries = setup.context.store.entries(&setup.run, 0, 100).unwrap().len();
    let dir = setup.context.store.run_dir(&setup.run);
    std::fs::write(dir.join("1.stdout"), "text hello\nclo").unwrap();
    setup.context.crash = Crash::default();
    let (finished, told) = setup.attend().await;
    finished.unwrap();
    assert!(entries >= 2, "{entries}");
    assert_eq!(names(&told).iter().filter(|name| **name == "text").count(), 1);
    setup.assert_mirrored();
}

#[tokio::test(start_paused = true)]
async fn bytes_this_machine_lost_are_fetched_from_the_host_again() {
    let mut setup = Setup::new(&["text hello\nask one\n", "text again\nclose\n"]);
    setup.context.crash = Crash::at(22);
    assert!(setup.attend().await.0.is_err());
    let mirror = setup.context.store.run_dir(&setup.run).join("1.stdout");
    assert!(std::fs::metadata(&mirror).unwrap().len() > 14);
    std::fs::write(&mirror, "text ").unwrap();
    setup.context.crash = Crash::default();
    setup.attend().await.0.unwrap();
    setup.assert_mirrored();
    assert_eq!(setup.host.journals(), ["one\n"]);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_lost_everywhere_are_a_clear_error() {
    let mut setup = Setup::new(&["text hello\nask one\n", "text again\nclose\n"]);
    setup.context.crash = Crash::at(22);
    assert!(setup.attend().await.0.is_err());
    let mirror = setup.context.store.run_dir(&setup.run).join("1.stdout");
    std::fs::write(&mirror, "text ").unwrap();
    setup.context.crash = Crash::default();
    setup.host.set_down(true);
    let (failed, _) = setup.attend().await;
    let message = failed.unwrap_err().to_string();
    assert!(message.starts_with("run `abcd2345` lost output: 5 of "), "{message}");
    assert!(message.ends_with("cannot be fetched again: the link broke: the fake link is down"), "{message}");
}
