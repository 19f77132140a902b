//! Pages for operators: `/live`, `/ready` and `/metrics` on the admin listener and on the metrics listener, which also has
//! `/stats` and `/rlconfig` of envoyproxy/ratelimit.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate_net::{Drain, Peer};
use tollgate_service::refusal::write_json;
use tollgate_service::{ApiError, HealthDetail, Reply, Service, with_deadline};
use tollgate_telemetry::{Exposition, RlsCallEnd, Scrape};
use tollgate_web::{Handler, Head, HttpError, HttpMetrics, check_encoding, http_error, request_timeout};

/// Returns how often loading rules files succeeded and failed.
pub type LoadCounts = Arc<dyn Fn() -> (u64, u64) + Send + Sync>;

/// The pages for operators.
#[derive(Clone)]
pub struct OperatorPages {
    /// Reports the state of the store.
    pub service: Arc<Service>,
    /// Health checks fail once it is announced.
    pub drain: Drain,
    /// Writes the metrics.
    pub scrape: Arc<Scrape>,
    /// Counts responses.
    pub metrics: Arc<HttpMetrics>,
    /// For the statistics of envoyproxy/ratelimit.
    pub loads: LoadCounts,
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorPage {
    /// Is the process alive?
    Live,
    /// May the node receive requests?
    Ready,
    /// Metrics for Prometheus.
    Metrics,
    /// The counters of envoyproxy/ratelimit, under its names.
    RlsStats,
    /// The rules of its files, as it prints them.
    RlsRules,
}

/// A page, the format that the caller accepts, and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedPage {
    page: OperatorPage,
    exposition: Exposition,
    deadline: Option<Instant>,
}

impl OperatorPage {
    /// Every path, for metrics.
    pub const PATHS: &[&str] = &["/live", "/ready", "/metrics", "/stats", "/rlconfig"];

    /// The page that the admin listener has at a path.
    pub fn find_on_admin(path: &str) -> Option<OperatorPage> {
        OperatorPage::find(path).filter(|page| !matches!(page, OperatorPage::RlsStats | OperatorPage::RlsRules))
    }

    /// The page at a path.
    pub fn find(path: &str) -> Option<OperatorPage> {
        Some(match path {
            "/live" => OperatorPage::Live,
            "/ready" => OperatorPage::Ready,
            "/metrics" => OperatorPage::Metrics,
            "/stats" => OperatorPage::RlsStats,
            "/rlconfig" => OperatorPage::RlsRules,
            _ => return None,
        })
    }

    /// The path.
    pub const fn path(self) -> &'static str {
        match self {
            OperatorPage::Live => "/live",
            OperatorPage::Ready => "/ready",
            OperatorPage::Metrics => "/metrics",
            OperatorPage::RlsStats => "/stats",
            OperatorPage::RlsRules => "/rlconfig",
        }
    }
}

const NO_SUCH_PATH: ApiError =
    ApiError::new(404, "no_such_path", "Not found", "There is no such path here. /metrics, /stats and /rlconfig are.");
const ONLY_GET: ApiError = ApiError {
    field: Some(("Allow", "GET, HEAD")),
    ..ApiError::new(405, "method_not_allowed", "Method not allowed", "Use GET.")
};

impl OperatorPages {
    /// Checks method, encoding and timeout; an error fills the reply.
    pub(crate) fn prepare_page(&self, page: OperatorPage, head: &Head<'_>, reply: &mut Reply) -> Option<PreparedPage> {
        let is_read = matches!(head.method, "GET" | "HEAD");
        let checked = if is_read { check_encoding(head) } else { Err(ONLY_GET) };
        match checked.and_then(|()| request_timeout(head)) {
            Ok(deadline) => Some(PreparedPage { page, exposition: Exposition::accepted(head.accept), deadline }),
            Err(error) => {
                error.write(reply);
                None
            }
        }
    }

    async fn ready(&self, reply: &mut Reply) {
        if self.drain.is_announced() {
            return write_json(503, "{\"ready\":false,\"reason\":\"draining\"}", reply);
        }
        write_json(200, &self.service.store_health(HealthDetail::Addresses).await, reply);
    }

    /// Every counter of envoyproxy/ratelimit, one per line.
    fn rls_stats(&self) -> String {
        let stats = &self.service.rls_stats;
        let (loads, auth_throttle) = (self.loads)();
        let own = [
            ("call.should_rate_limit.redis_error", stats.calls.ended(RlsCallEnd::StoreError)),
            ("call.should_rate_limit.service_error", stats.calls.ended(RlsCallEnd::ServiceError)),
            ("config_load_error", auth_throttle),
            ("config_load_success", loads),
            ("global_shadow_mode", stats.calls.ended(RlsCallEnd::Shadowed)),
        ];
        let mut lines = String::new();
        for (name, count) in own {
            lines += &format!("ratelimit.service.{name}: {count}\n");
        }
        for (name, count) in stats.all() {
            lines += &format!("ratelimit.service.rate_limit.{name}: {count}\n");
        }
        lines
    }
}

fn write_text(body: &str, reply: &mut Reply) {
    reply.clear();
    reply.fields.push("Content-Type", "text/plain; charset=utf-8");
    reply.fields.push("Cache-Control", "no-store");
    reply.body.extend_from_slice(body.as_bytes());
}

/// The pages on the metrics listener.
impl Handler for OperatorPages {
    type Prepared = PreparedPage;

    fn prepare(&self, _: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(PreparedPage, usize)> {
        let Some(page) = OperatorPage::find(head.path) else {
            NO_SUCH_PATH.write(reply);
            return None;
        };
        self.prepare_page(page, head, reply).map(|prepared| (prepared, 0))
    }

    async fn handle(&self, prepared: &PreparedPage, _: &[u8], reply: &mut Reply) {
        match prepared.page {
            OperatorPage::Live => write_json(200, "{\"live\":true}", reply),
            OperatorPage::Ready => with_deadline(prepared.deadline, self.ready(reply)).await,
            OperatorPage::Metrics => {
                reply.fields.push("Content-Type", prepared.exposition.content_type());
                reply.fields.push("Cache-Control", "no-store");
                reply.fields.push("Vary", "Accept");
                reply.body.extend_from_slice(self.scrape.text(prepared.exposition).as_bytes());
            }
            OperatorPage::RlsStats => write_text(&self.rls_stats(), reply),
            OperatorPage::RlsRules => write_text(&self.service.rls_limits(), reply),
        }
    }

    fn reject(&self, error: HttpError, reply: &mut Reply) {
        http_error(error).write(reply);
    }

    fn completed(&self, prepared: Option<&PreparedPage>, status: u16) {
        self.metrics.responded(prepared.map_or("", |prepared| prepared.page.path()), status);
    }
}
