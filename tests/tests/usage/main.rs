//! Bad usage and bad places: a clear message with the next step, the documented exit code, and nothing lost.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod cleaning;
mod disk;
mod lines;
mod names;
#[allow(dead_code, reason = "shared with the endurance tests, which need other parts of it")]
#[path = "../endurance/rig.rs"]
mod rig;
mod room;
mod stores;
