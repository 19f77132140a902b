//! The mode of the fleet: the latest order wins, regardless of its author and arrival.

use tollgate_control::{Enforcement, FleetState, Instant};

use crate::databases::{author, on_both};

fn at(text: &str) -> Instant {
    Instant::parse(text).unwrap()
}

on_both! {
    async fn limits_are_enforced_by_default(db: Database) {
        let state = db.control.state().await.unwrap();
        assert_eq!(state, FleetState { generation: 0, mode: Enforcement::Enforce, mode_since: Instant(0) });
        let since = at("2026-05-01T12:00:00.123456Z");
        let set = db.control.set_mode(Enforcement::Off, since, &author()).await.unwrap();
        assert_eq!(set, FleetState { generation: 1, mode: Enforcement::Off, mode_since: since });
        assert_eq!(db.node().state().await.unwrap(), set, "on every node");
        let audit = db.texts("SELECT kind || ' ' || action || ' ' || before || ' ' || after FROM audit").await;
        assert_eq!(audit, [
            r#"mode off {"mode":"enforce","since":"1970-01-01T00:00:00.000000Z"} {"mode":"off","since":"2026-05-01T12:00:00.123456Z"}"#
        ]);
    }

    async fn an_older_order_never_wins(db: Database) {
        let (old, new) = (at("2026-05-01T12:00:00Z"), at("2026-05-01T12:00:00.000001Z"));
        let set = db.control.set_mode(Enforcement::Shadow, new, &author()).await.unwrap();
        for (mode, since) in [(Enforcement::Off, old), (Enforcement::Off, new), (Enforcement::Shadow, new), (Enforcement::Enforce, Instant(0))] {
            assert_eq!(db.control.set_mode(mode, since, &author()).await.unwrap(), set);
        }
        assert_eq!(db.texts("SELECT action FROM audit").await, ["shadow"], "what changed nothing is no change");
    }

    async fn of_concurrent_orders_the_newest_wins(db: Database) {
        let nodes: Vec<_> = (1..=8).map(|n| {
            let (node, mode) = (db.node(), Enforcement::ALL[n % 3]);
            tokio::spawn(async move { node.set_mode(mode, Instant(1_000_000 * n as i64), &author()).await.unwrap() })
        }).collect();
        for node in nodes {
            node.await.unwrap();
        }
        let state = db.control.state().await.unwrap();
        assert_eq!((state.mode, state.mode_since), (Enforcement::ALL[8 % 3], Instant(8_000_000)));
    }

    async fn a_clock_that_is_far_ahead_does_not_block_the_switch(db: Database) {
        let jammed = db.control.set_mode(Enforcement::Off, at("2550-01-01T00:00:00Z"), &author()).await.unwrap();
        assert!(jammed.mode_since < at("2549-01-01T00:00:00Z"), "{}", jammed.mode_since);
        let later = Instant(jammed.mode_since.0 + 1_000_000); // a second: taken as now, which is later all the same
        assert_eq!(db.control.set_mode(Enforcement::Enforce, later, &author()).await.unwrap().mode, Enforcement::Enforce);
    }

    async fn an_unknown_mode_enforces(db: Database) {
        db.run("UPDATE tollgate_state SET mode = 'maybe'").await;
        assert_eq!(db.control.state().await.unwrap().mode, Enforcement::Enforce);
    }
}
