//! Stands in for the store of a fleet until that is merged: every URL leads to a server that nobody reaches.

#![allow(missing_docs, reason = "gone with the merge")]

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use tollgate_core::{Charge, Clock, Receipt, Span};
use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};
use tollgate_store_redis::key::Key;

#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn new(text: impl Into<String>) -> Password {
        Password(text.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub user: Option<String>,
    pub password: Password,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    scheme: String,
    pub tls: bool,
    pub login: Option<Login>,
    rest: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    pub at: usize,
    pub what: String,
    pub help: &'static str,
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<StoreUrl, UrlError> {
        let help = "use redis://, rediss:// (TLS), redis-sentinel(s):// or redis-cluster(s)://";
        let error = |what: &str| UrlError { at: 1, what: what.to_owned(), help };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| error("there is no scheme"))?;
        if !scheme.starts_with("redis") {
            return Err(error("no scheme of a store"));
        }
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => {
                let (user, password) = login.split_once(':').ok_or_else(|| error("a user without a password"))?;
                let user = Some(user.to_owned()).filter(|user| !user.is_empty());
                (Some(Login { user, password: Password::new(password) }), rest)
            }
            None => (None, rest),
        };
        let tls = scheme.ends_with("ss") || scheme.ends_with("ls") || scheme.ends_with("rs");
        Ok(StoreUrl { scheme: scheme.to_owned(), tls, login, rest: rest.to_owned() })
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(Login { user, .. }) = &self.login {
            write!(f, "{}:…@", user.as_deref().unwrap_or_default())?;
        }
        f.write_str(&self.rest)
    }
}

#[derive(Clone, Debug)]
pub struct RedisConfig {
    pub url: StoreUrl,
    pub within: Span,
    pub connections: usize,
    pub ca: Option<PathBuf>,
    pub insecure_tls: bool,
    pub node: String,
    pub nodes: Option<u64>,
    pub new_keys_per_second: u64,
    pub require_noeviction: bool,
}

impl RedisConfig {
    pub fn new(url: StoreUrl) -> RedisConfig {
        RedisConfig {
            url,
            within: Span::from_millis(25),
            connections: 2,
            ca: None,
            insecure_tls: false,
            node: String::new(),
            nodes: None,
            new_keys_per_second: 0,
            require_noeviction: false,
        }
    }
}

#[derive(Debug)]
pub struct RedisStore {
    config: RedisConfig,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    Unreachable(String),
    Unsuitable(Vec<Finding>),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Unreachable(why) => f.write_str(why),
            StartError::Unsuitable(_) => f.write_str("the store is not suitable"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grade {
    Good,
    Note,
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub grade: Grade,
    pub what: String,
    pub help: String,
}

fn unreachable<T>() -> Result<T, StoreError> {
    Err(StoreError { kind: StoreErrorKind::Unavailable, detail: "connection refused".to_owned() })
}

impl RedisStore {
    pub fn start(config: RedisConfig, _: Arc<dyn Clock>) -> RedisStore {
        RedisStore { config }
    }

    pub async fn ready(&self, _: Span) -> Result<Vec<Finding>, StartError> {
        Err(StartError::Unreachable("connection refused".to_owned()))
    }

    pub async fn secret(&self) -> Result<[u8; 16], StoreError> {
        unreachable()
    }

    pub async fn close(&self) {}

    pub fn place(&self, charge: &Charge) -> (Key, u16) {
        let key = Key::of(charge);
        (key, key.slot())
    }

    pub fn address(&self) -> String {
        self.config.url.rest.clone()
    }
}

impl Store for RedisStore {
    async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
        tokio::task::yield_now().await;
        unreachable()
    }

    async fn give_back(&self, _: &[Receipt]) -> Result<usize, StoreError> {
        unreachable()
    }

    async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
        unreachable()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn nodes(&self) -> Option<u64> {
        self.config.nodes
    }
}

pub async fn check(_: &RedisConfig) -> Vec<Finding> {
    vec![Finding {
        grade: Grade::Problem,
        what: "connection refused".to_owned(),
        help: "start it, or name another".to_owned(),
    }]
}

#[derive(Clone, Copy, Debug, Default)]
pub struct FleetConfig {
    pub deny_cache_ttl: Span,
    pub lease_ttl: Span,
    pub async_interval: Span,
}

#[derive(Debug)]
pub struct Fleet<S> {
    inner: S,
}

impl<S: Store> Fleet<S> {
    pub fn new(inner: S, _: FleetConfig, _: Arc<dyn Clock>) -> Fleet<S> {
        Fleet { inner }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    pub async fn upkeep(&self) {}

    pub async fn close(&self) {}
}

impl<S: Store> Store for Fleet<S> {
    async fn take(&self, charges: &[Charge], within: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        self.inner.take(charges, within, outcomes).await
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        self.inner.give_back(receipts).await
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.inner.forget(buckets).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn nodes(&self) -> Option<u64> {
        self.inner.nodes()
    }
}
