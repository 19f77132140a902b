//! A server decides, through its client.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue};
use tollgate_client::{CallError, Client, HttpDecision, RemoteDecision, RemoteReservation};
use tollgate_core::DetachedRequest;

use crate::answer::LimitedResponse;
use crate::backend::{Asked, LimitBackend, LimitQuestion, Limited};
use crate::hold::{AmountsFuture, HeldAmount, HeldCharges};
use crate::unclaimed::decided;

/// The client of a server.
pub(crate) struct RemoteBackend {
    pub(crate) client: Client,
}

impl LimitBackend for RemoteBackend {
    fn ask(&self, question: &LimitQuestion<'_>) -> Asked {
        let (client, reserves) = (self.client.clone(), question.reserves);
        let owned = DetachedRequest::of(&question.request);
        let decision = Box::pin(async move {
            let lists = owned.lists();
            let request = owned.request(&lists);
            let answered = match reserves {
                false => client.check_answer(&request).await.map(|(decision, answer)| (decision, answer, None)),
                true => client.reserve_answer(&request).await,
            };
            match answered {
                Ok((decision, answer, reservation)) => limited(&client, decision, answer, reservation),
                Err(rejected) => Limited {
                    mode: Cow::Borrowed("malformed"),
                    response: LimitedResponse::problem(
                        400,
                        &rejected.code,
                        "The request is not valid",
                        &rejected.detail,
                    ),
                    ..Limited::default()
                },
            }
        });
        match reserves {
            true => decided(decision, question.reserved()),
            false => Asked::Later(decision),
        }
    }
}

fn limited(
    client: &Client,
    decision: RemoteDecision,
    answer: Option<HttpDecision>,
    reservation: Option<RemoteReservation>,
) -> Limited {
    let response = match answer {
        Some(answer) => passed_on(answer),
        None => rendered(client, &decision),
    };
    let held = reservation.map(|reservation| {
        let held: Box<dyn HeldCharges> = Box::new(RemoteHold { client: client.clone(), reservation });
        held
    });
    Limited {
        allowed: decision.allowed,
        mode: decision.mode,
        rule: decision.rule.map(String::into_boxed_str),
        delay: Duration::from(decision.delay),
        response,
        held,
    }
}

/// As the server wrote it.
fn passed_on(answer: HttpDecision) -> LimitedResponse {
    let HttpDecision { status, mut fields, content_type, body } = answer;
    if let Some(content_type) = content_type {
        fields.push((CONTENT_TYPE, content_type));
        fields.push((CACHE_CONTROL, HeaderValue::from_static("no-store")));
    }
    LimitedResponse { status, fields, body }
}

/// A decision that came without an HTTP answer: of the fail policy, or over gRPC.
fn rendered(client: &Client, decision: &RemoteDecision) -> LimitedResponse {
    let mut fields = Vec::new();
    let mut push = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            fields.push((name, value));
        }
    };
    let is_limited = decision.error_code.is_none();
    let wait = decision.retry_after.map(|wait| wait.secs_ceil().max(1));
    if let (Some(limit), Some(remaining), true) = (decision.limit, decision.remaining, is_limited) {
        push(HeaderName::from_static("x-ratelimit-limit"), limit.to_string());
        push(HeaderName::from_static("x-ratelimit-remaining"), remaining.to_string());
        if let Some(reset) = decision.reset_at {
            push(HeaderName::from_static("x-ratelimit-reset"), reset.to_string());
        }
        let name = decision.rule.as_deref().unwrap_or("default").replace(['"', '\\'], "");
        let window = client.fallback_limit().filter(|_| decision.mode == "fallback").map(|limit| limit.window());
        if let Some(window) = window.filter(|window| window.nanos() % 1_000_000_000 == 0) {
            push(HeaderName::from_static("ratelimit-policy"), format!("\"{name}\";q={limit};w={}", window.secs_ceil()));
        }
        let after = wait.map_or_else(String::new, |wait| format!(";t={wait}"));
        push(HeaderName::from_static("ratelimit"), format!("\"{name}\";r={remaining}{after}"));
    }
    if decision.allowed {
        return LimitedResponse { status: 200, fields, ..LimitedResponse::default() };
    }
    if let Some(wait) = wait {
        push(RETRY_AFTER, wait.to_string());
    }
    push(CONTENT_TYPE, "application/problem+json".to_owned());
    push(CACHE_CONTROL, "no-store".to_owned());
    let (status, body) = match &decision.error_code {
        Some(code) => (503, unavailable(code)),
        None => (429, exceeded(decision)),
    };
    LimitedResponse { status, fields, body: body.into() }
}

/// Refused, and not for a limit of the caller.
fn unavailable(code: &str) -> String {
    let detail = match code {
        "limiter_unavailable" => "The rate limiter cannot be reached.",
        _ => "Limits cannot be checked at the moment, and requests are refused meanwhile.",
    };
    format!(
        "{{\"type\":\"about:blank\",\"title\":\"Service unavailable\",\"status\":503,\"detail\":\"{detail}\",\
         \"error\":\"{code}\",\"error_code\":\"{code}\"}}"
    )
}

/// Refused by a limit, as the server writes it.
fn exceeded(decision: &RemoteDecision) -> String {
    let rule = decision.rule.as_deref().unwrap_or("default").replace(['"', '\\'], "");
    let number = |value: Option<u64>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
    let wait = decision.retry_after;
    let (message, never) = match (decision.never, wait) {
        (true, _) => ("This request can never pass: its cost exceeds the limit.".to_owned(), ",\"never\":true"),
        (_, Some(wait)) => (format!("Too many requests. Retry after {}s.", wait.secs_ceil()), ""),
        _ => ("Too many requests.".to_owned(), ""),
    };
    let (detail, code) = match decision.never {
        true => (format!("The request costs more than the rule '{rule}' ever allows at once."), "cost_too_high"),
        false => (format!("The limit of the rule '{rule}' is reached."), "rate_limited"),
    };
    format!(
        "{{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Quota exceeded\",\
         \"status\":429,\"detail\":\"{detail}\",\"violated-policies\":[\"{rule}\"],\"error\":\"rate_limited\",\
         \"message\":\"{message}\",\"error_code\":\"{code}\",\"allowed\":false,\"limit\":{},\"remaining\":{},\
         \"reset_at\":{},\"retry_after\":{},\"retry_after_ms\":{}{never},\"rule\":\"{rule}\"}}",
        number(decision.limit),
        number(decision.remaining),
        number(decision.reset_at),
        number(wait.map(|wait| wait.secs_ceil())),
        number(wait.map(|wait| wait.millis_ceil())),
    )
}

/// Attempts to settle.
const SETTLES_MAX: u32 = 3;

/// A reservation of a server.
struct RemoteHold {
    client: Client,
    reservation: RemoteReservation,
}

impl HeldCharges for RemoteHold {
    fn slot_ttl(&self) -> Option<Duration> {
        self.reservation.ttl().map(Duration::from)
    }

    fn renew(self: Box<Self>) -> AmountsFuture<(Box<dyn HeldCharges>, bool)> {
        Box::pin(async move {
            // Without an answer nothing is known: the next renewal will tell.
            let is_held = self.client.renew(&self.reservation).await.unwrap_or(true);
            let held: Box<dyn HeldCharges> = self;
            (held, is_held)
        })
    }

    fn settle(self: Box<Self>, amounts: Vec<HeldAmount>) -> AmountsFuture<()> {
        Box::pin(async move {
            let amounts: Vec<(&str, u64)> = amounts.iter().map(|(meter, amount)| (meter.as_str(), *amount)).collect();
            for attempt in 1..=SETTLES_MAX {
                match self.client.settle(&self.reservation, &amounts).await {
                    Err(CallError::Outage(_)) if attempt < SETTLES_MAX => {
                        tokio::time::sleep(Duration::from_millis(200) * attempt).await;
                    }
                    _ => return, // settled, or it never can be: the estimates stay
                }
            }
        })
    }
}
