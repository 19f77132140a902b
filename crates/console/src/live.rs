//! Live numbers: parts of a page, rendered again every second and sent as server-sent events.
//!
//! The markup is what the page itself shows, so that there is one renderer; the script only puts it in place. Each tick
//! calls the API with the session's token: the stream ends with the token.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, header};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tollgate_web::{EventSender, ResponseBody, ServerSentEvent, WebRequest, WebResponse};

use crate::page_call::PageCall;
use crate::pages;
use crate::response::{self, PageResponse};
use crate::state::ConsoleState;

/// The path of the stream.
pub(crate) const PATH: &str = "/console/live";
/// Between two renderings of the overview; other pages move more slowly.
const INTERVAL: Duration = Duration::from_secs(1);
const SLOW_INTERVAL: Duration = Duration::from_secs(3);
/// How long one rendering, and one slow browser, may take.
const TICK_TIMEOUT: Duration = Duration::from_secs(10);

/// Begins a stream; the session is checked with the first rendering.
pub(crate) fn respond(shared: Arc<ConsoleState>, request: WebRequest) -> WebResponse {
    if tollgate_admin::check_origin(&request.head()).is_err() {
        return PageResponse::bad_form().response();
    }
    let slot = shared.live.take();
    let Some(slot) = slot else { return PageResponse::not_found().status(503).response() };
    let (sender, body) = ResponseBody::events();
    let mut response = WebResponse::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response::add_fields(&mut response);
    tokio::spawn(async move {
        stream(&shared, &request, &sender).await;
        drop(slot);
    });
    response
}

async fn stream(shared: &ConsoleState, request: &WebRequest, sender: &EventSender) {
    let is_overview = request.parts.uri.query().is_some_and(|query| query.contains("page=overview"));
    let mut ticks = interval(if is_overview { INTERVAL } else { SLOW_INTERVAL });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = sender.closed() => return,
        }
        let call = PageCall::new(shared, &request.peer, &request.parts, &[]);
        let Ok(parts) = timeout(TICK_TIMEOUT, pages::live(&call)).await else { continue };
        let Some(parts) = parts else {
            // The browser would connect again for ever: tell it not to.
            let over = ServerSentEvent { event: Some("over".to_owned()), ..ServerSentEvent::new("signed out") };
            let _ = timeout(TICK_TIMEOUT, sender.send(&over)).await;
            return;
        };
        let parts = parts.into_iter().map(|(id, markup)| (id.to_owned(), markup.into_string().into()));
        let event = ServerSentEvent::new(serde_json::Value::Object(parts.collect()).to_string());
        if !timeout(TICK_TIMEOUT, sender.send(&event)).await.unwrap_or(false) {
            return;
        }
    }
}
