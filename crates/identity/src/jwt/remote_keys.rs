//! A JSON Web Key Set that is fetched: kept until a better one arrives, refreshed by interval, and when a token names a
//! key that is not in it. How it is fetched is the caller's.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use super::JwksError;
use super::jwks::{KeySet, SharedSecrets};
use crate::JwtAlgorithm;

/// Least time between fetches that tokens with unknown keys cause.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(60);
/// First pause after a failed fetch; it doubles up to the interval of unknown keys.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// Longest wait for one fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The keys behind a URL.
pub struct RemoteKeys {
    url: String,
    refresh: Duration,
    algorithms: Vec<JwtAlgorithm>,
    keys: ArcSwap<KeySet>,
    /// Rises with every new set.
    version: AtomicU64,
    unknown_key: Notify,
}

impl RemoteKeys {
    pub(super) fn new(url: String, refresh: Duration, algorithms: Vec<JwtAlgorithm>) -> RemoteKeys {
        RemoteKeys {
            url,
            refresh,
            algorithms,
            keys: ArcSwap::default(),
            version: AtomicU64::new(0),
            unknown_key: Notify::new(),
        }
    }

    /// What is to be fetched.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The longest body that is worth fetching.
    pub const BODY_BYTES_MAX: usize = super::jwks::JWKS_BYTES_MAX;

    /// True once a set of keys has arrived.
    pub fn is_ready(&self) -> bool {
        self.keys.load().len() > 0
    }

    /// Replaces the keys by those of a fetched body; the old ones stay if it cannot be used.
    pub fn offer(&self, body: &[u8]) -> Result<(), JwksError> {
        let keys = KeySet::from_jwks(body, &self.algorithms, SharedSecrets::Ignored)?;
        self.keys.store(Arc::new(keys));
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Takes the keys of another configuration, if both accept the same from the same place: a reload must not forget them.
    pub fn adopt(&self, before: &RemoteKeys) {
        if (&self.url, &self.algorithms) == (&before.url, &before.algorithms) && before.is_ready() {
            self.keys.store(before.keys.load_full());
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Keeps the keys fresh until the future is dropped. `fetch` gets the URL and returns the body of a 200.
    pub async fn follow<F, Body, E>(&self, fetch: impl Fn(String) -> F)
    where
        F: Future<Output = Result<Body, E>>,
        Body: AsRef<[u8]>,
        E: fmt::Display,
    {
        let mut retry = RETRY_MIN;
        loop {
            let started = Instant::now();
            let pause = match self.fetch_once(&fetch).await {
                Ok(()) => {
                    retry = RETRY_MIN;
                    info!(url = %self.url, keys = self.keys.load().len(), "keys of tokens read");
                    self.refresh
                }
                Err(error) => {
                    warn!(url = %self.url, %error, "cannot read the keys of tokens; the last good ones stay in force");
                    let pause = retry.min(self.refresh);
                    retry = (retry * 2).min(UNKNOWN_KEY_INTERVAL);
                    pause
                }
            };
            let due = sleep_until(Instant::now() + pause);
            let unknown = async {
                sleep_until(started + UNKNOWN_KEY_INTERVAL).await;
                self.unknown_key.notified().await;
            };
            either(due, unknown).await;
        }
    }

    async fn fetch_once<F, Body, E>(&self, fetch: impl Fn(String) -> F) -> Result<(), String>
    where
        F: Future<Output = Result<Body, E>>,
        Body: AsRef<[u8]>,
        E: fmt::Display,
    {
        let body = timeout(FETCH_TIMEOUT, fetch(self.url.clone())).await;
        let body = body.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
        self.offer(body.as_ref()).map_err(|error| error.to_string())
    }

    /// A token names a key that is not in the set: fetch it, unless that was done within the last minute.
    pub(super) fn note_unknown_key(&self) {
        self.unknown_key.notify_one();
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The keys and their version.
    pub(super) fn current(&self) -> (u64, Arc<KeySet>) {
        // The version first: a set that is newer than its version is verified once more than needed, never less.
        (self.version(), self.keys.load_full())
    }
}

impl fmt::Debug for RemoteKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteKeys").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Waits until one of two futures is done.
async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    std::future::poll_fn(|context| match one.as_mut().poll(context) {
        std::task::Poll::Ready(()) => std::task::Poll::Ready(()),
        std::task::Poll::Pending => other.as_mut().poll(context),
    })
    .await;
}
