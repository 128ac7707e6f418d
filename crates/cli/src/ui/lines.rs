//! One record of a run as a line for people.

use std::collections::BTreeMap;

use bursar_core::At;
use bursar_core::phase::{Link, Phase};
use bursar_runner::{DecisionRecord, EndRecord, Record, RecordEvent, ToolRecord};

use crate::escape;
use crate::paint::Paint;
use crate::span;
use crate::ui::{background, count, dollars};

/// Where a line belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// The agent's own words: stdout.
    Words(String),
    /// What happened around them: stderr.
    Around(String),
}

/// A line and when what it tells happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) at: At,
    pub(crate) line: Line,
}

/// Turns the records of one run into lines, leaving out those that would only say again what was said before.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The last line of each background task.
    tasks: BTreeMap<String, String>,
    /// What is said only if the next line does not say it better.
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    said: Said,
    /// The background task that ended, its exit code being unknown so far; None is an attempt that ended.
    task: Option<String>,
    /// How often the one who shows the lines found nothing new since.
    idle: u32,
}

impl Lines {
    /// Returns what to say once a record has come; often nothing.
    ///
    /// `all` also tells what the live view shows by itself: phases and background tasks.
    pub(crate) fn push(&mut self, record: &Record, all: bool, paint: Paint) -> Vec<Said> {
        if matches!(record.event, RecordEvent::RunFinished(_)) {
            // The outcome says how the last attempt ended.
            return self
                .held
                .take()
                .filter(|held| held.task.is_some())
                .map(|held| held.said)
                .into_iter()
                .collect();
        }
        let Some(line) = line(record, all, paint) else { return Vec::new() };
        let mut said = Vec::new();
        let mut task_ended = None;
        if let (RecordEvent::Background(task), Line::Around(text)) = (&record.event, &line) {
            if self.tasks.insert(task.id.clone(), text.clone()).as_ref() == Some(text) {
                return said;
            }
            if task.exit.is_some()
                && self.held.as_ref().is_some_and(|held| held.task.as_ref() == Some(&task.id))
            {
                self.held = None;
            }
            task_ended = (!task.state.is_live() && task.exit.is_none()).then(|| task.id.clone());
        }
        said.extend(self.held.take().map(|held| held.said));
        let new = Said { at: record.at, line };
        if task_ended.is_some() || matches!(record.event, RecordEvent::AttemptEnded { .. }) {
            self.held = Some(Held { said: new, task: task_ended, idle: 0 });
        } else {
            said.push(new);
        }
        said
    }

    /// Whether `idle` may have something to say.
    pub(crate) fn waits(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.task.is_some())
    }

    /// Returns what was kept back, if nothing better came for the second time.
    pub(crate) fn idle(&mut self) -> Option<Said> {
        let held = self.held.as_mut().filter(|held| held.task.is_some())?;
        held.idle += 1;
        if held.idle < 2 { None } else { self.rest() }
    }

    /// Returns what was kept back, when nothing more will come.
    pub(crate) fn rest(&mut self) -> Option<Said> {
        self.held.take().map(|held| held.said)
    }
}

fn line(record: &Record, all: bool, paint: Paint) -> Option<Line> {
    let around = match &record.event {
        RecordEvent::Text { subagent: None, text } => {
            let text = text.trim_end();
            return (!text.is_empty()).then(|| Line::Words(escape::text(text).into_owned()));
        }
        RecordEvent::Text { subagent: Some(_), text } => paint.dim(&indented(text)),
        RecordEvent::RunStarted { prompt_bytes, resume } => {
            let resume = resume.as_deref().map(|id| format!(", resumes session {}", escape::line(id)));
            paint.dim(&format!(
                "run {run} · prompt of {}{}",
                count(*prompt_bytes, "byte"),
                resume.unwrap_or_default(),
                run = escape::line(&record.run)
            ))
        }
        RecordEvent::AttemptStarted { attempt, pid, found } => {
            if *attempt == 1 && !all && !found {
                return None;
            }
            let how = if *found { "found again" } else { "started" };
            paint.dim(&format!("attempt {attempt} {how} · pid {pid}"))
        }
        RecordEvent::ReplyStarted { origin, model, agent_version, .. } => {
            reply_started(origin, model.as_deref(), agent_version.as_deref(), all, paint)?
        }
        RecordEvent::Tool(tool) => tool_line(tool, paint)?,
        RecordEvent::Background(task) => {
            if !all {
                return None;
            }
            background::line(task, None, false, paint)
        }
        RecordEvent::Phase { phase } => {
            if !all {
                return None;
            }
            match phase {
                Phase::Waiting | Phase::Limited | Phase::Question | Phase::NeedsInput => {
                    paint.dim(&format!("phase: {phase}"))
                }
                // What happens in these is told by other lines.
                Phase::Starting | Phase::Working | Phase::Settling | Phase::Ended => return None,
            }
        }
        RecordEvent::Link { link } => link_line(*link, paint),
        RecordEvent::Remark { text } => format!("{} {}", paint.yellow("note:"), escape::line(text)),
        RecordEvent::Decision(decision) => decision_line(decision, record.at, all, paint)?,
        RecordEvent::AttemptEnded { attempt, end, skipped_lines } => {
            let skipped = match skipped_lines {
                0 => String::new(),
                n => format!(" · {} of its output skipped", count(*n, "line")),
            };
            if *skipped_lines == 0 && !all && end.code == Some(0) {
                return None;
            }
            paint.dim(&format!("attempt {attempt} ended · {}{skipped}", end_words(end)))
        }
        RecordEvent::RunFinished(_) => return None,
    };
    Some(Line::Around(around))
}

/// Says how an attempt's process ended.
pub(crate) fn end_words(end: &EndRecord) -> String {
    match (end.code, end.signal, end.rebooted) {
        (Some(code), _, _) => format!("exit {code}"),
        (_, Some(signal), _) => format!("killed by signal {signal}"),
        (_, _, Some(true)) => "gone, the host was restarted".to_owned(),
        _ => escape::line(&end.how).into_owned(),
    }
}

/// The figures that go with each decision.
pub(crate) fn figures(decision: &DecisionRecord) -> String {
    format!(
        "turns {} of {}, {} in all · continues {}/{} · nudges {}/{} · debt {} · {}",
        decision.turns_spent,
        decision.turn_budget,
        decision.turns_spent_total,
        decision.continues_used,
        decision.continues_limit,
        decision.nudges_used,
        decision.nudges_limit,
        decision.debt,
        dollars(decision.cost_usd)
    )
}

fn decision_line(decision: &DecisionRecord, at: At, all: bool, paint: Paint) -> Option<String> {
    if decision.action == "finish" {
        // The summary says it.
        return None;
    }
    let until = decision
        .until
        .map(|until| format!(" · for {} at most", span::clock(until.since(at))))
        .unwrap_or_default();
    // One line where it may be searched, two where it is only read.
    let figures =
        if all { format!(" [{}]", figures(decision)) } else { format!("\n  {}", figures(decision)) };
    Some(format!(
        "{} {}{until}{}",
        paint.cyan(&format!("→ {}:", escape::line(&decision.action))),
        escape::line(&decision.message),
        paint.dim(&figures)
    ))
}

fn reply_started(
    origin: &str,
    model: Option<&str>,
    version: Option<&str>,
    all: bool,
    paint: Paint,
) -> Option<String> {
    match origin {
        "wakeup" => Some(paint.dim("the agent woke by itself")),
        "empty" => None,
        _ if !all => None,
        _ => {
            let of = |name: &str, value: Option<&str>| {
                value.map(|value| format!(" · {name} {}", escape::line(value))).unwrap_or_default()
            };
            Some(paint.dim(&format!("reply started{}{}", of("model", model), of("agent", version))))
        }
    }
}

fn tool_line(tool: &ToolRecord, paint: Paint) -> Option<String> {
    let name = tool.name.as_deref()?;
    let inset = if tool.subagent.is_some() { "  " } else { "" };
    let summary = tool.summary.as_deref().unwrap_or_default();
    Some(paint.dim(format!("{inset}· {} {}", escape::line(name), escape::line(summary)).trim_end()))
}

fn link_line(link: Link, paint: Paint) -> String {
    match link {
        Link::Live => paint.dim("link: live again"),
        Link::Reconnecting => {
            paint.yellow("link: down, reconnecting; an agent that runs there goes on by itself")
        }
        Link::Unverifiable => paint.yellow("link: still down; nobody can tell whether the agent runs"),
    }
}

fn indented(text: &str) -> String {
    let text = escape::text(text.trim_end());
    let lines: Vec<String> = text.lines().map(|line| format!("  ┊ {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use bursar_core::background::{Kind, State};
    use bursar_runner::BackgroundRecord;

    use super::*;

    fn record(event: RecordEvent) -> Record {
        Record { v: 1, seq: 1, at: At(0), run: "k7f2abcd".to_owned(), event }
    }

    fn ended(id: &str, exit: Option<i32>) -> Record {
        record(RecordEvent::Background(BackgroundRecord {
            id: id.to_owned(),
            kind: Kind::Shell,
            state: State::Done,
            exit,
            description: String::new(),
            owed: false,
            output: None,
            by_subagent: false,
            began: At(0),
            ended: Some(At(1_000)),
            cut_after_look: false,
        }))
    }

    fn words(lines: impl IntoIterator<Item = Said>) -> Vec<String> {
        let text = |said: Said| match said.line {
            Line::Words(text) | Line::Around(text) => text,
        };
        lines.into_iter().map(text).collect()
    }

    fn push(lines: &mut Lines, record: &Record) -> Vec<String> {
        words(lines.push(record, true, Paint::new(false)))
    }

    #[test]
    fn an_end_whose_exit_code_follows_is_told_once() {
        let mut lines = Lines::default();
        assert_eq!(push(&mut lines, &ended("b1", None)), [""; 0]);
        assert_eq!(push(&mut lines, &ended("b1", Some(0))), ["shell b1 · done · exit 0 · 0:01"]);
    }

    #[test]
    fn an_end_without_an_exit_code_is_told_in_its_place_or_after_a_while() {
        let mut lines = Lines::default();
        assert_eq!(push(&mut lines, &ended("b1", None)), [""; 0]);
        let both = ["shell b1 · done · 0:01", "shell b2 · done · exit 0 · 0:01"];
        assert_eq!(push(&mut lines, &ended("b2", Some(0))), both);

        assert_eq!(push(&mut lines, &ended("b3", None)), [""; 0]);
        assert!(lines.waits() && lines.idle().is_none());
        assert_eq!(words(lines.idle()), ["shell b3 · done · 0:01"]);
        assert!(!lines.waits());
    }

    #[test]
    fn an_attempts_end_is_told_if_the_run_goes_on() {
        let end = EndRecord { how: "exited".to_owned(), code: Some(1), ..EndRecord::default() };
        let ended = record(RecordEvent::AttemptEnded { attempt: 1, end, skipped_lines: 0 });
        let started = record(RecordEvent::AttemptStarted { attempt: 2, pid: 7, found: false });
        let mut lines = Lines::default();
        assert_eq!(push(&mut lines, &ended), [""; 0]);
        assert_eq!(push(&mut lines, &started), ["attempt 1 ended · exit 1", "attempt 2 started · pid 7"]);
    }
}
