//! Checks how several servers form a store.

use std::sync::Arc;

use tollgate_resp::RespValue;

use super::finding::Finding;
use super::server;
use crate::client::address::HostPort;
use crate::client::connection::{RedisConnection, SLOT_MAP_BYTES};
use crate::client::context::RedisContext;
use crate::client::failure::ErrorCode;
use crate::client::slot::SLOTS;
use crate::store::key::BucketKey;

/// Asks every Sentinel for the primary, then checks the primary.
pub(super) async fn sentinels(
    context: &Arc<RedisContext>,
    hosts: &[HostPort],
    master: &str,
    findings: &mut Vec<Finding>,
) {
    let mut primaries: Vec<HostPort> = Vec::new();
    for host in hosts {
        match primary_by(context, host, master).await {
            Ok(primary) => {
                findings.push(Finding::ok(format!("Sentinel {host} names {primary} as primary of {master}")));
                if !primaries.contains(&primary) {
                    primaries.push(primary);
                }
            }
            Err(finding) => findings.push(finding),
        }
    }
    if hosts.len() < 3 {
        let what = format!("{} Sentinel(s) named in the URL", hosts.len());
        findings.push(Finding::warning(what, "name at least three, so that losing one changes nothing"));
    }
    match primaries.as_slice() {
        [] => {
            findings.push(Finding::problem("no Sentinel names a primary", "look at `sentinel monitor` in their files"))
        }
        [primary] => server::look(context, primary, 0, findings).await,
        several => {
            let named: Vec<String> = several.iter().map(HostPort::to_string).collect();
            let what = format!("the Sentinels disagree: {}", named.join(", "));
            findings.push(Finding::problem(what, "wait for the failover to end; if it does not, look at their logs"));
        }
    }
}

pub(crate) async fn primary_by(context: &RedisContext, host: &HostPort, master: &str) -> Result<HostPort, Finding> {
    let login = context.config.url.sentinel_login.as_ref();
    let mut connection =
        RedisConnection::open_bare(context, host, login).await.map_err(|why| server::unreached(host, &why))?;
    let reply = connection.call(&[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", master.as_bytes()]).await;
    let reply = reply.map_err(|why| Finding::problem(format!("Sentinel {host}: {why}"), "look into its log"))?;
    if let Some(code) = ErrorCode::of(&reply) {
        let help = "is that a Sentinel? Their port is usually 26379";
        return Err(Finding::problem(format!("Sentinel {host}: {}", code.meaning()), help));
    }
    let named = reply.array().and_then(|parts| {
        let [host, port] = parts else { return None };
        Some(HostPort::new(std::str::from_utf8(host.text()?).ok()?, u16::try_from(port.integer()?).ok()?))
    });
    named.ok_or_else(|| {
        let what = format!("Sentinel {host} knows no master {master:?}");
        Finding::problem(what, "use the name of `sentinel monitor` in its file")
    })
}

/// First and last slot of a range.
pub(crate) type Range = (u16, u16);

/// Asks the nodes for the slot map, then checks every primary.
pub(super) async fn cluster(context: &Arc<RedisContext>, hosts: &[HostPort], findings: &mut Vec<Finding>) {
    let mut map = None;
    for host in hosts {
        match slots_by(context, host).await {
            Ok(found) if map.is_none() => map = Some(found),
            Ok(_) => {}
            Err(finding) => findings.push(finding),
        }
    }
    let Some(map) = map else { return };
    let covered: u32 = map.iter().map(|(_, (first, last))| u32::from(last.saturating_sub(*first)) + 1).sum();
    let mut primaries: Vec<&HostPort> = Vec::new();
    for (primary, _) in &map {
        if !primaries.contains(&primary) {
            primaries.push(primary);
        }
    }
    let what = format!("a cluster of {} primaries that have {covered} of {SLOTS} slots", primaries.len());
    findings.push(match covered == u32::from(SLOTS) {
        true => Finding::ok(what),
        false => Finding::problem(what, "repair it: redis-cli --cluster fix HOST:PORT"),
    });
    for primary in primaries {
        let ranges: Vec<Range> = map.iter().filter(|(host, _)| host == primary).map(|(_, range)| *range).collect();
        server::look(context, primary, identity_within(&ranges), findings).await;
    }
}

pub(crate) async fn slots_by(context: &RedisContext, host: &HostPort) -> Result<Vec<(HostPort, Range)>, Finding> {
    let login = context.config.url.login.as_ref();
    let mut connection =
        RedisConnection::open_bare(context, host, login).await.map_err(|why| server::unreached(host, &why))?;
    let reply = connection.call_for(&[b"CLUSTER", b"SLOTS"], SLOT_MAP_BYTES).await;
    let reply = reply.map_err(|why| Finding::problem(format!("{host}: {why}"), "look into its log"))?;
    if let RespValue::Error(text) = &reply {
        let what = format!("{host} does not tell its slots: {}", String::from_utf8_lossy(text));
        return Err(Finding::problem(what, "use redis:// for a single server"));
    }
    let entries = reply.array().unwrap_or_default().iter();
    Ok(entries.filter_map(|entry| slot_entry(entry, &host.host)).collect())
}

/// `[first, last, [host, port, …], …]`: the first node is the primary.
fn slot_entry(entry: &RespValue, answered: &str) -> Option<(HostPort, Range)> {
    let [first, last, primary, ..] = entry.array()? else { return None };
    let slot = |value: &RespValue| u16::try_from(value.integer()?).ok();
    let [host, port, ..] = primary.array()? else { return None };
    let host = host.text().and_then(|host| std::str::from_utf8(host).ok()).filter(|host| !host.is_empty());
    let place = HostPort::new(host.unwrap_or(answered), slot(port)?);
    Some((place, (slot(first)?, slot(last)?)))
}

/// An identity whose keys are in one of these slots.
fn identity_within(ranges: &[Range]) -> u32 {
    BucketKey::identity_in(|slot| ranges.iter().any(|(first, last)| (*first..=*last).contains(&slot))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::slot::slot_of;

    #[test]
    fn an_identity_is_found_for_every_primary() {
        for first in (0..SLOTS).step_by(1000) {
            let identity = identity_within(&[(first, first + 20)]);
            let slot = slot_of(&BucketKey::new(identity, Default::default()).tag());
            assert!((first..=first + 20).contains(&slot), "{slot} for {first}");
        }
    }

    #[test]
    fn the_map_is_read_as_redis_tells_it() {
        let text = |text: &'static str| RespValue::Text(text.into());
        let node = RespValue::Array(vec![text("10.0.0.1"), RespValue::Integer(7000), text("id")]);
        let entry = RespValue::Array(vec![RespValue::Integer(0), RespValue::Integer(99), node]);
        assert_eq!(slot_entry(&entry, "h"), Some((HostPort::new("10.0.0.1", 7000), (0, 99))));
        let nameless = RespValue::Array(vec![text(""), RespValue::Integer(7000)]);
        let entry = RespValue::Array(vec![RespValue::Integer(0), RespValue::Integer(99), nameless]);
        assert_eq!(slot_entry(&entry, "h"), Some((HostPort::new("h", 7000), (0, 99))));
        assert_eq!(slot_entry(&RespValue::Nil, "h"), None);
    }
}
