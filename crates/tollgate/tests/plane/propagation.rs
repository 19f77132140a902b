//! Two nodes on one database: a change acknowledged by one is soon applied by the other.

use std::time::Duration;

use tollgate_lab::{patience, postgres};

use super::rig::{Place, rule};

const SOON: Duration = Duration::from_secs(2);

/// P22: within two seconds of the acknowledgement, also right after the listening connection was closed.
#[test]
fn p22_a_rule_made_at_one_node_is_served_by_the_other_within_two_seconds() {
    let server = postgres::PostgresServer::start();
    let db = server.database();
    // So rarely that only notifications are fast enough.
    let (first, second) = (Place::on(&db), Place::on(&db));
    let (first, second) = (first.with(&["--db-poll-interval", "30s"]), second.with(&["--db-poll-interval", "30s"]));
    let one = first.start(None);
    let two = second.start(Some(one.token()));
    let mut slowest = Duration::ZERO;
    for round in 1..=10 {
        let path = format!("/api/{round}");
        let made = one.make(&format!("rule-{round}"), &path, round);
        assert_eq!(made.status, 201, "{made:?}");
        slowest = slowest.max(two.serves(&path, round, SOON));
        let generation = made.body["version"].as_u64().unwrap();
        let served = two.check(serde_json::json!({"client_key": "user:1", "endpoint": path}));
        assert_eq!(served.body["generation"].as_u64(), Some(generation), "decisions carry the generation: {served:?}");
    }
    assert!(server.terminate_backends() >= 2, "the listeners were cut");
    let made = one.make("after", "/after", 77);
    assert_eq!(made.status, 201, "{made:?}");
    slowest = slowest.max(two.serves("/after", 77, SOON));
    println!("slowest of 11: {slowest:?}");
}

/// A change made with SQL, without a notification, is read by all nodes on request; an invalid row is quarantined and
/// reported.
#[test]
fn sql_changes_are_read_on_request_and_invalid_rows_are_quarantined() {
    let server = postgres::shared();
    let db = server.database();
    let (first, second) = (Place::on(&db), Place::on(&db));
    let one = first.start(None);
    let two = second.start(Some(one.token()));
    postgres::run_sql(
        &db,
        "INSERT INTO rate_limit_rules (rule_id, endpoint, key_by, max_requests, window_secs) VALUES \
         ('by-hand', '/hand', 'client_key', 5, 60), ('nonsense', '/%zz', 'client_key', 5, 60)",
    );
    let told = one.admin("POST", "/v1/rules/refresh", None);
    assert_eq!(told.status, 202, "{told:?}");
    for node in [&one, &two] {
        node.serves("/hand", 5, SOON);
        // The status is updated a moment after the rules.
        patience::until("a bad row is told of", SOON, || node.status()["quarantined"][0].is_object());
        let status = node.status();
        let bad = &status["quarantined"][0];
        assert_eq!((bad["id"].as_str(), bad["namespace"].as_str()), (Some("nonsense"), Some("default")), "{status}");
        assert!(bad["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{status}");
    }
}

/// Rules of a file take precedence: the API cannot change them, and they hide rules of the same name.
#[test]
fn rules_of_a_file_take_precedence_and_are_read_only() {
    let place = Place::embedded();
    let file = place.dir.path().join("rules.yaml");
    let text = "rules:\n  - { name: of-file, match: { endpoint: /file }, key_by: client_key, \
                limit: { requests: 3, window: 1h } }\n";
    std::fs::write(&file, text).unwrap();
    let place = place.with(&["--rules", file.to_str().unwrap()]);
    let node = place.start(None);
    assert_eq!(node.make("of-database", "/database", 9).status, 201);
    node.serves("/database", 9, SOON);
    assert_eq!(node.limit("/file"), Some(3), "both are in force");
    let listed = node.admin("GET", "/v1/rules", None).body;
    let sources: Vec<_> = listed["rules"].as_array().unwrap().iter().map(|rule| rule["source"].clone()).collect();
    assert!(sources.contains(&"file".into()) && sources.contains(&"database".into()), "{listed}");
    let refused = node.admin("POST", "/v1/rules", Some(rule("of-file", "/file", 100)));
    assert_eq!((refused.status, refused.body["code"].as_str()), (409, Some("rule_in_file")), "{refused:?}");
    let refused = node.admin("DELETE", "/v1/rules/of-file", None);
    assert_eq!((refused.status, refused.body["code"].as_str()), (409, Some("rule_in_file")), "{refused:?}");
    std::fs::write(&file, text.replace("requests: 3", "requests: 4")).unwrap();
    node.serves("/file", 4, Duration::from_secs(5));
    assert_eq!(node.limit("/database"), Some(9));
    assert_eq!(node.status()["quarantined"].as_array().map(Vec::len), Some(0));
    std::fs::write(&file, text.replace("of-file", "of-database").replace("/file", "/database")).unwrap();
    node.serves("/database", 3, Duration::from_secs(5));
    assert_eq!(node.status()["quarantined"][0]["id"], "of-database", "the rule of the database is left out");
}

/// A rule that SQL writes has no response: what is odd about it is logged once, and shown with the rule.
#[test]
fn warnings_about_rules_written_with_sql_are_logged_once_and_shown() {
    let db = postgres::shared().database();
    let place = Place::on(&db);
    let node = place.start(None);
    postgres::run_sql(
        &db,
        "INSERT INTO rate_limit_rules (rule_id, endpoint, key_by, max_requests, window_secs) VALUES \
         ('odd', '/users/:id', 'user', 5, 60)",
    );
    let refreshed = node.admin("POST", "/v1/rules/refresh", None);
    assert_eq!(refreshed.status, 202, "{refreshed:?}");
    let lines = || node.log().lines().filter(|line| line.contains("unknown-attribute")).count();
    patience::until("the warning is logged", SOON, || lines() > 0);
    node.make("other", "/other", 7);
    node.serves("/other", 7, SOON);
    assert_eq!(lines(), 1, "{}", node.log());
    let rule = node.admin("GET", "/v1/rules/odd", None).body;
    assert_eq!(rule["warnings"][0]["code"], "unknown-attribute", "{rule}");
}
