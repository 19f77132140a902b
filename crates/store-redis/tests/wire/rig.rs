//! Shared by the tests: a primary on a server, and simple requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tollgate_core::{Ask, Charge, Clock, Digest, Limit, Span, Time};
use tollgate_lab::patience::eventually;
use tollgate_store::{MonotonicClock, StoreError, StoreErrorKind};
use tollgate_store_redis::breaker::Phase;
use tollgate_store_redis::failure::Failure;
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::script::{ScriptAnswer, ScriptRequest};
use tollgate_store_redis::{HostPort, Primary, RedisConfig, RedisContext, StoreUrl};

/// Long enough for any healthy server.
pub const PATIENT: Span = Span::from_secs(5);

/// Attempts to connect are at least so far apart, unless a connection worked in between.
pub const CONNECTS_APART: Duration = Duration::from_millis(50);

pub fn config(port: u16) -> RedisConfig {
    RedisConfig::new(StoreUrl::single(HostPort::new("127.0.0.1", port)))
}

pub fn start(config: RedisConfig) -> Arc<Primary> {
    let address = config.url.hosts[0].clone();
    Primary::start(address, RedisContext::new(config, Arc::new(MonotonicClock::new())))
}

/// A clock that can be set, by a shift.
pub struct Shifted {
    real: MonotonicClock,
    shift: AtomicI64,
}

impl Shifted {
    pub fn new() -> Arc<Shifted> {
        Arc::new(Shifted { real: MonotonicClock::new(), shift: AtomicI64::new(0) })
    }

    pub fn shift_by_secs(&self, seconds: i64) {
        self.shift.store(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

impl Clock for Shifted {
    fn now(&self) -> Time {
        let nanos = self.real.now().nanos().saturating_add_signed(self.shift.load(Ordering::SeqCst));
        Time::from_nanos(nanos)
    }
}

/// A primary that has answered a request.
pub async fn warm(config: RedisConfig) -> Arc<Primary> {
    let primary = start(config);
    take(&primary, peek(0), PATIENT).await.expect("the server is well");
    primary
}

/// A burst of a hundred, and practically none after.
pub fn limit() -> Limit {
    Limit::token_bucket(1, Span::from_secs(3600)).unwrap().burst(100).unwrap()
}

pub fn charge(bucket: u64, ask: Ask) -> Charge {
    Charge { ask, identity: bucket as u32, ..Charge::new(Digest([bucket, bucket]), limit(), 1) }
}

pub fn consume(bucket: u64) -> Charge {
    charge(bucket, Ask::Consume(1))
}

pub fn peek(bucket: u64) -> Charge {
    charge(bucket, Ask::Peek(1))
}

pub fn request(charge: Charge) -> ScriptRequest {
    ScriptRequest { charges: [charge].into_iter().collect(), denied: false, full: false }
}

/// Sends one charge and returns whether it passed.
pub async fn take(primary: &Primary, charge: Charge, within: Span) -> Result<bool, StoreError> {
    match primary.ask(request(charge), BucketKey::of(&charge).slot(), within).await {
        Ok(ScriptAnswer::Taken { taken, outcomes, .. }) => {
            assert_eq!(outcomes.len(), 1);
            Ok(taken.allowed)
        }
        Ok(ScriptAnswer::NoRoom(_)) => panic!("the request is not full"),
        Err(Failure::Store(error)) => Err(error),
        Err(elsewhere) => panic!("{elsewhere:?}"),
    }
}

/// Units used in a bucket, by the server's state.
pub async fn used(primary: &Primary, bucket: u64) -> u64 {
    let charge = peek(bucket);
    let ask = async || match primary.ask(request(charge), BucketKey::of(&charge).slot(), PATIENT).await {
        Ok(ScriptAnswer::Taken { outcomes, .. }) => Some(outcomes[0].used),
        // A probe with a shorter timeout ended the connection; a read may be repeated.
        Err(Failure::Store(error)) if error.kind != StoreErrorKind::Refused => None,
        answer => panic!("{answer:?}"),
    };
    eventually("the units in use", Duration::from_secs(20), ask).await
}

/// Waits for a condition that tasks of this runtime bring about, by polling it while they run.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, Duration::from_secs(10), async || holds().then_some(())).await;
}

/// Sends requests until the breaker lets one pass and the server answers.
pub async fn recovered(primary: &Primary) {
    let ask = async || {
        if primary.health().phase == Phase::Closed {
            return Some(());
        }
        let _ = take(primary, consume(999), Span::from_millis(25)).await;
        None
    };
    eventually("the breaker closes", Duration::from_secs(60), ask).await;
}

pub fn now() -> Time {
    MonotonicClock::new().now()
}
