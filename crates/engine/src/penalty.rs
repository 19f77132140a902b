//! Penalties: a client that a rule refuses again and again is refused altogether for a while.
//!
//! A denial is counted behind the decision, by charges of its own (see [`PenaltyCharges`]): in memory at once, with a
//! shared store by tasks, so that no caller waits for it: denials of one bucket in one call, and many calls in flight. The
//! denial that fills the count begins the penalty: one node of a fleet gets that answer from the store. Each request of
//! such a rule reads, in the same call as its charge, whether a penalty is in force.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::JoinSet;
use tollgate_core::{Ask, Charge, Purpose, Request, Source, Span};
use tollgate_ruleset::PenaltyCharges;
use tollgate_store::{Outcomes, Store, StoreError};

use crate::decision::{DecidedBy, Decision};
use crate::denial_queue::{CountedDenials, Penalty, UncountedReason};
use crate::{Engine, Generation, random};

/// Most calls in flight that count denials. A store 4 ms away counts the denials of 16,000 buckets a second with so many.
const CALLS_MAX: usize = 64;

impl<S: Store> Engine<S> {
    /// Counts the denials of a decision at rules with penalties. A refusal by a penalty is none, and neither is one by
    /// policy or by an overflow bucket, which many clients share.
    #[cold]
    pub(crate) fn count_denials(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        for ruling in decision.rulings() {
            let counts = ruling.enforced && ruling.refused() && !ruling.penalised;
            let by_bucket = matches!(ruling.decided_by, DecidedBy::Store | DecidedBy::Local);
            let Some(rule) = decision.rule(ruling).filter(|rule| counts && by_bucket && rule.spec.penalty.is_some())
            else {
                continue;
            };
            let Some(request) = requests.get(usize::from(ruling.request)) else { continue };
            let bucket = ruling.charge().and_then(|place| charges.get(place)).copied();
            let Some(bucket) = bucket.filter(|_| matches!(request.purpose, Purpose::Consume)) else { continue };
            if self.store.is_shared() && self.denials.join(bucket.bucket) {
                continue;
            }
            let Some(charges) = PenaltyCharges::of(rule, &bucket) else { continue };
            let client = self.observer.as_ref().map(|observer| observer.client_of(request)).unwrap_or_default();
            let (namespace, rule) = (rule.namespace.clone(), rule.name.clone());
            self.count_denial(CountedDenials { namespace, rule, client, bucket, charges, count: 1 });
        }
    }

    fn count_denial(&self, denial: CountedDenials) {
        if self.store.is_shared() {
            if let Some(dropped) = self.denials.push(denial, random::fast()) {
                self.report_uncounted(dropped.count, UncountedReason::QueueFull);
            }
            return;
        }
        // A store in memory answers at once.
        let counted = pin!(self.charge_denials(&denial));
        if let Poll::Ready(Ok(Some(penalty))) = counted.poll(&mut Context::from_waker(Waker::noop())) {
            self.report_penalty(&penalty);
        }
    }

    /// Counts the denials of a shared store; never returns. Ending it ends its calls.
    pub async fn run_penalties(self: Arc<Self>) -> Infallible
    where
        S: 'static,
    {
        let mut calls = JoinSet::new();
        loop {
            let denials = self.denials.next().await;
            while calls.try_join_next().is_some() {}
            if calls.len() >= CALLS_MAX {
                let _ = calls.join_next().await;
            }
            let engine = self.clone();
            calls.spawn(async move { engine.count_waiting(&denials).await });
        }
    }

    async fn count_waiting(&self, denials: &CountedDenials) {
        match self.charge_denials(denials).await {
            Ok(Some(penalty)) => self.report_penalty(&penalty),
            Ok(None) => {}
            // A store that is away holds no penalty: what it did not count is not counted.
            Err(_) => self.report_uncounted(denials.count, UncountedReason::StoreFailed),
        }
    }

    fn report_uncounted(&self, count: u64, reason: UncountedReason) {
        if let Some(observer) = &self.observer {
            observer.denials_uncounted(count, reason);
        }
    }

    fn report_penalty(&self, penalty: &Penalty) {
        if let Some(observer) = &self.observer {
            observer.penalised(penalty);
        }
    }

    /// Counts the denials of a bucket; the penalty, if they brought one. Denials beyond the one that fills the count bring
    /// nothing more: the penalty outlasts them.
    async fn charge_denials(&self, denials: &CountedDenials) -> Result<Option<Penalty>, StoreError> {
        let PenaltyCharges { denial, number, spec, .. } = &denials.charges;
        let count = Charge { ask: Ask::UpTo(denials.count.min(spec.after)), ..*denial };
        let mut outcomes = Outcomes::new();
        let _ = self.ask(std::slice::from_ref(&count), &mut outcomes).await?;
        let fills = outcomes
            .first()
            .is_some_and(|counted| counted.granted > 0 && counted.remaining == 0 && counted.source != Source::Overflow);
        if !fills {
            return Ok(None);
        }
        outcomes.clear();
        let _ = self.ask(std::slice::from_ref(number), &mut outcomes).await?;
        let number = outcomes.first().map_or(1, |counted| counted.used.max(1));
        let Some(block) = denials.charges.block(number) else { return Ok(None) };
        outcomes.clear();
        let _ = self.ask(std::slice::from_ref(&block), &mut outcomes).await?;
        let CountedDenials { namespace, rule, client, bucket, .. } = denials;
        Ok(Some(Penalty {
            namespace: namespace.clone(),
            rule: rule.clone(),
            client: client.clone(),
            bucket: *bucket,
            number,
            begun: self.wall(),
            lasts: Span::from_nanos(spec.block_of(number)),
        }))
    }

    /// Ends the penalties of a bucket, and forgets them: the next one is the first again. False if none was in force.
    pub async fn lift_penalty(&self, bucket: &Charge) -> Result<bool, StoreError> {
        let Some(parts) = PenaltyCharges::buckets(bucket) else { return Ok(false) };
        let [.., block] = &parts;
        let mut outcomes = Outcomes::new();
        let in_force = !self.ask(std::slice::from_ref(block), &mut outcomes).await?.allowed;
        for part in &parts {
            self.forget_one(part).await?;
        }
        Ok(in_force)
    }
}

impl Generation {
    /// True if some rule has a penalty.
    pub(crate) fn has_penalties(&self) -> bool {
        self.rules.has_penalties()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tollgate_core::{Attribute, ManualClock, Time, Wait};
    use tollgate_store::Memory;

    use super::*;
    use crate::{Observer, rules_from_yaml};

    const RULES: &str = "
key_by: user_id
rules:
  - name: guarded
    limit: { requests: 2, window: 10s, algorithm: fixed_window }
    penalty: { after: 3, within: 20s, block: 1m, growth: 2, max: 3m }
";

    #[derive(Clone, Default)]
    struct Begun(Arc<Mutex<Vec<Penalty>>>);

    impl Observer for Begun {
        fn decided(&self, _: &[Request<'_>], _: &Decision, _: &[Charge]) {}

        fn client_of(&self, request: &Request<'_>) -> String {
            request.get(Attribute::UserId).unwrap_or_default().to_owned()
        }

        fn penalised(&self, penalty: &Penalty) {
            self.0.lock().push(penalty.clone());
        }
    }

    struct Guarded {
        engine: Engine<Memory>,
        clock: ManualClock,
        begun: Begun,
    }

    fn guarded(rules: &str) -> Guarded {
        let clock = ManualClock::at(Time::from_secs(1_800_000_000));
        let begun = Begun::default();
        let engine = Engine::on_clock(rules_from_yaml(rules).unwrap(), clock.clone()).with_observer(begun.clone());
        Guarded { engine, clock, begun }
    }

    impl Guarded {
        fn ask(&self, user: &str) -> Decision {
            self.engine.decide_now(&Request::new().with(Attribute::UserId, user))
        }

        fn penalties(&self) -> Vec<(String, u64, u64)> {
            let seconds = |span: Span| span.nanos() / 1_000_000_000;
            let begun = self.begun.0.lock();
            begun.iter().map(|one| (one.client.clone(), one.number, seconds(one.lasts))).collect()
        }
    }

    #[test]
    fn a_client_that_is_refused_too_often_waits_for_the_end_of_its_penalty() {
        let node = guarded(RULES);
        assert!(node.ask("1").is_allowed() && node.ask("1").is_allowed());
        for _ in 0..3 {
            let denied = node.ask("1");
            assert_eq!((denied.is_allowed(), denied.retry_after()), (false, Wait::For(Span::from_secs(10))));
        }
        assert_eq!(node.penalties(), [("1".to_owned(), 1, 60)]);
        node.clock.advance(Span::from_secs(1));
        let penalised = node.ask("1");
        assert_eq!((penalised.is_allowed(), penalised.retry_after()), (false, Wait::For(Span::from_secs(59))));
        assert_eq!((penalised.rulings().len(), penalised.limit(), penalised.remaining()), (1, Some(2), Some(0)));
        assert!(node.ask("2").is_allowed(), "others are not concerned");
        node.clock.advance(Span::from_secs(59).before_end());
        assert!(!node.ask("1").is_allowed(), "a nanosecond before");
        node.clock.advance(Span::from_nanos(1));
        assert!(node.ask("1").is_allowed() && node.ask("1").is_allowed(), "what was refused cost nothing");
    }

    trait BeforeEnd {
        fn before_end(self) -> Span;
    }

    impl BeforeEnd for Span {
        fn before_end(self) -> Span {
            Span::from_nanos(self.nanos() - 1)
        }
    }

    #[tokio::test]
    async fn each_further_penalty_is_longer_and_lifting_forgets_them() {
        let node = guarded(RULES);
        // The fourth is the third again: the first began twice the longest penalty ago, and is forgotten.
        for (count, number, lasts) in [(1, 1, 60), (2, 2, 120), (3, 3, 180), (4, 3, 180)] {
            while node.penalties().len() < count {
                let _ = node.ask("1");
            }
            assert_eq!(node.penalties()[count - 1], ("1".to_owned(), number, lasts));
            node.clock.advance(Span::from_secs(lasts));
        }
        while node.penalties().len() < 5 {
            let _ = node.ask("1");
        }
        node.clock.advance(Span::from_secs(20));
        assert!(!node.ask("1").is_allowed());
        let bucket = node.begun.0.lock()[4].bucket;
        node.engine.lift_penalty(&bucket).await.unwrap();
        assert!(node.ask("1").is_allowed());
        while node.penalties().len() < 6 {
            let _ = node.ask("1");
        }
        assert_eq!(node.penalties()[5], ("1".to_owned(), 1, 60), "the first again");
    }

    #[test]
    fn peeks_shadow_rules_and_slow_denials_bring_no_penalty() {
        let node = guarded(RULES);
        assert!(node.ask("1").is_allowed() && node.ask("1").is_allowed());
        let peek = Request::new().with(Attribute::UserId, "1").peek();
        assert!((0..9).all(|_| !node.engine.decide_now(&peek).is_allowed()));
        for _ in 0..20 {
            while node.ask("1").is_allowed() {}
            node.clock.advance(Span::from_secs(11)); // two within any 20 s
        }
        assert_eq!(node.penalties(), []);
        let shadow = guarded(&RULES.replace("    limit:", "    mode: shadow\n    limit:"));
        assert!((0..20).all(|_| shadow.ask("1").is_allowed()));
        assert_eq!(shadow.penalties(), []);
    }

    /// Keeps every denial, and says when a client is blocked.
    #[derive(Default)]
    struct Oracle {
        denials: Vec<u64>,
        penalties: Vec<u64>,
        blocked_until: u64,
        window: u64,
        admitted: u64,
    }

    impl Oracle {
        fn decide(&mut self, now: u64) -> (bool, Option<u64>) {
            if now < self.blocked_until {
                return (false, Some(self.blocked_until - now));
            }
            if now / 10 != self.window {
                (self.window, self.admitted) = (now / 10, 0);
            }
            if self.admitted < 2 {
                self.admitted += 1;
                return (true, None);
            }
            self.denials.retain(|at| at + 20 > now);
            self.denials.push(now);
            if self.denials.len() >= 3 {
                self.denials.clear();
                self.penalties.retain(|at| at + 360 > now);
                self.penalties.push(now);
                self.blocked_until = now + (60 << (self.penalties.len() - 1).min(2)).min(180);
            }
            (false, Some(10 - now % 10))
        }
    }

    #[test]
    fn random_sequences_agree_with_an_oracle_that_keeps_everything() {
        for seed in 1..=60u64 {
            let node = guarded(RULES);
            let (mut oracle, mut random, mut now) = (Oracle::default(), seed, 1_800_000_000u64);
            for step in 0..600 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let pause = [0, 0, 0, 0, 1, 3, 11, 45][(random % 8) as usize];
                node.clock.advance(Span::from_secs(pause));
                now += pause;
                let decision = node.ask("1");
                let wait = match decision.retry_after() {
                    Wait::For(span) => Some(span.nanos() / 1_000_000_000),
                    _ => None,
                };
                assert_eq!((decision.is_allowed(), wait), oracle.decide(now), "seed {seed}, step {step}");
            }
        }
    }
}
