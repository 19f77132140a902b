//! Concurrent writers.

use std::collections::BTreeSet;

use tollgate_control::{Error, Page, Precondition};

use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, change_set, client, client_draft, per_second, rule};

on_both! {
    async fn of_many_writers_of_one_version_one_wins(db: Database) {
        apply(&db.control, [rule("orders", per_second(1), Precondition::Absent)]).await;
        let nodes = [db.control.clone(), db.node()];
        let writing = (0..32).map(|n: u64| {
            let node = nodes[usize::try_from(n).unwrap() % 2].clone();
            tokio::spawn(async move { node.apply(&change_set([rule("orders", per_second(100 + n), Precondition::Version(1))])).await })
        });
        let (mut won, mut stale) = (Vec::new(), 0);
        for one in writing.collect::<Vec<_>>() {
            match one.await.unwrap() {
                Ok(applied) => won.push(applied),
                Err(Error::Stale { version: Some(2), .. }) => stale += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!((won.len(), stale), (1, 31));
        assert_eq!(won[0].changes[0].after, Some(db.control.rule(NAMESPACE, "orders").await.unwrap().json()));
    }

    async fn generations_follow_each_other_without_gaps(db: Database) {
        let nodes = [db.control.clone(), db.node(), db.node()];
        let writing = (0..32).map(|n: u64| {
            let node = nodes[usize::try_from(n).unwrap() % 3].clone();
            tokio::spawn(async move {
                let mut generations = Vec::new();
                for m in 0..4 {
                    let edits = [
                        rule(&format!("rule-{n}"), per_second(1 + m), Precondition::Anything),
                        client(&format!("user:{n}"), client_draft(&format!("tier-{m}"))),
                    ];
                    generations.push(node.apply(&change_set(edits)).await.unwrap().generation);
                }
                generations
            })
        });
        let mut seen = BTreeSet::new();
        for one in writing.collect::<Vec<_>>() {
            let generations = one.await.unwrap();
            assert!(generations.is_sorted());
            seen.extend(generations);
        }
        assert_eq!(seen, (1..=128).collect());
        let verified = db.control.verify_audit().await.unwrap();
        assert_eq!((verified.rows, verified.broken_at), (256, None));
        let page = Page { limit: 1000, after: None };
        let listed = db.control.generations(None, &page).await.unwrap().entries;
        let listed: Vec<i64> = listed.into_iter().map(|record| record.generation).collect();
        assert_eq!(listed, (1..=128).rev().collect::<Vec<_>>());
    }

    async fn readers_never_see_a_part_of_a_change_set(db: Database) {
        let pair = |n| [rule("a", per_second(n), Precondition::Anything), rule("z", per_second(n), Precondition::Anything)];
        apply(&db.control, pair(1)).await;
        let writer = db.node();
        let writing = tokio::spawn(async move {
            for n in 2..60 {
                writer.apply(&change_set(pair(n))).await.unwrap();
            }
        });
        let mut looks = 0;
        while !writing.is_finished() || looks == 0 {
            let mut snapshot = db.control.snapshot().await.unwrap();
            let state = snapshot.state().await.unwrap();
            let mut seen = Vec::new();
            snapshot.rules(None, |row| seen.push(row.unwrap())).await.unwrap();
            assert_eq!((seen[0].version, &seen[0].draft), (seen[1].version, &seen[1].draft));
            assert_eq!(seen[0].version, state.generation, "a snapshot is of one generation");
            let listed = db.control.rules(&Default::default(), &Page::default()).await.unwrap().entries;
            assert_eq!(listed[0].version, listed[1].version);
            looks += 1;
        }
        writing.await.unwrap();
    }
}
