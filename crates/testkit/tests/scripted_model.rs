//! The scripted model as a plain HTTP client sees it: what the real agents in the other tests do not ask for.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails as a test does")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bursar_testkit::{Gate, ModelServer, Script, Step};
use serde_json::{Value, json};

const BOUND: Duration = Duration::from_secs(20);

/// Sends one request on a connection of its own.
fn send(model: &ModelServer, line: &str, body: &str) -> TcpStream {
    let address = model.base_url().replace("http://", "");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nx-api-key: dummy\r\nconnection: close\r\ncontent-length: {length}"
    );
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    stream
}

/// Reads an answer to its end: all of it as text, and whether the body was complete.
fn read(mut stream: TcpStream) -> (String, bool) {
    let mut bytes = Vec::new();
    let closed = match stream.read_to_end(&mut bytes) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
        Err(error) => panic!("{error}"),
    };
    let text = String::from_utf8(bytes).unwrap();
    let chunked = text.contains("transfer-encoding: chunked");
    let complete = closed && (!chunked || text.ends_with("0\r\n\r\n"));
    (text, complete)
}

fn ask(model: &ModelServer, stream: bool) -> TcpStream {
    let body = json!({"model": "m", "stream": stream, "tools": [{"name": "Bash"}], "system": "be brief",
                      "messages": [{"role": "user", "content": "go"}]});
    send(model, "POST /v1/messages?beta=true", &body.to_string())
}

#[test]
fn an_answer_comes_as_a_stream_or_whole() {
    let step = || Step::tool("Bash", json!({"command": "ls"})).saying("look").costing(7, 8);
    let model = ModelServer::start(Script::new().then(step()).then(step())).unwrap();

    let (streamed, complete) = read(ask(&model, true));
    assert!(complete && streamed.contains("content-type: text/event-stream"), "{streamed}");
    let events: Vec<Value> = streamed
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let names: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    assert_eq!(names, [&["message_start"][..], &block, &block, &["message_delta", "message_stop"]].concat());
    assert_eq!(events[7]["delta"]["stop_reason"], "tool_use");

    let (whole, _) = read(ask(&model, false));
    let body: Value = serde_json::from_str(whole.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["content"][1]["input"]["command"], "ls");
    assert_eq!(body["usage"]["output_tokens"], 8);
    assert_ne!(body["content"][1]["id"], events[4]["content_block"]["id"]);

    let request = &model.main_requests()[0];
    assert_eq!((request.system.as_str(), request.headers["x-api-key"].as_str()), ("be brief", "[redacted]"));
}

#[test]
fn faults_look_as_the_api_s_do() {
    let script =
        Script::new().then(Step::http(529, "overloaded_error", "Overloaded").header("retry-after", "3"));
    let model = ModelServer::start(script.then(Step::cut("half", 2))).unwrap();

    let (fault, _) = read(ask(&model, true));
    assert!(fault.starts_with("HTTP/1.1 529") && fault.contains("retry-after: 3"), "{fault}");
    assert!(fault.contains(r#""error":{"message":"Overloaded","type":"overloaded_error"}"#), "{fault}");
    let (cut, complete) = read(ask(&model, true));
    assert!(!complete && cut.contains("content_block_start") && !cut.contains("message_stop"), "{cut}");
}

#[test]
fn what_is_not_a_message_is_answered_harmlessly() {
    let model = ModelServer::start(Script::new()).unwrap();
    for (line, status) in [
        ("HEAD /", "200"),
        ("GET /anything", "200"),
        ("POST /v1/messages/count_tokens", "200"),
        ("POST /api/event", "404"),
        ("POST /v1/messages", "400"),
    ] {
        let (answer, _) = read(send(&model, line, ""));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
    }
    assert!(model.requests().is_empty());
    assert_eq!(model.faults().len(), 1);
}

#[test]
fn an_unscripted_request_is_answered_and_told() {
    let model = ModelServer::start(Script::new().then(Step::text("only"))).unwrap();
    read(ask(&model, true));
    let (answer, _) = read(ask(&model, true));
    assert!(answer.contains("nothing scripted"));
    assert_eq!(model.faults(), ["request 1 (main) found no step"]);
}

#[test]
fn an_answer_waits_for_its_gate() {
    let gate = Gate::new();
    let model = ModelServer::start(Script::new().then(Step::text("late").gated(&gate))).unwrap();
    let waiting = ask(&model, true);
    model.wait_for_requests(1, BOUND).unwrap();
    assert_eq!(model.exchanges()[0].answered, "");
    gate.open();
    assert!(read(waiting).0.contains("late"));
    assert_eq!(model.exchanges()[0].answered, "text");
}

#[test]
fn the_end_of_the_server_ends_a_request_that_hangs() {
    let model = ModelServer::start(Script::new().then(Step::hang())).unwrap();
    let waiting = ask(&model, true);
    model.wait_for_requests(1, BOUND).unwrap();
    drop(model);
    assert_eq!(read(waiting).0, "");
}
