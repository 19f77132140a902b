//! The content of decisions, on a manual clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_core::{Attribute, Charge, ManualClock, Request, Span, Time, Wait};
use tollgate_engine::{DecidedBy, Decision, Engine, Observer, Reason, Verdict};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::Memory;

const START: Time = Time::from_secs(1_800_000_000);

fn rules(yaml: &str) -> RuleSet {
    let file = tollgate_rules::read("rules.yaml", yaml).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile")
}

fn engine(yaml: &str) -> (Engine<Memory>, ManualClock) {
    let clock = ManualClock::at(START);
    (Engine::on_clock(rules(yaml), clock.clone()), clock)
}

fn user(id: &str) -> Request<'_> {
    Request::new().with(Attribute::UserId, id)
}

fn deciding(decision: &Decision) -> &str {
    decision.deciding_rule().map_or("", |(rule, _)| rule.name.as_str())
}

#[test]
fn the_longest_wait_decides_a_denial_and_the_least_room_an_admission() {
    let (engine, _) = engine(
        "rules:
  - { name: fast, key_by: user_id, limit: { requests: 2, window: 1s } }
  - { name: slow, key_by: user_id, limit: { requests: 3, window: 1m } }
  - { name: wide, key_by: user_id, limit: { requests: 100, window: 1s } }
",
    );
    let first = engine.decide_now(&user("1"));
    assert_eq!((deciding(&first), first.remaining(), first.limit()), ("fast", Some(1), Some(2)));
    let _ = engine.decide_now(&user("1"));
    let denied = engine.decide_now(&user("1"));
    assert_eq!((deciding(&denied), denied.retry_after()), ("fast", Wait::For(Span::from_millis(500))));
    let both = engine.decide_now(&user("1").cost(2));
    assert_eq!((deciding(&both), both.retry_after()), ("slow", Wait::For(Span::from_secs(20))));
    assert_eq!(both.rulings().len(), 3);
}

#[test]
fn a_denied_request_costs_nothing_anywhere() {
    let (engine, _) = engine(
        "rules:
  - { name: one, key_by: user_id, limit: { requests: 1, window: 1m } }
  - { name: ten, key_by: global, limit: { requests: 10, window: 1m } }
",
    );
    for _ in 0..5 {
        let _ = engine.decide_now(&user("1"));
    }
    let other = engine.decide_now(&user("2"));
    let ten = other.rulings().iter().filter_map(|ruling| ruling.outcome).map(|outcome| outcome.remaining).next_back();
    assert_eq!(ten, Some(8), "four of five were denied by `one` and did not touch `ten`");
}

#[test]
fn count_denied_charges_every_request_the_rule_matches() {
    let (engine, clock) = engine(
        "rules:
  - { name: counted, key_by: user_id, count_denied: true, limit: { requests: 2, window: 1m, algorithm: fixed_window } }
",
    );
    for _ in 0..5 {
        let _ = engine.decide_now(&user("1"));
    }
    let decision = engine.decide_now(&user("1").peek());
    assert_eq!(decision.rulings()[0].outcome.map(|outcome| outcome.used), Some(5));
    clock.advance(Span::from_secs(60));
    assert!(engine.decide_now(&user("1")).is_allowed());
}

#[test]
fn a_shadow_rule_decides_and_never_denies() {
    let (engine, _) = engine(
        "rules:
  - { name: real, key_by: user_id, limit: { requests: 3, window: 1m } }
  - { name: trial, key_by: user_id, mode: shadow, limit: { requests: 1, window: 1m } }
",
    );
    let mut refused = 0;
    for _ in 0..3 {
        let decision = engine.decide_now(&user("1"));
        assert!(decision.is_allowed());
        assert_eq!(deciding(&decision), "real");
        refused += decision.rulings().iter().filter(|ruling| ruling.refused()).count();
    }
    assert_eq!(refused, 2);
    assert!(!engine.decide_now(&user("1")).is_allowed());
}

#[test]
fn the_reason_says_why_no_rule_decided() {
    let (empty, _) = (Engine::in_memory(RuleSet::empty()), ());
    let decision = empty.decide_now(&user("1"));
    assert!(decision.is_allowed());
    assert_eq!((decision.reason(), decision.limit()), (Some(Reason::NoRules), None));

    let (engine, _) = engine(
        "rules:
  - { name: org, match: { org: acme }, key_by: org, limit: { requests: 1, window: 1s } }
  - { name: free, match: { tier: vip }, unlimited: true }
  - { name: trial, match: { tier: trial }, mode: shadow, key_by: global, limit: { requests: 1, window: 1s } }
",
    );
    let reason = |request: &Request<'_>| engine.decide_now(request).reason();
    assert_eq!(reason(&user("1")), Some(Reason::NoMatch));
    assert_eq!(reason(&user("1").with(Attribute::Tier, "vip")), Some(Reason::Unlimited));
    assert_eq!(reason(&user("1").with(Attribute::Tier, "trial")), Some(Reason::ShadowOnly));
    assert_eq!(reason(&user("1").with(Attribute::Org, "acme")), None);
}

#[test]
fn an_unreadable_request_is_refused_and_charges_nothing() {
    let (engine, _) = engine("rules: [{ key_by: global, limit: { requests: 1, window: 1m } }]");
    let decision = engine.decide_now(&Request::new().with(Attribute::Ip, "not an address"));
    assert!(matches!(&decision.verdict, Verdict::Invalid(error) if error.code == "bad_address"));
    assert_eq!(decision.retry_after(), Wait::Never);
    assert!(engine.decide_now(&Request::new()).is_allowed());
}

#[test]
fn a_cost_above_the_limit_can_never_pass() {
    let (engine, _) = engine("rules: [{ key_by: user_id, limit: { requests: 5, window: 1s } }]");
    let decision = engine.decide_now(&user("1").cost(6));
    assert_eq!(decision.retry_after(), Wait::Never);
    assert_eq!(engine.decide_now(&user("1").cost(5)).remaining(), Some(0));
}

#[test]
fn peek_and_cost_zero_change_nothing() {
    let (engine, _) = engine("rules: [{ key_by: user_id, limit: { requests: 5, window: 1s } }]");
    assert_eq!(engine.decide_now(&user("1").peek().cost(3)).remaining(), Some(5));
    assert_eq!(engine.decide_now(&user("1").cost(0)).remaining(), Some(5));
    assert!(!engine.decide_now(&user("1").peek().cost(6)).is_allowed());
    assert_eq!(engine.store().stats().buckets, 0);
}

#[test]
fn a_report_is_charged_whatever_the_rules_say() {
    let (engine, _) = engine("rules: [{ key_by: user_id, max_debt: 10, limit: { requests: 5, window: 5s } }]");
    let _ = engine.decide_now(&user("1").report().cost(12));
    assert_eq!(engine.decide_now(&user("1")).retry_after(), Wait::For(Span::from_secs(8)));
}

#[test]
fn requests_decided_together_pass_or_fail_together() {
    let (engine, _) = engine("rules: [{ key_by: user_id, limit: { requests: 2, window: 1m } }]");
    let _ = engine.decide_now(&user("b").cost(2));
    let together = engine.decide_all_now(&[user("a"), user("b")]);
    assert!(!together.is_allowed());
    let refused: Vec<u16> = together.rulings().iter().filter(|r| r.refused()).map(|r| r.request).collect();
    assert_eq!(refused, [1]);
    assert_eq!(engine.decide_now(&user("a").peek()).remaining(), Some(2), "a was not charged for b's refusal");
    assert!(!engine.decide_all_now(&[user("c"), user("c").cost(2)]).is_allowed(), "costs on one bucket add up");
}

/// F47: rules change under live usage.
#[test]
fn f47_a_changed_limit_keeps_its_usage_and_a_changed_window_starts_anew() {
    let rule = |limit: &str| rules(&format!("rules: [{{ name: r, key_by: user_id, limit: {{ {limit} }} }}]"));
    let (engine, _) =
        engine("rules: [{ name: r, key_by: user_id, limit: { requests: 10, window: 1m, algorithm: fixed_window } }]");
    let _ = engine.decide_now(&user("1").cost(8));
    assert_eq!(engine.swap_rules(rule("requests: 5, window: 1m, algorithm: fixed_window")), 2);
    let lowered = engine.decide_now(&user("1"));
    assert_eq!((lowered.is_allowed(), lowered.remaining(), lowered.generation()), (false, Some(0), 2));
    engine.swap_rules(rule("requests: 20, window: 1m, algorithm: fixed_window"));
    assert_eq!(engine.decide_now(&user("1")).remaining(), Some(11));
    engine.swap_rules(rule("requests: 20, window: 2m, algorithm: fixed_window"));
    assert_eq!(engine.decide_now(&user("1")).remaining(), Some(19));
    engine.swap_rules(rule("requests: 20, window: 2m"));
    assert_eq!(engine.decide_now(&user("1")).remaining(), Some(19));
}

#[test]
fn a_queue_reports_its_delay() {
    let (engine, _) = engine(
        "rules: [{ key_by: global, limit: { algorithm: leaky_bucket, requests: 10, window: 1s, max_delay: 200ms } }]",
    );
    let delays: Vec<u64> = (0..3).map(|_| engine.decide_now(&Request::new()).delay().millis_ceil()).collect();
    assert_eq!(delays, [0, 100, 200]);
    let refused = engine.decide_now(&Request::new());
    assert_eq!(refused.retry_after(), Wait::For(Span::from_millis(100)));
}

/// DESIGN 11: at the limit everything passes, at limit plus excess nothing, in between at random; the draw of one
/// bucket and window does not change with retries.
#[test]
fn a_soft_limit_refuses_more_and_more_as_the_excess_grows() {
    let (engine, _) =
        engine("rules: [{ key_by: user_id, soft: 50%, limit: { requests: 20, window: 1h, algorithm: fixed_window } }]");
    let users = 2_000;
    let mut refused_at = [0u32; 32];
    for number in 0..users {
        let id = number.to_string();
        let admitted = (0..31).take_while(|_| engine.decide_now(&user(&id)).is_allowed()).count();
        assert!((20..30).contains(&admitted), "{admitted} admitted for a limit of 20 with an excess of 10");
        assert!(!engine.decide_now(&user(&id)).is_allowed(), "retries draw no new number");
        refused_at[admitted] += 1;
    }
    // Each of the ten numbers 20..30 is as likely as any other: 200 each, six standard deviations are 80.
    assert!(refused_at[20..30].iter().all(|count| (120..280).contains(count)), "{refused_at:?}");
}

#[test]
fn an_observer_sees_every_decision() {
    struct Counting(Arc<AtomicUsize>);
    impl Observer for Counting {
        fn decided(&self, requests: &[Request<'_>], decision: &Decision, _: &[Charge]) {
            self.0.fetch_add(requests.len() * (1 + usize::from(decision.is_allowed())), Ordering::Relaxed);
        }
    }
    let seen = Arc::new(AtomicUsize::new(0));
    let (engine, _) = engine("rules: [{ key_by: user_id, limit: { requests: 1, window: 1s } }]");
    let engine = engine.with_observer(Counting(seen.clone()));
    let _ = (engine.decide_now(&user("1")), engine.decide_now(&user("1")));
    assert_eq!(seen.load(Ordering::Relaxed), 3);
    // What can only be decided one by one is no decision, charges nothing and is not seen.
    assert!(engine.try_decide_together(&[user("2"), user("2").peek()]).is_none());
    assert_eq!(seen.load(Ordering::Relaxed), 3);
    let together = engine.try_decide_together(&[user("2"), user("3")]).unwrap().unwrap();
    assert_eq!((together.is_allowed(), seen.load(Ordering::Relaxed)), (true, 7));
}

#[test]
fn a_full_store_sends_new_keys_to_the_rules_overflow_bucket() {
    use tollgate_store::MemoryConfig;
    let clock = ManualClock::at(START);
    let config = MemoryConfig { max_memory: 64 << 10, shards: 4, ..MemoryConfig::default() };
    let memory = Memory::with_clock(config, Arc::new(clock));
    let engine = Engine::new(memory, rules("rules: [{ key_by: user_id, limit: { requests: 2, window: 1h } }]"));
    let victim = user("victim");
    let _ = (engine.decide_now(&victim), engine.decide_now(&victim));
    let mut overflowed = 0;
    for number in 0..20_000 {
        let id = number.to_string();
        let decision = engine.decide_now(&user(&id));
        overflowed += usize::from(decision.decided_by == DecidedBy::Overflow);
    }
    assert!(overflowed > 10_000);
    assert!(!engine.decide_now(&victim).is_allowed(), "a flood resets no limit");
    let stats = engine.store().stats();
    assert!(stats.bytes <= 64 << 10, "{stats:?}");
    let overflow = engine.decide_now(&user("another"));
    assert_eq!((overflow.limit(), overflow.is_allowed()), (Some(20), false));
}

/// `shards`: a full shard denies no request while another has room, and the reported wait is sufficient (P10).
#[test]
fn a_full_shard_tries_the_others_and_reports_a_sufficient_wait() {
    for algorithm in ["token_bucket", "fixed_window", "sliding_window_log", "sliding_window_counter"] {
        let (engine, clock) = engine(&format!(
            "rules: [{{ key_by: global, shards: 4, limit: {{ requests: 20, window: 10s, algorithm: {algorithm} }} }}]"
        ));
        let passed = (0..40).filter(|_| engine.decide_now(&user("1")).is_allowed()).count();
        assert_eq!(passed, 20, "{algorithm}: the whole limit, whichever shard each request tries first");
        for turn in 0..60 {
            let refused = engine.decide_now(&user("1"));
            if let Wait::For(wait) = refused.retry_after() {
                clock.advance(wait);
                assert!(engine.decide_now(&user("1")).is_allowed(), "{algorithm}: refused after {wait:?}, turn {turn}");
            }
        }
    }
}

/// A rule that counts denied requests counts each once, in the shard that refused it.
#[test]
fn charges_that_count_denied_requests_stay_in_their_shard() {
    let (engine, _) = engine(
        "rules: [{ key_by: global, shards: 2, count_denied: true, limit: { requests: 4, window: 1h, algorithm: fixed_window } }]",
    );
    let passed = (0..40).filter(|_| engine.decide_now(&user("1")).is_allowed()).count();
    assert_eq!(passed, 4, "forty draws reach both shards");
}

/// RELIABILITY I18: spellings of one text are one client for rules, client tables and overrides.
#[test]
fn i18_spellings_of_a_text_are_one_client() {
    let rules = |normalize: &str| {
        format!(
            "{normalize}
rules:
  - {{ name: all, key_by: user_id, limit: {{ requests: 5, window: 1h }} }}
  - {{ name: zone, match: {{ zone: cafe\u{301} }}, key_by: zone, limit: {{ requests: 100, window: 1h }} }}
  - {{ name: gold, match: {{ tier: gold }}, key_by: user_id, limit: {{ requests: 50, window: 1h }} }}
clients: [{{ client_key: \"user:ame\u{301}lie\", tier: gold }}]
overrides: [{{ client_key: \"user:zoe\u{308}\", rule: all, requests: 7 }}]
"
        )
    };
    let custom = [("zone", "caf\u{e9}")];
    let seen = |engine: &Engine<Memory>, id: &str| {
        let decision = engine.decide_now(&user(id).with_custom(&custom));
        let mut seen: Vec<String> = decision
            .rulings()
            .iter()
            .map(|ruling| {
                let name = decision.rule(ruling).map_or("", |rule| rule.name.as_str());
                format!("{name} {}", ruling.outcome.as_ref().map_or(0, |outcome| outcome.remaining))
            })
            .collect();
        seen.sort();
        seen
    };
    let (plain, _) = engine(&rules(""));
    assert_eq!(seen(&plain, "am\u{e9}lie"), ["all 4"]);
    assert_eq!(seen(&plain, "ame\u{301}lie"), ["all 4", "gold 49"]);
    assert_eq!(seen(&plain, "zo\u{eb}"), ["all 4"]);
    for form in ["normalize: nfc", "normalize: nfkc"] {
        let (engine, _) = engine(&rules(form));
        assert_eq!(seen(&engine, "am\u{e9}lie"), ["all 4", "gold 49", "zone 99"], "{form}");
        assert_eq!(seen(&engine, "ame\u{301}lie"), ["all 3", "gold 48", "zone 98"], "{form}");
        assert_eq!(seen(&engine, "zo\u{eb}"), ["all 6", "zone 97"], "{form}");
        assert_eq!(seen(&engine, "zoe\u{308}"), ["all 5", "zone 96"], "{form}");
    }
}
