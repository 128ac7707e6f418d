//! The product over the real agent CLI, on every pinned version, against the scripted model on loopback.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod rig;
mod settling;
