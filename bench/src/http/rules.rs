//! Rules files of the scenarios, and the request they are about.

use std::fmt::Write as _;

/// The request body for Tollgate.
pub const CHECK: &str = r#"{"client_key":"{key}","endpoint":"/api/orders","tier":"free"}"#;

/// The limit of the matching rule.
#[derive(Clone, Copy, Debug)]
pub enum RuleLimit {
    /// More than any run needs, and the same as for throttlecrab.
    Ample,
    /// One request a day for each key: all that follow are denied.
    One,
}

/// A file of `number` rules, of which one matches; the others have paths and tiers that no request has.
pub fn file(number: usize, limit: RuleLimit) -> String {
    let limit = match limit {
        RuleLimit::Ample => "{ requests: 1000000, window: 60s, burst: 1000000 }",
        RuleLimit::One => "{ requests: 1, window: 1d, burst: 1 }",
    };
    let mut text = "rules:\n".to_owned();
    for other in 1..number {
        let conditions = match other % 2 {
            0 => format!("endpoint: 'GET /service{other}/items/*'"),
            _ => format!("tier: plan{other}, endpoint: '/api/part{other}'"),
        };
        // A String takes everything.
        let _ = writeln!(text, "  - {{ name: r{other}, match: {{ {conditions} }}, limit: {limit} }}");
    }
    let _ = writeln!(text, "  - {{ name: orders, match: {{ endpoint: '/api/orders', tier: free }}, limit: {limit} }}");
    text
}

/// A hundred checks at once, a key each.
pub fn batch(checks: usize) -> String {
    let check = CHECK.replace("{key}", "{keys}");
    format!("{{\"requests\":[{}]}}", vec![check; checks].join(","))
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, Request, Time};
    use tollgate_ruleset::{Charges, CompileOptions, RuleSet};

    use super::*;

    #[test]
    fn one_rule_of_a_file_matches() {
        for (number, limit) in [(1, RuleLimit::Ample), (10, RuleLimit::One), (1_000, RuleLimit::Ample)] {
            let file = tollgate_rules::read("bench", &file(number, limit)).unwrap();
            let set = RuleSet::compile(&[file], &CompileOptions::reproducible()).unwrap();
            let request = Request::new()
                .with(Attribute::ClientKey, "key:000000000001")
                .with(Attribute::Endpoint, "/api/orders")
                .with(Attribute::Tier, "free");
            let mut charges = Charges::default();
            set.charges(&request, Time::ZERO, &mut charges).unwrap();
            assert_eq!((set.rules().len(), charges.charges.len()), (number, 1));
        }
    }
}
