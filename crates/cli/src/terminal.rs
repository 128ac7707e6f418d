//! Keeps what is typed from breaking the live view.
//!
//! The echo of `^C` or Enter would move the cursor under the view's feet, so it is off while there is a view. What is
//! typed meanwhile goes to the shell afterwards.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios};

static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Turns echo off, if this process is in the terminal's foreground: changing it from the background would stop us.
pub(crate) fn hush() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if before.is_some() || !in_foreground() {
        return;
    }
    let Ok(found) = rustix::termios::tcgetattr(io::stderr()) else { return };
    let mut quiet = found.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
    if rustix::termios::tcsetattr(io::stderr(), OptionalActions::Now, &quiet).is_ok() {
        *before = Some(found);
    }
}

/// Makes the terminal as it was. Harmless when nothing was changed.
pub(crate) fn restore() {
    // A panic while the lock is held must not wait for it.
    let Ok(mut before) = BEFORE.try_lock() else { return };
    if let Some(found) = before.take()
        && in_foreground()
    {
        // If the terminal is gone there is nothing to restore.
        let _gone = rustix::termios::tcsetattr(io::stderr(), OptionalActions::Now, &found);
    }
}

fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}
