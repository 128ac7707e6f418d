//! The product over the real agent CLI, on every pinned version, against the scripted model on loopback.
//!
//! `rig.rs` is one sealed home with the product and a model in it; each other file is one theme. Order comes from gates
//! of the model, from records of the run and from files the agent's commands make, never from sleeping.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod faults;
mod going;
mod limits;
mod processes;
mod prompts;
mod rig;
mod service;
mod settling;
mod telling;
