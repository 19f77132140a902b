//! The kill switch: off, shadow and enforce, independent of store and rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_core::{Attribute, Charge, Enforcement, ManualClock, Receipt, Request, Span, Time, Wait};
use tollgate_engine::{DecidedBy, Decision, Engine, Reason, Settled, Verdict, random_slot};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tollgate_store::{Memory, Outcomes, Store, StoreError, StoreErrorKind, Taken};

/// A store that counts its calls and fails all of them.
#[derive(Clone, Default)]
struct FailingStore(Arc<AtomicUsize>);

impl FailingStore {
    fn fail<T>(&self) -> Result<T, StoreError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() })
    }

    fn calls(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Store for FailingStore {
    async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
        self.fail()
    }

    async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
        self.fail()
    }

    async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
        self.fail()
    }
}

const RULES: &str = "on_fail: deny
rules:
  - { name: rate, key_by: user_id, limit: { requests: 2, window: 1h, algorithm: fixed_window } }
  - { name: flight, key_by: user_id, limit: { algorithm: concurrency, slots: 1 } }
  - { name: vip, match: { tier: vip }, unlimited: true }
";

fn rules() -> RuleSet {
    let file = tollgate_rules::read("rules.yaml", RULES).unwrap_or_else(|report| panic!("{report}"));
    RuleSet::compile(&[file], &CompileOptions::reproducible()).expect("the rules compile")
}

fn in_memory() -> Engine<Memory> {
    Engine::on_clock(rules(), ManualClock::at(Time::from_secs(1_800_000_000)))
}

fn user() -> Request<'static> {
    Request::new().with(Attribute::UserId, "1")
}

fn used(decision: &Decision) -> Vec<u64> {
    decision.rulings().iter().filter_map(|ruling| ruling.outcome).map(|outcome| outcome.used).collect()
}

#[test]
fn limits_are_enforced_unless_switched() {
    assert_eq!(in_memory().enforcement(), Enforcement::Enforce);
    assert_eq!(DecidedBy::ALL.map(|mode| mode as usize), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[tokio::test]
async fn off_lets_everything_pass_without_calling_the_store() {
    let store = FailingStore::default();
    let engine = Engine::new(store.clone(), rules());
    assert!(!engine.decide(&user()).await.is_allowed(), "the store fails, and the rule then denies");
    let calls = store.calls();
    engine.set_enforcement(Enforcement::Off);
    let slot = user().holding(random_slot());
    for request in [user(), user().cost(1000), user().peek(), user().report(), slot] {
        for decision in [engine.decide(&request).await, engine.look(&request).await] {
            assert_eq!(
                (decision.is_allowed(), decision.decided_by, decision.reason()),
                (true, DecidedBy::Off, Some(Reason::Off))
            );
            assert!(decision.rulings().is_empty() && decision.retry_after() == Wait::None);
        }
    }
    let together = engine.decide_all(&[user(), user().peek()]).await;
    assert!(together.is_allowed(), "different purposes for one bucket, which is not called");
    let (decision, reservation) = engine.reserve(&slot).await;
    let reservation = reservation.expect("it may pass");
    assert_eq!((decision.decided_by, reservation.slot()), (DecidedBy::Off, None));
    assert!(engine.renew(&reservation).await.expect("the store is not called"));
    assert_eq!(engine.settle(reservation, 7).await.expect("the store is not called"), Settled::default());
    assert_eq!(engine.limiter(user()).acquire(1000).await, Ok(Span::ZERO));
    assert_eq!(engine.limiter(user()).try_acquire(1000, Span::SECOND).await, Ok(Span::ZERO));
    assert_eq!(store.calls(), calls);
    engine.set_enforcement(Enforcement::Enforce);
    assert!(!engine.decide(&user()).await.is_allowed() && store.calls() > calls);
}

#[tokio::test]
async fn off_still_rejects_malformed_requests() {
    let engine = in_memory();
    engine.set_enforcement(Enforcement::Off);
    let decision = engine.decide_now(&user().with(Attribute::Ip, "nonsense"));
    assert!(matches!(&decision.verdict, Verdict::Invalid(error) if error.code == "bad_address"));
    let many = vec![user(); 1025];
    assert!(matches!(engine.decide_all_now(&many).verdict, Verdict::Invalid(_)));
    let (decision, reservation) = engine.reserve(&user().with(Attribute::Ip, "nonsense")).await;
    assert!(!decision.is_allowed() && reservation.is_none());
}

#[tokio::test]
async fn off_charges_nothing_and_leaves_what_was_charged() {
    let engine = in_memory();
    let (_, reservation) = engine.reserve(&user().holding(random_slot())).await;
    engine.set_enforcement(Enforcement::Off);
    for _ in 0..10 {
        assert!(engine.decide_now(&user()).is_allowed());
    }
    engine.release(reservation.expect("there is room")).await.expect("the store is not called");
    engine.set_enforcement(Enforcement::Enforce);
    assert_eq!(used(&engine.decide_now(&user().peek().holding(random_slot()))), [1, 1]);
}

#[tokio::test]
async fn shadow_decides_and_counts_and_never_denies() {
    let engine = in_memory();
    engine.set_enforcement(Enforcement::Shadow);
    let decisions: Vec<Decision> = (0..4).map(|_| engine.decide_now(&user())).collect();
    assert!(decisions.iter().all(Decision::is_allowed));
    let refused = |decision: &Decision| decision.rulings().iter().map(|ruling| ruling.refused()).collect::<Vec<_>>();
    assert_eq!(decisions.iter().map(refused).collect::<Vec<_>>(), [[false], [false], [true], [true]]);
    let last = decisions.last().expect("four were made");
    assert!(last.rulings().iter().all(|ruling| !ruling.enforced));
    assert_eq!(
        (last.decided_by, last.reason(), last.retry_after()),
        (DecidedBy::Store, Some(Reason::ShadowOnly), Wait::None)
    );
    let (decision, first) = engine.reserve(&user().holding(random_slot())).await;
    let (other, second) = engine.reserve(&user().holding(random_slot())).await;
    assert!(decision.is_allowed() && other.is_allowed());
    assert!(first.expect("it passes").slot().is_some() && second.expect("it passes").slot().is_none());
    assert_eq!(engine.limiter(user()).acquire(1000).await, Ok(Span::ZERO), "no wait");
    let vip = engine.decide_now(&user().with(Attribute::Tier, "vip"));
    assert_eq!(vip.rulings().len(), 1, "exemptions stay");
    engine.set_enforcement(Enforcement::Enforce);
    assert!(!engine.decide_now(&user()).is_allowed(), "what was counted counts");
}

#[tokio::test]
async fn shadow_denies_nothing_while_the_store_fails_either() {
    let engine = Engine::new(FailingStore::default(), rules());
    engine.set_enforcement(Enforcement::Shadow);
    let decision = engine.decide(&user()).await;
    assert!(decision.is_allowed() && decision.rulings().iter().all(|ruling| !ruling.enforced && ruling.refused()));
}
