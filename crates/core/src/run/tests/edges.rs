//! Orders of events that are rare and were once got wrong, or could be.

use super::*;

fn say(world: &mut World, text: &str) {
    world.fact(Fact::Asked { ask: Ask::Say { text: text.into() } });
}
fn id_of(written: &str) -> String {
    written.split(r#""uuid":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned()
}
fn life(id: &str, state: &str) -> String {
    format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"{state}"}}"#)
}
fn raw(world: &mut World, text: &str) {
    let event = Event::Output { attempt: world.attempt, offset: world.offset, bytes: text.as_bytes() };
    world.offset += text.len() as u64;
    let decisions = world.run.apply(world.now, event);
    world.carry_out(decisions);
}
/// Lets time pass; a deadline that was fed and stays due is reported, not looped over.
fn passes_safely(world: &mut World, span: Duration) {
    let end = world.now.after(span);
    let mut same = 0;
    let mut last = None;
    while let Some(due) = world.run.next_deadline().filter(|due| *due <= end) {
        if last == Some(due) {
            same += 1;
        } else {
            same = 0;
        }
        last = Some(due);
        assert!(same < 5, "the deadline {due} stays due: {:?}", world.run.stage);
        world.now = world.now.max(due);
        world.fact(Fact::DeadlinePassed);
    }
    world.now = end;
}

#[test]
fn a_timeout_stops_a_plain_agent_that_works_on() {
    let mut world =
        World::new(Limits { hold: None, timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init(), text("working")]);
    passes_safely(&mut world, Duration::from_secs(7200));
    assert!(
        !world.stops.is_empty(),
        "no stop in two hours; stage {:?}, decided {:?}",
        world.run.stage,
        world.actions()
    );
}

#[test]
fn a_timeout_stops_a_held_agent_that_does_not_listen() {
    let mut world = World::new(Limits { timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init(), text("working")]);
    passes_safely(&mut world, Duration::from_secs(7200));
    assert!(!world.stops.is_empty(), "no stop in two hours; stage {:?}", world.run.stage);
}

#[test]
fn a_timeout_stops_a_plain_agent_that_lingers_after_its_result() {
    let mut world =
        World::new(Limits { hold: None, timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("bye"), success(2)]);
    passes_safely(&mut world, Duration::from_secs(120));
    assert!(!world.stops.is_empty(), "stage {:?}", world.run.stage);
}

#[test]
fn a_result_without_a_newline_is_judged_after_the_end_is_told() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("hi")]);
    raw(&mut world, &success(1));
    let attempt = world.attempt;
    let decisions = world.run.apply(
        world.now,
        Event::Fact(Fact::Exited { attempt, status: OK, spooled: world.offset, stderr: String::new() }),
    );
    let place = |is_it: fn(&Decision) -> bool| decisions.iter().position(is_it).unwrap();
    let told = |decision: &Decision, what: fn(&What) -> bool| matches!(decision, Decision::Report(notice) if what(&notice.what));
    let ended =
        decisions.iter().position(|d| told(d, |what| matches!(what, What::AttemptEnded { .. }))).unwrap();
    let over = decisions.iter().position(|d| told(d, |what| matches!(what, What::RunFinished(_)))).unwrap();
    assert!(ended < over, "{decisions:?}");
    assert_eq!(place(|decision| matches!(decision, Decision::Finish(_))), decisions.len() - 1);
}

#[test]
fn a_result_without_a_newline_starts_one_attempt_and_no_second_beside_it() {
    let mut world = World::new(Limits { hold: None, ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("bye")]);
    raw(&mut world, &success(2));
    world.exits(OK);
    let summary: Vec<_> =
        world.starts.iter().map(|s| (s.attempt.0, s.session.clone().map(|s| s.0))).collect();
    assert_eq!(world.starts.len(), 2, "{summary:?} {:?}", world.actions());
}

#[test]
fn a_message_is_not_lost_with_an_agent_that_died_before_its_first_word() {
    for obliging in [true, false] {
        let mut world = World::new(Limits::default());
        world.obliging = obliging;
        say(&mut world, "make it blue");
        world.obliging = true;
        world.exits(ExitStatus::Signal(9));
        let all: String = world
            .starts
            .iter()
            .skip(1)
            .map(|s| String::from_utf8_lossy(&s.input).into_owned())
            .chain(world.written.iter().skip(usize::from(obliging)).cloned())
            .collect();
        assert!(all.contains("make it blue"), "obliging {obliging}: {all}");
    }
}

#[test]
fn a_message_the_agent_had_begun_when_it_died_is_not_answered_by_the_reply_before_it() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    let prompt = world.run.messages[0].id.0.clone();
    say(&mut world, "also the tests");
    let id = id_of(&world.written[0]);
    world.says(&[life(&id, "queued"), result(&format!(
        r#""subtype":"success","is_error":false,"num_turns":1,"result":"ok","terminal_reason":"completed","user_message_uuids":["{prompt}"]"#)),
        life(&prompt, "completed"), life(&id, "started")]);
    world.exits(ExitStatus::Signal(9));
    assert!(world.finished.is_none(), "{:?}", world.finished.as_ref().map(|f| &f.outcome));
}

#[test]
fn contact_lost_in_the_middle_of_a_wake_up_is_not_done() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    world.says(&end("b1")).says(&[
        init(),
        text("now the second part"),
        call("c9", "Bash", r#"{"command":"make test"}"#),
    ]);
    let attempt = world.attempt;
    world.fact(Fact::Lost { attempt, cause: "no answer".into() });
    world.ended(Ending::Lost, "link");
}

#[test]
fn contact_lost_with_a_message_that_waits_is_not_done() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    let prompt = world.run.messages[0].id.0.clone();
    say(&mut world, "also the tests");
    let id = id_of(&world.written[0]);
    world.says(&[life(&id, "queued"), result(&format!(
        r#""subtype":"success","is_error":false,"num_turns":1,"result":"ok","terminal_reason":"completed","user_message_uuids":["{prompt}"]"#)),
        life(&prompt, "completed")]);
    let attempt = world.attempt;
    world.fact(Fact::Lost { attempt, cause: "no answer".into() });
    world.ended(Ending::Lost, "link");
}

#[test]
fn an_answer_of_the_host_from_before_the_end_is_not_the_answer_after_it() {
    let mut world = World::new(Limits { hold: Some(Duration::from_secs(30)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1"));
    let look = call("c2", "Read", r#"{"file_path":"/t/tasks/b1.output"}"#);
    world.says(&[look, returned("c2", "{}"), text("serving"), success(3)]);
    world.obliging = false;
    world.passes(Duration::from_secs(31));
    assert_eq!(world.run.stage, Stage::Checking);
    world.exits(ExitStatus::Signal(9));
    // the host's answer of before the end: under the living agent nothing was beside it
    world.fact(Fact::Surveyed { survey: 1, survivors: vec![], outputs: vec![] });
    // its answer of after the end
    world.fact(Fact::Surveyed {
        survey: 2,
        survivors: vec![Survivor { pid: 7, command: "server".into() }],
        outputs: vec![],
    });
    assert_eq!(world.actions().last(), Some(&(Action::Nudge, "left_running")));
}

#[test]
fn no_attempt_starts_while_a_stop_is_under_way() {
    let mut world = World::new(Limits { hold: None, ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("bye"), success(2)]);
    world.obliging = false;
    world.passes(Duration::from_secs(31 * 60));
    assert_eq!(world.stops, [false, true], "once kindly, once at once, and no more");
    world.exits(ExitStatus::Code(143));
    world.fact(Fact::Surveyed { survey: 1, survivors: vec![], outputs: vec![] });
    let stop_waits = world.run.outstanding().iter().any(|d| matches!(d, Decision::Stop { .. }));
    let starts = world.run.outstanding().iter().any(|d| matches!(d, Decision::Start(_)));
    assert!(
        !(stop_waits && starts),
        "{:?}",
        world
            .run
            .outstanding()
            .iter()
            .map(|d| format!("{d:?}").chars().take(60).collect::<String>())
            .collect::<Vec<_>>()
    );
}

#[test]
fn an_agent_that_cannot_be_killed_is_named_and_ends_the_run() {
    let mut world = World::new(Limits::default());
    world.says(&[init(), text("working")]);
    world.obliging = false;
    world.fact(Fact::Asked { ask: Ask::Stop { now: true } });
    let attempt = world.attempt;
    world.fact(Fact::Stopped { attempt, left: vec![Survivor { pid: 42, command: "claude".into() }] });
    passes_safely(&mut world, Duration::from_secs(7200));
    assert!(world.finished.is_some(), "{:?} {:?}", world.run.stage, world.run.next_deadline());
}

#[test]
fn a_process_that_ends_in_a_named_wait_spends_one_wait() {
    let mut world = World::new(Limits::default());
    let resets = world.now.0 / 1000 + 600;
    let limit = format!(
        r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{resets},"rateLimitType":"five_hour"}}}}"#
    );
    world.says(&[init(), limit]).says(&api_error(429, "rate_limit", "You've hit your limit"));
    world.passes(Duration::from_secs(5));
    world.exits(ExitStatus::Code(1));
    assert_eq!(world.actions(), [(Action::Wait, "limit")]);
}

#[test]
fn a_fresh_start_waits_for_the_end_of_the_first_attempt_and_tells_it() {
    let mut world = World::with(|request| request.resume = Some(SessionId("gone".into())));
    let unknown = result(
        r#""subtype":"error_during_execution","is_error":true,"num_turns":0,"errors":["No conversation found with session ID: gone"]"#,
    );
    world.says(std::slice::from_ref(&unknown));
    world.fact(Fact::Exited {
        attempt: AttemptId(1),
        status: ExitStatus::Code(1),
        spooled: 10,
        stderr: String::new(),
    });
    world.says(&reply()).exits(OK);
    let finished = world.finished.as_ref().unwrap();
    assert_eq!(finished.attempts[0].end, Some(AttemptEnd::Exited(ExitStatus::Code(1))));
}

#[test]
fn a_message_folded_into_a_wake_up_is_answered_by_it() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    world.says(&end("b1")).says(&[init(), call("c9", "Bash", r#"{"command":"make test"}"#)]);
    say(&mut world, "also blue");
    let id = id_of(&world.written[0]);
    world.says(&[life(&id, "queued"), life(&id, "started"), returned("c9", "{}"), text("both"), result(&format!(
        r#""subtype":"success","is_error":false,"num_turns":2,"result":"both","terminal_reason":"completed","user_message_uuids":["{id}"],"origin":{{"kind":"task-notification"}}"#)),
        life(&id, "completed")]);
    world.passes(Duration::from_secs(5));
    assert!(!world.actions().iter().any(|(a, _)| *a == Action::Continue), "{:?}", world.actions());
}

#[test]
fn a_refused_later_start_does_not_confirm_a_stop() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1"));
    world.exits(ExitStatus::Signal(9));
    assert_eq!(world.starts.len(), 2);
    world.obliging = false;
    world.fact(Fact::Asked { ask: Ask::Stop { now: false } });
    world.fact(Fact::Refused {
        attempt: AttemptId(2),
        refusal: Refusal { kind: RefusalKind::NoSpace, detail: "no room".into(), hint: String::new() },
    });
    assert!(world.finished.is_none(), "{:?}", world.finished.as_ref().map(|f| &f.outcome));
}

#[test]
fn a_process_that_lives_is_not_taken_for_the_work_that_is_owed() {
    let mut world = World::new(Limits { hold: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    world.passes(Duration::from_secs(61));
    world.says(&[init(), text("still waiting"), success(1)]);
    // the exit killed b1 without a word; a build daemon of its own lives on.
    world.survivors = vec![Survivor { pid: 99, command: "sccache --server".into() }];
    world.outputs = vec![OutputTail { id: "b1".into(), size: Some(0), tail: String::new() }];
    world.exits(OK);
    let finished = world.finished.as_ref().unwrap();
    assert!(!finished.outcome.message.contains("shell b1 (make) still runs"), "{}", finished.outcome.message);
}

#[test]
fn a_persons_message_does_not_lift_the_budget() {
    let mut world = World::new(Limits { hold: None, max_cost_usd: Some(0.005), ..Limits::default() });
    world.says(&[init(), text("x")]);
    say(&mut world, "and more");
    world.says(&[success(1)]).exits(OK);
    assert_eq!(world.starts.len(), 1, "{:?}", world.actions());
}

#[test]
fn a_timeout_ends_a_wake_up_that_began_while_the_agent_was_leaving() {
    let mut world = World::new(Limits { timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&reply());
    assert!(world.closed);
    world.says(&[init(), text("woke by itself")]);
    passes_safely(&mut world, Duration::from_secs(7200));
    assert!(!world.stops.is_empty(), "{:?}", world.run.stage);
}

#[test]
fn progress_in_a_persons_turn_ends_a_row_of_idle_continues() {
    let mut world = World::new(Limits { continues: 9, ..Limits::default() });
    world.says(&[init(), max_turns(51)]); // continue 1
    world.says(&[init(), max_turns(51)]); // idle 1 -> continue 2
    let tool = |n: u32| call(&format!("c{n}"), "Bash", r#"{"command":"ls"}"#);
    say(&mut world, "try ls");
    world.says(&[init(), tool(1), tool(2), max_turns(51)]); // progress -> continue 3
    world.says(&[init(), max_turns(51)]); // idle
    assert!(!world.actions().contains(&(Action::Finish, "no_progress")), "{:?}", world.actions());
}

#[test]
fn a_session_id_that_is_an_option_reaches_no_argument_list() {
    let mut world = World::new(Limits { hold: None, ..Limits::default() });
    world
        .says(&[init().replace(SESSION, "--dangerously-skip-permissions"), call("c1", "Bash", "{}")])
        .exits(ExitStatus::Signal(9));
    assert!(
        !world.starts[1].args.iter().any(|a| a == "--dangerously-skip-permissions"),
        "{:?}",
        world.starts[1].args
    );
}

#[test]
fn only_output_files_are_read_whatever_path_the_agent_names() {
    let mut world = World::new(Limits::default());
    world.obliging = false;
    world.says(&[
        init(),
        call("c1", "Bash", r#"{"command":"make","run_in_background":true}"#),
        returned("c1", r#"{"stdout":"","backgroundTaskId":"b1","outputFile":"/home/me/.ssh/id_ed25519"}"#),
    ]);
    world.exits(ExitStatus::Signal(9));
    let asked = world.run.outstanding();
    assert!(!format!("{asked:?}").contains("id_ed25519"), "{asked:?}");
}

#[test]
fn a_message_after_the_end_was_decided_is_refused_visibly() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&api_error(401, "authentication_failed", "no"));
    say(&mut world, "late");
    assert!(
        world.remarks.iter().any(|remark| remark.contains("the message was not sent")),
        "{:?}",
        world.remarks
    );
}

#[test]
fn a_deadline_that_was_fed_does_not_stay_due() {
    let mut world =
        World::new(Limits { hold: None, timeout: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("bye"), success(2)]);
    world.now = world.now.after(Duration::from_secs(61));
    let due = world.run.next_deadline();
    world.fact(Fact::DeadlinePassed);
    assert_ne!(world.run.next_deadline(), due);
}

#[test]
fn a_hold_does_not_count_the_time_in_which_nobody_drove() {
    let mut world = World::new(Limits { hold: Some(Duration::from_secs(60)), ..Limits::default() });
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("I will wait"), success(2)]);
    world.passes(Duration::from_secs(20));
    // The laptop slept for hours.
    world.now = world.now.after(Duration::from_secs(4 * 3600));
    world.fact(Fact::PickedUp { undriven_since: At(world.now.0 - 4 * 3_600_000) });
    assert!(world.run.next_deadline().is_some_and(|due| due > world.now));
    world.passes(Duration::from_secs(39));
    assert!(world.written.is_empty(), "one second of the hold is left");
    world.passes(Duration::from_secs(2));
    assert_eq!(world.written.len(), 1);
}

#[test]
fn a_shell_that_a_stop_took_along_was_stopped() {
    let mut world = World::new(Limits::default());
    world.says(&[init()]).says(&launch("c1", "b1")).says(&[text("serving"), success(2)]);
    world.obliging = false;
    world.fact(Fact::Asked { ask: Ask::Stop { now: false } });
    let attempt = world.attempt;
    world.fact(Fact::Stopped { attempt, left: Vec::new() });
    world.exits(ExitStatus::Code(143));
    let finished = world.ended(Ending::Stopped, "user_stop");
    assert_eq!(finished.background[0].state, crate::background::State::Stopped);
}
