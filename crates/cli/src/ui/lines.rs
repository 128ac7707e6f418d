//! One record of a run as a line for people.

use std::collections::BTreeMap;

use bursar_core::At;
use bursar_core::phase::Link;
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

/// Turns the records of one run into lines, leaving out those that would only say again what was said before.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The last line of each background task.
    tasks: BTreeMap<String, String>,
}

impl Lines {
    /// Returns the line of a record; some records have none.
    ///
    /// `all` also tells what the live view shows by itself: phases and background tasks.
    pub(crate) fn line(&mut self, record: &Record, all: bool, paint: Paint) -> Option<Line> {
        let line = line(record, all, paint)?;
        if let (RecordEvent::Background(task), Line::Around(text)) = (&record.event, &line)
            && self.tasks.insert(task.id.clone(), text.clone()).as_ref() == Some(text)
        {
            return None;
        }
        Some(line)
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
            paint.dim(&format!("phase: {phase}"))
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
    if decision.action == "finish" && !all {
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
        Link::Reconnecting => paint.yellow("link: lost, reconnecting; the agent goes on by itself"),
        Link::Unverifiable => paint.yellow("link: still down; nobody can tell whether the agent runs"),
    }
}

fn indented(text: &str) -> String {
    let text = escape::text(text.trim_end());
    let lines: Vec<String> = text.lines().map(|line| format!("  ┊ {line}")).collect();
    lines.join("\n")
}
