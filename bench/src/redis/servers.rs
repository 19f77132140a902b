//! Whole servers on one Redis, over HTTP: Tollgate, envoyproxy/ratelimit, limitador.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::Context as _;
use tempfile::TempDir;
use tollgate_load::{Pace, Request, Target};

use super::exact::KEYS;
use super::round::Times;
use super::server::Redis;
use crate::cores::Cores;
use crate::http::field::Candidate;
use crate::http::prepare::{Programs, on_path};
use crate::http::round::{Order, Runner, Standings};
use crate::http::rules;
use crate::http::server::{Ready, Server, free_address};
use crate::report::{Bound, Report, progress};

const CONNECTIONS: usize = 64;

pub const TOLLGATE: &str = "Tollgate, exact";
const RATELIMIT: &str = "envoyproxy/ratelimit";
const LIMITADOR: &str = "limitador, redis";
const LIMITADOR_CACHED: &str = "limitador, redis_cached";

/// All who could be started, and why others could not.
struct Field<'a> {
    redis: &'a Redis,
    cores: &'a Cores,
    candidates: Vec<Candidate>,
    absent: Vec<String>,
    folder: TempDir,
}

/// Races whoever is there.
pub fn run(
    redis: &Redis,
    cores: &Cores,
    tollgate: Option<&Path>,
    times: &Times,
    report: &mut Report,
) -> anyhow::Result<Standings> {
    let mut field = Field { redis, cores, candidates: Vec::new(), absent: Vec::new(), folder: tempfile::tempdir()? };
    field.start(tollgate)?;
    let absent = match field.absent.as_slice() {
        [] => String::new(),
        absent => format!("\n\nNot measured: {}.", absent.join("; ")),
    };
    report.section(
        "Servers on the same Redis, over HTTP",
        &format!(
            "{CONNECTIONS} connections, closed loop, one limit per user, 100 k users, everything allowed. Server and \
             Redis share the servers' core, so the rate is what both manage together.{absent}"
        ),
    );
    let order = Order { connections: CONNECTIONS, pace: Pace::Closed, warm_up: times.warm_up, duration: times.round };
    let runners: Vec<Runner<'_>> = field.candidates.iter().map(|candidate| Runner::new(candidate, order)).collect();
    let standings = Standings::race(&runners, times.rounds);
    tell(&field, &standings, report);
    redis.flush();
    Ok(standings)
}

fn tell(field: &Field<'_>, standings: &Standings, report: &mut Report) {
    let row = |candidate: &Candidate| {
        let name = candidate.name;
        let median = |figure: fn(&crate::http::round::Round) -> f64| standings.sample(name, figure).median();
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
    report.table(&heads, &field.candidates.iter().map(row).collect::<Vec<_>>());
    let (foreign, stolen) = standings.worst_noise();
    report.note(&format!("In the worst round others took {foreign:.2} cores, and the hypervisor {stolen:.2}."));
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

impl Field<'_> {
    fn start(&mut self, tollgate: Option<&Path>) -> anyhow::Result<()> {
        let programs = Programs::new()?;
        let ours = match tollgate {
            Some(program) => Ok(program.to_owned()),
            None => programs.build("tollgate", "tollgate"),
        };
        let ours = ours.and_then(|program| self.tollgate(&program));
        self.excuse(TOLLGATE, ours);
        let theirs = programs.ratelimit().and_then(|program| self.ratelimit(&program));
        self.excuse(RATELIMIT, theirs);
        for (name, storage) in [(LIMITADOR, "redis"), (LIMITADOR_CACHED, "redis_cached")] {
            let theirs = self.limitador(name, storage);
            self.excuse(name, theirs);
        }
        Ok(())
    }

    fn tollgate(&mut self, program: &Path) -> anyhow::Result<()> {
        // One unit a minute comes back: a bucket once made stays for the whole run.
        let rules = "rules:\n  - { name: orders, match: { endpoint: '/api/orders', tier: free }, limit: { requests: 1, \
                     window: 60s, burst: 1000000 } }\n";
        let rules = self.write("rules.yaml", rules)?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--rules").arg(rules).args(["--http", "127.0.0.1:0", "--admin", "off"]);
        // All users are new at first, and none of them is meant to share a bucket.
        command.args(["--store", &self.redis.url(), "--new-keys-per-second", "1000000"]);
        self.join(TOLLGATE, command, Ready::Says, Request::post("/v1/check").body(rules::CHECK))
    }

    fn ratelimit(&mut self, program: &Path) -> anyhow::Result<()> {
        let rules = "domain: bench\ndescriptors:\n  - key: user_id\n    rate_limit: { unit: minute, requests_per_unit: \
                     1000000000 }\n";
        self.write("runtime/ratelimit/config/bench.yaml", rules)?;
        let http = free_address()?;
        let mut command = Command::new(program);
        let port = |name: &str, port: u16| (name.to_owned(), port.to_string());
        let ports = [port("PORT", http.port()), port("GRPC_PORT", free_address()?.port())];
        command.envs(ports).envs([port("DEBUG_PORT", free_address()?.port())]);
        command.env("RUNTIME_ROOT", self.folder.path().join("runtime")).env("RUNTIME_SUBDIRECTORY", "ratelimit");
        command.env("REDIS_URL", format!("127.0.0.1:{}", self.redis.port())).env("REDIS_SOCKET_TYPE", "tcp");
        command.envs([("USE_STATSD", "false"), ("LOG_LEVEL", "error"), ("RUNTIME_WATCH_ROOT", "false")]);
        command.envs(["HOST", "GRPC_HOST", "DEBUG_HOST"].map(|name| (name, "127.0.0.1")));
        let body = r#"{"domain":"bench","descriptors":[{"entries":[{"key":"user_id","value":"{key}"}]}]}"#;
        self.join(RATELIMIT, command, Ready::Listens(http), Request::post("/json").body(body))
    }

    fn limitador(&mut self, name: &'static str, storage: &str) -> anyhow::Result<()> {
        let program = on_path("limitador-server").context("not on PATH")?;
        let limits = "- namespace: bench\n  max_value: 1000000000\n  seconds: 60\n  conditions: []\n  variables: \
                      [\"descriptors[0].user_id\"]\n";
        let limits = self.write("limits.yaml", limits)?;
        let (http, rls) = (free_address()?, free_address()?);
        let mut command = Command::new(program);
        command.args(["--http-ip", "127.0.0.1", "--http-port", &http.port().to_string()]);
        command.args(["--rls-ip", "127.0.0.1", "--rls-port", &rls.port().to_string()]);
        command.arg(limits).args([storage, &self.redis.url()]);
        let body = r#"{"namespace":"bench","values":{"user_id":"{key}"},"delta":1}"#;
        self.join(name, command, Ready::Listens(http), Request::post("/check_and_report").body(body))
    }

    fn join(&mut self, name: &'static str, command: Command, ready: Ready, request: Request) -> anyhow::Result<()> {
        progress(&format!("  starting {name}"));
        let log = self.folder.path().join(format!("{}.log", name.replace([' ', '/'], "-")));
        let server = Rc::new(Server::start(command, ready, self.cores, &log)?);
        let target = Target::parse(&format!("http://{}/", server.address()))?;
        let backend = Some(self.redis.pid());
        self.candidates.push(Candidate { name, server, backend, target, request, keys: KEYS, checks: 1 });
        Ok(())
    }

    fn excuse(&mut self, name: &str, started: anyhow::Result<()>) {
        if let Err(error) = started {
            progress(&format!("  {name}: not measured: {error:#}"));
            self.absent.push(format!("{name} ({error:#})"));
        }
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.path().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }
}
