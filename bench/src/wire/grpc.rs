//! gRPC: the servers, and the targets of Tollgate.

use std::path::Path;
use std::process::Command;

use tollgate_load::{LoadRequest, ProtobufMessage};

use super::{Mode, RULES, Race, resp, speed};
use crate::cores::Cores;
use crate::report::BenchReport;
use crate::servers::lineup::Lineup;
use crate::servers::peers::{THROTTLECRAB_ROOM, limitador, ratelimit, tollgate};
use crate::servers::server::{Ready, free_address};

/// The floor.
pub const ECHO: &str = "tonic echo (floor)";
const TOLLGATE: &str = "Tollgate, ShouldRateLimit";
const TOLLGATE_CHECK: &str = "Tollgate, Check";
const THROTTLECRAB: &str = "throttlecrab-server, Throttle";
const LIMITADOR: &str = "limitador-server, ShouldRateLimit";
const RATELIMIT: &str = "envoyproxy/ratelimit on Redis, ShouldRateLimit";
const GUBERNATOR: &str = "gubernator, GetRateLimits";

pub const INTRODUCTION: &str = "Unary calls over HTTP/2 in clear, headers by their number once the server knows them. The \
                                echo is tonic with its own server and no limiter: it decodes Envoy's request and answers \
                                with as many bytes as we do. envoyproxy/ratelimit shares its core with the Redis that it \
                                needs; its own CPU time alone is in the table.";

const MANY: Mode = Mode { name: "gRPC, 50 connections of 1 stream", connections: 50, pipeline: 1 };
const FEW: Mode = Mode { name: "gRPC, 4 connections of 25 streams", connections: 4, pipeline: 25 };

/// The cost of a proof: 40 % of the limits.
const OF_A_MILLION: u64 = 400_000;
const OF_A_BILLION: u64 = 400_000_000;

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Starts all servers that are available.
pub fn start<'a>(cores: &'a Cores, tollgate: Option<&Path>) -> anyhow::Result<Lineup<'a>> {
    let mut lineup = Lineup::new(cores)?;
    let echo = lineup.programs.build("tollgate-bench", "tonic_echo")?;
    let server = lineup.server(ECHO, Command::new(echo), Ready::Says)?;
    lineup.join(ECHO, &server, &format!("grpc://{}", server.address()), should_rate_limit("default", 1))?;
    let ours = lineup.programs.tollgate(tollgate).and_then(|program| start_tollgate(&mut lineup, &program));
    lineup.excuse("Tollgate", ours);
    lineup.attempt(&[
        (THROTTLECRAB, start_throttlecrab),
        (LIMITADOR, start_limitador),
        (RATELIMIT, start_ratelimit),
        (GUBERNATOR, start_gubernator),
    ]);
    Ok(lineup)
}

/// Races them, and compares Tollgate with its targets.
pub fn run(race: &Race<'_>, report: &mut BenchReport) {
    let ours = [TOLLGATE, TOLLGATE_CHECK];
    for mode in [MANY, FEW] {
        let peak = race.peak(mode, report);
        for name in ours {
            race.cost(&format!("{}: CPU per check, {name}, of the echo", mode.name), 1.1, name, &peak, report);
        }
        race.cost(&format!("{}: the same, the goal beyond", mode.name), 0.5, TOLLGATE, &peak, report);
        for peer in [THROTTLECRAB, LIMITADOR] {
            speed(&format!("{}: throughput, of {peer}", mode.name), 1.0, (TOLLGATE, peer), &peak, report);
        }
        let half = race.half(mode, &ours, &peak, report);
        race.tail(&format!("{}: p99.9 at half of the peak, of the echo", mode.name), TOLLGATE, &half, report);
    }
}

/// What Envoy asks: one descriptor of one entry, and so many hits.
fn should_rate_limit(domain: &str, hits: u64) -> LoadRequest {
    let entry = ProtobufMessage::new().text(1, "user_id").text(2, "{key}");
    let descriptor = ProtobufMessage::new().message(1, &entry);
    let message = ProtobufMessage::new().text(1, domain).message(2, &descriptor).number(3, hits);
    LoadRequest::post(SHOULD_RATE_LIMIT).body(message)
}

fn start_tollgate(lineup: &mut Lineup<'_>, program: &Path) -> anyhow::Result<()> {
    let (rules, address) = (lineup.write("rules.yaml", RULES)?, free_address()?);
    let mut command = tollgate(program, &rules);
    command.args(["--grpc", &address.to_string()]);
    let server = lineup.server("Tollgate", command, Ready::Listens(address))?;
    let attribute = ProtobufMessage::new().text(1, "user_id").text(2, "{key}");
    let message = || ProtobufMessage::new().message(2, &attribute);
    let check = |message: ProtobufMessage| LoadRequest::post("/tollgate.v1.Tollgate/Check").body(message);
    let target = format!("grpc://{address}");
    let (request, proof) = (should_rate_limit("default", 1), should_rate_limit("default", OF_A_MILLION));
    lineup.join_proven(TOLLGATE, &server, &target, request, &proof)?;
    // Another client: the first proof has spent its limit.
    let attribute = ProtobufMessage::new().text(1, "user_id").text(2, "proof");
    let proof = check(ProtobufMessage::new().message(2, &attribute).number(3, OF_A_MILLION));
    lineup.join_proven(TOLLGATE_CHECK, &server, &target, check(message()), &proof).map(drop)
}

fn start_throttlecrab(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let address = free_address()?;
    let mut command = Command::new(lineup.programs.throttlecrab()?);
    command.args(["--grpc", "--grpc-host", "127.0.0.1", "--grpc-port", &address.port().to_string()]);
    command.args(THROTTLECRAB_ROOM);
    let server = lineup.server(THROTTLECRAB, command, Ready::Listens(address))?;
    let request = |quantity| {
        let limits = [(2, 1_000_000), (3, 1_000_000), (4, 60), (5, quantity)];
        let message = ProtobufMessage::new().text(1, "{key}");
        let message = limits.iter().fold(message, |message, (field, value)| message.number(*field, *value));
        LoadRequest::post("/throttlecrab.RateLimiter/Throttle").body(message)
    };
    let target = format!("grpc://{address}");
    lineup.join_proven(THROTTLECRAB, &server, &target, request(1), &request(OF_A_MILLION)).map(drop)
}

fn start_limitador(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let address = free_address()?;
    let command = limitador(lineup, free_address()?, address, &["memory"])?;
    let server = lineup.server(LIMITADOR, command, Ready::Listens(address))?;
    let (request, proof) = (should_rate_limit("bench", 1), should_rate_limit("bench", OF_A_BILLION));
    lineup.join_proven(LIMITADOR, &server, &format!("grpc://{address}"), request, &proof).map(drop)
}

fn start_ratelimit(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let (address, redis_at) = (free_address()?, free_address()?);
    let command = ratelimit(lineup, free_address()?, address, redis_at.port())?;
    let mut redis = resp::redis(lineup)?;
    redis.args(["--port", &redis_at.port().to_string()]);
    let redis = lineup.server("redis-server", redis, Ready::Listens(redis_at))?;
    let server = lineup.server(RATELIMIT, command, Ready::Listens(address))?;
    let (request, proof) = (should_rate_limit("bench", 1), should_rate_limit("bench", OF_A_BILLION));
    let candidate = lineup.join_proven(RATELIMIT, &server, &format!("grpc://{address}"), request, &proof)?;
    candidate.backend = Some(redis.id());
    lineup.keep(redis);
    Ok(())
}

fn start_gubernator(lineup: &mut Lineup<'_>) -> anyhow::Result<()> {
    let address = free_address()?;
    let mut command = Command::new(lineup.programs.gubernator()?);
    command.env("GUBER_GRPC_ADDRESS", address.to_string()).env("GUBER_HTTP_ADDRESS", free_address()?.to_string());
    command.env("GUBER_ADVERTISE_ADDRESS", address.to_string());
    // A fleet of one: with no discovery at all it finds no owner of a key, and answers errors that look like admissions.
    let members = free_address()?.to_string();
    command.env("GUBER_MEMBERLIST_ADDRESS", &members).env("GUBER_MEMBERLIST_KNOWN_NODES", &members);
    command.env("GUBER_PEER_DISCOVERY_TYPE", "member-list");
    command.envs([("GUBER_LOG_LEVEL", "error"), ("GUBER_CACHE_SIZE", "200000")]);
    let server = lineup.server(GUBERNATOR, command, Ready::Listens(address))?;
    let request = |hits| {
        let limits = [(3, hits), (4, 1_000_000_000), (5, 60_000)]; // hits, limit, milliseconds
        let asked = ProtobufMessage::new().text(1, "bench").text(2, "{key}");
        let asked = limits.iter().fold(asked, |message, (field, value)| message.number(*field, *value));
        LoadRequest::post("/pb.gubernator.V1/GetRateLimits").body(ProtobufMessage::new().message(1, &asked))
    };
    lineup.join_proven(GUBERNATOR, &server, &format!("grpc://{address}"), request(1), &request(OF_A_BILLION)).map(drop)
}
