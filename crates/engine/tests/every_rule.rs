//! Overrides of all rules: one exempts a whole customer.

use tollgate_core::{Attribute, ManualClock, Request, Time};
use tollgate_engine::Engine;
use tollgate_ruleset::{CompileOptions, RuleSet};

const RULES: &str = "
rules:
  - { name: rate, key_by: user_id, limit: { requests: 1, window: 1h } }
  - { name: quota, key_by: user_id, quota: { amount: 1, every: month } }
  - { name: shared, key_by: global, limit: { requests: 1, window: 1h, algorithm: fixed_window } }
overrides:
  - { client_key: 'org:acme', rule: '*', unlimited: true, valid_until: 1970-01-01T00:01:00Z }
  - { client_key: 'user:own', rule: '*', unlimited: true }
  - { client_key: 'user:own', rule: rate, requests: 3 }
";

#[test]
fn an_override_of_all_rules_exempts_a_client_and_one_of_a_rule_comes_first() {
    let file = tollgate_rules::read("rules", RULES).unwrap_or_else(|report| panic!("{report}"));
    let set = RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("valid rules");
    let clock = ManualClock::at(Time::from_secs(59));
    let engine = Engine::on_clock(set, clock.clone());
    let member = Request::new().with(Attribute::UserId, "1").with(Attribute::Org, "acme");
    for _ in 0..5 {
        assert!(engine.decide_now(&member).is_allowed());
    }
    assert!(!engine.decide_now(&Request::new().with(Attribute::UserId, "2").cost(2)).is_allowed());
    let own = Request::new().with(Attribute::UserId, "own");
    let decision = engine.decide_now(&own);
    assert_eq!(decision.limit(), Some(3), "the override of the rule itself");
    assert_eq!(decision.rulings().iter().filter(|ruling| ruling.outcome.is_some()).count(), 1);
    clock.advance(tollgate_core::Span::SECOND);
    assert!(engine.decide_now(&member).is_allowed(), "it is over, and nothing was counted");
    assert!(!engine.decide_now(&member).is_allowed());
}
