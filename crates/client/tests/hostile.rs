//! Servers that misbehave: what a client does is a decision of its fail policy, in time, and at most one request.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tollgate_client::{Attribute, Client, ClientConfig, Limit, OnError, OutageKind, Request, Span};

/// What a server does with a connection once it has read a request.
#[derive(Clone, Debug)]
enum Manner {
    Answers(&'static str),
    /// Answers, then closes the connection.
    AnswersAndCloses(&'static str),
    Closes,
    Silent,
    /// A head that promises more than comes.
    HalfBody,
    /// A body without an end.
    Endless,
}

const ALLOWED: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 94\r\n\r\n\
    {\"allowed\":true,\"limit\":9,\"remaining\":8,\"reset_at\":1,\"rule\":\"r\",\"mode\":\"store\",\"generation\":1}";

/// A server, and how many requests have arrived.
async fn server(manner: Manner) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, manner.clone(), count.clone()));
        }
    });
    (url, asked)
}

async fn serve(mut stream: TcpStream, manner: Manner, count: Arc<AtomicUsize>) {
    while read_request(&mut stream).await.is_some() {
        count.fetch_add(1, Ordering::SeqCst);
        match &manner {
            Manner::Answers(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
            Manner::AnswersAndCloses(answer) => return stream.write_all(answer.as_bytes()).await.unwrap(),
            Manner::Closes => return,
            Manner::Silent => std::future::pending().await,
            Manner::HalfBody => {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 94\r\n\r\n{\"allowed\":true,";
                return stream.write_all(head.as_bytes()).await.unwrap();
            }
            Manner::Endless => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").await;
                let chunk = vec![b' '; 64 << 10];
                while stream.write_all(&chunk).await.is_ok() {}
                return;
            }
        }
    }
}

/// One request with its body; `None` if the connection is over.
async fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(length) if length > 0 => read.extend_from_slice(&part[..length]),
            _ => return None,
        }
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                assert!(head.contains("request-timeout: "), "{head}");
                return Some(());
            }
        }
    }
}

fn request() -> Request<'static> {
    Request::new().with(Attribute::UserId, "42").with(Attribute::Endpoint, "GET /")
}

/// A patient client, unless the server is to be given up on.
fn config(url: &str) -> ClientConfig {
    ClientConfig::new(url).timeout(Span::from_secs(20))
}

#[tokio::test]
async fn connections_are_kept_and_a_closed_one_is_replaced() {
    let (url, asked) = server(Manner::Answers(ALLOWED)).await;
    let client = Client::new(config(&url).on_error(OnError::Closed)).unwrap();
    for _ in 0..10 {
        let decision = client.check(&request()).await.unwrap();
        assert_eq!((decision.allowed, decision.remaining, decision.mode.as_ref()), (true, Some(8), "store"));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 10);
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 16\r\n\r\n{\"allowed\":true}";
    let (url, asked) = server(Manner::AnswersAndCloses(closing)).await;
    let client = Client::new(config(&url).on_error(OnError::Closed)).unwrap();
    for _ in 0..5 {
        assert!(client.check(&request()).await.unwrap().allowed);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn what_may_have_arrived_is_never_sent_again() {
    for manner in [Manner::Closes, Manner::HalfBody] {
        let (url, asked) = server(manner.clone()).await;
        let client = Client::new(config(&url).on_error(OnError::Open)).unwrap();
        let decision = client.check(&request()).await.unwrap();
        assert_eq!((decision.allowed, decision.mode.as_ref()), (true, "open"), "{manner:?}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{manner:?}");
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up_on_in_time() {
    let (url, asked) = server(Manner::Silent).await;
    let client = Client::new(ClientConfig::new(&url).timeout(Span::from_millis(50)).on_error(OnError::Closed)).unwrap();
    let decision = tokio::time::timeout(Duration::from_secs(20), client.check(&request())).await.unwrap().unwrap();
    assert_eq!((decision.allowed, decision.mode.as_ref()), (false, "closed"));
    assert_eq!(decision.error_code.as_deref(), Some("limiter_unavailable"));
    assert!(asked.load(Ordering::SeqCst) <= 1);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let (url, _) = server(Manner::Endless).await;
    let client = Client::new(config(&url).on_error(OnError::Open)).unwrap();
    assert_eq!(client.check(&request()).await.unwrap().mode, "open");
}

#[tokio::test]
async fn answers_that_are_no_decisions_are_none() {
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"allowed\":1}",
        "HTTP/1.1 500 Oops\r\nContent-Length: 16\r\n\r\n{\"allowed\":true}",
        "HTTP/1.1 307 Elsewhere\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 Nothing\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        "garbage\r\n\r\n",
    ];
    for answer in answers {
        let (url, _) = server(Manner::AnswersAndCloses(answer)).await;
        let client = Client::new(config(&url).on_error(OnError::Closed)).unwrap();
        let decision = client.check(&request()).await.unwrap();
        assert_eq!((decision.allowed, decision.mode.as_ref()), (false, "closed"), "{answer}");
    }
}

#[tokio::test]
async fn a_failing_server_is_left_alone_and_the_local_limit_holds() {
    let (url, asked) = server(Manner::AnswersAndCloses("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")).await;
    let outages = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = outages.clone();
    let clock = tollgate_client::ManualClock::at(tollgate_client::Time::from_secs(1_800_000_000));
    let config = config(&url)
        .fallback(Limit::token_bucket(3, Span::from_secs(3600)).unwrap())
        .clock(Arc::new(clock.clone()))
        .on_outage(move |outage| seen.lock().unwrap().push(outage.kind));
    let client = Client::new(config).unwrap();
    let mut allowed = 0;
    for _ in 0..8 {
        allowed += usize::from(client.check(&request()).await.unwrap().allowed);
    }
    assert_eq!((allowed, asked.load(Ordering::SeqCst)), (3, 5), "three by the local limit; five calls");
    assert_eq!(
        outages.lock().unwrap()[..6],
        [[OutageKind::Status(500); 5].as_slice(), &[OutageKind::CircuitOpen]].concat()
    );
    clock.advance(Span::SECOND);
    let _ = client.check(&request()).await.unwrap();
    let _ = client.check(&request()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 6, "one probe, and the pause doubles");
    clock.advance(Span::from_millis(1_900));
    let _ = client.check(&request()).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_dropped_call_does_not_block_the_next_probe() {
    let (url, asked) = server(Manner::Silent).await;
    let client = Client::new(config(&url)).unwrap();
    for calls in 1..=6 {
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.check(&request()).await }
        });
        while asked.load(Ordering::SeqCst) < calls {
            tokio::task::yield_now().await;
        }
        call.abort();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 6, "hanging up is no failure of the server");
}

#[tokio::test]
async fn no_connection_is_no_decision() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::new(config(&url)).unwrap();
    assert_eq!(client.check(&request()).await.unwrap().mode, "open");
    let grpc = Client::new(config(&url.replace("http", "grpc")).on_error(OnError::Closed)).unwrap();
    assert_eq!(grpc.check(&request()).await.unwrap().mode, "closed");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let refused = |config: ClientConfig| Client::new(config).unwrap_err().to_string();
    assert_eq!(
        refused(ClientConfig::new("http://h").on_error(OnError::Local)),
        "`local` needs a fallback limit: set `fallback`"
    );
    assert!(refused(ClientConfig::new("h:8080")).contains("http://"));
    assert!(refused(ClientConfig::new("http://h").token("a b\n")).starts_with("the token has other characters"));
    let debug = format!("{:?}", ClientConfig::new("http://h").token("secret-token"));
    assert!(!debug.contains("secret-token"), "{debug}");
}
