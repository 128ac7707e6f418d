//! Steps of the ladder as tracing records.

use crate::record::{Record, RecordEvent};

/// Logs a step of the ladder with all a reader needs to judge it: the one place that does, for every transport.
pub(crate) fn log_decision(record: &Record) {
    let RecordEvent::Decision(decision) = &record.event else {
        return;
    };
    tracing::info!(
        target: "bursar::decision",
        run = record.run,
        host = decision.host,
        transport = decision.transport,
        attempt = decision.attempt,
        reply = decision.reply,
        reason = decision.reason,
        action = decision.action,
        turn_budget = decision.turn_budget,
        turns_spent = decision.turns_spent,
        turns_spent_total = decision.turns_spent_total,
        continues_used = decision.continues_used,
        continues_limit = decision.continues_limit,
        nudges_used = decision.nudges_used,
        nudges_limit = decision.nudges_limit,
        debt = decision.debt,
        cost_usd = decision.cost_usd,
        "{}", decision.message
    );
}
