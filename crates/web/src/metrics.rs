//! HTTP metrics: responses by path and status, over all HTTP listeners.

use std::fmt;
use std::sync::OnceLock;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage, OTHER};

/// Statuses with their own label, sorted for the binary search. All others share one.
const STATUSES: [u16; 22] =
    [200, 204, 304, 400, 401, 403, 404, 405, 406, 408, 409, 411, 413, 414, 415, 417, 422, 429, 431, 500, 503, 505];

/// Counts responses by path and status.
#[derive(Debug)]
pub struct HttpMetrics {
    paths: Vec<&'static str>,
    responses: Vec<OnceLock<Counter>>,
}

impl HttpMetrics {
    /// Counts for these paths; all other paths share one label.
    pub fn new(paths: Vec<&'static str>) -> HttpMetrics {
        let cells = (paths.len() + 1) * (STATUSES.len() + 1);
        HttpMetrics { paths, responses: (0..cells).map(|_| OnceLock::new()).collect() }
    }

    /// Counts a response.
    pub fn responded(&self, path: &str, status: u16) {
        let path = self.paths.iter().position(|known| *known == path).unwrap_or(self.paths.len());
        let status = STATUSES.binary_search(&status).unwrap_or(STATUSES.len());
        if let Some(counter) = self.responses.get(path * (STATUSES.len() + 1) + status) {
            counter.get_or_init(Counter::default).add_one();
        }
    }
}

impl MetricFamilies for HttpMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let width = STATUSES.len() + 1;
        let counted = self.responses.iter().enumerate().filter_map(|(cell, count)| Some((cell, count.get()?.sum())));
        let labelled = counted.map(|(cell, count)| {
            let path = self.paths.get(cell / width).copied().unwrap_or(OTHER);
            let status = STATUSES.get(cell % width).map_or(OTHER.to_owned(), u16::to_string);
            ([("path", path.to_owned()), ("status", status)], count)
        });
        page.counters("tollgate_http_requests", "HTTP requests answered", labelled)
    }
}
