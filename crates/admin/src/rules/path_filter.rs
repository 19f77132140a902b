//! Filters rules by a path: those whose endpoint condition matches it, and those without one.

use serde_json::{Map, Value};
use tollgate_control::record::RuleRecord;
use tollgate_control::{Control, Listing, Page, RuleFilter};
use tollgate_rules::{Endpoint, EndpointMatcher, EscapedSlash, PathCase};

use crate::problem::AdminProblem;

/// Pages of the database that are searched for one response; the next one continues there.
const PIECES_MAX: usize = 1000;

/// An optional method, and a path.
pub(super) struct PathFilter<'a>(Endpoint<'a>);

impl<'a> PathFilter<'a> {
    /// Parses `/api/orders` or `POST /api/orders`.
    pub(super) fn read(text: &'a str) -> Result<PathFilter<'a>, AdminProblem> {
        Endpoint::parse(text, EscapedSlash::Keep).map(PathFilter).map_err(|_| {
            let detail =
                "endpoint is a path, such as /api/orders or POST /api/orders; pattern finds what a rule spells.";
            AdminProblem::new(400, "bad_parameter", detail)
        })
    }

    /// True if a rule applies to the path.
    pub(super) fn by(&self, document: &Map<String, Value>) -> bool {
        let case = match document.get("case").and_then(Value::as_str) {
            Some("insensitive") => PathCase::Insensitive,
            _ => PathCase::Sensitive,
        };
        let condition = document.get("match").and_then(|conditions| conditions.get("endpoint"));
        let texts: Vec<&str> = match condition {
            None => return true,
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(_) => return false,
        };
        let mut matcher = EndpointMatcher::default();
        let is_read = texts.into_iter().all(|text| matcher.push(text, EscapedSlash::Keep, case).is_ok());
        is_read && matcher.matches(self.0.method, &self.0.path)
    }

    /// Rules of the database that apply to it.
    pub(super) async fn list(
        &self,
        control: &Control,
        filter: &RuleFilter,
        page: Page,
    ) -> tollgate_control::Result<Listing<RuleRecord>> {
        let (mut found, mut after) = (Vec::new(), page.after);
        for _ in 0..PIECES_MAX {
            let limit = page.limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if limit == 0 {
                break;
            }
            let listing = control.rules(filter, &Page { limit, after }).await?;
            found.extend(listing.entries.into_iter().filter(|record| self.by(&record.draft.document)));
            after = listing.next;
            if after.is_none() {
                break;
            }
        }
        Ok(Listing { entries: found, next: after })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_applies_to_a_path_that_its_pattern_matches() {
        let by = |path: &str, conditions: Value| {
            let document = json!({ "match": conditions });
            PathFilter::read(path).unwrap().by(document.as_object().unwrap())
        };
        for (path, endpoint, expected) in [
            ("/api/orders", json!("/api/orders"), true),
            ("/api/orders", json!("POST /api/*"), true),
            ("GET /api/orders", json!("POST /api/*"), false),
            ("/api/orders", json!("/api/{id}"), true),
            ("/api/./orders", json!(["/x", "/api/orders"]), true),
            ("/api/orders", json!("!/api/orders"), false),
            ("/api/orders", json!("/other"), false),
            ("/api/orders", json!("*"), true),
        ] {
            assert_eq!(by(path, json!({ "endpoint": endpoint })), expected, "{path} {endpoint}");
        }
        assert!(by("/api/orders", json!({ "tier": "free" })), "a rule without a condition governs every path");
        let folded = json!({ "match": { "endpoint": "/API/Orders" }, "case": "insensitive" });
        assert!(PathFilter::read("/api/orders").unwrap().by(folded.as_object().unwrap()));
        assert_eq!(PathFilter::read("orders per user").err().unwrap().status, 400);
    }
}
