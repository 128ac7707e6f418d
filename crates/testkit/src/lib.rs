//! Everything the tests need in place of the world: a model that answers from a script, the real agent CLI at pinned
//! versions, a home for it that knows no key and no network, and a scripted agent for the cases a real one cannot play.
//!
//! These parts stand on the other side of the product's boundaries and know nothing of it, so that a mistake in the
//! product cannot hide in its own test tools; only the contract suite sees a boundary from both sides. Start with
//! [`AgentHome`] and [`ModelServer`] for the real agent, with [`scripted`] for the scripted one. Used by tests and by
//! `xtask` only, never shipped.

pub mod agent;
pub mod contract;
pub mod home;
pub mod model;
pub mod processes;
pub mod scripted;
pub mod workspace;

pub use agent::{AgentVersion, DirectAgent, InstallError, agent_path, on_every_version};
pub use home::{AgentHome, HomeError};
pub use model::{Gate, ModelRequest, ModelServer, Script, Step};
pub use scripted::{AgentScript, AttemptScript, Reply, ScriptedAgent, Shell};
