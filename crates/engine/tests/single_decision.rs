//! Charges without a rule: the store decides, or this node's share, or the kill switch.

use tollgate_core::{Charge, Digest, Enforcement, Gcra, Limit, ManualClock, Receipt, Span, Time, Wait};
use tollgate_engine::{DecidedBy, Engine, EngineConfig};
use tollgate_ruleset::RuleSet;
use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};

const START: Time = Time::from_secs(1_700_000_000);

/// `burst` at once, one more each second.
fn charge(burst: u64) -> Charge {
    let limit = Gcra::new(1, Span::SECOND, burst).expect("a limit").unclamped();
    Charge::new(Digest([1, 2]), Limit::Gcra(limit), 1)
}

#[test]
fn a_charge_in_memory_is_decided_synchronously_and_allocates_nothing() {
    let clock = ManualClock::at(START);
    let engine = Engine::on_clock(RuleSet::empty(), clock.clone());
    let warm = engine.try_take_one(&charge(3)).expect("memory is synchronous");
    assert_eq!((warm.allowed, warm.decided_by, warm.outcome.remaining, warm.now), (true, DecidedBy::Store, 2, START));
    let measured = allocation_counter::measure(|| {
        for remaining in [1, 0, 0] {
            let decision = engine.try_take_one(&charge(3)).expect("memory is synchronous");
            assert_eq!(decision.outcome.remaining, remaining);
        }
    });
    assert_eq!(measured.count_total, 0, "{measured:?}");
    let refused = engine.try_take_one(&charge(3)).expect("memory is synchronous");
    assert_eq!((refused.allowed, refused.outcome.wait), (false, Wait::For(Span::SECOND)));
    clock.advance(Span::SECOND);
    assert!(engine.try_take_one(&charge(3)).expect("memory is synchronous").allowed);
}

#[tokio::test]
async fn a_forgotten_bucket_is_an_unused_one() {
    let engine = Engine::on_clock(RuleSet::empty(), ManualClock::at(START));
    assert!(engine.take_one(&charge(1)).await.allowed);
    assert!(!engine.take_one(&charge(1)).await.allowed);
    engine.forget_one(&charge(1)).await.expect("memory forgets");
    assert!(engine.take_one(&charge(1)).await.allowed);
}

#[test]
fn the_kill_switch_applies() {
    let engine = Engine::on_clock(RuleSet::empty(), ManualClock::at(START));
    let ask = || engine.try_take_one(&charge(1)).expect("memory is synchronous");
    assert!(ask().allowed);
    engine.set_enforcement(Enforcement::Shadow);
    let shadowed = ask();
    assert_eq!((shadowed.allowed, shadowed.outcome.allowed), (true, false));
    engine.set_enforcement(Enforcement::Off);
    let off = ask();
    assert_eq!((off.allowed, off.decided_by, off.outcome.remaining), (true, DecidedBy::Off, 1));
    engine.set_enforcement(Enforcement::Enforce);
    assert!(!ask().allowed);
}

/// A store that cannot be reached.
struct Unreachable;

impl Unreachable {
    fn error<T>() -> Result<T, StoreError> {
        Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() })
    }
}

impl Store for Unreachable {
    async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
        Unreachable::error()
    }

    async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
        Unreachable::error()
    }

    async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
        Unreachable::error()
    }
}

#[tokio::test]
async fn this_nodes_share_decides_while_the_store_fails() {
    let config = EngineConfig { nodes: 3, ..EngineConfig::default() };
    let engine = Engine::new(Unreachable, RuleSet::empty()).with_config(config);
    let hourly = Limit::token_bucket(6, Span::from_secs(3600)).expect("a limit");
    let charge = Charge::new(Digest([3, 4]), hourly, 1);
    assert!(engine.try_take_one(&charge).is_none(), "the store must be asked");
    let mut allowed = 0;
    for _ in 0..10 {
        let decision = engine.take_one(&charge).await;
        assert_eq!(decision.decided_by, DecidedBy::Fallback);
        allowed += u64::from(decision.allowed);
    }
    assert_eq!(allowed, 2);
}
