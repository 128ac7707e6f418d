//! Walks through a script: which step answers this request. Pure, one cursor a conversation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::answer::{Answer, Block, Message};
use super::gate::Gate;
use super::request::ModelRequest;
use super::route::Route;
use super::script::{Choice, Script, Step};

/// An answer and when to give it.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) answer: Answer,
    pub(super) delay: Duration,
    pub(super) pause: Duration,
    pub(super) gate: Option<Gate>,
    /// Set when no step was left.
    pub(super) fault: Option<String>,
}

#[derive(Debug)]
pub(super) struct Play {
    script: Script,
    cursors: BTreeMap<Route, Cursor>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    step: usize,
    /// Requests the current step has answered.
    answered: u32,
}

impl Play {
    pub(super) fn new(script: Script) -> Self {
        Self { script, cursors: BTreeMap::new() }
    }

    pub(super) fn next(&mut self, request: &ModelRequest) -> Planned {
        let steps: &[Step] = match &request.route {
            Route::Main => &self.script.main,
            Route::Sub(key) => self.script.sub.get(key).map_or(&[], Vec::as_slice),
            Route::Side => &self.script.side,
        };
        let cursor = self.cursors.entry(request.route.clone()).or_default();
        while let Some(step) = steps.get(cursor.step) {
            let (answer, stay) = match step.choose(request) {
                Choice::Answer(answer) => (answer, false),
                Choice::AnswerAndStay(answer) => (answer, true),
                Choice::Pass => {
                    *cursor = Cursor { step: cursor.step + 1, answered: 0 };
                    continue;
                }
            };
            cursor.answered += 1;
            if !stay && step.times.is_some_and(|times| cursor.answered >= times) {
                *cursor = Cursor { step: cursor.step + 1, answered: 0 };
            }
            return Planned {
                answer,
                delay: step.delay(),
                pause: step.pause(),
                gate: step.gate.clone(),
                fault: None,
            };
        }
        let unscripted = steps.is_empty() && request.route == Route::Side;
        let answer = match &self.script.exhausted {
            Some(answer) if !unscripted => answer.clone(),
            Some(_) | None => text("nothing scripted"),
        };
        let fault =
            (!unscripted).then(|| format!("request {} ({}) found no step", request.number, request.route));
        Planned { answer, delay: Duration::ZERO, pause: Duration::ZERO, gate: None, fault }
    }
}

fn text(text: &str) -> Answer {
    Answer::Message(Message { blocks: vec![Block::Text(text.to_owned())], ..Message::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ask(play: &mut Play, body: &Value) -> String {
        let request = ModelRequest::new(0, Duration::ZERO, BTreeMap::new(), body);
        let planned = play.next(&request);
        if let Some(fault) = planned.fault {
            return fault;
        }
        let Answer::Message(Message { blocks, .. }) = &planned.answer else {
            return planned.answer.summary();
        };
        match blocks.as_slice() {
            [Block::Text(text)] => text.clone(),
            [Block::Tool { name, input }] => format!("{name} {input}"),
            _ => format!("{blocks:?}"),
        }
    }

    fn main(content: &str) -> Value {
        json!({"tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": content}]})
    }

    #[test]
    fn conversations_do_not_disturb_each_other() {
        let mut play =
            Play::new(Script::new().then(Step::text("m1")).then(Step::text("m2")).sub("a", Step::text("a1")));
        assert_eq!(ask(&mut play, &main("x")), "m1");
        assert_eq!(ask(&mut play, &main("[[sub:a]]")), "a1");
        assert_eq!(ask(&mut play, &main("x")), "m2");
        assert_eq!(ask(&mut play, &json!({"messages": []})), "nothing scripted");
    }

    #[test]
    fn a_request_without_a_step_is_a_fault() {
        let mut play = Play::new(Script::new());
        assert_eq!(ask(&mut play, &main("x")), "request 0 (main) found no step");
    }

    #[test]
    fn a_step_answers_as_often_as_it_says() {
        let mut play = Play::new(
            Script::new()
                .then(Step::http(529, "overloaded_error", "no").times(2))
                .then(Step::text("t").forever()),
        );
        let answers: Vec<String> = (0..4).map(|_| ask(&mut play, &main("x"))).collect();
        assert_eq!(answers, ["http 529 overloaded_error", "http 529 overloaded_error", "t", "t"]);
    }

    #[test]
    fn polling_ends_with_the_notification() {
        let mut play = Play::new(Script::new().then(Step::until_notified("true")).then(Step::text("done")));
        assert!(ask(&mut play, &main("x")).starts_with("Bash "));
        assert!(ask(&mut play, &main("x")).starts_with("Bash "));
        assert_eq!(ask(&mut play, &main("<task-notification>…")), "done");
    }

    #[test]
    fn a_script_can_be_written_as_json() {
        let script: Script = serde_json::from_value(json!({
            "main": [
                {"answer": {"message": {"blocks": [{"text": "hi"}]}}, "delay_ms": 5},
                {"read_background_output": {}},
                {"until_notified": {"command": "sleep 1"}},
                {"answer": {"http": {"status": 500, "type": "api_error", "message": "no"}}, "times": null},
            ],
            "sub": {"a": [{"answer": "hang"}]},
        }))
        .unwrap();
        let mut play = Play::new(script);
        assert_eq!(ask(&mut play, &main("x")), "hi");
        assert_eq!(
            ask(&mut play, &main("to: /t/tasks/b.output.")),
            r#"Read {"file_path":"/t/tasks/b.output"}"#
        );
    }
}
