//! The task that posts spans and metrics to a collector.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use prost::Message;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tollgate_core::{Clock, Time};
use tollgate_outbound::{OutboundClient, OutboundUrl};
use tollgate_telemetry::{Exposition, LogThrottle, Scrape, SpanQueue};
use tracing::warn;

use crate::messages::{KeyValue, OtlpResource, OtlpScope};
use crate::metrics::{self, OtlpMetrics, PointTimes};
use crate::spans;

/// How often spans are posted.
const SPANS_EVERY: Duration = Duration::from_secs(2);
/// Posts of spans between two of metrics.
const METRICS_EVERY: u64 = 5;
/// How long one post may take.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last posts may take.
const FINAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The parts of an [`OtlpExporter`].
pub struct OtlpExporterConfig {
    /// The collector, without `/v1/traces`.
    pub endpoint: OutboundUrl,
    /// Calls it.
    pub client: OutboundClient,
    /// Spans of decisions.
    pub spans: Arc<SpanQueue>,
    /// The metrics page.
    pub scrape: Arc<Scrape>,
    /// Counts messages.
    pub metrics: Arc<OtlpMetrics>,
    /// Tells the time of points.
    pub clock: Arc<dyn Clock>,
    /// The name of this node.
    pub node: String,
}

/// Posts spans and metrics.
pub struct OtlpExporter {
    config: OtlpExporterConfig,
    resource: OtlpResource,
    scope: OtlpScope,
    started: Time,
    dropped: u64,
    throttle: LogThrottle,
}

impl OtlpExporter {
    /// An exporter that has posted nothing yet.
    pub fn new(config: OtlpExporterConfig) -> OtlpExporter {
        let version = env!("CARGO_PKG_VERSION");
        let attributes = vec![
            KeyValue::text("service.name", "tollgate"),
            KeyValue::text("service.version", version),
            KeyValue::text("service.instance.id", &config.node),
        ];
        let started = config.clock.wall();
        let scope = OtlpScope { name: "tollgate".to_owned(), version: version.to_owned() };
        let throttle = LogThrottle::by_the_minute();
        OtlpExporter { config, resource: OtlpResource { attributes }, scope, started, dropped: 0, throttle }
    }

    /// Posts until `end`, and then what is left.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let mut ticks = interval(SPANS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut end = std::pin::pin!(end);
        for tick in 1_u64.. {
            tokio::select! {
                () = &mut end => break,
                _ = ticks.tick() => {}
            }
            let posted = async {
                self.post_spans().await;
                if tick % METRICS_EVERY == 0 {
                    self.post_metrics().await;
                }
            };
            tokio::select! {
                () = &mut end => break,
                () = posted => {}
            }
        }
        let last = async {
            self.post_spans().await;
            self.post_metrics().await;
        };
        let _ = timeout(FINAL_TIMEOUT, last).await;
    }

    /// Posts the spans that wait.
    pub async fn post_spans(&mut self) {
        let lost = self.config.spans.dropped();
        self.config.metrics.dropped(lost - std::mem::replace(&mut self.dropped, lost));
        let spans = self.config.spans.drain();
        if spans.is_empty() {
            return;
        }
        let count = spans.len() as u64;
        let message = spans::encode(spans, &self.resource, &self.scope);
        if !self.post("/v1/traces", message.encode_to_vec()).await {
            self.config.metrics.dropped(count);
        }
    }

    /// Posts the metrics as they are.
    pub async fn post_metrics(&mut self) {
        let page = self.config.scrape.text(Exposition::OpenMetrics);
        let times = PointTimes { start_ns: self.started.nanos(), time_ns: self.config.clock.wall().nanos() };
        let message = metrics::encode(&page, times, &self.resource, &self.scope);
        self.post("/v1/metrics", message.encode_to_vec()).await;
    }

    async fn post(&mut self, path: &str, body: Vec<u8>) -> bool {
        let url = self.config.endpoint.below(path);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static("tollgate"));
        let posted = self.config.client.post(&url, &headers, Bytes::from(body), POST_TIMEOUT).await;
        let failure = match &posted {
            Ok(status) if status.is_success() => None,
            Ok(status) => Some(format!("status {}", status.as_u16())),
            Err(error) => Some(error.to_string()),
        };
        match &failure {
            None => self.config.metrics.exported(),
            Some(why) => {
                self.config.metrics.failed();
                if let Some(unsaid) = self.throttle.admit("otlp") {
                    warn!(
                        collector = self.config.endpoint.origin(),
                        why, unsaid, "the OTLP collector does not take telemetry"
                    );
                }
            }
        }
        failure.is_none()
    }
}
