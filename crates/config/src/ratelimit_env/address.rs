//! Addresses in the variables of envoyproxy/ratelimit.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::environment::RatelimitEnv;

/// The listen address; `None` if the port is invalid.
pub(super) fn listen(host: &str, port: &str) -> Option<String> {
    port.parse::<u16>().ok()?;
    Some(match host {
        "localhost" => format!("127.0.0.1:{port}"),
        host if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    })
}

/// The URL of the store; `None` if REDIS_URL is not set.
pub(super) fn store(env: &RatelimitEnv<'_>) -> Result<Option<String>, String> {
    let Some(url) = env.get("REDIS_URL") else { return Ok(None) };
    let socket = env.or("REDIS_SOCKET_TYPE", "unix");
    if url.starts_with('/') {
        return Err("REDIS_URL: a Unix domain socket cannot be the store; write HOST:PORT, with REDIS_SOCKET_TYPE=tcp"
            .to_owned());
    }
    let tls = if env.is_true("REDIS_TLS") || socket == "tls" { "s" } else { "" };
    let login = env.get("REDIS_AUTH").map(login).unwrap_or_default();
    if let Some((scheme, rest)) = url.split_once("://") {
        if !login.is_empty() && rest.contains('@') {
            return Err("REDIS_AUTH: REDIS_URL has a password already; omit one of them".to_owned());
        }
        let tls = if matches!(scheme, "redis" | "redis-cluster" | "redis-sentinel") { tls } else { "" };
        return Ok(Some(format!("{scheme}{tls}://{login}{rest}")));
    }
    match env.or("REDIS_TYPE", "SINGLE").to_ascii_uppercase().as_str() {
        "SINGLE" => Ok(Some(format!("redis{tls}://{login}{url}"))),
        "CLUSTER" => Ok(Some(format!("redis-cluster{tls}://{login}{}", hosts(url)))),
        "SENTINEL" => match url.split_once(',') {
            Some((master, sentinels)) => {
                Ok(Some(format!("redis-sentinel{tls}://{login}{}/{}", hosts(sentinels), master.trim())))
            }
            None => Err("REDIS_URL: behind Sentinels it is MASTER,HOST:PORT,HOST:PORT".to_owned()),
        },
        other => Err(format!("REDIS_TYPE={other}: it is SINGLE, SENTINEL or CLUSTER")),
    }
}

fn hosts(list: &str) -> String {
    list.split(',').map(str::trim).collect::<Vec<_>>().join(",")
}

/// The credentials of `password` or `user:password`.
fn login(auth: &str) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    match auth.split_once(':') {
        Some((user, password)) => format!("{}:{}@", encoded(user), encoded(password)),
        None => format!(":{}@", encoded(auth)),
    }
}
