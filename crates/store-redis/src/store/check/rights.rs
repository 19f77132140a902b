//! The commands that nodes need, and whether the user may run them.

use tollgate_core::{Ask, Charge, Concurrency, Digest, FixedWindow, Gcra, Limit, Queue, Receipt, SlidingCounter};
use tollgate_core::{SlidingLog, SlotId, Span, Time};
use tollgate_resp::RespValue;
use tollgate_store::random;

use super::finding::Finding;
use crate::client::connection::RedisConnection;
use crate::client::failure::ErrorCode;
use crate::store::key::BucketKey;
use crate::store::script::{Batch, BatchReply, Returns, Script, ScriptAnswer, ScriptCall, ScriptRequest};

/// Every command that nodes send or scripts run: an ACL user needs these and `~tg:*`, and nothing else. `SELECT` is for
/// databases other than 0, `ASKING` and `CLUSTER SLOTS` for clusters.
pub const COMMANDS: &[&str] = &[
    "asking",
    "client|setname",
    "cluster|slots",
    "del",
    "eval",
    "evalsha",
    "exists",
    "get",
    "info",
    "lindex",
    "llen",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "mget",
    "pexpire",
    "pexpireat",
    "rpush",
    "script|load",
    "select",
    "set",
    "time",
    "type",
    "unlink",
    "zadd",
    "zcard",
    "zcount",
    "zrange",
    "zrangebyscore",
    "zrem",
    "zremrangebyscore",
    "zscore",
];

/// The command that creates a user with exactly these permissions, and with two optional pairs: `publish` and
/// `subscribe`, without which nodes notice changed rules a little later and show operators their own traffic only, and
/// `pttl` and `scan`, which find buckets that lost their expiry.
pub fn acl_user(name: &str, password: &str) -> String {
    let commands: Vec<String> = COMMANDS.iter().map(|command| format!("+{command}")).collect();
    format!("ACL SETUSER {name} on >{password} ~tg:* &tg:* {} +publish +subscribe +pttl +scan", commands.join(" "))
}

/// Runs every command and script on keys of this identity.
pub(super) async fn look(
    connection: &mut RedisConnection,
    hashes: &[bytes::Bytes],
    now: Time,
    identity: u32,
) -> Result<(), Finding> {
    plain(connection, identity).await?;
    scripts(connection, hashes, now, identity).await
}

/// Runs the plain commands.
async fn plain(connection: &mut RedisConnection, identity: u32) -> Result<(), Finding> {
    let tag = BucketKey::new(identity, Digest::default()).tag();
    let key = format!("tg:{{{}}}check{:016x}", String::from_utf8_lossy(&tag), random::unpredictable());
    let key = key.as_bytes();
    for parts in trials(key) {
        let reply = connection.call(&parts).await.map_err(|broken| interrupted(&broken))?;
        let name = parts.first().map(|name| String::from_utf8_lossy(name)).unwrap_or_default();
        accepted(&reply, &name)?;
    }
    Ok(())
}

/// Every command outside of scripts and connection set-up, in an order in which all of them work and leave no keys.
fn trials(key: &[u8]) -> Vec<Vec<&[u8]>> {
    let lines = "INFO server|TIME|SET KEY 1 PX 1000 NX GET|GET KEY|MGET KEY|TYPE KEY|EXISTS KEY|PEXPIRE KEY 1000|DEL KEY\
        |RPUSH KEY a b c|PEXPIREAT KEY 99999999999999|LLEN KEY|LINDEX KEY 0|LRANGE KEY 0 1|LSET KEY 0 x|LREM KEY 1 x\
        |LTRIM KEY 0 0|UNLINK KEY|ZADD KEY 1 a|PEXPIRE KEY 1000|ZCOUNT KEY 0 1|ZRANGE KEY 0 1|ZRANGEBYSCORE KEY 0 1\
        |ZSCORE KEY a|ZREMRANGEBYSCORE KEY -inf (1|ZCARD KEY|ZREM KEY a|UNLINK KEY";
    let part = |word: &'static str| if word == "KEY" { key } else { word.as_bytes() };
    lines.split('|').map(|line| line.split_whitespace().map(part).collect()).collect()
}

/// Runs every script with every kind of limit, by hash and by text.
async fn scripts(
    connection: &mut RedisConnection,
    hashes: &[bytes::Bytes],
    now: Time,
    identity: u32,
) -> Result<(), Finding> {
    let deadline = now.after(Span::from_secs(60));
    let mut receipts = Vec::new();
    for limit in limits() {
        let bucket = Digest([random::unpredictable(), random::unpredictable()]);
        let ask = if matches!(limit, Limit::Concurrency(_)) { Ask::Hold(SlotId(7)) } else { Ask::Consume(1) };
        let charge = Charge { ask, identity, ..Charge::new(bucket, limit, 1) };
        for _ in 0..2 {
            let request = ScriptRequest { charges: [charge].into_iter().collect(), denied: false, full: false };
            let mut batch = Batch::new(deadline, now);
            let _ = batch.try_push(request);
            let hash = hashes.get(batch.script().index()).map_or(&[] as &[u8], |hash| hash);
            let reply = call(connection, |out| batch.encode(ScriptCall::Sha(hash), out)).await?;
            accepted(&reply, limit.kind().name())?;
            match batch.decode(&reply) {
                Ok(BatchReply::Answers { answers, .. }) => {
                    if let Some(ScriptAnswer::Taken { outcomes, .. }) = answers.first() {
                        receipts.extend(outcomes.iter().map(|outcome| Receipt::of(&charge, outcome)));
                    }
                }
                Ok(BatchReply::Expired { .. }) => return Err(clock_jumps()),
                Err(bad) => return Err(strange(bad.detail)),
            }
        }
    }
    for (number, receipt) in receipts.iter_mut().enumerate() {
        receipt.number = Some(number as u64 ^ random::unpredictable());
    }
    let returns = Returns::new(deadline, receipts);
    let hash = hashes.get(Script::GiveBack.index()).map_or(&[] as &[u8], |hash| hash);
    let reply = call(connection, |out| returns.encode(ScriptCall::Sha(hash), out)).await?;
    accepted(&reply, "give back")?;
    returns.decode(&reply).map_err(|bad| strange(bad.detail))?;
    let nothing = Returns::new(deadline, Vec::new());
    let reply = call(connection, |out| nothing.encode(ScriptCall::Text, out)).await?;
    accepted(&reply, "EVAL")
}

/// One limit of each kind, all of them expired within a second.
fn limits() -> impl Iterator<Item = Limit> {
    let gcra = Gcra::new(10, Span::SECOND, 10).map(Limit::Gcra);
    let queue = Queue::new(10, Span::SECOND, Span::SECOND).map(Limit::Queue);
    let window = FixedWindow::new(10, Span::SECOND).map(Limit::FixedWindow);
    let counter = SlidingCounter::new(10, Span::SECOND).map(Limit::SlidingCounter);
    let log = SlidingLog::new(10, Span::SECOND).map(Limit::SlidingLog);
    let slots = Concurrency::new(10, Span::SECOND).map(Limit::Concurrency);
    [gcra, queue, window, counter, log, slots].into_iter().flatten()
}

async fn call(connection: &mut RedisConnection, encode: impl FnOnce(&mut Vec<u8>)) -> Result<RespValue, Finding> {
    let mut out = Vec::new();
    encode(&mut out);
    connection.write(&out, &mut 0).await.map_err(|error| interrupted(&error))?;
    connection.reply().await.map_err(|broken| interrupted(&broken))
}

fn accepted(reply: &RespValue, what: &str) -> Result<(), Finding> {
    let (Some(code), RespValue::Error(text)) = (ErrorCode::of(reply), reply) else { return Ok(()) };
    let text: String = String::from_utf8_lossy(text).chars().take(200).collect();
    let help = match code {
        ErrorCode::NoPerm => format!("give it all rights we need: {}", acl_user("USER", "PASSWORD")),
        ErrorCode::OutOfMemory => "raise maxmemory: counters cannot be written".to_owned(),
        ErrorCode::ReadOnly => "use the primary, or redis-sentinel:// to find it".to_owned(),
        ErrorCode::Other if text.contains("executing the script") || text.contains("ACL failure in script") => {
            format!("give it all rights we need: {}", acl_user("USER", "PASSWORD"))
        }
        _ => "see the message of the server".to_owned(),
    };
    Err(Finding::problem(format!("{what}: {} ({text})", code.meaning()), help))
}

fn interrupted(why: &dyn std::fmt::Display) -> Finding {
    Finding::problem(format!("the server hung up in the middle of the check: {why}"), "look into its log")
}

fn clock_jumps() -> Finding {
    Finding::problem("the server's clock jumped ahead by a minute", "have its clock disciplined by NTP")
}

fn strange(detail: &str) -> Finding {
    Finding::problem(format!("the scripts do not work here: {detail}"), "use Redis 7.0 or newer, or Valkey")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_scripts_is_in_the_list() {
        for script in Script::ALL {
            for call in script.text().split("redis.call('").skip(1) {
                let name = call.split('\'').next().unwrap_or_default().to_lowercase();
                assert!(COMMANDS.contains(&name.as_str()), "{name} of {script:?}");
            }
        }
    }

    #[test]
    fn every_command_of_the_list_is_tried() {
        let elsewhere = ["asking", "client|setname", "cluster|slots", "eval", "evalsha", "script|load", "select"];
        let tried: Vec<String> =
            trials(b"k").iter().map(|parts| String::from_utf8_lossy(parts[0]).to_lowercase()).collect();
        for name in COMMANDS.iter().filter(|name| !elsewhere.contains(name)) {
            assert!(tried.iter().any(|tried| tried == name), "{name}");
        }
    }

    #[test]
    fn the_list_is_in_order_and_without_doubles() {
        assert!(COMMANDS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn the_user_is_created_by_one_command() {
        let told = acl_user("tollgate", "secret");
        assert!(told.starts_with("ACL SETUSER tollgate on >secret ~tg:* &tg:* +asking "), "{told}");
    }
}
