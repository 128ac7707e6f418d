//! Several processes and one run.

use std::sync::Arc;

use bursar_core::event::Ask;
use bursar_core::outcome::Ending;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Setup, drain, names, records, until};
use crate::{Context, FinishedRecord, RunnerError, Update, UpdatesReader, attend, updates, watch};

type Attending = JoinHandle<Result<FinishedRecord, RunnerError>>;

fn spawn(context: Context, setup: &Setup) -> (Attending, UpdatesReader, mpsc::Sender<Ask>) {
    let (send, reader) = updates();
    let (ask, asks) = mpsc::channel(4);
    let run = setup.run.clone();
    let task = tokio::spawn(async move { attend(&context, &run, &send, asks).await });
    (task, reader, ask)
}

#[tokio::test(start_paused = true)]
async fn of_two_who_attend_one_drives_and_both_tell_the_same() {
    let setup = Setup::new(&["text hello\n", "text again\nclose\n"]);
    let (first, first_told, _ask) = spawn(setup.context.clone(), &setup);
    until("the first start", || setup.host.starts() == 1).await;
    let (second, second_told, ask) = spawn(setup.other_process(), &setup);
    ask.send(Ask::Say { text: "on".to_owned() }).await.unwrap();

    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    assert_eq!(first, second);
    let (first_told, second_told) = (drain(first_told).await, drain(second_told).await);
    assert_eq!(records(&first_told), records(&second_told));
    assert!(first_told.contains(&Update::Driving(true)));
    assert!(second_told.contains(&Update::Driving(false)) && !second_told.contains(&Update::Driving(true)));
    assert_eq!((setup.host.starts(), setup.host.journals()), (1, vec!["on\n".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_takes_over_when_the_driver_dies() {
    let setup = Setup::new(&["text hello\n", "text again\nclose\n"]);
    let (driver, _told, _ask) = spawn(setup.context.clone(), &setup);
    until("the first start", || setup.host.starts() == 1).await;
    let (watcher, told, ask) = spawn(setup.other_process(), &setup);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    driver.abort();
    assert!(driver.await.unwrap_err().is_cancelled());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ask.send(Ask::Say { text: "on".to_owned() }).await.unwrap();
    assert_eq!(watcher.await.unwrap().unwrap().outcome, Ending::Done);

    let told = drain(told).await;
    assert!(told.contains(&Update::Driving(false)) && told.contains(&Update::Driving(true)));
    // What it told as a watcher is not told again as a driver.
    assert_eq!(records(&told), setup.replayed());
    assert_eq!(setup.host.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wish_left_in_the_store_is_taken_once() {
    let setup = Setup::new(&["text up\n", "text a\n", "close\n"]);
    let other = setup.other_process();
    let say = |text: &str| Ask::Say { text: text.to_owned() };
    let now = bursar_core::At(1);
    assert!(!other.store.ask(&setup.run, &say("before"), now).unwrap(), "nobody drives yet");

    let (driver, _told, _ask) = spawn(setup.context.clone(), &setup);
    until("the message", || setup.host.journals() == ["before\n"]).await;
    driver.abort();
    assert!(driver.await.unwrap_err().is_cancelled());

    let (driver, _told, _ask) = spawn(setup.context.clone(), &setup);
    until("a driver", || {
        crate::lock::DriverLock::is_taken(&setup.context.store.run_dir(&setup.run)).unwrap()
    })
    .await;
    assert!(other.store.ask(&setup.run, &say("during"), now).unwrap(), "somebody drives");
    driver.await.unwrap().unwrap();
    assert_eq!(setup.host.journals(), ["before\nduring\n"]);
}

#[tokio::test(start_paused = true)]
async fn watching_never_drives() {
    let setup = Setup::new(&["text hello\n", "close\n"]);
    let (send, told) = updates();
    assert_eq!(watch(&setup.context, &setup.run, &send).await.unwrap(), None);
    drop(send);
    assert_eq!(names(&drain(told).await), [""; 0]);
    assert_eq!(setup.host.starts(), 0);

    let (driver, _told, ask) = spawn(setup.context.clone(), &setup);
    until("the first start", || setup.host.starts() == 1).await;
    let (send, told) = updates();
    let other = setup.other_process();
    let watching = watch(&other, &setup.run, &send);
    let asking = ask.send(Ask::Say { text: "on".to_owned() });
    let (watched, asked) = tokio::join!(watching, asking);
    asked.unwrap();
    assert_eq!(watched.unwrap(), Some(driver.await.unwrap().unwrap()));
    drop(send);
    assert_eq!(records(&drain(told).await), setup.replayed());
}

#[tokio::test(start_paused = true)]
async fn drivers_of_many_runs_share_one_store() {
    let setup = Setup::new(&["text hello\nclose\n"]);
    let mut tasks = Vec::new();
    for number in 0..8 {
        let new = super::new_run(&format!("many{number}aaa"));
        setup.context.store.create(&new, bursar_core::At(1)).unwrap();
        let host = Arc::new(super::FakeHost::new(&["text hello\nask one\n", "close\n"]));
        let context = super::context(crate::Store::open(setup.dir.path()).unwrap(), &host, &setup.clock);
        tasks.push(tokio::spawn(async move {
            let (send, _reader) = updates();
            let (_ask, asks) = mpsc::channel(1);
            attend(&context, &new.request.run, &send, asks).await
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().outcome, Ending::Done);
    }
}
