//! What operators see of the traffic: overview, series, rankings, single decisions, live events, previews of changes.

mod counters;
mod decisions;
mod events;
mod overview;
mod preview;
mod series;
mod shown;
mod table;

pub(crate) use events::{EventSource, PATH as EVENTS_PATH};
pub(crate) use table::ENDPOINTS;
