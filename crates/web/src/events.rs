//! Server-sent events, as browsers read them: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

/// Events that wait for a slow client; then the sender waits too.
const QUEUE_EVENTS: usize = 16;
/// A comment is sent after so much silence, so that proxies keep the connection and a client that is gone is noticed.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b":\n\n";

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSentEvent {
    /// Its type; browsers call an event without one `message`.
    pub event: Option<String>,
    /// Its id: a browser that connects again sends the last one as `Last-Event-ID`.
    pub id: Option<String>,
    /// Its text, of any number of lines.
    pub data: String,
}

impl ServerSentEvent {
    /// An event of this text.
    pub fn new(data: impl Into<String>) -> ServerSentEvent {
        ServerSentEvent { event: None, id: None, data: data.into() }
    }

    /// As sent. Line ends would start another field: those of the data start a line of data, others become spaces.
    fn text(&self) -> String {
        let is_line_end = |c: char| matches!(c, '\r' | '\n' | '\0');
        let mut text = String::new();
        for (name, value) in [("event", &self.event), ("id", &self.id)] {
            if let Some(value) = value {
                text += &format!("{name}: {}\n", value.replace(is_line_end, " "));
            }
        }
        for line in self.data.replace("\r\n", "\n").split(['\r', '\n']) {
            text += &format!("data: {line}\n");
        }
        text + "\n"
    }
}

/// Sends events to one client.
#[derive(Clone, Debug)]
pub struct EventSender(mpsc::Sender<Bytes>);

impl EventSender {
    /// Sends an event; waits while the client is slow. False once the client is gone or the server drains.
    pub async fn send(&self, event: &ServerSentEvent) -> bool {
        self.0.send(event.text().into()).await.is_ok()
    }

    /// Ready once the client is gone or the server drains.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// The receiving end: the body of a response.
pub(crate) struct EventStream {
    events: mpsc::Receiver<Bytes>,
    /// Ready when the server drains; set when the response is sent.
    pub(crate) drain_begun: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    silence: Pin<Box<Sleep>>,
}

impl EventStream {
    pub(crate) fn new() -> (EventSender, EventStream) {
        let (sender, events) = mpsc::channel(QUEUE_EVENTS);
        (EventSender(sender), EventStream { events, drain_begun: None, silence: Box::pin(sleep(COMMENT_INTERVAL)) })
    }

    /// The next event. A drain ends the stream behind the events that were sent before.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.drain_begun.as_mut().is_some_and(|begun| begun.as_mut().poll(cx).is_ready()) {
            self.drain_begun = None;
            self.events.close();
        }
        let next = match self.events.poll_recv(cx) {
            Poll::Ready(event) => event,
            Poll::Pending => {
                ready!(self.silence.as_mut().poll(cx));
                Some(Bytes::from_static(COMMENT))
            }
        };
        self.silence.as_mut().reset(Instant::now() + COMMENT_INTERVAL);
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn an_event_cannot_smuggle_another_field() {
        let event = ServerSentEvent {
            event: Some("decision\nid: 9".to_owned()),
            id: Some("1\r2".to_owned()),
            data: "a\nb\r\nc\rd".to_owned(),
        };
        let text = "event: decision id: 9\nid: 1 2\ndata: a\ndata: b\ndata: c\ndata: d\n\n";
        assert_eq!(event.text(), text);
        assert_eq!(ServerSentEvent::new("").text(), "data: \n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_filled_with_comments() {
        let (sender, mut stream) = EventStream::new();
        let since = Instant::now();
        for count in 1..=3 {
            assert_eq!(poll_fn(|cx| stream.poll_next(cx)).await.as_deref(), Some(COMMENT));
            assert_eq!(since.elapsed(), COMMENT_INTERVAL * count);
        }
        assert!(sender.send(&ServerSentEvent::new("x")).await);
        assert_eq!(poll_fn(|cx| stream.poll_next(cx)).await.as_deref(), Some(&b"data: x\n\n"[..]));
        drop(sender);
        assert_eq!(poll_fn(|cx| stream.poll_next(cx)).await, None);
    }
}
