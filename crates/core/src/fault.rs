//! What went wrong with a reply or a process, sorted by what can be done about it.
//!
//! Judged by subtype, `is_error`, status and error class, never by `terminal_reason`, which says "completed" over API
//! errors on older versions (DRIFT 19), and never by the exit code, which is that of the last result only (FACTS 3).

use crate::agent::{RateLimit, Reply, Subtype};
use crate::reset;
use crate::time::At;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The account's rate or usage limit.
    Limit { resets: Option<At>, weekly: bool },
    /// The service is overloaded or failed in passing.
    Overloaded,
    /// The service does not accept who we are.
    SignIn,
    /// The service does not accept what was asked: it never will.
    BadRequest,
    /// The agent refused to start: wrong arguments, not allowed as root, and the like.
    AgentRefused,
    /// The session to go on with is not there.
    SessionUnknown,
    /// The agent's own cost budget.
    Budget,
    /// The turn limit of the reply.
    MaxTurns,
    /// The agent gave up or was interrupted.
    Execution,
    /// The reply succeeded in form, but nothing was said and nothing was done.
    EmptyReply,
    /// The process ended without a result that answers our last message.
    NoResult,
}

impl Fault {
    /// Returns the machine-readable reason.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Limit { .. } => "limit",
            Self::Overloaded => "overloaded",
            Self::SignIn => "sign_in",
            Self::BadRequest => "bad_request",
            Self::AgentRefused => "agent_refused",
            Self::SessionUnknown => "session_unknown",
            Self::Budget => "agent_budget",
            Self::MaxTurns => "max_turns",
            Self::Execution => "execution_error",
            Self::EmptyReply => "empty_reply",
            Self::NoResult => "no_result",
        }
    }
}

/// What the stream said about the service while the reply ran.
#[derive(Debug, Clone, Default)]
pub struct Signs {
    /// Class and status of the last API error told in place of a text.
    pub api_error: Option<(String, Option<u16>)>,
    /// The last word about the account's limits.
    pub rate_limit: Option<RateLimit>,
    /// Whether the reply made any tool call.
    pub tool_calls: u64,
    /// Whether the reply said anything.
    pub said: bool,
}

/// Judges a reply: None is a clean success.
#[must_use]
pub fn judge(reply: &Reply, signs: &Signs, now: At) -> Option<Fault> {
    match reply.subtype {
        Subtype::Success if !reply.is_error => {
            let text = reply.text.as_deref().unwrap_or_default();
            let nothing = text.trim().is_empty() && signs.tool_calls == 0 && !signs.said;
            return nothing.then_some(Fault::EmptyReply);
        }
        Subtype::MaxTurns => return Some(Fault::MaxTurns),
        Subtype::Budget => return Some(Fault::Budget),
        Subtype::Execution | Subtype::Other(_) if session_unknown(reply) => {
            return Some(Fault::SessionUnknown);
        }
        Subtype::Success | Subtype::Execution | Subtype::Other(_) => {}
    }
    let (class, told) = signs.api_error.clone().unwrap_or_default();
    let status = reply.api_status.or(told);
    let text = reply.text.as_deref().unwrap_or_default();
    let api_error = reply.subtype == Subtype::Success;
    match (status, class.as_str()) {
        (Some(429), _) | (_, "rate_limit") => Some(limit(text, signs, now)),
        (Some(401 | 403), _) | (_, "authentication_failed") => Some(Fault::SignIn),
        (Some(400 | 402 | 404 | 413 | 422), _) => Some(Fault::BadRequest),
        (_, "model_not_found" | "invalid_request" | "billing_error" | "image_error") => {
            Some(Fault::BadRequest)
        }
        (Some(500..), _) | (_, "server_error" | "overloaded") => Some(Fault::Overloaded),
        (Some(408 | 409 | 425), _) => Some(Fault::Overloaded),
        _ if matches!(reply.terminal_reason.as_deref(), Some("prompt_too_long" | "image_error")) => {
            Some(Fault::BadRequest)
        }
        _ if signs.rate_limit.as_ref().is_some_and(|limit| limit.rejected) => Some(limit(text, signs, now)),
        // The model ran into its own output limit again and again: going on is all that can help.
        (_, "max_output_tokens") => Some(Fault::Execution),
        _ if api_error => Some(Fault::Overloaded),
        _ => Some(Fault::Execution),
    }
}

/// The agent names this in English only; there is no field for it (FACTS 3).
fn session_unknown(reply: &Reply) -> bool {
    reply.turns == 0
        && reply.errors.iter().any(|error| error.starts_with("No conversation found with session ID"))
}

fn limit(text: &str, signs: &Signs, now: At) -> Fault {
    let told = signs.rate_limit.as_ref().filter(|limit| limit.rejected);
    let weekly = told.is_some_and(|limit| limit.window.starts_with("seven_day")) || reset::names_a_week(text);
    let resets = told.and_then(|limit| limit.resets).or_else(|| reset::from_text(text, now));
    Fault::Limit { resets, weekly }
}

/// Whether a turn limit that stopped a reply cannot be the one we set: `spent` turns are less than half of `budget`.
/// Pinned by `fixtures/vectors/turn-budget.jsonl`.
#[must_use]
pub fn limit_is_foreign(subtype: &Subtype, spent: u64, budget: u64) -> bool {
    *subtype == Subtype::MaxTurns && spent > 0 && budget > 0 && spent.saturating_mul(2) < budget
}
