//! The layer over a service that answers from a list, on Tokio's paused clock.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;
use tollgate_core::{Clock, Span, Time};
use tollgate_retry::{Courtesy, IDEMPOTENCY_KEY, PaceError, Pacer, RetryError, RetryLayer, RetryPolicy};
use tower_layer::Layer;
use tower_service::Service;

/// Tokio's clock, which stands still in these tests but for waits.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Time {
        Time::from_secs(1_800_000_000).after(Span::from(self.0.elapsed()))
    }
}

fn clock() -> Arc<PausedClock> {
    Arc::new(PausedClock(Instant::now()))
}

/// The idempotency key of a call, and when it came.
type AskedCall = (Option<String>, Instant);

/// Answers in order; keeps what it was asked.
#[derive(Clone, Default)]
struct Listed {
    answers: Arc<Mutex<VecDeque<Response<Full<Bytes>>>>>,
    asked: Arc<Mutex<Vec<AskedCall>>>,
}

impl Listed {
    fn of(answers: impl IntoIterator<Item = Response<Full<Bytes>>>) -> Listed {
        Listed { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Listed::default() }
    }

    fn keys(&self) -> Vec<Option<String>> {
        self.asked.lock().unwrap().iter().map(|(key, _)| key.clone()).collect()
    }
}

impl Service<Request<Full<Bytes>>> for Listed {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let key = request.headers().get(IDEMPOTENCY_KEY).map(|key| key.to_str().unwrap().to_owned());
        self.asked.lock().unwrap().push((key, Instant::now()));
        std::future::ready(Ok(self.answers.lock().unwrap().pop_front().unwrap_or_default()))
    }
}

fn answer(status: u16, fields: &[(&str, &str)], body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(Full::from(body)).unwrap()
}

fn request(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("/orders").body(Full::from("{}")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn waits_as_long_as_it_was_told() {
    let api = Listed::of([answer(429, &[("Retry-After", "2")], ""), answer(200, &[], "done")]);
    let mut retrying = RetryLayer::new(RetryPolicy::default()).with_clock(clock()).layer(api.clone());
    let start = Instant::now();
    let response = retrying.call(request(Method::POST)).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "done");
    let waited = start.elapsed().as_millis();
    assert!((2_000..=2_201).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_searched_is_still_whole() {
    let throttled = "{\"__type\":\"ThrottlingException\"}";
    let api = Listed::of([answer(400, &[], throttled), answer(400, &[], "{\"__type\":\"ValidationException\"}")]);
    let mut retrying = RetryLayer::new(RetryPolicy::default()).with_clock(clock()).layer(api.clone());
    let response = retrying.call(request(Method::GET)).await.unwrap();
    assert_eq!(api.keys().len(), 2);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "{\"__type\":\"ValidationException\"}");
}

#[tokio::test(start_paused = true)]
async fn one_idempotency_key_for_all_attempts() {
    let api = Listed::of([answer(503, &[], ""), answer(503, &[], ""), answer(201, &[], "")]);
    let layer = RetryLayer::new(RetryPolicy::default()).with_clock(clock()).with_idempotency_keys();
    let response = layer.layer(api.clone()).call(request(Method::POST)).await.unwrap();
    assert_eq!(response.status(), 201);
    let keys = api.keys();
    assert_eq!(keys.len(), 3);
    assert!(keys[0].as_ref().is_some_and(|key| key.len() == 32) && keys.windows(2).all(|pair| pair[0] == pair[1]));
    let other = layer.layer(api.clone()).call(request(Method::POST)).await.unwrap();
    assert_eq!(other.status(), 200);
    assert_ne!(api.keys()[3], keys[0], "another call, another key");
}

#[tokio::test(start_paused = true)]
async fn a_post_that_may_have_been_processed_is_not_repeated() {
    let api = Listed::of([answer(503, &[], ""), answer(200, &[], "")]);
    let mut retrying = RetryLayer::new(RetryPolicy::default()).with_clock(clock()).layer(api.clone());
    assert_eq!(retrying.call(request(Method::POST)).await.unwrap().status(), 503);
    assert_eq!(api.keys().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_refuses_everything_is_mostly_left_alone() {
    let api = Listed::of((0..2_000).map(|_| answer(503, &[], "")));
    let policy = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let mut retrying = RetryLayer::new(policy).with_clock(clock()).with_throttle().layer(api.clone());
    let mut refused = 0;
    for _ in 0..1_000 {
        refused += usize::from(matches!(retrying.call(request(Method::GET)).await, Err(RetryError::Throttled)));
    }
    assert_eq!(refused + api.keys().len(), 1_000);
    assert!(refused > 800, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn courtesy_spreads_the_last_calls() {
    let fields = [("X-RateLimit-Limit", "100"), ("X-RateLimit-Remaining", "4"), ("X-RateLimit-Reset", "10")];
    let api = Listed::of((0..4).map(|_| answer(200, &fields, "")));
    let layer = RetryLayer::new(RetryPolicy::default()).with_clock(clock()).with_courtesy(Courtesy::default());
    let mut polite = layer.layer(api.clone());
    for _ in 0..3 {
        assert_eq!(polite.call(request(Method::GET)).await.unwrap().status(), 200);
    }
    let asked = api.asked.lock().unwrap();
    let gaps: Vec<u64> = asked.windows(2).map(|pair| (pair[1].1 - pair[0].1).as_secs()).collect();
    assert_eq!(gaps, [2, 2], "ten seconds for the four calls that are left");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_is_over() {
    let api = Listed::of([answer(429, &[("Retry-After", "30")], ""), answer(200, &[], "")]);
    let mut retrying = RetryLayer::new(RetryPolicy::default()).with_clock(clock()).layer(api.clone());
    let call = retrying.call(request(Method::GET));
    assert!(tokio::time::timeout(std::time::Duration::from_secs(5), call).await.is_err());
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(api.keys().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn acquisitions_are_served_in_their_order() {
    let limit = tollgate_core::Limit::per_second(10).unwrap();
    let pacer = Arc::new(Pacer::with_clock(limit, clock()).unwrap());
    assert_eq!(pacer.acquire(10, Span::ZERO).await, Ok(Span::ZERO));
    assert_eq!(pacer.acquire(1, Span::from_millis(50)).await, Err(PaceError::TooLate));
    assert_eq!(pacer.acquire(11, Span::from_secs(60)).await, Err(PaceError::Never));
    let order = Arc::new(Mutex::new(Vec::new()));
    let calls = [5, 1, 1].map(|units| {
        let (pacer, order) = (pacer.clone(), order.clone());
        tokio::spawn(async move {
            let waited = pacer.acquire(units, Span::from_secs(60)).await.unwrap();
            order.lock().unwrap().push((units, waited.millis_ceil()));
        })
    });
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [(5, 500), (1, 600), (1, 700)]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_takes_nothing() {
    let limit = tollgate_core::Limit::per_second(1).unwrap();
    let pacer = Pacer::with_clock(limit, clock()).unwrap();
    assert!(pacer.acquire(1, Span::ZERO).await.is_ok());
    for _ in 0..10 {
        let waiting = pacer.acquire(1, Span::from_secs(9));
        assert!(tokio::time::timeout(std::time::Duration::from_millis(10), waiting).await.is_err());
    }
    assert_eq!(pacer.acquire(1, Span::from_secs(9)).await.map(Span::millis_ceil), Ok(900));
}
