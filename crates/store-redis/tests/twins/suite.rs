//! The suite that every store must pass, on the scripts alone: no connection, no topology, no deadline.

use std::sync::Mutex;

use tollgate_core::Clock as _;
use tollgate_core::{Charge, ManualClock, Receipt, Span, Time};
use tollgate_lab::redis::{Flavour, RedisClient, RedisServer};
use tollgate_store::{Outcomes, Store, StoreError, Taken};
use tollgate_store_redis::key::BucketKey;
use tollgate_store_redis::script::{ScriptAnswer, ScriptRequest};
use tollgate_testkit::subject::InRedis;
use tollgate_testkit::suite::{self, Fixture};

struct Scripts {
    subject: Mutex<InRedis>,
    client: Mutex<RedisClient>,
    clock: ManualClock,
}

impl Store for Scripts {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        let request = ScriptRequest { charges: charges.into(), ..ScriptRequest::default() };
        match self.subject.lock().expect("no test panicked").ask(self.clock.now(), vec![request]).pop() {
            Some(ScriptAnswer::Taken { taken, outcomes: told, .. }) => {
                outcomes.clear();
                outcomes.extend(told);
                Ok(taken)
            }
            other => panic!("{other:?}"),
        }
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        let copies = receipts.iter().map(|receipt| {
            let Receipt { bucket, limit, owner, identity, units, stamp, slot, number } = *receipt;
            Receipt { bucket, limit, owner, identity, units, stamp, slot, number }
        });
        Ok(self.subject.lock().expect("no test panicked").give_back(self.clock.now(), copies.collect()))
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        for charge in buckets {
            let key = BucketKey::of(&self.subject.lock().expect("no test panicked").own(charge)).to_string();
            self.client.lock().expect("no test panicked").call(&["UNLINK", &key]);
        }
        Ok(())
    }
}

impl Fixture for Scripts {
    type Store = Scripts;

    fn store(&self) -> &Scripts {
        self
    }

    fn set_time(&self, now: Time) {
        self.clock.set(now);
    }
}

#[tokio::test]
async fn the_scripts_pass_the_suite_on_redis() {
    pass(Flavour::Redis).await;
}

#[tokio::test]
async fn the_scripts_pass_the_suite_on_valkey() {
    pass(Flavour::Valkey).await;
}

async fn pass(flavour: Flavour) {
    let server = RedisServer::of(flavour);
    suite::run(async || Scripts {
        subject: Mutex::new(InRedis::connect(server.port())),
        client: Mutex::new(server.client()),
        clock: ManualClock::default(),
    })
    .await;
}
