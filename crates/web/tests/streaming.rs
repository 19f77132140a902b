//! Bodies that stream both ways, and server-sent events, over real sockets: HTTP/1.1 and HTTP/2.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tollgate_core::{ManualClock, Time};
use tollgate_net::{
    Address, ByteBudget, ConnectionHandler, ConnectionLimiter, Drain, Listener, ListenerContext, NetLimits, accept,
};
use tollgate_web::{EventSender, HttpError, ResponseBody, ServerSentEvent, Web, WebApp, WebRequest, WebResponse};

const PATIENCE: Duration = Duration::from_secs(30);

/// `/echo` sends each frame of the request back; `/events` hands its sender to the test; other paths panic.
struct EchoApp {
    /// How many bytes were sent back.
    echoed: Arc<watch::Sender<usize>>,
    events: mpsc::UnboundedSender<EventSender>,
}

impl WebApp for EchoApp {
    async fn respond(&self, request: WebRequest) -> WebResponse {
        match request.parts.uri.path() {
            "/echo" => {
                let echoed = self.echoed.clone();
                let body = request.body.map_frame(move |frame| {
                    echoed.send_modify(|echoed| *echoed += frame.data_ref().map_or(0, Bytes::len));
                    frame
                });
                WebResponse::new(ResponseBody::stream(body))
            }
            "/events" => {
                let (sender, body) = ResponseBody::events();
                self.events.send(sender).unwrap();
                Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body).unwrap()
            }
            "/length" => match request.body.collect(1000).await {
                Ok(body) => WebResponse::new(ResponseBody::full(body.len().to_string())),
                Err(error) => self.reject(error),
            },
            path => panic!("{path}, as requested"),
        }
    }

    fn reject(&self, error: HttpError) -> WebResponse {
        let status = match error {
            HttpError::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            HttpError::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            HttpError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        Response::builder().status(status).body(ResponseBody::full(error.to_string())).unwrap()
    }
}

/// A server with that app.
struct House {
    at: SocketAddr,
    drain: Drain,
    /// How many bytes were sent back.
    echoed: Arc<watch::Sender<usize>>,
    events: mpsc::UnboundedReceiver<EventSender>,
}

impl House {
    fn open(limits: NetLimits) -> House {
        let drain = Drain::default();
        let (sender, events) = mpsc::unbounded_channel();
        let echoed = Arc::new(watch::Sender::new(0));
        let app = EchoApp { echoed: echoed.clone(), events: sender };
        let clock = Arc::new(ManualClock::at(Time::from_secs(1_800_000_000)));
        let budget = ByteBudget::new(limits.max_in_transit);
        let context = ListenerContext { limits, drain: drain.clone(), clock, budget };
        let listener = Listener::bind(&Address::loopback(0), None).unwrap();
        let Ok(Address::Tcp(at)) = listener.address() else { panic!("a TCP address") };
        let handler = ConnectionHandler::new(Web::new(app), Arc::default(), None, context);
        tokio::spawn(accept(listener, ConnectionLimiter::new(9, 9), drain.clone(), handler));
        House { at, drain, echoed, events }
    }

    /// Sends a request over HTTP/1.1 or HTTP/2.
    async fn send<B>(&self, version: u8, request: Request<B>) -> Response<Incoming>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
    {
        let stream = TokioIo::new(TcpStream::connect(self.at).await.unwrap());
        let response = if version == 1 {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            timeout(PATIENCE, sender.send_request(request)).await
        } else {
            let client = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream);
            let (mut sender, connection) = client.await.unwrap();
            tokio::spawn(connection);
            timeout(PATIENCE, sender.send_request(request)).await
        };
        response.unwrap().unwrap()
    }

    /// Streams to `/echo` what is sent to the channel.
    async fn echo(&self, version: u8) -> (mpsc::UnboundedSender<Bytes>, Incoming) {
        let (pieces, body) = mpsc::unbounded_channel();
        let request = Request::post(format!("http://{}/echo", self.at)).header(header::HOST, self.at.to_string());
        let response = self.send(version, request.body(Pieces(body)).unwrap()).await;
        (pieces, response.into_body())
    }
}

/// A body whose frames the test sends.
struct Pieces(mpsc::UnboundedReceiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// The next data; HTTP/2 may end with a frame without any.
async fn next(body: &mut Incoming) -> Option<Bytes> {
    loop {
        let frame = timeout(PATIENCE, body.frame()).await.expect("a frame in time")?;
        let data = frame.unwrap().into_data().unwrap();
        if !data.is_empty() {
            return Some(data);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_streams_both_ways_with_back_pressure() {
    for version in [1, 2] {
        let house = House::open(NetLimits::default());
        let (pieces, mut response) = house.echo(version).await;
        // Each piece comes back before the next one is sent.
        for number in 0..10 {
            let piece = Bytes::from(format!("piece {number}"));
            pieces.send(piece.clone()).unwrap();
            assert_eq!(next(&mut response).await, Some(piece), "HTTP/{version}");
        }
        // A client that does not read is not read from: of 64 MiB only what sockets and buffers hold is taken.
        let before = *house.echoed.borrow();
        let piece = Bytes::from(vec![b'x'; 64 << 10]);
        for _ in 0..1024 {
            pieces.send(piece.clone()).unwrap();
        }
        drop(pieces);
        let mut progress = house.echoed.subscribe();
        progress.wait_for(|echoed| *echoed > before).await.unwrap();
        while timeout(Duration::from_millis(500), progress.changed()).await.is_ok() {}
        let echoed = *house.echoed.borrow();
        assert!(echoed < 32 << 20, "HTTP/{version}: {echoed} bytes are on their way to a client that does not read");
        let mut received = 0;
        while let Some(piece) = next(&mut response).await {
            received += piece.len();
        }
        assert_eq!(received, 64 << 20, "HTTP/{version}: all of it arrives");
        house.drain.begin();
        drop(response);
        assert_eq!(house.drain.ended(PATIENCE).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_arrive_at_once_and_a_drain_ends_them_properly() {
    for version in [1, 2] {
        // Silence is no reason to end a stream of events, however short the deadlines of clients are.
        let short = Duration::from_millis(200);
        let limits =
            NetLimits { body_timeout: short, write_timeout: short, idle_timeout: short, ..NetLimits::default() };
        let mut house = House::open(limits);
        let request = Request::get(format!("http://{}/events", house.at)).header(header::HOST, house.at.to_string());
        let response = house.send(version, request.body(Empty::<Bytes>::new()).unwrap()).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        let mut body = response.into_body();
        let events = house.events.recv().await.unwrap();
        for number in 0..3 {
            let event = ServerSentEvent { id: Some(number.to_string()), ..ServerSentEvent::new("hello") };
            assert!(events.send(&event).await);
            let text = format!("id: {number}\ndata: hello\n\n");
            assert_eq!(next(&mut body).await.as_deref(), Some(text.as_bytes()), "HTTP/{version}");
            assert!(timeout(2 * short, body.frame()).await.is_err(), "HTTP/{version}: nothing but silence");
        }
        house.drain.announce();
        assert!(events.send(&ServerSentEvent::new("announced")).await, "an announced drain changes nothing");
        assert!(next(&mut body).await.is_some());
        assert!(events.send(&ServerSentEvent::new("last")).await);
        house.drain.begin();
        assert_eq!(next(&mut body).await.as_deref(), Some(&b"data: last\n\n"[..]), "what was sent before arrives");
        assert_eq!(next(&mut body).await, None, "HTTP/{version}: a proper end, not a broken connection");
        timeout(PATIENCE, events.closed()).await.expect("the sender hears of it");
        assert!(!events.send(&ServerSentEvent::new("late")).await);
        assert_eq!(house.drain.ended(PATIENCE).await, 0, "HTTP/{version}: no connection is cut");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_waits_for_the_end_of_a_stream() {
    for version in [1, 2] {
        let house = House::open(NetLimits::default());
        let (pieces, mut response) = house.echo(version).await;
        pieces.send(Bytes::from_static(b"before")).unwrap();
        assert_eq!(next(&mut response).await.as_deref(), Some(&b"before"[..]));
        house.drain.begin();
        assert_eq!(house.drain.ended(Duration::from_millis(200)).await, 1, "HTTP/{version}");
        pieces.send(Bytes::from_static(b"after")).unwrap();
        assert_eq!(next(&mut response).await.as_deref(), Some(&b"after"[..]));
        drop(pieces);
        assert_eq!(next(&mut response).await, None);
        assert_eq!(house.drain.ended(PATIENCE).await, 0, "HTTP/{version}");
    }
}

/// What a connection answers to these bytes, until it closes.
async fn exchange(at: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("closed in time"); // or reset
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_body_that_is_malformed_or_late_breaks_the_response() {
    let house = House::open(NetLimits { body_timeout: Duration::from_millis(200), ..NetLimits::default() });
    let head = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    for rest in ["3 \r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n", ""] {
        let answer = exchange(house.at, &format!("{head}{rest}")).await;
        assert!(!answer.ends_with("0\r\n\r\n"), "the response looks complete: {answer}");
    }
    let good = exchange(house.at, &format!("{}0\r\n\r\n", head.replace("Host", "Connection: close\r\nHost"))).await;
    assert!(good.starts_with("HTTP/1.1 200") && good.ends_with("3\r\nabc\r\n0\r\n\r\n"), "{good}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collected_bodies_have_a_cap_and_a_panic_is_a_500() {
    let house = House::open(NetLimits::default());
    let post = |path: &str, fields: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n\r\n{body}")
    };
    for (path, fields, body, status) in [
        ("/length", "Content-Length: 4", "abcd", "200"),
        ("/length", "Content-Length: 1001", "", "413"),
        ("/length", "Transfer-Encoding: chunked", "3e9\r\n", "413"),
        ("/length", "Transfer-Encoding: chunked\r\nContent-Length: 4", "0\r\n\r\n", "400"),
        ("/length", "Content-Length: 4\r\nTransfer-Encoding: chunked", "0\r\n\r\n", "400"),
        ("/<x>", "Content-Length: 0", "", "400"),
        ("/panic", "Content-Length: 0", "", "500"),
    ] {
        let answer = exchange(house.at, &post(path, fields, body)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path} {fields}: {answer}");
    }
}
