//! quick
#![expect(clippy::print_stdout)]
mod keys;
mod peers;
mod race;
mod statistics;
mod stopwatch;
use peers::*;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let only = args.get(2).cloned();
    let rounds: usize = args.get(3).map_or(9, |n| n.parse().unwrap());
    for n in args[1].split(',').map(|n| n.parse::<usize>().unwrap()) {
        let (t, g, gs, c, s, f) =
            (Tollgate::new(), Governor::new(), GovernorStd::new(), Throttlecrab::new(), Sharded::new(), Floor::new());
        let all: Vec<(&str, &dyn Candidate)> = vec![
            ("tollgate", &t),
            ("governor", &g),
            ("governor-std", &gs),
            ("throttlecrab", &c),
            ("sharded", &s),
            ("floor", &f),
        ];
        let all: Vec<_> = all
            .into_iter()
            .filter(|(name, _)| only.as_deref().is_none_or(|o| o.is_empty() || o.split(',').any(|o| o == *name)))
            .collect();
        let fill = keys::all(n);
        for (_, p) in &all {
            p.run(&fill);
        }
        drop(fill);
        let lap = 1_000_000;
        let warm = n.clamp(100_000, 1_000_000);
        for threads in [1, 2] {
            let course = race::Course {
                warm_up: keys::random(n, warm, 7),
                laps: (0..threads).map(|i| keys::random(n, lap, 1234567 + i)).collect(),
            };
            let times = race::race(&all, &course, rounds);
            for t in &times {
                println!(
                    "{n:>9} x{threads} {:<14} {:7.1} ns ±{:4.1}%  {:6.2} M/s cpu {:6.2} wall noisy {}/{}",
                    t.name,
                    t.cpu.median(),
                    t.cpu.spread_percent(),
                    t.throughput.median(),
                    t.throughput_wall.median(),
                    t.noisy,
                    t.rounds
                );
            }
            if only.is_none() {
                println!(
                    "   ratio to governor {:.3}  to floor {:.3}",
                    times[0].cpu.over(&times[1].cpu).median(),
                    times[0].cpu.over(&times[5].cpu).median()
                );
            }
        }
    }
}
