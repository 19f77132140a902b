//! Compares the index with a scan of all rules, on random rules and requests.

use tollgate_rules::{Endpoint, EndpointMatcher, EscapedSlash, KeyBy, LimitSpec, Matcher, PathCase, Pattern, RuleSpec};

use super::*;

/// Draws the same numbers in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn join(&mut self, of: &[&str], most: usize) -> String {
        (0..=self.below(most)).map(|_| self.one(of)).collect()
    }

    /// Exact values, prefixes, suffixes, inner stars and `*`, over few letters, so that patterns share literals. Some
    /// pieces are longer than those of the automaton.
    fn text(&mut self) -> String {
        let long = "abcdefghijklmnopqrstuvwxyz0123456789";
        let words = ["a", "b", "ab", "-1", "é", long, "*", "*", "a*"];
        let count = 1 + self.below(4);
        (0..count).map(|_| self.one(&words)).collect()
    }

    fn value(&mut self) -> String {
        let long = "abcdefghijklmnopqrstuvwxyz0123456789";
        self.join(&["a", "b", "ab", "-1", "é", long], 5)
    }

    fn path(&mut self) -> String {
        let segments = ["/a", "/b", "/A", "/{x}", "/*", "/a*", "/*b", "/a*b", "/ab", "/*", "*"];
        let count = 1 + self.below(4);
        let path: String = (0..count).map(|_| self.one(&segments)).collect();
        self.one(&["", "", "GET ", "GET,PUT "]).to_owned() + &path
    }

    fn endpoint(&mut self) -> String {
        let path = self.join(&["/a", "/b", "/A", "/ab", "/aXb", "/B"], 4);
        self.one(&["", "GET ", "PUT "]).to_owned() + self.one(&["", "/"]) + &path
    }

    fn network(&mut self) -> String {
        match self.below(4) {
            0 => format!("10.{}.0.0/{}", self.below(4) * 64, 10 + self.below(7)),
            1 => format!("10.0.{}.{}", self.below(2), self.below(3)),
            2 => format!("2001:db8:{:x}::/{}", self.below(4) << 12, 36 + self.below(13)),
            _ => self.one(&["*", "::/0", "0.0.0.0/0", "10.0.0.0/8", "2001:db8::/32"]).to_owned(),
        }
    }

    fn address(&mut self) -> String {
        match self.below(3) {
            0 => format!("10.{}.{}.{}", self.below(256), self.below(2), self.below(3)),
            1 => format!("2001:db8:{:x}::{:x}", self.below(4) << 12, self.below(9)),
            _ => "192.0.2.1".to_owned(),
        }
    }
}

/// A list of patterns, sometimes a long one, without invalid ones.
fn list(draw: &mut Draw, mut pattern: impl FnMut(&mut Draw) -> String) -> Vec<String> {
    let count = if draw.below(6) == 0 { 20 } else { 1 + draw.below(3) };
    let negate = |draw: &mut Draw| if draw.below(5) == 0 { "!" } else { "" };
    (0..count).map(|_| negate(draw).to_owned() + &pattern(draw)).collect()
}

fn rule(draw: &mut Draw, case: PathCase) -> RuleSpec {
    let mut spec = RuleSpec {
        limit: Some(LimitSpec { requests: 1, window_ns: 1_000_000_000, ..LimitSpec::default() }),
        ..RuleSpec::default()
    };
    spec.key_by = Some(KeyBy::global());
    for name in ["tier", "host"] {
        if draw.below(2) == 0 {
            let mut matcher = Matcher::default();
            for text in list(draw, Draw::text) {
                let _ = matcher.push(&text);
            }
            spec.matches.attributes.push((name.to_owned(), matcher));
        }
    }
    if draw.below(3) == 0 {
        let mut matcher = Matcher::default();
        for text in list(draw, Draw::network) {
            let _ = matcher.push_ip(&text);
        }
        spec.matches.attributes.push(("ip".to_owned(), matcher));
    }
    if draw.below(2) == 0 {
        let mut matcher = EndpointMatcher::default();
        for text in list(draw, Draw::path) {
            let _ = matcher.push(&text, EscapedSlash::Reject, case);
        }
        spec.matches.endpoint = Some(matcher);
    }
    spec
}

/// The values of a request, for a scan.
struct Sent {
    tier: Option<String>,
    host: Option<String>,
    ip: Option<String>,
    endpoint: Option<String>,
}

impl Sent {
    fn draw(draw: &mut Draw) -> Sent {
        let mut some = |value: fn(&mut Draw) -> String| (draw.below(5) > 0).then(|| value(draw));
        Sent {
            tier: some(Draw::value),
            host: some(Draw::value),
            ip: some(Draw::address),
            endpoint: some(Draw::endpoint),
        }
    }

    /// Matches a rule without index and compiled conditions.
    fn meets(&self, spec: &RuleSpec) -> bool {
        let attribute = |(name, matcher): &(String, Matcher)| {
            let value = match name.as_str() {
                "tier" => &self.tier,
                "host" => &self.host,
                _ => &self.ip,
            };
            value.as_ref().is_some_and(|value| matcher.matches(value))
        };
        let endpoint = self.endpoint.as_ref().map(|text| Endpoint::parse(text, EscapedSlash::Reject).unwrap());
        spec.matches.attributes.iter().all(attribute)
            && spec.matches.endpoint.as_ref().is_none_or(|matcher| {
                endpoint.as_ref().is_some_and(|endpoint| matcher.matches(endpoint.method, &endpoint.path))
            })
    }
}

#[test]
fn the_index_finds_exactly_what_a_scan_finds() {
    let mut draw = Draw(0x2545_f491_4f6c_dd1d);
    let (mut matched, mut kinds) = (0, [0_usize; 5]);
    for round in 0..150 {
        let case = if round % 2 == 0 { PathCase::Sensitive } else { PathCase::Insensitive };
        let rules: Vec<RuleSpec> =
            (0..40).map(|number| RuleSpec { name: Some(format!("r{number}")), ..rule(&mut draw, case) }).collect();
        for pattern in rules.iter().flat_map(|rule| &rule.matches.attributes).flat_map(|(_, matcher)| &matcher.any) {
            kinds[match pattern {
                Pattern::Exact(_) => 0,
                Pattern::Prefix(_) => 1,
                Pattern::Glob(_) => 2,
                Pattern::Any => 3,
                Pattern::Cidr(_) => 4,
            }] += 1;
        }
        let file = RuleFile { rules, case, ..RuleFile::default() };
        let set = RuleSet::compile(std::slice::from_ref(&file), &CompileOptions::reproducible()).unwrap();
        for _ in 0..60 {
            let sent = Sent::draw(&mut draw);
            let host = [("host", sent.host.as_deref().unwrap_or_default())];
            let mut request = Request::new();
            for (attribute, value) in
                [(Attribute::Tier, &sent.tier), (Attribute::Ip, &sent.ip), (Attribute::Endpoint, &sent.endpoint)]
            {
                if let Some(value) = value {
                    request.set(attribute, value);
                }
            }
            if sent.host.is_some() {
                request = request.with_custom(&host);
            }
            let scanned = file.rules.iter().filter(|spec| sent.meets(spec));
            let scanned: Vec<&str> = scanned.filter_map(|spec| spec.name.as_deref()).collect();
            assert_eq!(names(&set, &request), scanned, "round {round}: {request:?}");
            let explained = set.explain(&request, Time::ZERO).unwrap();
            let explained = explained.iter().filter(|one| matches!(one.applicability, Applicability::Applies { .. }));
            assert_eq!(explained.map(|one| one.rule.name.as_str()).collect::<Vec<_>>(), scanned, "round {round}");
            matched += scanned.len();
        }
    }
    assert!(matched > 30_000, "the draw matches rules at all: {matched}");
    assert!(kinds.iter().all(|count| *count > 500), "every kind is drawn: {kinds:?}");
}

/// A template identifies the bucket of every path that it matches, also in an indexed list.
#[test]
fn the_first_pattern_of_a_long_list_names_the_bucket() {
    let patterns: Vec<String> = (0..30).map(|number| format!("'/v{number}/{{id}}', '/v{number}/*/x'")).collect();
    let set = set(&format!(
        "rules: [{{ match: {{ endpoint: [{}] }}, key_by: endpoint, limit: {{ requests: 1, window: 1s }} }}]",
        patterns.join(", ")
    ));
    let at = |path| bucket(&set, &Request::new().with(Attribute::Endpoint, path));
    assert_eq!(at("/v17/1"), at("/v17/2"));
    assert_eq!(at("/v17/x"), at("/v17/y"), "the template comes before the glob");
    assert_ne!(at("/v17/1"), at("/v18/1"));
    assert_ne!(at("/v17/1/x"), at("/v17/2/x"), "a star keeps paths apart");
}
