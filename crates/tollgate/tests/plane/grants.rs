//! Grants on a node: a row that cannot be used is reported and left out, and the copy on disk has the others.

use std::time::Duration;

use serde_json::json;
use tollgate_lab::patience;
use tollgate_lab::postgres::{self, Shutdown};

use super::away::copied;
use super::rig::{Node, Place};

const SOON: Duration = Duration::from_secs(20);

fn limit(node: &Node, client: &str) -> Option<u64> {
    node.check(json!({ "client_key": client, "cost": 0 })).body["limit"].as_u64()
}

#[test]
fn grants_come_from_the_copy_and_invalid_rows_are_left_out() {
    let mut server = postgres::PostgresServer::start();
    let place = Place::on(&server.database());
    let mut node = place.start(None);
    let token = node.token().to_owned();
    let quota = json!({ "rule_id": "monthly", "key_by": "client_key", "quota": { "amount": 100, "every": "month" } });
    assert_eq!(node.admin("POST", "/v1/rules", Some(quota)).status, 201);
    let grant = json!({ "grant_id": "given", "client_key": "user:1", "rule_id": "monthly", "amount": 30 });
    assert_eq!(node.admin("POST", "/v1/grants", Some(grant)).status, 201);
    postgres::run_sql(
        &place.db,
        "INSERT INTO rate_limit_grants (grant_id, client_key, rule_id, amount) VALUES ('odd', 'user:1', '', 5), ('hand', 'user:2', 'monthly', 7)",
    );
    assert_eq!(node.admin("POST", "/v1/rules/refresh", None).status, 202);
    let granted = |node: &Node| (limit(node, "user:1"), limit(node, "user:2"), limit(node, "user:3"));
    let expected = (Some(130), Some(107), Some(100));
    patience::until("grants hold", SOON, || granted(&node) == expected);
    let quarantined = || {
        let bad = node.status()["quarantined"][0].clone();
        (bad["kind"].clone(), bad["id"].clone(), bad["reason"].as_str().is_some_and(|reason| !reason.is_empty()))
    };
    patience::until("the bad row is told of", SOON, || quarantined() == (json!("grant"), json!("odd"), true));

    let generation = node.status()["generation"].as_i64().unwrap();
    patience::until("the copy has caught up", SOON, || copied(&place) >= generation);
    node.process.kill();
    server.shut_down(Shutdown::Fast);
    let node = place.start(Some(&token));
    assert_eq!(granted(&node), expected, "without its database");
    assert_eq!(node.status()["database"]["state"], json!("away"));
}
