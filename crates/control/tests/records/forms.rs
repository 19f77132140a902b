//! The Unicode form of a namespace (RELIABILITY I18): clients are found by every spelling of their keys.

use std::time::Duration;

use tokio::time::timeout;
use tollgate_control::change_feed::LoadedState;
use tollgate_control::record::NamespaceDraft;
use tollgate_control::{Edit, Precondition};
use tollgate_core::{Attribute, Request, Secret};
use tollgate_rules::Normalize;
use tollgate_ruleset::{CompileOptions, NamespaceRules, RuleSet};

use crate::by_hand::follow;
use crate::databases::on_both;
use crate::drafts::{NAMESPACE, apply, client, client_draft, per_second, rule};

const COMPOSED: &str = "am\u{e9}lie";
const DECOMPOSED: &str = "ame\u{301}lie";

/// The tiers of both spellings, as decisions see them.
fn tiers(loaded: &LoadedState) -> [Option<String>; 2] {
    let namespace = &loaded.namespaces[NAMESPACE];
    let directories = [namespace.directory.clone()];
    let part = NamespaceRules { file: &namespace.settings, rules: &namespace.rules, directories: &directories };
    let options = CompileOptions { secret: Secret::new([7; 16]), seed: 0 };
    let set = RuleSet::assemble(&[part], &options).unwrap();
    [COMPOSED, DECOMPOSED].map(|user| {
        let request = Request::new().with(Attribute::UserId, user);
        set.tier_of(&request).map(str::to_owned)
    })
}

on_both! {
    async fn clients_are_found_by_every_spelling(db: Database) {
        let form = |normalize| Edit::Namespace {
            namespace: NAMESPACE.to_owned(),
            to: Some(NamespaceDraft { normalize, ..NamespaceDraft::default() }), expect: Precondition::Anything };
        let gold = |name: &str| client(&format!("user:{name}"), client_draft("gold"));
        apply(&db.control, [rule("a", per_second(1), Precondition::Absent), gold(DECOMPOSED)]).await;
        let (feed, seen) = follow(&db).await;
        let mut state = feed.state();
        let silver = || client(&format!("user:{DECOMPOSED}"), client_draft("silver"));
        let (gold, silver_tier) = (Some("gold".to_owned()), Some("silver".to_owned()));
        assert_eq!(tiers(seen.lock().unwrap().as_ref().unwrap()), [None, gold.clone()], "bytes, unless it is asked for");
        for (edit, expected) in [
            (form(Normalize::Nfc), [gold.clone(), gold]),
            (silver(), [silver_tier.clone(), silver_tier.clone()]),
            (form(Normalize::None), [None, silver_tier]),
        ] {
            let generation = apply(&db.control, [edit]).await.generation;
            let heard = timeout(Duration::from_secs(40), state.wait_for(|state| state.generation >= generation)).await;
            assert!(heard.is_ok(), "generation {generation} is not in force");
            assert_eq!(tiers(seen.lock().unwrap().as_ref().unwrap()), expected, "generation {generation}");
        }
        let said = db.refusal("INSERT INTO rate_limit_namespaces (namespace, normalize) VALUES ('x', 'nfd')").await;
        assert!(said.contains("namespace_normalize"), "{said}");
    }
}
