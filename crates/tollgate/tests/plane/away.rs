//! F39: PostgreSQL stops, restarts, or does not exist.

use std::time::Duration;

use serde_json::json;
use tollgate_core::{Clock, Span};
use tollgate_lab::patience::Watch;
use tollgate_lab::postgres::{self, Shutdown};
use tollgate_lab::stalls::StallMonitor;
use tollgate_store::MonotonicClock;

use super::rig::{Node, Place, rule};

const BACK_WITHIN: Duration = Duration::from_secs(5);

/// A hundred decisions, none of which waits for the database. What the machine stalls does not count.
fn decides(node: &Node, path: &str, limit: u64) {
    let clock = MonotonicClock::new();
    let stalls = StallMonitor::start(clock);
    for _ in 0..100 {
        let asked = clock.now();
        assert_eq!(node.limit(path), Some(limit));
        let answered = clock.now();
        let (took, stalled) = (answered.since(asked), stalls.quantile(asked.nanos(), answered.nanos(), 1.0));
        let most = Span::from_millis(500 + 4 * stalled as u64);
        assert!(took < most, "a decision took {took}, and the machine stalled for {stalled} ms");
    }
}

#[test]
fn f39_decisions_go_on_while_postgres_is_halted_and_what_comes_after_is_served_soon() {
    let server = postgres::PostgresServer::start();
    let place = Place::on(&server.database());
    let node = place.start(None);
    assert_eq!(node.make("first", "/first", 11).status, 201);
    node.serves("/first", 11, BACK_WITHIN);
    server.stop();
    decides(&node, "/first", 11);
    let watch = Watch::start();
    let refused = node.admin_once("POST", "/v1/rules", &[], Some(rule("second", "/second", 12)));
    assert_eq!((refused.status, refused.body["code"].as_str()), (503, Some("database_away")), "{refused:?}");
    assert!(watch.elapsed() < Duration::from_secs(10), "failed after {:?}", watch.elapsed());
    assert!(refused.head.contains("Retry-After"), "{}", refused.head);
    // The global mode needs neither store nor database.
    let off = node.admin("PUT", "/v1/mode", Some(json!({"mode": "off"})));
    assert_eq!((off.status, off.body["scope"].as_str()), (200, Some("node")), "{off:?}");
    assert_eq!(node.limit("/first"), None, "nothing is limited");
    let on = node.admin("PUT", "/v1/mode", Some(json!({"mode": "enforce"})));
    assert_eq!(on.status, 200, "{on:?}");
    decides(&node, "/first", 11);
    server.cont();
    tollgate_lab::patience::until("writes work again", Duration::from_secs(20), || {
        node.make("third", "/third", 13).status == 201
    });
    node.serves("/third", 13, BACK_WITHIN);
}

#[test]
fn f39_a_restart_of_postgres_loses_nothing_and_listening_goes_on() {
    let mut server = postgres::PostgresServer::start();
    let db = server.database();
    let (first, second) = (Place::on(&db), Place::on(&db));
    let one = first.start(None);
    let two = second.start(Some(one.token()));
    assert_eq!(one.make("before", "/before", 21).status, 201);
    two.serves("/before", 21, BACK_WITHIN);
    server.shut_down(Shutdown::Immediate);
    decides(&two, "/before", 21);
    server.restart();
    tollgate_lab::patience::until("writes work again", Duration::from_secs(20), || {
        one.make("after", "/after", 22).status == 201
    });
    two.serves("/after", 22, BACK_WITHIN);
    let verified = one.admin("GET", "/v1/audit/verify", None);
    assert_eq!(verified.body["intact"].as_bool(), Some(true), "{verified:?}");
}

/// A node that starts without its database serves its last known rules, overrides and tokens.
#[test]
fn a_node_starts_without_its_database_from_its_copy() {
    let mut server = postgres::PostgresServer::start();
    let place = Place::on(&server.database());
    let mut node = place.start(None);
    let token = node.token().to_owned();
    assert_eq!(node.make("kept", "/kept", 31).status, 201);
    let given = node.admin(
        "POST",
        "/v1/overrides",
        Some(json!({"client_key": "user:1", "rule_id": "kept", "max_requests": 99, "valid_until": "2200-01-01T00:00:00Z"})),
    );
    assert_eq!(given.status, 201, "{given:?}");
    node.serves("/kept", 99, BACK_WITHIN);
    // Not that of the status, which is told a moment after it is in force.
    let generation = given.body["version"].as_i64().unwrap();
    tollgate_lab::patience::until("the copy has caught up", BACK_WITHIN, || copied(&place) >= generation);
    node.process.kill();
    server.shut_down(Shutdown::Fast);

    let node = place.start(Some(&token));
    decides(&node, "/kept", 99);
    let status = node.status();
    assert_eq!(status["database"]["state"].as_str(), Some("away"), "{status}");
    let refused = node.admin_once("POST", "/v1/rules", &[], Some(rule("not-now", "/x", 1)));
    assert_eq!(refused.status, 503, "{refused:?}");
    server.restart();
    tollgate_lab::patience::until("writes work again", Duration::from_secs(20), || {
        node.make("again", "/again", 32).status == 201
    });
    node.serves("/again", 32, BACK_WITHIN);
}

/// Without database and copy a node does not know its rules, and must not start without any.
#[test]
fn a_node_without_a_copy_does_not_start_without_its_database() {
    let mut server = postgres::PostgresServer::start();
    let place = Place::on(&server.database());
    server.shut_down(Shutdown::Fast);
    let message = place.try_start(None).err().expect("it does not start");
    assert!(message.contains("cannot use the database postgres://"), "{message}");
}

/// The generation of the copy in a state directory.
pub(super) fn copied(place: &Place) -> i64 {
    let files = std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let Some(file) = files.into_iter().find(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("copy-") && name.ends_with(".db")
    }) else {
        return 0;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let control = tollgate_control::Control::new(&tollgate_control::DatabaseUrl::Sqlite(file)).unwrap();
        control.state().await.map_or(0, |state| state.generation)
    })
}
