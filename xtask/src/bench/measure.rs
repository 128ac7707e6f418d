//! Times, memory and processor time of other processes.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bursar_testkit::workspace;

/// Builds a binary of the workspace in the release profile and returns its path.
pub(crate) fn release(package: &str, binary: &str) -> Result<PathBuf, Box<dyn Error>> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", package, "--bin", binary])
        .current_dir(workspace::root())
        .status()?;
    if !status.success() {
        return Err(format!("building `{binary}` failed").into());
    }
    Ok(workspace::target_dir().join("release").join(binary))
}

/// Returns how long a command takes from its start to its end; its output is thrown away.
pub(crate) fn wall(command: &mut Command) -> Result<Duration, Box<dyn Error>> {
    let began = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let took = began.elapsed();
    if status.success() { Ok(took) } else { Err(format!("{command:?} ended with {status}").into()) }
}

/// Waits for a child and returns the most memory it had in use, in bytes (`VmHWM` of proc(5), read until it ends).
pub(crate) fn peak_memory(child: &mut Child) -> Result<u64, Box<dyn Error>> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Ok(text) = fs::read_to_string(&status) {
            let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = kib.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
            peak = peak.max(kib.unwrap_or(0) << 10);
        }
        if let Some(ended) = child.try_wait()? {
            return if ended.success() {
                Ok(peak)
            } else {
                Err(format!("the fold ended with {ended}").into())
            };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the processor time a living process has used, in clock ticks of 10 ms (fields 14 and 15 of proc(5) `stat`).
pub(crate) fn ticks(pid: u32) -> u64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0 };
    let Some((_, fields)) = stat.rsplit_once(") ") else { return 0 };
    fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Returns the middle one.
pub(crate) fn median<T: Copy + PartialOrd>(mut values: Vec<T>) -> Option<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len() / 2).copied()
}
