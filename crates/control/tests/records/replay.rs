//! Change sets that are sent again with their idempotency key.

use tollgate_control::{Author, Error, Precondition};

use crate::databases::on_both;
use crate::drafts::{apply, change_set, per_second, rule};

on_both! {
    async fn a_repeated_change_set_changes_nothing_and_gets_the_same_response(db: Database) {
        let control = &db.control;
        let mut create = change_set([rule("orders", per_second(1), Precondition::Absent)]);
        create.idempotency_key = Some("key-1".to_owned());
        let first = control.apply(&create).await.unwrap();
        apply(control, [rule("orders", per_second(2), Precondition::Present)]).await;
        let again = control.apply(&create).await.unwrap();
        assert_eq!((again.generation, again.replayed), (1, true));
        assert_eq!(again.changes, first.changes);
        assert_eq!(control.state_generation().await, 2);

        let mut other = create.clone();
        other.edits = change_set([rule("orders", per_second(3), Precondition::Absent)]).edits;
        assert_eq!(control.apply(&other).await, Err(Error::KeyReused));
        other.author = Author { id: "other".to_owned(), name: String::new() };
        assert!(matches!(control.apply(&other).await, Err(Error::Conflict(_))), "each author has keys of their own");
    }

    async fn of_concurrent_repetitions_one_is_applied(db: Database) {
        let mut create = change_set([rule("orders", per_second(1), Precondition::Absent)]);
        create.idempotency_key = Some("key-1".to_owned());
        let nodes = [db.control.clone(), db.node()];
        let sending = (0..16).map(|n| {
            let (node, create) = (nodes[n % 2].clone(), create.clone());
            tokio::spawn(async move { node.apply(&create).await.unwrap() })
        });
        let mut done = 0;
        for one in sending.collect::<Vec<_>>() {
            let applied = one.await.unwrap();
            assert_eq!(applied.generation, 1);
            done += usize::from(!applied.replayed);
        }
        assert_eq!(done, 1);
    }

    async fn a_failed_change_set_may_be_repeated(db: Database) {
        let control = &db.control;
        let mut change = change_set([rule("orders", per_second(1), Precondition::Present)]);
        change.idempotency_key = Some("key-1".to_owned());
        assert!(matches!(control.apply(&change).await, Err(Error::NotFound(_))));
        apply(control, [rule("orders", per_second(2), Precondition::Absent)]).await;
        assert_eq!(control.apply(&change).await.unwrap().generation, 2);
        assert!(control.apply(&change).await.unwrap().replayed);
    }

    async fn responses_are_kept_for_a_day(db: Database) {
        let control = &db.control;
        let mut create = change_set([rule("orders", per_second(1), Precondition::Anything)]);
        create.idempotency_key = Some("key-1".to_owned());
        control.apply(&create).await.unwrap();
        db.run("UPDATE idempotency_keys SET at = '2020-01-01T00:00:00.000000Z'").await;
        assert!(!control.apply(&create).await.unwrap().replayed);
        assert_eq!(db.texts("SELECT key FROM idempotency_keys").await, ["key-1"]);
        for key in ["", "\u{7}", &"k".repeat(257)] {
            create.idempotency_key = Some(key.to_owned());
            assert!(matches!(control.apply(&create).await, Err(Error::Invalid(_))));
        }
    }
}

trait Generation {
    async fn state_generation(&self) -> i64;
}

impl Generation for tollgate_control::Control {
    async fn state_generation(&self) -> i64 {
        self.snapshot().await.unwrap().state().await.unwrap().generation
    }
}
