//! Whether this node and the others make their keys with the same secret: if not, every limit holds once per secret.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_core::{Clock, Time};
use tollgate_store_redis::RedisStore;

use crate::secrets::SecretKeys;

/// The secret of this node, as far as others have to agree with it; never printed.
pub struct SecretCheck {
    /// The secret, if it came from the store.
    stored: Option<[u8; 16]>,
    /// What tells whether secrets are the same, and nothing else about them.
    fingerprint: String,
    /// When fingerprints are compared again, in nanoseconds.
    next: AtomicU64,
    /// Another fingerprint was found.
    differs: AtomicBool,
    /// Another secret was found where the own came from.
    replaced: AtomicBool,
}

/// How this node stands to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretAgreement {
    /// They count together, as far as is known.
    Together,
    /// The store lost the secret, and somebody who did not know it made another.
    Replaced,
    /// Other nodes use the store with another secret.
    Apart,
}

impl SecretCheck {
    /// Compares this secret with those of the other nodes.
    pub fn new(keys: &SecretKeys, stored: Option<[u8; 16]>) -> SecretCheck {
        let fingerprint = keys.fingerprint();
        let (differs, replaced) = (AtomicBool::new(false), AtomicBool::new(false));
        SecretCheck { stored, fingerprint, next: AtomicU64::new(0), differs, replaced }
    }

    /// Puts back what the store may have lost, and compares; worth calling every second. A store that is away says
    /// nothing new.
    pub async fn check(&self, store: &RedisStore, clock: &dyn Clock) -> SecretAgreement {
        if let Some(own) = self.stored
            && let Ok(found) = store.agree_on_secret(own).await
        {
            self.replaced.store(found != own, Ordering::Relaxed);
        }
        let now = clock.now();
        if now >= Time::from_nanos(self.next.load(Ordering::Relaxed))
            && let Ok(same) = store.matches_fingerprint(&self.fingerprint).await
        {
            self.differs.store(!same, Ordering::Relaxed);
            // Who disagrees looks again soon: it may be over.
            let next = if same { now.after(RedisStore::FINGERPRINT_EVERY) } else { now };
            self.next.store(next.nanos(), Ordering::Relaxed);
        }
        self.agreement()
    }

    /// What the last check found.
    pub fn agreement(&self) -> SecretAgreement {
        if self.replaced.load(Ordering::Relaxed) {
            return SecretAgreement::Replaced;
        }
        match self.differs.load(Ordering::Relaxed) {
            true => SecretAgreement::Apart,
            false => SecretAgreement::Together,
        }
    }
}

impl fmt::Debug for SecretCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretCheck").field(&self.agreement()).finish()
    }
}
