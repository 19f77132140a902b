//! What a bucket takes of Redis's memory.

use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tollgate_engine::Engine;
use tollgate_store::Store;

use super::callers::Callers;
use super::server::Redis;
use super::tally::CheckAnswer;
use super::tollgate;
use crate::report::{BenchReport, Bound, short};

/// Callers that fill the store.
const CALLERS: u64 = 512;
const MOST: f64 = 150.0;

/// Buckets that last longer than the run, by algorithm.
const LIMITS: [(&str, &str); 2] = [
    ("GCRA", "{ requests: 1, window: 1h, burst: 1000 }"),
    ("fixed window", "{ algorithm: fixed_window, requests: 1000, window: 1d }"),
];

/// Fills an empty Redis with buckets of each kind; answers the bytes of the first kind.
pub fn run(redis: &Redis, runtime: &Runtime, users: u64, report: &mut BenchReport) -> anyhow::Result<f64> {
    report.section(
        "Redis memory",
        &format!(
            "One request of each of {} users; what Redis's data grew by, by the number of keys it then had.",
            short(users as usize)
        ),
    );
    let (mut rows, mut first) = (Vec::new(), None);
    for (name, limit) in LIMITS {
        redis.flush();
        let rules = format!("rules:\n  - {{ name: users, key_by: user_id, limit: {limit} }}\n");
        let engine = runtime.block_on(tollgate::exact(&redis.url(), tollgate::rules(&rules)?))?;
        let before = redis.figures();
        let failed = runtime.block_on(fill(engine.clone(), users));
        let grown = redis.figures().since(&before);
        let bytes = grown.memory as f64 / grown.keys.max(1) as f64;
        rows.push(vec![name.to_owned(), grown.keys.to_string(), format!("{bytes:.1}"), failed.to_string()]);
        report.number(&format!("bytes of Redis memory per bucket, {name}"), Bound::AtMost(MOST), bytes);
        report.number(&format!("checks that made no bucket, {name}"), Bound::AtMost(0.0), failed as f64);
        if let Some(troubles) = tollgate::troubles(engine.store()) {
            report.note(&format!("What kept the store from deciding, {name}: {troubles}."));
        }
        first = first.or(Some(bytes));
    }
    report.table(&["algorithm", "keys", "bytes per key", "errors"], &rows);
    redis.flush();
    Ok(first.unwrap_or(f64::NAN))
}

/// Every user once. Answers how many were not answered by the store.
async fn fill<S: Store + 'static>(engine: Arc<Engine<S>>, users: u64) -> u64 {
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let callers = Callers::new(&engine, users);
        tasks.spawn(async move {
            let mut failed = 0;
            for user in (caller..users).step_by(CALLERS as usize) {
                failed += u64::from(callers.check(user).await != CheckAnswer::Allowed);
            }
            failed
        });
    }
    tasks.join_all().await.into_iter().sum()
}
