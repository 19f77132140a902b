//! From request to charges, for clients that have a plan and a calendar of their own, and for clients unknown.

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;

use tollgate_core::{Attribute, Clock, Request, Time};
use tollgate_rules::{ClientSpec, PlanSchedule};
use tollgate_ruleset::{Charges, CompileOptions, Directory, NamespaceRules, RuleSet};
use tollgate_store::MonotonicClock;

/// Look-ups of a run.
pub const ROUNDS: u64 = 40_960;
const CLIENTS: usize = 1_000_000;
/// Clients that ask, spread over all of them.
const ASKING: usize = 4096;

const RULES: &str = "key_by: api_key
plans:
  free:
    default: true
    limits:
      - { name: requests, limit: { requests: 20, window: 1m } }
      - { name: monthly, quota: { amount: 1000, every: month } }
  pro:
    extends: free
    limits:
      - { name: requests, limit: { requests: 200, window: 1m } }
";
const ZONES: [&str; 24] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Paris",
    "Europe/Madrid",
    "Europe/Warsaw",
    "Europe/Istanbul",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "America/Toronto",
    "America/Mexico_City",
    "Asia/Tokyo",
    "Asia/Seoul",
    "Asia/Shanghai",
    "Asia/Singapore",
    "Asia/Kolkata",
    "Asia/Dubai",
    "Asia/Jakarta",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Africa/Johannesburg",
];

/// Runs a case, and prints the time of the fastest of some rounds to the standard error.
pub fn run(case: &str) -> Result<(), Box<dyn Error>> {
    let file = tollgate_rules::read("rules", RULES).map_err(|report| report.to_string())?;
    let options = CompileOptions::reproducible();
    let mut builder = Directory::builder(options.secret, 64);
    for number in 0..if case == "lookup-of-none" { 0 } else { CLIENTS } {
        builder.client(&client(case, number));
    }
    let directories = [builder.finish()];
    let part = NamespaceRules { file: &file, rules: &[], directories: &directories };
    let rules = RuleSet::assemble(&[part], &options).map_err(|problems| format!("{problems:?}"))?;
    let keys: Vec<String> = (0..ASKING).map(|number| key(number * (CLIENTS / ASKING))).collect();
    let requests: Vec<Request<'_>> = keys.iter().map(|key| Request::new().with(Attribute::ApiKey, key)).collect();
    let wall = Time::from_nanos(1_795_000_000_000_000_000);
    let mut charges = Charges::default();
    assert_eq!(look_up(&rules, &requests, wall, &mut charges), 2 * ASKING); // fills the caches
    let rounds = ROUNDS as usize / ASKING;
    let clock = MonotonicClock::new();
    let mut fastest = u64::MAX;
    assert_eq!(
        measured(|| (0..rounds)
            .map(|_| {
                let start = clock.now();
                let found = look_up(&rules, &requests, wall, &mut charges);
                fastest = fastest.min(clock.now().nanos() - start.nanos());
                found
            })
            .sum()),
        2 * ASKING * rounds
    );
    writeln!(std::io::stderr().lock(), "{case}: {} ns", fastest / ASKING as u64)?;
    Ok(())
}

fn look_up(rules: &RuleSet, requests: &[Request<'_>], wall: Time, charges: &mut Charges) -> usize {
    let mut found = 0;
    for request in requests {
        charges.clear();
        found += rules.charges(black_box(request), wall, charges).map_or(0, |()| charges.charges.len());
    }
    found
}

fn key(number: usize) -> String {
    format!("client-{number:06}")
}

fn client(case: &str, number: usize) -> ClientSpec {
    let client_key = format!("key:{}", key(number));
    let tier = Some(["free", "paid", "gold"].into_iter().cycle().nth(number % 3).unwrap_or_default().to_owned());
    if case == "lookup-of-tiers" {
        return ClientSpec { client_key, tier, ..ClientSpec::default() };
    }
    let zone = ZONES.get(number % ZONES.len()).copied().unwrap_or_default().to_owned();
    let attributes = vec![("time_zone".to_owned(), zone), ("anchor".to_owned(), (number % 31 + 1).to_string())];
    let plan = Some(PlanSchedule::always(if number.is_multiple_of(2) { "free" } else { "pro" }));
    ClientSpec { client_key, plan, attributes, ..ClientSpec::default() }
}

#[inline(never)]
fn measured(work: impl FnOnce() -> usize) -> usize {
    work()
}
