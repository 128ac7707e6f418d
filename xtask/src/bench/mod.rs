//! Benchmarks: figures printed as ratios against a stated promise, never a timed test.
//!
//! A benchmark is a function that measures and returns one [`Figure`] for each promise; add it to [`BENCHES`]. It
//! builds what it measures in the release profile by itself, and says so where what it compares with (Node, say) is
//! not installed. What is compared runs in turn, so that a machine that slows down slows down both.

mod corpus;
mod folding;
mod measure;
mod running;

use std::error::Error;

use crate::Outcome;

/// What a benchmark gives.
type Figures = Result<Vec<Figure>, Box<dyn Error>>;

/// One benchmark.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Its name, for the filter.
    pub(crate) name: &'static str,
    /// Measures.
    pub(crate) measure: fn() -> Figures,
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
const BENCHES: &[Bench] = &[
    Bench { name: "fold", measure: folding::throughput },
    Bench { name: "fold-memory", measure: folding::memory },
    Bench { name: "run-overhead", measure: running::overhead },
    Bench { name: "held-idle", measure: running::idle },
    Bench { name: "scripted-agent-start", measure: running::scripted_agent_start },
];

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
