//! What docs/guide/gateway.md, docs/guide/identity.md and the examples show: every file is read, and the walk of five
//! minutes is taken step by step.

use std::collections::BTreeSet;
use std::sync::Arc;

use tollgate_core::{ManualClock, Time};
use tollgate_gateway::spec::{self, GatewaySpec};
use tollgate_identity::{IdentitySpec, KeyFile};

use crate::app::App;
use crate::issuer::{Issuer, NOW};
use crate::rig::{Answer, Rig};

const GATEWAY: &str = include_str!("../../../../docs/guide/gateway.md");
const IDENTITY: &str = include_str!("../../../../docs/guide/identity.md");
const ROUTES: &str = include_str!("../../../../examples/gateway.yaml");
const RULES: &str = include_str!("../../../../examples/gateway-rules.yaml");

fn samples<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let fence = format!("```{kind}\n");
    page.split(fence.as_str()).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The words behind `upstream:`.
fn upstreams(sample: &str) -> BTreeSet<&str> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let found = sample.split("upstream: ").skip(1).filter_map(|rest| rest.split(|letter| !is_word(letter)).next());
    found.filter(|name| !name.is_empty()).collect()
}

/// A sample as a whole file: what it leaves out is what the page has shown before.
fn whole(sample: &str) -> String {
    let has = |field: &str| sample.lines().any(|line| line.starts_with(field));
    let mut file = sample.to_owned();
    let mut named = upstreams(sample);
    if !has("routes:") {
        file += "routes: [{ upstream: orders }]\n";
        named.insert("orders");
    }
    if !has("upstreams:") {
        let upstreams: Vec<String> =
            named.iter().map(|name| format!("{name}: {{ servers: http://10.0.0.7 }}")).collect();
        file += &format!("upstreams: {{ {} }}\n", upstreams.join(", "));
    }
    file
}

fn routes(sample: &str) -> GatewaySpec {
    spec::read("routes.yaml", &whole(sample)).unwrap_or_else(|report| panic!("{report}\n{sample}"))
}

#[test]
fn every_file_that_the_pages_show_is_read() {
    let (mut rules, mut routed, mut keys) = (0, 0, 0);
    for sample in [samples(GATEWAY, "yaml"), samples(IDENTITY, "yaml")].concat() {
        let begins_with = |field: &str| sample.lines().any(|line| line.starts_with(field));
        if begins_with("rules:") {
            tollgate_rules::read("rules.yaml", sample).unwrap_or_else(|report| panic!("{report}"));
            rules += 1;
        } else if begins_with("keys:") {
            KeyFile::read("keys.yaml", sample).unwrap_or_else(|report| panic!("{report}"));
            keys += 1;
        } else {
            let spec = routes(sample);
            if begins_with("identity:") {
                assert_ne!(spec.identity, IdentitySpec::default(), "{sample}");
            }
            routed += 1;
        }
    }
    assert_eq!((rules, routed, keys), (1, 7, 1), "a sample that is none of these is read by nothing");
}

#[test]
fn the_fields_that_identity_names_are_those_that_are_read() {
    for field in IdentitySpec::FIELDS {
        assert!(IDENTITY.contains(&format!("| `{field}` |")), "the page does not say `{field}`");
    }
}

/// Answers as the page shows them: `…` stands for anything, and digits for other digits.
fn shows(page_line: &str, line: &str) -> bool {
    let masked = |text: &str| {
        let mut masked = String::new();
        for letter in text.trim_end().chars() {
            match letter.is_ascii_digit() {
                true if masked.ends_with('#') => {}
                true => masked.push('#'),
                false => masked.push(letter),
            }
        }
        masked
    };
    let (page_line, line) = (masked(page_line), masked(line));
    let Some((start, others)) = page_line.split_once('…') else { return page_line == line };
    let Some(mut rest) = line.strip_prefix(start) else { return false };
    let (middle, end) = others.rsplit_once('…').unwrap_or(("", others));
    for part in middle.split('…') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(end)
}

/// Every line that the page shows is in the answer, in this order.
fn assert_shown(shown: &[&str], answer: &Answer) {
    let text = format!("{}{}", answer.head, answer.body);
    let mut lines = text.lines().filter(|line| !line.is_empty());
    for page_line in shown {
        let id = page_line.starts_with("x-decision-id: ");
        let found = lines.any(|line| if id { line.starts_with("x-decision-id: ") } else { shows(page_line, line) });
        assert!(found, "the page shows {page_line:?}, which is not in its place in:\n{text}");
    }
}

#[tokio::test]
async fn the_five_minutes_of_the_page_go_as_it_says() {
    let walk = GATEWAY.split("## Five minutes").nth(1).unwrap().split("\n## ").next().unwrap();
    let app = App::start().await;
    let rules = samples(walk, "yaml").remove(0);
    let clock = ManualClock::at(Time::from_secs(NOW));
    let rig = Rig::on_clock(Arc::new(clock.clone()), rules, |config, _| config.gateway.upstream = vec![app.url()]);
    let mut commands = Vec::new();
    for block in samples(walk, "text") {
        for step in block.split("$ ").skip(1) {
            let lines: Vec<&str> = step.trim_end().lines().collect();
            commands.push((lines[0], lines[1..].to_vec()));
        }
    }
    let [(serve, banner), (first, allowed), (sixth, refused)]: [(&str, Vec<&str>); 3] = commands.try_into().unwrap();
    assert_eq!(serve, "tollgate gateway --upstream http://127.0.0.1:3000 --rules rules.yaml");
    for (shown, printed) in banner[..2].iter().zip(rig.banner.lines()) {
        assert!(shows(shown, printed), "{shown:?}: {:?}", rig.banner);
    }
    assert_eq!(first, "curl -si http://127.0.0.1:8000/ | grep -i -e http/ -e ratelimit -e decision");
    assert_eq!(sixth, "curl -si http://127.0.0.1:8000/");
    let answer = rig.get("/").await;
    assert_shown(&allowed, &answer);
    let grepped =
        |line: &&str| ["http/", "ratelimit", "decision"].iter().any(|word| line.to_lowercase().contains(word));
    assert_eq!(answer.head.lines().filter(grepped).count(), allowed.len(), "grep finds no other line: {}", answer.head);
    for _ in 2..=5 {
        assert_eq!(rig.get("/").await.status, 200);
    }
    assert_shown(&refused, &rig.get("/").await);
    assert_eq!(app.seen().len(), 5, "the sixth is answered without asking the API");
    let shadowed = Rig::with(rules, |config, _| {
        config.gateway.upstream = vec![app.url()];
        config.gateway.shadow = true;
    });
    for _ in 0..7 {
        assert_eq!(shadowed.get("/").await.status, 200, "`--shadow` forwards everything");
    }
}

#[tokio::test]
async fn the_example_is_a_gateway_that_does_what_its_comments_say() {
    let (orders, reports) = (App::start().await, App::start().await);
    let issuer = Issuer::new("one");
    let routes =
        ROUTES.replace("http://127.0.0.1:3000", &orders.url()).replace("http://127.0.0.1:3001", &reports.url());
    let routes = routes.replace("trusted_proxies: []", "trusted_proxies: [127.0.0.1]");
    assert!(routes.contains(&orders.url()) && routes.contains(&reports.url()) && routes.contains("[127.0.0.1]"));
    let clock = ManualClock::at(Time::from_secs(NOW));
    let rig = Rig::on_clock(Arc::new(clock), RULES, |config, dir| {
        std::fs::write(dir.join("keys.json"), issuer.jwks()).unwrap();
        std::fs::write(dir.join("routes.yaml"), &routes).unwrap();
        config.gateway.routes = Some(dir.join("routes.yaml"));
    });
    let user = crate::issuer::bearer(&issuer.token(tollgate_identity::JwtAlgorithm::EdDsa, "42"));
    let client = |address: &str| format!("X-Forwarded-For: {address}\r\n");
    assert_eq!(rig.get_with("/v1/orders/1", &user).await.status, 200);
    assert!(orders.seen()[0].starts_with("GET /orders/1 HTTP/1.1\r\n"), "without its prefix");
    assert_eq!(rig.get("/v1/reports/1").await.status, 200);
    assert_eq!((reports.seen().len(), orders.seen().len()), (1, 0));
    assert_eq!(rig.get("/elsewhere").await.status, 404);
    // Logins by address, whatever the caller proves.
    for attempt in 0..6 {
        let mut caller = rig.connect().await;
        let fields = format!("{}{user}Content-Length: 0\r\n", client("192.0.2.1"));
        caller.send(&format!("POST /v1/login HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
        assert_eq!(caller.answer().await.status, if attempt < 5 { 200 } else { 429 }, "{attempt}");
    }
    // An address without a token has less than a user, and a user has no less for where it comes from.
    let limits =
        async |fields: &str| rig.get_with("/v1/orders/1", fields).await.field("RateLimit-Policy").unwrap().to_owned();
    let (address, proven) = (limits(&client("192.0.2.2")).await, limits(&user).await);
    assert!(address.contains("\"addresses\";q=60;w=60") && !address.contains("users"), "{address}");
    assert!(proven.contains("\"users\";q=1000;w=60") && !proven.contains("addresses"), "{proven}");
}
