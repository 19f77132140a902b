//! A cluster: buckets of one identity together, requests over several slots, slots that move, primaries that die.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::Limit;
use tollgate_lab::redis::{RedisCluster, RedisOptions};
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::{NodeChannels, NodeMessage};

use super::*;

/// An identity whose keys are in a slot of this node.
fn identity_at(cluster: &RedisCluster, node: usize) -> u32 {
    (0..)
        .find(|identity| cluster.primary_of(BucketKey::new(*identity, Digest::default()).slot()) == node)
        .expect("one of them")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_decides_divides_moves_and_loses_a_primary() {
    // As recommended: otherwise no slot is served while one of them has no server.
    let cluster = RedisCluster::start_as(&RedisOptions::default().with(&["--cluster-require-full-coverage", "no"]));
    let store = node(config(&cluster.url())).await;
    identities_spread(&cluster, &store).await;
    a_refused_request_is_charged_nowhere(&cluster, &store).await;
    messages_reach_other_nodes(&cluster, &store).await;
    never_more_than_the_narrowest_and_the_widest_allow(&cluster).await;
    a_moving_slot_is_followed(&cluster, &store).await;
    f17_only_the_dead_shard_falls_back(cluster, &store).await;
}

/// A cluster passes messages on, and does not know how many nodes listen.
async fn messages_reach_other_nodes(cluster: &RedisCluster, store: &RedisStore) {
    let other = node(config(&cluster.url())).await;
    let [asking, listening] = [1, 2].map(|number| NodeChannels::new("a", number));
    let mut messages = other.node_messages(listening.clone());
    // A subscription takes a moment: the question is repeated until it is received.
    let question = patience::eventually("a question", Duration::from_secs(20), async || {
        let asked = store.ask_nodes(&asking, b"?", Span::from_secs(2)).await.expect("the store answers");
        assert_eq!(asked, None);
        tokio::time::timeout(Duration::from_secs(2), messages.next()).await.ok()
    })
    .await;
    assert_eq!(question, NodeMessage { is_to_all: true, payload: b"?".to_vec() });
    store.node_answers().send(&listening, b"!").await;
    let answer = async {
        loop {
            let message = messages.next().await;
            if !message.is_to_all {
                return message.payload;
            }
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(10), answer).await.expect("an answer in time"), b"!");
}

/// Buckets of one identity share a slot; those of many are on all primaries, about evenly.
async fn identities_spread(cluster: &RedisCluster, store: &RedisStore) {
    for identity in 0..600 {
        let charges = [charge(identity, 1, window(5)), charge(identity, 2, window(5))];
        assert!(take(store, &charges).await.expect("the store answers").0.allowed);
        assert_eq!(BucketKey::of(&charges[0]).slot(), BucketKey::of(&charges[1]).slot());
    }
    let keys: Vec<i64> =
        cluster.nodes[..3].iter().map(|node| node.client().call(&["DBSIZE"]).integer().expect("a number")).collect();
    assert!(keys.iter().all(|keys| (300..500).contains(keys)), "{keys:?} of 1200 buckets");
}

/// The wide bucket denies after the narrow one has charged: the charge is given back.
async fn a_refused_request_is_charged_nowhere(cluster: &RedisCluster, store: &RedisStore) {
    let (user, all) = (identity_at(cluster, 0), identity_at(cluster, 1));
    let (narrow, wide) = (charge(user, 7, window(10)), charge(all, 7, window(20)));
    let full = Charge { ask: Ask::Force(20), ..wide };
    let _ = take(store, &[full]).await.expect("the store answers");
    let before = store.stats().slots;
    let (taken, outcomes) = take(store, &[wide, narrow]).await.expect("the store answers");
    assert!(!taken.allowed && !outcomes[0].allowed && outcomes[1].allowed);
    assert_eq!((outcomes[1].granted, outcomes[1].used, outcomes[1].remaining), (0, 0, 10));
    until("the charge is given back", || store.stats().slots.undone > before.undone);
    assert_eq!((used(store, &narrow).await, used(store, &wide).await), (0, 20));
    let after = store.stats().slots;
    assert_eq!((after.split - before.split, after.undone - before.undone, after.overcharged), (1, 1, 0));
}

/// Many at once over two slots: exactly the limit passes, and every narrow bucket holds what passed.
async fn never_more_than_the_narrowest_and_the_widest_allow(cluster: &RedisCluster) {
    let all = charge(identity_at(cluster, 2), 8, window(300));
    let mut callers = Vec::new();
    for number in 0..16 {
        let (url, user) = (cluster.url(), charge(10_000 + number, 8, window(30)));
        callers.push(tokio::spawn(async move {
            let store = node(config(&url)).await;
            let mut passed = 0;
            for _ in 0..40 {
                let (taken, _) = take(&store, &[user, all]).await.expect("the store answers");
                passed += u64::from(taken.allowed);
            }
            (passed, store, user)
        }));
    }
    let store = node(config(&cluster.url())).await;
    let mut sum = 0;
    for caller in callers {
        let (passed, caller, user) = caller.await.expect("callers do not panic");
        assert!(passed <= 30);
        until("what was refused is given back", || {
            let slots = caller.stats().slots;
            assert_eq!(slots.overcharged, 0);
            slots.undone == slots.split
        });
        assert_eq!(used(&store, &user).await, passed, "{user:?} holds what passed");
        sum += passed;
    }
    assert_eq!((sum, used(&store, &all).await), (300, 300));
}

/// MOVED, ASK and TRYAGAIN under load: no caller fails, and the count stays exact.
async fn a_moving_slot_is_followed(cluster: &RedisCluster, store: &Arc<RedisStore>) {
    let identity = identity_at(cluster, 0);
    let slot = BucketKey::new(identity, Digest::default()).slot();
    let charges = [charge(identity, 21, window(100_000)), charge(identity, 22, window(100_000))];
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), store.clone());
    let stopped = stop.clone();
    let load = tokio::spawn(async move {
        let mut passed = 0;
        while !stopped.load(Ordering::Relaxed) {
            let (taken, _) = take(&sent, &charges).await.expect("a slot that moves answers all the same");
            passed += u64::from(taken.allowed);
        }
        passed
    });
    tokio::task::block_in_place(|| {
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            cluster.open_move(slot, to);
            while cluster.move_keys(slot, from, to, 1) > 0 {}
            cluster.close_move(slot, to);
            cluster.wait_until_ok();
        }
    });
    stop.store(true, Ordering::Relaxed);
    let passed = load.await.expect("no caller failed");
    assert!(passed > 0);
    for charge in &charges {
        assert_eq!(used(store, charge).await, passed);
    }
}

/// F17: a dead primary takes down its own slots, for as long as its replica needs to notice.
async fn f17_only_the_dead_shard_falls_back(mut cluster: RedisCluster, store: &RedisStore) {
    let charges: HashMap<usize, Charge> = (0..3)
        .map(|node| (node, charge(identity_at(&cluster, node), 31, Limit::per_second(1_000_000).expect("a limit"))))
        .collect();
    let slot = BucketKey::of(&charges[&0]).slot();
    cluster.nodes[0].kill();
    let short = Span::from_millis(50);
    let mut failed = 0;
    let mut back = None;
    let killed = tokio::time::Instant::now();
    while back.is_none() {
        for (node, charge) in &charges {
            // The others answer, however busy this machine is.
            let within = if *node == 0 { short } else { WITHIN };
            let taken = store.take(&[*charge], within, &mut Outcomes::new()).await;
            match (node, taken) {
                (0, Err(_)) => failed += 1,
                (0, Ok(_)) if failed > 0 => back = Some(killed.elapsed()),
                (0, Ok(_)) => {}
                (_, taken) => assert!(taken.is_ok(), "slots of node {node} are not concerned: {taken:?}"),
            }
        }
        assert!(killed.elapsed().as_secs() < 20, "the slots of the dead primary never came back");
    }
    assert!(failed > 0 && cluster.primary_of(slot) != 0);
}
