//! What the tests share: a primary on a server, and simple questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tollgate_core::{Ask, Charge, Clock, Digest, Limit, Span, Time};
use tollgate_store::{MonotonicClock, StoreError, StoreErrorKind};
use tollgate_store_redis::failure::Failure;
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::script::{ScriptAnswer, ScriptRequest};
use tollgate_store_redis::{HostPort, Primary, RedisConfig, RedisContext, StoreUrl};

/// Long enough for any server that is well.
pub const PATIENT: Span = Span::from_secs(5);

pub fn config(port: u16) -> RedisConfig {
    RedisConfig::new(StoreUrl::single(HostPort::new("127.0.0.1", port)))
}

pub fn start(config: RedisConfig) -> Arc<Primary> {
    let address = config.url.hosts[0].clone();
    Primary::start(address, RedisContext::new(config, Arc::new(MonotonicClock::new())))
}

/// A clock that can be set: what it shows is off by a span.
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

/// A primary that has already been asked something.
pub async fn warm(config: RedisConfig) -> Arc<Primary> {
    let primary = start(config);
    take(&primary, peek(0), PATIENT).await.expect("the server is well");
    primary
}

/// A hundred at once, and practically none after.
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

pub fn question(charge: Charge) -> ScriptRequest {
    ScriptRequest { charges: [charge].into_iter().collect(), refused: false, full: false }
}

/// Asks for one charge: whether it passed.
pub async fn take(primary: &Primary, charge: Charge, within: Span) -> Result<bool, StoreError> {
    match primary.ask(question(charge), BucketKey::of(&charge).slot(), within).await {
        Ok(ScriptAnswer::Taken { taken, outcomes, .. }) => {
            assert_eq!(outcomes.len(), 1);
            Ok(taken.allowed)
        }
        Ok(ScriptAnswer::NoRoom(_)) => panic!("nobody said that there is no room"),
        Err(Failure::Store(error)) => Err(error),
        Err(elsewhere) => panic!("{elsewhere:?}"),
    }
}

/// How many units of a bucket are used, asked of the server itself.
pub async fn used(primary: &Primary, bucket: u64) -> u64 {
    let charge = peek(bucket);
    for _ in 0..20 {
        match primary.ask(question(charge), BucketKey::of(&charge).slot(), PATIENT).await {
            Ok(ScriptAnswer::Taken { outcomes, .. }) => return outcomes[0].used,
            // A probe with less patience ended the connection; a look may be repeated.
            Err(Failure::Store(error)) if error.kind != StoreErrorKind::Refused => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            answer => panic!("{answer:?}"),
        }
    }
    panic!("no answer after twenty tries");
}

/// Waits until something holds that tasks of this runtime bring about and tell nobody of: it is looked at now and then, and
/// they run meanwhile.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}, still not after ten seconds");
}

pub fn now() -> Time {
    MonotonicClock::new().now()
}
