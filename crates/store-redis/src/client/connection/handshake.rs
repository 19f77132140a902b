//! Opening a connection: authentication, scripts and the server's time, in one pipeline.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use tokio::time::timeout;
use tollgate_core::Time;
use tollgate_resp::{RespValue, write_request};

use super::{ConnectError, ConnectionLost, RedisConnection};
use crate::client::address::HostPort;
use crate::client::config::RedisConfig;
use crate::client::context::RedisContext;
use crate::client::failure::{ErrorCode, meaning_of};
use crate::client::url::Login;

/// What the server reported.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The hash of each script, in the order they were given.
    pub(crate) hashes: Vec<Bytes>,
    /// When `TIME` was sent, when its reply arrived, and the reply.
    pub(crate) clock: (Time, Time, Time),
}

impl RedisConnection {
    /// Connects, authenticates and loads the scripts, within the connect timeout.
    pub(crate) async fn open(
        context: &RedisContext,
        at: &HostPort,
        places: &[SocketAddr],
        scripts: &[&str],
    ) -> Result<(RedisConnection, Handshake), ConnectError> {
        let opening = async {
            let mut connection = RedisConnection::connect(context, at, places).await?;
            let greeting = greet(&mut connection, context, scripts).await?;
            Ok((connection, greeting))
        };
        timeout(context.config.connect_timeout.into(), opening).await.unwrap_or_else(|_| Err(too_late(context)))
    }

    /// Connects and authenticates, and does nothing else: for Sentinels and lookups.
    pub(crate) async fn open_bare(
        context: &RedisContext,
        at: &HostPort,
        login: Option<&Login>,
    ) -> Result<RedisConnection, ConnectError> {
        let opening = async {
            let places = resolve(at).await?;
            let mut connection = RedisConnection::connect(context, at, &places).await?;
            log_in(&mut connection, login).await?;
            Ok(connection)
        };
        timeout(context.config.connect_timeout.into(), opening).await.unwrap_or_else(|_| Err(too_late(context)))
    }
}

/// One step of the pipeline.
enum Step {
    Login,
    Database,
    Name,
    Load(usize),
    Time,
}

/// Sends all steps, then reads the replies.
async fn greet(
    connection: &mut RedisConnection,
    context: &RedisContext,
    scripts: &[&str],
) -> Result<Handshake, ConnectError> {
    let config = &context.config;
    let (mut out, mut steps) = (Vec::new(), Vec::new());
    if let Some(login) = &config.url.login {
        write_login(&mut out, login);
        steps.push(Step::Login);
    }
    if config.url.db != 0 {
        write_request(&mut out, &[b"SELECT", itoa::Buffer::new().format(config.url.db).as_bytes()]);
        steps.push(Step::Database);
    }
    write_request(&mut out, &[b"CLIENT", b"SETNAME", client_name(config).as_bytes()]);
    steps.push(Step::Name);
    for (index, script) in scripts.iter().enumerate() {
        write_request(&mut out, &[b"SCRIPT", b"LOAD", script.as_bytes()]);
        steps.push(Step::Load(index));
    }
    write_request(&mut out, &[b"TIME"]);
    steps.push(Step::Time);

    let sent = context.clock.now();
    connection.write(&out, &mut 0).await.map_err(|error| broken(ConnectionLost::Closed(error)))?;
    let mut hashes = vec![Bytes::new(); scripts.len()];
    let mut clock = (Time::ZERO, Time::ZERO, Time::ZERO);
    for step in steps {
        let reply = connection.reply().await.map_err(broken)?;
        match step {
            Step::Login => accepted(&reply, "AUTH")?,
            Step::Database => accepted(&reply, "SELECT")?,
            // The name is a courtesy for `CLIENT LIST`. A server with too many clients refuses its first request, which
            // may be this one.
            Step::Name if ErrorCode::of(&reply) == Some(ErrorCode::MaxClients) => accepted(&reply, "connect")?,
            Step::Name => {}
            Step::Load(index) => {
                accepted(&reply, "SCRIPT LOAD")?;
                let (RespValue::Text(hash), Some(place)) = (reply, hashes.get_mut(index)) else {
                    return Err(ConnectError::Strange("SCRIPT LOAD did not return a hash".to_owned()));
                };
                *place = hash;
            }
            Step::Time => {
                accepted(&reply, "TIME")?;
                let told =
                    time(&reply).ok_or_else(|| ConnectError::Strange("TIME did not return a time".to_owned()))?;
                clock = (sent, context.clock.now(), told);
            }
        }
    }
    Ok(Handshake { hashes, clock })
}

/// Authenticates, if there are credentials.
async fn log_in(connection: &mut RedisConnection, login: Option<&Login>) -> Result<(), ConnectError> {
    let Some(login) = login else { return Ok(()) };
    let mut out = Vec::new();
    write_login(&mut out, login);
    connection.write(&out, &mut 0).await.map_err(|error| broken(ConnectionLost::Closed(error)))?;
    accepted(&connection.reply().await.map_err(broken)?, "AUTH")
}

fn write_login(out: &mut Vec<u8>, Login { user, password }: &Login) {
    let password = password.reveal().as_bytes();
    match user {
        Some(user) => write_request(out, &[b"AUTH", user.as_bytes(), password]),
        None => write_request(out, &[b"AUTH", password]),
    }
}

fn broken(broken: ConnectionLost) -> ConnectError {
    match broken {
        ConnectionLost::Closed(error) => {
            ConnectError::Unreachable(format!("the server closed the connection: {error}"))
        }
        ConnectionLost::OutOfStep(what) => ConnectError::Strange(what.to_owned()),
    }
}

/// Errors are reported by their code and the step, never by their text: that may repeat the request.
fn accepted(reply: &RespValue, step: &'static str) -> Result<(), ConnectError> {
    match ErrorCode::of(reply) {
        Some(ErrorCode::Other) if step == "AUTH" => Err(ConnectError::ErrorReply(ErrorCode::WrongPass, step)),
        Some(ErrorCode::Other) if step == "SELECT" => {
            Err(ConnectError::Strange("there is no such database".to_owned()))
        }
        Some(ErrorCode::Other) => {
            Err(ConnectError::Strange(format!("{} at {step}", meaning_of(ErrorCode::Other, reply))))
        }
        Some(code) => Err(ConnectError::ErrorReply(code, step)),
        None => Ok(()),
    }
}

/// The reply to `TIME`: seconds and microseconds.
pub(crate) fn time(reply: &RespValue) -> Option<Time> {
    let [seconds, micros] = reply.array()? else { return None };
    let part = |value: &RespValue| u64::try_from(value.integer()?).ok();
    let nanos = part(seconds)?.checked_mul(1_000_000_000)?.checked_add(part(micros)?.checked_mul(1000)?)?;
    Some(Time::from_nanos(nanos))
}

/// `tollgate-NODE` without blanks and non-printing characters, which the server refuses.
fn client_name(config: &RedisConfig) -> String {
    let node = config.node.chars().map(|letter| if letter.is_ascii_graphic() { letter } else { '-' });
    format!("tollgate-{}", node.take(64).collect::<String>())
}

/// The addresses of a host.
pub(crate) async fn resolve(at: &HostPort) -> Result<Vec<SocketAddr>, ConnectError> {
    if let Ok(address) = at.host.parse() {
        return Ok(vec![SocketAddr::new(address, at.port)]);
    }
    let unknown = |error: io::Error| ConnectError::Unreachable(format!("{} has no address: {error}", at.host));
    Ok(tokio::net::lookup_host((at.host.as_str(), at.port)).await.map_err(unknown)?.collect())
}

fn too_late(context: &RedisContext) -> ConnectError {
    ConnectError::Late(format!("no answer within {}", context.config.connect_timeout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::url::StoreUrl;

    #[test]
    fn client_names_hold_only_accepted_characters() {
        let mut config = RedisConfig::new("redis://h".parse::<StoreUrl>().unwrap());
        config.node = "a b\nc".to_owned();
        assert_eq!(client_name(&config), "tollgate-a-b-c");
    }

    #[test]
    fn a_time_is_seconds_and_microseconds() {
        let text = |text: &'static str| RespValue::Text(Bytes::from_static(text.as_bytes()));
        assert_eq!(time(&RespValue::Array(vec![text("7"), text("5")])), Some(Time::from_nanos(7_000_005_000)));
        assert_eq!(time(&RespValue::Array(vec![text("7")])), None);
        assert_eq!(time(&RespValue::Array(vec![text("-7"), text("5")])), None);
        assert_eq!(time(&text("7")), None);
    }
}
