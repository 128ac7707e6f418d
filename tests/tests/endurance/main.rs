//! The product through everything that can happen to its process, its terminal, its files and its agent.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(clippy::print_stdout, reason = "seeds and figures belong to a test's output")]

mod gone;
mod kills;
mod leaving;
#[allow(dead_code, reason = "shared with the tests of bad usage, which need other parts of it")]
mod rig;
mod streams;
mod terminal;
