//! Usage of quotas by period: what customers are billed for.

use serde_json::{Value, json};
use tollgate_control::{Listing, PeriodUsage, PeriodUsageFilter, PeriodUsageRecord};

use super::access::NamespaceScope;
use super::call::AdminCall;
use super::csv::{CsvCell, CsvText};
use super::endpoint::{AdminEndpoint, EndpointHeader, ResponseContent, Tag};
use super::parameter::{CURSOR, LIMIT, Parameter, ParameterKind, parameter, text};
use super::problem::AdminProblem;
use super::response::AdminResponse;
use tollgate_service::mask::Mask;
use tollgate_service::violations::is_digest;

const CLIENT: Parameter =
    text("client_key", "Of this client: `key:abc`, `org:acme`, …; a digest is found as it is shown.");
const ORGANISATION: Parameter = text("organisation", "Of the clients of this organisation: `acme`.");
const RULE: Parameter = text("rule_id", "Of this rule.");
const FROM: Parameter =
    parameter("from", ParameterKind::Time, "Periods that end after this, such as 2026-12-01T00:00:00Z.");
const TO: Parameter =
    parameter("to", ParameterKind::Time, "Periods that start before this, such as 2027-01-01T00:00:00Z.");
const FORMAT: Parameter =
    parameter("format", ParameterKind::OneOf(&["json", "csv"]), "Default: as `Accept` says, or else json.");

pub(super) const ENDPOINTS: &[AdminEndpoint] = &[AdminEndpoint {
    detail: "The latest periods first; what the store said at `as_of`. As CSV the next page is named by the header \
             `Next-Cursor`.",
    scope: NamespaceScope::Namespaces,
    query: &[CLIENT, ORGANISATION, RULE, FROM, TO, FORMAT, LIMIT, CURSOR],
    headers: &[EndpointHeader::Accept],
    responses: &[(200, ResponseContent::JsonOrCsv("UsageList"))],
    ..AdminEndpoint::get("/v1/usage", "listUsage", Tag::Usage, "Usage of quotas by period", |call| Box::pin(list(call)))
}];

async fn list(call: &AdminCall<'_>) -> Result<AdminResponse, AdminProblem> {
    let listing = match call.may_see() {
        true => call.control()?.period_usage(&filter(call), &call.page()?).await?,
        false => Listing { entries: Vec::new(), next: None },
    };
    let (mask, next) = (call.mask(), call.cursor(listing.next.as_deref()));
    let wants_csv = call.query().text("format").map_or(call.request.accepts_csv, |format| format == "csv");
    if wants_csv {
        return Ok(AdminResponse::text("text/csv; charset=utf-8", csv(&listing.entries, &mask)).next_cursor(next));
    }
    let usage: Value = listing.entries.iter().map(|record| show(record, &mask)).collect();
    Ok(AdminResponse::json(&json!({ "usage": usage, "next_cursor": next })))
}

fn filter(call: &AdminCall<'_>) -> PeriodUsageFilter {
    let query = call.query();
    let names = |key: &str| call.state.key_hashing.names(key);
    let organisation = |name: &str| names(&format!("org:{}", name.strip_prefix("org:").unwrap_or(name)));
    PeriodUsageFilter {
        namespaces: call.namespaces(),
        client_keys: query.text("client_key").map(names),
        organisations: query.text("organisation").map(organisation),
        rule_id: query.owned("rule_id"),
        from: query.time("from"),
        to: query.time("to"),
    }
}

fn show(record: &PeriodUsageRecord, mask: &Mask<'_>) -> Value {
    let PeriodUsageRecord { usage_id, usage } = record;
    json!({
        "usage_id": usage_id,
        "namespace": usage.namespace,
        "client_key": usage.client_key.as_deref().map(|key| shown(key, mask)),
        "organisation": usage.organisation,
        "rule_id": usage.rule_id,
        "period_start": usage.period_start.map(|start| start.to_string()),
        "period_end": end(usage),
        "used": usage.used,
        "limit_value": usage.limit_value,
        "as_of": usage.as_of.to_string(),
        "node": Some(&usage.node).filter(|node| !node.is_empty()),
        "bucket": usage.bucket,
    })
}

const HEADINGS: [&str; 11] = [
    "namespace",
    "client_key",
    "organisation",
    "rule_id",
    "period_start",
    "period_end",
    "used",
    "limit_value",
    "as_of",
    "node",
    "bucket",
];

fn csv(records: &[PeriodUsageRecord], mask: &Mask<'_>) -> String {
    let mut text = CsvText::default();
    text.row(HEADINGS.map(CsvCell::Text));
    for PeriodUsageRecord { usage, .. } in records {
        let client = usage.client_key.as_deref().map(|key| shown(key, mask)).unwrap_or_default();
        let [start, end] =
            [usage.period_start.map(|start| start.to_string()), end(usage)].map(Option::unwrap_or_default);
        let as_of = usage.as_of.to_string();
        text.row([
            CsvCell::Text(&usage.namespace),
            CsvCell::Text(&client),
            CsvCell::Text(usage.organisation.as_deref().unwrap_or_default()),
            CsvCell::Text(&usage.rule_id),
            CsvCell::Text(&start),
            CsvCell::Text(&end),
            CsvCell::Number(usage.used),
            usage.limit_value.map_or(CsvCell::Text(""), CsvCell::Number),
            CsvCell::Text(&as_of),
            CsvCell::Text(&usage.node),
            CsvCell::Text(&usage.bucket),
        ]);
    }
    text.finish()
}

/// The end of the period; `None` if it never ends.
fn end(usage: &PeriodUsage) -> Option<String> {
    (usage.period_end < PeriodUsage::never()).then(|| usage.period_end.to_string())
}

/// Masks a client key, unless it is stored as a digest or stands for all clients.
fn shown(client_key: &str, mask: &Mask<'_>) -> String {
    if is_digest(client_key) || client_key == "-" { client_key.to_owned() } else { mask.key(client_key) }
}
