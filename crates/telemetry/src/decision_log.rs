//! The decision log: one JSON line per request, by option.
//!
//! A line has the digest of the client key, rule, generation and outcome. It never has the endpoint, because paths
//! contain identifiers, nor the key itself, unless configured. The digest is keyed, so that keys cannot be guessed
//! without the secret, and differs from bucket digests.

use std::cell::RefCell;
use std::fmt;

use tollgate_core::{Attribute, Charge, Digest, KeyHasher, Purpose, Request, Secret, Time};
use tollgate_engine::{DecidedBy, Decision, Settlement};

use super::correction_lines;
use super::escape::json_string;
use super::json_fields::{hex, number};
use super::lines::Lines;
use super::timestamp::rfc3339;

/// Configuration of the decision log.
#[derive(Clone, Debug)]
pub struct DecisionLogConfig {
    /// The name of this node.
    pub node: String,
    /// How client keys are logged.
    pub keys: LoggedKeys,
    /// The key of the digests; nodes that share it log equal digests for a client.
    pub secret: Secret,
}

/// How client keys are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoggedKeys {
    /// As a digest.
    #[default]
    Digest,
    /// In plain text. For debugging: the log then contains personal data.
    Raw,
}

/// Writes a line for every request decided.
pub struct DecisionLog {
    lines: Lines,
    /// `,"node":"a"`, part of every line.
    node: String,
    keys: LoggedKeys,
    digests: ClientDigests,
}

/// Names clients in logs: keyed, so that they cannot be guessed without the secret.
#[derive(Clone, Copy)]
pub struct ClientDigests(KeyHasher);

impl ClientDigests {
    /// Digests under this key. A tag separates them from bucket digests.
    pub fn new(secret: Secret) -> ClientDigests {
        let mut hasher = KeyHasher::new(secret);
        hasher.part(b"decision log");
        ClientDigests(hasher)
    }

    /// The digest of a client by its key: `user:42` and the attribute `user_id` 42 are the same client.
    pub fn of(self, client_key: &str) -> Digest {
        let (kind, value) = client(client_key);
        self.of_attribute(kind, value)
    }

    fn of_attribute(self, kind: Attribute, value: &str) -> Digest {
        let ClientDigests(mut hasher) = self;
        hasher.part(kind.name().as_bytes());
        hasher.part(value.as_bytes());
        hasher.finish()
    }
}

/// Longest text of a caller in a line.
const TEXT_BYTES_MAX: usize = 512;

impl DecisionLog {
    /// A log that goes to `lines`.
    pub fn new(config: DecisionLogConfig, lines: Lines) -> DecisionLog {
        let mut node = String::from(",\"node\":");
        json_string(&mut node, &config.node);
        DecisionLog { lines, node, keys: config.keys, digests: ClientDigests::new(config.secret) }
    }

    /// Where the lines go.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Logs one decision: a line for each of its requests.
    pub fn record(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        thread_local! { static LINE: RefCell<String> = const { RefCell::new(String::new()) }; }
        LINE.with_borrow_mut(|line| {
            let logged = requests.iter().enumerate().filter(|(_, request)| request.purpose != Purpose::Mention);
            for (place, request) in logged {
                line.clear();
                self.write(line, request, (place, charges), decision);
                self.lines.push(line.as_bytes());
            }
        });
    }

    /// Logs the decision about the next step of a reservation, whose client is not known.
    pub fn record_extension(&self, decision: &Decision, charges: &[Charge]) {
        let mut line = self.begin(decision.wall);
        write_id(&mut line, decision);
        line.push_str(",\"extension\":true");
        if let Some((rule, _)) = decision.deciding_rule() {
            line.push_str(",\"namespace\":");
            json_string(&mut line, &rule.namespace);
            line.push_str(",\"rule\":");
            json_string(&mut line, &rule.name);
        }
        write_decision(&mut line, (0, charges), decision);
        self.lines.push(line.as_bytes());
    }

    /// Logs what settling a reservation changed.
    pub fn record_settlement(&self, settlement: &Settlement) {
        let mut line = self.begin(settlement.wall);
        correction_lines::write_settlement(&mut line, settlement);
        self.lines.push(line.as_bytes());
    }

    /// Logs charges on quotas that the store may have recorded without answering.
    pub fn record_unanswered(&self, charges: &[Charge], wall: Time) {
        let mut line = self.begin(wall);
        if correction_lines::write_unanswered(&mut line, charges) {
            self.lines.push(line.as_bytes());
        }
    }

    /// The time and the node.
    fn begin(&self, wall: Time) -> String {
        let mut line = String::from("{\"time\":\"");
        rfc3339(&mut line, wall);
        line.push('"');
        line.push_str(&self.node);
        line
    }

    fn write(&self, line: &mut String, request: &Request<'_>, place: (usize, &[Charge]), decision: &Decision) {
        line.push_str("{\"time\":\"");
        rfc3339(line, decision.wall);
        line.push('"');
        line.push_str(&self.node);
        write_id(line, decision);
        line.push_str(",\"namespace\":");
        json_string(line, shortened(request.namespace));
        line.push_str(",\"rule\":");
        match decision.deciding_rule() {
            Some((rule, _)) => json_string(line, &rule.name),
            None => line.push_str("null"),
        }
        line.push_str(",\"key\":");
        self.write_key(line, request);
        number(line, ",\"cost\":", request.cost);
        if request.purpose == Purpose::Peek {
            line.push_str(",\"peek\":true"); // nothing was charged
        }
        write_decision(line, place, decision);
    }

    fn write_key(&self, line: &mut String, request: &Request<'_>) {
        let Some((kind, value)) = caller(request) else { return line.push_str("null") };
        match self.keys {
            LoggedKeys::Raw => json_string(line, shortened(value)),
            LoggedKeys::Digest => hex(line, self.digests.of_attribute(kind, value)),
        }
    }
}

impl fmt::Debug for DecisionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionLog").field("lines", &self.lines).field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// The id, under which responses and the admin API have the decision.
fn write_id(line: &mut String, decision: &Decision) {
    line.push_str(",\"id\":\"");
    line.extend(decision.id().digits().map(char::from));
    line.push('"');
}

/// The verdict, what decided and what was charged: the rest of a line. `place` is the request among those decided
/// together, with the charges of all.
fn write_decision(line: &mut String, place: (usize, &[Charge]), decision: &Decision) {
    line.push_str(if decision.is_allowed() { ",\"allowed\":true" } else { ",\"allowed\":false" });
    line.push_str(",\"mode\":\"");
    line.push_str(decision.decided_by.name());
    number(line, "\",\"generation\":", decision.generation());
    match decision.retry_after().span() {
        Some(span) => number(line, ",\"retry_after_ms\":", span.millis_ceil()),
        None => line.push_str(",\"retry_after_ms\":null"),
    }
    number(line, ",\"time_ns\":", decision.now.nanos());
    write_charged(line, place, decision);
    line.push_str("}\n");
}

/// Units charged per rule: with the exact time, enough to recompute what every limit admitted. A rule that allowed
/// without the store is listed with 0 units. A quota is listed with its bucket and period, by which usage is reconciled.
fn write_charged(line: &mut String, (place, charges): (usize, &[Charge]), decision: &Decision) {
    line.push_str(",\"charged\":[");
    let mut between = "{\"rule\":";
    for ruling in decision.rulings().iter().filter(|ruling| usize::from(ruling.request) == place) {
        let units = ruling.outcome.map_or(0, |outcome| outcome.granted);
        let is_open = ruling.decided_by == DecidedBy::Open && decision.is_allowed();
        let Some(rule) = decision.rule(ruling).filter(|_| units > 0 || is_open) else { continue };
        line.push_str(between);
        json_string(line, &rule.name);
        line.push_str(",\"mode\":\"");
        line.push_str(ruling.decided_by.name());
        number(line, "\",\"units\":", units);
        let charge = ruling.charge().and_then(|index| charges.get(index));
        if let (Some(charge), Some(outcome), DecidedBy::Store) = (charge, ruling.outcome, ruling.decided_by) {
            correction_lines::write_period(line, charge, outcome.stamp);
        }
        line.push('}');
        between = ",{\"rule\":";
    }
    line.push(']');
}

/// The client: the most specific attribute of the request, so that a client has one digest. `client_key: "user:42"` and
/// `user_id: "42"` are the same client.
fn caller<'a>(request: &Request<'a>) -> Option<(Attribute, &'a str)> {
    if let Some(client_key) = request.get(Attribute::ClientKey) {
        return Some(client(client_key));
    }
    let others = [Attribute::ApiKey, Attribute::UserId, Attribute::Ip, Attribute::Org];
    others.into_iter().find_map(|kind| Some((kind, request.get(kind)?)))
}

fn client(client_key: &str) -> (Attribute, &str) {
    match client_key.split_once(':') {
        Some(("key", value)) => (Attribute::ApiKey, value),
        Some(("user", value)) => (Attribute::UserId, value),
        Some(("ip", value)) => (Attribute::Ip, value),
        Some(("org", value)) => (Attribute::Org, value),
        _ => (Attribute::ClientKey, client_key),
    }
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_core::{ManualClock, Receipt, Span};
    use tollgate_engine::{Engine, Observer};
    use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};

    use super::*;
    use crate::lines::Sink;

    /// Logs every decision.
    struct LogOnly(DecisionLog);

    impl Observer for LogOnly {
        fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
            self.0.record(requests, decision, charges);
        }
    }

    const RULES: &str = "rules:\n  - { name: only, key_by: client_key, limit: { requests: 1, window: 1s } }\n";

    fn logged(keys: LoggedKeys, requests: &[Request<'_>]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("decisions");
        let lines = Lines::start(Sink::File(path.clone())).unwrap();
        let config = DecisionLogConfig { node: "a\"b".to_owned(), keys, secret: Secret::new([7; 16]) };
        let log = DecisionLog::new(config, lines.clone());
        let rules = tollgate_engine::rules_from_yaml(RULES).unwrap();
        let clock = ManualClock::at(Time::from_nanos(1_800_000_000_123_456_789));
        let observer = LogOnly(log);
        let engine = Engine::on_clock(rules, clock).with_observer(observer);
        requests.iter().for_each(|request| drop(engine.decide_now(request)));
        assert!(lines.flush(Duration::from_secs(10)));
        without_ids(&std::fs::read_to_string(path).unwrap())
    }

    /// Ids are random: they are checked, and cut out.
    fn without_ids(lines: &str) -> String {
        let without = |line: &str| {
            let (before, rest) = line.split_once(",\"id\":\"").unwrap();
            let (id, after) = rest.split_once('"').unwrap();
            assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
            format!("{before}{after}\n")
        };
        lines.lines().map(without).collect()
    }

    #[test]
    fn lines_have_neither_keys_nor_endpoints() {
        let named = Request::new().with(Attribute::ClientKey, "user:42").with(Attribute::Endpoint, "/users/42");
        let typed = Request::new().with(Attribute::UserId, "42").cost(3).in_namespace("b");
        let wrong = Request::new().with(Attribute::Ip, "nonsense");
        let shown = logged(LoggedKeys::Digest, &[named, named, typed, Request::new(), wrong, named.peek()]);
        let lines: Vec<&str> = shown.lines().collect();
        let digest = serde_json::from_str::<serde_json::Value>(lines[0]).unwrap()["key"].as_str().unwrap().to_owned();
        assert!(digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
        let line = |namespace, rule, key, cost, rest| {
            format!(
                r#"{{"time":"2027-01-15T08:00:00.123Z","node":"a\"b","namespace":"{namespace}","rule":{rule},"key":{key},"cost":{cost},{rest}}}"#
            )
        };
        let key = format!("\"{digest}\"");
        let time = r#""time_ns":1800000000123456789"#;
        let free = format!(r#""allowed":true,"mode":"store","generation":1,"retry_after_ms":0,{time},"charged":[]"#);
        let paid = free.replace("[]", r#"[{"rule":"only","mode":"store","units":1}]"#);
        let denied = free.replace("true", "false").replace("_ms\":0", "_ms\":1000");
        assert_eq!(lines[0], line("default", "\"only\"", &*key, 1, &*paid));
        assert_eq!(lines[1], line("default", "\"only\"", &*key, 1, &*denied));
        assert_eq!(lines[2], line("b", "null", &*key, 3, &*free), "the same caller, the same digest");
        assert_eq!(lines[3], line("default", "null", "null", 1, &*free));
        let invalid = free.replace("true", "false").replace("_ms\":0", "_ms\":null");
        assert!(lines[4].ends_with(&format!("{invalid}}}")), "{}", lines[4]);
        assert!(lines[5].contains(r#""cost":1,"peek":true,"allowed":false"#), "a peek was not charged: {}", lines[5]);
        assert_eq!(lines.len(), 6);
    }

    /// A store that never answers.
    struct Away;

    impl Store for Away {
        async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
            Err(StoreError { kind: StoreErrorKind::Unavailable, detail: String::new() })
        }

        async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
            Ok(0)
        }

        async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn lines_list_the_charge_of_every_rule() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("decisions");
        let lines = Lines::start(Sink::File(path.clone())).unwrap();
        let config = DecisionLogConfig { node: String::new(), keys: LoggedKeys::Digest, secret: Secret::new([7; 16]) };
        let log = DecisionLog::new(config, lines.clone());
        let rules = "on_fail: local\nkey_by: global\nrules:\n  - { name: a, cost: 2, limit: { requests: 9, window: 1s } }\n  \
                     - { name: b, on_fail: allow, limit: { requests: 9, window: 1m } }\n";
        let rules = tollgate_engine::rules_from_yaml(rules).unwrap();
        let engine = Engine::new(Away, rules).with_observer(LogOnly(log));
        drop(engine.decide(&Request::new()).await);
        assert!(lines.flush(Duration::from_secs(10)));
        let line = std::fs::read_to_string(path).unwrap();
        let charged = r#""charged":[{"rule":"a","mode":"fallback","units":2},{"rule":"b","mode":"open","units":0}]"#;
        assert!(line.ends_with(&format!("{charged}}}\n")), "{line}");
    }

    #[test]
    fn raw_keys_are_shown_on_demand_escaped_and_cut() {
        let long = format!("{}é", "x".repeat(511));
        let nasty = Request::new().with(Attribute::ApiKey, "a\"\u{1b}\r\n\0");
        let shown = logged(LoggedKeys::Raw, &[nasty, Request::new().with(Attribute::ApiKey, &long)]);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].contains(r#""key":"a\"\u001b\r\n\u0000","#), "{}", lines[0]);
        assert!(lines[1].contains(&format!("\"key\":\"{}\",", "x".repeat(511))), "{}", lines[1]);
    }

    #[test]
    fn p30_debug_shows_no_secret() {
        let lines = Lines::start(Sink::Other(Box::new(std::io::sink()))).unwrap();
        let config = DecisionLogConfig {
            node: String::new(),
            keys: LoggedKeys::Digest,
            secret: Secret::new(*b"0123456789abcdef"),
        };
        let text = format!("{config:?} {:?}", DecisionLog::new(config.clone(), lines));
        assert!(text.contains("Secret(…)") && !text.contains("0123"), "{text}");
    }
}
