//! P21 and F40: no acknowledged change is lost, and an unacknowledged one can be retried.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_lab::fault_proxy::{Direction, FaultProxy, LinkMode};
use tollgate_lab::postgres;

use super::rig::{Node, Place, rule};

/// A node is killed right after each acknowledgement, ten times: every rule is stored.
fn acknowledged_writes_survive(place: &Place) {
    let mut node = place.start(None);
    let token = node.token().to_owned();
    for round in 1..=10 {
        let made = node.make(&format!("rule-{round}"), &format!("/{round}"), round);
        assert_eq!(made.status, 201, "{made:?}");
        node.process.kill();
        node = place.start(Some(&token));
        for earlier in 1..=round {
            assert_eq!(node.limit(&format!("/{earlier}")), Some(earlier), "rule {earlier} after kill {round}");
        }
    }
    let verified = node.admin("GET", "/v1/audit/verify", None);
    assert_eq!(verified.body["intact"].as_bool(), Some(true), "{verified:?}");
}

#[test]
fn p21_acknowledged_writes_survive_kill_9_in_sqlite() {
    acknowledged_writes_survive(&Place::embedded());
}

#[test]
fn p21_acknowledged_writes_survive_kill_9_in_postgres() {
    acknowledged_writes_survive(&Place::on(&postgres::database()));
}

/// The response is lost and the node dies: the change was committed, and the same call with the same key changes
/// nothing and gets the response of the first.
fn a_lost_reply_is_answered_on_retry(place: &Place) {
    let mut node = place.start(None);
    let token = node.token().to_owned();
    let proxy = FaultProxy::start(node.admin.rsplit(':').next().unwrap().parse().unwrap());
    proxy.set_only(Direction::Replies, LinkMode::Drop);
    let at = format!("127.0.0.1:{}", proxy.port());
    let order = rule("once", "/once", 40);
    let lost = std::thread::scope(|scope| {
        let (asking, asked) = (&node, order.clone());
        let caller = scope.spawn(move || {
            let fields = [("Idempotency-Key", "k-1")];
            asking.try_admin(&at, "POST", "/v1/rules", &fields, Some(asked))
        });
        node.serves("/once", 40, Duration::from_secs(10));
        proxy.refuse();
        caller.join().unwrap()
    });
    assert!(lost.is_err(), "the response was lost: {lost:?}");
    node.process.kill();

    let node = place.start(Some(&token));
    let again = create(&node, "k-1", &order);
    assert_eq!(again.0, 201, "{again:?}");
    assert_eq!(again.1["rule_id"], "once");
    let twice = create(&node, "k-1", &order);
    assert_eq!(twice, again, "as often as it is asked");
    let audit = node.admin("GET", "/v1/audit?kind=rule&id=once", None).body;
    assert_eq!(audit["audit"].as_array().map(Vec::len), Some(1), "made once: {audit}");
    let other = create(&node, "k-1", &json!({"rule_id": "other", "limit": {"requests": 1, "window": "1s"}}));
    assert_eq!(other.0, 422, "a key is for one order: {other:?}");
    let without = node.admin("POST", "/v1/rules", Some(order));
    assert_eq!(without.status, 409, "{without:?}");
}

fn create(node: &Node, key: &str, order: &Value) -> (u16, Value) {
    let fields = [("Idempotency-Key", key)];
    let answer = node.try_admin(&node.admin, "POST", "/v1/rules", &fields, Some(order.clone())).unwrap();
    (answer.status, answer.body)
}

#[test]
fn f40_killed_between_commit_and_reply_in_sqlite() {
    a_lost_reply_is_answered_on_retry(&Place::embedded());
}

#[test]
fn f40_killed_between_commit_and_reply_in_postgres() {
    a_lost_reply_is_answered_on_retry(&Place::on(&postgres::database()));
}
