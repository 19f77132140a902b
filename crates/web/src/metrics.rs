//! HTTP metrics: responses by path and status, over all HTTP listeners.

use std::fmt;
use std::sync::OnceLock;

use tollgate_telemetry::{Counter, MetricFamilies, MetricsPage, OTHER};

/// The first status; each has its own label.
const FIRST_STATUS: u16 = 100;
/// The number of statuses. The server decides which ones are answered, so few are ever counted.
const STATUSES: usize = 500;

/// Counts responses by path and status.
#[derive(Debug)]
pub struct HttpMetrics {
    paths: Vec<&'static str>,
    /// By path, then by status; made when a path is first answered.
    responses: Vec<OnceLock<Box<[OnceLock<Counter>]>>>,
}

impl HttpMetrics {
    /// Counts for these paths; all other paths share one label.
    pub fn new(paths: Vec<&'static str>) -> HttpMetrics {
        let responses = (0..=paths.len()).map(|_| OnceLock::new()).collect();
        HttpMetrics { paths, responses }
    }

    /// Counts a response.
    pub fn responded(&self, path: &str, status: u16) {
        let path = self.paths.iter().position(|known| *known == path).unwrap_or(self.paths.len());
        let Some(statuses) = self.responses.get(path) else { return };
        let statuses = statuses.get_or_init(|| (0..STATUSES).map(|_| OnceLock::new()).collect());
        if let Some(counter) = statuses.get(usize::from(status.wrapping_sub(FIRST_STATUS))) {
            counter.get_or_init(Counter::default).add_one();
        }
    }
}

impl MetricFamilies for HttpMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let paths = self.paths.iter().copied().chain([OTHER]).zip(&self.responses);
        let answered = paths.filter_map(|(path, statuses)| Some((path, statuses.get()?)));
        let labelled = answered.flat_map(|(path, statuses)| {
            let counted =
                (FIRST_STATUS..).zip(statuses).filter_map(|(status, count)| Some((status, count.get()?.sum())));
            counted.map(move |(status, count)| ([("path", path.to_owned()), ("status", status.to_string())], count))
        });
        page.counters("tollgate_http_requests", "HTTP requests answered", labelled)
    }
}
