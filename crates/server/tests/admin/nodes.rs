//! The nodes of a fleet, as the API lists them.

use serde_json::json;
use tollgate_admin::{FleetNodeList, FleetNodeStatus, NodeSnapshot, StoreServer};
use tollgate_control::record::Role;
use tollgate_control::{Enforcement, Instant};

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_listed_with_what_they_told() {
    let rig = Rig::start().await;
    let empty = rig.get("/v1/nodes").await.expect(200).json();
    assert_eq!(empty, json!({ "read_at": null, "nodes": [] }));
    let at = Instant(1_700_000_000_000_000);
    let own = NodeSnapshot {
        node: "here".to_owned(),
        version: "1.2.3".to_owned(),
        started_at: Some(at),
        serving: 7,
        generation: Some(42),
        mode: Some(Enforcement::Enforce),
        database: "up",
        store: vec![StoreServer { address: "127.0.0.1:6379".to_owned(), state: "down" }],
    };
    let node = |node_id: &str, is_self, is_missing, snapshot| FleetNodeStatus {
        node_id: node_id.to_owned(),
        is_self,
        seen_at: at,
        is_missing,
        has_other_rules: is_missing,
        snapshot,
    };
    let other = NodeSnapshot { node: "there".to_owned(), database: "off", ..NodeSnapshot::default() };
    let nodes = vec![node("here-1", true, false, own), node("there-2", false, true, other)];
    *rig.world.nodes.lock() = FleetNodeList { read_at: Some(at), nodes };
    let expected = json!({ "read_at": "2023-11-14T22:13:20.000000Z", "nodes": [
        {
            "node": "here", "node_id": "here-1", "is_self": true, "seen_at": "2023-11-14T22:13:20.000000Z", "missing": false,
            "other_rules": false, "version": "1.2.3", "started_at": "2023-11-14T22:13:20.000000Z", "serving": 7,
            "generation": 42, "mode": "enforce", "database": "up", "store": [{ "address": "127.0.0.1:6379", "state": "down" }],
        },
        {
            "node": "there", "node_id": "there-2", "is_self": false, "seen_at": "2023-11-14T22:13:20.000000Z", "missing": true,
            "other_rules": true, "version": "", "started_at": null, "serving": 0, "generation": null, "mode": "unknown",
            "database": "off", "store": [],
        },
    ]});
    // No client keys and no namespaces are in it: every role sees the same.
    let limited = rig.token(Role::Viewer, Some(&["default"])).await;
    for token in [&rig.operator, &limited] {
        assert_eq!(rig.call_as(token, "GET", "/v1/nodes", "", "").await.expect(200).json(), expected);
    }
}
