//! The streams that are folded: recorded ones, and one shaped like an hour of work.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use bursar_testkit::workspace;
use serde_json::{Value, json};

/// Writes every recorded stream, over and over, into one file of at least `bytes`, and returns its path.
///
/// The conversations of the captures are a few words long, so that a third of the bytes are the agent's lists of its own
/// tools: the worst case for a reader that skips what it does not need.
pub(crate) fn captures(bytes: usize) -> Result<PathBuf, Box<dyn Error>> {
    let mut once = Vec::new();
    for version in ["claude-2.1.231", "claude-2.1.332"] {
        let mut folders: Vec<_> = fs::read_dir(workspace::root().join("fixtures").join(version))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        folders.sort();
        for folder in folders {
            once.extend(fs::read(folder.join("stream.jsonl")).unwrap_or_default());
        }
    }
    let path = file("captures.jsonl")?;
    let mut out = fs::File::create(&path)?;
    for _ in 0..bytes.div_ceil(once.len().max(1)) {
        out.write_all(&once)?;
    }
    Ok(path)
}

/// Writes a stream shaped like long work of at least `bytes`, and returns its path.
pub(crate) fn work(bytes: usize) -> Result<PathBuf, Box<dyn Error>> {
    let path = file("work.jsonl")?;
    let mut out = std::io::BufWriter::new(fs::File::create(&path)?);
    let block = work_block()?;
    for _ in 0..bytes.div_ceil(block.len()) {
        out.write_all(block.as_bytes())?;
    }
    out.flush()?;
    Ok(path)
}

/// Returns the lines of an agent that reads through this project: a call, its result of up to 30 kB of real source
/// text, now and then a sentence.
pub(crate) fn work_block() -> Result<String, Box<dyn Error>> {
    let sources = sources()?;
    let mut block = String::new();
    let mut rest = sources.as_str();
    for number in 0u64.. {
        let size = [500, 900, 1_500, 2_500, 4_000, 8_000, 16_000, 30_000][(number % 8) as usize];
        let mut end = rest.len().min(size);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (output, after) = rest.split_at(end);
        if output.is_empty() {
            break;
        }
        block.push_str(&work_lines(number, output));
        rest = after;
    }
    Ok(block)
}

/// Returns the text of every Rust source in this project's crates, as one.
fn sources() -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let mut folders = vec![workspace::root().join("crates")];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> =
            fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&fs::read_to_string(path)?);
            }
        }
    }
    Ok(text)
}

fn work_lines(number: u64, output: &str) -> String {
    const SESSION: &str = "9d8cd3d2-4200-4a74-a34a-74141c7b0b52";
    const IDS: &str = "07a320ba-dde6-4c9e-8d10-54a18f9258a4";
    let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 9000, "output_tokens": 120});
    let message = |content: Value| {
        json!({"type": "assistant", "message": {"id": format!("msg_{number}"), "type": "message", "role": "assistant",
            "model": "m", "content": [content], "stop_reason": null, "usage": usage},
            "parent_tool_use_id": null, "session_id": SESSION, "uuid": IDS})
    };
    let call = format!("toolu_{number:012}");
    let mut lines = String::new();
    if number.is_multiple_of(5) {
        let said = json!({"type": "text", "text": format!("I look at the next part, number {number}.")});
        lines.push_str(&format!("{}\n", message(said)));
    }
    let input = json!({"command": format!("sed -n {number},+200p src/run.rs"), "description": "read on"});
    lines.push_str(&format!(
        "{}\n",
        message(json!({"type": "tool_use", "id": call, "name": "Bash", "input": input}))
    ));
    let result = json!({"type": "user", "message": {"role": "user", "content": [
            {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": false}]},
        "parent_tool_use_id": null, "session_id": SESSION, "uuid": IDS,
        "tool_use_result": {"stdout": output, "stderr": "", "interrupted": false, "isImage": false,
            "noOutputExpected": false}});
    lines.push_str(&format!("{result}\n"));
    lines
}

/// Returns the `result` that ends the work.
pub(crate) fn last_line() -> &'static str {
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":7,\"result\":\"done\",\
     \"terminal_reason\":\"completed\",\"total_cost_usd\":0.5}\n"
}

fn file(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let folder = workspace::target_dir().join("bench");
    fs::create_dir_all(&folder)?;
    Ok(folder.join(name))
}
