//! Overrides and modes of rules in files: the tables store them without knowing the rules.

use tollgate_control::record::RuleModeDraft;
use tollgate_control::{ChangeSet, Edit, Enforcement, Error, Precondition, RecordKind};
use tollgate_rules::{LimitSpec, RuleSpec};

use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, change_set, override_draft, overriding, per_second, rule};

fn switch(rule_id: &str, to: Option<Enforcement>, expect: Precondition) -> Edit {
    let to = to.map(|mode| RuleModeDraft { mode, reason: "test".to_owned() });
    Edit::RuleMode { namespace: NAMESPACE.to_owned(), rule_id: rule_id.to_owned(), to, expect }
}

/// A change set that knows a rule of a file.
fn knowing(name: &str, edits: impl IntoIterator<Item = Edit>) -> ChangeSet {
    let limit = LimitSpec { requests: 5, window_ns: 1_000_000_000, ..LimitSpec::default() };
    let rule = RuleSpec { name: Some(name.to_owned()), limit: Some(limit), ..RuleSpec::default() };
    ChangeSet { file_rules: vec![(NAMESPACE.to_owned(), rule)], ..change_set(edits) }
}

on_both! {
    async fn overrides_of_rules_in_files_are_kept_and_checked_against_them(db: Database) {
        let control = &db.control;
        let more = overriding("more", override_draft("user:1", "filed", 50));
        let unknown = control.apply(&change_set([more.clone()])).await;
        assert!(matches!(&unknown, Err(Error::Invalid(faults)) if faults[0].code == "unknown-rule"), "{unknown:?}");
        for (written, help) in [("fild", "did you mean `filed`?"), ("nothing-like-it", "rules of this namespace: filed")] {
            let misspelt = overriding("misspelt", override_draft("user:1", written, 50));
            let refused = control.apply(&knowing("filed", [misspelt])).await;
            assert!(format!("{refused:?}").contains(help), "{refused:?}");
        }
        control.apply(&knowing("filed", [more])).await.unwrap();
        let again = overriding("again", override_draft("user:1", "filed", 9));
        let twice = control.apply(&knowing("filed", [again])).await;
        assert!(matches!(&twice, Err(Error::Invalid(faults)) if faults[0].code == "duplicate-name"), "{twice:?}");
        assert_eq!(control.overriding(NAMESPACE, "more").await.unwrap().draft.rule_id, "filed");
        let namespaces = control.namespaces().await.unwrap();
        assert!(namespaces.iter().any(|(name, _)| name == NAMESPACE), "it has an override, and no rule");
    }

    async fn a_rule_of_any_source_has_a_mode_which_is_deleted_with_a_rule_of_the_tables(db: Database) {
        let control = &db.control;
        apply(control, [rule("stored", per_second(1), Precondition::Absent)]).await;
        let unknown = control.apply(&change_set([switch("filed", Some(Enforcement::Shadow), Precondition::Anything)])).await;
        assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
        control.apply(&knowing("filed", [
            switch("filed", Some(Enforcement::Shadow), Precondition::Anything),
            switch("stored", Some(Enforcement::Off), Precondition::Anything),
        ])).await.unwrap();
        let touched = control.changes_since(1).await.unwrap();
        assert_eq!((touched.namespaces, touched.everything), ([NAMESPACE.to_owned()].into(), false));
        let modes = control.rule_modes(None).await.unwrap();
        let modes: Vec<(&str, Enforcement)> = modes.iter().map(|record| (record.rule_id.as_str(), record.draft.mode)).collect();
        assert_eq!(modes, [("filed", Enforcement::Shadow), ("stored", Enforcement::Off)]);
        let gone = apply(control, [rule("stored", None, Precondition::Present)]).await;
        assert_eq!(gone.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [RecordKind::RuleMode, RecordKind::Rule]);
        apply(control, [switch("filed", None, Precondition::Present)]).await;
        assert!(matches!(control.rule_mode(NAMESPACE, "filed").await, Err(Error::NotFound(_))));
        let back = control.rollback_edits(2).await.unwrap();
        assert_eq!(back.len(), 3, "the rule and both switches: {back:?}");
    }
}
