//! Metrics of gRPC: calls by method and status code.

use std::fmt;
use std::sync::OnceLock;

use tollgate_proto::STATUS_NAMES;
use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage, OTHER};
use tonic::Code;

use crate::method::GrpcMethod;

/// Counts calls by method and status code.
#[derive(Debug)]
pub struct GrpcMetrics(Vec<OnceLock<Counter>>);

impl Default for GrpcMetrics {
    fn default() -> GrpcMetrics {
        GrpcMetrics((0..(GrpcMethod::ALL.len() + 1) * STATUS_NAMES.len()).map(|_| OnceLock::new()).collect())
    }
}

impl GrpcMetrics {
    /// Counts a call; `None` for unknown methods.
    pub(crate) fn responded(&self, method: Option<GrpcMethod>, code: Code) {
        let method = method.map_or(GrpcMethod::ALL.len(), |method| method as usize);
        if let Some(counter) = self.0.get(method * STATUS_NAMES.len() + code as usize) {
            counter.get_or_init(Counter::default).add_one();
        }
    }
}

impl MetricFamilies for GrpcMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let counted = self.0.iter().enumerate().filter_map(|(cell, counter)| Some((cell, counter.get()?.sum())));
        let labelled = counted.map(|(cell, count)| {
            let method = GrpcMethod::ALL.get(cell / STATUS_NAMES.len()).map_or(OTHER, |method| method.path());
            let code = STATUS_NAMES.get(cell % STATUS_NAMES.len()).copied().unwrap_or(OTHER);
            ([("method", method), ("code", code)], count)
        });
        page.counters("tollgate_grpc_requests", "Calls by gRPC answered", labelled)
    }
}
