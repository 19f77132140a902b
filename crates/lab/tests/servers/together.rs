//! Sentinels and clusters: roles, and failover.

use std::time::Duration;

use tollgate_lab::patience;
use tollgate_lab::redis::{Flavour, RedisCluster, RedisOptions, Sentinels};
use tollgate_store_redis::key;

#[test]
fn sentinels_promote_the_replica() {
    let mut sentinels = Sentinels::start();
    assert_eq!(sentinels.primary(), 0);
    sentinels.servers[0].client().succeed(&["SET", "a", "1"]);
    sentinels.servers[0].client().succeed(&["WAIT", "1", "1000"]);
    sentinels.servers[0].kill();
    let took = sentinels.wait_for_failover_from(0);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(sentinels.primary(), 1);
    assert_eq!(sentinels.servers[1].client().text(&["GET", "a"]), "1");
}

#[test]
fn a_replica_that_was_cut_off_is_promoted_without_what_it_missed() {
    let mut sentinels = Sentinels::start();
    let mut primary = sentinels.servers[0].client();
    primary.succeed(&["SET", "a", "1"]);
    primary.succeed(&["WAIT", "1", "1000"]);
    sentinels.cut_replication(0);
    primary.succeed(&["SET", "a", "2"]);
    sentinels.servers[0].kill();
    sentinels.wait_for_failover_from(0);
    assert_eq!(sentinels.servers[1].client().text(&["GET", "a"]), "1", "E15");
}

#[test]
fn a_cluster_survives_its_primary() {
    let mut cluster = RedisCluster::start();
    let slot = key::slot_of(b"a");
    let owner = cluster.primary_of(slot);
    cluster.nodes[owner].kill();
    let took = cluster.wait_for_failover(slot, owner);
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(cluster.primary_of(slot), cluster.partner_of(owner));
    cluster.nodes[owner].restart();
    patience::until("the old primary returns as a replica", Duration::from_secs(10), || {
        cluster.nodes[owner].client().text(&["INFO", "replication"]).contains("role:slave")
    });
}

#[test]
fn a_slot_moves_by_ask_tryagain_and_moved() {
    let cluster = RedisCluster::start();
    let (slot, pair) = (key::slot_of(b"t"), ["MGET", "{t}a", "{t}b"]);
    let from = cluster.primary_of(slot);
    let to = (from + 1) % 3;
    let mut old = cluster.nodes[from].client();
    old.succeed(&["MSET", "{t}a", "1", "{t}b", "2"]);
    cluster.open_move(slot, to);
    assert!(old.call(&pair).array().is_some(), "both keys are still here");
    assert_eq!(cluster.move_keys(slot, from, to, 1), 1);
    assert_eq!(old.call(&pair).error_word(), Some(&b"TRYAGAIN"[..]));
    assert_eq!(cluster.move_keys(slot, from, to, 10), 1);
    assert_eq!(old.call(&pair).error_word(), Some(&b"ASK"[..]));
    cluster.close_move(slot, to);
    assert_eq!(old.call(&pair).error_word(), Some(&b"MOVED"[..]));
    assert_eq!(cluster.primary_of(slot), to);
    assert!(cluster.nodes[to].client().call(&pair).array().is_some());
}

#[test]
fn valkey_makes_a_cluster_too() {
    let cluster = RedisCluster::start_as(&RedisOptions { flavour: Flavour::Valkey, ..RedisOptions::default() });
    assert!(cluster.is_ok());
}
