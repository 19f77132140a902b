//! Compares the secret of this node with those of the others: with different secrets, every limit holds once per
//! secret.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate_core::{Clock, Time};
use tollgate_store_redis::RedisStore;

use crate::secrets::SecretKeys;

/// Compares the secret of this node with the store and the other nodes. Never prints it.
pub struct SecretCheck {
    /// The secret, if it came from the store.
    stored: Option<[u8; 16]>,
    /// The fingerprint of the secret.
    fingerprint: String,
    /// When fingerprints are compared again, in nanoseconds.
    next: AtomicU64,
    /// Another node published another fingerprint.
    differs: AtomicBool,
    /// The store holds another secret than the one this node got from it.
    replaced: AtomicBool,
}

/// Whether this node and the others use the same secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretAgreement {
    /// The same secret, as far as is known.
    Together,
    /// The store lost the secret, and a node without it made another.
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

    /// Restores the secret that the store may have lost, and compares; call it every second. While the store is away,
    /// the last result holds.
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
            // After a mismatch, check again soon: it may be over.
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
