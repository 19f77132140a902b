//! Whether usage of quotas survives a restart of the server. Limits of minutes need not; a month of usage does.

use tollgate_resp::RespValue;

use super::finding::Finding;
use crate::client::connection::RedisConnection;
use crate::client::context::RedisContext;
use crate::client::info::Info;

/// The settings of a server that decide what a restart loses; empty where they are unknown.
#[derive(Debug, Default)]
struct PersistenceSettings {
    appendfsync: String,
    save: Option<String>,
}

/// What a restart or a crash of the server costs quotas.
pub(super) async fn look(context: &RedisContext, connection: &mut RedisConnection, info: &Info) -> Finding {
    // A user of its own has no right to CONFIG, and every refusal is an entry in the server's log of them.
    let has_own_user = context.config.url.login.as_ref().is_some_and(|login| login.user.is_some());
    let settings = match has_own_user {
        true => PersistenceSettings::default(),
        false => PersistenceSettings {
            appendfsync: setting(connection, "appendfsync").await.unwrap_or_default(),
            save: setting(connection, "save").await,
        },
    };
    finding(info, &settings)
}

async fn setting(connection: &mut RedisConnection, name: &str) -> Option<String> {
    let reply = connection.call(&[b"CONFIG", b"GET", name.as_bytes()]).await.ok()?;
    let value = match &reply {
        RespValue::Map(pairs) => pairs.first().map(|(_, value)| value),
        reply => reply.array()?.get(1),
    };
    String::from_utf8(value?.text()?.to_vec()).ok()
}

fn finding(info: &Info, settings: &PersistenceSettings) -> Finding {
    let help = "fine without quotas; with quotas, set appendonly yes";
    if info.number("aof_enabled") != Some(1) {
        let what = match settings.save.as_deref() {
            Some("") => "a restart of the server loses all usage of quotas (appendonly no, no save)".to_owned(),
            Some(points) => {
                format!(
                    "a restart of the server loses usage of quotas since its last snapshot (appendonly no, save {points})"
                )
            }
            None => "a restart of the server loses usage of quotas since its last snapshot (appendonly no)".to_owned(),
        };
        return Finding::warning(what, help);
    }
    if info.field("aof_last_write_status").is_some_and(|status| status != "ok") {
        let what = "the server cannot write its log of changes (aof_last_write_status)";
        return Finding::warning(what, "look at its disk: a restart would lose usage of quotas");
    }
    match settings.appendfsync.as_str() {
        "always" => Finding::ok("usage of quotas survives a crash of the server's machine (appendfsync always)"),
        "everysec" => Finding::ok(
            "usage of quotas survives a restart; a crash of the server's machine loses a second (appendfsync everysec)",
        ),
        "no" => Finding::warning(
            "usage of quotas survives a restart; a crash of the server's machine loses what was not synced (appendfsync no)",
            "with quotas, set appendfsync everysec",
        ),
        _ => Finding::ok("usage of quotas survives a restart (appendonly yes)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(aof: u8, status: &str, appendfsync: &str, save: Option<&str>) -> String {
        let text = format!("aof_enabled:{aof}\r\naof_last_write_status:{status}\r\n");
        let info = Info::of(&RespValue::Text(text.into())).unwrap();
        let settings = PersistenceSettings { appendfsync: appendfsync.to_owned(), save: save.map(str::to_owned) };
        finding(&info, &settings).to_string()
    }

    #[test]
    fn what_a_restart_costs_quotas_is_reported() {
        let cases = [
            (found(0, "ok", "everysec", Some("")), "warning: a restart of the server loses all usage of quotas"),
            (found(0, "ok", "everysec", Some("3600 1")), "since its last snapshot (appendonly no, save 3600 1)"),
            (found(0, "ok", "", None), "since its last snapshot (appendonly no); fine without quotas"),
            (found(1, "ok", "always", Some("")), "ok: usage of quotas survives a crash of the server's machine"),
            (found(1, "ok", "everysec", Some("")), "loses a second (appendfsync everysec)"),
            (found(1, "ok", "no", Some("")), "warning: usage of quotas survives a restart;"),
            (found(1, "ok", "", None), "ok: usage of quotas survives a restart (appendonly yes)"),
            (found(1, "err", "always", Some("")), "warning: the server cannot write"),
        ];
        for (found, expected) in cases {
            assert!(found.contains(expected), "{found}");
        }
    }
}
