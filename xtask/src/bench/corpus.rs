//! The streams that are folded: recorded ones, and one shaped like an hour of work.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use bursar_testkit::workspace;

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

/// Writes a stream shaped like long work: a call, its result of 0.5 to 30 kB, now and then a text.
pub(crate) fn work(bytes: usize) -> Result<PathBuf, Box<dyn Error>> {
    let path = file("work.jsonl")?;
    let mut out = std::io::BufWriter::new(fs::File::create(&path)?);
    let mut written = 0;
    let mut number = 0u64;
    while written < bytes {
        let line = work_lines(number);
        out.write_all(line.as_bytes())?;
        written += line.len();
        number += 1;
    }
    out.flush()?;
    Ok(path)
}

/// Returns the lines of one call of the working agent; the same number gives the same lines.
pub(crate) fn work_lines(number: u64) -> String {
    const SESSION: &str = "9d8cd3d2-4200-4a74-a34a-74141c7b0b52";
    let size = [500, 900, 1_500, 2_500, 4_000, 8_000, 16_000, 30_000][(number % 8) as usize];
    let row = format!("crates/core/src/run/mod.rs:{}:    let fresh = \\\"{number}\\\";\\n", number % 977);
    let output = row.repeat(size / row.len() + 1);
    let call = format!("toolu_{number:012}");
    let said = if number.is_multiple_of(5) {
        format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"I look at the next file, number {number}."}}],"stop_reason":null,"usage":{{"input_tokens":100,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"659567da-77ab-4476-a02d-ccb637c78372"}}
"#
        )
    } else {
        String::new()
    };
    format!(
        r#"{said}{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"command":"grep -rn fresh crates | head -{number}","description":"search"}}}}],"stop_reason":null,"usage":{{"input_tokens":100,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"fb349d43-40ce-4868-a031-7b60de23a06a"}}
{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{call}","type":"tool_result","content":"{output}","is_error":false}}]}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"07a320ba-dde6-4c9e-8d10-54a18f9258a4","tool_use_result":{{"stdout":"{output}","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}}}}
"#
    )
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
