//! The export to an OpenTelemetry collector of one server.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use tollgate_config::Config;
use tollgate_core::Clock;
use tollgate_otlp::{OtlpExporter, OtlpExporterConfig, OtlpMetrics};
use tollgate_outbound::{Networks, OutboundClient, OutboundUrl};
use tollgate_service::trace::DecisionTracer;
use tollgate_telemetry::{Scrape, SpanQueue};

/// What is exported, and where to.
pub(crate) struct OtlpParts {
    endpoint: OutboundUrl,
    client: OutboundClient,
    spans: Arc<SpanQueue>,
    pub(crate) metrics: Arc<OtlpMetrics>,
    pub(crate) tracer: Arc<DecisionTracer>,
}

impl OtlpParts {
    /// As configured; `None` without a collector. It is the operator's own server: private networks are fine.
    pub(crate) fn read(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<OtlpParts>> {
        let Some(text) = &config.signals.otlp_endpoint else { return Ok(None) };
        let endpoint =
            text.parse().map_err(|error| anyhow!("otlp_endpoint: {error}; write for example http://127.0.0.1:4318"))?;
        let client = OutboundClient::new(Networks::Any).context("otlp_endpoint: TLS cannot be used")?;
        let spans = Arc::<SpanQueue>::default();
        let tracer = Arc::new(DecisionTracer::new(spans.clone(), config.signals.otlp_sample, clock.clone()));
        Ok(Some(OtlpParts { endpoint, client, spans, metrics: Arc::default(), tracer }))
    }

    /// The task that exports.
    pub(crate) fn exporter(&self, scrape: Arc<Scrape>, clock: Arc<dyn Clock>, node: String) -> OtlpExporter {
        OtlpExporter::new(OtlpExporterConfig {
            endpoint: self.endpoint.clone(),
            client: self.client.clone(),
            spans: self.spans.clone(),
            scrape,
            metrics: self.metrics.clone(),
            clock,
            node,
        })
    }
}
