//! The store by itself.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use bursar_core::event::Ask;
use bursar_core::{At, RunId};

use super::{Setup, new_run};
use crate::store::log::{Beside, Body, Entry};
use crate::{Created, FindError, Store, StoreError, gc, replay};

#[test]
fn a_store_of_a_newer_bursar_is_refused_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let database = rusqlite::Connection::open(dir.path().join("runs.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, known: 1, .. }), "{error:?}");
    assert!(error.hint().contains("newer bursar"));
}

#[test]
fn a_damaged_store_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("runs.db"), "this is no database, whatever its name says ".repeat(100))
        .unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[test]
fn a_place_that_cannot_be_written_is_told_apart() {
    // Nothing can be made in there, not even by root.
    let error = Store::open("/proc/bursar".as_ref()).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. } | StoreError::ReadOnly { .. }), "{error:?}");
}

#[test]
fn only_the_owner_can_read_what_is_stored() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("state/bursar");
    let store = Store::open(&root).unwrap();
    store.create(&new_run("abcd2345"), At(1)).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&root), 0o700);
    for file in std::fs::read_dir(&root).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_run_is_found_by_a_unique_prefix() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for run in ["abcd2345", "abce2345", "x%_y2345"] {
        store.create(&new_run(run), At(1)).unwrap();
    }
    assert_eq!(store.find("abcd").unwrap(), RunId("abcd2345".to_owned()));
    assert_eq!(store.find("x%").unwrap(), RunId("x%_y2345".to_owned()));
    assert!(matches!(store.find("abc"), Err(FindError::Ambiguous { runs, .. }) if runs.len() == 2));
    for unknown in ["", "%", "zz", "ABCD"] {
        assert!(matches!(store.find(unknown), Err(FindError::Unknown { .. })), "{unknown:?}");
    }
}

#[test]
fn a_key_makes_two_runs_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut first = new_run("first234");
    first.key = Some("card-7".to_owned());
    let mut second = new_run("second23");
    second.key = Some("card-7".to_owned());
    assert_eq!(store.create(&first, At(1)).unwrap(), Created::New);
    let existing = Created::Existing { run: first.request.run.clone(), finished: false };
    assert_eq!(store.create(&second, At(2)).unwrap(), existing);
    assert_eq!(store.list(true).unwrap().len(), 1);
    let stored = store.load(&first.request.run).unwrap().unwrap();
    assert_eq!((stored.request, stored.key, stored.created), (first.request, first.key, At(1)));
    assert_eq!(store.load(&second.request.run).unwrap(), None);
}

#[test]
fn many_processes_open_a_new_store_at_once() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let root = dir.path();
            scope.spawn(move || {
                let store = Store::open(root).unwrap();
                store.create(&new_run(&format!("run{number}abcd")), At(number)).unwrap();
            });
        }
    });
    assert_eq!(Store::open(dir.path()).unwrap().list(true).unwrap().len(), 8);
}

#[test]
fn two_who_write_the_same_entry_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = RunId("abcd2345".to_owned());
    let entry = Entry { seq: 0, at: At(1), body: Body::Begun };
    store.append(&run, &entry, &Beside::default()).unwrap();
    assert!(store.append(&run, &entry, &Beside::default()).is_err());
}

#[test]
fn a_wish_of_a_newer_bursar_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = RunId("abcd2345".to_owned());
    store.ask(&run, &Ask::Stop { now: true }, At(1)).unwrap();
    let database = rusqlite::Connection::open(dir.path().join("runs.db")).unwrap();
    database
        .execute("INSERT INTO asks (run, at, ask) VALUES ('abcd2345', 1, '{\"ask\":\"dance\"}')", [])
        .unwrap();
    assert_eq!(store.open_asks(&run).unwrap(), [(1, Ask::Stop { now: true })]);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_a_clear_error_and_the_run_goes_on_once_there_is_room() {
    let setup = Setup::new(&["", "text hello\nclose\n"]);
    let mirror = setup.context.store.run_dir(&setup.run).join("1.stdout");
    let filling = async {
        super::until("the start", || setup.host.starts() == 1).await;
        std::os::unix::fs::symlink("/dev/full", &mirror).unwrap();
        let say = Ask::Say { text: "on".to_owned() };
        setup.context.store.ask(&setup.run, &say, At(1)).unwrap();
    };
    let ((failed, _), ()) = tokio::join!(setup.attend(), filling);
    let error = failed.unwrap_err();
    assert!(matches!(&error, crate::RunnerError::Store(StoreError::Full { .. })), "{error:?}");
    assert!(error.hint().contains("bursar attach"), "{}", error.hint());
    assert_eq!(error.exit_code(), 6);

    std::fs::remove_file(&mirror).unwrap();
    setup.attend().await.0.unwrap();
    setup.assert_mirrored();
    assert_eq!((setup.host.starts(), setup.host.journals()), (1, vec!["on\n".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn cleaning_up_removes_what_ended_long_ago_and_nothing_else() {
    let setup = Setup::new(&["text hello\nclose\n"]);
    setup.context.store.create(&new_run("living23"), At(1)).unwrap();
    setup.attend().await.0.unwrap();
    let day = Duration::from_secs(24 * 3600);
    assert_eq!(gc(&setup.context, day).await.unwrap().runs, []);

    tokio::time::advance(day * 2).await;
    let collected = gc(&setup.context, day).await.unwrap();
    assert_eq!(collected.runs, std::slice::from_ref(&setup.run));
    assert!(collected.bytes > 0);
    assert_eq!(collected.hosts, [("fake".to_owned(), Ok(1))]);
    assert!(!setup.context.store.run_dir(&setup.run).exists());
    let left: Vec<_> = setup.context.store.list(true).unwrap().into_iter().map(|line| line.run.0).collect();
    assert_eq!(left, ["living23"]);
    assert!(replay(&setup.context.store, &setup.run, |_| {}).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_list_names_each_run_by_the_first_line_of_its_prompt() {
    let setup = Setup::new(&["text hello\nclose\n"]);
    let line = setup.context.store.list(false).unwrap().remove(0);
    assert_eq!((line.title.as_str(), line.driven, line.finished), ("Do it.", false, None));
    setup.attend().await.0.unwrap();
    assert_eq!(setup.context.store.list(false).unwrap(), []);
    let line = setup.context.store.list(true).unwrap().remove(0);
    assert!(line.finished.is_some() && line.finished_at.is_some());
}
