//! The body of a streamed answer: events one by one, and then its end, or a cut.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::Sleep;

/// Events still to be sent.
#[derive(Debug)]
pub(super) struct EventBody {
    events: VecDeque<Bytes>,
    /// Time before each event.
    pause: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    ending: Ending,
}

/// What comes after the last event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// The regular end.
    Complete,
    /// The connection breaks.
    Cut,
    /// The connection breaks at the next call: what was sent has had a chance to leave.
    CutNext,
}

impl EventBody {
    pub(super) fn new(events: Vec<Bytes>, pause: Duration, ending: Ending) -> Self {
        Self { events: events.into(), pause, timer: None, ending }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.events.is_empty() {
            return match self.ending {
                Ending::Complete => Poll::Ready(None),
                Ending::Cut => {
                    // The server drops what it has not written yet when a body fails, and writes when a body has
                    // nothing to give at the moment.
                    self.ending = Ending::CutNext;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Ending::CutNext => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
            };
        }
        if !self.pause.is_zero() {
            let pause = self.pause;
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            ready!(timer.as_mut().poll(context));
            self.timer = None;
        }
        Poll::Ready(self.events.pop_front().map(|event| Ok(Frame::data(event))))
    }
}
