//! How fast a stream is folded, and in how much memory.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bursar_testkit::workspace;

use super::corpus;
use super::measure::{median, peak_memory, release, wall};
use super::{Figure, Figures};

/// A line reader in Node that parses every line.
const NODE_READER: &str = "\
const lines = require('readline').createInterface({input: require('fs').createReadStream(process.argv[1])});
let read = 0;
lines.on('line', line => { try { JSON.parse(line); read++; } catch {} });
lines.on('close', () => console.log(read));";

const ROUNDS: usize = 5;

/// `bursar fold`, whole process, against a reader that parses each line into a generic JSON value.
pub(super) fn throughput() -> Figures {
    let bursar = release("bursar", "bursar")?;
    let work = corpus::work(256 << 20)?;
    let captures = corpus::captures(128 << 20)?;
    let node = Command::new("node").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !node.is_ok_and(|status| status.success()) {
        println!(
            "  node is not installed: comparing with serde_json's Value, in a loop over lines in memory"
        );
        return against_serde_json(&work);
    }
    let work = ratio(&bursar, &work)?;
    let captures = ratio(&bursar, &captures)?;
    Ok(vec![
        Figure {
            what: "fold of a working agent's stream, against readline and JSON.parse in Node",
            measured: format!("{work:.1} times"),
            promised: "at least 10 times",
            kept: work >= 10.0,
        },
        Figure {
            what: "fold of the captures (tiny conversations, a third of it lists of tools), against the same",
            measured: format!("{captures:.1} times"),
            promised: "at least 4 times",
            kept: captures >= 4.0,
        },
    ])
}

fn ratio(bursar: &Path, corpus: &Path) -> Result<f64, Box<dyn Error>> {
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let node = wall(Command::new("node").args(["-e", NODE_READER]).arg(corpus))?;
        let ours = wall(Command::new(bursar).args(["fold", "--output", "json"]).arg(corpus))?;
        ratios.push(node.as_secs_f64() / ours.as_secs_f64());
    }
    median(ratios).ok_or_else(|| "nothing was measured".into())
}

/// The decoder's own example prints how it compares with serde_json.
fn against_serde_json(corpus: &Path) -> Figures {
    let output = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", "bursar-core", "--example", "wire_speed", "--"])
        .arg(corpus)
        .current_dir(workspace::root())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `NAME  … MB/s` a line.
    let speed = |name: &str| -> Option<f64> {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        line.split_whitespace().rev().find_map(|word| word.parse().ok())
    };
    let (Some(ours), Some(theirs)) = (speed("bursar"), speed("serde_json")) else {
        return Err(format!("wire_speed printed something else:\n{text}").into());
    };
    let times = ours / theirs;
    Ok(vec![Figure {
        what: "decoding a working agent's stream, against serde_json's Value",
        measured: format!("{times:.1} times"),
        promised: "at least 5 times",
        kept: times >= 5.0,
    }])
}

/// Memory while 10 GB stream through, and with one line of 100 MB.
pub(super) fn memory() -> Figures {
    let bursar = release("bursar", "bursar")?;
    let block = corpus::work_block()?;
    let blocks = 10_000_000_000usize.div_ceil(block.len());
    let streamed = folded(&bursar, |input| {
        for _ in 0..blocks {
            input.write_all(block.as_bytes())?;
        }
        input.write_all(corpus::last_line().as_bytes())
    })?;
    let long = 100_000_000;
    let one_line = folded(&bursar, |input| {
        input.write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"tool_use_id\":\"t\",\"type\":\"tool_result\",\"content\":\"")?;
        let part = vec![b'x'; 1 << 20];
        for _ in 0..long / part.len() {
            input.write_all(&part)?;
        }
        input.write_all(b"\"}]}}\n")?;
        input.write_all(corpus::last_line().as_bytes())
    })?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(vec![
        Figure {
            what: "peak memory while 10 GB stream through",
            measured: format!("{:.1} MiB", mib(streamed)),
            promised: "under 64 MiB",
            kept: mib(streamed) < 64.0,
        },
        Figure {
            what: "peak memory with one line of 100 MB",
            measured: format!("{:.1} MiB", mib(one_line)),
            promised: "under 95 MiB for the line and 64 MiB for the rest",
            kept: mib(one_line) < 95.4 + 64.0,
        },
    ])
}

/// Folds what `write` writes into a pipe, and returns the peak memory of the fold in bytes.
fn folded(
    bursar: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> Result<u64, Box<dyn Error>> {
    let mut child = Command::new(bursar)
        .args(["fold", "--output", "json", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || write(&mut input));
        let peak = peak_memory(&mut child)?;
        writer.join().map_err(|_| "the writer panicked")??;
        Ok(peak)
    })
}
