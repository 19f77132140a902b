//! Ids and names of rules: one form for new ones from any source; earlier ones stay in force.

use tollgate_control::record::RuleDraft;
use tollgate_control::{DatabaseUrl, Error, Precondition};

use crate::databases::{Database, on_both};
use crate::drafts::{NAMESPACE, apply, change_set, override_draft, overriding, per_second, rule};

const INSERT: &str = "INSERT INTO rate_limit_rules (rule_id, name, max_requests, window_secs) VALUES ";

impl Database {
    /// Runs SQL like a version of Tollgate without a form of names.
    async fn run_as_before(&self, text: &str) {
        match &self.url {
            DatabaseUrl::Sqlite(_) => {
                let text =
                    format!("UPDATE tollgate_state SET writing = 1; {text}; UPDATE tollgate_state SET writing = 0");
                self.run(&text).await;
            }
            DatabaseUrl::Postgres(_) => {
                let lock = "UPDATE tollgate_state SET generation = generation; SET tollgate.writing = 'on'";
                self.run(&format!("{lock}; {text}")).await;
            }
        }
    }

    async fn faults(&self, id: &str, draft: RuleDraft) -> Vec<(String, String, String)> {
        match self.control.apply(&change_set([rule(id, draft, Precondition::Anything)])).await {
            Err(Error::Invalid(faults)) => {
                faults.into_iter().map(|fault| (fault.code, fault.field, fault.help.unwrap_or_default())).collect()
            }
            other => panic!("{id}: {other:?}"),
        }
    }

    async fn in_force(&self) -> Vec<String> {
        let mut ids = Vec::new();
        let put = |row: Result<tollgate_control::record::RuleRecord, _>| ids.push(row.unwrap().rule_id);
        self.control.snapshot().await.unwrap().rules(None, put).await.unwrap();
        ids.sort();
        ids
    }
}

on_both! {
    async fn new_names_have_one_form(db: Database) {
        let long = "x".repeat(65);
        for (id, nearest) in [("free tier", "free-tier"), ("a/b", "a-b"), ("größe", "gr-e"), ("tenant=gold, path", "tenant-gold-path"), (&long, &long[..64])] {
            let faults = db.faults(id, per_second(1)).await;
            let help = format!("use 1 to 64 letters, digits, `.`, `_` and `-`, such as `{nearest}`");
            assert_eq!(faults, [("bad-name".to_owned(), "rule_id".to_owned(), help)], "{id}");
        }
        let named = RuleDraft { name: "for friends".to_owned(), ..per_second(1) };
        assert_eq!(db.faults("a", named).await[0].1, "name");
        apply(&db.control, [rule("a.B_c-9", per_second(1), Precondition::Absent)]).await;
        apply(&db.control, [rule("a.B_c-9", per_second(2), Precondition::Present)]).await;
    }

    async fn ids_differ_in_more_than_case(db: Database) {
        apply(&db.control, [rule("Api", per_second(1), Precondition::Absent), rule("other", per_second(1), Precondition::Absent)]).await;
        let faults = db.faults("API", per_second(1)).await;
        assert_eq!((faults[0].0.as_str(), faults[0].1.as_str()), ("duplicate-name", "rule_id"));
        let both = change_set([rule("x", per_second(1), Precondition::Absent), rule("X", per_second(1), Precondition::Absent)]);
        let Err(Error::Invalid(faults)) = db.control.apply(&both).await else { panic!("both were made") };
        assert_eq!(faults[0].message, "`x` differs from the rule `X` only in upper and lower case");
        // A rule deleted in the same change set frees its name.
        apply(&db.control, [rule("Api", None, Precondition::Present), rule("api", per_second(1), Precondition::Absent)]).await;
        assert_eq!(db.in_force().await, ["api", "other"]);
    }

    async fn rows_written_with_sql_have_names_of_that_form(db: Database) {
        for (values, column) in [
            ("('free tier', '', 1, 1)", "rule_id:"),
            ("('größe', '', 1, 1)", "rule_id:"),
            ("('a', 'for friends', 1, 1)", "name:"),
        ] {
            let said = db.refusal(&format!("{INSERT}{values}")).await;
            assert!(said.contains(column), "{values}: {said}");
        }
        db.run(&format!("{INSERT}('Api', '', 1, 1), ('b', 'same', 1, 1)")).await;
        for sql in [
            format!("{INSERT}('API', 'c', 1, 1)"),
            "UPDATE rate_limit_rules SET rule_id = 'aPI' WHERE rule_id = 'b'".to_owned(),
        ] {
            let said = db.refusal(&sql).await;
            assert!(said.contains("upper and lower case"), "{sql}: {said}");
        }
        let said = db.refusal("UPDATE rate_limit_rules SET rule_id = 'b b' WHERE rule_id = 'b'").await;
        assert!(said.contains("rule_id:"), "{said}");
        db.run("UPDATE rate_limit_rules SET rule_id = 'API' WHERE rule_id = 'Api'").await;
        assert_eq!(db.in_force().await, ["API", "b"]);
    }

    async fn earlier_names_stay_in_force(db: Database) {
        db.run_as_before("INSERT INTO rate_limit_rules (rule_id, name, max_requests, window_secs) \
                          VALUES ('free tier', 'for all', 1, 1), ('Api', 'x', 1, 1), ('api', 'y', 1, 1)").await;
        assert_eq!(db.in_force().await, ["Api", "api", "free tier"]);
        // They may be changed, through the API and with SQL, overridden, deleted, and restored.
        let named = |requests| RuleDraft { name: "for all".to_owned(), ..per_second(requests) };
        let changed = apply(&db.control, [
            rule("free tier", named(5), Precondition::Present),
            rule("api", per_second(5), Precondition::Present),
            overriding("o", override_draft("user:1", "free tier", 9)),
        ]).await;
        db.run("UPDATE rate_limit_rules SET max_requests = 7 WHERE rule_id IN ('free tier', 'api')").await;
        while db.control.record_sql_edits().await.unwrap() {}
        assert_eq!(db.in_force().await, ["Api", "api", "free tier"]);
        apply(&db.control, [rule("free tier", None, Precondition::Present)]).await;
        let back = db.control.rollback_edits(changed.generation).await.unwrap();
        apply(&db.control, back).await;
        assert_eq!(db.in_force().await, ["Api", "api", "free tier"]);
        assert_eq!(db.control.rule(NAMESPACE, "free tier").await.unwrap().draft.name, "for all");
    }
}
