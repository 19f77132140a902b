//! Usage of quotas by period: merging of readings, changed calendars, paging and retention.

use std::slice::from_ref;

use tollgate_control::{DatedRows, Error, Instant, Page, PeriodUsage, PeriodUsageFilter};

use crate::databases::{Database, on_both};

const DAY: i64 = 86_400_000_000;

/// What the store said of a bucket in a period of days, at `as_of` microseconds into its first day.
fn reading(bucket: &str, days: (i64, i64), used: i64, as_of: i64) -> PeriodUsage {
    PeriodUsage {
        bucket: bucket.to_owned(),
        node: String::new(),
        namespace: "default".to_owned(),
        rule_id: "monthly".to_owned(),
        client_key: Some(format!("key:#{bucket}")),
        organisation: None,
        period_start: Some(Instant(days.0 * DAY)),
        period_end: Instant(days.1 * DAY),
        used,
        limit_value: Some(100),
        as_of: Instant(days.0 * DAY + as_of),
    }
}

async fn list(db: &Database, filter: &PeriodUsageFilter) -> Vec<PeriodUsage> {
    let listing = db.control.period_usage(filter, &Page { limit: 1000, after: None }).await.unwrap();
    assert_eq!(listing.next, None);
    listing.entries.into_iter().map(|record| record.usage).collect()
}

on_both! {
    async fn the_latest_reading_stays_in_any_order_and_as_often_as_it_is_written(db: Database) {
        let all = || PeriodUsageFilter::default();
        let later = reading("a", (1, 31), 7, 5);
        db.control.record_usage(&[reading("a", (1, 31), 9, 4), later.clone()]).await.unwrap();
        db.node().record_usage(from_ref(&later)).await.unwrap();
        db.node().record_usage(&[reading("a", (1, 31), 9, 4), reading("a", (1, 31), 6, 5)]).await.unwrap();
        db.control.record_usage(&[]).await.unwrap();
        assert_eq!(list(&db, &all()).await, [later], "a refund made it less, and an old reading changes nothing");
        let higher = reading("a", (1, 31), 8, 5);
        db.control.record_usage(from_ref(&higher)).await.unwrap();
        assert_eq!(list(&db, &all()).await, from_ref(&higher), "charges of one call are recorded at one instant");
        let next = reading("a", (31, 61), 1, 0);
        let own = PeriodUsage { node: "alone".to_owned(), ..reading("a", (1, 31), 50, 9) };
        db.control.record_usage(&[next.clone(), own.clone()]).await.unwrap();
        assert_eq!(list(&db, &all()).await, [next, own, higher]);
        assert_eq!(db.control.state().await.unwrap().generation, 0, "usage makes no generation");
    }

    async fn a_row_learns_whose_it_is_from_any_node(db: Database) {
        let nameless = PeriodUsage {
            namespace: String::new(), rule_id: String::new(), client_key: None, period_start: None, limit_value: None,
            ..reading("a", (1, 31), 9, 8)
        };
        db.control.record_usage(from_ref(&nameless)).await.unwrap();
        assert_eq!(list(&db, &PeriodUsageFilter::default()).await, from_ref(&nameless));
        db.node().record_usage(&[reading("a", (1, 31), 4, 2)]).await.unwrap();
        db.control.record_usage(&[nameless]).await.unwrap();
        assert_eq!(list(&db, &PeriodUsageFilter::default()).await, [reading("a", (1, 31), 9, 8)]);
    }

    async fn a_changed_calendar_moves_usage_instead_of_doubling_it(db: Database) {
        let (before, old) = (reading("a", (1, 31), 90, 3), reading("a", (31, 61), 40, 5 * DAY));
        let other = reading("b", (31, 61), 1, 0);
        db.control.record_usage(&[before.clone(), old.clone(), other.clone()]).await.unwrap();
        // On the tenth day of the second period the anchor becomes the 17th: periods end on days 17, 47, 77.
        let moved = reading("a", (17, 47), 45, 24 * DAY);
        db.node().record_usage(from_ref(&moved)).await.unwrap();
        assert_eq!(list(&db, &PeriodUsageFilter::default()).await, [other.clone(), moved.clone(), before.clone()]);
        db.control.record_usage(&[old]).await.unwrap();
        assert_eq!(list(&db, &PeriodUsageFilter::default()).await, [other, moved, before], "a late writer brings nothing back");
    }

    async fn nodes_write_the_same_rows_at_once(db: Database) {
        let nodes: Vec<_> = (0..8).map(|n| {
            let node = db.node();
            tokio::spawn(async move {
                for round in 0..10 {
                    let read = |bucket: usize| reading(&bucket.to_string(), (1, 31), round * 8 + n, round * 8 + n);
                    let mut rows: Vec<_> = (0..20).map(read).collect();
                    rows.rotate_left(n as usize * 3 % 20);
                    node.record_usage(&rows).await.unwrap();
                }
            })
        }).collect();
        for node in nodes {
            node.await.unwrap();
        }
        let all = list(&db, &PeriodUsageFilter::default()).await;
        assert_eq!((all.len(), all.iter().all(|row| row.used == 79)), (20, true), "{all:?}");
    }

    async fn usage_is_found_by_client_organisation_rule_and_period(db: Database) {
        let acme = PeriodUsage { organisation: Some("org:#acme".to_owned()), ..reading("a", (1, 31), 1, 0) };
        let shop = PeriodUsage { namespace: "shop".to_owned(), rule_id: "daily".to_owned(), ..reading("b", (5, 6), 1, 0) };
        let unknown = PeriodUsage { period_start: None, ..reading("c", (31, 61), 1, 0) };
        let forever = PeriodUsage { period_start: None, period_end: PeriodUsage::never(), ..reading("d", (1, 2), 1, 0) };
        let all = [forever, unknown, acme, shop];
        db.control.record_usage(&all).await.unwrap();
        let some = |text: &str| Some(vec![text.to_owned()]);
        let any = PeriodUsageFilter::default;
        for (filter, found) in [
            (any(), "dcab"),
            (PeriodUsageFilter { client_keys: some("key:#a"), ..any() }, "a"),
            (PeriodUsageFilter { organisations: some("org:#acme"), ..any() }, "a"),
            (PeriodUsageFilter { namespaces: some("shop"), ..any() }, "b"),
            (PeriodUsageFilter { namespaces: Some(vec![]), ..any() }, ""),
            (PeriodUsageFilter { rule_id: Some("monthly".to_owned()), ..any() }, "dca"),
            (PeriodUsageFilter { from: Some(Instant(6 * DAY)), ..any() }, "dca"),
            (PeriodUsageFilter { from: Some(Instant(6 * DAY - 1)), to: Some(Instant(5 * DAY + 1)), ..any() }, "dcab"),
            (PeriodUsageFilter { to: Some(Instant(5 * DAY)), ..any() }, "dca"),
            (PeriodUsageFilter { to: Some(Instant(DAY)), ..any() }, "dc"),
        ] {
            let rows = list(&db, &filter).await;
            assert_eq!(rows.iter().map(|row| row.bucket.as_str()).collect::<String>(), found, "{filter:?}");
        }
    }

    async fn pages_of_usage_follow_each_other(db: Database) {
        let rows: Vec<_> = (0..25).map(|n| reading(&n.to_string(), (1, 31 + n / 4), n, 0)).collect();
        db.control.record_usage(&rows).await.unwrap();
        let (mut seen, mut page) = (Vec::new(), Page { limit: 4, after: None });
        loop {
            let listing = db.control.period_usage(&PeriodUsageFilter::default(), &page).await.unwrap();
            seen.extend(listing.entries);
            page.after = listing.next;
            if page.after.is_none() {
                break;
            }
        }
        let order: Vec<_> = seen.iter().map(|row| (row.usage.period_end, row.usage_id)).collect();
        assert!(order.len() == 25 && order.windows(2).all(|pair| pair[0] > pair[1]), "{order:?}");
        let bad = Page { limit: 4, after: Some("1".to_owned()) };
        let refused = db.control.period_usage(&PeriodUsageFilter::default(), &bad).await;
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }

    async fn old_periods_are_deleted_in_batches(db: Database) {
        let rows: Vec<_> = (0..10).map(|n| reading(&n.to_string(), (1, 31 + n), n, 0)).collect();
        db.control.record_usage(&rows).await.unwrap();
        assert_eq!(db.control.prune(DatedRows::Usage, Instant(36 * DAY), 3).await.unwrap(), 3);
        assert_eq!(db.control.prune(DatedRows::Usage, Instant(36 * DAY), 3).await.unwrap(), 2);
        assert_eq!(db.control.prune(DatedRows::Usage, Instant(36 * DAY), 3).await.unwrap(), 0);
        assert_eq!(db.control.surplus(DatedRows::Usage, 5).await.unwrap(), None);
        assert_eq!(db.control.surplus(DatedRows::Usage, 2).await.unwrap(), Some(Instant(38 * DAY + 1)));
    }
}
