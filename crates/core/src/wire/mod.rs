//! From bytes to agent events, and from messages to bytes.
//!
//! `lines.rs` cuts lines, `claude/` reads the stream of `claude -p` and writes to its input, `transcript.rs` reads the
//! session file of the same agent. Nothing here remembers anything from one line to the next, except the unfinished
//! line. "FACTS n" and "DRIFT n" in comments name a section of the measured notes that ARCHITECTURE.md sums up.

pub mod claude;
mod escape;
mod json;
pub mod lines;
pub mod transcript;

pub use lines::{Line, LineCutter};
pub use transcript::{FileKind, sniff};

/// A line that cannot be used: not a JSON object, or one that is cut off.
///
/// A cut object is not read in part: a `result` without its last keys could pass for a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a whole JSON object: {reason}")]
pub struct Undecodable {
    pub reason: &'static str,
}
