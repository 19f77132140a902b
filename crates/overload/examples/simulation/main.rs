//! Offered load against goodput and latency: one upstream with a knee, under every algorithm.
//!
//! `cargo run --release -p tollgate-overload --example simulation` prints the tables of `bench/results`. Time is
//! simulated and the seed is fixed: the same table on every machine.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

mod events;
mod gateway;
mod report;
mod simulation;
mod upstream;

use report::{Peak, Row};
use simulation::{Load, Outcome, Simulation};
use tollgate_overload::{AdaptiveAlgorithm, AdaptiveConfig, AdaptiveLimit, QueueConfig, QueueDiscipline};

const TIMES: [f64; 4] = [0.8, 1.2, 2.0, 10.0];

/// What stands in front of the upstream.
struct Protection {
    name: &'static str,
    /// None admits everything.
    limit: Option<AdaptiveLimit>,
    discipline: QueueDiscipline,
}

fn main() {
    let peak = find_peak(Load::steady);
    println!("peak without protection: {:.0} requests/s, p99 {:.0} ms\n", peak.goodput, peak.p99_ms);
    println!("offered load, in multiples of the peak; the upstream stays as it is\n");
    report::head();
    for protection in protections() {
        for times in TIMES {
            row(&protection, times, &peak, Load::steady(peak.goodput * times));
        }
    }
    println!(
        "\nthe upstream takes twice as long from second 30 on; measured from second 60, offered 4 times what \
         it can still do\n"
    );
    report::head();
    for protection in protections() {
        let halved = Peak { goodput: peak.goodput / 2.0, p99_ms: peak.p99_ms * 2.0 };
        row(&protection, 4.0, &halved, Load::slowed(halved.goodput * 4.0));
    }
    println!("\nhalf of the peak, then at once ten times the peak; the first ten seconds of that\n");
    report::head();
    for protection in protections() {
        row(&protection, 10.0, &peak, Load::surge(peak.goodput / 2.0, peak.goodput * 10.0));
    }
    println!("\nten times as many workers that each take ten times as long; a minute with a measurement\n");
    report::head();
    let wide = find_peak(Load::wide);
    for protection in protections() {
        for times in [0.8, 4.0] {
            row(&protection, times, &wide, Load::wide(wide.goodput * times));
        }
    }
    println!("\nthe upstream stays as it is; measured after ten minutes of overload\n");
    report::head();
    for protection in protections().into_iter().filter(|protection| protection.limit.is_some()) {
        row(&protection, 2.0, &peak, Load::long(peak.goodput * 2.0));
    }
}

fn row(protection: &Protection, times: f64, peak: &Peak, load: Load) {
    let outcome = run(protection, load);
    report::row(&Row { name: protection.name, times, outcome: &outcome, peak });
}

fn run(protection: &Protection, load: Load) -> Outcome {
    let queue = QueueConfig { discipline: protection.discipline, ..QueueConfig::default() };
    Simulation::new(protection.limit.clone(), queue, load).run()
}

/// The highest goodput of the upstream alone, and its latency there.
fn find_peak(load: fn(f64) -> Load) -> Peak {
    let alone = Protection { name: "none", limit: None, discipline: QueueDiscipline::Fifo };
    let outcomes = (10..=20).map(|step| run(&alone, load(simulation::CAPACITY * f64::from(step) / 20.0)));
    let best = outcomes.max_by(|a, b| a.goodput().total_cmp(&b.goodput())).expect("several loads");
    Peak { goodput: best.goodput(), p99_ms: best.p99_ms() }
}

fn protections() -> Vec<Protection> {
    let with = |name, config| {
        let limit = Some(AdaptiveLimit::new(config));
        Protection { name, limit, discipline: QueueDiscipline::Codel }
    };
    let of = |name, algorithm| with(name, AdaptiveConfig::of(algorithm));
    let [vegas, gradient] = [AdaptiveAlgorithm::Vegas, AdaptiveAlgorithm::Gradient].map(AdaptiveConfig::of);
    vec![
        Protection { name: "none", limit: None, discipline: QueueDiscipline::Fifo },
        with("fixed, 24", AdaptiveConfig::fixed(24)),
        of("aimd", AdaptiveAlgorithm::Aimd),
        with("vegas, by sample", AdaptiveConfig { window: None, ..vegas }),
        with("vegas", vegas),
        of("gradient2", AdaptiveAlgorithm::Gradient2),
        of("envoy", AdaptiveAlgorithm::Envoy),
        with("gradient", gradient),
        Protection { discipline: QueueDiscipline::Lifo, ..with("gradient, lifo", gradient) },
        Protection { discipline: QueueDiscipline::Fifo, ..with("gradient, fifo", gradient) },
    ]
}
