//! Signals as wishes. A signal that whoever started us has set to be ignored (`nohup`, a background job) stays ignored.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What somebody wants of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Ctrl-C.
    Interrupt,
    /// A plain `kill`.
    Terminate,
    /// The terminal is gone.
    HangUp,
}

/// The signals this process listens to.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
}

/// SIGXFSZ on Linux, macOS and the BSDs.
const FILE_SIZE: i32 = 25;

/// Has a file that may not grow told as an error, like a full disk, rather than end this process (setrlimit(2)). Processes
/// that are started from here are not affected. Must be called within the runtime.
pub(crate) fn outlive_file_size_limit() {
    // A handler that was set once stays, whoever listens.
    drop(signal(SignalKind::from_raw(FILE_SIZE)));
}

impl Signals {
    /// Begins to listen; must be called within the runtime.
    pub(crate) fn listen() -> Self {
        let ignored = ignored();
        let listen = |kind: SignalKind| {
            let is_ignored = ignored >> (kind.as_raw_value() - 1) & 1 == 1;
            // Without a listener the signal keeps its usual effect, which loses nothing.
            if is_ignored { None } else { signal(kind).ok() }
        };
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hang_up: listen(SignalKind::hangup()),
        }
    }

    /// Returns the next wish. Cancel safe.
    pub(crate) async fn next(&mut self) -> Wish {
        tokio::select! {
            () = received(&mut self.interrupt) => Wish::Interrupt,
            () = received(&mut self.terminate) => Wish::Terminate,
            () = received(&mut self.hang_up) => Wish::HangUp,
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Returns the set of ignored signals, bit 0 being signal 1; empty where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).unwrap_or_default()
}
