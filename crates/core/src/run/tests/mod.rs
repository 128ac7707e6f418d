//! Whole runs in virtual time: a scripted agent on one side, a host that answers every order on the other.

mod edges;
mod lines;

use lines::*;

use super::*;
use crate::decision::Start;
use crate::ids::RunId;
use crate::instruction::Delivery;
use crate::ladder::Action;
use crate::notice::{Decided, Finished};
use crate::policy::Limits;

const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// A run with its host and its agent's stream.
struct World {
    run: Run,
    now: At,
    attempt: AttemptId,
    offset: u64,
    starts: Vec<Start>,
    written: Vec<String>,
    closed: bool,
    surveys: usize,
    stops: Vec<bool>,
    decided: Vec<Decided>,
    remarks: Vec<String>,
    phases: Vec<Phase>,
    finished: Option<Finished>,
    /// What the host finds beside the agent.
    survivors: Vec<Survivor>,
    outputs: Vec<OutputTail>,
    /// The host answers at once; off to look at what is outstanding.
    obliging: bool,
}

impl World {
    fn new(limits: Limits) -> Self {
        Self::with(|request| request.limits = limits)
    }

    fn with(change: impl FnOnce(&mut Request)) -> Self {
        let mut request = Request {
            run: RunId("k7f2".into()),
            host: "local".into(),
            transport: "local".into(),
            prompt: "build it".into(),
            resume: None,
            model: None,
            permission_mode: None,
            agent_args: Vec::new(),
            delivery: Some(Delivery::Chat),
            seed: 7,
            limits: Limits::default(),
        };
        change(&mut request);
        let now = At(1_796_071_000_000);
        let (run, decisions) = Run::begin(request, now);
        let mut world = Self {
            run,
            now,
            attempt: AttemptId(0),
            offset: 0,
            starts: Vec::new(),
            written: Vec::new(),
            closed: false,
            surveys: 0,
            stops: Vec::new(),
            decided: Vec::new(),
            remarks: Vec::new(),
            phases: Vec::new(),
            finished: None,
            survivors: Vec::new(),
            outputs: Vec::new(),
            obliging: true,
        };
        world.carry_out(decisions);
        world
    }

    fn fact(&mut self, fact: Fact) {
        let decisions = self.run.apply(self.now, Event::Fact(fact));
        self.carry_out(decisions);
    }

    fn carry_out(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            let answer = match decision {
                Decision::Start(start) => {
                    self.attempt = start.attempt;
                    self.offset = 0;
                    self.closed = start.close;
                    let attempt = start.attempt;
                    self.starts.push(start);
                    Some(Fact::Started { attempt, pid: 42, found: false })
                }
                Decision::Write { attempt, message, bytes, .. } => {
                    self.written.push(String::from_utf8(bytes).unwrap());
                    Some(Fact::Written { attempt, message })
                }
                Decision::CloseInput { attempt, .. } => {
                    self.closed = true;
                    Some(Fact::InputClosed { attempt })
                }
                Decision::Survey { survey, .. } => {
                    self.surveys += 1;
                    Some(Fact::Surveyed {
                        survey,
                        survivors: self.survivors.clone(),
                        outputs: self.outputs.clone(),
                    })
                }
                Decision::Stop { attempt, now } => {
                    self.stops.push(now);
                    self.survivors.clear();
                    Some(Fact::Stopped { attempt, left: Vec::new() })
                }
                Decision::Report(notice) => {
                    self.watch(notice.what);
                    None
                }
                Decision::Finish(_) => None,
            };
            if let (Some(answer), true) = (answer, self.obliging) {
                self.fact(answer);
            }
        }
    }

    fn watch(&mut self, what: What) {
        match what {
            What::Decided(decided) => self.decided.push(*decided),
            What::Remark { text } => self.remarks.push(text),
            What::PhaseChanged { phase } => self.phases.push(phase),
            What::RunFinished(finished) => self.finished = Some(*finished),
            What::RunStarted { .. }
            | What::AttemptStarted { .. }
            | What::ReplyStarted { .. }
            | What::Text { .. }
            | What::ToolCalled { .. }
            | What::ToolReturned { .. }
            | What::Background(_)
            | What::LinkChanged { .. }
            | What::AttemptEnded { .. } => {}
        }
    }

    /// The agent writes these lines.
    fn says(&mut self, lines: &[String]) -> &mut Self {
        for line in lines {
            let bytes = format!("{line}\n");
            let event = Event::Output { attempt: self.attempt, offset: self.offset, bytes: bytes.as_bytes() };
            self.offset += bytes.len() as u64;
            let decisions = self.run.apply(self.now, event);
            self.carry_out(decisions);
        }
        self
    }

    fn exits(&mut self, status: ExitStatus) -> &mut Self {
        let (attempt, spooled) = (self.attempt, self.offset);
        self.fact(Fact::Exited { attempt, status, spooled, stderr: String::new() });
        self
    }

    fn passes(&mut self, span: Duration) -> &mut Self {
        let end = self.now.after(span);
        while let Some(due) = self.run.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.fact(Fact::DeadlinePassed);
        }
        self.now = end;
        self
    }

    #[track_caller]
    fn ended(&self, ending: Ending, reason: &str) -> &Finished {
        let finished = self.finished.as_ref().unwrap_or_else(|| panic!("not over: {:?}", self.run.stage));
        assert_eq!(
            (finished.outcome.ending, finished.outcome.reason.as_str()),
            (ending, reason),
            "{finished:?}"
        );
        finished
    }

    fn actions(&self) -> Vec<(Action, &str)> {
        self.decided.iter().map(|d| (d.action, d.reason.as_str())).collect()
    }
}

const OK: ExitStatus = ExitStatus::Code(0);

#[test]
fn an_obedient_agent_is_done_without_a_nudge_and_without_waiting_for_quiet() {
    let mut world = World::new(Limits::default());
    world.says(&reply());
    assert!(world.closed, "a reply that used no tool has nothing to wait for");
    world.exits(OK);
    let finished = world.ended(Ending::Done, "settled");
    assert_eq!((finished.nudges_used, finished.continues_used, finished.debt), (0, 0, 0));
    assert_eq!(world.surveys, 0, "an agent that used no tool left no process");
    assert_eq!(world.actions(), [(Action::Finish, "settled")]);
}

#[test]
fn a_walk_away_is_held_until_the_agent_wakes_and_costs_nothing() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    assert!(!world.closed);
    assert_eq!(world.actions(), [(Action::Hold, "background_running")]);
    world.passes(Duration::from_secs(12 * 60)).says(&end("b1"));
    world.passes(Duration::from_millis(200)).says(&[init(), text("it finished"), woken()]);
    assert!(!world.closed, "it must stay quiet for a moment first");
    world.passes(Duration::from_secs(2));
    assert!(world.closed);
    world.exits(OK);
    let finished = world.ended(Ending::Done, "settled");
    assert_eq!((finished.nudges_used, finished.continues_used, world.starts.len()), (0, 0, 1));
    assert_eq!(world.phases, [Phase::Working, Phase::Waiting, Phase::Working, Phase::Settling, Phase::Ended]);
}

#[test]
fn work_that_ends_just_before_the_result_wakes_the_agent_and_costs_no_nudge() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait")]).says(&end("b1"));
    world.says(&[success(2)]);
    assert_eq!((world.written.len(), world.actions()), (0, Vec::new()), "it will hear of it in a moment");
    world.passes(Duration::from_millis(300)).says(&[init(), text("it finished"), woken()]);
    world.passes(Duration::from_secs(2)).exits(OK);
    assert_eq!(world.ended(Ending::Done, "settled").nudges_used, 0);
}

#[test]
fn an_agent_that_never_hears_of_such_an_end_is_nudged_after_a_moment() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait")]).says(&end("b1"));
    world.says(&[success(2)]).passes(Duration::from_secs(4));
    assert_eq!(world.actions(), [(Action::Nudge, "debt")]);
    assert!(world.written[0].contains("shell b1 (make): ended with exit code 0"), "{}", world.written[0]);
}

#[test]
fn a_hold_that_is_used_up_gives_one_nudge_and_then_a_stranded_run() {
    let mut world = World::new(Limits { hold: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    world.passes(Duration::from_secs(59));
    assert!(world.written.is_empty());
    world.passes(Duration::from_secs(2));
    assert_eq!(world.written.len(), 1);
    assert!(world.written[0].contains("shell b1 (make): still running"), "{}", world.written[0]);
    world.says(&[init(), text("still waiting"), success(1)]);
    assert!(world.closed);
    world.outputs = vec![OutputTail { id: "b1".into(), size: Some(9), tail: "\n[killed]\n".into() }];
    world.exits(OK);
    let finished = world.ended(Ending::Stranded, "nudge_spent");
    assert_eq!((finished.debt, finished.nudges_used), (1, 1));
    assert!(
        finished.outcome.message.contains("shell b1 (make) was ended with the agent"),
        "{}",
        finished.outcome.message
    );
    assert!(
        finished.outcome.message.contains("nothing of the run still runs on local"),
        "{}",
        finished.outcome.message
    );
}

#[test]
fn a_plain_run_that_lost_its_shell_is_nudged_on_the_resumed_session() {
    let mut world = World::new(Limits { hold: None, ..Limits::default() });
    assert!(world.starts[0].close);
    assert_eq!(world.starts[0].input, b"build it");
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("left it"), success(2)]);
    world.says(&[note("b1", "stopped", "make")]).exits(OK);
    assert_eq!(world.starts.len(), 2);
    assert!(world.starts[1].args.iter().any(|arg| arg == SESSION), "{:?}", world.starts[1].args);
    let asked = String::from_utf8(world.starts[1].input.clone()).unwrap();
    assert!(asked.contains("shell b1 (make): was stopped before it finished"), "{asked}");
    // The guess at resume and its EMPTY result settle nothing and answer nothing.
    world.says(&[note("b1", "stopped", "guess"), init(), empty(), init(), text("hm"), success(1)]).exits(OK);
    assert_eq!(world.ended(Ending::Stranded, "nudge_spent").debt, 1);
}

#[test]
fn a_nudged_agent_that_reads_the_output_is_done() {
    let mut world = World::new(Limits { hold: None, ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("left it"), success(2)]);
    world.says(&[note("b1", "stopped", "make")]).exits(OK);
    let read = call("c2", "Read", r#"{"file_path":"/t/tasks/b1.output"}"#);
    world.says(&[init(), read, returned("c2", "{}"), text("read it"), success(2)]).exits(OK);
    assert_eq!(world.ended(Ending::Done, "settled").nudges_used, 1);
}

#[test]
fn orphans_of_a_killed_agent_are_waited_for_and_not_started_twice() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("working on")]);
    world.survivors = vec![Survivor { pid: 7, command: "make".into() }];
    world.outputs = vec![OutputTail { id: "b1".into(), size: Some(3), tail: "cc ".into() }];
    world.exits(ExitStatus::Signal(9));
    assert_eq!(world.starts.len(), 1, "not resumed while the orphan works");
    assert_eq!(world.actions(), [(Action::Hold, "orphan_running")]);
    world.passes(Duration::from_secs(60));
    assert_eq!(world.starts.len(), 1);
    world.survivors.clear();
    world.passes(Duration::from_secs(3));
    assert_eq!(world.starts.len(), 2);
    assert_eq!(world.actions()[1], (Action::Continue, "no_result"));
}

#[test]
fn an_orphan_that_ran_to_its_end_is_never_called_stopped() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    world.survivors = vec![Survivor { pid: 7, command: "make".into() }];
    world.outputs = vec![OutputTail { id: "b1".into(), size: Some(3), tail: "cc ".into() }];
    world.exits(ExitStatus::Signal(9));
    let held = &world.decided[1];
    assert_eq!((held.action, held.reason.as_str()), (Action::Hold, "orphan_running"));
    assert!(held.message.contains("without its agent"), "{}", held.message);
    world.survivors.clear();
    world.passes(Duration::from_secs(3));
    let asked = String::from_utf8(world.starts[1].input.clone()).unwrap();
    assert!(asked.contains("shell b1 (make): it is not known how it ended"), "{asked}");
    // The resumed session guesses that it was stopped.
    let read = call("c2", "Read", r#"{"file_path":"/t/tasks/b1.output"}"#);
    world.says(&[note("b1", "stopped", "guess"), init(), empty(), init(), read, returned("c2", "{}")]);
    world.says(&[text("it ran"), success(2)]).passes(Duration::from_secs(2)).exits(OK);
    let finished = world.ended(Ending::Done, "settled");
    assert_eq!(finished.background[0].state, crate::background::State::Unknown);
    assert_eq!(finished.outcome.message, "the reply succeeded and nothing is owed");
}

#[test]
fn a_message_that_a_dying_agent_never_took_is_not_charged() {
    for queued in [false, true] {
        let mut world = World::new(Limits::default());
        let broken = result(
            r#""subtype":"error_during_execution","is_error":true,"num_turns":2,"terminal_reason":"aborted_tools","errors":["[ede_diagnostic]"]"#,
        );
        world.says(&[init(), call("c1", "Bash", "{}"), broken]);
        assert_eq!((world.written.len(), world.starts.len()), (1, 1), "it seemed to live");
        if queued {
            let id =
                world.written[0].split(r#""uuid":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            let line = format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"queued"}}"#);
            world.says(&[line]);
        }
        world.exits(OK);
        let expected = [(Action::Continue, "execution_error"), (Action::Continue, "execution_error")];
        assert_eq!(world.actions(), expected);
        world.says(&reply()).exits(OK);
        assert_eq!(world.ended(Ending::Done, "settled").continues_used, 1);
    }
}

#[test]
fn an_agent_that_dies_at_once_again_and_again_is_given_up() {
    let mut world = World::new(Limits::default());
    for _ in 0..10 {
        world.says(&[init()]).exits(ExitStatus::Signal(11));
    }
    let finished = world.ended(Ending::Exhausted, "no_progress");
    assert_eq!((finished.continues_used, world.starts.len()), (2, 3));
}

#[test]
fn words_of_a_person_that_a_dying_agent_never_took_are_said_to_the_next_one() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), call("c1", "Bash", "{}")]);
    world.fact(Fact::Asked { ask: Ask::Say { text: "make it blue".into() } });
    world.exits(ExitStatus::Signal(9));
    assert_eq!(world.starts.len(), 2);
    assert!(String::from_utf8(world.starts[1].input.clone()).unwrap().contains("make it blue"));
}

#[test]
fn a_session_lost_with_its_agent_is_begun_afresh_with_word_of_what_it_launched() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).exits(ExitStatus::Signal(9));
    world.says(&[result(
        r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: x"]"#,
    )]);
    world.exits(ExitStatus::Code(1));
    assert_eq!(world.actions()[1], (Action::Restart, "session_unknown"));
    let asked = String::from_utf8(world.starts[2].input.clone()).unwrap();
    assert!(asked.contains("build it") && asked.contains("shell b1 (make)"), "{asked}");
}

#[test]
fn an_agent_that_goes_on_in_a_new_process_is_told_what_the_last_one_launched() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).exits(ExitStatus::Signal(9));
    assert_eq!(world.actions(), [(Action::Continue, "no_result")]);
    let asked = String::from_utf8(world.starts[1].input.clone()).unwrap();
    assert!(asked.contains("shell b1 (make): was stopped before it finished"), "{asked}");
}

#[test]
fn the_turn_limit_is_continued_in_the_same_process_three_times() {
    let mut world = World::new(Limits { max_turns: 3, ..Limits::default() });
    for turn in 0..4 {
        world.says(&[init(), call(&format!("c{turn}"), "Bash", r#"{"command":"ls"}"#), max_turns(4)]);
    }
    world.exits(ExitStatus::Code(1));
    assert_eq!((world.starts.len(), world.written.len()), (1, 3 + 1), "three continues and the way out");
    assert!(world.written[0].contains("used 4 of 3 turns"), "{}", world.written[0]);
    let finished = world.ended(Ending::Exhausted, "max_turns");
    assert_eq!((finished.continues_used, finished.turns_spent, finished.turns_spent_total), (3, 4, 16));
    assert!(world.decided[0].message.contains("used 4 of 3 turns"));
}

#[test]
fn a_turn_limit_of_somebody_else_is_named_as_such() {
    let mut world = World::new(Limits { max_turns: 50, continues: 0, ..Limits::default() });
    world.says(&[init(), max_turns(11)]).exits(ExitStatus::Code(1));
    let finished = world.ended(Ending::Exhausted, "max_turns");
    assert!(finished.outcome.message.contains("the limit is not ours"), "{}", finished.outcome.message);
    assert!(!finished.outcome.hint.contains("--max-turns"), "{}", finished.outcome.hint);
}

#[test]
fn success_on_the_last_allowed_continue_is_done() {
    let mut world = World::new(Limits { max_turns: 3, continues: 1, ..Limits::default() });
    world.says(&[init(), call("c1", "Bash", r#"{"command":"ls"}"#), max_turns(4)]).says(&reply());
    world.exits(OK);
    assert_eq!(world.ended(Ending::Done, "settled").continues_used, 1);
}

#[test]
fn continues_without_a_tool_call_are_no_progress() {
    let mut world = World::new(Limits { continues: 9, ..Limits::default() });
    for _ in 0..3 {
        world.says(&[init(), max_turns(51)]);
    }
    world.exits(ExitStatus::Code(1));
    assert_eq!(world.ended(Ending::Exhausted, "no_progress").continues_used, 2);
}

#[test]
fn errors_of_the_service_are_never_done_and_each_has_its_own_action() {
    let cases: [(u16, &str, Action, &str); 8] = [
        (401, "authentication_failed", Action::Finish, "sign_in"),
        (403, "authentication_failed", Action::Finish, "sign_in"),
        (400, "invalid_request", Action::Finish, "bad_request"),
        (404, "model_not_found", Action::Finish, "bad_request"),
        (429, "rate_limit", Action::Wait, "limit"),
        (500, "server_error", Action::Backoff, "overloaded"),
        (529, "server_error", Action::Backoff, "overloaded"),
        (503, "unknown", Action::Backoff, "overloaded"),
    ];
    for (status, class, action, reason) in cases {
        let mut world = World::new(Limits::default());
        world.says(&[init()]).says(&api_error(status, class, "API Error"));
        assert_eq!(world.actions(), [(action, reason)], "{status}");
        world.exits(ExitStatus::Code(1));
        assert_ne!(world.finished.as_ref().map(|f| f.outcome.ending), Some(Ending::Done));
    }
}

#[test]
fn a_limit_that_resets_soon_is_waited_for_and_the_prompt_goes_out_again() {
    let mut world = World::new(Limits::default());
    let resets = world.now.0 / 1000 + 3;
    let limit = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{resets},"rateLimitType":"five_hour"}}}}"#
    );
    world.says(&[init(), limit]).says(&api_error(429, "rate_limit", "You've hit your limit"));
    assert_eq!(world.actions(), [(Action::Wait, "limit")]);
    assert_eq!(world.phases.last(), Some(&Phase::Limited));
    world.passes(Duration::from_secs(9));
    assert!(world.written.is_empty());
    world.passes(Duration::from_secs(2));
    assert!(world.written[0].contains("build it"), "nothing was said yet: {}", world.written[0]);
    world.says(&reply()).exits(OK);
    let finished = world.ended(Ending::Done, "settled");
    assert_eq!(finished.continues_used, 0);
}

#[test]
fn a_process_that_ends_during_a_wait_costs_no_further_wait() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]).says(&api_error(429, "rate_limit", "limit"));
    world.exits(ExitStatus::Signal(9));
    assert_eq!(world.actions(), [(Action::Wait, "limit")]);
    world.passes(Duration::from_secs(61));
    assert_eq!(world.starts.len(), 2);
    world.says(&reply()).exits(OK);
    world.ended(Ending::Done, "settled");
}

#[test]
fn a_limit_that_resets_in_hours_ends_the_run_with_the_time_told() {
    let mut world = World::new(Limits::default());
    let resets = world.now.0 / 1000 + 7200;
    let limit = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{resets},"rateLimitType":"five_hour"}}}}"#
    );
    world.says(&[init(), limit]).says(&api_error(429, "rate_limit", "limit")).exits(ExitStatus::Code(1));
    let finished = world.ended(Ending::Limited, "limit");
    assert!(finished.outcome.message.contains(&At(resets * 1000).rfc3339()), "{}", finished.outcome.message);
}

#[test]
fn a_process_that_ends_without_a_result_is_never_done() {
    for status in [ExitStatus::Code(0), ExitStatus::Code(143), ExitStatus::Signal(9), ExitStatus::Code(130)] {
        let mut world = World::new(Limits::default());
        for _ in 0..4 {
            world.says(&[init(), call("c1", "Bash", r#"{"command":"make"}"#)]).exits(status);
        }
        let finished = world.ended(Ending::Exhausted, "no_result");
        assert_eq!((finished.continues_used, world.starts.len()), (3, 4));
    }
}

#[test]
fn an_agent_that_refuses_its_arguments_fails_at_once_with_its_words() {
    let mut world = World::new(Limits::default());
    let attempt = world.attempt;
    world.fact(Fact::Exited {
        attempt,
        status: ExitStatus::Code(1),
        spooled: 0,
        stderr: "error: unknown option '--nope'\n".into(),
    });
    let finished = world.ended(Ending::Failed, "agent_refused");
    assert!(finished.outcome.message.contains("unknown option '--nope'"), "{}", finished.outcome.message);
    assert_eq!(world.starts.len(), 1);
}

#[test]
fn an_unknown_session_is_started_afresh_once_and_never_in_a_loop() {
    let mut world = World::with(|request| request.resume = Some(SessionId("gone".into())));
    let unknown = result(
        r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: gone"]"#,
    );
    world.says(std::slice::from_ref(&unknown));
    assert_eq!(world.starts.len(), 1, "not beside the first process");
    world.exits(ExitStatus::Code(1));
    assert_eq!(world.starts.len(), 2);
    assert!(!world.starts[1].args.iter().any(|arg| arg == "--resume"));
    assert!(String::from_utf8_lossy(&world.starts[1].input).contains("build it"));
    world.says(&[unknown]).exits(ExitStatus::Code(1));
    world.ended(Ending::Exhausted, "session_unknown");
    assert_eq!(world.starts.len(), 2);
}

#[test]
fn a_wake_ups_success_never_heals_the_error_of_the_reply_to_our_message() {
    let mut world = World::new(Limits { continues: 0, hold: None, ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[max_turns(51)]);
    world.says(&end("b1")).says(&[init(), text("it finished"), woken()]).exits(OK);
    world.ended(Ending::Exhausted, "max_turns");
}

#[test]
fn an_empty_result_between_two_ends_answers_nothing() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&launch("c2", "b2"));
    world.says(&[set(&["b1", "b2"]), text("wait"), success(3)]);
    world.says(&[
        note("b1", "completed", "x (exit code 0)"),
        note("b2", "completed", "x (exit code 0)"),
        set(&[]),
    ]);
    world.says(&[init(), empty(), init(), text("both"), woken()]);
    world.passes(Duration::from_secs(3)).exits(OK);
    let finished = world.ended(Ending::Done, "settled");
    assert_eq!(finished.replies.len(), 3);
}

#[test]
fn a_looked_at_server_that_the_exit_cuts_off_owes_nothing_but_is_told() {
    let mut world = World::new(Limits { hold: Some(Duration::from_secs(30)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1"));
    let look = call("c2", "Read", r#"{"file_path":"/t/tasks/b1.output"}"#);
    world.says(&[look, returned("c2", "{}"), text("serving"), success(3)]);
    world.passes(Duration::from_secs(31));
    assert!(world.closed);
    world.says(&[note("b1", "stopped", "make")]).exits(OK);
    let finished = world.ended(Ending::Done, "looked_at");
    assert_eq!((finished.debt, finished.nudges_used), (0, 0));
    assert!(
        finished.outcome.message.contains("stopped when the agent ended"),
        "{}",
        finished.outcome.message
    );
}

#[test]
fn a_process_left_beside_the_agent_is_asked_about_once_and_then_listed() {
    let mut world = World::new(Limits::default());
    world.survivors = vec![Survivor { pid: 99, command: "nohup make".into() }];
    world.says(&[
        init(),
        call("c1", "Bash", r#"{"command":"nohup make &"}"#),
        returned("c1", "{}"),
        text("ok"),
        success(2),
    ]);
    assert_eq!(world.actions(), [(Action::Nudge, "left_running")]);
    assert!(world.written[0].contains("pid 99: nohup make"), "{}", world.written[0]);
    world.says(&[init(), text("it is a server, it stays"), success(1)]).exits(OK);
    let finished = world.ended(Ending::Done, "settled");
    assert_eq!(finished.survivors.len(), 1);
    assert!(finished.outcome.message.contains("1 process was left running"), "{}", finished.outcome.message);
}

#[test]
fn a_stop_ends_the_run_only_when_the_host_confirmed_it() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    world.obliging = false;
    world.fact(Fact::Asked { ask: Ask::Stop { now: false } });
    assert_eq!(world.stops, [false]);
    assert!(world.finished.is_none());
    world.fact(Fact::Asked { ask: Ask::Stop { now: false } });
    assert_eq!(world.stops, [false, true], "a second stop is at once");
    world.exits(ExitStatus::Code(143));
    assert!(world.finished.is_none(), "gone, but not confirmed");
    let attempt = world.attempt;
    world.fact(Fact::Stopped { attempt, left: Vec::new() });
    world.ended(Ending::Stopped, "user_stop");
}

#[test]
fn a_message_from_a_person_is_waited_for_before_the_run_is_done() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    world.fact(Fact::Asked { ask: Ask::Say { text: "also the tests".into() } });
    world.says(&[success(1)]);
    let said = world.run.messages.last().unwrap().id.clone();
    assert!(!world.closed, "a message is open");
    world.says(&[init(), text("tests too")]);
    let answered = result(&format!(
        r#""subtype":"success","is_error":false,"num_turns":1,"result":"tests","terminal_reason":"completed","user_message_uuids":["{said}"]"#
    ));
    world.says(&[answered]).exits(OK);
    world.ended(Ending::Done, "settled");
}

#[test]
fn a_message_for_a_process_that_is_gone_starts_a_new_attempt_and_spends_nothing() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    world.obliging = false;
    world.fact(Fact::Asked { ask: Ask::Say { text: "also the tests".into() } });
    world.obliging = true;
    world.exits(ExitStatus::Signal(9));
    assert_eq!(world.starts.len(), 2);
    assert!(String::from_utf8_lossy(&world.starts[1].input).contains("also the tests"));
    world.says(&reply()).exits(OK);
    assert_eq!(world.ended(Ending::Done, "settled").continues_used, 0);
}

#[test]
fn a_refusal_before_the_first_start_is_told_and_nothing_ran() {
    let mut world = World::new(Limits::default());
    let attempt = world.attempt;
    let refusal =
        Refusal { kind: RefusalKind::NoAgent, detail: "no agent".into(), hint: "install it".into() };
    world.fact(Fact::Refused { attempt, refusal });
    world.ended(Ending::Refused, "no_agent");
}

#[test]
fn the_time_budget_ends_a_reply_that_goes_on() {
    let mut world = World::new(Limits { timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init(), text("working")]).passes(Duration::from_secs(61));
    assert!(world.closed);
    assert!(
        world.written[0].contains("interrupt") && world.written[0].contains("end_session"),
        "{}",
        world.written[0]
    );
    world.exits(OK);
    world.ended(Ending::Exhausted, "timeout");
}

#[test]
fn the_cost_of_a_resumed_session_is_not_added_up_twice() {
    let mut world = World::new(Limits { hold: None, max_turns: 3, ..Limits::default() });
    let costly = |turns: u64, cost: f64| {
        result(&format!(
            r#""subtype":"error_max_turns","is_error":true,"num_turns":{turns},"total_cost_usd":{cost}"#
        ))
    };
    world
        .says(&[init(), call("c1", "Bash", r#"{"command":"ls"}"#), costly(4, 0.5)])
        .exits(ExitStatus::Code(1));
    world.says(&[
        init(),
        text("x"),
        result(r#""subtype":"success","is_error":false,"num_turns":1,"result":"ok","total_cost_usd":0.75"#),
    ]);
    world.exits(OK);
    let cost = world.ended(Ending::Done, "settled").cost_usd;
    assert!((cost - 0.75).abs() < 1e-9, "{cost}");
}

#[test]
fn an_agent_that_does_not_leave_is_stopped_and_the_run_is_done_all_the_same() {
    let mut world = World::new(Limits::default());
    world.says(&reply());
    world.passes(Duration::from_secs(25));
    assert_eq!(world.stops, [false]);
    world.exits(ExitStatus::Code(143));
    world.ended(Ending::Done, "settled");
}

#[test]
fn lost_contact_is_an_outcome_that_says_so_and_never_a_failure() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    let attempt = world.attempt;
    world.fact(Fact::Lost { attempt, cause: "no answer for 45 s".into() });
    let finished = world.ended(Ending::Lost, "link");
    assert!(finished.outcome.hint.contains("bursar stop k7f2"));
}

#[test]
fn an_agent_older_than_the_floor_is_told_of_once() {
    for (version, word) in [
        ("2.1.212", None),
        ("2.1.204", Some("older than 2.1.212")),
        ("2.1.170", Some("--no-hold")),
        ("x", Some("not known")),
    ] {
        let mut world = World::new(Limits::default());
        let begin = init().replace("2.1.332", version).replace("msg_lifecycle_v1", "none");
        world.says(&[begin.clone(), text("a"), begin]);
        let told: Vec<_> = world.remarks.iter().filter(|remark| remark.contains("version")).collect();
        assert_eq!(told.len(), usize::from(word.is_some()), "{version}: {told:?}");
        assert!(word.is_none_or(|word| told[0].contains(word)), "{told:?}");
    }
}

#[test]
fn repeated_and_late_bytes_change_nothing() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1"));
    let bytes = format!("{}\n", init());
    for offset in [0, 3] {
        let event = Event::Output { attempt: world.attempt, offset, bytes: bytes.as_bytes() };
        assert_eq!(world.run.apply(world.now, event), []);
    }
    assert_eq!(world.run.tally.ledger.debt(), 1);
}

#[test]
fn what_is_outstanding_is_named_until_it_is_answered() {
    let mut world = World::new(Limits::default());
    assert!(world.run.outstanding().is_empty(), "{:?}", world.run.outstanding());
    world.obliging = false;
    world.says(&[init(), call("c1", "Bash", r#"{"command":"ls"}"#), returned("c1", "{}"), success(2)]);
    assert!(matches!(world.run.outstanding()[..], [Decision::Survey { .. }]));
    world.fact(Fact::Surveyed { survey: 1, survivors: Vec::new(), outputs: Vec::new() });
    assert!(matches!(world.run.outstanding()[..], [Decision::CloseInput { .. }]));
    let attempt = world.attempt;
    world.fact(Fact::InputClosed { attempt });
    assert!(world.run.outstanding().is_empty());
}
