//! The scripted agent: a tiny program that takes the agent CLI's arguments, speaks its stream, and plays a script.
//!
//! For the hundreds of cases a real agent cannot play on demand: a line of 100 MB, an end before its launch, death in
//! the middle of a word. Shapes are those of version 2.1.332; what a script writes by hand may have any other. The
//! background shells it starts are real processes in their own sessions, as the real agent's are.
//!
//! A test builds an [`AgentScript`] (mostly with [`Reply`]), hands it to [`ScriptedAgent`], gives
//! [`ScriptedAgent::path`] to the product as the agent, and asks [`ScriptedAgent::log`] what the agent was told.
//! [`play`] is the program, [`lines`] its vocabulary, [`Action`] what a script can say.

mod fill;
mod handle;
mod input;
pub mod lines;
mod log;
pub mod play;
mod reply;
mod script;
mod shells;

pub use handle::{ScriptedAgent, ScriptedError};
pub use log::{LogEntry, LogEvent};
pub use reply::{Reply, Shell};
pub use script::{Action, AgentScript, AtEof, AttemptScript, Chunk, OnTerm};
