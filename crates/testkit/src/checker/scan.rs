//! P19: every bucket expires.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_resp::RespValue;

use crate::redis::RedisClient;

/// Keys of buckets: a tag, and 22 letters of a digest. Keys that nodes keep for themselves do not match.
const BUCKETS: &str = "tg:{???}??????????????????????";

/// Counts the buckets of a server, and returns those that never expire or live longer than `most`, with their time to
/// live in milliseconds.
pub fn scan(client: &mut RedisClient, most: Duration) -> (u64, BTreeMap<String, i64>) {
    let _ = client.call(&["READONLY"]); // makes a replica of a cluster answer; other servers refuse it, which does no harm
    let (mut cursor, mut buckets, mut found) = ("0".to_owned(), 0, BTreeMap::new());
    loop {
        let page = client.succeed(&["SCAN", &cursor, "MATCH", BUCKETS, "COUNT", "1000"]);
        let parts = page.array().expect("a page of keys");
        cursor = String::from_utf8_lossy(parts[0].text().expect("a cursor")).into_owned();
        for key in parts[1].array().expect("keys").iter().filter_map(RespValue::text) {
            buckets += 1;
            let key = String::from_utf8_lossy(key).into_owned();
            let left = client.number(&["PTTL", &key]);
            let is_gone = left == -2; // between the two commands
            if !is_gone && (left < 0 || left > i64::try_from(most.as_millis()).unwrap_or(i64::MAX)) {
                found.insert(key, left);
            }
        }
        if cursor == "0" {
            return (buckets, found);
        }
    }
}
