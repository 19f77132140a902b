//! Records are created, read, changed and deleted.

use serde_json::json;
use tollgate_control::record::{NamespaceDraft, RuleDraft};
use tollgate_control::{Edit, Error, Precondition, RecordKind};
use tollgate_rules::Normalize;

use crate::databases::on_both;
use crate::drafts::{
    NAMESPACE, NEW_YEAR, apply, client, client_draft, faults, override_draft, overriding, per_second, refused, rule,
    rule_draft,
};

on_both! {
    async fn a_rule_is_made_changed_and_deleted(db: Database) {
        let control = &db.control;
        let made = apply(control, [rule("orders", per_second(10), Precondition::Absent)]).await;
        assert_eq!((made.generation, made.changes.len(), made.replayed), (1, 1, false));
        assert_eq!((made.changes[0].kind, made.changes[0].id.as_str()), (RecordKind::Rule, "orders"));
        assert_eq!(made.changes[0].before, None);

        let record = control.rule(NAMESPACE, "orders").await.unwrap();
        assert_eq!((record.version, record.created_at), (1, record.updated_at));
        assert_eq!(made.changes[0].after, Some(record.json()));
        assert_eq!(record.draft.document["limit"], json!({"algorithm": "token_bucket", "requests": 10, "window": "1s"}));

        let changed = apply(control, [rule("orders", per_second(20), Precondition::Version(1))]).await;
        let after = control.rule(NAMESPACE, "orders").await.unwrap();
        assert_eq!((changed.generation, after.version), (2, 2));
        assert_eq!(after.created_at, record.created_at);
        assert!(after.updated_at >= record.updated_at);
        assert_eq!(changed.changes[0].before, Some(record.json()));

        let deleted = apply(control, [rule("orders", None, Precondition::Present)]).await;
        assert_eq!((deleted.generation, &deleted.changes[0].after), (3, &None));
        assert!(matches!(control.rule(NAMESPACE, "orders").await, Err(Error::NotFound(_))));
        let again = apply(control, [rule("orders", per_second(20), Precondition::Absent)]).await;
        assert_eq!(again.generation, 4, "a version is never used twice");
    }

    async fn overrides_clients_and_settings_are_written_and_read(db: Database) {
        let control = &db.control;
        let mut change = override_draft("user:42", "orders", 100);
        (change.burst_size, change.valid_from, change.reason) = (200, Some(NEW_YEAR), "a launch".to_owned());
        let mut known = client_draft("gold");
        known.organisation = Some("acme".to_owned());
        known.attributes.insert("region".to_owned(), "eu".to_owned());
        let settings = NamespaceDraft {
            ipv6_prefix: 48,
            keep_escaped_slash: true,
            allow_block_all: true,
            normalize: Normalize::Nfkc,
        };
        let applied = apply(control, [
            overriding("launch", change.clone()),
            rule("orders", per_second(10), Precondition::Absent),
            client("user:42", known.clone()),
            Edit::Namespace { namespace: NAMESPACE.to_owned(), to: Some(settings.clone()), expect: Precondition::Anything },
        ]).await;
        assert_eq!((applied.generation, applied.changes.len()), (1, 4), "an override may come before its rule");

        let stored = control.overriding(NAMESPACE, "launch").await.unwrap();
        assert_eq!((stored.draft, stored.version), (change, 1));
        let stored = control.client(NAMESPACE, "user:42").await.unwrap();
        assert_eq!((stored.draft, stored.version), (known, 1));
        assert_eq!(control.namespaces().await.unwrap(), [(NAMESPACE.to_owned(), settings)]);

        apply(control, [
            overriding("launch", None),
            client("user:42", None),
            Edit::Namespace { namespace: NAMESPACE.to_owned(), to: None, expect: Precondition::Anything },
        ]).await;
        assert!(matches!(control.overriding(NAMESPACE, "launch").await, Err(Error::NotFound(_))));
        assert!(matches!(control.client(NAMESPACE, "user:42").await, Err(Error::NotFound(_))));
        assert_eq!(control.namespaces().await.unwrap(), [(NAMESPACE.to_owned(), NamespaceDraft::default())]);
    }

    async fn edits_without_effect_make_no_generation(db: Database) {
        let control = &db.control;
        let edits = || [
            rule("orders", rule_draft(json!({ "limit": { "requests": 10, "window": "60s" } })), Precondition::Anything),
            overriding("o", override_draft("user:1", "orders", 20)),
            client("user:1", client_draft("gold")),
        ];
        assert_eq!(apply(control, edits()).await.changes.len(), 3);
        let again = apply(control, edits()).await;
        assert_eq!((again.generation, again.changes.len()), (1, 0));
        let spelled = rule_draft(json!({ "limit": { "requests": 10, "window": "1m", "burst": 0 }, "cost": 1 }));
        assert_eq!(apply(control, [rule("orders", spelled, Precondition::Anything)]).await.generation, 1);
        let gone = apply(control, [rule("no-such", None, Precondition::Anything), client("user:9", None)]).await;
        assert_eq!((gone.generation, gone.changes.len()), (1, 0));
        assert_eq!(apply(control, []).await.generation, 1);
    }

    async fn a_dry_run_returns_the_changes_and_commits_nothing(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Anything), overriding("o", override_draft("user:1", "a", 2))]).await;
        let mut changes = crate::drafts::change_set([rule("a", None, Precondition::Anything), rule("b", per_second(1), Precondition::Absent)]);
        (changes.dry_run, changes.idempotency_key) = (true, Some("k".to_owned()));
        let tried = control.apply(&changes).await.unwrap();
        assert_eq!((tried.generation, tried.changes.len()), (1, 3));
        assert!(control.rule(NAMESPACE, "a").await.is_ok());
        assert!(control.rule(NAMESPACE, "b").await.is_err());
        changes.dry_run = false;
        let done = control.apply(&changes).await.unwrap();
        assert_eq!((done.generation, done.replayed), (2, false), "a trial is not remembered");
        assert_eq!(without_times(&done.changes), without_times(&tried.changes));
    }

    async fn a_change_set_is_applied_whole_or_not_at_all(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Anything)]).await;
        let bad = crate::drafts::change_set([
            rule("b", per_second(1), Precondition::Absent),
            client("user:1", client_draft("gold")),
            rule("a", per_second(2), Precondition::Version(7)),
        ]);
        let Err(Error::Stale { version, .. }) = control.apply(&bad).await else { panic!("it was done") };
        assert_eq!(version, Some(1));
        assert!(control.rule(NAMESPACE, "b").await.is_err());
        assert!(control.client(NAMESPACE, "user:1").await.is_err());
        assert!(control.verify_audit().await.unwrap().broken_at.is_none());
    }

    async fn rules_of_one_endpoint_differ_by_their_ids_or_names(db: Database) {
        let control = &db.control;
        let tier = |tier: &str| rule_draft(json!({
            "match": { "tier": tier, "endpoint": "GET /orders" }, "limit": { "requests": 1, "window": "1s" },
        }));
        let named = |name: &str| RuleDraft { name: name.to_owned(), ..tier("gold") };
        apply(control, [rule("free", tier("free"), Precondition::Absent), rule("paid", tier("paid"), Precondition::Absent)]).await;
        apply(control, [rule("gold", named("for-friends"), Precondition::Absent)]).await;
        assert_eq!(control.rule(NAMESPACE, "gold").await.unwrap().draft.name, "for-friends");
        assert_eq!(control.rule(NAMESPACE, "free").await.unwrap().draft.name, "");
        let changes = crate::drafts::change_set([rule("other", named("for-friends"), Precondition::Absent)]);
        let Err(Error::Conflict(why)) = control.apply(&changes).await else { panic!("it was made") };
        assert_eq!(why, "another rule of this namespace has the same client_key, endpoint and name; give it another name");
    }

    async fn errors_name_their_field(db: Database) {
        let control = &db.control;
        let wrong = rule_draft(json!({ "limit": { "requests": "ten", "window": "1", "brust": 3 }, "mode": "of" }));
        assert_eq!(refused(control, [rule("a b\"", per_second(1), Precondition::Absent)]).await, [pair("bad-name", "rule_id")]);
        assert_eq!(refused(control, [rule("a", wrong, Precondition::Absent)]).await, [
            pair("unknown-field", "limit.brust"),
            pair("wrong-type", "limit.requests"),
            pair("bad-duration", "limit.window"),
            pair("unknown-value", "mode"),
        ]);
        let fine = rule_draft(json!({ "limit": { "requests": 1, "window": "1s500us" } }));
        assert_eq!(refused(control, [rule("a", fine, Precondition::Absent)]).await[0].1, "limit.window");
        let named = rule_draft(json!({ "name": "x", "limit": { "requests": 1, "window": "1s" } }));
        assert_eq!(refused(control, [rule("a", named, Precondition::Absent)]).await, [pair("unknown-field", "name")]);

        let mut change = override_draft("user:1", "no-such", 5);
        assert_eq!(refused(control, [overriding("o", change.clone())]).await, [pair("unknown-rule", "rule_id")]);
        (change.valid_from, change.valid_until) = (Some(change.valid_until), NEW_YEAR);
        assert_eq!(refused(control, [overriding("o", change.clone())]).await, [pair("bad-time", "valid_until")]);
        change.max_requests = Some(-1);
        assert!(refused(control, [overriding("o", change)]).await.contains(&pair("out-of-range", "max_requests")));
        assert_eq!(refused(control, [client("", client_draft("gold"))]).await[0].1, "client_key");
        let mut known = client_draft("gold");
        known.attributes.insert("tier".to_owned(), "x".to_owned());
        assert_eq!(refused(control, [client("user:1", known)]).await, [pair("misplaced-field", "attributes.tier")]);
        let settings = NamespaceDraft { ipv6_prefix: 129, ..NamespaceDraft::default() };
        let edit = Edit::Namespace { namespace: "a".to_owned(), to: Some(settings), expect: Precondition::Anything };
        assert_eq!(refused(control, [edit]).await, [pair("out-of-range", "ipv6_prefix")]);

        let several = [rule("fine", per_second(1), Precondition::Absent), rule("bad", rule_draft(json!({})), Precondition::Absent)];
        assert_eq!(faults(control, several).await[0].field, "edits[1]");
    }

    async fn patterns_without_literal_text_are_refused_beyond_their_limit(db: Database) {
        let control = &db.control;
        let crowded = |number: usize| {
            let text: String = (0..11).map(|bit| if number >> bit & 1 == 1 { "*a" } else { "*b" }).collect();
            let limit = json!({ "requests": 1, "window": "1s" });
            rule_draft(json!({ "match": { "org": format!("{text}*") }, "limit": limit }))
        };
        let id = |number: usize| format!("r{number:04}");
        let together = |from: usize, to: usize| (from..to).map(move |n| rule(&id(n), crowded(n), Precondition::Absent));
        let all = faults(control, together(0, 2048)).await;
        assert!(!all.is_empty() && all.iter().all(|fault| fault.code == "crowded-patterns"), "{:?}", all.first());
        apply(control, together(0, 450)).await;
        let mut next = 450;
        while control.apply(&crate::drafts::change_set(together(next, next + 50))).await.is_ok() {
            next += 50;
            assert!(next < 2048, "nothing was refused");
        }
        let refusal = loop {
            match control.apply(&crate::drafts::change_set(together(next, next + 1))).await {
                Ok(_) => next += 1,
                Err(Error::Invalid(faults)) => break faults,
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(refusal.len(), 1);
        assert_eq!((refusal[0].code.as_str(), refusal[0].field.as_str()), ("crowded-patterns", "match.org"));
        assert!(refusal[0].message.contains("have no text that tells them apart"), "{}", refusal[0].message);
        // Patterns with literal text, existing ones and exact values are not refused.
        let own = json!({ "match": { "org": "*-only-this-one-*" }, "limit": { "requests": 1, "window": "1s" } });
        apply(control, [rule("own", rule_draft(own), Precondition::Absent)]).await;
        let mut more = crowded(next - 1);
        more.enabled = false;
        apply(control, [rule(&id(next - 1), more, Precondition::Present), rule("plain", per_second(1), Precondition::Absent)]).await;
    }

    async fn edits_that_are_invalid_only_together_are_refused(db: Database) {
        let control = &db.control;
        let replacing = |names: &[&str]| rule_draft(json!({ "unlimited": true, "replaces": names }));
        assert_eq!(refused(control, [rule("a", replacing(&["b"]), Precondition::Absent)]).await, [pair("unknown-rule", "replaces[0]")]);
        apply(control, [rule("b", per_second(1), Precondition::Absent), rule("a", replacing(&["b"]), Precondition::Absent)]).await;
        let Err(Error::Conflict(why)) = control.apply(&crate::drafts::change_set([rule("b", None, Precondition::Anything)])).await else {
            panic!("it was deleted");
        };
        assert_eq!(why, "the rule `a` names `b` in `replaces`; change that first");
        let circle = rule_draft(json!({ "limit": { "requests": 1, "window": "1s" }, "replaces": "a" }));
        assert_eq!(refused(control, [rule("b", circle, Precondition::Anything)]).await, [pair("replaces-cycle", "replaces")]);

        apply(control, [overriding("o", override_draft("user:1", "b", 5))]).await;
        let twice = [overriding("p", override_draft("user:1", "b", 6))];
        assert_eq!(refused(control, twice).await, [pair("duplicate-name", "")]);
        let unlimited = rule_draft(json!({ "unlimited": true }));
        assert_eq!(refused(control, [rule("b", unlimited, Precondition::Anything)]).await, [pair("bad-override", "limit")]);

        let block = rule_draft(json!({ "limit": { "requests": 0, "window": "1s" } }));
        assert_eq!(refused(control, [rule("c", block.clone(), Precondition::Anything)]).await, [pair("block-all", "limit")]);
        let settings = |allow_block_all| Edit::Namespace {
            namespace: NAMESPACE.to_owned(),
            to: Some(NamespaceDraft { allow_block_all, ..NamespaceDraft::default() }), expect: Precondition::Anything };
        apply(control, [rule("c", block, Precondition::Anything), settings(true)]).await;
        let refused = faults(control, [settings(false)]).await;
        assert_eq!(refused[0].message, "the rule `c` would be refused: limit: the rule refuses every request");
    }
}

fn pair(code: &str, field: &str) -> (String, String) {
    (code.to_owned(), field.to_owned())
}

fn without_times(changes: &[tollgate_control::Change]) -> Vec<tollgate_control::Change> {
    let mut changes = changes.to_vec();
    for record in changes.iter_mut().flat_map(|change| [&mut change.before, &mut change.after]).flatten() {
        record.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_at"));
    }
    changes
}
