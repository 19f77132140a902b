//! The end of a row: stops the nodes, reads their logs and checks everything.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tollgate_testkit::LimitConfig;
use tollgate_testkit::checker::{self, AdmissionMode, CheckReport, ClientObservation, LoggedDecision, Promise};

use super::load::BackgroundLoad;
use super::{Lab, RowResult};
use crate::patience::Watch;
use crate::redis::RedisClient;

/// Added to the window after which a hammered key is admitted again (P9, P19).
const GRACE: Duration = Duration::from_secs(1);
/// Added to the longest time to live of the rules (P19).
const TTL_GRACE: Duration = Duration::from_secs(60);

impl Lab {
    /// Stops the load, and keeps what its callers observed.
    pub fn stop(&mut self, load: BackgroundLoad) {
        let observations = load.stop();
        self.observations.extend(observations);
    }

    /// Checks that hammered keys are admitted again within a window, or refused by policy.
    pub fn expect_alive(&mut self) {
        self.expect_admitted(span);
    }

    /// The same after a step of the store's clock, which may lock a key for as long as P20 allows.
    pub fn expect_unlocked(&mut self) {
        self.expect_admitted(|limit| span(limit).and(limit.lock_max()).map(Duration::from_nanos));
    }

    fn expect_admitted(&mut self, within: impl Fn(&LimitConfig) -> Option<Duration>) {
        let Some(node) = (0..self.nodes.len()).find(|node| self.nodes[*node].is_alive()) else { return };
        let spans = self.rules.iter().filter_map(|rule| Some((rule.name, within(&rule.limit)? + GRACE)));
        let (mut waiting, watch): (Vec<_>, _) = (spans.collect(), Watch::start());
        while !waiting.is_empty() {
            waiting.retain(|(rule, within)| {
                let answer = self.ask(node, rule, "k0");
                let is_well = answer.get("allowed").and_then(Value::as_bool) == Some(true)
                    || answer.get("mode").and_then(Value::as_str) == Some("closed");
                let is_late = !is_well && watch.elapsed() > *within;
                self.expect(!is_late, || format!("rule {rule}: k0 is refused for more than {within:?}"));
                !is_well && !is_late
            });
            self.pause(5);
        }
    }

    /// Checks that every bucket expires, and not much later than its rule needs.
    pub fn expect_ttls(&mut self, ports: &[u16]) {
        let spans = self.rules.iter().filter_map(|rule| span(&rule.limit));
        let most = spans.max().unwrap_or_default() * 2 + TTL_GRACE;
        for port in ports {
            let Ok(mut client) = RedisClient::connect(*port) else { continue };
            let (buckets, found) = checker::scan(&mut client, most);
            self.expect(found.is_empty(), || format!("{} of {buckets} buckets stay too long: {found:?}", found.len()));
        }
    }

    /// Ends the nodes, reads their logs and checks everything.
    pub fn conclude(mut self) -> RowResult {
        let (mut entries, mut crashed) = (Vec::new(), Vec::new());
        for node in &mut self.nodes {
            match (node.is_alive(), node.end()) {
                (true, true) => {}
                (true, false) => self.broken.push(format!(
                    "{} does not shut down cleanly: {}",
                    node.name,
                    last_line(&node.server_log())
                )),
                (false, _) => crashed.push(node.name.clone()),
            }
            match checker::read(&node.log) {
                Ok(read) => entries.extend(read),
                Err(problem) => self.broken.push(format!("log of {}: {problem}", node.name)),
            }
        }
        let strays = self.observations.iter().filter(|observation| observation.rule.contains(" instead of "));
        self.broken
            .extend(strays.map(|observation| format!("an answer to another request: {}", observation.rule)).take(3));
        self.compare(&entries, &crashed);
        let by_clients = checker::check_observations(&self.promises, &self.observations);
        let mut report = by_clients.clone();
        if self.store_time_is_one {
            report.violations.extend(checker::check_log(&self.promises, &entries).violations);
        }
        self.broken.extend(report.violations.iter().map(ToString::to_string).take(5));
        self.outcome(&report)
    }

    /// Compares admissions that callers observed with those in the logs; a crashed node may have answered more than it
    /// logged.
    fn compare(&mut self, entries: &[LoggedDecision], crashed: &[String]) {
        let mut told: BTreeMap<&str, i64> = BTreeMap::new();
        for observation in self.observations.iter().filter(|observation| observation.allowed && observation.cost > 0) {
            *told.entry(&observation.node).or_default() += 1;
        }
        let is_noted = |entry: &&LoggedDecision| {
            let slots = self.rules.iter().filter(|rule| matches!(rule.limit, LimitConfig::Concurrency { .. }));
            let mut names = slots.map(|rule| rule.name);
            entry.allowed && !entry.charged.is_empty() && !names.any(|name| entry.charged[0].0 == name)
        };
        for entry in entries.iter().filter(is_noted) {
            *told.entry(&entry.node).or_default() -= 1;
        }
        // A request whose answer was lost is in the log and in no observation.
        let lost = self.observations.iter().filter(|observation| observation.mode.is_none()).count() as i64;
        for (node, difference) in told {
            let is_well = crashed.iter().any(|name| name == node) || (-lost..=0).contains(&difference);
            if !is_well {
                self.broken.push(format!("{node}: callers observed {difference} admissions more than it logged"));
            }
        }
    }

    /// The line of the table, for the bucket nearest to its bound.
    fn outcome(self, report: &CheckReport) -> RowResult {
        let Lab { promises, observations, broken, mut remarks, nodes, .. } = self;
        let (admitted, bound) = headline(&promises, &observations, nodes.len() as u64);
        let modes: Vec<String> = report
            .admitted
            .iter()
            .map(|(mode, units)| format!("{units} {}", format!("{mode:?}").to_lowercase()))
            .collect();
        remarks.push(format!("{} decisions, admitted {}", report.decisions, modes.join(", ")));
        RowResult { admitted, bound, broken, remarks, decisions: report.decisions }
    }
}

/// The bucket nearest to its bound over the whole run: units admitted, and the bound for its modes.
fn headline(promises: &[Promise], observations: &[ClientObservation], nodes: u64) -> (u64, u64) {
    let mut sums: BTreeMap<(&str, String), (u64, u64, u64, bool)> = BTreeMap::new();
    for observation in observations.iter().filter(|observation| observation.allowed) {
        let Some(promise) = promises.iter().find(|promise| promise.rule == observation.rule) else { continue };
        let entry = sums.entry((&observation.rule, promise.bucket(&observation.key))).or_insert((
            0,
            observation.asked,
            observation.heard,
            false,
        ));
        entry.0 += observation.cost;
        entry.1 = entry.1.min(observation.asked);
        entry.2 = entry.2.max(observation.heard);
        entry.3 |= observation.mode == Some(AdmissionMode::Fallback);
    }
    let known = promises.iter().flat_map(|promise| {
        let of_rule = sums.iter().filter(|((rule, _), _)| *rule == promise.rule);
        of_rule.map(move |(_, sum)| (promise, sum))
    });
    let bounded = known.filter(|(promise, _)| !matches!(promise.rule.as_str(), "open" | "async"));
    let lines = bounded.map(|(promise, &(sum, from, to, fell_back))| {
        let own = most_in(&promise.limit, from, to) + promise.leased;
        let shares = if fell_back { nodes * most_in(&promise.share(), from, to) } else { 0 };
        let lost: u64 = promise.losses.iter().map(|loss| loss.units).sum();
        (sum, own + shares + lost)
    });
    lines.max_by_key(|(sum, bound)| sum * 1000 / (*bound).max(1)).unwrap_or((0, 0))
}

/// The most that a limit admits between two times.
fn most_in(limit: &LimitConfig, from: u64, to: u64) -> u64 {
    match *limit {
        LimitConfig::Gcra { burst, .. } => burst + (to - from) / limit.interval().max(1),
        LimitConfig::FixedWindow { limit, window, .. } => limit * (to / window - from / window + 1),
        LimitConfig::SlidingLog { limit, window } => limit * ((to - from) / window + 1),
        LimitConfig::SlidingCounter { limit, window, .. } => limit * ((to - from) / window + 2),
        LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, .. } => {
            (amount + overdraft + rollover) * ((to - from) / (end - start) + 2) + grant
        }
        LimitConfig::Queue { .. } | LimitConfig::Concurrency { .. } => limit.capacity(),
    }
}

/// How long a bucket takes to be fresh again.
fn span(limit: &LimitConfig) -> Option<Duration> {
    Some(Duration::from_nanos(match *limit {
        LimitConfig::Gcra { burst, .. } => burst * limit.interval(),
        LimitConfig::FixedWindow { window, .. }
        | LimitConfig::SlidingLog { window, .. }
        | LimitConfig::SlidingCounter { window, .. } => window,
        LimitConfig::Quota { start, end, .. } => end - start,
        LimitConfig::Queue { .. } | LimitConfig::Concurrency { .. } => return None,
    }))
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or("its log is empty")
}
