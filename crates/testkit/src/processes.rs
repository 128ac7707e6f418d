//! Finds and ends processes by a mark in their environment: what a test started, however it was reparented since.
//!
//! Reads `/proc`, so elsewhere than on Linux it finds nothing. A process that cleared its environment escapes it.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// How often to look again for processes that were born while others were ended.
const ROUNDS: usize = 50;

/// Returns the ids of all processes, this one aside, whose environment holds `mark` and which still run.
pub fn marked(mark: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    // The environment of a process that has ended and waits for its parent reads as empty.
    let carries =
        |id: &i32| fs::read(format!("/proc/{id}/environ")).is_ok_and(|environ| holds(&environ, mark));
    ids.filter(|id| *id != own).filter(carries).collect()
}

/// Kills all processes whose environment holds `mark`, until none is found.
pub(crate) fn kill_marked(mark: &str) {
    for _ in 0..ROUNDS {
        let ids = marked(mark);
        if ids.is_empty() {
            return;
        }
        for pid in ids.into_iter().filter_map(Pid::from_raw) {
            // It may have ended by itself in this moment.
            kill_process(pid, Signal::KILL).ok();
        }
        std::thread::yield_now();
    }
}

fn holds(environ: &[u8], mark: &str) -> bool {
    environ.windows(mark.len()).any(|window| window == mark.as_bytes())
}
