//! Measures how fast streams are cut and decoded, beside a reader that parses each line with serde_json.
//!
//! `cargo run --release -p bursar-core --example wire_speed -- FILE...`; without files, a stream of 30 kB tool results.
#![expect(clippy::print_stdout, reason = "a measurement is for reading")]
#![expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
#![expect(clippy::unwrap_used, reason = "a measurement may fail")]

use std::time::Instant;

use bursar_core::agent::AgentEvent;
use bursar_core::wire::{FileKind, Line, LineCutter, Undecodable, claude, sniff, transcript};

/// Bytes that are handed over at once, as a pipe would.
const CHUNK: usize = 64 << 10;
/// Bytes that are decoded in one measurement.
const VOLUME: usize = 50 << 20;

type Decode = fn(&[u8], &mut Vec<u8>, &mut Vec<AgentEvent>) -> Result<(), Undecodable>;

fn main() {
    let mut stream = Vec::new();
    for path in std::env::args().skip(1) {
        stream.extend(std::fs::read(path).unwrap());
    }
    if stream.is_empty() {
        stream = tool_results();
    }
    let decode: Decode = match sniff(&stream[..stream.len().min(CHUNK)]) {
        Some(FileKind::Transcript) => transcript::decode,
        Some(FileKind::Stream) | None => claude::decode,
    };
    let lines = memchr::memchr_iter(b'\n', &stream).count();
    println!("{} kB in {lines} lines", stream.len() >> 10);

    let (mut scratch, mut events, mut undecodable) = (Vec::new(), Vec::new(), 0);
    measure("bursar", &stream, &mut |line| {
        events.clear();
        undecodable += u64::from(decode(line, &mut scratch, &mut events).is_err());
    });
    let mut refused = 0;
    measure("serde_json::Value", &stream, &mut |line| {
        refused += u64::from(serde_json::from_slice::<serde_json::Value>(line).is_err());
    });
    println!("lines not decoded (all rounds): bursar {undecodable}, serde_json::Value {refused}");
}

/// The best of several measurements counts: what slows one down is the rest of the machine.
fn measure(name: &str, stream: &[u8], each: &mut dyn FnMut(&[u8])) {
    let rounds = (VOLUME / stream.len()).max(1);
    let mut best = f64::INFINITY;
    for _ in 0..8 {
        let began = Instant::now();
        for _ in 0..rounds {
            let mut cutter = LineCutter::new(256 << 20);
            for chunk in stream.chunks(CHUNK) {
                cutter.push(chunk, |line| {
                    if let Line::Whole(line) = line {
                        each(line);
                    }
                });
            }
        }
        best = best.min(began.elapsed().as_secs_f64());
    }
    println!("{name:>18}: {:.0} MB/s", (rounds * stream.len()) as f64 / 1e6 / best);
}

/// Lines like those of a `Bash` that printed 30 kB of source text, which the agent writes twice into each line.
fn tool_results() -> Vec<u8> {
    let printed =
        "    let value = map.get(\"key\").map(|found| found.len()); // a line of code\n".repeat(400);
    let mut stream = Vec::new();
    for number in 0..200 {
        let line = serde_json::json!({
            "type": "user",
            "message": {"role": "user", "content": [{
                "tool_use_id": format!("toolu_{number}"), "type": "tool_result", "content": printed, "is_error": false,
            }]},
            "parent_tool_use_id": null,
            "session_id": "33bd7afe-b14d-4e25-bfbe-7a08b649e55d",
            "tool_use_result": {"stdout": printed, "stderr": "", "interrupted": false, "isImage": false},
        });
        serde_json::to_writer(&mut stream, &line).unwrap();
        stream.push(b'\n');
    }
    stream
}
