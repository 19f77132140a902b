//! Plans and the clients that have them: written, refused, followed, rolled back, and written with SQL.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use tollgate_control::change_feed::ChangeFeed;
use tollgate_control::record::{ClientDraft, GrantDraft, PlanDraft, RuleModeDraft, plan_rules, plan_warnings};
use tollgate_control::{
    AppliedChanges, AuditFilter, ChangeSet, Control, Dependents, Edit, Enforcement, Error, Page, Precondition,
    RecordKind,
};

use crate::by_hand::{follow, record_all_sql_edits};
use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, change_set, client, override_draft, overriding, per_second, refused, rule};

fn plan_draft(extends: Option<&str>, limits: Value) -> PlanDraft {
    let limits = limits.as_array().unwrap().clone();
    PlanDraft { extends: extends.map(str::to_owned), limits, ..PlanDraft::default() }
}

fn plan(plan_id: &str, to: impl Into<Option<PlanDraft>>) -> Edit {
    let (namespace, plan_id) = (NAMESPACE.to_owned(), plan_id.to_owned());
    Edit::Plan { namespace, plan_id, to: to.into(), expect: Precondition::Anything }
}

fn on_plan(plan: Value) -> ClientDraft {
    ClientDraft { plan: Some(plan), ..ClientDraft::default() }
}

fn free() -> PlanDraft {
    plan_draft(None, json!([{ "name": "calls", "limit": { "requests": 10, "window": "1m" } }]))
}

fn pro() -> PlanDraft {
    plan_draft(Some("free"), json!([{ "name": "calls", "limit": { "requests": 100, "window": "1m" } }]))
}

fn grant(grant_id: &str, rule_id: &str) -> Edit {
    let (client_key, rule_id, reason) = ("user:1".to_owned(), rule_id.to_owned(), String::new());
    let draft = GrantDraft { client_key, rule_id, amount: 9, valid_from: None, valid_until: None, reason };
    let (namespace, grant_id) = (NAMESPACE.to_owned(), grant_id.to_owned());
    Edit::Grant { namespace, grant_id, to: Some(draft), expect: Precondition::Anything }
}

fn mode(rule_id: &str, mode: Enforcement) -> Edit {
    let (namespace, rule_id) = (NAMESPACE.to_owned(), rule_id.to_owned());
    let to = Some(RuleModeDraft { mode, reason: String::new() });
    Edit::RuleMode { namespace, rule_id, to, expect: Precondition::Anything }
}

async fn conflict(control: &Control, edit: Edit) -> String {
    match control.apply(&change_set([edit])).await {
        Err(Error::Conflict(message)) => message,
        other => panic!("{other:?}"),
    }
}

on_both! {
    async fn a_plan_is_written_audited_and_rolled_back(db: Database) {
        let control = &db.control;
        apply(control, [plan("pro", pro()), plan("free", PlanDraft { is_default: true, ..free() })]).await;
        let record = control.plan(NAMESPACE, "pro").await.unwrap();
        assert_eq!((record.draft.clone(), record.version), (pro(), 1));
        let changed = PlanDraft { description: "for teams".to_owned(), ..pro() };
        let applied = apply(control, [plan("pro", changed)]).await;
        assert_eq!(applied.changes[0].kind, RecordKind::Plan);
        assert_eq!(apply(control, [plan("free", PlanDraft { is_default: true, ..free() })]).await.changes, []);
        let edits = control.rollback_edits(1).await.unwrap();
        apply(control, edits).await;
        assert_eq!(control.plan(NAMESPACE, "pro").await.unwrap().draft, pro());
        let names: Vec<String> =
            control.plans(Some(&[NAMESPACE.to_owned()])).await.unwrap().into_iter().map(|plan| plan.plan_id).collect();
        assert_eq!(names, ["free", "pro"]);
    }

    async fn plans_that_do_not_fit_are_refused(db: Database) {
        let control = &db.control;
        apply(control, [plan("free", free())]).await;
        let unknown = |code: &str, field: &str| vec![(code.to_owned(), field.to_owned())];
        let cases = [
            (plan("pro", plan_draft(Some("fre"), json!([]))), unknown("unknown-plan", "extends")),
            (plan("free", plan_draft(Some("free"), json!([]))), unknown("plan-cycle", "extends")),
            (plan("a.b", free()), unknown("bad-name", "plan_id")),
            (plan("pro", plan_draft(None, json!([{ "limit": { "requests": 1, "window": "1s" } }]))), unknown("missing-field", "limits[0]")),
            (plan("pro", plan_draft(None, json!([{ "name": "x", "limit": { "requests": 1, "window": "soon" } }]))), unknown("bad-duration", "limits[0].limit.window")),
            (client("user:1", on_plan(json!("fre"))), unknown("unknown-plan", "plan")),
            (client("user:1", on_plan(json!(["free", "free"]))), unknown("bad-time", "plan[1]")),
            (client("user:1", on_plan(json!([false]))), unknown("wrong-type", "plan")),
            (client("user:1", on_plan(json!({ "plan": "free", "from": null }))), unknown("wrong-type", "plan")),
        ];
        for (edit, expected) in cases {
            assert_eq!(refused(control, [edit.clone()]).await, expected, "{edit:?}");
        }
        let of_plan = refused(control, [rule("free.calls", per_second(1), Precondition::Absent)]).await;
        assert_eq!(of_plan, unknown("duplicate-name", "rule_id"));
        apply(control, [rule("pro.calls", per_second(1), Precondition::Absent)]).await;
        assert_eq!(refused(control, [plan("pro", pro())]).await, unknown("duplicate-name", "limits[0].name"));
        let twice = [("a", true), ("b", true)].map(|(name, is_default)| plan(name, PlanDraft { is_default, ..free() }));
        assert_eq!(refused(control, twice).await, unknown("duplicate-default", "edits[1].default"));
    }

    async fn a_plan_in_use_stays(db: Database) {
        let control = &db.control;
        apply(control, [plan("free", free()), plan("pro", pro())]).await;
        let message = conflict(control, plan("free", None)).await;
        assert!(message.contains("`pro`"), "{message}");
        let later = json!([{ "plan": "pro", "from": "2026-12-01" }]);
        apply(control, [client("user:1", on_plan(json!("pro"))), client("org:acme", on_plan(later))]).await;
        let message = conflict(control, plan("pro", None)).await;
        assert!(message.contains("`user:1`") && message.contains("`org:acme`"), "{message}");
        apply(control, [client("user:1", None), client("org:acme", None), plan("pro", None), plan("free", None)]).await;
        assert!(control.plans(None).await.unwrap().is_empty());
    }

    async fn overrides_and_modes_are_of_rules_of_plans_too(db: Database) {
        let control = &db.control;
        apply(control, [plan("free", free()), plan("pro", pro())]).await;
        apply(control, [overriding("one", override_draft("user:1", "pro.calls", 5))]).await;
        apply(control, [overriding("all", override_draft("user:1", "calls", 5))]).await;
        let unknown = refused(control, [overriding("none", override_draft("user:1", "pro.cals", 5))]).await;
        assert_eq!(unknown, [("unknown-rule".to_owned(), "rule_id".to_owned())]);
    }

    async fn what_depends_on_rules_of_a_plan_goes_with_them(db: Database) {
        let control = &db.control;
        let two = json!([
            { "name": "calls", "limit": { "requests": 100, "window": "1m" } },
            { "name": "daily", "quota": { "amount": 1000, "every": "day" } },
        ]);
        apply(control, [plan("free", free()), plan("pro", plan_draft(None, two))]).await;
        apply(control, [
            overriding("full", override_draft("user:1", "pro.calls", 5)),
            overriding("short", override_draft("user:1", "calls", 5)),
            overriding("other", override_draft("user:1", "free.calls", 5)),
            overriding("last", override_draft("user:1", "daily", 5)),
            grant("given", "pro.daily"),
            mode("pro.daily", Enforcement::Shadow),
        ]).await;
        let shrunk = plan_draft(None, json!([{ "name": "calls", "limit": { "requests": 100, "window": "1m" } }]));
        let applied = apply(control, [plan("pro", shrunk.clone())]).await;
        let gone = |applied: &AppliedChanges| -> Vec<(RecordKind, String)> {
            assert!(applied.changes.iter().all(|change| change.after.is_none() || change.kind == RecordKind::Plan));
            applied.changes.iter().map(|change| (change.kind, change.id.clone())).collect()
        };
        let expected = [
            (RecordKind::Grant, "given"), (RecordKind::RuleMode, "pro.daily"), (RecordKind::Override, "last"),
            (RecordKind::Plan, "pro"),
        ];
        assert_eq!(gone(&applied), expected.map(|(kind, id)| (kind, id.to_owned())), "a rule that a plan loses");

        let applied = apply(control, [plan("pro", None)]).await;
        let expected = [(RecordKind::Override, "full"), (RecordKind::Plan, "pro")];
        assert_eq!(gone(&applied), expected.map(|(kind, id)| (kind, id.to_owned())), "`calls` is of free, too");
        let about = AuditFilter { kind: Some(RecordKind::Override), id: Some("full".to_owned()), ..AuditFilter::default() };
        let rows = control.audit(&about, &Page::default()).await.unwrap().entries;
        assert!(rows[0].before.is_some() && rows[0].after.is_none());

        let of_file = |name: &str| {
            let text = format!("plans: {{ team: {{ limits: [{{ name: {name}, limit: 9/1m }}] }} }}");
            let text = text.replace("9/1m", "{ requests: 9, window: 1m }");
            tollgate_rules::read("rules.yaml", &text).unwrap().rules.remove(0)
        };
        let file_rules = vec![(NAMESPACE.to_owned(), of_file("calls"))];
        let dry = ChangeSet { file_rules, dry_run: true, ..change_set([plan("free", None)]) };
        let expected = [(RecordKind::Override, "other"), (RecordKind::Plan, "free")];
        assert_eq!(gone(&control.apply(&dry).await.unwrap()), expected.map(|(kind, id)| (kind, id.to_owned())), "a file has `calls`");

        let keep = ChangeSet { dependents: Dependents::Keep, dry_run: true, ..change_set([plan("free", None)]) };
        assert_eq!(gone(&control.apply(&keep).await.unwrap()), [(RecordKind::Plan, "free".to_owned())]);
        let applied = apply(control, [plan("free", None)]).await;
        let expected = [(RecordKind::Override, "other"), (RecordKind::Override, "short"), (RecordKind::Plan, "free")];
        assert_eq!(gone(&applied), expected.map(|(kind, id)| (kind, id.to_owned())), "the last one");
        let edits = control.rollback_edits(applied.generation - 1).await.unwrap();
        apply(control, edits).await;
        assert_eq!(control.overriding(NAMESPACE, "short").await.unwrap().draft.rule_id, "calls", "rolled back");
    }

    async fn rules_of_plans_are_changed_with_their_plan(db: Database) {
        let control = &db.control;
        apply(control, [plan("free", free())]).await;
        let message = conflict(control, rule("free.calls", None, Precondition::Present)).await;
        assert_eq!(message, "the rule free.calls is part of the plan free: change the plan");
        let message = conflict(control, rule("free.calls", per_second(1), Precondition::Version(1))).await;
        assert!(message.contains("change the plan"), "{message}");
    }

    async fn rules_of_plans_are_listed_as_rules(db: Database) {
        let control = &db.control;
        let odd = plan_draft(Some("free"), json!([
            { "name": "calls", "replaces": ["uploads"], "key_by": "user", "limit": { "requests": 100, "window": "1m" } },
            { "name": "uploads", "match": { "endpoint": "/up" }, "limit": { "requests": 1, "window": "1m" } },
        ]));
        apply(control, [plan("free", free()), plan("gold", plan_draft(Some("pro"), json!([]))), plan("pro", odd)]).await;
        let rules = plan_rules(&control.plans(None).await.unwrap());
        let shown: Vec<_> = rules.iter().map(|rule| (rule.rule_id.as_str(), &rule.document["match"], rule.version)).collect();
        let (of_free, of_pro) = (json!({ "plan": ["free"] }), json!({ "plan": ["gold", "pro"] }));
        let uploads = json!({ "endpoint": "/up", "plan": ["gold", "pro"] });
        assert_eq!(shown, [("free.calls", &of_free, 1), ("pro.calls", &of_pro, 1), ("pro.uploads", &uploads, 1)]);
        let pro = &rules[1];
        assert_eq!((&pro.document["plan"], &pro.document["replaces"]), (&json!("pro"), &json!(["pro.uploads"])));
        assert_eq!(pro.warnings()[0].field, "key_by");
        let warnings = plan_warnings(&control.plan(NAMESPACE, "pro").await.unwrap().json());
        assert_eq!((warnings[0].code.as_str(), warnings[0].field.as_str()), ("unknown-attribute", "limits[0].key_by"));
    }

    async fn a_node_follows_plans_and_who_has_them(db: Database) {
        let (feed, seen) = follow(&db).await;
        let control = &db.control;
        apply(control, [plan("free", PlanDraft { is_default: true, ..free() })]).await;
        apply(control, [plan("pro", pro()), client("user:1", on_plan(json!("pro")))]).await;
        let names = || {
            let state = seen.lock().unwrap().clone();
            let namespace = state.as_ref().and_then(|state| state.namespaces.get(NAMESPACE).cloned());
            let rules = namespace.as_ref().map(|namespace| namespace.rules.clone()).unwrap_or_default();
            let default = namespace.and_then(|namespace| namespace.settings.default_plan().map(str::to_owned));
            (rules.iter().filter_map(|rule| rule.name.clone()).collect::<Vec<_>>(), default)
        };
        let expected = (vec!["free.calls".to_owned(), "pro.calls".to_owned()], Some("free".to_owned()));
        until(&feed, || names() == expected).await;

        db.run("UPDATE rate_limit_plans SET extends = 'gone' WHERE plan_id = 'pro'").await;
        record_all_sql_edits(control).await;
        until(&feed, || names().0 == ["free.calls"]).await;
        let quarantined = || seen.lock().unwrap().as_ref().map(|state| state.quarantined.clone()).unwrap_or_default();
        let bad: Vec<_> = quarantined().into_iter().map(|bad| (bad.kind, bad.id)).collect();
        assert_eq!(bad, [(RecordKind::Plan, "pro".to_owned())]);
        db.run("UPDATE rate_limit_plans SET extends = 'free' WHERE plan_id = 'pro'").await;
        record_all_sql_edits(control).await;
        until(&feed, || names() == expected).await;
        assert_eq!(quarantined(), []);
    }
}

/// Lets a node follow until this holds.
async fn until(feed: &ChangeFeed, holds: impl Fn() -> bool) {
    let mut state = feed.state();
    while !holds() {
        feed.trigger();
        timeout(Duration::from_secs(60), state.changed()).await.expect("a node follows").unwrap();
    }
}
