//! What the agent's service refuses, and what is done about it: never taken for success.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bursar_testkit::model::{Answer, Choice, HttpFault};
use bursar_testkit::{AgentHome, AgentVersion, Script, Step, on_every_version};
use serde_json::{Value, json};

use crate::rig::{Rig, list, word};

#[test]
fn a_refused_sign_in_or_request_fails_at_once_with_what_to_do_on_the_host() {
    let faults = [
        (401, "authentication_error", "sign_in"),
        (403, "permission_error", "sign_in"),
        (400, "invalid_request_error", "bad_request"),
    ];
    on_every_version(|version| {
        for (status, kind, reason) in faults {
            let rig = Rig::impatient(
                version,
                Script::new().then(Step::http(status, kind, "no, and it stays no").forever()),
            );
            let ran = rig.run(&[], "hello");
            let finished = ran.ended("failed", 1);
            assert_eq!(word(&finished, "reason"), reason, "{status}: {ran}");
            assert_eq!(ran.decisions(), [format!("finish/{reason}")]);
            assert!(word(&finished, "hint").contains(" on local"), "{status}: {}", finished["hint"]);
            assert!(word(&finished, "message").contains("no, and it stays no"), "{}", finished["message"]);
            let reply = &finished["replies"][0];
            assert_eq!(
                (&reply["subtype"], &reply["is_error"]),
                (&json!("success"), &json!(true)),
                "{status}"
            );
        }
    });
}

#[test]
fn a_usage_limit_that_resets_soon_is_waited_for() {
    on_every_version(|version| {
        let script = Script::new()
            .then(Step::dynamic(|_| Choice::Answer(limit("five_hour", Duration::from_secs(3)))))
            .then(Step::text("now I can"));
        let rig = subscribed(version, script);
        let ran = rig.run(&[], "paint the fence");
        let finished = ran.ended("done", 0);
        assert_eq!(ran.decisions(), ["wait/limit", "finish/settled"], "{ran}");
        // Never shorter than ten seconds, whatever the service says.
        let waited = (ran.decided("finish/settled"), ran.decided("wait/limit"));
        let span = millis(&waited.0["at"]) - millis(&waited.1["at"]);
        assert!(span >= 10_000, "waited {span} ms: {ran}");
        assert!(millis(&waited.1["until"]) - millis(&waited.1["at"]) < 60_000, "{}", waited.1);
        assert_eq!(list(&finished, "attempts").len(), 1, "the same process: {ran}");
        assert_eq!(finished["continues"]["used"], 0);
        // Nothing had been said yet, so the prompt itself comes again.
        let last = rig.model.main_requests().pop().unwrap();
        assert!(last.new_mentions("paint the fence") > 0, "{:?}", last.new_texts());
        assert!(ran.events("phase").iter().any(|record| record["phase"] == "limited"), "{ran}");
    });
}

#[test]
fn a_usage_limit_that_resets_in_two_hours_ends_the_run_and_tells_when() {
    on_every_version(|version| {
        let reset = now() + Duration::from_secs(7200);
        let script = Script::new().then(Step::usage_limit("five_hour", reset.as_secs()).forever());
        let rig = subscribed(version, script);
        let ran = rig.run(&[], "paint the fence");
        let finished = ran.ended("limited", 9);
        assert_eq!(ran.decisions(), ["finish/limit"], "{ran}");
        let told = word(&finished, "message").split("it resets at ").nth(1).unwrap_or_default();
        let told = told.split([';', ' ']).next().unwrap_or_default();
        // Some versions tell the service's second, some a minute around it.
        let off = millis(&json!(told)).abs_diff(i64::try_from(reset.as_millis()).unwrap());
        assert!(off <= 60_000, "{off} ms off: {ran}");
    });
}

#[test]
fn a_weekly_limit_is_never_waited_for() {
    on_every_version(|version| {
        let script = Script::new().then(
            Step::dynamic(|_| Choice::AnswerAndStay(limit("seven_day", Duration::from_secs(3)))).forever(),
        );
        let rig = subscribed(version, script);
        let ran = rig.run(&[], "paint the fence");
        ran.ended("limited", 9);
        assert_eq!(ran.decisions(), ["finish/limit"], "{ran}");
    });
}

#[test]
fn an_overloaded_service_is_tried_again_after_a_while() {
    on_every_version(|version| {
        std::thread::scope(|scope| {
            for (status, kind) in [(500, "api_error"), (529, "overloaded_error")] {
                scope.spawn(move || recovers_from(version, status, kind));
            }
        });
    });
}

fn recovers_from(version: AgentVersion, status: u16, kind: &str) {
    // The agent's own tries: one, and one again.
    let script =
        Script::new().then(Step::http(status, kind, "try later").times(2)).then(Step::text("now I can"));
    let rig = Rig::impatient(version, script);
    let ran = rig.run(&[], "paint the fence");
    let finished = ran.ended("done", 0);
    assert_eq!(ran.decisions(), ["backoff/overloaded", "finish/settled"], "{status}: {ran}");
    let backoff = ran.decided("backoff/overloaded");
    assert_eq!(millis(&backoff["until"]) - millis(&backoff["at"]), 20_000, "{backoff}");
    assert_eq!(finished["continues"]["used"], 0, "{ran}");
    assert_eq!(list(&finished, "attempts").len(), 1, "{ran}");
}

/// A rig whose agent believes that it is signed in with a subscription: only then is it told of usage limits.
fn subscribed(version: AgentVersion, script: Script) -> Rig {
    let retries = |home: AgentHome| home.with_env("CLAUDE_CODE_MAX_RETRIES", "1").unwrap();
    Rig::tuned(version, script, |home| retries(home.with_subscription()))
}

/// The refusal of [`Step::usage_limit`], with a reset that counts from the moment it is given.
fn limit(claim: &str, resets_in: Duration) -> Answer {
    let header = |name: &str, value: &str| (format!("anthropic-ratelimit-unified-{name}"), value.to_owned());
    let mut headers = BTreeMap::from([
        header("status", "rejected"),
        header("reset", &(now() + resets_in).as_secs().to_string()),
        header("representative-claim", claim),
        header("overage-status", "rejected"),
    ]);
    headers.insert("x-should-retry".to_owned(), "false".to_owned());
    Answer::Http(HttpFault {
        status: 429,
        kind: "rate_limit_error".to_owned(),
        message: "This request would exceed your account's rate limit.".to_owned(),
        headers,
    })
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Reads a moment of a record.
#[track_caller]
fn millis(stamp: &Value) -> i64 {
    let text = stamp.as_str().unwrap_or_else(|| panic!("no moment: {stamp}"));
    let moment: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    moment.as_millisecond()
}
