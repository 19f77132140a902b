//! Rollback to earlier generations, after random edits.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_control::record::{NamespaceDraft, RuleModeDraft};
use tollgate_control::{ChangeSet, Control, Dependents, Edit, Enforcement, Error, Precondition, RecordKind};

use crate::by_hand::follow;
use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, change_set, client_draft, override_draft, overriding, rule_draft};

/// All records, without the fields that every change sets.
async fn state(control: &Control) -> BTreeMap<(RecordKind, String, String), Value> {
    let mut all = BTreeMap::new();
    let mut snapshot = control.snapshot().await.unwrap();
    let strip = |mut json: Value| {
        json.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_at") && name != "version");
        json
    };
    for (name, draft) in snapshot.namespaces().await.unwrap() {
        if draft != NamespaceDraft::default() {
            all.insert((RecordKind::Namespace, name.clone(), name), draft.json());
        }
    }
    let put = |row: tollgate_control::record::RuleRecord| {
        ((RecordKind::Rule, row.namespace.clone(), row.rule_id.clone()), strip(row.json()))
    };
    snapshot.rules(None, |row| all.extend([put(row.unwrap())])).await.unwrap();
    snapshot
        .clients(|row| {
            let row = row.unwrap();
            all.insert((RecordKind::Client, row.namespace.clone(), row.client_key.clone()), strip(row.json()));
        })
        .await
        .unwrap();
    snapshot
        .overrides(|row| {
            let row = row.unwrap();
            all.insert((RecordKind::Override, row.namespace.clone(), row.override_id.clone()), strip(row.json()));
        })
        .await
        .unwrap();
    all
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn draw(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn edit(&mut self) -> Edit {
        let namespace = ["default", "shop"][usize::try_from(self.draw(2)).unwrap()].to_owned();
        let (id, keep, expect) = (self.draw(4), self.draw(3) > 0, Precondition::Anything);
        match self.draw(10) {
            0..=3 => {
                let replaces: Vec<String> = (0..id.min(self.draw(3))).map(|n| format!("rule-{n}")).collect();
                let document = json!({
                    "limit": { "requests": 1 + self.draw(9), "window": format!("{}ms", 1 + self.draw(5000)) },
                    "match": { "tier": ["free", format!("t{}", self.draw(3))] },
                    "replaces": replaces,
                    "mode": if self.draw(2) == 0 { "shadow" } else { "enforce" },
                });
                Edit::Rule { namespace, rule_id: format!("rule-{id}"), to: keep.then(|| rule_draft(document)), expect }
            }
            4..=6 => {
                let to = override_draft(
                    &format!("user:{}", self.draw(3)),
                    &format!("rule-{}", self.draw(4)),
                    1 + i64::try_from(self.draw(50)).unwrap(),
                );
                Edit::Override { namespace, override_id: format!("o-{id}"), to: keep.then_some(to), expect }
            }
            7..=8 => {
                let mut to = client_draft(&format!("t{}", self.draw(3)));
                to.attributes.insert("n".to_owned(), self.draw(3).to_string());
                Edit::Client { namespace, client_key: format!("user:{id}"), to: keep.then_some(to), expect }
            }
            _ => {
                let to = NamespaceDraft {
                    ipv6_prefix: u8::try_from(48 + self.draw(3)).unwrap(),
                    ..NamespaceDraft::default()
                };
                Edit::Namespace { namespace, to: keep.then_some(to), expect }
            }
        }
    }
}

on_both! {
    async fn settings_of_a_namespace_are_reverted_unless_they_changed_since(db: Database) {
        let control = &db.control;
        let set = |ipv6_prefix| {
            let to = NamespaceDraft { ipv6_prefix, ..NamespaceDraft::default() };
            Edit::Namespace { namespace: NAMESPACE.to_owned(), to: Some(to), expect: Precondition::Anything }
        };
        let prefix = async || {
            let namespaces = control.namespaces().await.unwrap();
            namespaces.iter().find(|(name, _)| name == NAMESPACE).map(|(_, draft)| draft.ipv6_prefix)
        };
        for ipv6_prefix in [48, 56] {
            control.apply(&change_set([set(ipv6_prefix)])).await.unwrap();
        }
        let first = control.revert_edit(1, |namespace| namespace == NAMESPACE).await.unwrap();
        assert!(matches!(control.apply(&change_set([first])).await, Err(Error::Stale { version: Some(2), .. })));
        assert_eq!(prefix().await, Some(56));
        let hidden = control.revert_edit(1, |_| false).await.unwrap_err();
        assert_eq!(hidden, Error::NotFound("change 1 in the audit".to_owned()), "as if it did not exist");
        let second = control.revert_edit(2, |namespace| namespace == NAMESPACE).await.unwrap();
        control.apply(&change_set([second])).await.unwrap();
        assert_eq!(prefix().await, Some(48));
        db.run("UPDATE rate_limit_namespaces SET ipv6_prefix = 60").await;
        while control.record_sql_edits().await.unwrap() {}
        let third = control.revert_edit(3, |namespace| namespace == NAMESPACE).await.unwrap();
        assert!(matches!(control.apply(&change_set([third])).await, Err(Error::Stale { .. })), "SQL changed it since");
    }

    async fn a_rollback_restores_exactly_the_earlier_state(db: Database) {
        let control = &db.control;
        let mut dice = Dice(11);
        let mut states = vec![state(control).await];
        let (mut refused, mut tries) = (0, 0);
        while states.len() < 80 {
            tries += 1;
            let edits: Vec<Edit> = (0..1 + dice.draw(3)).map(|_| dice.edit()).collect();
            match control.apply(&change_set(edits)).await {
                Ok(applied) if applied.generation < i64::try_from(states.len()).unwrap() => {}
                Ok(_) => states.push(state(control).await),
                Err(Error::Invalid(_) | Error::Conflict(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused > 0 && refused < tries / 2, "{refused} of {tries} were refused: the dice are loaded");
        for _ in 0..25 {
            let to = usize::try_from(dice.draw(u64::try_from(states.len()).unwrap())).unwrap();
            let generation = i64::try_from(to).unwrap();
            let edits = control.rollback_edits(generation).await.unwrap();
            let applied = apply(control, edits).await;
            assert_eq!(state(control).await, states[to], "back to {to}");
            if !applied.changes.is_empty() {
                states.push(states[to].clone());
            }
            assert!(control.rollback_edits(generation).await.unwrap().is_empty(), "there already");
            assert!(control.diff(generation, applied.generation).await.unwrap().is_empty());
        }
        assert_eq!(control.verify_audit().await.unwrap().broken_at, None);
    }

    async fn a_rollback_of_rules_keeps_overrides_and_modes_unless_asked(db: Database) {
        let control = &db.control;
        let limit = |n: u64| rule_draft(json!({ "limit": { "requests": n, "window": "1s" } }));
        let rule = |id: &str, to| crate::drafts::rule(id, to, Precondition::Anything);
        let to = RuleModeDraft { mode: Enforcement::Shadow, reason: String::new() };
        let mode = Edit::RuleMode { namespace: NAMESPACE.to_owned(), rule_id: "b".to_owned(), to: Some(to), expect: Precondition::Absent };
        apply(control, [rule("a", Some(limit(1)))]).await;
        apply(control, [rule("b", Some(limit(1))), overriding("o", override_draft("user:1", "b", 5)), mode]).await;
        let whole = state(control).await;
        let rules_of = async |generation| {
            let edits = control.rollback_edits(generation).await.unwrap();
            let edits = edits.into_iter().filter(|edit| matches!(edit, Edit::Rule { .. }));
            ChangeSet { dependents: Dependents::Keep, ..change_set(edits) }
        };
        let applied = control.apply(&rules_of(1).await).await.unwrap();
        assert_eq!(applied.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [RecordKind::Rule]);
        assert!(matches!(control.rule(NAMESPACE, "b").await, Err(Error::NotFound(_))));
        assert!(control.overriding(NAMESPACE, "o").await.is_ok() && control.rule_mode(NAMESPACE, "b").await.is_ok());
        let (_feed, seen) = follow(&db).await;
        let loaded = seen.lock().unwrap().clone().unwrap();
        assert!(loaded.quarantined.is_empty(), "an override without its rule has no effect: {:?}", loaded.quarantined);

        control.apply(&rules_of(2).await).await.unwrap();
        assert_eq!(state(control).await, whole, "the rule has its override again");
        apply(control, control.rollback_edits(1).await.unwrap()).await;
        assert!(control.overriding(NAMESPACE, "o").await.is_err() && control.rule_mode(NAMESPACE, "b").await.is_err());
    }

    async fn a_diff_works_in_both_directions(db: Database) {
        let control = &db.control;
        let limit = |n: u64| rule_draft(json!({ "limit": { "requests": n, "window": "1s" } }));
        let rule = |id: &str, to| crate::drafts::rule(id, to, Precondition::Anything);
        apply(control, [rule("a", Some(limit(1))), rule("b", Some(limit(1)))]).await;
        apply(control, [rule("a", Some(limit(2)))]).await;
        apply(control, [rule("b", None), rule("c", Some(limit(3)))]).await;
        apply(control, [rule("a", Some(limit(1)))]).await;
        let ids = async |from, to| {
            let changes = control.diff(from, to).await.unwrap();
            let told = |change: tollgate_control::Change| (change.id, change.before.is_some(), change.after.is_some());
            changes.into_iter().map(told).collect::<Vec<_>>()
        };
        let row = |id: &str, before, after| (id.to_owned(), before, after);
        assert_eq!(ids(1, 2).await, [row("a", true, true)]);
        assert_eq!(ids(1, 4).await, [row("b", true, false), row("c", false, true)], "what came back is no difference");
        assert_eq!(ids(4, 1).await, [row("b", false, true), row("c", true, false)]);
        assert_eq!(ids(0, 1).await, [row("a", false, true), row("b", false, true)]);
        assert!(ids(2, 2).await.is_empty());
        assert!(matches!(control.diff(1, 5).await, Err(Error::NotFound(_))));
        assert!(matches!(control.rollback_edits(-1).await, Err(Error::NotFound(_))));
        assert!(matches!(control.rollback_edits(5).await, Err(Error::NotFound(_))));
    }
}
