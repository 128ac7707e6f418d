//! `kill -9` of bursar at random moments: nothing is lost, nothing happens twice.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bursar_testkit::{AttemptScript, Reply, Shell};
use serde_json::Value;

use crate::rig::{Ran, Rig, Running, id};

/// The variable that repeats a series.
const SEED: &str = "BURSAR_TEST_SEED";

/// A small generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let drawn = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        };
        let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(drawn);
        println!("{SEED}={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

/// About 700 KB in a second, with a tool call now and then.
fn talk(mut reply: Reply, about: &str) -> Reply {
    let words = format!("{about} ").repeat(16_000 / (about.len() + 1));
    for part in 0..40 {
        reply = reply.text(&format!("{about} {part}: {words}")).sleep(Duration::from_millis(25));
        if part % 10 == 9 {
            reply = reply.shell(&format!("make part-{part}"), "made");
        }
    }
    reply
}

/// Everything a run can have: text, tools, a reply out of turns, a background shell, a hold and a wake-up.
fn eventful() -> AttemptScript {
    let count = "i=0; while [ $i -lt 30 ]; do echo $i; sleep 0.1; i=$((i+1)); done; echo built > built";
    let woken = talk(Reply::woken("b1"), "woken").harvest("b1").text("all is built").success();
    AttemptScript::new().reply(talk(Reply::new(), "first").max_turns(50)).reply(
        talk(Reply::new().launch(Shell::new("b1", count).waking(woken)), "second")
            .text("it builds")
            .success(),
    )
}

/// What must not differ: all records without times, process ids and what is drawn for each run. How often a phase or
/// the link is looked at is the driver's own affair.
fn told(ran: &Ran) -> Vec<Value> {
    let mut records = ran.records();
    records.retain(|record| record["event"] != "phase" && record["event"] != "link");
    records.iter_mut().for_each(strip);
    records
}

fn strip(value: &mut Value) {
    const DRAWN: [&str; 12] = [
        "at",
        "seq",
        "run",
        "pid",
        "found",
        "session",
        "began",
        "ended",
        "duration_ms",
        "output",
        "until",
        "host",
    ];
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !DRAWN.contains(&name.as_str()));
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        // The path of a background task's output, of which only the name is the same.
        Value::String(text) if text.ends_with(".output") => {
            *text = text.rsplit('/').next().unwrap_or_default().to_owned();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[track_caller]
fn assert_same(undisturbed: &[Value], disturbed: &[Value]) {
    for (at, (want, have)) in undisturbed.iter().zip(disturbed).enumerate() {
        assert_eq!(have, want, "record {at} differs");
    }
    assert_eq!(disturbed.len(), undisturbed.len());
}

#[test]
fn a_run_whose_driver_is_killed_again_and_again_ends_as_an_undisturbed_one() {
    const RUNS: u64 = 4;
    const KILLS: u64 = 40;
    let undisturbed = Rig::new(eventful());
    let ran = undisturbed.run(&[], "build it");
    ran.finished("done", 0);
    let want = told(&ran);
    let decisions: Vec<Value> =
        ran.events("decision").into_iter().map(|record| record["action"].clone()).collect();
    assert_eq!(decisions, ["continue", "hold", "finish"], "{ran}");

    let mut random = Random::seeded();
    for number in 0..RUNS {
        let rig = Rig::new(eventful());
        let mut command = rig.run_command(&[]);
        command.arg("build it");
        let mut kills = 0;
        let mut run = None;
        for round in 0..KILLS {
            // Now and then it gets the time to do something.
            let span = if random.below(6) == 0 { 700 } else { 120 };
            let running = Running::start(&mut command);
            std::thread::sleep(random.millis(span));
            kills += u64::from(running.kill().0);
            if run.is_none() {
                run = rig.runs().first().map(id);
            }
            if let Some(run) = &run {
                command = rig.bursar(&["attach", "--output", "ndjson", run]);
            }
            assert!(rig.agent.starts().unwrap() <= 1, "run {number}, kill {round}: a second agent");
        }
        let run = run.unwrap();
        let ran = rig.attach(&run);
        println!("run {number}: {kills} kills, then {:?} to the end", ran.took);
        ran.finished("done", 0);
        assert_same(&want, &told(&ran));
        rig.assert_mirrored(&run, 1);
        assert_eq!(rig.agent.starts().unwrap(), 1, "one process served the run");
        let messages = rig.agent.messages().unwrap();
        assert_eq!(messages.len(), 2, "each message came once: {messages:#?}");
        assert!(rig.home.work().join("built").exists());
        assert_same(&want, &told(&rig.attach(&run)));
        rig.assert_nothing_left();
    }
}

#[test]
fn a_start_that_is_killed_at_any_moment_starts_one_agent_or_none() {
    const ROUNDS: u64 = 24;
    let rig = Rig::new(AttemptScript::new().otherwise(Reply::new().text("hello").success()));
    let mut random = Random::seeded();
    let (mut unstored, mut unstarted, mut started) = (0, 0, 0);
    for _ in 0..ROUNDS {
        let (runs, starts) = (rig.runs().len(), rig.agent.starts().unwrap());
        let running = Running::start(rig.run_command(&[]).arg("say hello"));
        std::thread::sleep(random.millis(120));
        running.kill();
        let began = rig.agent.starts().unwrap() > starts;
        let listed = rig.runs();
        if listed.len() == runs {
            unstored += 1;
            continue;
        }
        if began {
            started += 1;
        } else {
            unstarted += 1;
        }
        let run = id(&listed[0]);
        let attaching = Running::start(&mut rig.bursar(&["attach", &run]));
        std::thread::sleep(random.millis(120));
        attaching.kill();

        let ran = rig.attach(&run);
        ran.finished("done", 0);
        assert_eq!(ran.events("attempt_started").len(), 1, "{ran}");
        let log = rig.agent.log().unwrap();
        assert_eq!(rig.agent.starts().unwrap(), starts + 1, "one agent served {run}\n{log:#?}\n{ran}");
        assert_eq!(rig.agent.messages().unwrap().len(), starts + 1, "it was told once");
        rig.assert_mirrored(&run, 1);
    }
    println!("killed before the run was stored: {unstored}, before its agent: {unstarted}, later: {started}");
    rig.assert_nothing_left();
}
