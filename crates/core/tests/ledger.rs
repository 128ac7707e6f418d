//! The ledger: the reference rule by its vectors, the four shapes that were tried and were wrong, the decision table
//! of `ledger.rs` row by row, and random histories against an oracle that never keeps a running state.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail")]

use std::collections::{BTreeMap, BTreeSet};

use bursar_core::At;
use bursar_core::agent::{
    AgentEvent, Began, Call, EndStatus, Launch, LiveEntry, Notification, Owner, Reply, Subtype,
};
use bursar_core::background::{Background, Kind};
use bursar_core::fault::{self, Fault, Signs};
use bursar_core::ladder::{self, Facts, Spent, Step};
use bursar_core::ledger::{Ledger, Reference};
use bursar_core::outcome::Ending;
use bursar_core::policy::Limits;
use bursar_core::wire::claude::classify;
use proptest::prelude::*;
use serde_json::Value;

const LEDGER: &str = include_str!("../../../fixtures/vectors/ledger.jsonl");
const TURN_BUDGET: &str = include_str!("../../../fixtures/vectors/turn-budget.jsonl");

fn vectors(lines: &str) -> impl Iterator<Item = Value> + '_ {
    lines.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn texts(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn the_reference_rule_owes_and_remembers_what_each_vector_says() {
    let (mut count, mut scratch) = (0, Vec::new());
    for vector in vectors(LEDGER) {
        let mut reference = Reference::default();
        for step in vector["steps"].as_array().unwrap() {
            let input = serde_json::to_vec(&step["input"]).unwrap();
            let call = classify(step["tool"].as_str().unwrap(), &input, &mut scratch);
            if call.flagged_launch {
                reference.launch();
            }
            if let Some(id) = call.harvests.filter(|_| !call.newer_harvest) {
                reference.harvest(&id);
            }
            assert_eq!(reference.debt(), step["debt"].as_u64().unwrap(), "debt after {step}");
            assert_eq!(reference.seen().collect::<BTreeSet<_>>(), texts(&step["seen"]), "seen after {step}");
        }
        assert_eq!(reference.debt(), vector["outstanding"].as_u64().unwrap());
        count += 1;
    }
    assert_eq!(count, 400);
}

fn clean(debt: u64, nudges: u32) -> Facts {
    Facts {
        stop_asked: false,
        fault: None,
        running: false,
        debt,
        hold_left: false,
        spent: Spent { nudges, ..Spent::default() },
        over_budget: None,
        now: At(0),
    }
}

/// What the end of a reply means: a success needs words to be clean, so it has some.
fn fault_of(subtype: Option<&str>) -> Option<Fault> {
    let Some(name) = subtype else { return Some(Fault::NoResult) };
    let subtype = match name {
        "success" => Subtype::Success,
        "error_max_turns" => Subtype::MaxTurns,
        "error_during_execution" => Subtype::Execution,
        other => Subtype::Other(other.to_owned()),
    };
    let reply = Reply { is_error: name != "success", subtype, ..success("done") };
    fault::judge(&reply, &Signs::default(), At(0))
}

#[test]
fn a_nudge_is_due_exactly_where_the_vectors_say_so() {
    for vector in vectors(LEDGER) {
        let debt = vector["outstanding"].as_u64().unwrap();
        for case in vector["decisions"].as_array().unwrap() {
            let nudges = u32::try_from(case["nudges"].as_u64().unwrap()).unwrap();
            let facts = Facts {
                stop_asked: case["aborted"].as_bool().unwrap(),
                fault: fault_of(case["subtype"].as_str()),
                ..clean(debt, nudges)
            };
            let nudge = ladder::decide(&facts, &Limits::default()).step == Step::Nudge;
            assert_eq!(nudge, case["nudge"].as_bool().unwrap(), "debt {debt}: {case}");
        }
    }
}

#[test]
fn a_run_is_stranded_exactly_where_the_vectors_say_so() {
    for vector in vectors(LEDGER) {
        let debt = vector["outstanding"].as_u64().unwrap();
        for case in vector["stranded"].as_array().unwrap() {
            let nudges = u32::try_from(case["nudges"].as_u64().unwrap()).unwrap();
            let step = ladder::decide(&clean(debt, nudges), &Limits::default()).step;
            assert_eq!(
                step == Step::Finish(Ending::Stranded),
                case["stranded"].as_bool().unwrap(),
                "debt {debt}: {case}"
            );
        }
    }
}

#[test]
fn a_turn_limit_is_foreign_exactly_where_the_vectors_say_so() {
    let mut count = 0;
    for case in vectors(TURN_BUDGET) {
        let subtype = match case["subtype"].as_str() {
            Some("error_max_turns") => Subtype::MaxTurns,
            Some("success") => Subtype::Success,
            other => Subtype::Other(other.unwrap_or_default().to_owned()),
        };
        let number = |name: &str| case[name].as_u64().unwrap_or_default();
        let foreign = fault::limit_is_foreign(&subtype, number("num_turns"), number("requested_max_turns"));
        assert_eq!(foreign, case["anomaly"].as_bool().unwrap(), "{case}");
        count += 1;
    }
    assert_eq!(count, 176);
}

// The four wrong shapes, each with a sequence on which it is wrong.

/// What an agent does, as the wrong rules see it.
#[derive(Debug, Clone, Copy)]
enum Did {
    Launch,
    Harvest(&'static str),
    /// The process ended; the next one resumes the session.
    Resume,
}
use Did::{Harvest, Resume};

/// What our rule owes after `done`, when no launch tells its id.
fn ours(done: &[Did]) -> u64 {
    let mut history = History::default();
    for did in done {
        match did {
            Did::Launch => history.nameless(),
            Harvest(id) => history.harvests(id),
            Resume => history.process_ends(),
        }
    }
    history.ledger.debt()
}

#[test]
fn one_way_latch() {
    // "It launched something" can be set and never be cleared.
    let latched = |done: &[Did]| done.iter().any(|did| matches!(did, Did::Launch));
    let collected = [Did::Launch, Harvest("b1")];
    assert!(latched(&collected), "the wrong rule charges the agent that collected");
    assert_eq!(ours(&collected), 0);
    let walked_away = [Did::Launch];
    assert!(latched(&walked_away));
    assert_eq!(ours(&walked_away), 1);
}

#[test]
fn per_run_counters() {
    // Counts that begin anew with each process.
    let counted = |done: &[Did]| {
        let last = done.rsplit(|did| matches!(did, Resume)).next().unwrap_or_default();
        let launches = last.iter().filter(|did| matches!(did, Did::Launch)).count();
        launches.saturating_sub(last.iter().filter(|did| matches!(did, Harvest(_))).count())
    };
    let walked_away_twice = [Did::Launch, Resume];
    assert_eq!(counted(&walked_away_twice), 0, "the wrong rule calls a second walk-away clean");
    assert_eq!(ours(&walked_away_twice), 1);
}

#[test]
fn raw_call_counts() {
    // Every collecting call pays, whatever it names.
    let counted = |done: &[Did]| {
        done.iter().fold(0_u64, |debt, did| match did {
            Did::Launch => debt + 1,
            Harvest(_) => debt.saturating_sub(1),
            Resume => debt,
        })
    };
    let one_polled_twice = [Did::Launch, Did::Launch, Harvest("b1"), Harvest("b1")];
    assert_eq!(counted(&one_polled_twice), 0, "the wrong rule lets two polls of one shell pay for another");
    assert_eq!(ours(&one_polled_twice), 1);
}

#[test]
fn batch_total() {
    // Launches less distinct ids, over the whole run.
    let counted = |done: &[Did]| {
        let launches = done.iter().filter(|did| matches!(did, Did::Launch)).count();
        let ids: BTreeSet<_> =
            done.iter().filter_map(|did| if let Harvest(id) = did { Some(id) } else { None }).collect();
        launches.saturating_sub(ids.len())
    };
    let surplus_first = [Harvest("b0"), Did::Launch];
    assert_eq!(counted(&surplus_first), 0, "the wrong rule banks an early surplus for a later launch");
    assert_eq!(ours(&surplus_first), 1);
}

#[test]
fn pairing_is_right_where_even_the_reference_is_not() {
    let mut reference = Reference::default();
    reference.launch();
    assert!(reference.harvest("another"), "the reference lets any id pay");
    let mut history = History::default();
    history.launches("b1");
    history.harvests("another");
    history.owes(1, &["b1"]);
}

// The decision table in the header of `ledger.rs`, one row a test.

/// Agent events through the table and the ledger, as the tally feeds them.
#[derive(Debug, Default)]
struct History {
    table: Background,
    ledger: Ledger,
    calls: u32,
    /// Every event is told twice.
    stutters: bool,
}

impl History {
    fn tell(&mut self, event: &AgentEvent) {
        for _ in 0..=u32::from(self.stutters) {
            let changes = self.table.apply(At(1), event);
            self.ledger.apply(event, &changes);
        }
    }

    fn calls(&mut self, owner: Owner, name: &str, call: Call) -> String {
        self.calls += 1;
        let id = format!("toolu_{}", self.calls);
        self.tell(&AgentEvent::ToolCalled { owner, id: id.clone(), name: name.to_owned(), call });
        id
    }

    fn returns(&mut self, owner: Owner, id: String, is_error: bool, launch: Option<Launch>) {
        self.tell(&AgentEvent::ToolReturned { owner, id, is_error, launch });
    }

    fn launches_as(&mut self, owner: Owner, id: &str, again: bool) {
        let call = self.calls(owner.clone(), "Bash", Call { flagged_launch: !again, ..Call::default() });
        self.returns(owner, call, false, Some(launch(id, again)));
    }

    fn launches(&mut self, id: &str) {
        self.launches_as(Owner::Main, id, false);
    }

    fn nameless(&mut self) {
        let call = self.calls(Owner::Main, "Bash", Call { flagged_launch: true, ..Call::default() });
        self.returns(Owner::Main, call, false, None);
    }

    fn harvests(&mut self, id: &str) {
        let call = self.calls(Owner::Main, "Read", Call { harvests: Some(id.to_owned()), ..Call::default() });
        self.returns(Owner::Main, call, false, None);
    }

    fn ends(&mut self, id: &str, status: EndStatus) {
        self.tell(&AgentEvent::Notified(notification(id, status)));
    }

    fn speaks(&mut self, owner: Owner) {
        self.tell(&AgentEvent::Text { owner, text: "so".to_owned() });
    }

    fn process_ends(&mut self) {
        for _ in 0..=u32::from(self.stutters) {
            self.ledger.process_ended(|call| self.table.started_by_call(call).map(str::to_owned));
            let changes = self.table.process_ended(At(2));
            self.ledger.changed(&changes);
        }
    }

    #[track_caller]
    fn owes(&self, debt: u64, ids: &[&str]) {
        let owed: Vec<&str> = ["a1", "b1", "b2"].into_iter().filter(|id| self.ledger.owes(id)).collect();
        assert_eq!((self.ledger.debt(), owed.as_slice()), (debt, ids));
        assert_eq!(self.ledger.launched(), self.ledger.settled() + self.ledger.debt());
    }
}

fn launch(id: &str, again: bool) -> Launch {
    let kind = if id.starts_with('a') { Kind::Agent } else { Kind::Shell };
    Launch { id: id.to_owned(), kind, output: None, due: None, again }
}

fn notification(id: &str, status: EndStatus) -> Notification {
    Notification {
        id: id.to_owned(),
        tool_call: None,
        status: Some(status),
        summary: String::new(),
        exit: None,
        output: None,
        timed_out: false,
    }
}

fn success(text: &str) -> Reply {
    Reply {
        subtype: Subtype::Success,
        is_error: false,
        turns: 1,
        text: Some(text.to_owned()),
        terminal_reason: Some("completed".to_owned()),
        api_status: None,
        errors: Vec::new(),
        cost_usd: None,
        woken: false,
        answers: Vec::new(),
        session: None,
    }
}

fn subagent() -> Owner {
    Owner::Subagent("toolu_agent".to_owned())
}

#[test]
fn work_that_opens_is_owed_under_its_id() {
    let mut history = History::default();
    history.launches("b1");
    history.owes(1, &["b1"]);
    let entry = LiveEntry { id: "b2".to_owned(), kind: Kind::Shell, description: String::new() };
    history.tell(&AgentEvent::LiveSet(vec![entry]));
    history.owes(2, &["b1", "b2"]);
}

#[test]
fn a_launch_that_the_live_set_told_first_is_owed_once() {
    let mut history = History::default();
    let call = history.calls(Owner::Main, "Bash", Call { flagged_launch: true, ..Call::default() });
    let entry = LiveEntry { id: "b1".to_owned(), kind: Kind::Shell, description: String::new() };
    history.tell(&AgentEvent::LiveSet(vec![entry]));
    history.returns(Owner::Main, call, false, Some(launch("b1", false)));
    history.owes(1, &["b1"]);
}

#[test]
fn the_same_id_that_opens_again_is_owed_again() {
    let mut history = History::default();
    history.launches("a1");
    history.ends("a1", EndStatus::Completed);
    history.speaks(Owner::Main);
    history.owes(0, &[]);
    history.launches_as(Owner::Main, "a1", true);
    history.owes(1, &["a1"]);
    assert_eq!(history.ledger.launched(), 2);
}

#[test]
fn a_flagged_launch_without_an_id_is_an_unpaired_debt() {
    let mut history = History::default();
    history.nameless();
    history.owes(1, &[]);
    assert_eq!(history.ledger.unpaired(), 1);
}

#[test]
fn a_flagged_launch_that_never_came_back_is_owed_once_the_process_ended() {
    let mut history = History::default();
    history.calls(Owner::Main, "Bash", Call { flagged_launch: true, ..Call::default() });
    history.owes(0, &[]);
    history.process_ends();
    history.owes(1, &[]);
    history.process_ends();
    history.owes(1, &[]);
}

#[test]
fn a_launch_cut_between_its_start_and_its_result_is_owed_once_and_under_its_id() {
    for listed_first in [true, false] {
        let mut history = History::default();
        let call = history.calls(Owner::Main, "Bash", Call { flagged_launch: true, ..Call::default() });
        let entry = LiveEntry { id: "b1".to_owned(), kind: Kind::Shell, description: String::new() };
        if listed_first {
            history.tell(&AgentEvent::LiveSet(vec![entry]));
        }
        history.tell(&AgentEvent::Started {
            id: "b1".to_owned(),
            tool_call: Some(call),
            kind: Some(Kind::Shell),
            description: String::new(),
            by_subagent: false,
        });
        history.process_ends();
        history.owes(1, &["b1"]);
    }
}

#[test]
fn a_flagged_launch_that_came_back_as_an_error_launched_nothing() {
    let mut history = History::default();
    let call = history.calls(Owner::Main, "Bash", Call { flagged_launch: true, ..Call::default() });
    history.returns(Owner::Main, call, true, None);
    history.process_ends();
    history.owes(0, &[]);
}

#[test]
fn a_harvest_settles_the_debt_it_names_running_or_not() {
    let mut history = History::default();
    history.launches("b1");
    history.launches("b2");
    history.harvests("b1");
    history.owes(1, &["b2"]);
    history.ends("b2", EndStatus::Stopped);
    history.harvests("b2");
    history.owes(0, &[]);
}

#[test]
fn a_harvest_of_what_is_settled_pays_nothing_else() {
    let mut history = History::default();
    history.launches("b1");
    history.launches("b2");
    history.nameless();
    history.harvests("b1");
    history.harvests("b1");
    history.owes(2, &["b2"]);
}

#[test]
fn an_unknown_id_pays_one_unpaired_debt_once() {
    let mut history = History::default();
    history.nameless();
    history.nameless();
    history.harvests("x");
    history.owes(1, &[]);
    history.harvests("x");
    history.owes(1, &[]);
    history.harvests("y");
    history.owes(0, &[]);
}

#[test]
fn a_surplus_is_never_banked() {
    let mut history = History::default();
    history.harvests("x");
    history.nameless();
    history.owes(1, &[]);
    history.harvests("x");
    history.owes(1, &[]);
    history.launches("b1");
    history.owes(2, &["b1"]);
}

#[test]
fn a_harvest_before_the_launch_of_that_very_id_pays_nothing() {
    let mut history = History::default();
    history.harvests("b1");
    history.launches("b1");
    history.owes(1, &["b1"]);
    history.harvests("b1");
    history.owes(0, &[]);
}

#[test]
fn an_end_the_agent_learns_of_is_settled_by_its_next_word_or_call() {
    for status in [EndStatus::Completed, EndStatus::Failed] {
        for by_call in [true, false] {
            let mut history = History::default();
            history.launches("b1");
            history.ends("b1", status);
            history.owes(1, &["b1"]);
            if by_call {
                history.calls(Owner::Main, "Bash", Call::default());
            } else {
                history.speaks(Owner::Main);
            }
            history.owes(0, &[]);
        }
    }
}

#[test]
fn a_reply_whose_last_word_came_before_the_end_settles_nothing() {
    let mut history = History::default();
    history.launches("b1");
    history.speaks(Owner::Main);
    history.ends("b1", EndStatus::Completed);
    history.tell(&AgentEvent::Replied(success("left it")));
    history.owes(1, &["b1"]);
    history.tell(&AgentEvent::Began(Began::default()));
    history.tell(&AgentEvent::Replied(success("")));
    history.owes(0, &[]);
}

#[test]
fn an_empty_or_failed_reply_settles_nothing() {
    let empty = Reply { turns: 0, terminal_reason: None, ..success("") };
    let failed = Reply { is_error: true, ..success("overloaded") };
    for reply in [empty, failed] {
        let mut history = History::default();
        history.launches("b1");
        history.ends("b1", EndStatus::Completed);
        history.tell(&AgentEvent::Began(Began::default()));
        history.tell(&AgentEvent::Replied(reply));
        history.owes(1, &["b1"]);
    }
}

#[test]
fn a_subagent_learns_of_its_own_work_only() {
    let mut history = History::default();
    history.launches("b1");
    history.launches_as(subagent(), "b2", false);
    history.ends("b1", EndStatus::Completed);
    history.ends("b2", EndStatus::Completed);
    history.speaks(subagent());
    history.owes(1, &["b1"]);
    history.speaks(Owner::Main);
    history.owes(0, &[]);
}

#[test]
fn a_stop_the_agent_asked_for_settles_and_any_other_does_not() {
    let mut history = History::default();
    history.launches("b1");
    history.ends("b1", EndStatus::Stopped);
    history.speaks(Owner::Main);
    history.owes(1, &["b1"]);

    let mut history = History::default();
    history.launches("b2");
    history.calls(Owner::Main, "TaskStop", Call { stops: Some("b2".to_owned()), ..Call::default() });
    history.ends("b2", EndStatus::Stopped);
    history.speaks(Owner::Main);
    history.owes(0, &[]);
}

#[test]
fn a_stop_call_that_was_refused_makes_no_later_stop_the_agents_own() {
    let mut history = History::default();
    history.launches("b1");
    let stops = Call { stops: Some("b1".to_owned()), ..Call::default() };
    let call = history.calls(Owner::Main, "TaskStop", stops);
    history.returns(Owner::Main, call, true, None);
    history.ends("b1", EndStatus::Stopped);
    history.speaks(Owner::Main);
    history.owes(1, &["b1"]);
}

#[test]
fn an_end_by_the_agents_own_exit_and_a_guess_at_resume_settle_nothing() {
    let mut history = History::default();
    history.launches("b1");
    history.launches("a1");
    history.process_ends();
    history.ends("b1", EndStatus::Stopped);
    history.ends("a1", EndStatus::Stopped);
    history.speaks(Owner::Main);
    history.owes(2, &["a1", "b1"]);
}

#[test]
fn an_end_the_agent_had_no_time_to_speak_of_stays_owed_over_its_exit() {
    let mut history = History::default();
    history.launches("b1");
    history.ends("b1", EndStatus::Completed);
    history.process_ends();
    history.speaks(Owner::Main);
    history.owes(1, &["b1"]);
}

#[test]
fn debt_belongs_to_the_run_and_a_later_attempt_can_pay_it() {
    let mut history = History::default();
    history.launches("b1");
    history.process_ends();
    history.owes(1, &["b1"]);
    history.harvests("b1");
    history.owes(0, &[]);
}

// Random histories against an oracle in another style.

/// One thing that happens, with small ids so that they meet.
#[derive(Debug, Clone)]
enum Happened {
    Launch { id: usize, again: bool, by: Owner },
    Nameless,
    Refused,
    Dangling,
    Harvest { id: usize },
    End { id: usize, tellable: bool },
    Speak(Owner),
    Begin,
    SilentReply,
    Exit,
}

const IDS: [&str; 5] = ["a1", "b1", "b2", "b3", "x"];

fn happened() -> impl Strategy<Value = Happened> {
    let owner = || prop_oneof![3 => Just(Owner::Main), 1 => Just(subagent())];
    prop_oneof![
        // The last id is never launched.
        4 => (0..IDS.len() - 1, any::<bool>(), owner())
            .prop_map(|(id, again, by)| Happened::Launch { id, again, by }),
        2 => Just(Happened::Nameless),
        1 => Just(Happened::Refused),
        1 => Just(Happened::Dangling),
        3 => (0..IDS.len()).prop_map(|id| Happened::Harvest { id }),
        4 => (0..IDS.len(), prop::bool::weighted(0.7)).prop_map(|(id, tellable)| Happened::End { id, tellable }),
        3 => owner().prop_map(Happened::Speak),
        1 => Just(Happened::Begin),
        1 => Just(Happened::SilentReply),
        1 => Just(Happened::Exit),
    ]
}

fn live_through(steps: &[Happened], stutters: bool) -> History {
    let mut history = History { stutters, ..History::default() };
    for step in steps {
        match step {
            Happened::Launch { id, again, by } => history.launches_as(by.clone(), IDS[*id], *again),
            Happened::Nameless => history.nameless(),
            Happened::Refused => {
                let flagged = Call { flagged_launch: true, ..Call::default() };
                let call = history.calls(Owner::Main, "Bash", flagged);
                history.returns(Owner::Main, call, true, None);
            }
            Happened::Dangling => {
                let flagged = Call { flagged_launch: true, ..Call::default() };
                history.calls(Owner::Main, "Bash", flagged);
            }
            Happened::Harvest { id } => history.harvests(IDS[*id]),
            Happened::End { id, tellable } => {
                history.ends(IDS[*id], if *tellable { EndStatus::Completed } else { EndStatus::Stopped });
            }
            Happened::Speak(owner) => history.speaks(owner.clone()),
            Happened::Begin => history.tell(&AgentEvent::Began(Began::default())),
            Happened::SilentReply => history.tell(&AgentEvent::Replied(success(""))),
            Happened::Exit => history.process_ends(),
        }
        let ledger = &history.ledger;
        assert_eq!(ledger.launched(), ledger.settled() + ledger.debt(), "after {step:?}");
    }
    history
}

/// What a history comes to, read off the whole of it: positions and sets, and no state that runs along.
struct Oracle<'a> {
    steps: &'a [Happened],
}

impl Oracle<'_> {
    fn positions(&self, wanted: impl Fn(&Happened) -> bool) -> Vec<usize> {
        (0..self.steps.len()).filter(|at| wanted(&self.steps[*at])).collect()
    }

    fn ends_of(&self, wanted: usize) -> Vec<(usize, bool)> {
        let told = |at: usize| {
            let Happened::End { id, tellable } = self.steps[at] else { return None };
            (id == wanted).then_some((at, tellable))
        };
        (0..self.steps.len()).filter_map(told).collect()
    }

    fn exits(&self) -> Vec<usize> {
        self.positions(|step| matches!(step, Happened::Exit))
    }

    /// Where work began under an id: at its first launch, and at each launch that starts it again after it had ended.
    fn openings(&self, wanted: usize) -> Vec<usize> {
        let launches = self.positions(|step| matches!(step, Happened::Launch { id, .. } if *id == wanted));
        launches.iter().fold(Vec::new(), |mut opened, &at| {
            let again = matches!(self.steps[at], Happened::Launch { again: true, .. });
            let over = match opened.last() {
                None => true,
                Some(&since) => again && self.over_by(wanted, since, at),
            };
            if over {
                opened.push(at);
            }
            opened
        })
    }

    /// Whether work that began at `since` was over before `by`.
    fn over_by(&self, id: usize, since: usize, by: usize) -> bool {
        self.end_of_run(id, since).is_some_and(|(at, _)| at < by)
            || self.exits().into_iter().any(|exit| since < exit && exit < by)
    }

    /// Where the work that began at `since` ended by what was told of it, and whether the agent learns of that.
    fn end_of_run(&self, id: usize, since: usize) -> Option<(usize, bool)> {
        // An end that came before its launch's result counts as of that result, unless the launch is of a later run.
        let first = self.positions(|s| matches!(s, Happened::Launch { id: of, .. } if *of == id))[0] == since;
        let again = matches!(self.steps[since], Happened::Launch { again: true, .. });
        let early = self.ends_of(id).into_iter().find(|(at, _)| *at < since).filter(|_| first && !again);
        let early = early.map(|(_, tellable)| (since, tellable));
        // After an exit, that something was stopped is a guess.
        let exit = self.exits().into_iter().find(|exit| *exit > since);
        let guess = |at: usize, tellable: bool| !tellable && exit.is_some_and(|exit| exit < at);
        early.or_else(|| {
            self.ends_of(id).into_iter().find(|&(at, tellable)| at > since && !guess(at, tellable))
        })
    }

    /// Whether the step at `at` has somebody say or call something who learns of what `owner` launched.
    fn is_word_for(&self, owner: &Owner, at: usize) -> bool {
        let by = match &self.steps[at] {
            Happened::Speak(by) | Happened::Launch { by, .. } => by,
            Happened::Nameless | Happened::Refused | Happened::Dangling | Happened::Harvest { .. } => {
                &Owner::Main
            }
            Happened::End { .. } | Happened::Begin | Happened::SilentReply | Happened::Exit => return false,
        };
        *by == Owner::Main || by == owner
    }

    /// Where a debt that arose at `since` was settled.
    fn settled(&self, id: usize, since: usize) -> Option<usize> {
        let Happened::Launch { by: owner, .. } = &self.steps[since] else { return None };
        let openings = self.openings(id);
        let harvested =
            self.positions(|s| matches!(s, Happened::Harvest { id: of } if *of == id)).into_iter();
        let harvested = harvested.filter(|at| *at > since).min();
        let learned = openings.iter().filter(|opened| **opened >= since).filter_map(|&opened| {
            let (end, tellable) = self.end_of_run(id, opened)?;
            let next_run = openings.iter().copied().find(|at| *at > opened);
            // Until the process ends or the work runs again, the agent can still speak of it. The call that starts it
            // again is itself a word.
            let until = self.exits().into_iter().find(|exit| *exit > end).unwrap_or(usize::MAX);
            let until = until.min(next_run.map_or(usize::MAX, |at| at + 1));
            (end + 1..self.steps.len().min(until)).find(|&at| {
                let begun = || (end + 1..at).any(|at| matches!(self.steps[at], Happened::Begin));
                let silent = matches!(self.steps[at], Happened::SilentReply) && begun();
                tellable && (silent || self.is_word_for(owner, at))
            })
        });
        learned.chain(harvested).min()
    }

    /// Each debt under an id, with where it was settled. Work that runs again while it is owed is the same debt.
    fn debts(&self, id: usize) -> Vec<Option<usize>> {
        let debts: BTreeMap<usize, Option<usize>> =
            self.openings(id).into_iter().fold(BTreeMap::new(), |mut debts, at| {
                let stands =
                    debts.values().next_back().is_some_and(|s: &Option<usize>| s.is_none_or(|s| s > at));
                if !stands {
                    debts.insert(at, self.settled(id, at));
                }
                debts
            });
        debts.into_values().collect()
    }

    /// Launches that never told an id, by position: one that never came back counts from the exit.
    fn nameless(&self) -> Vec<usize> {
        let exits = self.exits();
        let mut at = self.positions(|step| matches!(step, Happened::Nameless));
        at.extend(
            self.positions(|step| matches!(step, Happened::Dangling))
                .into_iter()
                .filter_map(|called| exits.iter().copied().find(|exit| *exit > called)),
        );
        at
    }

    /// The reference's debt: launches less first harvests of unknown ids, over the suffix where that is largest.
    fn unpaired(&self) -> usize {
        let nameless = self.nameless();
        let fresh: Vec<usize> = (0..IDS.len())
            .filter_map(|id| {
                let first = self
                    .positions(|step| matches!(step, Happened::Harvest { id: of } if *of == id))
                    .into_iter()
                    .next()?;
                self.openings(id).first().is_none_or(|opened| *opened > first).then_some(first)
            })
            .collect();
        let after = |list: &[usize], from: usize| list.iter().filter(|at| **at >= from).count();
        (0..=self.steps.len())
            .map(|from| after(&nameless, from).saturating_sub(after(&fresh, from)))
            .max()
            .unwrap_or_default()
    }
}

#[track_caller]
fn check_against_oracle(steps: &[Happened]) {
    let history = live_through(steps, false);
    let oracle = Oracle { steps };
    let (mut owed, mut launched) = (oracle.unpaired(), oracle.nameless().len());
    for (id, name) in IDS.into_iter().enumerate() {
        let debts = oracle.debts(id);
        let open = debts.iter().filter(|settled| settled.is_none()).count();
        assert_eq!(usize::from(history.ledger.owes(name)), open, "whether {name} is owed");
        owed += open;
        launched += debts.len();
    }
    let found = (history.ledger.launched(), history.ledger.debt());
    assert_eq!(found, (launched as u64, owed as u64), "launched and owed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_history_owes_what_can_be_read_off_the_whole_of_it(steps in prop::collection::vec(happened(), 0..24)) {
        check_against_oracle(&steps);
    }

    #[test]
    fn what_is_told_twice_counts_once(steps in prop::collection::vec(happened(), 0..24)) {
        let (once, twice) = (live_through(&steps, false).ledger, live_through(&steps, true).ledger);
        prop_assert_eq!(
            (once.launched(), once.settled(), once.debt(), once.unpaired()),
            (twice.launched(), twice.settled(), twice.debt(), twice.unpaired())
        );
    }
}
