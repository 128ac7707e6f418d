//! What a run is allowed to spend: data, no behaviour.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, SessionId};
use crate::instruction::Delivery;

/// What the user asked for, with every limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub run: RunId,
    /// The host's name, for messages only.
    pub host: String,
    /// The transport's name, for the log only.
    pub transport: String,
    pub prompt: String,
    /// The session to go on with, instead of a fresh one.
    pub resume: Option<SessionId>,
    pub model: Option<String>,
    /// The agent's permission mode, in its own spelling; None leaves it to the agent's configuration.
    pub permission_mode: Option<String>,
    /// Further arguments for the agent.
    pub agent_args: Vec<String>,
    /// How the standing instruction travels; None sends none.
    pub delivery: Option<Delivery>,
    /// Ids are derived from it.
    pub seed: u64,
    pub limits: Limits,
}

/// The limits of one run. A stored run that knew fewer of them has the default for the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Turn budget of one reply (`--max-turns`).
    pub max_turns: u64,
    /// Continues the run may spend.
    pub continues: u32,
    /// Nudges the run may spend.
    pub nudges: u32,
    /// Time the run may spend holding for background work; None gives the plain one-shot form of the agent.
    pub hold: Option<Duration>,
    /// Longest single wait for a rate or usage limit.
    pub max_wait: Duration,
    /// Waits for a limit the run may spend.
    pub waits: u32,
    /// Back-offs in a row for an overloaded service.
    pub backoffs: u32,
    /// Cost in US dollars after which the run is exhausted.
    pub max_cost_usd: Option<f64>,
    /// Time after which the run is exhausted.
    pub timeout: Option<Duration>,
    /// How long everything must stay quiet before an attempt counts as settled.
    pub quiet: Duration,
    /// How long an agent may take to leave once its input was closed.
    pub leave: Duration,
    /// How long an agent without an open input may stay after its last result: some versions wait for a shell without
    /// any bound (DRIFT 1).
    pub linger: Duration,
    /// How often a host is asked whether orphans still work.
    pub survey_every: Duration,
    /// The longest line that is decoded, in bytes; a longer one is skipped and counted.
    pub max_line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            continues: 3,
            nudges: 1,
            hold: Some(Duration::from_secs(30 * 60)),
            max_wait: Duration::from_secs(30 * 60),
            waits: 3,
            backoffs: 5,
            max_cost_usd: None,
            timeout: None,
            quiet: Duration::from_millis(1500),
            leave: Duration::from_secs(20),
            linger: Duration::from_secs(30 * 60),
            survey_every: Duration::from_secs(2),
            max_line: 256 << 20,
        }
    }
}
