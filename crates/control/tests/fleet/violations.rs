//! Violations: counting, paging and retention.

use tollgate_control::{DatedRows, Error, GroupBy, Instant, Page, Violation, ViolationFilter};

use crate::databases::{Database, on_both};

const MINUTE: i64 = 60_000_000;

fn violation(client: &str, rule: &str, minute: i64, count: i64) -> Violation {
    Violation {
        namespace: "default".to_owned(),
        client_key: client.to_owned(),
        endpoint: format!("/of/{client}"),
        rule_id: Some(rule.to_owned()),
        is_shadow: false,
        minute: Instant(minute * MINUTE),
        last: Instant(minute * MINUTE + count),
        refused: count,
        request_count: 101,
        limit_value: 100,
    }
}

async fn list(db: &Database, filter: &ViolationFilter) -> Vec<Violation> {
    let page = Page { limit: 1000, after: None };
    let listing = db.control.violations(filter, &page).await.unwrap();
    assert_eq!(listing.next, None);
    listing.entries.into_iter().map(|record| record.violation).collect()
}

on_both! {
    async fn counts_add_up_within_a_batch_and_between_batches(db: Database) {
        let later = Violation { endpoint: "/b".to_owned(), limit_value: 50, ..violation("ann", "r", 5, 3) };
        let other = Violation { namespace: "shop".to_owned(), ..violation("ann", "r", 5, 7) };
        db.control.record_violations(&[violation("ann", "r", 5, 2), later.clone(), other.clone()]).await.unwrap();
        db.node().record_violations(&[later, violation("ann", "r", 6, 1)]).await.unwrap();
        db.control.record_violations(&[]).await.unwrap();
        let sum = Violation { limit_value: 50, last: Instant(5 * MINUTE + 3), ..violation("ann", "r", 5, 8) };
        assert_eq!(list(&db, &ViolationFilter::default()).await, [violation("ann", "r", 6, 1), other, sum]);
        assert_eq!(db.control.state().await.unwrap().generation, 0, "violations make no generation");
    }

    async fn nodes_count_the_same_rows_at_once(db: Database) {
        let nodes: Vec<_> = (0..8).map(|n| {
            let node = db.node();
            tokio::spawn(async move {
                for round in 0..10 {
                    let mut rows: Vec<_> = (0..20).map(|c| violation(&c.to_string(), "r", round % 2, 1)).collect();
                    rows.rotate_left(n * 3 % 20);
                    node.record_violations(&rows).await.unwrap();
                }
            })
        }).collect();
        for node in nodes {
            node.await.unwrap();
        }
        let all = list(&db, &ViolationFilter::default()).await;
        assert_eq!((all.len(), all.iter().all(|row| row.refused == 40)), (40, true));
    }

    async fn pages_follow_each_other_while_rows_come_in(db: Database) {
        let rows: Vec<_> = (0..25).map(|n| violation(&n.to_string(), "r", 10 + n / 3, 1)).collect();
        db.control.record_violations(&rows).await.unwrap();
        let (mut seen, mut page) = (Vec::new(), Page { limit: 4, after: None });
        loop {
            let listing = db.control.violations(&ViolationFilter::default(), &page).await.unwrap();
            assert!(listing.entries.len() <= 4);
            seen.extend(listing.entries);
            db.control.record_violations(&[violation("new", "r", 100 + seen.len() as i64, 1)]).await.unwrap();
            page.after = listing.next;
            if page.after.is_none() {
                break;
            }
        }
        let order: Vec<_> = seen.iter().map(|row| (row.violation.minute, row.violation_id)).collect();
        assert!(order.is_sorted_by(|a, b| a > b), "the latest first, none twice: {order:?}");
        assert_eq!(seen.len(), 25);
        for bad in ["", "1", "a.b", "1.2.3", "' OR 1=1 --", "99999999999999999999.1"] {
            let page = Page { limit: 4, after: Some(bad.to_owned()) };
            let error = db.control.violations(&ViolationFilter::default(), &page).await.unwrap_err();
            assert!(matches!(&error, Error::Invalid(faults) if faults[0].field == "cursor"), "{bad}: {error}");
        }
    }

    async fn a_full_last_page_has_no_next(db: Database) {
        let rows: Vec<_> = (0..4).map(|n| violation(&n.to_string(), "r", n, 1)).collect();
        db.control.record_violations(&rows).await.unwrap();
        let page = Page { limit: 4, after: None };
        let listing = db.control.violations(&ViolationFilter::default(), &page).await.unwrap();
        assert_eq!((listing.entries.len(), listing.next), (4, None));
    }

    async fn filters_select_exactly_the_matching_violations(db: Database) {
        let rows: Vec<_> = ["ann", "bob"].into_iter().flat_map(|client| {
            ["r", "s"].into_iter().flat_map(move |rule| (1..=3).map(move |minute| violation(client, rule, minute, 1)))
        }).collect();
        db.control.record_violations(&rows).await.unwrap();
        let shop = Violation { namespace: "shop".to_owned(), ..violation("ann", "r", 1, 1) };
        db.control.record_violations(&[shop]).await.unwrap();
        let text = |text: &str| Some(text.to_owned());
        let some = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        let all = ViolationFilter::default;
        for (filter, count) in [
            (all(), 13),
            (ViolationFilter { client_keys: some(&["ann"]), ..all() }, 7),
            (ViolationFilter { client_keys: some(&["ann", "bob"]), ..all() }, 13),
            (ViolationFilter { is_shadow: Some(false), ..all() }, 13),
            (ViolationFilter { is_shadow: Some(true), ..all() }, 0),
            (ViolationFilter { endpoint: text("/of/bob"), ..all() }, 6),
            (ViolationFilter { rule_id: text("s"), ..all() }, 6),
            (ViolationFilter { namespaces: Some(vec!["shop".to_owned()]), ..all() }, 1),
            (ViolationFilter { namespaces: Some(Vec::new()), ..all() }, 0),
            (ViolationFilter { from: Some(Instant(2 * MINUTE)), ..all() }, 8),
            (ViolationFilter { from: Some(Instant(2 * MINUTE)), to: Some(Instant(3 * MINUTE)), ..all() }, 4),
            (ViolationFilter { client_keys: some(&["ann' OR '1'='1"]), ..all() }, 0),
            (ViolationFilter { client_keys: some(&["%"]), ..all() }, 0),
        ] {
            assert_eq!(list(&db, &filter).await.len(), count, "{filter:?}");
        }
    }

    async fn offenders_are_sorted_by_refusals(db: Database) {
        let mut rows = vec![violation("ann", "r", 1, 5), violation("ann", "s", 2, 5), violation("bob", "r", 3, 9)];
        rows.push(Violation { namespace: "shop".to_owned(), ..violation("cat", "r", 4, 100) });
        db.control.record_violations(&rows).await.unwrap();
        let worst = async |by, filter: &ViolationFilter, limit| {
            let offenders = db.control.offenders(by, filter, limit).await.unwrap();
            let told = |offender: tollgate_control::Offender| {
                format!("{}/{} {} {}", offender.namespace, offender.what, offender.refused, offender.last.0 / MINUTE)
            };
            offenders.into_iter().map(told).collect::<Vec<_>>()
        };
        let all = ViolationFilter::default();
        assert_eq!(worst(GroupBy::Client, &all, 10).await, ["shop/cat 100 4", "default/ann 10 2", "default/bob 9 3"]);
        assert_eq!(worst(GroupBy::Rule, &all, 2).await, ["shop/r 100 4", "default/r 14 3"]);
        let ours = ViolationFilter { namespaces: Some(vec!["default".to_owned()]), ..all };
        assert_eq!(worst(GroupBy::Endpoint, &ours, 10).await, ["default//of/ann 10 2", "default//of/bob 9 3"]);
    }

    async fn refusals_of_shadow_rules_are_separate_rows(db: Database) {
        let shadow = Violation { is_shadow: true, last: Instant(MINUTE + 9), ..violation("ann", "r", 1, 5) };
        let rows = [violation("ann", "r", 1, 2), shadow.clone(), Violation { request_count: 150, last: Instant(MINUTE + 7), ..shadow.clone() }];
        db.control.record_violations(&rows).await.unwrap();
        let only = |is_shadow| ViolationFilter { is_shadow: Some(is_shadow), ..ViolationFilter::default() };
        assert_eq!(list(&db, &only(false)).await, [violation("ann", "r", 1, 2)]);
        let sum = Violation { refused: 10, request_count: 150, ..shadow };
        assert_eq!(list(&db, &only(true)).await, [sum], "the highest count, and the last time");
        let worst = db.control.offenders(GroupBy::Client, &ViolationFilter::default(), 9).await.unwrap();
        let told: Vec<_> = worst.iter().map(|one| (one.what.as_str(), one.is_shadow, one.refused, one.last.0 - MINUTE)).collect();
        assert_eq!(told, [("ann", true, 10, 9), ("ann", false, 2, 2)]);
    }

    async fn old_violations_are_deleted_in_batches(db: Database) {
        let rows: Vec<_> = (0..10).map(|n| violation("ann", "r", n, 1)).collect();
        db.control.record_violations(&rows).await.unwrap();
        let before = Instant(7 * MINUTE);
        assert_eq!(db.control.prune(DatedRows::Violations, before, 5).await.unwrap(), 5);
        assert_eq!(list(&db, &ViolationFilter::default()).await.last().unwrap().minute, Instant(5 * MINUTE), "the oldest first");
        assert_eq!(db.control.prune(DatedRows::Violations, before, 5).await.unwrap(), 2);
        assert_eq!(db.control.prune(DatedRows::Violations, before, 5).await.unwrap(), 0);
        assert_eq!(list(&db, &ViolationFilter::default()).await.len(), 3);
    }

    async fn the_surplus_of_violations_is_found(db: Database) {
        let rows: Vec<_> = (0..10).map(|n| violation(&n.to_string(), "r", n / 2, 1)).collect();
        db.control.record_violations(&rows).await.unwrap();
        assert_eq!(db.control.surplus(DatedRows::Violations, 10).await.unwrap(), None);
        let before = db.control.surplus(DatedRows::Violations, 7).await.unwrap().unwrap();
        assert_eq!(db.control.prune(DatedRows::Violations, before, 100).await.unwrap(), 4, "minutes go whole");
        assert_eq!(list(&db, &ViolationFilter::default()).await.last().unwrap().minute, Instant(2 * MINUTE));
    }

    async fn odd_and_long_keys_do_not_fail_a_batch(db: Database) {
        let long = "ä\u{1f980}x".repeat(3000);
        let odd = ["\0", "a\0b", "'; DROP TABLE rate_limit_violations; --", "\u{202e}\u{ffff}", "", "{\"n\": 1}", &long];
        let rows: Vec<_> = odd.iter().map(|client| violation(client, "r", 1, 1)).collect();
        db.control.record_violations(&rows).await.unwrap();
        for client in odd {
            let filter = ViolationFilter { client_keys: Some(vec![client.to_owned()]), ..ViolationFilter::default() };
            assert_eq!(list(&db, &filter).await.len(), 1, "{}", client.get(..30).unwrap_or(client));
        }
        let kept = list(&db, &ViolationFilter::default()).await;
        assert_eq!(kept.len(), odd.len());
        assert!(kept.iter().all(|row| row.client_key.len() <= 1024 && row.endpoint.len() <= 1024));
    }
}
