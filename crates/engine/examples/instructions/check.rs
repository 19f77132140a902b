//! One check of one rule. Uses only what an engine without meters had: `script/bench instructions --before COMMIT` builds
//! this file over an older commit.

use std::error::Error;
use std::hint::black_box;

use tollgate_core::{Attribute, Request};
use tollgate_engine::Engine;

use crate::cases::CountedCase;

/// The cases that an engine without meters can run.
pub const PLAIN: [CountedCase; 2] = [
    CountedCase { name: "check", title: "a check, one rule, of requests", rounds: ROUNDS, base: "-" },
    CountedCase {
        name: "check-of-1000",
        title: "a check, 1,000 rules of which one matches",
        rounds: ROUNDS,
        base: "-",
    },
];

/// Checks of a run.
pub const ROUNDS: u64 = 20_480;
/// Clients, each with a bucket that exists before the count begins.
const CLIENTS: usize = 1024;

/// Runs a case, with requests that `request` makes of an API key.
pub fn run(case: &str, request: for<'a> fn(&'a str) -> Request<'a>) -> Result<(), Box<dyn Error>> {
    let mut rules = "rules:\n".to_owned();
    for number in 0..if case == "check-of-1000" { 999 } else { 0 } {
        rules +=
            &format!("  - {{ name: r{number}, match: {{ tier: t{number} }}, limit: {{ requests: 1, window: 1s }} }}\n");
    }
    let meter = if case == "check-metered" { "meter: output_tokens, " } else { "" };
    rules += &format!("  - {{ name: own, key_by: api_key, {meter}limit: {{ requests: 1000000, window: 1s }} }}\n");
    let engine = Engine::in_memory(tollgate_engine::rules_from_yaml(&rules).map_err(|report| report.to_string())?);
    let keys: Vec<String> = (0..CLIENTS).map(|number| format!("client-{number:06}")).collect();
    let requests: Vec<Request<'_>> = keys.iter().map(|key| request(key)).collect();
    assert!(requests.iter().all(|request| engine.decide_now(request).is_allowed()));
    let rounds = ROUNDS as usize / CLIENTS;
    assert_eq!(measured(|| (0..rounds).map(|_| allowed(&engine, &requests)).sum()), rounds * CLIENTS);
    Ok(())
}

fn allowed(engine: &Engine<tollgate_store::Memory>, requests: &[Request<'_>]) -> usize {
    requests.iter().filter(|request| engine.decide_now(black_box(request)).is_allowed()).count()
}

/// The request of a client.
pub fn request(key: &str) -> Request<'_> {
    Request::new().with(Attribute::ApiKey, key)
}

#[inline(never)]
fn measured(work: impl Fn() -> usize) -> usize {
    work()
}
