//! The real agent CLI, at every pinned version, against the scripted model: what the rest of the tests stand on.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as a test does")]

use std::time::Duration;

use bursar_testkit::{
    AgentHome, AgentVersion, DirectAgent, Gate, ModelServer, Script, Step, on_every_version,
};

/// Generous, since the agent starts slowly on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

/// Characters that quoting, JSON, a shell or a terminal could spoil.
const AWKWARD: &str = "it's $HOME `id` \"x\" ; rm -rf ~ !!\nsecond line\ttab \\ back\\nslash\r\n🦀 e\u{301} \u{202e}bidi \u{2028} %s";

fn held(home: &AgentHome, version: AgentVersion) -> DirectAgent {
    let mut command = home.agent(version);
    command.args(["--input-format", "stream-json", "--max-turns", "20"]);
    DirectAgent::start(command).unwrap()
}

#[test]
fn a_text_run_ends_with_a_success_that_costs_something() {
    on_every_version(|version| {
        let model = ModelServer::start(Script::new().then(Step::text("hello there"))).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap();
        let mut agent = DirectAgent::start(home.agent(version)).unwrap();
        agent.write(b"say hello").unwrap();
        agent.close_input();

        let status = agent.wait_for_exit(BOUND).unwrap();

        assert_eq!(status.code(), Some(0));
        let result = agent.events("result").pop().unwrap();
        assert_eq!((&result["subtype"], &result["result"]), (&"success".into(), &"hello there".into()));
        assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0, "{result}");
        let init = agent.events("system").into_iter().find(|event| event["subtype"] == "init").unwrap();
        assert_eq!(init["claude_code_version"], version.number());
        model.assert_no_faults();
    });
}

#[test]
fn the_model_receives_the_bytes_that_were_sent() {
    on_every_version(|version| {
        let model =
            ModelServer::start(Script::new().then(Step::text("one")).then(Step::text("two"))).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap();
        let mut agent = held(&home, version);

        agent.send(AWKWARD, None).unwrap();
        agent.wait_for("result", 1, BOUND).unwrap();
        let long = AWKWARD.repeat((200 << 10) / AWKWARD.len());
        agent.send(&long, None).unwrap();
        agent.wait_for("result", 2, BOUND).unwrap();
        agent.close_input();
        agent.wait_for_exit(BOUND).unwrap();

        let requests = model.main_requests();
        assert_eq!(requests.len(), 2);
        assert!(requests[0].received_exactly(AWKWARD), "{:?}", requests[0].new_texts());
        assert!(requests[1].received_exactly(&long) && !requests[1].received_exactly(AWKWARD));
        assert!(requests[0].tools.iter().any(|tool| tool == "Bash"));
        assert_eq!(requests[0].headers["x-api-key"], "[redacted]");
        model.assert_no_faults();
    });
}

#[test]
fn a_held_agent_is_woken_by_the_end_of_its_background_shell() {
    on_every_version(|version| {
        let script = Script::new()
            .then(
                Step::background_shell("until test -e go; do sleep 0.1; done; echo done > marker")
                    .saying("launching"),
            )
            .then(Step::text("left it running"))
            .then(Step::read_background_output())
            .then(Step::text("it finished"));
        let model = ModelServer::start(script).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap();
        let mut agent = held(&home, version);

        agent.send("build it", Some("6f1c1c0e-0000-4000-8000-000000000001")).unwrap();
        let first = agent.wait_for("result", 1, BOUND).unwrap();
        assert_eq!(first[0]["result"], "left it running");
        assert!(!home.work().join("marker").exists());
        std::fs::write(home.work().join("go"), "").unwrap();
        let results = agent.wait_for("result", 2, BOUND).unwrap();
        agent.close_input();
        let status = agent.wait_for_exit(BOUND).unwrap();

        assert_eq!(status.code(), Some(0));
        assert_eq!(results[1]["result"], "it finished");
        assert_eq!(results[1]["origin"]["kind"], "task-notification");
        assert!(home.work().join("marker").exists());
        let requests = model.main_requests();
        assert!(requests[2].notified());
        let output = requests[2].background_output().unwrap();
        assert!(output.starts_with(&*home.tmp().to_string_lossy()), "{output}");
        model.assert_no_faults();
    });
}

#[test]
fn a_subagent_has_its_own_steps() {
    on_every_version(|version| {
        let gate = Gate::new();
        let script = Script::new()
            .then(Step::background_agent("a"))
            .then(Step::text("waiting for a").forever())
            .sub("a", Step::text("report: 42").gated(&gate));
        let model = ModelServer::start(script).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap();
        let mut agent = held(&home, version);

        agent.send("delegate", None).unwrap();
        agent.wait_for("result", 1, BOUND).unwrap();
        gate.open();
        let results = agent.wait_for("result", 2, BOUND).unwrap();
        agent.close_input();
        agent.wait_for_exit(BOUND).unwrap();

        assert_eq!(results[1]["origin"]["kind"], "task-notification");
        model.wait_until("the report", BOUND, |request| request.new_mentions("report: 42") > 0).unwrap();
        model.assert_no_faults();
    });
}

#[test]
fn faults_of_the_model_reach_the_agent() {
    let cases = [
        (Step::http(401, "authentication_error", "invalid x-api-key").forever(), Some(401)),
        (Step::http(529, "overloaded_error", "Overloaded").forever(), Some(529)),
        (Step::malformed("<html>not the API</html>").forever(), None),
        (Step::usage_limit("five_hour", 4_000_000_000).forever(), Some(429)),
    ];
    for (step, status) in cases {
        let model = ModelServer::start(Script::new().then(step)).unwrap();
        let home =
            AgentHome::new(model.base_url()).unwrap().with_env("CLAUDE_CODE_MAX_RETRIES", "1").unwrap();
        let mut agent = DirectAgent::start(home.agent(AgentVersion::Waits)).unwrap();
        agent.write(b"go").unwrap();
        agent.close_input();

        let exit = agent.wait_for_exit(BOUND).unwrap();

        let result = agent.events("result").pop().unwrap();
        assert_eq!((exit.code(), &result["is_error"]), (Some(1), &true.into()), "{result}");
        assert_eq!(result["api_error_status"].as_u64(), status, "{result}");
    }
}

#[test]
fn a_stream_that_is_cut_is_asked_again_and_answered_by_the_next_step() {
    on_every_version(|version| {
        let script =
            Script::new().then(Step::cut("half of an answer", 2)).then(Step::text("whole answer").forever());
        let model = ModelServer::start(script).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap();
        let mut agent = DirectAgent::start(home.agent(version)).unwrap();
        agent.write(b"go").unwrap();
        agent.close_input();

        agent.wait_for_exit(BOUND).unwrap();

        let result = agent.events("result").pop().unwrap();
        assert_eq!(result["result"], "whole answer", "{result}");
    });
}

#[test]
fn a_usage_limit_is_told_to_a_subscriber_with_its_reset() {
    on_every_version(|version| {
        let script = Script::new().then(Step::usage_limit("five_hour", 4_000_000_000).forever());
        let model = ModelServer::start(script).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap().with_subscription();
        let mut agent = DirectAgent::start(home.agent(version)).unwrap();
        agent.write(b"go").unwrap();
        agent.close_input();

        agent.wait_for_exit(BOUND).unwrap();

        let limit = agent.events("rate_limit_event").pop().unwrap();
        assert_eq!(limit["rate_limit_info"]["status"], "rejected");
        assert_eq!(limit["rate_limit_info"]["resetsAt"], 4_000_000_000_u64);
    });
}

#[test]
fn lifecycle_follows_every_message_and_some_versions_name_it_in_the_result() {
    const IDS: [&str; 2] = ["6f1c1c0e-0000-4000-8000-000000000001", "6f1c1c0e-0000-4000-8000-000000000002"];
    on_every_version(|version| {
        let script = Script::new().then(Step::text("done")).then(Step::shell("true").forever());
        let model = ModelServer::start(script).unwrap();
        let home = AgentHome::new(model.base_url()).unwrap();
        let mut command = home.agent(version);
        command.args(["--input-format", "stream-json", "--max-turns", "1"]);
        let mut agent = DirectAgent::start(command).unwrap();

        agent.send("one", Some(IDS[0])).unwrap();
        agent.wait_for("result", 1, BOUND).unwrap();
        agent.send("two", Some(IDS[1])).unwrap();
        let results = agent.wait_for("result", 2, BOUND).unwrap();
        agent.close_input();
        agent.wait_for_exit(BOUND).unwrap();

        let ids = results.iter().map(|result| result["user_message_uuid"].as_str()).collect::<Vec<_>>();
        assert_eq!(results[1]["subtype"], "error_max_turns");
        assert_eq!(
            ids,
            match version {
                AgentVersion::Floor => [None, None],
                AgentVersion::Kills => [Some(IDS[0]), None],
                AgentVersion::Waits => [Some(IDS[0]), Some(IDS[1])],
            }
        );
        let states: Vec<_> =
            agent.events("command_lifecycle").iter().map(|event| event["state"].clone()).collect();
        assert_eq!(states, ["queued", "started", "completed", "queued", "started", "completed"]);
    });
}
