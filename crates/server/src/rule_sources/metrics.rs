//! Metrics of rules files.

use std::fmt;

use tokio::sync::watch;
use tollgate_telemetry::{MetricFamilies, MetricsPage};

use super::state::RuleSourceState;

/// The states of all watched rules files.
#[derive(Clone, Debug, Default)]
pub struct FileStates(pub Vec<watch::Receiver<RuleSourceState>>);

impl FileStates {
    /// A count summed over all files.
    pub fn sum(&self, count: impl Fn(&RuleSourceState) -> u64) -> u64 {
        self.0.iter().map(|state| count(&state.borrow())).sum()
    }
}

impl MetricFamilies for FileStates {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        page.counter("tollgate_reloads", "Times new rules came into force", self.sum(|state| state.reloads))?;
        let failures = self.sum(|state| state.failures);
        page.counter("tollgate_reload_failures", "Times new rules could not be loaded", failures)?;
        let help = "Times a file of rules looked cut off and was not loaded";
        page.counter("tollgate_reloads_held_back", help, self.sum(|state| state.held_back))?;
        match self.0.iter().filter_map(|state| state.borrow().loaded_at).max() {
            Some(at) => page.gauge(
                "tollgate_last_reload_timestamp_seconds",
                "When rules were last loaded",
                at.nanos() as f64 / 1e9,
            ),
            None => Ok(()),
        }
    }
}
