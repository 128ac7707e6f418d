//! `bursar show`: all that is known of a run.

use std::path::PathBuf;
use std::time::Duration;

use bursar_core::At;
use bursar_runner::{
    Clock as _, DecisionRecord, FinishedRecord, RecordEvent, RunView, StoredRun, SystemClock, replay,
};
use clap::Args;
use serde_json::{Value, json};

use crate::args::{DataOutput, RunName};
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::ui::{background, count, dollars, lines, summary};
use crate::{driver, escape, exit, span, state};

/// Show how a run stands or how it ended, with every decision and all accounts
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    name: RunName,
    /// How it is printed
    #[arg(long, value_name = "FORM", default_value = "human")]
    output: DataOutput,
}

impl ShowArgs {
    /// Runs the command.
    pub(crate) fn run(&self, output: &Output) -> Result<u8, Failure> {
        let (store, run) = state::find(&self.name.run)?;
        let mut decisions = Vec::new();
        let view = replay(&store, &run, |record| {
            if let RecordEvent::Decision(decision) = record.event {
                decisions.push((record.at, *decision));
            }
        })?;
        let Some(stored) = store.load(&run)? else {
            return Err(bursar_runner::RunnerError::UnknownRun { run }.into());
        };
        let driven = store.list(false)?.iter().any(|line| line.run == run && line.driven);
        let log = driver::log_file(&store, &run);
        let log = std::fs::metadata(&log).is_ok_and(|found| found.len() > 0).then_some(log);
        let shown = Shown { stored, view, decisions, driven, log };
        if self.output == DataOutput::Json {
            output.line(&escape::json(&shown.json().to_string()));
        } else {
            for line in shown.lines(SystemClock.now(), output.paint()) {
                output.line(&line);
            }
        }
        Ok(exit::DONE)
    }
}

struct Shown {
    stored: StoredRun,
    view: RunView,
    decisions: Vec<(At, DecisionRecord)>,
    driven: bool,
    /// The log of the background driver, if it wrote one.
    log: Option<PathBuf>,
}

impl Shown {
    fn finished(&self) -> Option<&FinishedRecord> {
        // The stored end counts, even if a younger bursar would fold the log to another one.
        self.stored.finished.as_ref().or(self.view.finished.as_ref())
    }

    fn json(&self) -> Value {
        let (request, view) = (&self.stored.request, &self.view);
        let decisions: Vec<Value> = self
            .decisions
            .iter()
            .map(|(at, decision)| {
                let mut value = json!(decision);
                value["at"] = json!(at.rfc3339());
                value
            })
            .collect();
        json!({
            "v": 1,
            "run": request.run.0,
            "host": request.host,
            "dir": String::from_utf8_lossy(&self.stored.dir),
            "key": self.stored.key,
            "created": self.stored.created.rfc3339(),
            "finished_at": self.stored.finished_at.map(At::rfc3339),
            "driven": self.driven,
            "phase": if self.finished().is_some() { "ended" } else { view.phase.as_str() },
            "link": view.link.as_str(),
            "outcome": self.finished().map(|finished| finished.outcome.as_str()),
            "model": view.model,
            "prompt": request.prompt,
            "turns": {"budget": view.turn_budget, "total": view.turns_spent_total},
            "cost_usd": view.cost_usd,
            "debt": view.debt,
            "background": view.background,
            "decisions": decisions,
            "finished": self.finished(),
        })
    }

    fn lines(&self, now: At, paint: Paint) -> Vec<String> {
        let run = &self.stored.request.run.0;
        let mut out = match self.finished() {
            Some(finished) => summary::lines(run, finished, paint),
            None => self.standing(now, paint),
        };
        out.push(String::new());
        out.extend(self.facts(paint));
        if !self.decisions.is_empty() {
            out.push(String::new());
            out.push(paint.bold("decisions"));
            for (at, decision) in &self.decisions {
                out.push(format!(
                    "  {}  {} {} ({})",
                    span::clock(at.since(self.stored.created)),
                    paint.cyan(&escape::line(&decision.action)),
                    escape::line(&decision.message),
                    escape::line(&decision.reason)
                ));
                out.push(paint.dim(&format!("        {}", lines::figures(decision))));
            }
        }
        if let Some(finished) = self.finished() {
            out.extend(history(finished, paint));
        }
        out.push(String::new());
        out.extend(self.next_steps(paint));
        out
    }

    /// The first lines of a run that is not over.
    fn standing(&self, now: At, paint: Paint) -> Vec<String> {
        let view = &self.view;
        let who = if self.driven { "" } else { " · nobody drives it" };
        let mut out = vec![
            format!("{}{}", paint.bold(&view.phase.as_str().replace('_', " ")), paint.yellow(who)),
            paint.dim(&format!(
                "  run {} · {} spent (budget {}) · debt {} · {} · {}",
                view.run,
                count(view.turns_spent_total, "turn"),
                view.turn_budget,
                view.debt,
                dollars(view.cost_usd),
                span::clock(now.since(view.begun))
            )),
        ];
        out.extend(
            view.background
                .iter()
                .map(|task| format!("  {}", background::line(task, Some(now), false, paint))),
        );
        out
    }

    fn facts(&self, paint: Paint) -> Vec<String> {
        let request = &self.stored.request;
        let limits = &request.limits;
        let hold = limits.hold.map_or_else(|| "none".to_owned(), span::clock);
        let mut facts = vec![
            ("prompt", first_line(&request.prompt)),
            ("host", request.host.clone()),
            ("folder", String::from_utf8_lossy(&self.stored.dir).into_owned()),
            (
                "begun",
                format!(
                    "{} ({} ago)",
                    self.stored.created,
                    span::age(SystemClock.now().since(self.stored.created))
                ),
            ),
            (
                "limits",
                format!(
                    "{} a reply · {} · hold {hold}",
                    count(limits.max_turns, "turn"),
                    count(limits.continues.into(), "continue")
                ),
            ),
        ];
        if let Some(model) = &self.view.model {
            facts.push(("model", model.clone()));
        }
        if let Some(session) = self.finished().and_then(|finished| finished.session.as_ref()) {
            facts.push(("session", session.clone()));
        }
        if let Some(log) = &self.log {
            facts.push(("log", log.display().to_string()));
        }
        facts
            .into_iter()
            .map(|(name, value)| format!("{} {}", paint.dim(&format!("{name:<9}")), escape::line(&value)))
            .collect()
    }

    fn next_steps(&self, paint: Paint) -> Vec<String> {
        let run = &self.stored.request.run.0;
        let mut steps = vec![("all it said", format!("bursar logs {run}"))];
        match self.finished() {
            Some(finished) => {
                if finished.session.is_some() {
                    steps.push(("go on with it", format!("bursar run --resume {run} \"...\"")));
                }
            }
            None => {
                steps.push(("follow it", format!("bursar attach {run}")));
                steps.push(("stop it", format!("bursar stop {run}")));
            }
        }
        steps.into_iter().map(|(what, how)| format!("{} {how}", paint.dim(&format!("{what:<14}")))).collect()
    }
}

/// The attempts and replies of a run that is over.
fn history(finished: &FinishedRecord, paint: Paint) -> Vec<String> {
    let mut out = vec![String::new(), paint.bold("attempts")];
    for attempt in &finished.attempts {
        let end = attempt.end.as_ref().map_or_else(|| "not started".to_owned(), lines::end_words);
        let version =
            attempt.agent_version.as_deref().map(|version| format!(" · agent {}", escape::line(version)));
        out.push(format!(
            "  {} · {end} · {} of output{}",
            attempt.attempt,
            count(attempt.bytes, "byte"),
            version.unwrap_or_default()
        ));
        for reply in finished.replies.iter().filter(|reply| reply.attempt == attempt.attempt) {
            let error = if reply.is_error { " · error" } else { "" };
            out.push(format!(
                "    reply to {} · {}{error} · {}",
                match reply.origin.as_str() {
                    "message" => "a message",
                    "wakeup" => "a wake-up",
                    _ => "nothing",
                },
                escape::line(&reply.subtype),
                count(reply.turns, "turn")
            ));
        }
    }
    out.push(format!("  took {}", span::clock(Duration::from_millis(finished.duration_ms))));
    out
}

fn first_line(prompt: &str) -> String {
    let mut lines = prompt.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let cut: String = first.chars().take(100).collect();
    let more = cut.len() < first.len() || lines.next().is_some();
    if more { format!("{cut} …") } else { cut }
}
