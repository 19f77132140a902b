//! The data API: a head and a body in, a reply out. Knows JSON and decisions, nothing of sockets.

pub(crate) mod check;
mod envoy;
pub(crate) mod explain;
mod health;
pub(crate) mod hold;
mod join;
mod patience;
pub mod read;
pub(crate) mod refuse;
mod reserve;
mod route;
pub mod seal;
pub mod tokens;

pub use check::IN_BATCHES_MAX;
pub(crate) use check::{Width, lap};
pub(crate) use health::is_serving;
pub use hold::Settlements;
pub(crate) use join::join;
pub use route::{Route, Surface};

use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tollgate_core::Clock;
use tollgate_engine::Engine;

use crate::Reply;
use crate::answer::{AnswerConfig, Asking, Dialect, Media};
use crate::backend::{Backend, Probe};
use crate::envoy_rls::Domains;
use crate::http::{Answer, Fault, Head, Pending};
use crate::net::Peer;
use crate::net::{Drain, NetLimits};
use crate::resp::Access;
use crate::telemetry::{Exposition, Metrics, Scrape};

use self::refuse::refuse;
use self::seal::{Kind, Sealer};
use self::tokens::{Pass, Tokens};

/// What every call is answered with.
pub struct Shared {
    /// Decides.
    pub engine: Arc<Engine<Backend>>,
    /// The clock of the engine's store.
    pub clock: Arc<dyn Clock>,
    /// How answers look.
    pub answer: AnswerConfig,
    /// Caps on bodies.
    pub limits: NetLimits,
    /// Who may ask; anybody if `None`.
    pub tokens: Option<Arc<Tokens>>,
    /// Signs what callers bring back.
    pub sealer: Sealer,
    /// Figures.
    pub metrics: Arc<Metrics>,
    /// Writes them down.
    pub scrape: Scrape,
    /// The end, once it has begun.
    pub drain: Drain,
    /// What was settled.
    pub settlements: Settlements,
    /// Explanations that may be made at the same time.
    pub explains: Semaphore,
    /// Checks of batches that may wait for the store at the same time.
    pub in_batches: Semaphore,
    /// Asks the store how it is.
    pub probe: Probe,
    /// How domains of envoyproxy/ratelimit's files answer.
    pub envoy: Domains,
    /// Who may ask over RESP, and under which names their keys are kept.
    pub resp: Access,
    /// Where the admin API is, for callers that ask here for what is there.
    pub admin_url: OnceLock<String>,
}

/// The API as one listener offers it.
#[derive(Clone)]
pub struct Api {
    surface: Surface,
    shared: Arc<Shared>,
}

/// What is remembered of a head while its body is read.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    route: Route,
    refuse_by_status: Option<bool>,
    media: Media,
    exposition: Exposition,
    /// Which namespaces the caller's token is for.
    pass: Pass,
    /// When the caller stops waiting.
    deadline: Option<Instant>,
}

impl Plan {
    /// Whether the caller's token is for the namespace that is asked about.
    fn may_ask(self, shared: &Shared, asked: &read::Asked<'_>) -> bool {
        self.pass.is_for_all() || shared.may_ask(self.pass, asked.namespace())
    }
}

impl Shared {
    /// Whether a pass is for a namespace.
    pub(crate) fn may_ask(&self, pass: Pass, namespace: &str) -> bool {
        self.tokens.as_ref().is_none_or(|tokens| tokens.may(pass, namespace))
    }
}

/// What the admin API has, under /v1 and without: people ask for it at the wrong port.
const OF_ADMIN: &[&str] =
    &["rules", "overrides", "clients", "violations", "audit", "tokens", "generations", "mode", "status"];

fn is_of_admin(path: &str) -> bool {
    let first = path.strip_prefix("/v1/").or_else(|| path.strip_prefix('/')).and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| OF_ADMIN.contains(&first))
}

impl Api {
    /// The API of a surface.
    pub fn new(surface: Surface, shared: Arc<Shared>) -> Api {
        Api { surface, shared }
    }

    /// What every call is answered with.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// How a call wants its decision answered.
    fn asking(plan: Plan) -> Asking {
        let dialect = if let Route::Check(dialect) = plan.route { dialect } else { Dialect::V1 };
        let Plan { refuse_by_status, media, .. } = plan;
        Asking { dialect, refuse_by_status, media, lot: tollgate_engine::lot() }
    }

    /// What the caller's token opens; `None` if tokens are asked for and the one sent is not known.
    fn admit(&self, head: &Head<'_>) -> Option<Pass> {
        self.shared.tokens.as_ref().map_or(Some(Pass::ALL), |tokens| tokens.admit(head.authorization))
    }

    /// Everything that can be said about a call before its body: the path, the method, the token, the kind of body.
    fn plan(&self, head: &Head<'_>) -> Result<Plan, refuse::Refused> {
        let route = Route::find(self.surface, head.path).ok_or(match self.surface {
            Surface::Metrics => refuse::NO_SUCH_METRICS,
            _ => refuse::NO_SUCH_PATH,
        })?;
        match (route.only_reads(), head.method) {
            (true, "GET" | "HEAD") | (false, "POST") => {}
            (true, _) => return Err(refuse::ONLY_GET),
            (false, _) => return Err(refuse::ONLY_POST),
        }
        let pass = match self.surface == Surface::Data && !route.is_public() {
            true => self.admit(head).ok_or(refuse::NO_TOKEN)?,
            false => Pass::ALL,
        };
        if head.is_from_page() && self.shared.tokens.is_none() && !route.only_reads() {
            return Err(refuse::FROM_A_PAGE);
        }
        if head.content_encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
            return Err(refuse::ENCODED);
        }
        if !route.only_reads() && !is_json(head) {
            return Err(refuse::NOT_JSON);
        }
        let refuse_by_status = match head.query {
            Some("status=429") => Some(true),
            Some("status=200") => Some(false),
            None | Some("") => None,
            Some(_) if route.only_reads() => None,
            Some(_) => return Err(refuse::UNKNOWN_PARAMETER),
        };
        let media = head.accept.map_or(Media::Problem, Media::accepted);
        let exposition = match route {
            Route::Metrics => Exposition::accepted(head.accept),
            _ => Exposition::Text,
        };
        let deadline = patience::deadline(head.request_timeout)?;
        Ok(Plan { route, refuse_by_status, media, exposition, pass, deadline })
    }
}

/// JSON by its name, or by none. What curl says when it is told nothing counts too, unless a browser sent it for a
/// page: a page may send forms anywhere.
fn is_json(head: &Head<'_>) -> bool {
    let Some(value) = head.content_type else { return !head.is_from_page() };
    let media = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media.eq_ignore_ascii_case(b"application/json")
        || (media.to_ascii_lowercase().starts_with(b"application/") && media.to_ascii_lowercase().ends_with(b"+json"))
        || (media.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") && !head.is_from_page())
}

impl Answer for Api {
    type Plan = Plan;

    fn open(&self, _: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(Plan, usize)> {
        match self.plan(head) {
            Ok(plan) => {
                let NetLimits { max_body, max_batch_body, .. } = self.shared.limits;
                let most = match plan.route {
                    Route::Batch => max_batch_body,
                    route if route.only_reads() => 0,
                    _ => max_body,
                };
                Some((plan, most))
            }
            Err(_) if self.surface == Surface::Data && is_of_admin(head.path) && self.admit(head).is_some() => {
                refuse::refuse_elsewhere(head.path, self.shared.admin_url.get().map(String::as_str), reply);
                None
            }
            Err(refused) => {
                refuse(&refused, reply);
                None
            }
        }
    }

    async fn answer(&self, plan: &Plan, body: &[u8], reply: &mut Reply) {
        match plan.deadline {
            None => self.dispatch(plan, body, reply).await,
            deadline => Box::pin(tollgate_engine::until(deadline, self.dispatch(plan, body, reply))).await,
        }
    }

    fn begin<'a>(&'a self, plan: &'a Plan, body: &'a [u8], reply: &'a mut Reply) -> Option<Pending<'a>> {
        let Route::Check(_) = plan.route else { return Some(Box::pin(self.answer(plan, body, reply))) };
        let pending = check::check(&self.shared, *plan, body, reply)?;
        Some(match plan.deadline {
            None => pending,
            deadline => Box::pin(tollgate_engine::until(deadline, pending)),
        })
    }

    fn refuse(&self, fault: Fault, reply: &mut Reply) {
        refuse(&refuse::of_fault(fault), reply);
    }

    fn answered(&self, plan: Option<&Plan>, status: u16) {
        self.shared.metrics.http_answered(plan.map_or("", |plan| plan.route.name()), status);
    }
}

impl Api {
    async fn dispatch(&self, plan: &Plan, body: &[u8], reply: &mut Reply) {
        let (shared, plan) = (&*self.shared, *plan);
        match plan.route {
            Route::Check(_) => {
                if let Some(pending) = check::check(shared, plan, body, reply) {
                    pending.await;
                }
            }
            Route::Batch => check::batch(shared, plan, body, reply).await,
            Route::Reserve => reserve::reserve(shared, plan, Kind::Reservation, body, reply).await,
            Route::Settle => reserve::settle(shared, body, reply).await,
            Route::Acquire => reserve::reserve(shared, plan, Kind::Slot, body, reply).await,
            Route::Renew => reserve::renew(shared, body, reply).await,
            Route::Release => reserve::release(shared, body, reply).await,
            Route::Explain => explain::explain(shared, plan, body, reply).await,
            Route::EnvoyJson => Box::pin(envoy::json(shared, plan, body, reply)).await, // large, and rare
            Route::EnvoyHealth => envoy::health(shared, reply).await,
            Route::EnvoyStats => envoy::stats(shared, reply),
            Route::EnvoyRules => envoy::rules(shared, reply),
            Route::Live => refuse::say(200, "{\"live\":true}", reply),
            Route::Ready => health::ready(shared, self.surface, reply).await,
            Route::Metrics => {
                reply.fields.push("Content-Type", plan.exposition.content_type());
                reply.fields.push("Cache-Control", "no-store");
                reply.fields.push("Vary", "Accept");
                reply.body.extend_from_slice(shared.scrape.text(plan.exposition).as_bytes());
            }
        }
    }
}
