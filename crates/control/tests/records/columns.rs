//! Every rule of a rules file fits into a row: random rules have the same meaning after they were stored.

use serde_json::{Map, Value, json};
use tollgate_control::record::{NamespaceDraft, RuleDraft, RuleRecord};
use tollgate_control::{Instant, Page, Precondition};

use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, rule};

struct Dice(u64);

impl Dice {
    fn draw(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn pick(&mut self, from: &[Value]) -> Value {
        from[self.draw(from.len())].clone()
    }

    /// Each field is present with this probability.
    fn maybe(&mut self, map: &mut Map<String, Value>, one_in: usize, name: &str, from: &[Value]) {
        if self.draw(one_in) == 0 {
            map.insert(name.to_owned(), self.pick(from));
        }
    }

    fn conditions(&mut self) -> Map<String, Value> {
        let mut conditions = Map::new();
        self.maybe(
            &mut conditions,
            2,
            "tier",
            &[json!("free"), json!(["free", "trial*"]), json!(["!vip", "!gold"]), json!("*"), json!("!free"), json!(7)],
        );
        self.maybe(
            &mut conditions,
            2,
            "client_key",
            &[
                json!("user:42"),
                json!(["user:1", "user:2"]),
                json!("user:*"),
                json!("!user:3"),
                json!("*"),
                json!("key:we\"ird\\ % _ é🦀 '"),
                json!(["user:1"]),
            ],
        );
        self.maybe(
            &mut conditions,
            2,
            "endpoint",
            &[
                json!("POST /api/*"),
                json!(["GET /a", "!/a/b"]),
                json!("*"),
                json!("!/x"),
                json!("/orders/{id}/items"),
                json!("GET,HEAD /x"),
                json!(["/one"]),
            ],
        );
        self.maybe(&mut conditions, 4, "ip", &[json!("10.0.0.0/8"), json!(["2001:db8::/32", "!2001:db8:1::/48"])]);
        self.maybe(&mut conditions, 4, "region", &[json!("eu"), json!(["eu", "us*"])]);
        conditions
    }

    fn limit(&mut self) -> Map<String, Value> {
        const WINDOWS: [&str; 8] = ["1ms", "250ms", "1s", "1500ms", "90s", "1h30m", "1d", "366d"];
        let window = WINDOWS[self.draw(WINDOWS.len())];
        let requests = [1, 10, 999, 10_000][self.draw(4)];
        let limit = match self.draw(10) {
            9 => json!({ "amount": requests, "window": window }),
            0 => json!({ "requests": requests, "window": window }),
            1 => json!({ "requests": requests, "window": window, "algorithm": "token_bucket", "burst": 20 }),
            2 => json!({ "requests": requests, "window": window, "algorithm": "gcra", "burst": 0 }),
            3 => json!({ "requests": requests, "window": window, "algorithm": "leaky_bucket" }),
            4 => json!({ "requests": requests, "window": window, "algorithm": "leaky_bucket", "max_delay": "2s" }),
            5 => json!({ "requests": requests, "window": window, "algorithm": "fixed_window", "align": "key" }),
            6 => json!({ "requests": requests, "window": window, "algorithm": "sliding_window" }),
            7 => json!({ "requests": requests, "window": window, "algorithm": "sliding_window_log" }),
            _ => json!({ "slots": requests, "slot_ttl": window, "algorithm": "concurrency" }),
        };
        limit.as_object().unwrap().clone()
    }

    fn document(&mut self) -> Map<String, Value> {
        let mut document = Map::new();
        match self.draw(8) {
            0 => document.insert("unlimited".to_owned(), json!(true)),
            _ => document.insert("limit".to_owned(), Value::Object(self.limit())),
        };
        if self.draw(4) > 0 {
            document.insert("match".to_owned(), Value::Object(self.conditions()));
        }
        let mut field = |name: &str, one_in: usize, from: &[Value]| self.maybe(&mut document, one_in, name, from);
        field(
            "key_by",
            2,
            &[
                json!("user_id"),
                json!(["api_key|ip", "endpoint"]),
                json!("user_id:endpoint"),
                json!("global"),
                json!("a|b:c"),
            ],
        );
        field(
            "cost",
            3,
            &[
                json!(1),
                json!(0),
                json!(5),
                json!([{ "match": { "endpoint": "/x/*", "tier": ["a", "!b"] }, "cost": 3 }, { "cost": 2 }]),
            ],
        );
        field("mode", 3, &[json!("enforce"), json!("shadow"), json!("off")]);
        field("consistency", 4, &[json!("exact"), json!("local"), json!("async")]);
        field("on_fail", 3, &[json!("allow"), json!("deny"), json!("local")]);
        field("description", 3, &[json!("two\nlines"), json!("it's \"odd\" \\ % _ é🦀"), json!(12)]);
        field("resource", 5, &[json!("orders")]);
        field("case", 4, &[json!("insensitive"), json!("sensitive")]);
        field("missing", 4, &[json!("share"), json!("skip")]);
        field(
            "meter",
            4,
            &[json!("output_tokens"), json!({ "input_tokens": 1, "output_tokens": 4 }), json!("requests")],
        );
        field("unmetered", 6, &[json!("reject"), json!("skip")]);
        field("count_denied", 5, &[json!(true), json!(false)]);
        field("accept_limits", 5, &[json!(true), json!(false)]);
        field("max_debt", 5, &[json!(0), json!(100)]);
        field("soft", 6, &[json!("20%"), json!("1000%")]);
        field("shards", 8, &[json!(1), json!(2)]);
        field("max_memory", 5, &[json!("25%")]);
        field("doc_url", 5, &[json!("https://example.com/limits?a=b")]);
        field("error_code", 5, &[json!("orders.too_many")]);
        document
    }
}

/// A random rule.
fn unstored(rule_id: &str, draft: RuleDraft) -> RuleRecord {
    let (namespace, never) = (NAMESPACE.to_owned(), Instant(0));
    RuleRecord { namespace, rule_id: rule_id.to_owned(), draft, created_at: never, updated_at: never, version: 0 }
}

on_both! {
    async fn a_rule_means_the_same_after_it_was_stored(db: Database) {
        let mut dice = Dice(5);
        let settings = NamespaceDraft::default();
        let mut drafts = Vec::new();
        for n in 0..600 {
            let name = if dice.draw(3) == 0 { format!("name-{n}") } else { String::new() };
            let draft = RuleDraft { name, document: dice.document(), enabled: dice.draw(5) > 0 };
            let record = unstored(&format!("rule-{n:03}"), draft);
            if record.spec(&settings).is_ok() {
                drafts.push(record);
            }
        }
        assert!(drafts.len() > 300, "only {} of 600 rules can be: the dice are loaded", drafts.len());
        apply(&db.control, drafts.iter().map(|record| rule(&record.rule_id, record.draft.clone(), Precondition::Absent))).await;

        let listed = db.control.rules(&Default::default(), &Page { limit: 1000, after: None }).await.unwrap().entries;
        assert_eq!(listed.len(), drafts.len());
        for (stored, sent) in listed.iter().zip(&drafts) {
            assert_eq!(stored.rule_id, sent.rule_id);
            let (name, enabled) = (&stored.draft.name, stored.draft.enabled);
            assert_eq!((name, enabled), (&sent.draft.name, sent.draft.enabled));
            assert_eq!(stored.spec(&settings), sent.spec(&settings), "{:?}\n{:?}", sent.draft.document, stored.draft.document);
        }
        let again = apply(&db.control, listed.into_iter().map(|record| rule(&record.rule_id, record.draft, Precondition::Present))).await;
        assert!(again.changes.is_empty(), "what was read is what is written: {:?}", again.changes.first());
        let again = apply(&db.control, drafts.into_iter().map(|record| rule(&record.rule_id, record.draft, Precondition::Present))).await;
        assert!(again.changes.is_empty(), "what was sent is what is there: {:?}", again.changes.first());
    }
}
