//! Checks one server.

use std::sync::Arc;

use tollgate_core::{Span, Time};

use super::finding::Finding;
use super::{persistence, rights};
use crate::client::address::HostPort;
use crate::client::clock::ClockEstimate;
use crate::client::connection::{ConnectError, Handshake, RedisConnection, parse_time, resolve};
use crate::client::context::RedisContext;
use crate::client::failure::ErrorCode;
use crate::client::info::Info;
use crate::client::url::Layout;
use crate::store::script::Script;

/// Round trips of which the median is taken.
const TRIPS: usize = 21;
/// A longer round trip leaves little of the 25 ms that a decision may take.
const SLOW: Span = Span::from_millis(5);
/// A larger difference between clocks makes logs hard to compare; decisions are not affected.
const APART: Span = Span::from_secs(1);

/// Checks the server at this address; it serves the keys of `identity`.
pub(super) async fn look(context: &Arc<RedisContext>, at: &HostPort, identity: u32, findings: &mut Vec<Finding>) {
    let opened = match resolve(at).await {
        Ok(places) => RedisConnection::open(context, at, &places, &Script::texts()).await,
        Err(error) => Err(error),
    };
    let (mut connection, greeting) = match opened {
        Ok(opened) => opened,
        Err(why) => return findings.push(unreached(at, &why)),
    };
    findings.push(Finding::ok(reached(context, at)));
    let Some(info) = info(&mut connection).await else {
        let help = format!("the user needs INFO; give it all rights we need: {}", rights::acl_user("USER", "PASSWORD"));
        return findings.push(Finding::problem(format!("{at} does not tell about itself"), help));
    };
    findings.push(version(&info));
    findings.push(eviction(context, &info));
    findings.extend(membership(context, &info));
    findings.push(durability(&info));
    findings.push(persistence::look(context, &mut connection, &info).await);
    findings.extend(times(context, &mut connection, &greeting).await);
    let now = greeting.clock.2;
    findings.push(match rights::look(&mut connection, &greeting.hashes, now, identity).await {
        Ok(()) => Finding::ok("the user may do everything we need; all scripts ran"),
        Err(finding) => finding,
    });
}

fn reached(context: &RedisContext, at: &HostPort) -> String {
    let url = &context.config.url;
    let tls = match (url.tls, context.config.insecure_tls, context.config.skip_hostname) {
        (false, ..) => "without TLS",
        (true, false, false) => "over TLS, certificate verified",
        (true, false, true) => "over TLS, certificate verified but for the host's name",
        (true, true, _) => "over TLS, certificate NOT verified",
    };
    let user = match &url.login {
        None => "without a password".to_owned(),
        Some(login) => format!("as user {}", login.user.as_deref().unwrap_or("default")),
    };
    format!("{at} reached {tls}, {user}")
}

pub(crate) fn unreached(at: &HostPort, why: &ConnectError) -> Finding {
    let help = match why {
        ConnectError::Unreachable(_) | ConnectError::Late(_) => {
            "is the server running, and may this machine reach it?".to_owned()
        }
        ConnectError::Untrusted(_) => "name the authority that signed its certificate with `ca`".to_owned(),
        ConnectError::Strange(_) => "is that a Redis or Valkey server, and does it want TLS (rediss://)?".to_owned(),
        ConnectError::ErrorReply(ErrorCode::NoAuth, _) => {
            "put the password into the URL: redis://user:password@host".into()
        }
        ConnectError::ErrorReply(ErrorCode::WrongPass, _) => "look at user and password in the URL".to_owned(),
        ConnectError::ErrorReply(ErrorCode::NoPerm, _) => {
            format!("give it all rights we need: {}", rights::acl_user("USER", "PASSWORD"))
        }
        ConnectError::ErrorReply(ErrorCode::MaxClients, _) => {
            "raise maxclients, or close what is not needed".to_owned()
        }
        ConnectError::ErrorReply(..) => "wait, or look into the server's log".to_owned(),
    };
    Finding::problem(format!("{at}: {why}"), help)
}

async fn info(connection: &mut RedisConnection) -> Option<Info> {
    Info::of(&connection.call(&[b"INFO"]).await.ok()?)
}

fn version(info: &Info) -> Finding {
    let (name, version) = match info.field("valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", info.field("redis_version").unwrap_or("of unknown version")),
    };
    let major = info.field("redis_version").and_then(|text| text.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(7..) => Finding::ok(format!("{name} {version}")),
        _ => Finding::problem(format!("{name} {version} is too old"), "use Redis 7.0 or newer, or Valkey"),
    }
}

fn eviction(context: &RedisContext, info: &Info) -> Finding {
    let policy = info.field("maxmemory_policy").unwrap_or("unknown");
    let bounded = info.number("maxmemory").is_some_and(|bytes| bytes > 0);
    let help = "set maxmemory-policy noeviction: an evicted bucket is a limit or a quota that starts anew";
    match (policy, bounded) {
        ("noeviction", true) => Finding::ok("buckets are never evicted (noeviction)"),
        ("noeviction", false) => Finding::ok("buckets are never evicted (noeviction; maxmemory is not set)"),
        (_, true) if context.config.require_noeviction => {
            Finding::problem(format!("the server evicts buckets when its memory is full ({policy})"), help)
        }
        (_, true) => Finding::warning(format!("the server evicts buckets when its memory is full ({policy})"), help),
        (_, false) => {
            Finding::warning(format!("the server would evict buckets ({policy}) if maxmemory were set"), help)
        }
    }
}

/// Whether the server fits the scheme of the URL.
fn membership(context: &RedisContext, info: &Info) -> Vec<Finding> {
    let mut findings = Vec::new();
    let clustered = info.number("cluster_enabled") == Some(1);
    match (&context.config.url.layout, clustered) {
        (Layout::Cluster, false) => {
            findings.push(Finding::problem("the server belongs to no cluster", "use redis:// for a single server"));
        }
        (Layout::Single | Layout::Sentinel { .. }, true) => {
            findings
                .push(Finding::problem("the server belongs to a cluster", "use redis-cluster:// to reach all of it"));
        }
        _ => {}
    }
    if info.is_replica() {
        findings.push(Finding::problem("the server is a replica", "use the primary, or redis-sentinel:// to find it"));
    }
    findings
}

/// What survives a restart or a failover.
fn durability(info: &Info) -> Finding {
    let replicas = info.number("connected_slaves").unwrap_or(0);
    let persistent = match (info.number("aof_enabled") == Some(1), info.number("rdb_last_save_time").unwrap_or(0)) {
        (true, _) => "writes are logged (AOF)",
        (false, _) => "no AOF: a restart loses what was not in the last snapshot",
    };
    match replicas {
        0 => Finding::warning(
            format!("no replica; {persistent}"),
            "fine for limits, which forget anyway; add a replica to survive the loss of this server",
        ),
        1 => Finding::ok(format!("1 replica; {persistent}")),
        many => Finding::ok(format!("{many} replicas; {persistent}")),
    }
}

/// The round-trip time, and the server's clock.
async fn times(context: &RedisContext, connection: &mut RedisConnection, greeting: &Handshake) -> Vec<Finding> {
    let (mut estimate, mut trips) = (ClockEstimate::new(), Vec::new());
    let (sent, received, told) = greeting.clock;
    estimate.observe(sent, received, told);
    for _ in 0..TRIPS {
        let sent = context.clock.now();
        let Ok(reply) = connection.call(&[b"TIME"]).await else { break };
        let received = context.clock.now();
        if let Some(told) = parse_time(&reply) {
            estimate.observe(sent, received, told);
        }
        trips.push(received.since(sent));
    }
    trips.sort_unstable();
    let mut findings = Vec::new();
    if let Some(median) = trips.get(trips.len() / 2) {
        let what = format!("a round trip takes {} (median of {})", rounded(*median), trips.len());
        findings.push(if *median < SLOW {
            Finding::ok(what)
        } else {
            Finding::warning(what, "decisions wait that long: keep the store near, or use leased limits")
        });
    }
    let now = context.clock.now();
    if let Some(theirs) = estimate.about(now) {
        findings.push(clocks(now, theirs));
    }
    findings
}

fn clocks(ours: Time, theirs: Time) -> Finding {
    let (apart, which) = if theirs > ours { (theirs.since(ours), "ahead") } else { (ours.since(theirs), "behind") };
    let what = format!("the server's clock is {} {which} of this machine's", rounded(apart));
    match apart > APART {
        true => Finding::warning(what, "decisions do not mind, but logs will differ: let NTP set both clocks"),
        false => Finding::ok(what),
    }
}

/// Rounded to microseconds: finer digits are noise.
fn rounded(span: Span) -> Span {
    Span::from_nanos(span.nanos() / 1000 * 1000)
}
