//! Counts over time.

use tollgate_service::traffic::{Resolution, SeriesQuestion, TrafficQuestion};

use super::shown::{self, ask};
use crate::call::AdminCall;
use crate::problem::AdminProblem;
use crate::response::AdminResponse;

/// The steps of a range.
pub(super) fn range(name: Option<&str>) -> (Resolution, usize) {
    match name {
        Some("1d") => (Resolution::Minute, 1440),
        Some("30d") => (Resolution::Hour, 720),
        _ => (Resolution::Second, 3600),
    }
}

pub(super) async fn series(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (resolution, steps) = range(call.query().text("range"));
    let wanted = SeriesQuestion {
        rule: call.query().owned("rule"),
        client: call.query().owned("client"),
        resolution,
        steps: if call.may_see() { steps } else { 0 },
    };
    let fleet = ask(call, &TrafficQuestion::Series(wanted)).await?;
    Ok(AdminResponse::json(&shown::with_nodes(call, shown::series(&fleet.series()), &fleet)))
}
