//! Whole servers on one Redis, over HTTP: Tollgate, envoyproxy/ratelimit, limitador.

use std::path::Path;
use std::process::Command;

use tollgate_load::{LoadPace, LoadRequest, WaitMode};

use super::exact::KEYS;
use super::round::StoreTimes;
use super::server::Redis;
use crate::cores::Cores;
use crate::http::rules;
use crate::report::{BenchReport, Bound};
use crate::servers::lineup::{Candidate, Lineup};
use crate::servers::peers::{limitador, limitador_check, ratelimit, tollgate};
use crate::servers::round::{RoundSettings, ServerRound, ServerRunner, ServerStandings};
use crate::servers::server::{Ready, free_address};

const CONNECTIONS: usize = 64;

pub const TOLLGATE: &str = "Tollgate, exact";
const RATELIMIT: &str = "envoyproxy/ratelimit";
const LIMITADOR: &str = "limitador, redis";
const LIMITADOR_CACHED: &str = "limitador, redis_cached";

/// Races the servers that are available.
pub fn run(
    redis: &Redis,
    cores: &Cores,
    tollgate: Option<&Path>,
    times: &StoreTimes,
    report: &mut BenchReport,
) -> anyhow::Result<ServerStandings> {
    let mut field = Field { redis, lineup: Lineup::new(cores)? };
    field.start(tollgate);
    report.section(
        "Servers on the same Redis, over HTTP",
        &format!(
            "{CONNECTIONS} connections, closed loop, one limit per user, 100 k users, everything allowed. Server and \
             Redis share the servers' core, so the rate is what both manage together.{}",
            field.lineup.not_measured()
        ),
    );
    let order = RoundSettings {
        connections: CONNECTIONS,
        pipeline: 1,
        pace: LoadPace::Closed,
        wait: WaitMode::Spin,
        warm_up: times.warm_up,
        duration: times.round,
    };
    let candidates = &field.lineup.candidates;
    let runners: Vec<ServerRunner<'_>> =
        candidates.iter().map(|candidate| ServerRunner::new(candidate, order)).collect();
    let standings = ServerStandings::race(&runners, times.rounds);
    tell(candidates, &standings, report);
    redis.flush();
    Ok(standings)
}

fn tell(candidates: &[Candidate], standings: &ServerStandings, report: &mut BenchReport) {
    let row = |candidate: &Candidate| {
        let name = candidate.name;
        let median = |figure: fn(&ServerRound) -> f64| standings.sample(name, figure).median();
        vec![
            name.to_owned(),
            format!("{:.1}", median(|round| round.rate) / 1e3),
            format!("{:.1}", median(|round| round.cpu)),
            format!("{:.1}", median(|round| round.backend)),
            format!("{:.1}", median(|round| round.cpu + round.backend)),
            format!("{:.0}", median(|round| round.p50)),
            format!("{:.0}", median(|round| round.p99)),
            format!("{:.1} %", median(|round| round.denied * 100.0)),
            format!("{:.0}", median(|round| round.errors as f64)),
            format!("{:.1}", candidate.server.resident() as f64 / 1e6),
        ]
    };
    let heads = [
        "server",
        "k checks/s",
        "its CPU µs",
        "Redis CPU µs",
        "both",
        "p50 µs",
        "p99 µs",
        "denied",
        "errors",
        "resident MB",
    ];
    report.table(&heads, &candidates.iter().map(row).collect::<Vec<_>>());
    standings.tell_noise(report);
    let cpu = |name: &str| standings.sample(name, |round| round.cpu);
    for peer in [LIMITADOR, LIMITADOR_CACHED].into_iter().filter(|peer| standings.has(peer)) {
        let ratio = cpu(TOLLGATE).over(&cpu(peer));
        report.ratio(&format!("own CPU per check over HTTP, of {peer}"), Bound::AtMost(1.0 / 3.0), &ratio);
    }
    if standings.has(RATELIMIT) && standings.has(TOLLGATE) {
        let ratio = cpu(TOLLGATE).over(&cpu(RATELIMIT)).median();
        report.note(&format!("Tollgate's own CPU per check is {ratio:.2} of that of {RATELIMIT}."));
    }
    report.number("servers on Redis: errors", Bound::AtMost(0.0), standings.errors() as f64);
}

/// Servers that share a Redis.
struct Field<'a> {
    redis: &'a Redis,
    lineup: Lineup<'a>,
}

impl Field<'_> {
    fn start(&mut self, tollgate: Option<&Path>) {
        let ours = self.lineup.programs.tollgate(tollgate).and_then(|program| self.tollgate(&program));
        self.lineup.excuse(TOLLGATE, ours);
        let theirs = self.ratelimit();
        self.lineup.excuse(RATELIMIT, theirs);
        for (name, storage) in [(LIMITADOR, "redis"), (LIMITADOR_CACHED, "redis_cached")] {
            let theirs = self.limitador(name, storage);
            self.lineup.excuse(name, theirs);
        }
    }

    fn tollgate(&mut self, program: &Path) -> anyhow::Result<()> {
        // One unit a minute comes back: a bucket once made stays for the whole run.
        let rules = "rules:\n  - { name: orders, match: { endpoint: '/api/orders', tier: free }, limit: { requests: 1, \
                     window: 60s, burst: 1000000 } }\n";
        let rules = self.lineup.write("rules.yaml", rules)?;
        let mut command = tollgate(program, &rules);
        // All users are new at first, and none of them is meant to share a bucket.
        command.args(["--store", &self.redis.url(), "--new-keys-per-second", "1000000"]);
        self.join(TOLLGATE, command, Ready::Says, LoadRequest::post("/v1/check").body(rules::CHECK))
    }

    fn ratelimit(&mut self) -> anyhow::Result<()> {
        let http = free_address()?;
        let command = ratelimit(&self.lineup, http, free_address()?, self.redis.port())?;
        let body = r#"{"domain":"bench","descriptors":[{"entries":[{"key":"user_id","value":"{key}"}]}]}"#;
        self.join(RATELIMIT, command, Ready::Listens(http), LoadRequest::post("/json").body(body))
    }

    fn limitador(&mut self, name: &'static str, storage: &str) -> anyhow::Result<()> {
        let http = free_address()?;
        let command = limitador(&self.lineup, http, free_address()?, &[storage, &self.redis.url()])?;
        self.join(name, command, Ready::Listens(http), limitador_check())
    }

    fn join(&mut self, name: &'static str, command: Command, ready: Ready, request: LoadRequest) -> anyhow::Result<()> {
        let server = self.lineup.server(name, command, ready)?;
        let target = format!("http://{}/", server.address());
        let candidate = self.lineup.join(name, &server, &target, request)?;
        (candidate.backend, candidate.keys) = (Some(self.redis.pid()), KEYS);
        Ok(())
    }
}
