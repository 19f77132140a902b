//! Lists, their filters and their pages.

use serde_json::json;
use tollgate_control::{
    ClientFilter, Control, Edit, Error, Instant, Listing, OverrideFilter, Page, Precondition, Result, RuleFilter,
};

use crate::databases::on_both;
use crate::drafts::{
    NEW_YEAR, NEXT_YEAR, apply, client, client_draft, override_draft, overriding, per_second, rule, rule_draft,
};

async fn rule_ids(control: &Control, filter: RuleFilter) -> Vec<String> {
    let page = Page { limit: 1000, after: None };
    control.rules(&filter, &page).await.unwrap().entries.into_iter().map(|record| record.rule_id).collect()
}

async fn keys(control: &Control, filter: ClientFilter) -> Vec<String> {
    let page = Page { limit: 1000, after: None };
    control.clients(&filter, &page).await.unwrap().entries.into_iter().map(|record| record.client_key).collect()
}

/// Reads a list page by page.
async fn walk<T>(limit: u32, mut ask: impl AsyncFnMut(Page) -> Result<Listing<T>>) -> Vec<T> {
    let (mut all, mut page) = (Vec::new(), Page { limit, after: None });
    loop {
        let listing = ask(page.clone()).await.unwrap();
        assert!(listing.entries.len() <= usize::try_from(limit).unwrap());
        assert!(listing.next.is_none() || !listing.entries.is_empty());
        all.extend(listing.entries);
        match listing.next {
            Some(next) => page.after = Some(next),
            None => return all,
        }
    }
}

on_both! {
    async fn rules_by_endpoint_tier_client_name_and_state(db: Database) {
        let control = &db.control;
        let limit = json!({ "requests": 1, "window": "1s" });
        let with = |conditions| rule_draft(json!({ "match": conditions, "limit": limit }));
        let mut off = with(json!({ "tier": "gold" }));
        (off.enabled, off.name) = (false, "golden".to_owned());
        let elsewhere = Edit::Rule {
            namespace: "shop".to_owned(),
            rule_id: "elsewhere".to_owned(),
            to: Some(with(json!({ "tier": "free" }))),
            expect: Precondition::Absent,
        };
        apply(control, [
            rule("one", with(json!({ "endpoint": "/api/orders", "tier": "free" })), Precondition::Absent),
            rule("two", with(json!({ "endpoint": ["/api/orders", "/api/carts"], "tier": ["trial", "free"] })), Precondition::Absent),
            rule("three", with(json!({ "endpoint": "/api/ordersX", "tier": "freely" })), Precondition::Absent),
            rule("four", with(json!({ "client_key": "user:1", "tier": ["!free"] })), Precondition::Absent),
            rule("five", with(json!({ "client_key": ["user:1", "user:2"] })), Precondition::Absent),
            rule("off", off, Precondition::Absent),
            elsewhere,
        ]).await;
        let filter = RuleFilter::default;
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(rule_ids(control, RuleFilter { endpoint: text("/api/orders"), ..filter() }).await, ["one", "two"]);
        assert_eq!(rule_ids(control, RuleFilter { tier: text("free"), ..filter() }).await, ["one", "two", "elsewhere"]);
        let both = RuleFilter { endpoint: text("/api/orders"), tier: text("trial"), ..filter() };
        assert_eq!(rule_ids(control, both).await, ["two"]);
        assert_eq!(rule_ids(control, RuleFilter { client_key: text("user:1"), ..filter() }).await, ["five", "four"]);
        assert_eq!(rule_ids(control, RuleFilter { name: text("golden"), ..filter() }).await, ["off"]);
        assert_eq!(rule_ids(control, RuleFilter { name: text("one"), ..filter() }).await, ["one"]);
        assert_eq!(rule_ids(control, RuleFilter { enabled: Some(false), ..filter() }).await, ["off"]);
        assert_eq!(rule_ids(control, RuleFilter { namespaces: Some(vec!["shop".to_owned()]), ..filter() }).await, ["elsewhere"]);
        let two = Some(vec!["shop".to_owned(), "none".to_owned()]);
        assert_eq!(rule_ids(control, RuleFilter { namespaces: two, ..filter() }).await, ["elsewhere"]);
        assert!(rule_ids(control, RuleFilter { namespaces: Some(Vec::new()), ..filter() }).await.is_empty());
        assert!(rule_ids(control, RuleFilter { tier: text("%"), ..filter() }).await.is_empty());
    }

    async fn overrides_by_client_rule_and_instant(db: Database) {
        let control = &db.control;
        let mut later = override_draft("user:1", "b", 1);
        later.valid_from = Some(NEW_YEAR);
        apply(control, [
            rule("a", per_second(1), Precondition::Absent),
            rule("b", per_second(1), Precondition::Absent),
            overriding("1a", override_draft("user:1", "a", 1)),
            overriding("1b", later),
            overriding("2a", override_draft("user:2", "a", 1)),
        ]).await;
        let ids = async |filter: OverrideFilter| {
            let listing = control.overrides(&filter, &Page::default()).await.unwrap();
            listing.entries.into_iter().map(|record| record.override_id).collect::<Vec<_>>()
        };
        let filter = OverrideFilter::default;
        assert_eq!(ids(OverrideFilter { client_key: Some("user:1".to_owned()), ..filter() }).await, ["1a", "1b"]);
        assert_eq!(ids(OverrideFilter { rule_id: Some("a".to_owned()), ..filter() }).await, ["1a", "2a"]);
        let at = |instant| OverrideFilter { holds_at: Some(instant), ..filter() };
        assert_eq!(ids(at(Instant(NEW_YEAR.0 - 1))).await, ["1a", "2a"], "one begins at its instant");
        assert_eq!(ids(at(NEW_YEAR)).await, ["1a", "1b", "2a"]);
        assert_eq!(ids(at(Instant(NEXT_YEAR.0 - 1))).await, ["1a", "1b", "2a"]);
        assert!(ids(at(NEXT_YEAR)).await.is_empty(), "all end before their instant");
    }

    async fn clients_by_tier_organisation_and_prefix(db: Database) {
        let control = &db.control;
        let mut acme = client_draft("gold");
        acme.organisation = Some("acme".to_owned());
        let all = ["user:1", "user:10", "user:2", "USER:1", "user_1", "user%", "user%1", "usé", "us\u{10ffff}a", "key:x"];
        apply(control, all.iter().map(|key| client(key, client_draft("free")))).await;
        apply(control, [client("user:2", acme)]).await;
        let filter = ClientFilter::default;
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(keys(control, ClientFilter { tier: text("gold"), ..filter() }).await, ["user:2"]);
        assert_eq!(keys(control, ClientFilter { organisation: text("acme"), ..filter() }).await, ["user:2"]);
        let with = |prefix| ClientFilter { prefix: text(prefix), ..filter() };
        assert_eq!(keys(control, with("user:1")).await, ["user:1", "user:10"]);
        assert_eq!(keys(control, with("user%")).await, ["user%", "user%1"], "taken literally");
        assert_eq!(keys(control, with("user_")).await, ["user_1"]);
        assert_eq!(keys(control, with("us\u{10ffff}")).await, ["us\u{10ffff}a"]);
        assert_eq!(keys(control, with("us")).await.len(), 8);
        assert_eq!(keys(control, with("")).await.len(), 10);
        let mut sorted = all.to_vec();
        sorted.sort_unstable();
        assert_eq!(keys(control, filter()).await, sorted, "byte by byte, whatever the database's own order is");
    }

    async fn pages_list_every_entry_once_and_sorted(db: Database) {
        let control = &db.control;
        for namespace in ["default", "shop"] {
            let edits = (0..57).map(|n| Edit::Client {
                namespace: namespace.to_owned(),
                client_key: format!("user:{n}"),
                to: Some(client_draft(if n % 2 == 0 { "even" } else { "odd" })),
                expect: Precondition::Absent,
            });
            apply(control, edits).await;
        }
        let all = walk(1000, async |page| control.clients(&ClientFilter::default(), &page).await).await;
        assert_eq!(all.len(), 114);
        assert!(all.is_sorted_by_key(|record| (record.namespace.clone(), record.client_key.clone())));
        for limit in [1, 7, 57, 114] {
            let walked = walk(limit, async |page| control.clients(&ClientFilter::default(), &page).await).await;
            assert_eq!(walked, all, "in pages of {limit}");
        }
        let even = ClientFilter { tier: Some("even".to_owned()), ..ClientFilter::default() };
        assert_eq!(walk(5, async |page| control.clients(&even, &page).await).await.len(), 58);
        let rows = walk(10, async |page| control.audit(&Default::default(), &page).await).await;
        assert!(rows.iter().map(|row| row.number).eq((1..=114).rev()));
        let none = Page { limit: 0, after: None };
        assert_eq!(control.clients(&ClientFilter::default(), &none).await.unwrap().entries.len(), 1);
        let vast = Page { limit: u32::MAX, after: None };
        assert_eq!(control.clients(&ClientFilter::default(), &vast).await.unwrap().entries.len(), 114);
    }

    async fn a_broken_cursor_is_refused(db: Database) {
        for cursor in ["", "x", "7b7d", "5b22225d", "'; DROP TABLE clients; --"] {
            let page = Page { limit: 10, after: Some(cursor.to_owned()) };
            let refused = [
                db.control.rules(&Default::default(), &page).await.map(drop),
                db.control.clients(&Default::default(), &page).await.map(drop),
                db.control.overrides(&Default::default(), &page).await.map(drop),
                db.control.audit(&Default::default(), &page).await.map(drop),
                db.control.generations(None, &page).await.map(drop),
            ];
            for refused in refused {
                let Err(Error::Invalid(faults)) = refused else { panic!("{cursor} was taken") };
                assert_eq!(faults[0].field, "cursor");
            }
        }
    }
}
