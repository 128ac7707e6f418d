//! The words for people: why a step was taken, how a run ended, and what to do next.

use super::Run;
use crate::agent::Subtype;
use crate::background::State;
use crate::fault::{self, Fault};
use crate::ladder::{Step, Verdict};
use crate::notice::{Decided, What};
use crate::outcome::{Ending, Outcome};
use crate::time::At;

impl Run {
    /// Tells watchers and the log what was decided.
    pub(super) fn report(&mut self, verdict: Verdict, fault: Option<&Fault>) {
        let limits = &self.request.limits;
        let until = match verdict.step {
            Step::Wait { until } | Step::Backoff { until } => Some(until),
            Step::Hold => limits.hold.map(|hold| self.now.after(hold.saturating_sub(self.hold_spent()))),
            Step::Finish(_) | Step::Nudge | Step::Restart | Step::Continue => None,
        };
        let (mut continues_used, mut nudges_used) = (self.spent.continues, self.spent.nudges);
        // A step that spends is told with what is used once it is taken.
        match verdict.step {
            Step::Continue | Step::Restart => continues_used += 1,
            Step::Nudge => nudges_used += 1,
            Step::Finish(_) | Step::Hold | Step::Wait { .. } | Step::Backoff { .. } => {}
        }
        let decided = Decided {
            run: self.request.run.0.clone(),
            host: self.request.host.clone(),
            transport: self.request.transport.clone(),
            attempt: self.attempts.last().map_or(0, |attempt| attempt.id.0),
            reply: self.replies_begun,
            action: verdict.step.action(),
            reason: verdict.reason.to_owned(),
            message: self.explain(verdict, fault, continues_used, nudges_used, until),
            turn_budget: limits.max_turns,
            turns_spent: self.tally.turns_last,
            turns_spent_total: self.tally.turns_total,
            continues_used,
            continues_limit: limits.continues,
            nudges_used,
            nudges_limit: limits.nudges,
            debt: self.tally.ledger.debt(),
            cost_usd: self.cost.total,
            until,
        };
        self.tell(What::Decided(Box::new(decided)));
    }

    fn explain(
        &self,
        verdict: Verdict,
        fault: Option<&Fault>,
        continues: u32,
        nudges: u32,
        until: Option<At>,
    ) -> String {
        let limits = &self.request.limits;
        let debt = self.tally.ledger.debt();
        let because = fault.map_or_else(String::new, |fault| self.because(fault));
        match verdict.step {
            Step::Hold if verdict.reason == "orphan_running" => {
                format!(
                    "work of this run still runs on {} without its agent; waiting for it",
                    self.request.host
                )
            }
            Step::Hold => "background work runs; holding the agent's input open".to_owned(),
            Step::Nudge if verdict.reason == "left_running" => format!(
                "{} left running beside the agent; asking it once (nudge {nudges} of {})",
                count(self.survivors.len() as u64, "process was", "processes were"),
                limits.nudges
            ),
            Step::Nudge => format!(
                "{} not settled; asking the agent once (nudge {nudges} of {})",
                count(debt, "launch is", "launches are"),
                limits.nudges
            ),
            Step::Wait { .. } => {
                format!("{because}; waiting until {}", until.map_or_else(String::new, At::rfc3339))
            }
            Step::Backoff { .. } => format!(
                "{because}; trying again at {} (back-off {} of {})",
                until.map_or_else(String::new, At::rfc3339),
                self.spent.backoffs + 1,
                limits.backoffs
            ),
            Step::Restart => {
                format!("{because}; one fresh start (continue {continues} of {})", limits.continues)
            }
            Step::Continue => format!("{because}; continuing ({continues} of {})", limits.continues),
            Step::Finish(Ending::Done) => "the reply succeeded and nothing is owed".to_owned(),
            Step::Finish(Ending::Stranded) => {
                format!("the nudge is spent and {} not settled", count(debt, "launch is", "launches are"))
            }
            Step::Finish(Ending::Stopped) => "stopped on request".to_owned(),
            Step::Finish(_) => match verdict.reason {
                "no_progress" => format!("{because}; two continues in a row brought no tool call"),
                "cost" => format!("the run cost {:.2} USD, which is the budget or more", self.cost.total),
                "timeout" => "the run's time is used up".to_owned(),
                _ => because,
            },
        }
    }

    fn because(&self, fault: &Fault) -> String {
        let (spent, budget) = (self.tally.turns_last, self.request.limits.max_turns);
        match fault {
            Fault::MaxTurns if self.limit_is_foreign() => format!(
                "stopped by a turn limit after {spent} turns, but the budget here is {budget}: the limit is not ours; look \
                 at the agent's version, its settings files and its hooks"
            ),
            Fault::MaxTurns => format!("stopped by the turn limit: used {spent} of {budget} turns"),
            Fault::Limit { resets: Some(at), .. } => {
                format!("the account's limit is reached; it resets at {}", at.rfc3339())
            }
            Fault::Limit { resets: None, .. } => {
                "the account's limit is reached; no reset time was told".to_owned()
            }
            Fault::Overloaded => "the agent's service is overloaded or failed in passing".to_owned(),
            Fault::SignIn => "the agent's service does not accept the sign-in".to_owned(),
            Fault::BadRequest => "the agent's service does not accept the request".to_owned(),
            Fault::AgentRefused => "the agent left at once with an error code".to_owned(),
            Fault::SessionUnknown => "the session is not known on the host".to_owned(),
            Fault::Budget => "the agent's own cost budget is used up".to_owned(),
            Fault::Execution => "the agent broke off its reply".to_owned(),
            Fault::EmptyReply => "the reply was empty: nothing said, nothing done".to_owned(),
            Fault::NoResult if self.attempts.last().is_some_and(|attempt| attempt.reader.decoded() == 0) => {
                "the process ended without a word on its stream; is it the agent's program?".to_owned()
            }
            Fault::NoResult => "the agent's process ended without a result for the last message".to_owned(),
        }
    }

    pub(super) fn done_outcome(&self, reason: &str) -> Outcome {
        let cut =
            self.tally.table.snapshots(|_| false).into_iter().filter(|piece| piece.cut_after_look).count();
        let mut message = String::from("the reply succeeded and nothing is owed");
        if cut > 0 {
            message = format!(
                "{message}; {} stopped when the agent ended",
                count(cut as u64, "piece of background work was", "pieces of background work were")
            );
        }
        let mut hint = String::new();
        if self.spent.restarts > 0 {
            message.push_str("; the session it was to go on with was not known, so it ran in a fresh one");
        }
        if !self.tally.denied.is_empty() {
            let tools: Vec<&str> = self.tally.denied.keys().map(String::as_str).collect();
            let calls = count(self.tally.denied.values().sum(), "tool call was", "tool calls were");
            message = format!("{message}; {calls} not permitted ({})", tools.join(", "));
            hint = "--permissions acceptEdits lets it change files, --permissions bypass lets it do all (in a sandbox)"
                .to_owned();
        }
        if !self.survivors.is_empty() {
            message = format!(
                "{message}; {} left running",
                count(self.survivors.len() as u64, "process was", "processes were")
            );
            let stop = format!("`bursar stop {}` stops what was left running", self.request.run);
            hint = if hint.is_empty() { stop } else { format!("{stop}; {hint}") };
        }
        Outcome { ending: Ending::Done, reason: reason.to_owned(), message, hint }
    }

    pub(super) fn outcome(&self, ending: Ending, reason: &str, fault: Option<&Fault>) -> Outcome {
        let run = &self.request.run;
        let host = &self.request.host;
        let resume = match self.session() {
            Some(_) => format!("`bursar run --resume {run} \"…\"` goes on in the same session"),
            None => "start the run again".to_owned(),
        };
        let because = fault.map_or_else(String::new, |fault| self.because(fault));
        let stderr = self.attempts.last().and_then(super::Attempt::quoted_stderr);
        let with_stderr = |text: String| match &stderr {
            Some(stderr) => format!("{text}; on stderr it said: {stderr}"),
            None => text,
        };
        let service_said = match (&self.tally.text, fault) {
            (text, Some(Fault::SignIn | Fault::BadRequest | Fault::Limit { .. })) if !text.is_empty() => {
                format!("{because}; it says: {text}")
            }
            _ => because.clone(),
        };
        let (message, hint) = match ending {
            Ending::Done => return self.done_outcome(reason),
            Ending::Stopped if self.survivors.is_empty() => {
                ("stopped on request; nothing of the run is left".to_owned(), resume)
            }
            Ending::Stopped => (
                format!(
                    "stopped on request, but {} could not be stopped",
                    count(self.survivors.len() as u64, "process", "processes")
                ),
                format!("look at them on {host}; `bursar show {run}` lists them"),
            ),
            Ending::Stranded => self.stranded(&resume),
            Ending::Limited => {
                let told = matches!(fault, Some(Fault::Limit { resets: Some(_), .. }));
                let when = if told { "after the reset" } else { "later" };
                (service_said, format!("run it again {when}; {resume}"))
            }
            Ending::Failed => match fault {
                Some(Fault::SignIn) => (
                    service_said,
                    format!(
                        "sign in on {host} (run the agent there once by hand, or pass its key with --env NAME); {resume}"
                    ),
                ),
                Some(Fault::AgentRefused) => (
                    with_stderr(because),
                    "what --permissions, --model, --resume and the part behind `--` say goes to the agent as it is; change \
                     what it does not accept"
                        .to_owned(),
                ),
                _ => (
                    service_said,
                    format!(
                        "change the request (model, prompt, arguments) or the agent's settings on {host}; {resume}"
                    ),
                ),
            },
            Ending::Exhausted => {
                let message = match reason {
                    "no_progress" => {
                        with_stderr(format!("{because}; two continues in a row brought no tool call"))
                    }
                    "cost" => format!("the run cost {:.2} USD, which is the budget or more", self.cost.total),
                    "timeout" => "the run's time is used up".to_owned(),
                    "max_turns" => {
                        format!("{because}; all {} continues are spent", self.request.limits.continues)
                    }
                    _ => with_stderr(because),
                };
                let hint = match reason {
                    "max_turns" if self.limit_is_foreign() => {
                        format!(
                            "find the limit in the agent's version, settings or hooks on {host}; {resume}"
                        )
                    }
                    "max_turns" => format!("raise --max-turns or --continues; {resume}"),
                    _ => resume,
                };
                (message, hint)
            }
            Ending::Refused | Ending::Lost | Ending::NeedsInput => (because, resume),
        };
        Outcome { ending, reason: reason.to_owned(), message, hint }
    }

    fn stranded(&self, resume: &str) -> (String, String) {
        let ledger = &self.tally.ledger;
        let owed: Vec<_> =
            self.tally.table.snapshots(|id| ledger.owes(id)).into_iter().filter(|s| s.owed).collect();
        let mut parts: Vec<String> = owed
            .iter()
            .map(|piece| {
                let state = match (piece.state, piece.exit) {
                    // The host tells which processes live, not which of them is this work.
                    (State::Starting | State::Running, _) if self.living().is_none() => {
                        "may still run".to_owned()
                    }
                    (State::Starting | State::Running, _) => "still runs".to_owned(),
                    (State::Done | State::Failed, Some(code)) => format!("ended with exit code {code}"),
                    (State::Done, None) => "ended".to_owned(),
                    (State::Failed, None) => "failed".to_owned(),
                    // It ran when its agent was ended, and did not outlive it.
                    (State::Stopped, _) if piece.ended_with_agent => "was ended with the agent".to_owned(),
                    (State::Stopped, _) => "was stopped".to_owned(),
                    (State::Unknown, _) => "is gone, its end unknown".to_owned(),
                };
                let name = if piece.description.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", piece.description)
                };
                format!("{} {}{name} {state}", piece.kind.as_str(), piece.id)
            })
            .collect();
        if ledger.unpaired() > 0 {
            parts.push(count(ledger.unpaired(), "launch never told its id", "launches never told their ids"));
        }
        let mut message = format!(
            "{} not settled: {}",
            count(ledger.debt(), "launch was", "launches were"),
            parts.join("; ")
        );
        if self.living().is_none() {
            message.push_str(&match self.survivors.len() {
                0 => format!("; nothing of the run still runs on {}", self.request.host),
                n => format!(
                    "; {} still running on {}",
                    count(n as u64, "process is", "processes are"),
                    self.request.host
                ),
            });
        }
        let hint = if self.survivors.is_empty() {
            format!("raise --hold if the work needs longer; {resume}")
        } else {
            format!("`bursar stop {}` stops what still runs; {resume}", self.request.run)
        };
        (message, hint)
    }

    pub(super) fn limit_is_foreign(&self) -> bool {
        let hit = self.tally.replies.iter().rev().find(|reply| reply.subtype == Subtype::MaxTurns.as_str());
        hit.is_some_and(|reply| {
            fault::limit_is_foreign(&Subtype::MaxTurns, reply.turns, self.request.limits.max_turns)
        })
    }
}

fn count(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}
