//! Commands for peers that several benchmarks start.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use tollgate_load::LoadRequest;

use super::lineup::Lineup;
use super::server::free_address;

/// Room for all keys, as a run would set it; and no line per request.
pub const THROTTLECRAB_ROOM: [&str; 4] = ["--store-capacity", "200000", "--log-level", "warn"];

/// Tollgate with these rules only, without a database.
pub fn tollgate(program: &Path, rules: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").arg("--rules").arg(rules).args(["--http", "127.0.0.1:0", "--admin", "off", "--db", "off"]);
    command
}

/// limitador-server on these addresses, with this storage.
pub fn limitador(lineup: &Lineup<'_>, http: SocketAddr, rls: SocketAddr, storage: &[&str]) -> anyhow::Result<Command> {
    let program = lineup.programs.found("limitador-server").context("neither on PATH nor in TOLLGATE_PEERS")?;
    let limits = "- namespace: bench\n  max_value: 1000000000\n  seconds: 60\n  conditions: []\n  variables: \
                  [\"descriptors[0].user_id\"]\n";
    let limits = lineup.write("limits.yaml", limits)?;
    let mut command = Command::new(program);
    command.args(["--http-ip", "127.0.0.1", "--http-port", &http.port().to_string()]);
    command.args(["--rls-ip", "127.0.0.1", "--rls-port", &rls.port().to_string()]).arg(limits).args(storage);
    Ok(command)
}

/// What it is asked over HTTP.
pub fn limitador_check() -> LoadRequest {
    LoadRequest::post("/check_and_report").body(r#"{"namespace":"bench","values":{"user_id":"{key}"},"delta":1}"#)
}

/// envoyproxy/ratelimit on these addresses and this Redis.
pub fn ratelimit(lineup: &Lineup<'_>, http: SocketAddr, grpc: SocketAddr, redis: u16) -> anyhow::Result<Command> {
    let program = lineup.programs.ratelimit()?;
    let rules = "domain: bench\ndescriptors:\n  - key: user_id\n    rate_limit: { unit: minute, requests_per_unit: \
                 1000000000 }\n";
    lineup.write("runtime/ratelimit/config/bench.yaml", rules)?;
    let mut command = Command::new(program);
    let ports = [("PORT", http.port()), ("GRPC_PORT", grpc.port()), ("DEBUG_PORT", free_address()?.port())];
    command.envs(ports.map(|(name, port)| (name, port.to_string())));
    command.env("RUNTIME_ROOT", lineup.folder().join("runtime")).env("RUNTIME_SUBDIRECTORY", "ratelimit");
    command.env("REDIS_URL", format!("127.0.0.1:{redis}")).env("REDIS_SOCKET_TYPE", "tcp");
    command.envs([("USE_STATSD", "false"), ("LOG_LEVEL", "error"), ("RUNTIME_WATCH_ROOT", "false")]);
    command.envs(["HOST", "GRPC_HOST", "DEBUG_HOST"].map(|name| (name, "127.0.0.1")));
    Ok(command)
}
