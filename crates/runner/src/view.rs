//! A run as it stands, for a screen or a board: folded from its records and from nothing else.

use std::collections::BTreeMap;

use bursar_core::At;
use bursar_core::phase::{Link, Phase};
use bursar_core::policy::Request;

use crate::record::{BackgroundRecord, DecisionRecord, FinishedRecord, Record, RecordEvent, ToolState};

/// A run as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct RunView {
    pub run: String,
    pub host: String,
    /// When the run began; with the present moment it gives the time elapsed.
    pub begun: At,
    /// The time of the last thing that happened.
    pub at: At,
    pub phase: Phase,
    pub link: Link,
    pub attempt: u32,
    pub reply: u32,
    pub model: Option<String>,
    pub turn_budget: u64,
    /// Turns of the replies that ended, over the whole run.
    pub turns_spent_total: u64,
    pub cost_usd: f64,
    pub debt: u64,
    /// Background tasks in the order of their first mention.
    pub background: Vec<BackgroundRecord>,
    /// The tool calls that have not come back (id, one line for people).
    pub tools: Vec<(String, String)>,
    /// The last step of the ladder; its `until` is what a countdown shows.
    pub decision: Option<DecisionRecord>,
    /// The run's end, with all its accounts.
    pub finished: Option<FinishedRecord>,
}

/// Folds records into a [`RunView`].
#[derive(Debug)]
pub(crate) struct Viewer {
    view: RunView,
    /// Where each background task stands in the list.
    places: BTreeMap<String, usize>,
}

impl Viewer {
    pub(crate) fn new(request: &Request, begun: At) -> Self {
        let view = RunView {
            run: request.run.0.clone(),
            host: request.host.clone(),
            begun,
            at: begun,
            phase: Phase::Starting,
            link: Link::Live,
            attempt: 0,
            reply: 0,
            model: request.model.clone(),
            turn_budget: request.limits.max_turns,
            turns_spent_total: 0,
            cost_usd: 0.0,
            debt: 0,
            background: Vec::new(),
            tools: Vec::new(),
            decision: None,
            finished: None,
        };
        Self { view, places: BTreeMap::new() }
    }

    pub(crate) fn view(&self) -> &RunView {
        &self.view
    }

    /// Takes in one record; false if no screen would change for it.
    pub(crate) fn apply(&mut self, record: &Record) -> bool {
        let view = &mut self.view;
        view.at = record.at;
        match &record.event {
            RecordEvent::RunStarted { .. } | RecordEvent::Text { .. } | RecordEvent::Remark { .. } => {
                return false;
            }
            RecordEvent::AttemptStarted { attempt, .. } => view.attempt = *attempt,
            RecordEvent::ReplyStarted { attempt, reply, model, .. } => {
                view.attempt = *attempt;
                view.reply = *reply;
                if model.is_some() {
                    view.model.clone_from(model);
                }
            }
            RecordEvent::Tool(tool) => {
                view.tools.retain(|(id, _)| *id != tool.id);
                if tool.state == ToolState::Called {
                    let name = tool.name.as_deref().unwrap_or_default();
                    let line = format!("{name} {}", tool.summary.as_deref().unwrap_or_default());
                    view.tools.push((tool.id.clone(), line.trim_end().to_owned()));
                }
            }
            RecordEvent::Background(snapshot) => match self.places.get(&snapshot.id) {
                Some(place) => {
                    if let Some(slot) = view.background.get_mut(*place) {
                        slot.clone_from(snapshot);
                    }
                }
                None => {
                    self.places.insert(snapshot.id.clone(), view.background.len());
                    view.background.push(snapshot.clone());
                }
            },
            RecordEvent::Phase { phase } => view.phase = *phase,
            RecordEvent::Link { link } => view.link = *link,
            RecordEvent::Decision(decision) => {
                view.turns_spent_total = decision.turns_spent_total;
                view.cost_usd = decision.cost_usd;
                view.debt = decision.debt;
                view.decision = Some((**decision).clone());
            }
            RecordEvent::AttemptEnded { .. } => view.tools.clear(),
            RecordEvent::RunFinished(finished) => {
                view.phase = Phase::Ended;
                view.turns_spent_total = finished.turns.total;
                view.cost_usd = finished.cost_usd;
                view.debt = finished.debt;
                view.background.clone_from(&finished.background);
                view.tools.clear();
                view.decision = None;
                view.finished = Some((**finished).clone());
            }
        }
        true
    }
}
