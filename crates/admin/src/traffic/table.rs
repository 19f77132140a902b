//! The rows of the table about traffic.

use tollgate_control::record::Role;

use super::{counters, decisions, events, overview, preview, series};
use crate::access::{AdminAccess, NamespaceScope};
use crate::endpoint::{AdminEndpoint, HttpMethod, RequestBody, ResponseContent, Tag};
use crate::parameter::{LIMIT, Parameter, ParameterKind, parameter, text};

const CLIENT: Parameter = text("client", "Of this client: its key, or the digest that is shown of it.");
const RULE: Parameter = text("rule", "Of this rule.");
const WINDOW: Parameter =
    parameter("window", ParameterKind::OneOf(overview::WINDOWS), "What totals cover; default 5m.");
const RANGE: Parameter = parameter(
    "range",
    ParameterKind::OneOf(&["1h", "1d", "30d"]),
    "Seconds of an hour, minutes of a day, or hours of 30 days; default 1h.",
);
const BY: Parameter =
    parameter("by", ParameterKind::OneOf(overview::RANKINGS), "What clients are ranked by; default denied.");
const ALLOWED: Parameter =
    parameter("allowed", ParameterKind::Flag, "Only those that were allowed, or only the others.");
const BEFORE: Parameter = text("before", "Those before the one with this id.");

/// The rows.
pub(crate) const ENDPOINTS: &[AdminEndpoint] = &[
    AdminEndpoint {
        detail: "Of all nodes of the fleet that answer within half a second. Rankings cover five to ten minutes. Of a node \
                 that does not answer, the counts that it reported last are in the totals.",
        scope: NamespaceScope::Namespaces,
        query: &[WINDOW],
        responses: &[(200, ResponseContent::Json("TrafficOverview"))],
        ..AdminEndpoint::get(
            "/v1/traffic/overview",
            "getTraffic",
            Tag::Traffic,
            "What is allowed and refused now",
            |call| Box::pin(overview::overview(call)),
        )
    },
    AdminEndpoint {
        detail: "The sum over `nodes`. The last step is the present one. How far back seconds reach depends on `analytics_memory`; a client has \
                 a series from its eighth request on, if it is among the heaviest of a rule.",
        scope: NamespaceScope::Namespaces,
        query: &[RULE, CLIENT, RANGE],
        responses: &[(200, ResponseContent::Json("TrafficSeries"))],
        ..AdminEndpoint::get("/v1/traffic/series", "getTrafficSeries", Tag::Traffic, "Counts over time", |call| {
            Box::pin(series::series(call))
        })
    },
    AdminEndpoint {
        detail: "By Space-Saving, summed over `nodes`, errors too: a count is too high by at most its `error`, and a client \
                 that is missing has at most `missing_at_most` at one rule.",
        scope: NamespaceScope::Namespaces,
        query: &[BY, RULE, LIMIT],
        responses: &[(200, ResponseContent::Json("TopClients"))],
        ..AdminEndpoint::get(
            "/v1/traffic/top",
            "getTopClients",
            Tag::Traffic,
            "Who is refused and who consumes most",
            |call| Box::pin(overview::top(call)),
        )
    },
    AdminEndpoint {
        detail: "The latest first, of all `nodes`: refusals, and a part of what was allowed. In a flood not all are kept.",
        scope: NamespaceScope::Namespaces,
        query: &[CLIENT, RULE, ALLOWED, BEFORE, LIMIT],
        responses: &[(200, ResponseContent::Json("DecisionList"))],
        ..AdminEndpoint::get("/v1/decisions", "listDecisions", Tag::Traffic, "Recent decisions", |call| {
            Box::pin(decisions::list(call))
        })
    },
    AdminEndpoint {
        detail: "By the id that a response, the decision log or a trace has. Decisions that are no longer kept are found in \
                 the decision log alone.",
        scope: NamespaceScope::Namespaces,
        responses: &[(200, ResponseContent::Json("RecentDecision"))],
        ..AdminEndpoint::get(
            "/v1/decisions/{decision_id}",
            "getDecision",
            Tag::Traffic,
            "Why a request was decided so",
            |call| Box::pin(decisions::get(call)),
        )
    },
    AdminEndpoint {
        detail: "Server-sent events: a `tick` each second, and `denied` for refusals, at most 50 a second, of all nodes of \
                 the fleet. Other nodes are asked once a second. A reader that is too slow misses events. At most 32 \
                 streams with one token (429 `too_many_streams_of_token`), and 100 in all (503 `too_many_streams`).",
        scope: NamespaceScope::Namespaces,
        query: &[RULE, CLIENT],
        responses: &[(200, ResponseContent::Text("text/event-stream"))],
        ..AdminEndpoint::get(events::PATH, "streamEvents", Tag::Traffic, "What happens, while it happens", |_| {
            Box::pin(async { Err(events::only_streamed()) })
        })
    },
    AdminEndpoint {
        detail: "Simulates the limit over the recorded requests of the clients that are known, twice: as if the requests of \
                 a step came evenly, and as if all came at its start. `refused_min` and `refused_max` are the two results.",
        access: AdminAccess::Needs(Role::Viewer),
        scope: NamespaceScope::Nothing,
        body: RequestBody::Json(&["PreviewInput"]),
        responses: &[(200, ResponseContent::Json("Preview"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/preview",
            "previewLimit",
            Tag::Traffic,
            "What another limit would have refused",
            |call| Box::pin(async move { preview::preview(call) }),
        )
    },
    AdminEndpoint {
        detail: "Forgets what the client has used of one rule, or of all that apply to it. Written to the audit.",
        scope: NamespaceScope::Nothing,
        body: RequestBody::Json(&["ResetInput"]),
        responses: &[(200, ResponseContent::Json("Reset"))],
        ..AdminEndpoint::change(
            HttpMethod::Post,
            "/v1/counters/reset",
            "resetCounters",
            Tag::Traffic,
            "Reset what a client has used",
            |call| Box::pin(counters::reset(call)),
        )
    },
];
