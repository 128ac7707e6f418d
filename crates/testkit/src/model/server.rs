//! The server itself: hyper on 127.0.0.1, on a thread of its own, so that plain and async tests use it alike.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::answer::Answer;
use super::body::{Ending, EventBody};
use super::log::{Exchange, Log, TooFew};
use super::play::{Planned, Play};
use super::request::ModelRequest;
use super::route::Route;
use super::script::Script;
use super::sse::{self, AnswerId};

/// Larger than any conversation a test should need.
const BODY_LIMIT: usize = 256 << 20;

type Body = BoxBody<Bytes, io::Error>;

/// The server could not begin.
#[derive(Debug, thiserror::Error)]
#[error("the scripted model could not listen on loopback")]
pub struct ModelError(#[from] io::Error);

/// A running model. Ends, with all its connections, when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    log: Arc<Log>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts answering from `script` on a free port of 127.0.0.1.
    pub fn start(script: Script) -> Result<Self, ModelError> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let log = Arc::new(Log::default());
        let shared = Arc::new(Shared {
            log: Arc::clone(&log),
            play: Mutex::new(Play::new(script)),
            port: address.port(),
            began: Instant::now(),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("scripted-model".to_owned())
            .spawn(move || runtime.block_on(accept(listener, shared, stopped)))?;
        Ok(Self { address, log, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address to give the agent as `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every request so far and what it was answered with, over all conversations.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.log.state().exchanges.clone()
    }

    /// Returns every request so far, over all conversations.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.exchanges().into_iter().map(|exchange| exchange.request).collect()
    }

    /// Returns the requests of the main conversation so far.
    pub fn main_requests(&self) -> Vec<ModelRequest> {
        self.requests().into_iter().filter(|request| request.route == Route::Main).collect()
    }

    /// Blocks until `count` requests of the main conversation have come.
    pub fn wait_for_requests(&self, count: usize, within: Duration) -> Result<Vec<ModelRequest>, TooFew> {
        self.log.wait(&format!("{count} main requests"), within, |state| {
            let main = state.exchanges.iter().map(|exchange| &exchange.request);
            let main: Vec<_> = main.filter(|request| request.route == Route::Main).cloned().collect();
            (main.len() >= count).then_some(main)
        })
    }

    /// Blocks until a request has come for which `wanted` holds.
    pub fn wait_until(
        &self,
        awaited: &str,
        within: Duration,
        wanted: impl Fn(&ModelRequest) -> bool,
    ) -> Result<ModelRequest, TooFew> {
        self.log.wait(awaited, within, |state| {
            state.exchanges.iter().map(|exchange| &exchange.request).find(|request| wanted(request)).cloned()
        })
    }

    /// Returns what went wrong: requests for which the script had no step, and requests that could not be read.
    pub fn faults(&self) -> Vec<String> {
        self.log.state().faults.clone()
    }

    /// Fails the test when there are faults.
    ///
    /// # Panics
    /// When there are faults.
    #[track_caller]
    pub fn assert_no_faults(&self) {
        let faults = self.faults();
        assert!(faults.is_empty(), "the scripted model met what its script does not cover: {faults:#?}");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the server's thread has been printed already; a second one here would abort the test.
            thread.join().ok();
        }
    }
}

#[derive(Debug)]
struct Shared {
    log: Arc<Log>,
    play: Mutex<Play>,
    port: u16,
    began: Instant,
}

/// Serves until the handle is dropped; every connection is a task of this function and ends with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
                Err(error) => shared.log.fault(format!("cannot accept a connection: {error}")),
            },
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| respond(request, Arc::clone(&shared)));
    // An agent that is killed leaves a broken connection behind: nothing to report.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn respond(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    match (&head.method, head.uri.path()) {
        (&Method::POST, "/v1/messages") => {
            let body = match Limited::new(body, BODY_LIMIT).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) => return Ok(shared.unreadable(&error.to_string())),
            };
            match serde_json::from_slice(&body) {
                Ok(body) => Ok(shared.message(&head.headers, &body).await),
                Err(error) => Ok(shared.unreadable(&error.to_string())),
            }
        }
        (&Method::POST, "/v1/messages/count_tokens") => {
            Ok(json_response(StatusCode::OK, &json!({"input_tokens": 100})))
        }
        (&Method::GET | &Method::HEAD, _) => Ok(json_response(StatusCode::OK, &json!({}))),
        _ => {
            let body =
                json!({"type": "error", "error": {"type": "not_found_error", "message": "no such path"}});
            Ok(json_response(StatusCode::NOT_FOUND, &body))
        }
    }
}

impl Shared {
    fn unreadable(&self, error: &str) -> Response<Body> {
        self.log.fault(format!("unreadable request: {error}"));
        let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": error}});
        json_response(StatusCode::BAD_REQUEST, &body)
    }

    async fn message(&self, headers: &HeaderMap, body: &Value) -> Response<Body> {
        let at = self.began.elapsed();
        let request = self.log.asked(|number| ModelRequest::new(number, at, kept(headers), body));
        let planned = self.play.lock().unwrap_or_else(PoisonError::into_inner).next(&request);
        if let Some(fault) = &planned.fault {
            self.log.fault(fault.clone());
        }
        tokio::time::sleep(planned.delay).await;
        if let Some(gate) = &planned.gate {
            gate.passed().await;
        }
        self.log.answered(request.number, planned.answer.summary());
        let id = AnswerId { server: self.port, request: request.number };
        answer(id, &request, planned).await
    }
}

async fn answer(id: AnswerId, request: &ModelRequest, planned: Planned) -> Response<Body> {
    let mut response = match planned.answer {
        Answer::Message(message) if request.stream => {
            stream(sse::events(id, &request.model, &message), planned.pause, Ending::Complete)
        }
        Answer::Message(message) => json_response(StatusCode::OK, &sse::whole(id, &request.model, &message)),
        Answer::Cut { message, events } if request.stream => {
            let mut sent = sse::events(id, &request.model, &message);
            sent.truncate(events);
            stream(sent, planned.pause, Ending::Cut)
        }
        Answer::Cut { message, .. } => {
            let whole = sse::whole(id, &request.model, &message).to_string();
            let half = Bytes::from(whole).slice(..40);
            stream(vec![half], planned.pause, Ending::Cut)
        }
        Answer::Http(fault) => {
            let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = json_response(status, &sse::error(id, &fault));
            for (name, value) in &fault.headers {
                if let (Ok(name), Ok(value)) = (name.parse::<hyper::header::HeaderName>(), value.parse()) {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Answer::Malformed(body) => with_type("text/html", full(body)),
        Answer::Hang => std::future::pending().await,
    };
    if let Ok(value) = id.request().parse() {
        response.headers_mut().insert("request-id", value);
    }
    response
}

fn stream(events: Vec<Bytes>, pause: Duration, ending: Ending) -> Response<Body> {
    with_type("text/event-stream", EventBody::new(events, pause, ending).boxed())
}

fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = with_type("application/json", full(body.to_string()));
    *response.status_mut() = status;
    response
}

fn with_type(kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

fn full(body: String) -> Body {
    Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed()
}

/// Returns the headers with what could be a secret taken out.
fn kept(headers: &HeaderMap) -> std::collections::BTreeMap<String, String> {
    const SECRET: [&str; 4] = ["x-api-key", "authorization", "proxy-authorization", "cookie"];
    let value = |name: &str, value: &hyper::header::HeaderValue| match SECRET.contains(&name) {
        true => "[redacted]".to_owned(),
        false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    headers.iter().map(|(name, text)| (name.as_str().to_owned(), value(name.as_str(), text))).collect()
}
