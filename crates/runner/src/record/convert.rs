//! From the fold's notices to records, by hand.

use bursar_core::agent::Owner;
use bursar_core::background::Snapshot;
use bursar_core::event::ExitStatus;
use bursar_core::notice::{AttemptEnd, Decided, Finished, Notice, What};
use bursar_core::policy::Request;

use super::{
    AttemptRecord, BackgroundRecord, DecisionRecord, EndRecord, FinishedRecord, RECORD_VERSION, Record,
    RecordEvent, ReplyRecord, SurvivorRecord, ToolRecord, ToolState, Turns, Used,
};

impl Record {
    /// Numbers a notice of the run that `request` asked for.
    pub(crate) fn new(request: &Request, seq: u64, notice: Notice) -> Self {
        Self {
            v: RECORD_VERSION,
            seq,
            at: notice.at,
            run: request.run.0.clone(),
            event: event(request, notice.what),
        }
    }
}

fn event(request: &Request, what: What) -> RecordEvent {
    match what {
        What::RunStarted { prompt_bytes, resume } => RecordEvent::RunStarted {
            prompt_bytes: u64::try_from(prompt_bytes).unwrap_or(u64::MAX),
            resume: resume.map(|session| session.0),
        },
        What::AttemptStarted { attempt, pid, found } => {
            RecordEvent::AttemptStarted { attempt: attempt.0, pid, found }
        }
        What::ReplyStarted { attempt, reply, origin, model, agent_version } => RecordEvent::ReplyStarted {
            attempt: attempt.0,
            reply,
            origin: origin.as_str().to_owned(),
            model,
            agent_version,
        },
        What::Text { owner, text } => RecordEvent::Text { subagent: subagent(owner), text },
        What::ToolCalled { owner, id, name, summary } => RecordEvent::Tool(ToolRecord {
            subagent: subagent(owner),
            id,
            state: ToolState::Called,
            name: Some(name),
            summary: Some(summary),
            is_error: None,
        }),
        What::ToolReturned { owner, id, is_error } => RecordEvent::Tool(ToolRecord {
            subagent: subagent(owner),
            id,
            state: ToolState::Returned,
            name: None,
            summary: None,
            is_error: Some(is_error),
        }),
        What::Background(snapshot) => RecordEvent::Background(snapshot.into()),
        What::PhaseChanged { phase } => RecordEvent::Phase { phase },
        What::LinkChanged { link } => RecordEvent::Link { link },
        What::Remark { text } => RecordEvent::Remark { text },
        What::Decided(decided) => RecordEvent::Decision(Box::new((*decided).into())),
        What::AttemptEnded { attempt, end, skipped_lines } => {
            RecordEvent::AttemptEnded { attempt: attempt.0, end: end.into(), skipped_lines }
        }
        What::RunFinished(finished) => {
            RecordEvent::RunFinished(Box::new(finished_record(request, *finished)))
        }
    }
}

fn subagent(owner: Owner) -> Option<String> {
    match owner {
        Owner::Main => None,
        Owner::Subagent(call) => Some(call),
    }
}

impl From<Snapshot> for BackgroundRecord {
    fn from(snapshot: Snapshot) -> Self {
        let Snapshot {
            id,
            kind,
            state,
            exit,
            description,
            owed,
            output,
            by_subagent,
            began,
            ended,
            cut_after_look,
            ended_with_agent: _,
        } = snapshot;
        Self { id, kind, state, exit, description, owed, output, by_subagent, began, ended, cut_after_look }
    }
}

impl From<Decided> for DecisionRecord {
    fn from(decided: Decided) -> Self {
        Self {
            host: decided.host,
            transport: decided.transport,
            attempt: decided.attempt,
            reply: decided.reply,
            action: decided.action.as_str().to_owned(),
            reason: decided.reason,
            message: decided.message,
            turn_budget: decided.turn_budget,
            turns_spent: decided.turns_spent,
            turns_spent_total: decided.turns_spent_total,
            continues_used: decided.continues_used,
            continues_limit: decided.continues_limit,
            nudges_used: decided.nudges_used,
            nudges_limit: decided.nudges_limit,
            debt: decided.debt,
            cost_usd: decided.cost_usd,
            until: decided.until,
        }
    }
}

impl From<AttemptEnd> for EndRecord {
    fn from(end: AttemptEnd) -> Self {
        let how = |word: &str| Self { how: word.to_owned(), ..Self::default() };
        match end {
            AttemptEnd::Exited(ExitStatus::Code(code)) => Self { code: Some(code), ..how("exited") },
            AttemptEnd::Exited(ExitStatus::Signal(signal)) => Self { signal: Some(signal), ..how("exited") },
            AttemptEnd::Vanished { rebooted } => Self { rebooted: Some(rebooted), ..how("vanished") },
            AttemptEnd::Lost => how("lost"),
            AttemptEnd::Refused => how("refused"),
        }
    }
}

fn finished_record(request: &Request, finished: Finished) -> FinishedRecord {
    FinishedRecord {
        outcome: finished.outcome.ending,
        exit_code: finished.outcome.ending.exit_code(),
        reason: finished.outcome.reason,
        message: finished.outcome.message,
        hint: finished.outcome.hint,
        session: finished.session,
        host: request.host.clone(),
        attempts: finished
            .attempts
            .into_iter()
            .map(|attempt| AttemptRecord {
                attempt: attempt.attempt.0,
                session: attempt.session,
                agent_version: attempt.agent_version,
                end: attempt.end.map(EndRecord::from),
                bytes: attempt.bytes,
                skipped_lines: attempt.skipped_lines,
            })
            .collect(),
        replies: finished
            .replies
            .into_iter()
            .map(|reply| ReplyRecord {
                attempt: reply.attempt.0,
                origin: reply.origin.as_str().to_owned(),
                subtype: reply.subtype,
                is_error: reply.is_error,
                terminal_reason: reply.terminal_reason,
                turns: reply.turns,
            })
            .collect(),
        turns: Turns {
            budget: finished.turn_budget,
            spent: finished.turns_spent,
            total: finished.turns_spent_total,
        },
        continues: Used { used: finished.continues_used, limit: finished.continues_limit },
        nudges: Used { used: finished.nudges_used, limit: finished.nudges_limit },
        debt: finished.debt,
        background: finished.background.into_iter().map(BackgroundRecord::from).collect(),
        survivors: finished
            .survivors
            .into_iter()
            .map(|survivor| SurvivorRecord { pid: survivor.pid, command: survivor.command })
            .collect(),
        cost_usd: finished.cost_usd,
        duration_ms: finished.duration_ms,
        skipped_lines: finished.skipped_lines,
        text: finished.text,
    }
}
