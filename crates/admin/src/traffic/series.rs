//! Counts over time.

use tollgate_service::traffic::{ClientQuestion, Resolution};

use super::shown::{self, ClientNames, monitor, scope};
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

pub(super) fn series(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let (traffic, scope, clients) = (monitor(call)?, scope(call), ClientNames::of(call));
    let (resolution, steps) = range(call.query().text("range"));
    let steps = if call.may_see() { steps } else { 0 };
    let shown = |client: &str| clients.shown(client);
    let client = call.query().text("client").map(|text| ClientQuestion { text, shown: &shown });
    let series = traffic.series(&scope, call.query().text("rule"), client, resolution, steps);
    Ok(AdminResponse::json(&shown::series(&series)))
}
