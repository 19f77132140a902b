//! The body of a server's response, as it arrives. Its connection is put back behind the last byte.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::Instant;
use tollgate_net::Deadline;
use tollgate_web::StreamError;

use super::pool::UsedConnection;
use super::server::{ServerPermit, UpstreamServer};

/// How long a response may take.
pub(crate) struct ResponseTimes {
    /// The timer of its connection.
    pub(crate) deadline: Deadline,
    /// Between two frames.
    pub(crate) idle: Duration,
    /// When the whole exchange has to be over.
    pub(crate) end: Option<Instant>,
}

/// The body of a response.
pub(crate) struct ReceivedResponse {
    incoming: Incoming,
    connection: Option<UsedConnection>,
    /// Also names the server, whose pool gets the connection back.
    in_flight: ServerPermit,
    idle_timeout: Duration,
    /// For the next frame; the connection keeps it.
    idle: Option<Deadline>,
    /// A frame is waited for, and the deadline is that of this wait.
    is_waiting: bool,
    /// Why there will be no further frame, until what came before it is on its way.
    failure: Option<StreamError>,
    /// When the whole exchange has to be over.
    end: Option<Deadline>,
}

impl ReceivedResponse {
    pub(crate) fn new(
        incoming: Incoming,
        connection: UsedConnection,
        in_flight: ServerPermit,
        times: ResponseTimes,
    ) -> ReceivedResponse {
        let ResponseTimes { deadline, idle: idle_timeout, end } = times;
        let mut body = ReceivedResponse {
            incoming,
            connection: Some(connection),
            in_flight,
            idle_timeout,
            idle: Some(deadline),
            is_waiting: false,
            failure: None,
            end: end.map(Deadline::new),
        };
        if body.incoming.is_end_stream() {
            body.put_back();
        }
        body
    }

    /// The server that answers.
    pub(crate) fn server(&self) -> &Arc<UpstreamServer> {
        self.in_flight.server()
    }

    /// A connection whose server has not taken all of the request cannot serve another one: what is left of the body
    /// would be read as the next request.
    fn put_back(&mut self) {
        if let (Some(UsedConnection::Http1(connection, progress)), Some(deadline)) =
            (self.connection.take(), self.idle.take())
            && progress.is_done()
        {
            self.in_flight.server().pool().put_back(connection, deadline);
        }
    }

    /// What hyper has of the body, or reads now.
    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let ReceivedResponse { incoming, connection, .. } = self;
        let mut poll = |cx: &mut Context<'_>| Pin::new(&mut *incoming).poll_frame(cx);
        match connection {
            Some(UsedConnection::Http1(connection, _)) => connection.poll_driven(cx, poll),
            Some(UsedConnection::Http2(_)) | None => poll(cx),
        }
    }

    fn poll_deadlines(&mut self, cx: &mut Context<'_>) -> Poll<&'static str> {
        if let Some(end) = &mut self.end
            && end.poll(cx).is_ready()
        {
            return Poll::Ready("the exchange took too long");
        }
        let Some(idle) = &mut self.idle else { return Poll::Pending }; // there is nothing to wait for
        if !self.is_waiting {
            self.is_waiting = true;
            idle.set(Instant::now() + self.idle_timeout);
        }
        idle.poll(cx).map(|()| "the server has paused for too long")
    }
}

impl Body for ReceivedResponse {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match self.poll_incoming(cx) {
            // hyper closes the caller's connection at once, with what it has not written: head and frames of this poll.
            Poll::Ready(Some(Err(failure))) if !self.is_waiting => {
                (self.failure, self.is_waiting) = (Some(failure.into()), true);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(frame) => {
                self.is_waiting = false;
                if frame.is_none() || self.incoming.is_end_stream() {
                    self.put_back();
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let late = ready!(self.poll_deadlines(cx));
                self.connection = None;
                Poll::Ready(Some(Err(late.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
