//! Benchmarks: figures printed as ratios against a stated promise, never a timed test.
//!
//! A benchmark is a function that measures and returns one [`Figure`] for each promise; add it to [`BENCHES`]. It
//! builds what it measures in the release profile by itself, and says so where what it compares with (Node, say) is
//! not installed.

use std::error::Error;
use std::process::Command;
use std::time::Instant;

use bursar_testkit::{AgentScript, ScriptedAgent};

use crate::Outcome;

/// One benchmark.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Its name, for the filter.
    pub(crate) name: &'static str,
    /// Measures.
    pub(crate) measure: fn() -> Result<Vec<Figure>, Box<dyn Error>>,
}

/// What was measured, beside what is promised.
#[derive(Debug)]
pub(crate) struct Figure {
    /// What it is, for example `fold against a line reader in Node`.
    pub(crate) what: &'static str,
    /// What was measured, in words: `12.3 times`.
    pub(crate) measured: String,
    /// What is promised, in words: `at least 10 times`.
    pub(crate) promised: &'static str,
    /// Whether the promise is kept.
    pub(crate) kept: bool,
}

/// All benchmarks.
const BENCHES: &[Bench] = &[Bench { name: "scripted-agent-start", measure: scripted_agent_start }];

pub(crate) fn run(filter: Option<&str>) -> Outcome {
    let chosen: Vec<&Bench> =
        BENCHES.iter().filter(|bench| filter.is_none_or(|filter| bench.name.contains(filter))).collect();
    if chosen.is_empty() {
        return Err("no benchmark has that name".into());
    }
    let mut broken = Vec::new();
    for bench in chosen {
        println!("{}", bench.name);
        for Figure { what, measured, promised, kept } in (bench.measure)()? {
            let verdict = if kept { "ok" } else { "BROKEN" };
            println!("  {verdict:<6} {what}: {measured} (promised: {promised})");
            if !kept {
                broken.push(what);
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("promises not kept: {}", broken.join(", ")).into()) }
}

/// Hundreds of tests start the scripted agent; what it costs is added to each.
fn scripted_agent_start() -> Result<Vec<Figure>, Box<dyn Error>> {
    let agent = ScriptedAgent::new(&AgentScript::default())?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let began = Instant::now();
        Command::new(agent.path()).arg("--version").output()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1000.0;
    Ok(vec![Figure {
        what: "start of the scripted agent",
        measured: format!("{median:.1} ms"),
        promised: "at most 5 ms",
        kept: median <= 5.0,
    }])
}
