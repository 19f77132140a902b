//! Slots and estimates end with the request, however it ends.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http::{Request as HttpRequest, Response};
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tollgate_tower::engine::{Engine, Memory};
use tollgate_tower::{Attribute, Request, TollgateLayer, UsedAmounts};
use tower_service::Service;

use crate::support::{engine, request, send, text};

const RULES: &str = "
key_by: ip
rules:
  - { name: tokens, meter: tokens, limit: { amount: 250, window: 1h } }
  - { name: running, limit: { algorithm: concurrency, slots: 1, slot_ttl: 60s } }
";

fn metered(engine: &Arc<Engine<Memory>>) -> TollgateLayer {
    TollgateLayer::embedded(engine.clone()).costs(|_| vec![(Cow::Borrowed("tokens"), 100)])
}

fn left(engine: &Engine<Memory>) -> Option<u64> {
    let costs = [("tokens", 0)];
    engine.decide_now(&Request::new().with(Attribute::Ip, "192.0.2.1").with_costs(&costs).peek()).remaining()
}

/// Waits until that much is left: what is settled, is settled by a task.
async fn until_left(engine: &Engine<Memory>, expected: u64) {
    for _ in 0..10_000 {
        if left(engine) == Some(expected) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{:?} left, not {expected}", left(engine));
}

/// Waits until nothing is held: the task that settles has run.
async fn until_free(app: &Router) -> Response<Body> {
    for _ in 0..10_000 {
        let response = send(app, post_to("/quick")).await;
        if response.status() != 429 {
            return response;
        }
        tokio::task::yield_now().await;
    }
    panic!("the slot stays taken");
}

fn post_to(path: &str) -> HttpRequest<Body> {
    request("POST", path, "192.0.2.1", &[])
}

fn app(limits: TollgateLayer, gate: &Arc<Notify>) -> Router {
    let gate = gate.clone();
    let waits = async move || {
        gate.notified().await;
        "done"
    };
    let quick = async || {
        let mut response = Response::new(Body::from("quick"));
        response.extensions_mut().insert(UsedAmounts::of("tokens", 0));
        response
    };
    let used = async || {
        let mut response = Response::new(Body::from("used"));
        response.extensions_mut().insert(UsedAmounts::of("tokens", 30));
        response
    };
    let routes = Router::new().route("/slow", get(waits.clone()).post(waits)).route("/quick", post(quick));
    routes.route("/used", post(used)).layer(limits)
}

#[tokio::test]
async fn what_was_used_is_settled_when_the_body_has_ended() {
    let engine = Arc::new(engine(RULES));
    let app = app(metered(&engine), &Arc::default());
    let response = send(&app, post_to("/used")).await;
    assert_eq!(left(&engine), Some(150), "estimated");
    assert_eq!(send(&app, post_to("/quick")).await.status(), 429, "the slot is held until the body has ended");
    assert_eq!(text(response).await, "used");
    until_free(&app).await.into_body().collect().await.unwrap();
    until_left(&engine, 250 - 30).await;
}

#[tokio::test]
async fn a_request_that_is_dropped_in_the_handler_returns_its_slot() {
    let engine = Arc::new(engine(RULES));
    let app = app(metered(&engine), &Arc::default());
    let mut service = app.clone();
    let mut call = Box::pin(service.call(post_to("/slow")));
    // Polled until the handler waits, then dropped.
    for _ in 0..50 {
        assert!(futures_poll(&mut call).is_none());
        tokio::task::yield_now().await;
    }
    assert_eq!(left(&engine), Some(150));
    assert_eq!(send(&app, post_to("/quick")).await.status(), 429);
    drop(call);
    until_free(&app).await;
    until_left(&engine, 150).await; // a request that is dropped keeps its estimate
}

#[tokio::test]
async fn a_body_that_is_not_read_to_its_end_returns_its_slot() {
    let engine = Arc::new(engine(RULES));
    let app = app(metered(&engine), &Arc::default());
    let response = send(&app, post_to("/used")).await;
    drop(response);
    until_free(&app).await;
    until_left(&engine, 220).await;
}

#[tokio::test]
async fn a_request_that_is_dropped_at_any_poll_leaves_nothing_behind() {
    for polls in 0..6 {
        let engine = Arc::new(engine(RULES));
        let app = app(metered(&engine), &Arc::default());
        let mut service = app.clone();
        let mut call = Box::pin(service.call(post_to("/slow")));
        for _ in 0..polls {
            assert!(futures_poll(&mut call).is_none());
            tokio::task::yield_now().await;
        }
        drop(call);
        let response = until_free(&app).await;
        assert_eq!(response.status(), 200, "after {polls} polls");
    }
}

#[tokio::test]
async fn a_handler_that_fails_is_settled_as_the_application_says() {
    let engine = Arc::new(engine(RULES));
    let limits = metered(&engine).settle(|_| vec![(Cow::Borrowed("tokens"), 0)]);
    let app = Router::new().route("/fail", post(async || http::StatusCode::INTERNAL_SERVER_ERROR)).layer(limits);
    for _ in 0..5 {
        let response = send(&app, post_to("/fail")).await;
        assert_eq!(response.status(), 500);
        drop(response);
        until_left(&engine, 250).await;
    }
}

/// One poll; the result if it is ready.
fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let waker = std::task::Waker::noop();
    match std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(waker)) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
