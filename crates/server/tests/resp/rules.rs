//! Checks against the rules, and what they cost while a store has to be waited for.

use tollgate_core::Span;
use tollgate_lab::redis::{RedisOptions, RedisServer as Redis};

use crate::rig::{Rig, command, five};

/// A decision in either version: pairs of names and values, those of text as they are.
fn map(version: u8, values: [&str; 10]) -> Vec<u8> {
    const NAMES: [&str; 10] = [
        "allowed",
        "limit",
        "remaining",
        "retry_after_ms",
        "reset_after_ms",
        "delay_ms",
        "rule",
        "mode",
        "generation",
        "reason",
    ];
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let value = |name: &str, value: &str| match (value, version) {
        ("yes", 2) => ":1\r\n".to_owned(),
        ("no", 2) => ":0\r\n".to_owned(),
        ("yes", _) => "#t\r\n".to_owned(),
        ("no", _) => "#f\r\n".to_owned(),
        ("-", 2) => "$-1\r\n".to_owned(),
        ("-", _) => "_\r\n".to_owned(),
        (text, _) if matches!(name, "rule" | "mode" | "reason") => bulk(text),
        (number, _) => format!(":{number}\r\n"),
    };
    let pairs: String = NAMES.iter().zip(values).map(|(name, sent)| bulk(name) + &value(name, sent)).collect();
    let head = if version == 2 { "*20\r\n" } else { "%10\r\n" };
    (head.to_owned() + &pairs).into_bytes()
}

#[tokio::test]
async fn a_check_is_answered_in_words() {
    let (rig, clock) = Rig::on_clock(|_, _| {});
    let mut caller = rig.caller().await;
    let check = |words: &[&str]| command(words);
    let hour = "3600000";
    for (version, key) in [(2, "a"), (3, "b")] {
        caller.send(&command(&["HELLO", &version.to_string()])).await;
        caller.reply().await;
        let key = format!("client_key={key}");
        let answer = |values| map(version, values);
        caller
            .says(
                &check(&["TG.CHECK", &key, "COST", "9"]),
                &answer(["yes", "10", "1", "0", "3240000", "0", "hourly", "store", "1", "-"]),
            )
            .await;
        caller
            .says(
                &check(&["tg.peek", &key, "cost", "2"]),
                &answer(["no", "10", "1", "360000", "3240000", "0", "hourly", "store", "1", "-"]),
            )
            .await;
        caller
            .says(
                &check(&["TG.CHECK", &key, "COST", "11"]),
                &answer(["no", "10", "1", "-1", "3240000", "0", "hourly", "store", "1", "-"]),
            )
            .await;
        caller
            .says(
                &check(&["TG.CHECK", &key, "plan=x", "endpoint=GET /a=b"]),
                &answer(["yes", "10", "0", "0", hour, "0", "hourly", "store", "1", "-"]),
            )
            .await;
        caller
            .says(
                &check(&["TG.REFUND", &key, "COST", "4"]),
                &answer(["yes", "10", "4", "0", "2160000", "0", "hourly", "store", "1", "-"]),
            )
            .await;
        caller
            .says(
                &check(&["TG.REFUND", &key, "COST", "100"]),
                &answer(["no", "10", "10", "-1", "0", "0", "hourly", "store", "1", "-"]),
            )
            .await;
        caller
            .says(
                &check(&["TG.CHECK", "org=acme"]),
                &answer(["yes", "-", "-", "0", "-", "0", "-", "store", "1", "no rule applies to this request"]),
            )
            .await;
    }
    clock.advance(Span::SECOND);
    assert_eq!(rig.metric("tollgate_resp_commands_total{command=\"tg.refund\"}").await, 4.0);
}

const COST_WANTED: &str = "'COST': should be followed by a whole number, or by a meter and a whole number";

#[tokio::test]
async fn a_request_that_cannot_be_read_charges_nothing() {
    let rig = Rig::start();
    let mut caller = rig.caller().await;
    for (words, said) in [
        (
            vec!["TG.CHECK"],
            "wrong number of arguments for 'tg.check' command; usage: tg.check client_key=<key> [endpoint=<method and \
             path>] [<name>=<value> ...] [COST [<meter>] <n> ...]",
        ),
        (vec!["TG.CHECK", "client_key=a", "cost=5"], "'cost': is no attribute; write COST 5"),
        (vec!["TG.CHECK", "clientkey=a"], "'clientkey': did you mean `client_key`?"),
        (vec!["TG.CHECK", "Api-Key=a"], "'Api-Key': did you mean `api_key`?"),
        (vec!["TG.CHECK", "COST", "1"], "attributes: say who asks: client_key, api_key, user_id, ip, …"),
        (vec!["TG.CHECK", "client_key"], "'client_key': write attributes as name=value"),
        (vec!["TG.CHECK", "client_key=a", "client_key=b"], "'client_key': is there twice"),
        (vec!["TG.CHECK", "client_key=a", "COST"], COST_WANTED),
        (vec!["TG.CHECK", "client_key=a", "COST", "-1"], COST_WANTED),
        (vec!["TG.CHECK", "client_key=a", "COST", "tokens"], COST_WANTED),
        (vec!["TG.CHECK", "client_key=a", "COST", "tokens", "1.5"], COST_WANTED),
        (
            vec!["TG.CHECK", "client_key=a", "COST", "Tokens", "1"],
            "costs.Tokens: a meter is a lower-case letter, then up to 63 of a-z, 0-9, _, ., -",
        ),
        (
            vec!["TG.CHECK", "client_key=a", "COST", "tokens", "1"],
            "costs: no rule counts this meter; the meters are requests (unknown_meter)",
        ),
        (vec!["TG.CHECK", "client_key=a", "COST", "1", "COST", "requests", "1"], "costs.requests: is there twice"),
        (vec!["TG.CHECK", "client_key=a", "COST", "1", "COST", "1"], "'COST': is there twice"),
        (
            vec!["TG.CHECK", "client_key=a", "COST", "9007199254740992"],
            "cost: should be a whole number from 0 to 9007199254740991",
        ),
        (vec!["TG.CHECK", "client_key=a\0b"], "attributes.client_key: should not hold NUL"),
        (vec!["TG.CHECK", "ip=nonsense"], "ip: not an address; write 192.0.2.1 or 2001:db8::1 (bad_address)"),
    ] {
        caller.says(&command(&words), format!("-ERR {said}\r\n").as_bytes()).await;
    }
    let not_text = crate::rig::bytes(&[b"TG.CHECK", b"client_key=\xff"]);
    caller.says(&not_text, b"-ERR 'client_key=\xff': should be UTF-8\r\n").await;
    caller.send(&command(&["TG.PEEK", "client_key=a"])).await;
    assert!(caller.reply().await.contains("remaining\r\n:10\r\n"));
    assert_eq!(rig.metric("tollgate_resp_errors_total").await, 19.0);
}

/// A shared store: replies keep their order, whichever had to wait.
#[tokio::test]
async fn a_shared_store_is_asked_together_and_answered_in_order() {
    let redis = Redis::start();
    let rig = Rig::open(|config, _| config.store.place = redis.url().parse().unwrap()).await;
    let mut caller = rig.caller().await;
    let mut sent = Vec::new();
    let mut expected = Vec::new();
    for number in 0..100 {
        let key = format!("key{number}");
        sent.extend(command(&["CL.THROTTLE", &key, "9", "1", "3600", "10"]));
        expected.extend(five([0, 10, 0, -1, 36_000]));
        if number % 10 == 3 {
            sent.extend(command(&["ECHO", &key]));
            expected.extend(format!("${}\r\n{key}\r\n", key.len()).bytes());
        }
        if number % 10 == 5 {
            sent.extend(command(&["CL.THROTTLE", &key, "x", "1", "1"]));
            expected.extend(b"-ERR Cell error: Store error: Couldn't parse as integer: x\r\n");
        }
    }
    caller.says(&sent, &expected).await;
    for key in ["key0", "key99"] {
        caller.send(&command(&["CL.THROTTLE", key, "9", "1", "3600", "1"])).await;
        assert!(
            caller.reply().await.starts_with("*5\r\n:1\r\n:10\r\n:0\r\n:3"),
            "refused by what it was charged before"
        );
    }
    caller.says(&command(&["DEL", "key0"]), b":1\r\n").await;
    caller.says(&command(&["CL.THROTTLE", "key0", "9", "1", "3600", "10"]), &five([0, 10, 0, -1, 36_000])).await;
    caller.send(&command(&["TG.CHECK", "client_key=a", "COST", "3"])).await;
    assert!(caller.reply().await.contains("remaining\r\n:7\r\n"));
    caller.send(&command(&["TG.PEEK", "client_key=a"])).await;
    assert!(caller.reply().await.contains("remaining\r\n:7\r\n"), "nothing was charged");
    caller.send(&command(&["TG.REFUND", "client_key=a", "COST", "2"])).await;
    assert!(caller.reply().await.contains("remaining\r\n:9\r\n"));
}

/// The store is away: this node's share decides, and who asks is told as ever.
#[tokio::test]
async fn while_the_store_is_away_limits_hold_here() {
    let redis = Redis::start();
    let rig = Rig::open(|config, _| config.store.place = redis.url().parse().unwrap()).await;
    let mut caller = rig.caller().await;
    caller.says(&command(&["CL.THROTTLE", "k", "4", "1", "3600"]), &five([0, 5, 4, -1, 3600])).await;
    drop(redis);
    let mut allowed = 0;
    for _ in 0..10 {
        caller.send(&command(&["CL.THROTTLE", "away", "4", "1", "3600"])).await;
        allowed += i32::from(caller.reply().await.starts_with("*5\r\n:0\r\n"));
    }
    assert_eq!(allowed, 5);
    caller.send(&command(&["DEL", "away"])).await;
    assert!(caller.reply().await.starts_with("-ERR the store did not answer"));
    assert!(rig.metric("tollgate_resp_throttled_locally_total").await >= 9.0);
}

/// P20 in Redis: what a key owes is bounded by the limit that comes with the call, also when the server's clock is set.
#[tokio::test]
async fn a_shared_store_whose_clock_steps_back_blocks_no_key_for_longer_than_its_bucket() {
    let redis = RedisOptions { own_clock: true, ..RedisOptions::default() }.start();
    let rig = Rig::open(|config, _| {
        config.store.place = redis.url().parse().unwrap();
        config.store.deny_cache_ttl = std::time::Duration::ZERO;
    })
    .await;
    let mut caller = rig.caller().await;
    caller.says(&command(&["CL.THROTTLE", "key", "1", "1", "60", "2"]), &five([0, 2, 0, -1, 120])).await;
    redis.step_clock(-3600);
    caller.send(&command(&["CL.THROTTLE", "key", "1", "1", "60"])).await;
    let reply = caller.reply().await;
    let numbers: Vec<i64> = reply.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect();
    assert!(numbers[..3] == [1, 2, 0] && numbers[3] <= 60 && numbers[4] <= 120, "{reply}");
}

/// A refusal that is no limit of the caller's own says so.
#[tokio::test]
async fn a_rule_that_refuses_while_the_store_is_away_says_why() {
    let redis = Redis::start();
    let rig = Rig::open(|config, _| {
        config.store.place = redis.url().parse().unwrap();
        let rules = "rules: [{ name: shut, on_fail: deny, key_by: client_key, limit: { requests: 10, window: 1h } }]\n";
        std::fs::write(config.rules.as_ref().unwrap(), rules).unwrap();
    })
    .await;
    let mut caller = rig.caller().await;
    drop(redis);
    caller.send(&command(&["TG.CHECK", "client_key=a"])).await;
    let reply = caller.reply().await;
    assert!(reply.contains("closed\r\n") && reply.contains("error_code\r\n$17\r\nstore_unavailable\r\n"), "{reply}");
}

/// Names and values of every rule, after those of the rule that decided.
#[tokio::test]
async fn answers_name_what_is_left_per_meter_and_rule() {
    let rig = Rig::with(|config, _| {
        let rules = "key_by: client_key
rules:
  - { name: requests, limit: { requests: 100, window: 1h, algorithm: fixed_window } }
  - { name: output, meter: output_tokens, limit: { amount: 50, window: 1h, algorithm: fixed_window } }
";
        std::fs::write(config.rules.as_ref().unwrap(), rules).unwrap();
    });
    let mut caller = rig.caller().await;
    let check = command(&["TG.CHECK", "client_key=a", "COST", "output_tokens", "40"]);
    let words = |reply: String| reply.lines().filter(|line| !line.starts_with('$')).collect::<Vec<_>>().join(" ");
    caller.send(&check).await;
    let reply = words(caller.reply().await);
    assert!(reply.starts_with("*24 allowed :1 limit :50 remaining :10 "), "{reply}");
    let rules = "meter output_tokens rules *2 *8 rule requests allowed :1 limit :100 remaining :99 *10 rule output allowed :1 \
                 limit :50 remaining :10 meter output_tokens";
    assert!(reply.ends_with(rules), "{reply}");
    caller.send(&command(&["HELLO", "3"])).await;
    caller.reply().await;
    caller.send(&check).await;
    let reply = words(caller.reply().await);
    assert!(reply.starts_with("%12 allowed #f ") && reply.contains("rules *2 %4 rule requests allowed #t"), "{reply}");
    caller.send(&command(&["TG.CHECK", "client_key=a"])).await;
    let reply = words(caller.reply().await);
    assert!(reply.starts_with("%10 ") && !reply.contains("meter"), "one rule of requests: {reply}");
}
