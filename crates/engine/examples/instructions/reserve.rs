//! A reservation of one meter, and one of three meters and a slot. Each is settled outside of the count.

use std::error::Error;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate_core::{Attribute, Request};
use tollgate_engine::{Decision, Engine, Reservation, random_slot};
use tollgate_store::Memory;

/// Reservations of a run.
pub const ROUNDS: u64 = 4096;
const CLIENTS: usize = 1024;

const ONE: &str = "rules:
  - { name: output, key_by: api_key, meter: output_tokens, limit: { amount: 1000000, window: 1m } }
";
const FOUR: &str = "rules:
  - { name: requests, key_by: api_key, limit: { amount: 1000000, window: 1m } }
  - { name: input, key_by: api_key, meter: input_tokens, limit: { amount: 1000000, window: 1m } }
  - { name: output, key_by: api_key, meter: output_tokens, limit: { amount: 1000000, window: 1m } }
  - { name: streams, key_by: api_key, limit: { algorithm: concurrency, slots: 8, slot_ttl: 60s } }
";

/// Runs a case.
pub fn run(case: &str) -> Result<(), Box<dyn Error>> {
    let both = [("output_tokens", 100), ("input_tokens", 10)];
    let (rules, costs) = if case == "reserve-one" { (ONE, both.split_at(1).0) } else { (FOUR, both.as_slice()) };
    let engine = Engine::in_memory(tollgate_engine::rules_from_yaml(rules).map_err(|report| report.to_string())?);
    let keys: Vec<String> = (0..CLIENTS).map(|number| format!("client-{number:06}")).collect();
    for round in 0..=ROUNDS as usize / CLIENTS {
        for key in &keys {
            let mut request = Request::new().with(Attribute::ApiKey, key).with_costs(costs);
            request.slot = (case == "reserve-four").then(random_slot);
            // The first round makes the buckets.
            let (decision, reservation) = match round {
                0 => now(engine.reserve(&request)),
                _ => measured(&engine, &request),
            };
            assert!(decision.is_allowed());
            let reservation = reservation.ok_or("nothing was reserved")?;
            now(engine.settle_costs(reservation, &[("output_tokens", 50)]))?;
        }
    }
    Ok(())
}

#[inline(never)]
fn measured(engine: &Engine<Memory>, request: &Request<'_>) -> (Decision, Option<Reservation>) {
    now(engine.reserve(black_box(request)))
}

/// The result of a call of a store that never waits.
fn now<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("buckets in memory are never waited for"),
    }
}
