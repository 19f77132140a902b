//! The description of the data API, as OpenAPI 3.1: `GET /openapi.json`.
//!
//! A file and not a table: the routes of this API are few and answered by hand on the check path. A test compares the two.

/// The document.
pub const TEXT: &str = include_str!("openapi.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::super::Route;
    use super::TEXT;

    /// Of envoyproxy/ratelimit, under its names and in its forms.
    const ELSEWHERE: [&str; 2] = ["/json", "/healthcheck"];

    #[test]
    fn it_describes_every_route_and_no_other() {
        let document: Value = serde_json::from_str(TEXT).unwrap();
        let paths: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let routes: BTreeSet<&str> = Route::PATHS.iter().copied().filter(|path| !ELSEWHERE.contains(path)).collect();
        assert_eq!(paths, routes);
        for (path, operations) in document["paths"].as_object().unwrap() {
            let method = if Route::find(path).unwrap().is_read_only() { "get" } else { "post" };
            assert!(operations[method]["responses"]["200"].is_object(), "{path}");
        }
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document: Value = serde_json::from_str(TEXT).unwrap();
        for (_, rest) in TEXT.match_indices("#/components/schemas/").map(|(at, name)| TEXT.split_at(at + name.len())) {
            let name = rest.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
