//! Stopping: gently first, then everything of the run, verified.

use std::fs;
use std::time::Duration;

use bursar_transport::{AgentEnd, AttemptStatus};

use super::{Fixture, bounded, kill, lives};

const GRACE: Duration = Duration::from_millis(400);

async fn pid(fixture: &Fixture, name: &str) -> u32 {
    fixture.file(name).await.trim().parse().unwrap()
}

pub async fn closing_the_input_is_tried_first(fixture: Fixture) {
    let mut spec = fixture.script("while read -r line; do :; done; exit 5");
    spec.input = b"some\n".to_vec();
    fixture.start(&spec).await;
    let report = bounded(fixture.holder.stop(&spec.at, Duration::from_secs(60))).await.unwrap();
    assert_eq!((report.agent, report.killed, report.left), (AgentEnd::Closed, 0, vec![]));
    assert!(matches!(&report.status, AttemptStatus::Exited(record) if record.status == 5));
}

pub async fn an_agent_that_ignores_everything_is_killed(fixture: Fixture) {
    let spec = fixture.script("trap '' TERM INT HUP; echo ready >ready; while :; do sleep 0.05; done");
    let pid = fixture.start(&spec).await;
    fixture.file("ready").await;
    let report = bounded(fixture.holder.stop(&spec.at, GRACE)).await.unwrap();
    assert_eq!((report.agent, report.left), (AgentEnd::Killed, vec![]));
    assert!(report.killed >= 1 && !lives(pid));
    assert!(
        matches!(report.status, AttemptStatus::Exited(record) if record.status == 137),
        "{:?}",
        report.status
    );
}

pub async fn a_stop_reaches_a_grandchild_in_its_own_session(fixture: Fixture) {
    let stubborn = "trap \"\" TERM HUP INT; echo $$ >grandchild; while :; do sleep 0.05; done";
    let spec = fixture
        .script(&format!("setsid sh -c 'setsid sh -c '\\''{stubborn}'\\'' & wait' & read -r line; exit 0"));
    fixture.start(&spec).await;
    let grandchild = pid(&fixture, "grandchild").await;
    let report = bounded(fixture.holder.stop(&spec.at, GRACE)).await.unwrap();
    assert!(!lives(grandchild));
    assert!(report.killed >= 1 && report.left.is_empty(), "{report:?}");
}

pub async fn a_stop_reaches_survivors_of_an_agent_that_ended(fixture: Fixture) {
    let spec = fixture
        .script("nohup sh -c 'echo $$ >survivor; while :; do sleep 0.05; done' >/dev/null 2>&1 & exit 0");
    fixture.run(&spec).await;
    let survivor = pid(&fixture, "survivor").await;
    assert!(lives(survivor));
    let report = bounded(fixture.holder.stop(&spec.at, GRACE)).await.unwrap();
    assert_eq!((report.agent, report.left), (AgentEnd::AlreadyGone, vec![]));
    assert!(report.killed >= 1 && !lives(survivor));
}

pub async fn stopping_what_is_gone_says_so(fixture: Fixture) {
    let spec = fixture.script("exit 3");
    fixture.run(&spec).await;
    for at in [&spec.at, &fixture.attempt()] {
        let report = bounded(fixture.holder.stop(at, GRACE)).await.unwrap();
        assert_eq!((report.agent, report.killed, report.left), (AgentEnd::AlreadyGone, 0, vec![]));
    }
}

pub async fn stopping_works_without_the_folder(fixture: Fixture) {
    let spec = fixture.script("echo ready >ready; while :; do sleep 0.05; done");
    let agent = fixture.start(&spec).await;
    fixture.file("ready").await;
    fs::remove_dir_all(fixture.folder(&spec.at).parent().unwrap()).unwrap();
    let report = bounded(fixture.holder.stop(&spec.at, GRACE)).await.unwrap();
    assert!(report.left.is_empty() && !lives(agent), "{report:?}");
}

pub async fn a_stop_leaves_other_runs_alone(fixture: Fixture) {
    let spec = fixture.script("read -r line");
    // A name that begins like the other one.
    let mut other = spec.clone();
    other.at.run = bursar_transport::Name::try_from(format!("{}1", spec.at.run).as_str()).unwrap();
    fixture.start(&spec).await;
    let neighbour = fixture.start(&other).await;
    bounded(fixture.holder.stop(&spec.at, GRACE)).await.unwrap();
    assert!(lives(neighbour));
    kill(neighbour, "KILL");
}
