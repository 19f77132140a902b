//! Metrics of the database.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;
use tollgate_control::change_feed::ChangeFeedState;
use tollgate_core::Time;
use tollgate_telemetry::{MetricFamilies, MetricsPage};

/// The state of the change feed, once there is a database.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseState(Arc<OnceLock<watch::Receiver<ChangeFeedState>>>);

impl DatabaseState {
    /// False if the database did not answer last time; true if there is none.
    pub(crate) fn is_up(&self) -> bool {
        self.0.get().is_none_or(|state| state.borrow().unavailable.is_none())
    }

    /// Starts to report metrics of the database.
    pub(crate) fn follow(&self, state: Option<watch::Receiver<ChangeFeedState>>) {
        if let Some(state) = state {
            let _ = self.0.set(state); // a server has one database
        }
    }
}

impl MetricFamilies for DatabaseState {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let Some(state) = self.0.get().map(|state| state.borrow().clone()) else { return Ok(()) };
        page.gauge("tollgate_database_up", "Whether the database answers", u64::from(state.unavailable.is_none()))?;
        page.gauge("tollgate_database_generation", "Generation of the database in force here", state.generation)?;
        page.counter("tollgate_database_refreshes", "Times the database had something new", state.refreshes)?;
        page.counter("tollgate_database_failures", "Times the database did not answer", state.failures)?;
        page.gauge("tollgate_quarantined_rows", "Rows of the database that cannot be used", state.quarantined.len())?;
        match state.fresh_at {
            Some(at) => page.gauge(
                "tollgate_database_fresh_timestamp_seconds",
                "When the database last said that this is its latest",
                seconds(at.time()),
            ),
            None => Ok(()),
        }
    }
}

fn seconds(time: Time) -> f64 {
    time.nanos() as f64 / 1e9
}
