//! The table of background work: what runs, how each piece ended, and for how long it ran.
//!
//! The table is fed by every carrier there is (launch results, life-cycle events, the live set, notifications, the
//! host's evidence) and asks for none of them: versions differ in which they send and in what order (DRIFT 6). It knows
//! nothing about debt; it tells `ledger.rs` what opened and what ended, as [`Change`]s.
//!
//! | carrier | opens | ends |
//! | --- | --- | --- |
//! | a launch's tool result | yes | no |
//! | the live set | what it lists | what it listed once and lists no longer |
//! | `task_started` | no: foreground commands and synchronous agents send it too; but work that had ended runs again | no |
//! | `task_updated`, `task_notification` with a status | no; kept for a launch whose result comes later | yes |
//! | the host's evidence, after the agent's process ended | no | yes, as far as it shows |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::agent::{AgentEvent, EndStatus, Launch, LiveEntry, Notification, Owner};
use crate::time::At;

/// How many foreground pieces of work are remembered in case a launch's result names one of them later.
const LOOSE_ENDS: usize = 256;

/// The kinds of background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Shell,
    Agent,
    Workflow,
    Monitor,
    Wakeup,
}

impl Kind {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Agent => "agent",
            Self::Workflow => "workflow",
            Self::Monitor => "monitor",
            Self::Wakeup => "wakeup",
        }
    }
}

/// The states of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Starting,
    Running,
    Done,
    Failed,
    Stopped,
    Unknown,
}

impl State {
    /// Returns the word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the work goes on as far as anyone knows.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// One background task as watchers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub id: String,
    pub kind: Kind,
    pub state: State,
    pub exit: Option<i32>,
    pub description: String,
    pub owed: bool,
    pub output: Option<String>,
    pub by_subagent: bool,
    pub began: At,
    /// Frozen once it ended.
    pub ended: Option<At>,
    /// Whether the agent had looked at it, and its end was caused by the agent's own exit.
    pub cut_after_look: bool,
    /// Whether it was stopped by the end of its agent rather than on anybody's wish.
    pub ended_with_agent: bool,
}

/// What one event changed, for the ledger and for watchers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Background work began, or began again under the same id.
    Opened { id: String, owner: Owner },
    /// It ended; `tellable` says whether the agent learns of such an end (completed, failed, or stopped by a limit of
    /// the living agent) or not (its own process's exit, a guess at resume).
    Ended { id: String, tellable: bool },
    /// Something else about it changed.
    Touched { id: String },
}

impl Change {
    /// Returns the id of the background task that changed.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Opened { id, .. } | Self::Ended { id, .. } | Self::Touched { id } => id,
        }
    }
}

/// The table. Entries keep the order in which they began.
#[derive(Debug, Clone, Default)]
pub struct Background {
    entries: Vec<Entry>,
    /// Where each id stands in `entries`.
    index: BTreeMap<String, usize>,
    /// `task_started` and ends of work that no launch has named (yet): foreground work, or a race (DRIFT 3).
    loose: VecDeque<Loose>,
    /// What the agent asked to stop, and was not refused.
    stop_calls: BTreeSet<String>,
    /// Stop calls that have not come back, with what they named.
    stopping: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
struct Entry {
    id: String,
    kind: Kind,
    state: State,
    exit: Option<i32>,
    description: String,
    output: Option<String>,
    owner: Owner,
    /// The tool call that began it, where an event links the two.
    call: Option<String>,
    by_subagent: bool,
    began: At,
    ended: Option<At>,
    due: Option<At>,
    /// Listed by a live set of the present process at least once.
    listed: bool,
    /// A notification said how it ended: the last word.
    notified: bool,
    /// The agent's process that ran it is gone.
    orphaned: bool,
    /// It was seen to run after that: the agent's exit did not end it, whatever a later process guesses.
    outlived: bool,
    /// It was stopped, and the agent neither asked for it nor learns of it.
    cut_off: bool,
    cut_after_look: bool,
}

#[derive(Debug, Clone)]
struct Loose {
    id: String,
    call: Option<String>,
    kind: Option<Kind>,
    description: String,
    by_subagent: bool,
    end: Option<End>,
}

/// How a piece of work ended, from one carrier.
#[derive(Debug, Clone)]
struct End {
    status: EndStatus,
    exit: Option<i32>,
    at: At,
    output: Option<String>,
    timed_out: bool,
    by_notification: bool,
}

impl Background {
    /// Folds one event of the agent and returns what changed.
    pub fn apply(&mut self, at: At, event: &AgentEvent) -> Vec<Change> {
        let mut changes = Vec::new();
        match event {
            AgentEvent::ToolReturned { owner, id, is_error, launch } => {
                self.stop_returned(at, id, *is_error, &mut changes);
                if let Some(launch) = launch.as_ref().filter(|_| !is_error) {
                    self.open(at, id, launch, owner, &mut changes);
                }
            }
            AgentEvent::LiveSet(set) => self.live_set(at, set, &mut changes),
            AgentEvent::Started { id, tool_call, kind, description, by_subagent } => {
                self.started(at, id, tool_call.as_ref(), *kind, description, *by_subagent, &mut changes);
            }
            AgentEvent::Updated { id, status: Some(status), ended, .. } => {
                let end = End {
                    status: *status,
                    exit: None,
                    // The agent's clock is trusted for the length of its own work, within what we saw ourselves.
                    at: ended.map_or(at, |told| told.min(at)),
                    output: None,
                    timed_out: false,
                    by_notification: false,
                };
                self.end(id, end, &mut changes);
            }
            AgentEvent::Notified(note) => self.notified(at, note, &mut changes),
            AgentEvent::ToolCalled { id: call_id, call, .. } => {
                if let Some(id) = &call.stops {
                    self.stop_calls.insert(id.clone());
                    self.stopping.insert(call_id.clone(), id.clone());
                    if let Some(entry) = self.entry_mut(id)
                        && entry.kind == Kind::Wakeup
                        && entry.state.is_live()
                    {
                        entry.state = State::Stopped;
                        entry.ended = Some(at);
                        changes.push(Change::Ended { id: id.clone(), tellable: true });
                    }
                }
            }
            AgentEvent::Lifecycle { wakeup: Some(wakeup), state, .. } => {
                if *state != crate::agent::MessageState::Queued {
                    // A cron's wake-up names no moment (m-cron-open): it is the one due about now.
                    self.wakeup_fired(at, Some(wakeup.due.unwrap_or(at)), &mut changes);
                }
            }
            // A transcript names no life-cycle: the scheduled message itself tells.
            AgentEvent::Prompted { wakeup: true, .. } => self.wakeup_fired(at, None, &mut changes),
            AgentEvent::Began(_)
            | AgentEvent::Text { .. }
            | AgentEvent::ApiError { .. }
            | AgentEvent::Updated { .. }
            | AgentEvent::Retrying { .. }
            | AgentEvent::RateLimit(_)
            | AgentEvent::Lifecycle { .. }
            | AgentEvent::Prompted { .. }
            | AgentEvent::Interrupted
            | AgentEvent::Denied { .. }
            | AgentEvent::Asked { .. }
            | AgentEvent::Withdrawn { .. }
            | AgentEvent::ControlAnswered { .. }
            | AgentEvent::Replied(_)
            | AgentEvent::Other => {}
        }
        changes
    }

    /// A reply began that nothing of ours asked for: the wake-up that is due by now fired, where a version does not
    /// name it (231).
    pub fn woke_unasked(&mut self, at: At) -> Vec<Change> {
        let mut changes = Vec::new();
        self.wakeup_fired(at, None, &mut changes);
        changes
    }

    /// The agent's process is gone: wake-ups are lost, and everything else it ran is `unknown` until the host tells.
    pub fn process_ended(&mut self, at: At) -> Vec<Change> {
        let mut changes = Vec::new();
        for entry in &mut self.entries {
            entry.listed = false;
            if entry.state.is_live() && !entry.orphaned {
                entry.orphaned = true;
                entry.state = if entry.kind == Kind::Shell { State::Unknown } else { State::Stopped };
                entry.ended = Some(at);
                changes.push(Change::Ended { id: entry.id.clone(), tellable: false });
            }
        }
        changes
    }

    /// The host's evidence about work whose agent is gone: processes that carry the run's marker still live (or not),
    /// and what the last line of the output file says.
    pub fn host_evidence(
        &mut self,
        at: At,
        id: &str,
        some_process_lives: bool,
        tail: Option<&str>,
    ) -> Vec<Change> {
        let Some(entry) = self.entry_mut(id) else { return Vec::new() };
        if !entry.orphaned || entry.notified || entry.kind != Kind::Shell {
            return Vec::new();
        }
        let before = (entry.state, entry.exit);
        match tail.and_then(trailer) {
            Some(Trailer::Exited(code)) => {
                entry.state = if code == 0 { State::Done } else { State::Failed };
                entry.exit = Some(code);
            }
            Some(Trailer::Killed) => entry.state = State::Stopped,
            // A file that is not there tells nothing against the line that was read from it.
            None if tail.is_none() && matches!(entry.state, State::Done | State::Failed) => {}
            None if some_process_lives => {
                entry.outlived = true;
                entry.state = State::Running;
                entry.exit = None;
                entry.ended = None;
            }
            // More output came after that line.
            None if matches!(entry.state, State::Running | State::Done | State::Failed) => {
                entry.state = State::Unknown;
                entry.exit = None;
                entry.ended = Some(at);
            }
            None => {}
        }
        if !entry.state.is_live() && entry.ended.is_none() {
            entry.ended = Some(at);
        }
        if before == (entry.state, entry.exit) {
            Vec::new()
        } else {
            vec![Change::Touched { id: id.to_owned() }]
        }
    }

    /// No process of the run lives: shells of a gone agent that nothing else explains were stopped with it, or ended by
    /// themselves later if they were seen to outlive it.
    pub fn none_lives(&mut self, at: At) -> Vec<Change> {
        let mut changes = Vec::new();
        for entry in &mut self.entries {
            let unexplained = matches!(entry.state, State::Unknown | State::Running);
            if !entry.orphaned || entry.kind != Kind::Shell || !unexplained {
                continue;
            }
            let state = if entry.outlived { State::Unknown } else { State::Stopped };
            if std::mem::replace(&mut entry.state, state) != state {
                entry.ended.get_or_insert(at);
                changes.push(Change::Touched { id: entry.id.clone() });
            }
        }
        changes
    }

    /// Marks work that had been looked at and that the agent's exit then cut off.
    pub fn mark_cut_after_look(&mut self, settled: impl Fn(&str) -> bool) {
        for entry in &mut self.entries {
            let cut = entry.cut_off || (entry.orphaned && !entry.notified && !entry.outlived);
            let gone = matches!(entry.state, State::Stopped | State::Unknown);
            entry.cut_after_look = cut && gone && entry.kind != Kind::Wakeup && settled(&entry.id);
        }
    }

    /// Whether work runs, or a wake-up is pending, as far as the present process told.
    #[must_use]
    pub fn any_live(&self) -> bool {
        self.entries.iter().any(|entry| entry.state.is_live())
    }

    /// Whether work of a kind that wakes the agent with a result of its own runs.
    #[must_use]
    pub fn any_agent_live(&self) -> bool {
        self.entries.iter().any(|e| e.state.is_live() && matches!(e.kind, Kind::Agent | Kind::Workflow))
    }

    /// Whether any background work was ever seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns (id, output path) of shells whose agent is gone and whose end nobody told. The path comes from the agent:
    /// it is None unless it is that of an output file, so that no other file of the host is read.
    #[must_use]
    pub fn unexplained(&self) -> Vec<(String, Option<String>)> {
        self.entries
            .iter()
            .filter(|e| e.orphaned && !e.notified && e.kind == Kind::Shell)
            .filter(|e| matches!(e.state, State::Unknown | State::Running))
            .map(|e| (e.id.clone(), e.output.clone().filter(|path| is_output_of(path, &e.id))))
            .collect()
    }

    /// Returns what watchers see of one entry.
    #[must_use]
    pub fn snapshot(&self, id: &str, owed: bool) -> Option<Snapshot> {
        self.index.get(id).map(|&at| self.entries[at].snapshot(owed))
    }

    /// Returns the whole table, in the order in which the work began.
    pub fn snapshots(&self, owed: impl Fn(&str) -> bool) -> Vec<Snapshot> {
        self.entries.iter().map(|entry| entry.snapshot(owed(&entry.id))).collect()
    }

    /// Whether the agent itself asked to stop this.
    #[must_use]
    pub fn stop_was_asked(&self, id: &str) -> bool {
        self.stop_calls.contains(id)
    }

    /// A stop call came back: what it named is stopped, whether or not an event says so (a transcript has none).
    fn stop_returned(&mut self, at: At, call: &str, refused: bool, changes: &mut Vec<Change>) {
        let Some(id) = self.stopping.remove(call) else { return };
        if refused {
            self.stop_calls.remove(&id);
        } else if self.entry_mut(&id).is_some_and(|entry| entry.state.is_live()) {
            let status = EndStatus::Stopped;
            let end = End { status, exit: None, at, output: None, timed_out: false, by_notification: false };
            self.end(&id, end, changes);
        }
    }

    fn open(&mut self, at: At, call: &str, launch: &Launch, owner: &Owner, changes: &mut Vec<Change>) {
        let mut loose = self.take_loose(&launch.id);
        // What runs again may have ended again before its launch's result. Only a `task_started` of this very call
        // tells such an end from that of the run before.
        let begun = |by: Option<&String>| by.is_some_and(|by| by == call);
        if launch.again
            && let Some(loose) = loose.as_mut().filter(|loose| !begun(loose.call.as_ref()))
        {
            loose.end = None;
        }
        let by_subagent =
            matches!(owner, Owner::Subagent(_)) || loose.as_ref().is_some_and(|l| l.by_subagent);
        let description = loose.as_ref().map(|l| l.description.clone()).unwrap_or_default();
        match self.entry_mut(&launch.id) {
            Some(entry) => {
                // The live set came first, or a finished piece of work runs again under its id.
                entry.kind = launch.kind;
                entry.owner = owner.clone();
                entry.by_subagent |= by_subagent;
                if launch.output.is_some() {
                    entry.output.clone_from(&launch.output);
                }
                if entry.description.is_empty() {
                    entry.description = description;
                }
                let runs_again = launch.again && !entry.state.is_live() && !begun(entry.call.as_ref());
                if entry.call.is_none() || runs_again {
                    entry.call = Some(call.to_owned());
                }
                if runs_again {
                    self.restart(at, &launch.id, changes);
                } else {
                    changes.push(Change::Touched { id: launch.id.clone() });
                }
            }
            None => {
                let mut entry = Entry::new(&launch.id, launch.kind, at, owner.clone());
                entry.call = Some(call.to_owned());
                entry.by_subagent = by_subagent;
                entry.description = description;
                entry.output.clone_from(&launch.output);
                entry.due = launch.due;
                self.push(entry);
                changes.push(Change::Opened { id: launch.id.clone(), owner: owner.clone() });
            }
        }
        if let Some(end) = loose.and_then(|loose| loose.end) {
            self.end(&launch.id, end, changes);
        }
    }

    fn live_set(&mut self, at: At, set: &[LiveEntry], changes: &mut Vec<Change>) {
        for listed in set {
            match self.entry_mut(&listed.id) {
                Some(entry) => {
                    entry.listed = true;
                    if entry.description.is_empty() {
                        entry.description.clone_from(&listed.description);
                    }
                    if !entry.state.is_live() {
                        // A subagent whose own shell ended is woken under the same id (FACTS 5).
                        self.restart(at, &listed.id, changes);
                    }
                }
                None => {
                    let loose = self.take_loose(&listed.id);
                    let mut entry = Entry::new(&listed.id, listed.kind, at, Owner::Main);
                    entry.call = loose.as_ref().and_then(|l| l.call.clone());
                    entry.listed = true;
                    entry.description.clone_from(&listed.description);
                    entry.by_subagent = loose.as_ref().is_some_and(|l| l.by_subagent);
                    self.push(entry);
                    changes.push(Change::Opened { id: listed.id.clone(), owner: Owner::Main });
                }
            }
        }
        for entry in &mut self.entries {
            if entry.listed && entry.state.is_live() && !set.iter().any(|listed| listed.id == entry.id) {
                // How it ended may follow in another event, or never.
                entry.state = State::Unknown;
                entry.ended = Some(at);
                entry.listed = false;
                changes.push(Change::Ended { id: entry.id.clone(), tellable: true });
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn started(
        &mut self,
        at: At,
        id: &str,
        call: Option<&String>,
        kind: Option<Kind>,
        description: &str,
        by_subagent: bool,
        changes: &mut Vec<Change>,
    ) {
        if let Some(entry) = self.entry_mut(id) {
            entry.by_subagent |= by_subagent;
            if !description.is_empty() {
                description.clone_into(&mut entry.description);
            }
            if call.is_some() {
                entry.call = call.cloned();
            }
            if entry.state.is_live() {
                changes.push(Change::Touched { id: id.to_owned() });
            } else {
                self.restart(at, id, changes);
            }
            return;
        }
        let loose = self.loose_mut(id);
        // It begins (again): an end that came before is that of another run.
        loose.end = None;
        loose.call = call.cloned();
        loose.kind = kind;
        description.clone_into(&mut loose.description);
        loose.by_subagent = by_subagent;
    }

    fn notified(&mut self, at: At, note: &Notification, changes: &mut Vec<Change>) {
        let Some(status) = note.status else { return };
        let end = End {
            status,
            exit: note.exit,
            at,
            output: note.output.clone(),
            timed_out: note.timed_out,
            by_notification: true,
        };
        self.end(&note.id, end, changes);
    }

    fn end(&mut self, id: &str, end: End, changes: &mut Vec<Change>) {
        let stop_asked = self.stop_calls.contains(id);
        let Some(entry) = self.entry_mut(id) else {
            let loose = self.loose_mut(id);
            // A notification has the last word over an update, and a repeated one changes nothing.
            if loose.end.as_ref().is_none_or(|known| !known.by_notification) {
                loose.end = Some(end);
            }
            return;
        };
        if entry.notified && !entry.state.is_live() {
            return;
        }
        let tellable = end.status != EndStatus::Stopped || end.timed_out || stop_asked;
        if entry.orphaned && !tellable {
            // A resumed session guesses that what its predecessor ran was stopped; it may run on (FACTS 6).
            if entry.state.is_live() {
                entry.state = State::Unknown;
                entry.ended = Some(end.at);
                changes.push(Change::Ended { id: id.to_owned(), tellable: false });
            }
            return;
        }
        let was_live = entry.state.is_live();
        let was = (entry.state, entry.exit, entry.notified);
        entry.state = match end.status {
            EndStatus::Completed => State::Done,
            EndStatus::Failed => State::Failed,
            EndStatus::Stopped => State::Stopped,
        };
        if end.exit.is_some() || end.by_notification {
            entry.exit = end.exit;
        }
        if entry.ended.is_none() {
            entry.ended = Some(end.at.max(entry.began));
        }
        if end.output.is_some() {
            entry.output = end.output;
        }
        entry.notified |= end.by_notification;
        entry.cut_off = !tellable;
        if was_live || (was != (entry.state, entry.exit, entry.notified)) {
            changes.push(Change::Ended { id: id.to_owned(), tellable });
        }
    }

    /// The same id runs again.
    fn restart(&mut self, at: At, id: &str, changes: &mut Vec<Change>) {
        self.stop_calls.remove(id);
        let Some(entry) = self.entry_mut(id) else { return };
        entry.restart(at);
        changes.push(Change::Opened { id: id.to_owned(), owner: entry.owner.clone() });
    }

    fn wakeup_fired(&mut self, at: At, due: Option<At>, changes: &mut Vec<Change>) {
        let pending = self.entries.iter_mut().filter(|e| e.kind == Kind::Wakeup && e.state.is_live());
        let fired = match due {
            // The moment it names is the one the launch named, give or take the agent's rounding.
            Some(due) => pending.min_by_key(|e| e.due.map_or(u64::MAX, |d| d.0.abs_diff(due.0))),
            None => pending.filter(|e| e.due.is_some_and(|d| d <= at)).min_by_key(|e| e.due),
        };
        if let Some(entry) = fired {
            entry.state = State::Done;
            entry.ended = Some(at);
            changes.push(Change::Ended { id: entry.id.clone(), tellable: true });
        }
    }

    fn entry_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.index.get(id).map(|&at| &mut self.entries[at])
    }

    fn push(&mut self, entry: Entry) {
        self.index.insert(entry.id.clone(), self.entries.len());
        self.entries.push(entry);
    }

    fn take_loose(&mut self, id: &str) -> Option<Loose> {
        let index = self.loose.iter().position(|loose| loose.id == id)?;
        self.loose.remove(index)
    }

    fn loose_mut(&mut self, id: &str) -> &mut Loose {
        let index = self.loose.iter().position(|loose| loose.id == id).unwrap_or_else(|| {
            if self.loose.len() == LOOSE_ENDS {
                self.loose.pop_front();
            }
            self.loose.push_back(Loose {
                id: id.to_owned(),
                call: None,
                kind: None,
                description: String::new(),
                by_subagent: false,
                end: None,
            });
            self.loose.len() - 1
        });
        &mut self.loose[index]
    }

    /// Returns the id of the followed work that a tool call began, if an event linked the two.
    #[must_use]
    pub fn started_by_call(&self, call: &str) -> Option<&str> {
        let loose = self.loose.iter().map(|loose| (&loose.call, &loose.id));
        let known = self.entries.iter().map(|entry| (&entry.call, &entry.id));
        loose.chain(known).find(|(by, _)| by.as_deref() == Some(call)).map(|(_, id)| id.as_str())
    }
}

impl Entry {
    fn new(id: &str, kind: Kind, at: At, owner: Owner) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            state: State::Running,
            exit: None,
            description: String::new(),
            output: None,
            owner,
            call: None,
            by_subagent: false,
            began: at,
            ended: None,
            due: None,
            listed: false,
            notified: false,
            orphaned: false,
            outlived: false,
            cut_off: false,
            cut_after_look: false,
        }
    }

    fn restart(&mut self, at: At) {
        self.state = State::Running;
        self.exit = None;
        self.began = at;
        self.ended = None;
        self.notified = false;
        self.orphaned = false;
        self.outlived = false;
        self.cut_off = false;
        self.cut_after_look = false;
    }

    fn snapshot(&self, owed: bool) -> Snapshot {
        Snapshot {
            id: self.id.clone(),
            kind: self.kind,
            state: self.state,
            exit: self.exit,
            description: self.description.clone(),
            owed,
            output: self.output.clone(),
            by_subagent: self.by_subagent,
            began: self.began,
            ended: self.ended,
            cut_after_look: self.cut_after_look,
            ended_with_agent: self.state == State::Stopped && (self.cut_off || self.orphaned),
        }
    }
}

/// Whether `path` is where the agent keeps the output of the work `id` (FACTS 1): `/…/tasks/<id>.output`.
fn is_output_of(path: &str, id: &str) -> bool {
    let plain =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    path.starts_with('/') && !id.is_empty() && plain(id) && path.ends_with(&format!("/tasks/{id}.output"))
}

/// The line the agent puts at the end of an output file when it saw the end (FACTS 9; from 2.1.231 on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trailer {
    Exited(i32),
    Killed,
}

/// Reads the last non-empty line of an output file's end. The work itself can print such a line, so this is evidence
/// of an end and no proof; more output after it means that it runs on.
#[must_use]
pub fn trailer(tail: &str) -> Option<Trailer> {
    let line = tail.lines().rev().find(|line| !line.trim().is_empty())?;
    if line == "[killed]" {
        return Some(Trailer::Killed);
    }
    let code = line.strip_prefix("[exited with code ")?.strip_suffix(']')?;
    code.parse().ok().map(Trailer::Exited)
}
