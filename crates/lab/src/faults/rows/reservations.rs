//! Faults in the middle of reservations: all or nothing, never over the budget, slots come back, and usage that is right
//! to the unit where every call was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tollgate_testkit::checker::UsageLedger;

use crate::faults::reserving::{KEYS, KeyLedger, ReservingLoad, ReservingSize, reserving_rules};
use crate::faults::rules::{self, EXACT};
use crate::faults::{Caller, Lab, RowResult, STORE_PATIENCE};
use crate::patience;
use crate::redis::{RedisOptions, RedisServer, Sentinels};

use super::processes::hold;

/// How long usage may take to get into the database: an interval of the writer, on a busy machine.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);
const DAY_SECONDS: i64 = 86_400;

/// How long thousands of reservations may take on a busy machine.
const MANY_WITHIN: Duration = Duration::from_secs(600);

/// R1. Nothing fails: usage, its history and the logs agree to the unit.
pub fn calm(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    lab.use_long_timeouts();
    begin(&mut lab, &server.url(), ReservingSize::SHORT);
    let load = ReservingLoad::start(&lab, 8);
    lab.pause(1500);
    let ledgers = load.stop();
    lab.expect(ledgers.values().all(|ledger| ledger.open == 0), || "a call had no answer".to_owned());
    conclude(lab, ReservingSize::SHORT, &ledgers, FaultLoss::Nothing)
}

/// R2. Redis answers nothing for a second and a half.
pub fn redis_paused(lab: Lab) -> RowResult {
    paused(lab, ReservingSize::SHORT)
}

/// R2-long. The same in the middle of ten thousand reservations.
pub fn redis_paused_among_many(lab: Lab) -> RowResult {
    paused(lab, ReservingSize::LONG)
}

fn paused(mut lab: Lab, size: ReservingSize) -> RowResult {
    let server = RedisServer::start();
    begin(&mut lab, &server.url(), size);
    let load = ReservingLoad::start(&lab, 8);
    reserve_for(&mut lab, &load, size, 700);
    server.stop();
    lab.pause(1500);
    server.cont();
    lab.wait_for_store(STORE_PATIENCE);
    reserve_for(&mut lab, &load, size, 700);
    let ledgers = load.stop();
    lab.expect(ledgers.values().any(|ledger| ledger.open > 0), || "no call was open".to_owned());
    conclude(lab, size, &ledgers, FaultLoss::Nothing)
}

/// R3. Redis is killed and comes back with its append-only file.
pub fn redis_killed(lab: Lab) -> RowResult {
    killed(lab, ReservingSize::SHORT)
}

/// R3-long. The same in the middle of ten thousand reservations.
pub fn redis_killed_among_many(lab: Lab) -> RowResult {
    killed(lab, ReservingSize::LONG)
}

fn killed(mut lab: Lab, size: ReservingSize) -> RowResult {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = RedisServer::start_with(&arguments);
    begin(&mut lab, &server.url(), size);
    let load = ReservingLoad::start(&lab, 8);
    reserve_for(&mut lab, &load, size, 700);
    server.kill();
    lab.pause(500);
    server.restart_with(&arguments);
    lab.wait_for_store(STORE_PATIENCE);
    reserve_for(&mut lab, &load, size, 700);
    conclude(lab, size, &load.stop(), FaultLoss::Nothing)
}

/// R4. One of two nodes is killed.
pub fn node_killed(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    begin(&mut lab, &server.url(), ReservingSize::SHORT);
    let load = ReservingLoad::start(&lab, 8);
    lab.pause(1000);
    lab.nodes[0].kill();
    lab.unlist(0);
    lab.pause(1000);
    conclude(lab, ReservingSize::SHORT, &load.stop(), FaultLoss::LogOfNode)
}

/// R5. The primary is killed, and a replica takes its place without its last writes.
pub fn failover(lab: Lab) -> RowResult {
    failed_over(lab, ReservingSize::SHORT)
}

/// R5-long. The same in the middle of ten thousand reservations.
pub fn failover_among_many(lab: Lab) -> RowResult {
    failed_over(lab, ReservingSize::LONG)
}

fn failed_over(mut lab: Lab, size: ReservingSize) -> RowResult {
    let mut sentinels = Sentinels::start();
    begin(&mut lab, &sentinels.url(), size);
    let load = ReservingLoad::start(&lab, 8);
    reserve_for(&mut lab, &load, size, 1500);
    let old = sentinels.primary();
    sentinels.servers[old].kill();
    sentinels.wait_for_failover_from(old);
    lab.wait_for_store(STORE_PATIENCE);
    reserve_for(&mut lab, &load, size, 1500);
    conclude(lab, size, &load.stop(), FaultLoss::Writes)
}

/// Lets the load go on, for this time or until half of the reservations of its size are granted.
fn reserve_for(lab: &mut Lab, load: &ReservingLoad, size: ReservingSize, millis: u64) {
    let Some(each) = size.each else { return lab.pause(millis) };
    let enough = load.granted() + each;
    let granted = patience::try_until(MANY_WITHIN, || load.granted() >= enough);
    lab.expect(granted.is_some(), || format!("{} of {enough} reservations were granted", load.granted()));
}

/// R6. The clock of the store steps over the end of the month, between two loads and with reservations that are open: the
/// budget is new, what was reserved before is settled without an effect on it, and every period has its own row.
pub fn month_ends(mut lab: Lab) -> RowResult {
    let server = RedisOptions { own_clock: true, ..RedisOptions::default() }.start();
    begin(&mut lab, &server.url(), ReservingSize::SHORT);
    let load = ReservingLoad::start(&lab, 8);
    lab.pause(700);
    let before = load.stop();
    let mut caller = Caller::connect(lab.nodes[0].at).expect("a node that runs");
    let open: Vec<String> = (0..KEYS).filter_map(|key| reserve(&mut caller, &format!("k{key}"), 30)).collect();
    lab.expect(open.len() as u64 == KEYS, || format!("{} of {KEYS} reservations were granted", open.len()));
    let spent = usage(&mut lab, &mut caller);
    expect_history(&mut lab, 0, &spent);
    let rest = month_end(&mut caller).saturating_sub(server.seconds());
    server.step_clock(rest + DAY_SECONDS);
    lab.wait_for_store(STORE_PATIENCE);
    for receipt in &open {
        let ask = format!(r#"{{"reservation":"{receipt}","costs":{{"tokens":0}}}}"#);
        let settled = caller.post("/v1/settle", &ask).unwrap_or_default();
        lab.expect(settled.get("settled").is_some(), || format!("a reservation of last month: {settled}"));
    }
    let load = ReservingLoad::start(&lab, 8);
    lab.pause(700);
    let after = load.stop();
    let renewed = usage(&mut lab, &mut caller);
    let (mut admitted, bound) = (0, ReservingSize::SHORT.budget);
    for (key, ledger) in &after {
        let used = renewed.get(&(key.clone(), "budget".to_owned())).copied().unwrap_or(0);
        admitted = admitted.max(used);
        lab.expect(used <= bound, || format!("{key}: {used} tokens of {bound}"));
        lab.expect(ledger.bounds.admit(used), || format!("{key}: {used} in the new month, {:?}", ledger.bounds));
    }
    expect_rows_of_periods(&mut lab, &spent, &renewed);
    let granted = before.values().chain(after.values()).map(|ledger| ledger.granted).sum();
    lab.remark(format!("{granted} reservations, {} left open over the end of the month", open.len()));
    RowResult { admitted, bound, decisions: granted, broken: lab.broken, remarks: lab.remarks }
}

/// When the month ends, in seconds since 1970.
fn month_end(caller: &mut Caller) -> i64 {
    let answer: Value =
        serde_json::from_str(&caller.get("/v1/usage?client_key=k0").unwrap_or_default()).unwrap_or_default();
    let rules = answer.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    let budget = rules.iter().find(|rule| rule.get("rule").and_then(Value::as_str) == Some("budget"));
    budget.and_then(|rule| rule.get("reset_at")?.as_i64()).expect("a quota that is reset")
}

/// Every key has a row of the month that ended, as it was, and one of the new month.
fn expect_rows_of_periods(
    lab: &mut Lab,
    spent: &BTreeMap<(String, String), u64>,
    renewed: &BTreeMap<(String, String), u64>,
) {
    let keys = (0..KEYS).map(|key| (format!("k{key}"), "budget".to_owned()));
    let mut expected: Vec<(String, u64)> = Vec::new();
    for place in keys {
        let of = |usage: &BTreeMap<(String, String), u64>| (place.0.clone(), usage.get(&place).copied().unwrap_or(0));
        expected.extend([of(spent), of(renewed)]);
    }
    let found = |lab: &Lab| {
        let rows = rows(lab, 0);
        let budgets = rows.iter().filter(|row| row.get("rule_id").and_then(Value::as_str) == Some("budget"));
        let row = |row: &Value| {
            let text = |name: &str| Some(row.get(name)?.as_str()?.to_owned());
            Some((text("client_key")?, text("period_end")?, row.get("used")?.as_u64()?))
        };
        let mut budgets: Vec<_> = budgets.filter_map(row).collect();
        budgets.sort();
        budgets.into_iter().map(|(key, _, used)| (key, used)).collect::<Vec<_>>()
    };
    let written = patience::try_until(WRITTEN_WITHIN, || found(lab) == expected);
    let shown = if written.is_none() { format!("{:?} instead of {expected:?}", found(lab)) } else { String::new() };
    lab.expect(written.is_some(), || format!("the history says {shown}"));
}

/// Reserves, and returns the receipt.
fn reserve(caller: &mut Caller, key: &str, tokens: u64) -> Option<String> {
    let ask = format!(r#"{{"client_key":"{key}","endpoint":"/metered","costs":{{"tokens":{tokens}}}}}"#);
    let answer = caller.post("/v1/reserve", &ask).ok()?;
    Some(answer.get("reservation")?.as_str()?.to_owned())
}

/// What a fault may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultLoss {
    Nothing,
    /// The last lines of the log of a node.
    LogOfNode,
    /// Writes that the store had answered.
    Writes,
}

/// Two nodes with the rules, a database, and five slots that are held.
fn begin(lab: &mut Lab, store: &str, size: ReservingSize) {
    let text = format!("{}{}", rules::file(EXACT), reserving_rules(size));
    std::fs::write(lab.directory().join("rules.yaml"), text).expect("a file of rules");
    let database = format!("sqlite:{}", lab.directory().join("limits.db").display());
    lab.add_arguments(&["--db", &database, "--usage-plain-keys", "true"]);
    lab.fleet(store, 2);
    let mut holder = Caller::connect(lab.nodes[0].at).expect("a node that runs");
    let held = (0..7).filter(|_| hold(&mut holder)).count();
    lab.expect(held == 5, || format!("{held} slots of 5 were held"));
}

fn conclude(mut lab: Lab, size: ReservingSize, ledgers: &BTreeMap<String, KeyLedger>, loss: FaultLoss) -> RowResult {
    let ReservingSize { budget: bound, granted_min, .. } = size;
    let Some(node) = (0..lab.nodes.len()).find(|node| lab.nodes[*node].is_alive()) else { panic!("no node runs") };
    let mut caller = Caller::connect(lab.nodes[node].at).expect("a node that runs");
    let back = patience::try_until(STORE_PATIENCE, || hold(&mut caller));
    lab.expect(back.is_some(), || "no slot came back".to_owned());
    let touched = touch(&mut caller);
    let used = usage(&mut lab, &mut caller);
    let mut admitted = 0;
    for (key, ledger) in ledgers {
        let [budget, yearly] = ["budget", "yearly"].map(|rule| used.get(&(key.clone(), rule.to_owned())).copied());
        let (Some(budget), Some(yearly)) = (budget, yearly) else {
            lab.broken.push(format!("{key}: no usage"));
            continue;
        };
        admitted = admitted.max(budget);
        lab.expect(budget <= bound, || format!("{key}: {budget} tokens of {bound}"));
        lab.expect(budget == yearly, || format!("{key}: {budget} in one bucket and {yearly} in the other"));
        let mut bounds = ledger.bounds;
        bounds.certain(i128::from(touched.contains(key)));
        if loss == FaultLoss::Writes {
            bounds.low = 0;
        }
        lab.expect(bounds.admit(budget), || format!("{key}: {budget} used, {} to {}", bounds.low, bounds.high));
    }
    expect_history(&mut lab, node, &used);
    expect_logs(&mut lab, node, loss);
    let sum = |of: fn(&KeyLedger) -> u64| ledgers.values().map(of).sum::<u64>();
    let (granted, denied, open) = (sum(|own| own.granted), sum(|own| own.denied), sum(|own| own.open));
    lab.remark(format!("{granted} reservations, {denied} denied, {open} calls left open"));
    lab.expect(granted >= granted_min, || format!("only {granted} reservations"));
    RowResult { admitted, bound, decisions: granted + denied + open, broken: lab.broken, remarks: lab.remarks }
}

/// Asks for one token of every key, and returns the keys that got it: a node that was killed may not have written the row
/// of its last charge, which the next answer of the store corrects.
fn touch(caller: &mut Caller) -> BTreeSet<String> {
    let mut touched = BTreeSet::new();
    for key in (0..KEYS).map(|key| format!("k{key}")) {
        let ask = format!(r#"{{"client_key":"{key}","endpoint":"/metered","costs":{{"tokens":1}}}}"#);
        let mut allowed = None;
        patience::try_until(STORE_PATIENCE, || {
            let answer = caller.post("/v1/reserve", &ask).unwrap_or_default();
            let is_of_store = answer.get("mode").and_then(Value::as_str) == Some("store");
            allowed = answer.get("allowed").and_then(Value::as_bool).filter(|_| is_of_store);
            allowed.is_some()
        });
        if allowed == Some(true) {
            touched.insert(key);
        }
    }
    touched
}

/// What the store says of every key and rule.
fn usage(lab: &mut Lab, caller: &mut Caller) -> BTreeMap<(String, String), u64> {
    let mut used = BTreeMap::new();
    for key in (0..KEYS).map(|key| format!("k{key}")) {
        let page = caller.get(&format!("/v1/usage?client_key={key}")).unwrap_or_default();
        let answer: Value = serde_json::from_str(&page).unwrap_or_default();
        for rule in answer.get("rules").and_then(Value::as_array).into_iter().flatten() {
            let of = |name: &str| rule.get(name);
            if let (Some(name), Some(units)) = (of("rule").and_then(Value::as_str), of("used").and_then(Value::as_u64))
            {
                used.insert((key.clone(), name.to_owned()), units);
            }
        }
    }
    lab.expect(!used.is_empty(), || "the store says nothing of usage".to_owned());
    used
}

/// Rows of the history.
fn rows(lab: &Lab, node: usize) -> Vec<Value> {
    let token = std::fs::read_to_string(lab.directory().join("admin-token")).unwrap_or_default();
    let page = lab.nodes[node].admin_get("/v1/usage?limit=1000", token.trim());
    let answer: Value = serde_json::from_str(&page).unwrap_or_default();
    answer.get("usage").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Bucket and usage, by client and rule.
fn history(lab: &Lab, node: usize) -> BTreeMap<(String, String), (String, u64)> {
    let rows = rows(lab, node);
    let row = |row: &Value| {
        let text = |name: &str| Some(row.get(name)?.as_str()?.to_owned());
        Some(((text("client_key")?, text("rule_id")?), (text("bucket")?, row.get("used")?.as_u64()?)))
    };
    rows.iter().filter_map(row).collect()
}

/// The history comes to say what the store says, to the unit.
fn expect_history(lab: &mut Lab, node: usize, used: &BTreeMap<(String, String), u64>) {
    let quotas = used.iter().filter(|(place, _)| ["budget", "yearly"].contains(&place.1.as_str()));
    let expected: BTreeMap<(String, String), u64> = quotas.map(|(place, units)| (place.clone(), *units)).collect();
    let found = |lab: &Lab| -> BTreeMap<(String, String), u64> {
        history(lab, node).into_iter().map(|(place, (_, units))| (place, units)).collect()
    };
    let written = patience::try_until(WRITTEN_WITHIN, || found(lab) == expected);
    let shown = if written.is_none() { format!("{:?} instead of {expected:?}", found(lab)) } else { String::new() };
    lab.expect(written.is_some(), || format!("the history says {shown}"));
}

/// The logs of all nodes say what the history says. A node that was killed did not write the end of its log.
fn expect_logs(lab: &mut Lab, node: usize, loss: FaultLoss) {
    let rows = history(lab, node);
    for node in &mut lab.nodes {
        node.end();
    }
    if loss != FaultLoss::Nothing {
        return;
    }
    let logs: Vec<PathBuf> = lab.nodes.iter().map(|node| node.log.clone()).collect();
    match UsageLedger::of_logs(logs.iter().map(PathBuf::as_path)) {
        Err(what) => lab.broken.push(what),
        Ok(ledger) => {
            let of_bucket: BTreeMap<&str, u64> =
                rows.values().map(|(bucket, units)| (bucket.as_str(), *units)).collect();
            let places =
                ledger.usage.keys().filter_map(|place| Some((place.clone(), *of_bucket.get(place.0.as_str())?)));
            let found: BTreeMap<_, _> = places.collect();
            lab.expect(found.len() == rows.len(), || {
                format!("{} buckets in logs, {} in rows", found.len(), rows.len())
            });
            lab.broken.extend(ledger.differences(&found));
            let exact = ledger.usage.values().filter(|bounds| bounds.is_exact()).count();
            let doubt = ledger.usage.values().map(|bounds| bounds.high - bounds.low).max().unwrap_or(0);
            let buckets = ledger.usage.len();
            lab.remark(format!("{exact} of {buckets} buckets exact by the logs, the others within {doubt} units"));
        }
    }
}
