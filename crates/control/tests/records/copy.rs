//! The copy of a database on the disk of a node.

use std::sync::Arc;
use std::time::Duration;

use tollgate_control::change_feed::{ChangeFeed, ChangeFeedConfig, LoadContext, LocalCopy};
use tollgate_control::{Control, DatabaseUrl, Page, Precondition};
use tollgate_core::{ManualClock, Secret, Time};
use tollgate_lab::patience::until_async;

use crate::databases::Database;
use crate::drafts::{apply, per_second, rule};

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_row_keeps_no_other_out_of_the_copy() {
    let db = Database::postgres().await;
    apply(&db.control, [rule("a", per_second(1), Precondition::Absent)]).await;
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("copy.db");
    let following = ChangeFeedConfig {
        control: db.node(),
        copy: Some(LocalCopy::open(&file, db.node()).await.unwrap()),
        context: LoadContext { secret: Secret::new([7; 16]), identities: Arc::new(|_| None) },
        poll: Duration::from_secs(30),
        clock: Arc::new(ManualClock::at(Time::from_nanos(1))),
        adopt: Arc::new(|_| true),
    };
    let feed = ChangeFeed::start(following).await.unwrap();
    let copy = Control::new(&DatabaseUrl::Sqlite(file)).unwrap();
    let steps = [
        "INSERT INTO rate_limit_rules (rule_id, max_requests, window_secs, cost) VALUES ('b', 1, 1, '1e400'), ('c', 1, 1, '1')",
        "UPDATE rate_limit_rules SET max_requests = 7 WHERE rule_id = 'c'",
        "TRUNCATE clients", // everything is copied anew
        "UPDATE rate_limit_rules SET max_requests = 8, cost = '1e400' WHERE rule_id = 'a'",
    ];
    for sql in steps {
        let before = db.control.state().await.unwrap().generation;
        db.run(sql).await;
        let is_copied = async || copy.state().await.map_or(0, |state| state.generation) > before;
        until_async(&format!("{sql} is copied"), Duration::from_secs(20), is_copied).await;
    }
    let rules = copy.rules(&Default::default(), &Page::default()).await.unwrap().entries;
    let told: Vec<_> =
        rules.iter().map(|rule| (rule.rule_id.as_str(), &rule.draft.document["limit"]["requests"])).collect();
    assert_eq!(told, [("c", &serde_json::json!(7))]);
    drop(feed);
}
