//! Odd bytes, and attempts at SQL injection (RELIABILITY S01).

use serde_json::json;
use tollgate_control::{ClientFilter, Error, OverrideFilter, Page, Precondition, RuleFilter};

use crate::databases::on_both;
use crate::drafts::{
    NAMESPACE, apply, change_set, client, client_draft, faults, override_draft, overriding, per_second, refused, rule,
    rule_draft,
};

const ODD: [&str; 12] = [
    "'; DROP TABLE clients; --",
    "\" OR \"\"=\"",
    "%",
    "_",
    "$1",
    "?",
    "\\",
    "\\u0000",
    "🦀é\u{202e}",
    "' || (SELECT 1) || '",
    "NULL",
    "1e3",
];

on_both! {
    async fn odd_text_is_stored_unchanged(db: Database) {
        let control = &db.control;
        let describe = |text: &str| {
            let limit = json!({ "requests": 1, "window": "1s" });
            rule_draft(json!({ "description": text, "match": { "tier": [text, "x"] }, "limit": limit }))
        };
        for (n, text) in ODD.into_iter().enumerate() {
            let (rule_id, override_id) = (format!("rule-{n}"), format!("override {n} '"));
            let mut known = client_draft(text);
            known.organisation = Some(text.to_owned());
            known.attributes.insert("note".to_owned(), text.to_owned());
            let mut change = override_draft(text, &rule_id, 5);
            change.reason = text.to_owned();
            apply(control, [
                rule(&rule_id, describe(text), Precondition::Absent),
                client(text, known.clone()),
                overriding(&override_id, change.clone()),
            ]).await;
            assert_eq!(control.rule(NAMESPACE, &rule_id).await.unwrap().draft.document["description"], json!(text));
            assert_eq!(control.client(NAMESPACE, text).await.unwrap().draft, known);
            assert_eq!(control.overriding(NAMESPACE, &override_id).await.unwrap().draft, change);
            let filter = RuleFilter { tier: Some(text.to_owned()), ..RuleFilter::default() };
            assert_eq!(control.rules(&filter, &Page::default()).await.unwrap().entries.len(), 1, "{text}");
            let filter = ClientFilter { prefix: Some(text.to_owned()), ..ClientFilter::default() };
            assert_eq!(control.clients(&filter, &Page::default()).await.unwrap().entries.len(), 1, "{text}");
            let filter = OverrideFilter { client_key: Some(text.to_owned()), ..OverrideFilter::default() };
            assert_eq!(control.overrides(&filter, &Page::default()).await.unwrap().entries.len(), 1, "{text}");
        }
        assert_eq!(control.verify_audit().await.unwrap().broken_at, None);
        assert_eq!(db.texts("SELECT CAST(COUNT(*) AS TEXT) FROM clients").await, [ODD.len().to_string()]);
    }

    async fn text_that_a_database_cannot_store_is_refused_first(db: Database) {
        let control = &db.control;
        apply(control, [rule("a", per_second(1), Precondition::Absent)]).await;
        let limit = json!({ "requests": 1, "window": "1s" });
        let nul = rule_draft(json!({ "description": "a\u{0}b", "match": { "tier": "\u{0}" }, "limit": limit }));
        let fields: Vec<String> = refused(control, [rule("b", nul, Precondition::Absent)]).await.into_iter().map(|(_, field)| field).collect();
        assert_eq!(fields, ["description", "match.tier"]);
        let mut change = override_draft("user:1", "a", 5);
        change.reason = "\u{0}".to_owned();
        assert_eq!(refused(control, [overriding("o", change)]).await[0].1, "reason");
        let mut known = client_draft("a\u{0}");
        known.attributes.insert("x".to_owned(), "\u{0}".to_owned());
        assert_eq!(faults(control, [client("user:1", known)]).await.len(), 2);
        for id in ["a\u{0}", "", "é", &"x".repeat(129)] {
            assert_eq!(refused(control, [rule(id, per_second(1), Precondition::Anything)]).await[0].1, "rule_id");
        }
        let mut named = per_second(1);
        named.name = "a\u{0}".to_owned();
        assert_eq!(refused(control, [rule("b", named, Precondition::Absent)]).await[0].1, "name");
    }

    async fn long_text_is_refused(db: Database) {
        let control = &db.control;
        let mebibyte = "x".repeat(1 << 20);
        let limit = json!({ "requests": 1, "window": "1s" });
        let described = rule_draft(json!({ "description": mebibyte, "limit": limit }));
        assert!(refused(control, [rule("a", described, Precondition::Absent)]).await.contains(&("too-large".into(), "description".into())));
        let many: Vec<String> = (0..9_000).map(|n| format!("{n:0>200}")).collect();
        let listed = rule_draft(json!({ "match": { "tier": many }, "limit": limit }));
        assert_eq!(refused(control, [rule("a", listed, Precondition::Absent)]).await[0], ("too-large".to_owned(), String::new()));
        let mut deep = json!("x");
        for _ in 0..50 {
            deep = json!([deep]);
        }
        let deep = rule_draft(json!({ "match": deep, "limit": limit }));
        assert_eq!(refused(control, [rule("a", deep, Precondition::Absent)]).await[0].0, "too-deep");
        assert_eq!(refused(control, [client("user:1", client_draft(&mebibyte))]).await[0].1, "tier");
        assert_eq!(refused(control, [client(&mebibyte, client_draft("gold"))]).await[0].1, "client_key");
        let mut known = client_draft("gold");
        known.attributes.extend((0..65).map(|n| (format!("a{n}"), "x".to_owned())));
        assert_eq!(refused(control, [client("user:1", known)]).await[0].1, "attributes");
        let mut change = override_draft("user:1", "a", 5);
        change.reason = mebibyte;
        assert_eq!(refused(control, [overriding("o", change)]).await[0].1, "reason");
        assert_eq!(control.apply(&change_set([])).await.unwrap().generation, 0);
    }

    async fn a_filter_may_hold_any_text(db: Database) {
        let control = &db.control;
        let about = |text: &str| ClientFilter { tier: Some(text.to_owned()), prefix: Some(text.to_owned()), ..ClientFilter::default() };
        for text in ODD {
            assert!(control.clients(&about(text), &Page::default()).await.unwrap().entries.is_empty());
            assert!(matches!(control.client(NAMESPACE, text).await, Err(Error::NotFound(_))));
        }
        assert!(matches!(control.clients(&about("x\u{0}y"), &Page::default()).await, Err(Error::Invalid(_))));
        assert!(matches!(control.rule("\u{0}", "a").await, Err(Error::Invalid(_))));
        let gone = change_set([rule("\u{0}", None, Precondition::Present)]);
        assert!(matches!(control.apply(&gone).await, Err(Error::NotFound(_))));
    }
}
