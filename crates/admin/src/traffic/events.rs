//! `GET /v1/events`: what happens, while it happens, as server-sent events.
//!
//! Each stream has a task that filters what all streams receive. A slow reader misses events and delays nothing but its own
//! stream.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, header};
use serde_json::json;
use tokio::time::timeout;
use tollgate_control::record::Role;
use tollgate_service::mask::Mask;
use tollgate_service::traffic::{FoundDecision, LiveEvent, LiveEvents, LiveTick, TrafficCounts};
use tollgate_web::{EventSender, ResponseBody, ServerSentEvent, WebResponse};

use super::shown::{self, ClientNames};
use crate::call::{AdminRequest, may_see, namespaces};
use crate::problem::AdminProblem;
use crate::state::AdminState;
use crate::stream_limiter::StreamPermit;

/// The path.
pub(crate) const PATH: &str = "/v1/events";
/// Refusals that one stream is sent of each second.
const DENIED_PER_SECOND: u32 = 50;
/// How long a reader may take to make room for an event.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// The problem of a caller that is not streamed to.
pub(super) fn only_streamed() -> AdminProblem {
    AdminProblem::new(503, "no_analytics", "Analytics are off on this server: there are no events.")
}

/// What one stream is sent.
pub(crate) struct EventSource {
    state: Arc<AdminState>,
    /// The namespaces that the caller may see and asked for; `None` for all.
    namespaces: Option<Vec<String>>,
    rule: Option<String>,
    client: Option<String>,
    masks_keys: bool,
    /// The token without its scheme; it may be revoked while the stream lasts.
    token: Vec<u8>,
    denied_in_second: u32,
}

impl EventSource {
    /// The stream of an admitted request.
    pub(crate) fn new(state: Arc<AdminState>, request: &AdminRequest, token: &[u8]) -> EventSource {
        let seen = if may_see(request) { namespaces(request) } else { Some(Vec::new()) };
        let is_operator = request.identity.as_ref().is_some_and(|identity| identity.role >= Role::Operator);
        EventSource {
            state,
            namespaces: seen,
            rule: request.query.owned("rule"),
            client: request.query.owned("client"),
            masks_keys: !is_operator,
            token: token.to_vec(),
            denied_in_second: 0,
        }
    }

    /// The response. The events are sent by a task, which ends with the connection and then returns the permit.
    pub(crate) fn respond(self, permit: StreamPermit) -> Result<WebResponse, AdminProblem> {
        let events = self.state.traffic.as_ref().map(|traffic| traffic.listen()).ok_or_else(only_streamed)?;
        let (sender, body) = ResponseBody::events();
        let mut response = WebResponse::new(body);
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        tokio::spawn(async move {
            self.run(events, sender).await;
            drop(permit);
        });
        Ok(response)
    }

    async fn run(mut self, mut events: LiveEvents, sender: EventSender) {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = sender.closed() => return,
            };
            let Some(event) = event else { return };
            if matches!(event, LiveEvent::Tick(_)) && self.state.tokens.find(&self.token, self.state.now()).is_err() {
                return; // it was revoked, or has expired
            }
            let Some(event) = self.event(&event) else { continue };
            if timeout(SEND_TIMEOUT, sender.send(&event)).await != Ok(true) {
                return;
            }
        }
    }

    fn event(&mut self, event: &LiveEvent) -> Option<ServerSentEvent> {
        match event {
            LiveEvent::Tick(tick) => {
                self.denied_in_second = 0;
                Some(self.tick(tick))
            }
            LiveEvent::Refused(decision) => {
                let is_wanted = self.wants(decision) && self.denied_in_second < DENIED_PER_SECOND;
                is_wanted.then(|| {
                    self.denied_in_second += 1;
                    self.denied(decision)
                })
            }
        }
    }

    fn may_see(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == namespace))
    }

    fn tick(&self, tick: &LiveTick) -> ServerSentEvent {
        let seen = || tick.namespaces.iter().filter(|own| self.may_see(&own.namespace));
        let counts: TrafficCounts = seen().map(|own| own.counts).sum();
        let mut data = shown::counts(&counts);
        if let Some(members) = data.as_object_mut() {
            members.insert("at".to_owned(), json!(shown::time(tick.at)));
            members.insert("limited_now".to_owned(), json!(seen().map(|own| own.limited_now).sum::<usize>()));
        }
        ServerSentEvent { event: Some("tick".to_owned()), ..ServerSentEvent::new(data.to_string()) }
    }

    fn names(&self) -> ClientNames<'_> {
        let mask = if self.masks_keys { Mask::Under(&self.state.secret) } else { Mask::Plain };
        ClientNames::new(&self.state, mask)
    }

    fn wants(&self, decision: &FoundDecision) -> bool {
        self.may_see(&decision.namespace)
            && self
                .rule
                .as_ref()
                .is_none_or(|rule| decision.rulings.iter().any(|own| own.is_refused && own.rule == *rule))
            && self
                .client
                .as_ref()
                .is_none_or(|client| decision.client == *client || self.names().shown(&decision.client) == *client)
    }

    fn denied(&self, decision: &FoundDecision) -> ServerSentEvent {
        let data = shown::decision(decision, &self.names());
        ServerSentEvent { event: Some("denied".to_owned()), id: Some(decision.id.to_string()), data: data.to_string() }
    }
}
