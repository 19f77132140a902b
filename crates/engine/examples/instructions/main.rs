//! Instructions per check, reservation and look-up, counted by callgrind: figures that a busy machine does not change.
//!
//! Without arguments it lists its cases, with the name of a case it runs that one: the functions named `measured` are
//! what counts. `script/bench instructions` runs each under callgrind, and `check.rs` over an older commit beside it.

mod cases;
mod check;
mod directory;
mod reserve;

use std::error::Error;

use self::cases::CountedCase;

const METERED: [CountedCase; 6] = [
    CountedCase {
        name: "check-metered",
        title: "a check, one rule, of output tokens",
        rounds: check::ROUNDS,
        base: "check",
    },
    CountedCase { name: "reserve-one", title: "a reservation of one meter", rounds: reserve::ROUNDS, base: "-" },
    CountedCase {
        name: "reserve-four",
        title: "a reservation of three meters and a slot",
        rounds: reserve::ROUNDS,
        base: "reserve-one",
    },
    CountedCase {
        name: "lookup-of-none",
        title: "from request to charges by a plan's limit and quota, no clients",
        rounds: directory::ROUNDS,
        base: "-",
    },
    CountedCase {
        name: "lookup-of-tiers",
        title: "the same, a million clients with a tier",
        rounds: directory::ROUNDS,
        base: "lookup-of-none",
    },
    CountedCase {
        name: "lookup-of-plans",
        title: "the same, a million clients with a plan, a zone and an anchor",
        rounds: directory::ROUNDS,
        base: "lookup-of-tiers",
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        None => cases::list(&check::PLAIN.into_iter().chain(METERED).collect::<Vec<_>>()),
        Some("check-metered") => {
            check::run("check-metered", |key| check::request(key).with_costs(&[("output_tokens", 1)]))
        }
        Some(case) if case.starts_with("check") => check::run(case, check::request),
        Some(case) if case.starts_with("reserve") => reserve::run(case),
        Some(case) => directory::run(case),
    }
}
