//! Links that break.

use std::time::Duration;

use bursar_core::event::{Refusal, RefusalKind};
use bursar_core::outcome::Ending;
use bursar_core::phase::Link;
use tokio::sync::mpsc;

use super::fake_host::cut;
use super::{Setup, drain, records, until};
use crate::record::RecordEvent;
use crate::{HostError, Update, attend, updates};

fn links(told: &[Update]) -> Vec<Link> {
    records(told)
        .iter()
        .filter_map(|record| if let RecordEvent::Link { link } = record.event { Some(link) } else { None })
        .collect()
}

fn unreachable() -> HostError {
    HostError::Unreachable { detail: "no route".to_owned(), hint: "plug it in".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_link_that_breaks_is_followed_again_from_where_it_was() {
    let setup = Setup::new(&["text hello\nask one\n", "text again\n"]);
    let breaking = async {
        until("the message", || setup.host.journals() == ["one\n"]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        setup.host.set_down(true);
        setup.host.say(1, "text unheard\n");
        tokio::time::sleep(Duration::from_secs(10)).await;
        setup.host.set_down(false);
        setup.host.say(1, "close\n");
    };
    let ((finished, told), ()) = tokio::join!(setup.attend(), breaking);
    assert_eq!(finished.unwrap().outcome, Ending::Done);
    assert_eq!(links(&told), [Link::Reconnecting, Link::Live]);
    setup.assert_mirrored();
}

#[tokio::test(start_paused = true)]
async fn a_long_outage_makes_the_agent_unverifiable_and_is_borne_for_ever() {
    let setup = Setup::new(&["text hello\n", ""]);
    let breaking = async {
        until("the start", || setup.host.starts() == 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        setup.host.set_down(true);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        setup.host.set_down(false);
        setup.host.say(1, "close\n");
    };
    let ((finished, told), ()) = tokio::join!(setup.attend(), breaking);
    assert_eq!(finished.unwrap().outcome, Ending::Done);
    assert_eq!(links(&told), [Link::Reconnecting, Link::Unverifiable, Link::Live]);
}

#[tokio::test(start_paused = true)]
async fn a_driver_told_to_give_up_loses_contact_and_says_so() {
    let mut setup = Setup::new(&["text hello\n"]);
    setup.context.patience.give_up = Some(Duration::from_secs(300));
    let breaking = async {
        until("the start", || setup.host.starts() == 1).await;
        setup.host.set_down(true);
    };
    let begun = tokio::time::Instant::now();
    let ((finished, _), ()) = tokio::join!(setup.attend(), breaking);
    assert_eq!(finished.unwrap().outcome, Ending::Lost);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(300) && took < Duration::from_secs(310), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_never_reached_refuses_the_run_before_long() {
    let setup = Setup::new(&["text hello\n"]);
    for _ in 0..100 {
        setup.host.fail_next(unreachable());
    }
    let begun = tokio::time::Instant::now();
    let (finished, _) = setup.attend().await;
    assert_eq!(finished.unwrap().outcome, Ending::Refused);
    assert!(begun.elapsed() < Duration::from_secs(6));
    assert_eq!(setup.host.starts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_was_cut_off_for_good_is_lost_not_refused() {
    let setup = Setup::new(&["text hello\n"]);
    for _ in 0..100 {
        setup.host.fail_next(cut());
    }
    let (finished, _) = setup.attend().await;
    assert_eq!(finished.unwrap().outcome, Ending::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_asked_for_twice() {
    let setup = Setup::new(&["text hello\n"]);
    let refusal =
        Refusal { kind: RefusalKind::Host, detail: "wrong key".to_owned(), hint: "add the key".to_owned() };
    setup.host.fail_next(HostError::Refused(refusal));
    let (finished, _) = setup.attend().await;
    assert_eq!(finished.unwrap().outcome, Ending::Refused);
    assert_eq!(setup.host.starts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_cut_off_is_written_once() {
    let setup = Setup::new(&["text hello\nask one\n", "close\n"]);
    let (send, told) = updates();
    let (_ask, asks) = mpsc::channel(1);
    let breaking = async {
        until("the start", || setup.host.starts() == 1).await;
        for _ in 0..3 {
            setup.host.fail_next(cut());
        }
    };
    let (finished, ()) = tokio::join!(attend(&setup.context, &setup.run, &send, asks), breaking);
    assert_eq!(finished.unwrap().outcome, Ending::Done);
    assert_eq!(setup.host.journals(), ["one\n"]);
    drop(send);
    drop(drain(told).await);
}
