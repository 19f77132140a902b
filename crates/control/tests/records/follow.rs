//! What a node uses to follow the database.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;
use tollgate_control::record::NamespaceDraft;
use tollgate_control::{Edit, GenerationListener, Precondition};
use tollgate_lab::patience::promised;

use crate::databases::{author, on_both};
use crate::drafts::{
    NAMESPACE, apply, client, client_draft, override_draft, overriding, patiently, per_second, rule, seed,
};

/// How long a notification may take.
const SOON: Duration = Duration::from_secs(2);

async fn heard(listener: &mut GenerationListener) {
    promised("a notification", SOON, listener.changed()).await;
}

/// Waits until all initial notifications of a listener have arrived.
async fn hush(listener: &mut GenerationListener) {
    heard(listener).await;
    while timeout(Duration::from_millis(200), listener.changed()).await.is_ok() {}
}

fn keys(keys: &[&str]) -> BTreeSet<(String, String)> {
    keys.iter().map(|key| (NAMESPACE.to_owned(), (*key).to_owned())).collect()
}

on_both! {
    async fn changes_since_a_generation_are_listed(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent), rule("b", per_second(1), Precondition::Absent)]).await;
        apply(control, [client("user:1", client_draft("gold"))]).await;
        apply(control, [overriding("o", override_draft("user:2", "a", 5))]).await;
        apply(control, [overriding("o", override_draft("user:3", "a", 5))]).await;
        apply(control, [Edit::Namespace { namespace: "shop".to_owned(), to: Some(NamespaceDraft { ipv6_prefix: 48, ..Default::default() }), expect: Precondition::Anything }]).await;

        let touched = control.changes_since(1).await.unwrap();
        assert_eq!((touched.state.generation, touched.everything, touched.tokens), (5, false, false));
        assert_eq!(touched.clients, keys(&["user:1", "user:2", "user:3"]), "whom it was for, and whom it is for");
        assert_eq!(touched.namespaces, ["shop".to_owned()].into());
        let touched = control.changes_since(4).await.unwrap();
        assert!(touched.clients.is_empty());
        let touched = control.changes_since(5).await.unwrap();
        assert!(touched.namespaces.is_empty() && !touched.everything);

        apply(control, [rule("a", None, Precondition::Present)]).await;
        let touched = control.changes_since(5).await.unwrap();
        assert_eq!(touched.clients, keys(&["user:3"]), "whose override went with its rule");
        assert_eq!(touched.rules, keys(&["a"]), "one rule, not all of its namespace");
        assert!(touched.namespaces.is_empty());
        control.refresh(&author()).await.unwrap();
        assert!(control.changes_since(6).await.unwrap().everything, "a refresh was requested");
        assert!(!control.changes_since(7).await.unwrap().everything);
        assert!(control.changes_since(8).await.unwrap().everything, "a database that was restored");
        db.run("DELETE FROM generations WHERE generation = 7").await;
        assert!(control.changes_since(6).await.unwrap().everything, "the audit does not tell what changed");
    }

    async fn a_snapshot_shows_one_generation_however_long_it_is_read(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent), client("user:1", client_draft("gold"))]).await;
        let mut snapshot = control.snapshot().await.unwrap();
        assert_eq!(snapshot.state().await.unwrap().generation, 1);
        apply(&db.node(), [rule("a", None, Precondition::Present), client("user:1", None), client("user:2", client_draft("gold"))]).await;
        assert_eq!(snapshot.state().await.unwrap().generation, 1);
        let mut seen = Vec::new();
        snapshot.rules(None, |row| seen.push(row.unwrap().rule_id)).await.unwrap();
        snapshot.clients(|row| seen.push(row.unwrap().client_key)).await.unwrap();
        assert_eq!(seen, ["a", "user:1"]);
        let (known, _) = snapshot.client_with_overrides(NAMESPACE, "user:1").await.unwrap();
        assert_eq!(known.unwrap().draft, client_draft("gold"));
        assert!(snapshot.client_with_overrides(NAMESPACE, "user:2").await.unwrap().0.is_none());
        drop(snapshot);
        assert_eq!(control.snapshot().await.unwrap().state().await.unwrap().generation, 2);
    }

    async fn many_rows_are_streamed_one_by_one(db: Database) {
        let control = &db.control;
        seed(control, (0..20_000).map(|n| client(&format!("user:{n}"), client_draft("gold")))).await;
        let mut count = 0;
        control.snapshot().await.unwrap().clients(|row| count += usize::from(row.is_ok())).await.unwrap();
        assert_eq!(count, 20_000);
        let touched = patiently(async || control.changes_since(0).await).await;
        assert_eq!((touched.everything, touched.clients.len()), (false, 20_000));
    }

    async fn changes_notify_listeners_here_and_on_other_nodes(db: Database) {
        let mut here = db.control.listener();
        let elsewhere = db.node();
        let mut there = elsewhere.listener();
        hush(&mut here).await;
        hush(&mut there).await;
        for n in 0..3 {
            apply(&db.control, [client("user:1", client_draft(&n.to_string()))]).await;
            heard(&mut here).await;
            heard(&mut there).await;
            apply(&elsewhere, [client("user:2", client_draft(&n.to_string()))]).await;
            heard(&mut here).await;
            heard(&mut there).await;
        }
        let nothing = apply(&db.control, [client("user:2", client_draft("2"))]).await;
        assert!(nothing.changes.is_empty());
    }
}
