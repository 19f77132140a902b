//! Whether the store decides: asked with the script that decides, not with a ping that stays green while scripts fail.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tollgate_core::{Ask, Charge, Digest, Gcra, Limit, Span};
use tollgate_store::{Outcomes, Store};
use tollgate_store_redis::key::Key;

use super::Backend;
use crate::telemetry::ShardState;

/// How long an answer is good for: whoever asks often learns the same, and the store is not asked more often for it.
const FRESH: Duration = Duration::from_millis(250);

/// Identities that are tried to find one whose buckets live in a certain slot; there are as many as tags.
const IDENTITIES: u32 = 1 << 18;

/// Asks the store how it is.
#[derive(Debug)]
pub struct Probe {
    within: Span,
    last: Mutex<Option<(Instant, Arc<[Probed]>)>>,
}

/// One primary server, when it was last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Where it is.
    pub address: String,
    /// Whether it answers.
    pub state: ShardState,
    /// Why not.
    pub error: Option<String>,
}

impl Probe {
    /// A probe that waits so long for each answer.
    pub fn new(within: Span) -> Probe {
        Probe { within, last: Mutex::default() }
    }

    /// Every primary of a shared store; none for a store in memory, which cannot fail.
    pub async fn look(&self, backend: &Backend) -> Arc<[Probed]> {
        let Backend::Shared(fleet) = backend else { return Arc::default() };
        let mut last = self.last.lock().await; // one at a time: others wait for the same answer
        if let Some((at, known)) = &*last
            && at.elapsed() < FRESH
        {
            return known.clone();
        }
        let mut found = Vec::new();
        for shard in super::figures::of(fleet).shards {
            let asked = fleet.inner().take(&[question(shard.slot)], self.within, &mut Outcomes::new()).await;
            let (state, error) = match asked {
                Ok(_) => (ShardState::Up, None),
                Err(_) if shard.state == ShardState::Recovering => (ShardState::Recovering, None),
                Err(error) => (ShardState::Down, Some(error.to_string())),
            };
            found.push(Probed { address: shard.address, state, error });
        }
        let found: Arc<[Probed]> = found.into();
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

/// A look at a bucket that nobody uses, in this slot: writes nothing, and runs all of the script.
fn question(slot: u16) -> Charge {
    let bucket = Digest([0, 0]); // nobody's: to meet it by chance takes 2^128 keys
    let identity = (0..IDENTITIES).find(|identity| Key::new(*identity, bucket).slot() == slot).unwrap_or_default();
    let limit = Limit::Gcra(Gcra::new(1, Span::SECOND, 1).unwrap_or_else(|_| unreachable!("one a second is a rate")));
    Charge { identity, ask: Ask::Peek(1), ..Charge::new(bucket, limit, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_every_slot_can_be_asked_about() {
        for slot in [0, 1, 5461, 10_922, 12_345, 16_383] {
            assert_eq!(Key::of(&question(slot)).slot(), slot);
        }
    }
}
