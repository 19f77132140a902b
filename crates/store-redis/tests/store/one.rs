//! One server.

use tollgate_core::{Gcra, Receipt, Source};
use tollgate_lab::redis::{Flavour, RedisServer};
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::{
    ChangeListener, ErrorCode, MemoryLevel, NodeChannels, NodeMessage, NodeMessages, NodeRules,
};

use super::*;

/// E3: the only form of a decision in Redis that may be called exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e03_many_callers_at_many_nodes_pass_exactly_as_often_as_allowed() {
    for flavour in Flavour::ALL {
        exactly_as_often_as_allowed(&RedisServer::of(flavour)).await;
    }
}

async fn exactly_as_often_as_allowed(server: &RedisServer) {
    let limit = charge(1, 1, window(100));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let store = node(config(&server.url())).await;
        for _ in 0..8 {
            let store = store.clone();
            callers.push(tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..40 {
                    let (taken, _) = take(&store, &[limit]).await.expect("the store answers");
                    passed += u64::from(taken.allowed);
                }
                passed
            }));
        }
    }
    let mut passed = 0;
    for caller in callers {
        passed += caller.await.expect("callers do not panic");
    }
    assert_eq!(passed, 100);
}

#[tokio::test]
async fn a_receipt_made_by_one_node_is_honoured_once_by_any() {
    let server = RedisServer::start();
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let charge = charge(1, 1, window(5));
    let (_, outcomes) = take(&one, &[charge]).await.expect("the store answers");
    let receipt = || [Receipt { number: Some(77), ..Receipt::of(&charge, &outcomes[0]) }];
    assert_eq!(other.give_back(&receipt()).await, Ok(1));
    assert_eq!(one.give_back(&receipt()).await, Ok(0));
    assert_eq!(used(&one, &charge).await, 0);
}

#[tokio::test]
async fn all_nodes_find_the_same_secret() {
    let server = RedisServer::start();
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let secret = one.secret().await.expect("the store answers");
    assert_eq!(other.secret().await, Ok(secret));
    assert_ne!(secret, [0; 16]);
}

/// A bucket's key expires when it equals an unused one, so returning clients create keys again: that is not a flood.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_return_get_buckets_of_their_own_however_many_there_are() {
    let server = RedisServer::start();
    let store = node(RedisConfig { new_keys_per_second: 1, ..config(&server.url()) }).await;
    let brief = Limit::Gcra(Gcra::new(1000, Span::SECOND, 1).expect("a limit"));
    for round in 0..5 {
        for client in 0..60 {
            let (taken, outcomes) = take(&store, &[charge(client, 1, brief)]).await.expect("the store answers");
            assert!(taken.allowed && outcomes[0].source != Source::Overflow, "client {client} in round {round}");
        }
        until("keys expire", || server.client().number(&["DBSIZE"]) < 10);
    }
    assert_eq!(store.stats().slots.overflowed, 0);
}

/// Makes the server's memory this full, in percent, and waits until the store knows.
fn fill(server: &RedisServer, store: &RedisStore, percent: u64, level: MemoryLevel) {
    let mut client = server.client();
    client.succeed(&["SETRANGE", "ballast", "20000000", "x"]);
    let used: u64 = client.fields(&["INFO", "memory"])["used_memory"].parse().expect("a number of bytes");
    client.succeed(&["CONFIG", "SET", "maxmemory", &(used * 100 / percent).to_string()]);
    until("the level is known", || store.stats().primaries[0].0.memory == level);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_memory_is_scarce_a_flood_of_identities_shares_the_overflow_bucket_and_resets_no_bucket() {
    let server = RedisServer::start();
    let store = node(RedisConfig { new_keys_per_second: 5, ..config(&server.url()) }).await;
    let victim = charge(1, 1, window(1));
    assert!(take(&store, &[victim]).await.expect("the store answers").0.allowed);
    fill(&server, &store, 93, MemoryLevel::Scarce);
    let (mut own, mut shared, mut refused) = (0, 0u64, 0);
    for number in 0..200 {
        let (taken, outcomes) = take(&store, &[charge(2 + number, 1, window(1))]).await.expect("the store answers");
        match outcomes[0].source {
            Source::Overflow => shared += 1,
            _ => own += 1,
        }
        refused += u32::from(!taken.allowed);
    }
    assert!((45..150).contains(&own), "{own} buckets of their own: fifty at once, then five a second");
    assert!(shared > 0 && refused > 0, "{shared} in the overflow bucket, which has an end: {refused}");
    assert!(!take(&store, &[victim]).await.expect("the store answers").0.allowed, "an identity with a bucket keeps it");
    assert_eq!(store.stats().slots.overflowed, shared);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_bucket_is_made_in_a_full_store_until_there_is_room_again_unless_the_budget_is_off() {
    let server = RedisServer::start();
    let store = node(config(&server.url())).await;
    let unlimited = node(RedisConfig { new_keys_per_second: 0, ..config(&server.url()) }).await;
    fill(&server, &store, 98, MemoryLevel::Full);
    let source = async |store: &RedisStore, client| {
        take(store, &[charge(client, 1, window(9))]).await.expect("the store answers").1[0].source
    };
    assert_eq!(source(&store, 1).await, Source::Overflow);
    assert_ne!(source(&unlimited, 2).await, Source::Overflow);
    server.client().succeed(&["CONFIG", "SET", "maxmemory", "0"]);
    until("there is room", || store.stats().primaries[0].0.memory == MemoryLevel::Roomy);
    assert_ne!(source(&store, 1).await, Source::Overflow);
}

/// F31: a foreign value under a bucket's key is replaced by a bucket at the first touch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_value_under_a_key_is_replaced_and_counted() {
    let server = RedisServer::start();
    let store = node(config(&server.url())).await;
    let spoilt = charge(1, 1, window(1_000));
    server.client().succeed(&["RPUSH", &BucketKey::of(&spoilt).to_string(), "foreign"]);
    let mut callers = Vec::new();
    for number in 0..16 {
        let store = store.clone();
        callers.push(tokio::spawn(async move {
            for _ in 0..50 {
                let own = take(&store, &[charge(2 + number, 1, window(1_000))]).await;
                assert!(own.is_ok_and(|(taken, _)| taken.allowed), "caller {number} suffers for another");
                assert!(take(&store, &[spoilt]).await.is_ok_and(|(taken, _)| taken.allowed));
            }
        }));
    }
    for caller in callers {
        caller.await.expect("no caller fails");
    }
    assert_eq!(used(&store, &spoilt).await, 16 * 50);
    let (health, stats) = store.stats().primaries.remove(0);
    assert_eq!((health.phase, stats.openings, stats.errors_of(ErrorCode::Foreign)), (Phase::Closed, 0, 1));
}

#[tokio::test]
async fn forgotten_buckets_are_unused() {
    let server = RedisServer::start();
    let store = node(config(&server.url())).await;
    let charge = charge(1, 1, window(5));
    let _ = take(&store, &[charge]).await.expect("the store answers");
    store.forget(&[charge]).await.expect("the store answers");
    assert_eq!(used(&store, &charge).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bell_that_one_node_rings_is_heard_by_the_others_also_after_the_line_was_cut() {
    let server = RedisServer::of(Flavour::ALL[0]);
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let mut bell = other.change_listener();
    let heard = async |bell: &mut ChangeListener<'_>| {
        tokio::time::timeout(Duration::from_secs(10), bell.changed()).await.is_ok()
    };
    assert!(heard(&mut bell).await, "a new listener may have missed a change");
    one.notify_changed().await;
    assert!(heard(&mut bell).await);
    server.client().succeed(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert!(heard(&mut bell).await, "a listener that lost its connection may have missed a change");
    one.notify_changed().await;
    assert!(heard(&mut bell).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_reach_the_nodes_of_a_fleet_and_one_answer_the_node_that_asks() {
    let server = RedisServer::of(Flavour::ALL[0]);
    let (one, other) = (node(config(&server.url())).await, node(config(&server.url())).await);
    let [to_one, to_other, stranger] =
        [("a", 1), ("a", 2), ("b", 3)].map(|(fleet, number)| NodeChannels::new(fleet, number));
    let (mut of_one, mut of_other) = (one.node_messages(to_one.clone()), other.node_messages(to_other.clone()));
    let next = async |messages: &mut NodeMessages<'_>| {
        tokio::time::timeout(Duration::from_secs(10), messages.next()).await.expect("a message in time")
    };
    let asking = async |expected: u64| {
        // Subscriptions take a moment: the server counts them.
        patience::eventually("all listen", Duration::from_secs(10), async || {
            let listening = one.ask_nodes(&to_one, b"?", Span::from_secs(2)).await.ok().flatten();
            (listening == Some(expected)).then_some(())
        })
        .await;
    };
    let listening = async { tokio::join!(next(&mut of_one), next(&mut of_other)) };
    let (_, (first, second)) = tokio::join!(asking(2), listening);
    let question = NodeMessage { is_to_all: true, payload: b"?".to_vec() };
    assert_eq!((first, second), (question.clone(), question));
    let strangers = one.ask_nodes(&stranger, b"?", Span::from_secs(2)).await.expect("the store answers");
    assert_eq!(strangers, Some(0), "another fleet");
    let mut answers = other.node_answers();
    // Questions may still be there: they were repeated until both nodes listened.
    let answered = async |messages: &mut NodeMessages<'_>| loop {
        let message = next(messages).await;
        if !message.is_to_all {
            return message.payload;
        }
    };
    let long = vec![7; RedisStore::MESSAGE_BYTES_MAX];
    for payload in [b"!".to_vec(), long] {
        answers.send(&to_one, &payload).await;
        assert_eq!(answered(&mut of_one).await, payload);
    }
    // Both reconnect after their connections were cut.
    server.client().succeed(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    server.client().succeed(&["CLIENT", "KILL", "TYPE", "normal"]);
    let listening = async { tokio::join!(next(&mut of_one), next(&mut of_other)) };
    tokio::join!(asking(2), listening);
    answers.send(&to_one, b"!").await;
    assert_eq!(answered(&mut of_one).await, b"!");
}

/// F61: nodes with different rules see each other's fingerprints, and a node that changed its rules publishes only the
/// new one.
#[tokio::test]
async fn nodes_tell_each_other_the_fingerprints_of_their_rules() {
    let server = RedisServer::start();
    let named = |name: &str| RedisConfig { node: name.to_owned(), ..config(&server.url()) };
    let (one, other) = (node(named("one")).await, node(named("other")).await);
    let told = async |node: &RedisStore, own: &str, before| {
        let all = node.publish_rules(own, before).await.expect("the store answers").into_iter();
        let mut all: Vec<(String, String)> = all.map(|NodeRules { node, fingerprint }| (node, fingerprint)).collect();
        all.sort();
        all
    };
    let pair = |node: &str, rules: &str| (node.to_owned(), rules.to_owned());
    assert_eq!(told(&one, "aa", None).await, [pair("one", "aa")]);
    assert_eq!(told(&other, "bb", None).await, [pair("one", "aa"), pair("other", "bb")]);
    assert_eq!(told(&other, "aa", Some("bb")).await, [pair("one", "aa"), pair("other", "aa")]);
    assert!(server.client().number(&["PTTL", "tg:{AAA}rules"]) > 0);
}
