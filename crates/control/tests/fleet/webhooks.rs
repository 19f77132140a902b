//! Webhooks: events are written once, claimed by one node at a time, and forgotten with their webhook.

use tollgate_control::record::DeliveryState;
use tollgate_control::{AuditFilter, DatedRows, DeliveryAttempt, DeliveryDraft, Error, Instant, Page, WebhookDraft};

use crate::databases::{author, on_both};

const SECOND: i64 = 1_000_000;
const NOW: Instant = Instant(1_800_000_000 * SECOND);

fn after(seconds: i64) -> Instant {
    Instant(NOW.0 + seconds * SECOND)
}

fn webhook(name: &str, events: Option<&[&str]>) -> WebhookDraft {
    WebhookDraft {
        webhook_id: WebhookDraft::new_id().unwrap(),
        name: name.to_owned(),
        url: "https://hooks.example.com/s3cr3t?x='; DROP TABLE webhooks; --".to_owned(),
        events: events.map(|events| events.iter().map(|event| (*event).to_owned()).collect()),
        fingerprint: "0a1b2c3d".to_owned(),
    }
}

fn draft(webhook_id: &str, occurrence: &str, event_id: &str) -> DeliveryDraft {
    DeliveryDraft {
        webhook_id: webhook_id.to_owned(),
        occurrence: occurrence.to_owned(),
        event_id: event_id.to_owned(),
        event: "quota_mark".to_owned(),
        body: "{\"a\":\"b\"}".to_owned(),
    }
}

on_both! {
    async fn webhooks_are_made_audited_and_deleted(db: Database) {
        let made = db.control.create_webhook(&webhook("a", Some(&["quota_mark"])), &author()).await.unwrap();
        assert_eq!(db.node().webhooks().await.unwrap(), std::slice::from_ref(&made));
        assert!(made.wants("quota_mark") && !made.wants("test"));
        let all = db.control.create_webhook(&webhook("b", None), &author()).await.unwrap();
        assert!(all.wants("test"));
        let audit = db.control.audit(&AuditFilter::default(), &Page::default()).await.unwrap().entries;
        let shown = format!("{audit:?}");
        assert!(shown.contains("https://hooks.example.com/") && !shown.contains("s3cr3t"), "{shown}");
        db.control.delete_webhook(&made.webhook_id, &author()).await.unwrap();
        assert!(matches!(db.control.webhook(&made.webhook_id).await, Err(Error::NotFound(_))));
        assert!(matches!(db.control.delete_webhook(&made.webhook_id, &author()).await, Err(Error::NotFound(_))));
        let bad = WebhookDraft { name: "x\ny".to_owned(), ..webhook("", None) };
        assert!(matches!(db.control.create_webhook(&bad, &author()).await, Err(Error::Invalid(_))));
        assert_eq!(db.control.state().await.unwrap().generation, 3, "nodes hear of each");
    }

    async fn an_event_is_written_once_by_many_nodes_and_claimed_by_one(db: Database) {
        let id = db.control.create_webhook(&webhook("a", None), &author()).await.unwrap().webhook_id;
        let nodes: Vec<_> = (0..4).map(|_| db.node()).collect();
        let writing = nodes.iter().cloned().enumerate().map(|(number, node)| {
            let draft = draft(&id, "the same", &format!("evt_{number}"));
            tokio::spawn(async move { node.queue_deliveries(&[draft], NOW).await.unwrap() })
        });
        let mut written = 0;
        for one in writing.collect::<Vec<_>>() {
            written += one.await.unwrap();
        }
        assert_eq!(written, 1);
        assert_eq!(db.control.queue_deliveries(&[draft("wh_gone", "x", "e")], NOW).await.unwrap(), 0);
        let claiming = nodes.iter().cloned().map(|node| {
            tokio::spawn(async move { node.claim_deliveries(NOW, after(60), 8).await.unwrap() })
        });
        let mut claimed = Vec::new();
        for one in claiming.collect::<Vec<_>>() {
            claimed.extend(one.await.unwrap());
        }
        assert_eq!(claimed.len(), 1);
        assert_eq!((claimed[0].attempts, claimed[0].state), (1, DeliveryState::Waiting));
        assert_eq!(db.control.claim_deliveries(after(59), after(119), 8).await.unwrap(), []);
        let again = db.control.claim_deliveries(after(60), after(120), 8).await.unwrap();
        assert_eq!((again.len(), again[0].attempts), (1, 2), "a claim ends");
    }

    async fn attempts_end_wait_and_are_listed(db: Database) {
        let id = db.control.create_webhook(&webhook("a", None), &author()).await.unwrap().webhook_id;
        let drafts: Vec<DeliveryDraft> =
            (0..5).map(|number| draft(&id, &number.to_string(), &format!("evt_{number}"))).collect();
        assert_eq!(db.control.queue_deliveries(&drafts, NOW).await.unwrap(), 5);
        let claimed = db.control.claim_deliveries(NOW, after(60), 3).await.unwrap();
        assert_eq!(claimed.len(), 3);
        let ends = [DeliveryState::Delivered, DeliveryState::Waiting, DeliveryState::Failed];
        let attempts: Vec<DeliveryAttempt> = claimed.iter().zip(ends).map(|(delivery, state)| DeliveryAttempt {
            delivery_id: delivery.delivery_id,
            state,
            next_at: after(10),
            status: (state == DeliveryState::Delivered).then_some(204),
            error: (state != DeliveryState::Delivered).then(|| "é".repeat(300)),
        }).collect();
        db.control.finish_deliveries(&attempts, after(1)).await.unwrap();
        let waiting = db.control.waiting_deliveries(after(1)).await.unwrap();
        assert_eq!((waiting.in_all, waiting.due), (3, 2));
        let page = Page { limit: 2, after: None };
        let first = db.control.deliveries(&id, &page).await.unwrap();
        assert_eq!(first.entries.iter().map(|one| one.event_id.as_str()).collect::<Vec<_>>(), ["evt_4", "evt_3"]);
        let rest = db.control.deliveries(&id, &Page { limit: 9, after: first.next }).await.unwrap();
        let told: Vec<(&str, DeliveryState, Option<i64>)> =
            rest.entries.iter().map(|one| (one.event_id.as_str(), one.state, one.status)).collect();
        assert_eq!(told, [
            ("evt_2", DeliveryState::Failed, None),
            ("evt_1", DeliveryState::Waiting, None),
            ("evt_0", DeliveryState::Delivered, Some(204)),
        ]);
        assert!(rest.entries[1].error.as_ref().unwrap().len() <= 300);
        assert_eq!(db.control.delivery(&id, "evt_0").await.unwrap().attempts, 1);
        assert_eq!(db.control.prune(DatedRows::Deliveries, after(1), 2).await.unwrap(), 2);
        assert_eq!(db.control.prune(DatedRows::Deliveries, after(1), 9).await.unwrap(), 3);
        assert_eq!(db.control.prune(DatedRows::Deliveries, after(1), 9).await.unwrap(), 0);
    }
}
