//! The table of background work: what opens it, what ends it, and what has the last word, whatever the order.

use bursar_core::At;
use bursar_core::agent::{
    AgentEvent, Call, EndStatus, Launch, LiveEntry, MessageState, Notification, Owner, Wakeup,
};
use bursar_core::background::{Background, Change, Kind, Snapshot, State, Trailer, trailer};

/// The table, with a clock that the test moves.
#[derive(Debug, Default, Clone)]
struct World {
    table: Background,
    now: At,
    changes: Vec<Change>,
}

impl World {
    fn at(&mut self, seconds: u64) -> &mut Self {
        self.now = At(seconds * 1000);
        self
    }

    fn tell(&mut self, event: &AgentEvent) -> &mut Self {
        self.changes = self.table.apply(self.now, event);
        self
    }

    fn launches(&mut self, id: &str) -> &mut Self {
        self.tell(&result(Owner::Main, launch(id)))
    }

    fn restarts(&mut self, call: &str, id: &str) -> &mut Self {
        let launch = Launch { again: true, ..launch(id) };
        self.tell(&AgentEvent::ToolReturned {
            owner: Owner::Main,
            id: call.to_owned(),
            is_error: false,
            launch: Some(launch),
        })
    }

    fn process_ends(&mut self) -> &mut Self {
        self.changes = self.table.process_ended(self.now);
        self
    }

    /// The host looked: does a process of the run live, and what does the output file end with?
    fn host(&mut self, id: &str, lives: bool, tail: Option<&str>) -> &mut Self {
        self.changes = self.table.host_evidence(self.now, id, lives, tail);
        self
    }

    #[track_caller]
    fn row(&self, id: &str) -> Snapshot {
        match self.table.snapshot(id, false) {
            Some(row) => row,
            None => panic!("{id} is not in the table"),
        }
    }

    #[track_caller]
    fn check(&mut self, id: &str, state: State, exit: Option<i32>) -> &mut Self {
        let row = self.row(id);
        assert_eq!((row.state, row.exit), (state, exit), "{id}");
        self
    }

    #[track_caller]
    fn nothing_is_known(&self) {
        assert!(self.table.is_empty(), "{:?}", self.table.snapshots(|_| false));
        assert!(!self.table.any_live());
    }
}

fn kind_of(id: &str) -> Kind {
    match &id[..1] {
        "a" => Kind::Agent,
        "m" => Kind::Monitor,
        "w" => Kind::Workflow,
        _ => Kind::Shell,
    }
}

fn launch(id: &str) -> Launch {
    Launch { id: id.to_owned(), kind: kind_of(id), output: None, due: None, again: false }
}

fn result(owner: Owner, launch: Launch) -> AgentEvent {
    AgentEvent::ToolReturned { owner, id: "toolu_1".to_owned(), is_error: false, launch: Some(launch) }
}

fn started(id: &str, call: &str) -> AgentEvent {
    AgentEvent::Started {
        id: id.to_owned(),
        tool_call: Some(call.to_owned()),
        kind: Some(kind_of(id)),
        description: "made".to_owned(),
        by_subagent: false,
    }
}

fn updated(id: &str, status: EndStatus) -> AgentEvent {
    AgentEvent::Updated { id: id.to_owned(), status: Some(status), ended: None, detail: None }
}

fn note(id: &str, status: Option<EndStatus>, exit: Option<i32>) -> Notification {
    Notification {
        id: id.to_owned(),
        tool_call: None,
        status,
        summary: "s".to_owned(),
        exit,
        output: None,
        timed_out: false,
    }
}

fn notified(id: &str, status: EndStatus, exit: Option<i32>) -> AgentEvent {
    AgentEvent::Notified(note(id, Some(status), exit))
}

fn set(ids: &[&str]) -> AgentEvent {
    let entry =
        |id: &&str| LiveEntry { id: (*id).to_owned(), kind: kind_of(id), description: "listed".to_owned() };
    AgentEvent::LiveSet(ids.iter().map(entry).collect())
}

fn stop_call(call: &str, id: &str) -> AgentEvent {
    AgentEvent::ToolCalled {
        owner: Owner::Main,
        id: call.to_owned(),
        name: "TaskStop".to_owned(),
        call: Call { stops: Some(id.to_owned()), ..Call::default() },
    }
}

fn returned(call: &str, is_error: bool) -> AgentEvent {
    AgentEvent::ToolReturned { owner: Owner::Main, id: call.to_owned(), is_error, launch: None }
}

fn ended(id: &str, tellable: bool) -> Vec<Change> {
    vec![Change::Ended { id: id.to_owned(), tellable }]
}

// What opens.

#[test]
fn a_launchs_result_opens_whatever_kind_of_work_it_announces() {
    for (id, kind) in
        [("b1", Kind::Shell), ("a1", Kind::Agent), ("w1", Kind::Workflow), ("m1", Kind::Monitor)]
    {
        let mut world = World::default();
        world.at(1).launches(id).check(id, State::Running, None);
        assert_eq!(world.row(id).kind, kind);
        assert_eq!(world.changes, [Change::Opened { id: id.to_owned(), owner: Owner::Main }]);
        assert!(world.table.any_live());
        assert_eq!(world.table.any_agent_live(), matches!(kind, Kind::Agent | Kind::Workflow));
    }
}

#[test]
fn a_launch_that_came_back_as_an_error_opens_nothing() {
    let mut world = World::default();
    let launch = Some(launch("b1"));
    let id = "toolu_1".to_owned();
    world.tell(&AgentEvent::ToolReturned { owner: Owner::Main, id, is_error: true, launch });
    world.nothing_is_known();
}

#[test]
fn the_live_set_opens_what_it_lists_and_the_launch_adds_to_it() {
    let mut world = World::default();
    world.at(1).tell(&set(&["b1"])).check("b1", State::Running, None);
    let output = Some("/t/tasks/b1.output".to_owned());
    world.at(2).tell(&result(Owner::Main, Launch { output: output.clone(), ..launch("b1") }));
    let row = world.row("b1");
    assert_eq!((row.began, row.description.as_str(), row.output), (At(1000), "listed", output));
    assert_eq!(world.table.snapshots(|_| false).len(), 1);
}

#[test]
fn a_foreground_command_of_more_than_three_seconds_is_no_background_work() {
    let mut world = World::default();
    world.tell(&started("b1", "toolu_1")).tell(&notified("b1", EndStatus::Completed, Some(0)));
    world.tell(&returned("toolu_1", false)).nothing_is_known();
}

#[test]
fn a_synchronous_agent_is_no_background_work() {
    let mut world = World::default();
    world.tell(&started("a1", "toolu_1")).tell(&updated("a1", EndStatus::Completed));
    world.tell(&notified("a1", EndStatus::Completed, None)).tell(&returned("toolu_1", false));
    world.nothing_is_known();
}

#[test]
fn a_subagents_shell_is_background_work_and_marked_as_its() {
    let mut world = World::default();
    let owner = Owner::Subagent("toolu_agent".to_owned());
    world.tell(&started("b1", "toolu_1")).tell(&result(owner, launch("b1")));
    world.check("b1", State::Running, None);
    assert!(world.row("b1").by_subagent);
}

#[test]
fn a_subagents_shell_is_known_by_its_mark_where_only_the_live_set_tells_of_it() {
    let mut world = World::default();
    let mark = AgentEvent::Started {
        id: "b1".to_owned(),
        tool_call: None,
        kind: None,
        description: String::new(),
        by_subagent: true,
    };
    world.clone().tell(&mark).tell(&set(&["b1"])).check("b1", State::Running, None);
    world.tell(&set(&["b1"])).tell(&mark);
    assert!(world.row("b1").by_subagent);
}

#[test]
fn a_command_moved_to_the_background_opens_by_its_result_after_its_start_was_told() {
    let mut world = World::default();
    world.at(1).tell(&started("b1", "toolu_1")).nothing_is_known();
    world.at(3).launches("b1").check("b1", State::Running, None);
    assert_eq!(world.row("b1").description, "made");
}

#[test]
fn a_wakeup_is_pending_until_it_fires() {
    let wakeup = |id: &str, due: u64| Launch {
        id: id.to_owned(),
        kind: Kind::Wakeup,
        output: None,
        due: Some(At(due * 1000)),
        again: false,
    };
    let fires = |due: Option<u64>| AgentEvent::Lifecycle {
        message: "m".to_owned(),
        state: MessageState::Started,
        wakeup: Some(Wakeup { source: "loop_wakeup".to_owned(), due: due.map(|due| At(due * 1000)) }),
    };
    let mut world = World::default();
    world.at(1).tell(&result(Owner::Main, wakeup("s60", 60)));
    world.tell(&result(Owner::Main, wakeup("s90", 90)));
    let queued = AgentEvent::Lifecycle {
        message: "m".to_owned(),
        state: MessageState::Queued,
        wakeup: Some(Wakeup { source: "loop_wakeup".to_owned(), due: Some(At(60_000)) }),
    };
    world.tell(&queued).check("s60", State::Running, None);
    world.clone().at(60).tell(&fires(Some(60))).check("s60", State::Done, None).check(
        "s90",
        State::Running,
        None,
    );
    // One that names no moment is the one due about now; so is a scheduled message in a transcript.
    world.clone().at(91).tell(&fires(None)).check("s90", State::Done, None);
    let scheduled = AgentEvent::Prompted { message: None, wakeup: true };
    world.clone().at(50).tell(&scheduled).check("s60", State::Running, None);
    world.clone().at(61).tell(&scheduled).check("s60", State::Done, None).check("s90", State::Running, None);
    // It is lost with the process.
    world.at(30).process_ends().check("s60", State::Stopped, None);
    assert!(!world.table.any_live());
}

// What ends.

#[test]
fn exit_codes_come_from_the_notification() {
    let mut world = World::default();
    world.launches("b1").tell(&updated("b1", EndStatus::Failed)).check("b1", State::Failed, None);
    world.tell(&notified("b1", EndStatus::Failed, Some(3))).check("b1", State::Failed, Some(3));
}

#[test]
fn a_length_is_frozen_at_the_first_that_told_the_end() {
    let mut world = World::default();
    world.at(10).launches("b1").at(25).tell(&updated("b1", EndStatus::Completed));
    world.at(99).tell(&notified("b1", EndStatus::Completed, Some(0))).at(120).process_ends();
    let row = world.row("b1");
    assert_eq!((row.began, row.ended), (At(10_000), Some(At(25_000))));
}

#[test]
fn the_agents_clock_tells_a_length_within_what_was_seen() {
    for (told, expected) in [(20_000, 20_000), (90_000, 30_000), (1_000, 10_000)] {
        let mut world = World::default();
        let (status, ended) = (Some(EndStatus::Completed), Some(At(told)));
        world.at(10).launches("b1").at(30);
        world.tell(&AgentEvent::Updated { id: "b1".to_owned(), status, ended, detail: None });
        assert_eq!(world.row("b1").ended, Some(At(expected)), "told {told}");
    }
}

#[test]
fn a_repeated_notification_changes_nothing() {
    let mut world = World::default();
    world.at(1).launches("b1").at(2).tell(&notified("b1", EndStatus::Failed, Some(3)));
    let row = world.row("b1");
    world.at(9).tell(&notified("b1", EndStatus::Failed, Some(3)));
    assert_eq!((world.changes.as_slice(), world.row("b1")), ([].as_slice(), row.clone()));
    world.tell(&notified("b1", EndStatus::Completed, Some(0)));
    assert_eq!((world.changes.as_slice(), world.row("b1")), ([].as_slice(), row));
}

#[test]
fn an_interim_event_without_a_status_ends_nothing() {
    let mut world = World::default();
    world.launches("m1").tell(&AgentEvent::Notified(note("m1", None, None)));
    world.tell(&AgentEvent::Updated { id: "m1".to_owned(), status: None, ended: None, detail: None });
    world.check("m1", State::Running, None);
}

#[test]
fn an_end_before_the_launchs_result_counts() {
    let ends = [updated("b1", EndStatus::Failed), notified("b1", EndStatus::Failed, Some(3))];
    for with_set in [true, false] {
        let mut world = World::default();
        world.at(1).tell(&started("b1", "toolu_1"));
        if with_set {
            world.tell(&set(&["b1"])).tell(&set(&[]));
        }
        for end in &ends {
            world.tell(end);
        }
        world.at(2).launches("b1").check("b1", State::Failed, Some(3));
        assert!(!world.table.any_live());
    }
}

#[test]
fn a_notification_before_the_launchs_result_outranks_an_update_on_either_side_of_it() {
    let [update, note] = [updated("b1", EndStatus::Completed), notified("b1", EndStatus::Failed, Some(3))];
    for events in [[&update, &note], [&note, &update]] {
        let mut world = World::default();
        world.tell(events[0]).tell(events[1]).launches("b1").check("b1", State::Failed, Some(3));
    }
}

/// Returns every order of `items`.
fn orders(items: &[AgentEvent]) -> Vec<Vec<AgentEvent>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(at);
        all.extend(orders(&rest).into_iter().map(|mut order| {
            order.insert(0, first.clone());
            order
        }));
    }
    all
}

#[test]
fn every_order_of_update_notification_and_set_gives_the_same_end() {
    let cases = [
        (EndStatus::Completed, Some(0), State::Done, true),
        (EndStatus::Failed, Some(3), State::Failed, true),
        (EndStatus::Stopped, None, State::Stopped, false),
    ];
    for (status, exit, state, tellable) in cases {
        for order in orders(&[updated("b1", status), notified("b1", status, exit), set(&[])]) {
            let mut world = World::default();
            world.at(1).tell(&set(&["b1"])).launches("b1").at(2);
            let mut last = None;
            for event in &order {
                world.tell(event);
                last = world.changes.last().cloned().or(last);
            }
            world.check("b1", state, exit);
            assert_eq!(world.row("b1").ended, Some(At(2000)));
            assert_eq!(last.as_slice(), ended("b1", tellable), "{order:?}");
        }
    }
}

#[test]
fn any_one_carrier_ends_it() {
    for (event, state) in [
        (updated("b1", EndStatus::Completed), State::Done),
        (notified("b1", EndStatus::Completed, None), State::Done),
        (set(&[]), State::Unknown),
    ] {
        let mut world = World::default();
        world.tell(&set(&["b1"])).launches("b1").tell(&event).check("b1", state, None);
        assert_eq!(world.changes, ended("b1", true));
    }
}

#[test]
fn a_notification_has_the_last_word_over_an_update() {
    let [update, note] = [updated("b1", EndStatus::Completed), notified("b1", EndStatus::Stopped, None)];
    for events in [[&update, &note], [&note, &update]] {
        let mut world = World::default();
        world.launches("b1").tell(events[0]).tell(events[1]).check("b1", State::Stopped, None);
    }
}

#[test]
fn a_set_that_never_listed_it_does_not_end_it() {
    let mut world = World::default();
    world.launches("b1").tell(&set(&[])).check("b1", State::Running, None);
    world.tell(&set(&["b1", "b2"])).tell(&set(&["b2"])).check("b1", State::Unknown, None);
    world.check("b2", State::Running, None);
}

#[test]
fn a_set_that_is_empty_for_an_instant_is_followed_by_the_same_work() {
    let mut world = World::default();
    world.at(1).launches("a1").tell(&set(&["a1"])).at(5).tell(&set(&[]));
    assert!(!world.table.any_live());
    world.at(6).tell(&set(&["a1"])).check("a1", State::Running, None);
    assert_eq!(world.changes, [Change::Opened { id: "a1".to_owned(), owner: Owner::Main }]);
    assert_eq!(world.row("a1").ended, None);
}

// The same id again.

#[test]
fn a_message_to_a_finished_agent_runs_it_again_under_its_id() {
    let mut world = World::default();
    world.at(1).launches("a1").at(2).tell(&notified("a1", EndStatus::Completed, None));
    world.at(5).restarts("toolu_2", "a1").check("a1", State::Running, None);
    assert_eq!((world.row("a1").began, world.row("a1").ended), (At(5000), None));
    world.at(7).tell(&notified("a1", EndStatus::Failed, None)).check("a1", State::Failed, None);
    assert_eq!(world.row("a1").ended, Some(At(7000)));
}

#[test]
fn a_restart_is_not_ended_by_the_end_of_the_run_before() {
    // A synchronous agent told its start and its end, and was no background work.
    let mut world = World::default();
    world.tell(&started("a1", "toolu_0")).tell(&updated("a1", EndStatus::Completed));
    world.tell(&notified("a1", EndStatus::Completed, None)).nothing_is_known();
    world.clone().restarts("toolu_2", "a1").check("a1", State::Running, None);
    world.clone().tell(&set(&["a1"])).restarts("toolu_2", "a1").check("a1", State::Running, None);
    world.tell(&started("a1", "toolu_2")).restarts("toolu_2", "a1").check("a1", State::Running, None);
}

#[test]
fn a_restart_that_ended_before_its_result_stays_ended() {
    for background_before in [true, false] {
        let mut world = World::default();
        if background_before {
            world.launches("a1");
        } else {
            world.tell(&started("a1", "toolu_0"));
        }
        world.tell(&notified("a1", EndStatus::Completed, None));
        world.tell(&started("a1", "toolu_2")).tell(&notified("a1", EndStatus::Failed, None));
        world.restarts("toolu_2", "a1").check("a1", State::Failed, None);
        assert!(!world.table.any_live());
    }
}

#[test]
fn a_start_told_of_ended_work_means_that_it_runs_again() {
    let mut world = World::default();
    world.at(1).launches("a1").at(2).tell(&notified("a1", EndStatus::Completed, None));
    world.at(3).tell(&started("a1", "toolu_1")).check("a1", State::Running, None);
    assert_eq!(world.changes, [Change::Opened { id: "a1".to_owned(), owner: Owner::Main }]);
}

#[test]
fn a_stop_call_for_the_run_before_says_nothing_about_the_next() {
    let mut world = World::default();
    world.launches("a1").tell(&stop_call("toolu_2", "a1")).tell(&notified("a1", EndStatus::Stopped, None));
    assert_eq!(world.changes, ended("a1", true));
    world.tell(&returned("toolu_2", false)).restarts("toolu_3", "a1");
    world.tell(&notified("a1", EndStatus::Stopped, None));
    assert_eq!(world.changes, ended("a1", false));
}

// Stops.

#[test]
fn a_stop_call_that_succeeded_ends_what_no_event_ends() {
    let mut world = World::default();
    world.launches("b1").tell(&stop_call("toolu_2", "b1")).check("b1", State::Running, None);
    world.tell(&returned("toolu_2", false)).check("b1", State::Stopped, None);
    assert_eq!(world.changes, ended("b1", true));
}

#[test]
fn a_stop_call_that_was_refused_ends_nothing() {
    let mut world = World::default();
    world.launches("b1").tell(&stop_call("toolu_2", "b1")).tell(&returned("toolu_2", true));
    world.check("b1", State::Running, None);
    assert!(!world.table.stop_was_asked("b1"));
}

#[test]
fn the_agent_learns_of_a_stop_by_its_own_time_limit() {
    let limit =
        AgentEvent::Notified(Notification { timed_out: true, ..note("b1", Some(EndStatus::Stopped), None) });
    let mut world = World::default();
    world.launches("b1").tell(&updated("b1", EndStatus::Stopped));
    assert_eq!(world.changes, ended("b1", false));
    world.tell(&limit).check("b1", State::Stopped, None);
    assert_eq!(world.changes, ended("b1", true));
}

// The end of the process, and the host's evidence.

/// A shell whose agent was killed.
fn orphan() -> World {
    let mut world = World::default();
    world.at(1).launches("b1").at(5).process_ends();
    world
}

#[test]
fn the_agents_exit_leaves_shells_unknown_and_takes_the_rest_with_it() {
    let mut world = World::default();
    world.at(1).launches("b1").launches("a1").launches("b2");
    world.tell(&notified("b2", EndStatus::Completed, Some(0))).at(5).process_ends();
    assert_eq!(world.changes, [ended("b1", false), ended("a1", false)].concat());
    world.check("b1", State::Unknown, None).check("a1", State::Stopped, None).check(
        "b2",
        State::Done,
        Some(0),
    );
    assert_eq!(world.table.unexplained(), [("b1".to_owned(), None)]);
}

#[test]
fn the_line_at_the_end_of_an_output_file_tells_how_it_ended() {
    orphan().host("b1", false, Some("out\n\n[exited with code 0]\n")).check("b1", State::Done, Some(0));
    orphan().host("b1", true, Some("out\n[exited with code 3]\n")).check("b1", State::Failed, Some(3));
    orphan().host("b1", true, Some("part\n\n[killed]\n")).check("b1", State::Stopped, None);
}

#[test]
fn an_orphan_without_such_a_line_runs_as_long_as_a_process_lives() {
    let mut world = orphan();
    world.host("b1", true, Some("part\n")).check("b1", State::Running, None);
    assert_eq!(world.row("b1").ended, None);
    world.at(9).host("b1", false, Some("part\nmore\n")).check("b1", State::Unknown, None);
    assert_eq!(world.row("b1").ended, Some(At(9000)));
    // It was seen to outlive its agent: it ended by itself, and was not stopped with it.
    assert_eq!(world.table.none_lives(world.now), []);
    world.check("b1", State::Unknown, None);
    orphan().host("b1", true, None).check("b1", State::Running, None);
}

#[test]
fn more_output_after_such_a_line_means_that_it_runs_again() {
    let mut world = orphan();
    world.host("b1", true, Some("x\n[exited with code 3]\n")).check("b1", State::Failed, Some(3));
    world.host("b1", true, Some("x\n[exited with code 3]\nmore\n")).check("b1", State::Running, None);
    assert_eq!(world.row("b1").ended, None);
    let mut world = orphan();
    world.host("b1", false, Some("[exited with code 0]\n")).host(
        "b1",
        false,
        Some("[exited with code 0]\nx\n"),
    );
    world.check("b1", State::Unknown, None);
}

#[test]
fn a_file_that_went_away_does_not_unsay_what_was_read_from_it() {
    let mut world = orphan();
    world.host("b1", false, Some("[exited with code 3]\n")).host("b1", true, None);
    world.check("b1", State::Failed, Some(3));
}

#[test]
fn a_notification_has_the_last_word_over_the_hosts_evidence() {
    let mut world = orphan();
    world.host("b1", false, Some("[exited with code 3]\n"));
    world.tell(&notified("b1", EndStatus::Completed, None)).check("b1", State::Done, None);
    world.host("b1", true, Some("[exited with code 3]\n")).check("b1", State::Done, None);
}

#[test]
fn a_guess_at_resume_is_no_last_word() {
    let mut world = orphan();
    world.tell(&notified("b1", EndStatus::Stopped, None)).check("b1", State::Unknown, None);
    assert_eq!(world.changes, []);
    world.host("b1", true, Some("part\n")).check("b1", State::Running, None);
    world.at(7).tell(&notified("b1", EndStatus::Stopped, None)).check("b1", State::Unknown, None);
    assert_eq!(world.changes, ended("b1", false));
    assert_eq!(world.table.unexplained().len(), 1);
    world.host("b1", false, Some("[exited with code 0]\n"));
    world.tell(&notified("b1", EndStatus::Stopped, None)).check("b1", State::Done, Some(0));
}

#[test]
fn evidence_is_asked_for_orphaned_shells_only() {
    let mut world = World::default();
    world.launches("b1").host("b1", false, Some("[exited with code 3]\n")).check("b1", State::Running, None);
    world.launches("a1").process_ends().host("a1", true, Some("[exited with code 3]\n"));
    world.check("a1", State::Stopped, None);
    world.host("nobody", true, Some("[killed]"));
    assert_eq!(world.changes, []);
}

#[test]
fn an_orphan_outlives_the_next_process_and_its_sets() {
    let mut world = orphan();
    world.host("b1", true, None).tell(&set(&[])).check("b1", State::Running, None);
    world.process_ends().check("b1", State::Running, None);
    assert_eq!(world.changes, []);
}

#[test]
fn work_that_was_looked_at_and_then_cut_off_says_so() {
    let mut world = orphan();
    world.table.mark_cut_after_look(|_| true);
    assert!(world.row("b1").cut_after_look);
    world.table.mark_cut_after_look(|_| false);
    assert!(!world.row("b1").cut_after_look);
    world.host("b1", false, Some("[exited with code 0]\n")).table.mark_cut_after_look(|_| true);
    assert!(!world.row("b1").cut_after_look);
}

#[test]
fn only_the_last_line_that_is_not_blank_is_a_trailer() {
    for (tail, expected) in [
        ("out\nerr\n\n[exited with code 3]\n", Some(Trailer::Exited(3))),
        ("no newline at end\n[exited with code 0]\n", Some(Trailer::Exited(0))),
        ("part\n\n[killed]\n\n  \n", Some(Trailer::Killed)),
        ("[exited with code -1]", Some(Trailer::Exited(-1))),
        ("[exited with code 144]\r\n", Some(Trailer::Exited(144))),
        ("[exited with code 3]\nmore\n", None),
        ("[exited with code 3] and more\n", None),
        ("x [killed]\n", None),
        ("[exited with code ]", None),
        ("[exited with code 99999999999]", None),
        ("\n\n", None),
        ("", None),
    ] {
        assert_eq!(trailer(tail), expected, "{tail:?}");
    }
}

#[test]
fn foreground_work_without_end_takes_no_room_without_end() {
    let mut world = World::default();
    for at in 0..1000 {
        world.tell(&started(&format!("f{at}"), "toolu_1"));
    }
    world.tell(&notified("b1", EndStatus::Failed, Some(3))).launches("b1");
    world.check("b1", State::Failed, Some(3));
    assert_eq!(world.table.snapshots(|_| false).len(), 1);
}
