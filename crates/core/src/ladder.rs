//! The ladder of decisions: one pure function over one table.
//!
//! It runs after each result of a reply to our last message (and of the replies after it), after a process that ended
//! without one, and when a hold, a wait or a survey is over. The first row that matches wins.
//!
//! | row | condition | step | reason |
//! | --- | --- | --- | --- |
//! | 1 | a person asked to stop | finish `stopped` | `user_stop` |
//! | 2 | clean, nothing runs, no debt | finish `done` | `settled` |
//! | 3 | clean, work runs, hold and budget left | hold | `background_running` |
//! | 4 | clean, debt, a nudge and budget left | nudge | `debt` |
//! | 5 | clean, debt, nudges spent, budget left | finish `stranded` | `nudge_spent` |
//! | 5b | clean, work runs that was looked at, budget left | finish `done` | `looked_at` |
//! | 6a | limit with a reset in time, waits left, budget left | wait | `limit` |
//! | 6b | any other limit | finish `limited` | `limit` |
//! | 7 | overloaded, back-offs left, budget left | back off | `overloaded` |
//! | 8 | sign-in, bad request, the agent refused its arguments | finish `failed` | the fault |
//! | 9 | session unknown, not restarted yet, continues and budget left | restart | `session_unknown` |
//! | 10 | cost or time budget reached | finish `exhausted` | `cost`, `timeout`, `agent_budget` |
//! | 11 | max turns, execution error, empty reply or no result, continues left, progress | continue | the fault |
//! | 12 | the same, but two continues in a row brought no tool call | finish `exhausted` | `no_progress` |
//! | 13 | anything else | finish `exhausted` | the fault |
//!
//! Row 0, the EMPTY result that answers nothing, never gets here. A row that would spend something asks whether the
//! budget is left, so that row 10 is reached by a reply that is clean but still owes.

use std::time::Duration;

use crate::fault::Fault;
use crate::outcome::Ending;
use crate::policy::Limits;
use crate::time::At;

/// The wait for a limit that names no reset.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);
/// The shortest wait for a limit.
const SHORTEST_WAIT: Duration = Duration::from_secs(10);
/// What is added to a reset that is named, since clocks differ.
const RESET_MARGIN: Duration = Duration::from_secs(2);
/// Continues in a row without one tool call after which no further one is spent.
const IDLE_CONTINUES: u32 = 2;

/// What the ladder wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Finish,
    Hold,
    Nudge,
    Wait,
    Backoff,
    Restart,
    Continue,
}

impl Action {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::Hold => "hold",
            Self::Nudge => "nudge",
            Self::Wait => "wait",
            Self::Backoff => "backoff",
            Self::Restart => "restart",
            Self::Continue => "continue",
        }
    }
}

/// What the ladder looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub stop_asked: bool,
    /// The judgement on the reply to our last message and the replies after it; None is a clean success.
    pub fault: Option<Fault>,
    /// Whether background work runs, or a wake-up is pending, as far as anyone knows.
    pub running: bool,
    pub debt: u64,
    /// Whether some of the hold is left.
    pub hold_left: bool,
    pub spent: Spent,
    /// Why the budget of cost or time is used up, if it is.
    pub over_budget: Option<OverBudget>,
    pub now: At,
}

/// What a run has spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub continues: u32,
    pub nudges: u32,
    pub waits: u32,
    /// Back-offs since the service last answered.
    pub backoffs: u32,
    pub restarts: u32,
    /// Continues in a row that brought no tool call.
    pub idle_continues: u32,
}

/// The budgets that end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBudget {
    Cost,
    Time,
}

/// One step, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub step: Step,
    pub reason: &'static str,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Finish(Ending),
    Hold,
    Nudge,
    Wait { until: At },
    Backoff { until: At },
    Restart,
    Continue,
}

impl Step {
    /// Returns the action's word, without its parameters.
    #[must_use]
    pub fn action(self) -> Action {
        match self {
            Self::Finish(_) => Action::Finish,
            Self::Hold => Action::Hold,
            Self::Nudge => Action::Nudge,
            Self::Wait { .. } => Action::Wait,
            Self::Backoff { .. } => Action::Backoff,
            Self::Restart => Action::Restart,
            Self::Continue => Action::Continue,
        }
    }
}

/// Decides. See the table at the top of this file.
#[must_use]
pub fn decide(facts: &Facts, limits: &Limits) -> Verdict {
    let spent = &facts.spent;
    let budget_left = facts.over_budget.is_none();
    let to = |step, reason| Verdict { step, reason };
    let finish = |ending, reason| Verdict { step: Step::Finish(ending), reason };

    if facts.stop_asked {
        return finish(Ending::Stopped, "user_stop");
    }
    let Some(fault) = &facts.fault else {
        return match (facts.running, facts.debt) {
            (false, 0) => finish(Ending::Done, "settled"),
            (true, _) if facts.hold_left && budget_left => to(Step::Hold, "background_running"),
            (_, 1..) if spent.nudges < limits.nudges && budget_left => to(Step::Nudge, "debt"),
            (_, 1..) if budget_left => finish(Ending::Stranded, "nudge_spent"),
            (true, 0) if budget_left => finish(Ending::Done, "looked_at"),
            _ => finish(Ending::Exhausted, over(facts)),
        };
    };
    match fault {
        Fault::Limit { resets, weekly } => match wait_until(facts.now, *resets, *weekly, limits) {
            Some(until) if spent.waits < limits.waits && budget_left => {
                to(Step::Wait { until }, fault.reason())
            }
            _ => finish(Ending::Limited, fault.reason()),
        },
        Fault::Overloaded if spent.backoffs < limits.backoffs && budget_left => {
            to(Step::Backoff { until: facts.now.after(backoff(spent.backoffs)) }, fault.reason())
        }
        Fault::SignIn | Fault::BadRequest | Fault::AgentRefused => finish(Ending::Failed, fault.reason()),
        Fault::SessionUnknown if spent.restarts == 0 && spent.continues < limits.continues && budget_left => {
            to(Step::Restart, fault.reason())
        }
        _ if !budget_left => finish(Ending::Exhausted, over(facts)),
        Fault::MaxTurns | Fault::Execution | Fault::EmptyReply | Fault::NoResult => {
            if spent.idle_continues >= IDLE_CONTINUES {
                finish(Ending::Exhausted, "no_progress")
            } else if spent.continues < limits.continues {
                to(Step::Continue, fault.reason())
            } else {
                finish(Ending::Exhausted, fault.reason())
            }
        }
        Fault::Overloaded | Fault::SessionUnknown | Fault::Budget => {
            finish(Ending::Exhausted, fault.reason())
        }
    }
}

/// Returns the end of the wait for a limit, or None if it is not to be waited for.
fn wait_until(now: At, resets: Option<At>, weekly: bool, limits: &Limits) -> Option<At> {
    if weekly {
        return None;
    }
    let span = resets.map_or(UNNAMED_WAIT, |resets| resets.since(now) + RESET_MARGIN).max(SHORTEST_WAIT);
    (span <= limits.max_wait.max(SHORTEST_WAIT)).then(|| now.after(span))
}

/// The wait before try `used + 1` again: 20 s, then 10 s more each time, at most 60 s.
fn backoff(used: u32) -> Duration {
    Duration::from_secs(u64::from(20 + 10 * used.min(4)))
}

fn over(facts: &Facts) -> &'static str {
    match facts.over_budget {
        Some(OverBudget::Cost) => "cost",
        Some(OverBudget::Time) => "timeout",
        None => "out_of_rows",
    }
}

#[cfg(test)]
mod tests;
