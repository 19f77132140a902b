//! The layer: repeats calls of the service below it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use parking_lot::Mutex;
use tollgate_core::{Clock, Time};
use tollgate_overload::{ClientThrottle, RetryBudgetConfig, ThrottleConfig};
use tollgate_store::{MonotonicClock, random};
use tower_layer::Layer;
use tower_service::Service;

use crate::{Attempts, Courtesy, Later, NextAttempt, PeekedBody, RetryAllowance, RetryPolicy};

/// The field by which a server recognises the repetition of a call.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Repeats calls that were told to come later. Clones share the budget, the throttle and the courtesy: use one layer for
/// each API.
#[derive(Clone)]
pub struct RetryLayer(Arc<Shared>);

struct Shared {
    policy: RetryPolicy,
    allowance: RetryAllowance,
    throttle: Option<Mutex<ClientThrottle>>,
    courtesy: Option<Courtesy>,
    adds_keys: bool,
    clock: Arc<dyn Clock>,
}

/// Why there is no response.
#[derive(Debug)]
pub enum RetryError<E> {
    /// The API refuses most calls: this one was refused here, without a call.
    Throttled,
    /// The service below failed. What failed is not repeated: it may have been processed.
    Service(E),
}

impl RetryLayer {
    /// A layer with this policy and a retry budget of 10 % of the calls, at least one retry a second.
    pub fn new(policy: RetryPolicy) -> RetryLayer {
        let allowance = RetryAllowance::default();
        let clock = Arc::new(MonotonicClock::new());
        RetryLayer(Arc::new(Shared { policy, allowance, throttle: None, courtesy: None, adds_keys: false, clock }))
    }

    /// Another retry budget.
    pub fn with_budget(self, config: RetryBudgetConfig) -> RetryLayer {
        self.changed(|shared| shared.allowance = RetryAllowance::new(config))
    }

    /// Refuses calls here while the API refuses most of them (adaptive throttling, K = 2 over two minutes).
    pub fn with_throttle(self) -> RetryLayer {
        self.changed(|shared| shared.throttle = Some(Mutex::new(ClientThrottle::new(ThrottleConfig::default()))))
    }

    /// Slows down as the remaining calls come to an end.
    pub fn with_courtesy(self, courtesy: Courtesy) -> RetryLayer {
        self.changed(|shared| shared.courtesy = Some(courtesy))
    }

    /// Adds an `Idempotency-Key` to calls of methods that are not idempotent and have none. Only for APIs that know the
    /// field.
    pub fn with_idempotency_keys(self) -> RetryLayer {
        self.changed(|shared| shared.adds_keys = true)
    }

    /// On another clock, which must move as Tokio's timer does.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> RetryLayer {
        self.changed(|shared| shared.clock = clock)
    }

    /// Settings are chosen before the layer is cloned: a clone that changes starts with a budget and a throttle of its own.
    fn changed(mut self, change: impl FnOnce(&mut Shared)) -> RetryLayer {
        if Arc::get_mut(&mut self.0).is_none() {
            let Shared { policy, adds_keys, ref clock, .. } = *self.0;
            let fresh = RetryLayer::new(policy).with_clock(clock.clone());
            self = if adds_keys { fresh.with_idempotency_keys() } else { fresh };
        }
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            change(shared);
        }
        self
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        RetryService { inner, shared: self.0.clone() }
    }
}

/// A service that repeats calls of the one below it.
#[derive(Clone)]
pub struct RetryService<S> {
    inner: S,
    shared: Arc<Shared>,
}

/// The future of a call.
type RetryFuture<R, E> = Pin<Box<dyn Future<Output = Result<Response<PeekedBody<R>>, RetryError<E>>> + Send>>;

impl<S, B, R> Service<Request<B>> for RetryService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Clone + Send + 'static,
    R: Body<Data = Bytes> + Unpin + Send + 'static,
    R::Error: Send,
{
    type Response = Response<PeekedBody<R>>;
    type Error = RetryError<S::Error>;
    type Future = RetryFuture<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(RetryError::Service)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // The clone that is ready is used, another one takes its place.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let shared = self.shared.clone();
        Box::pin(async move {
            shared.add_key(&mut request);
            let has_key = request.headers().contains_key(IDEMPOTENCY_KEY);
            let method = request.method().clone();
            let mut attempts = Attempts::start(shared.policy, method, has_key, shared.clock.now(), &shared.allowance);
            loop {
                shared.admit::<S::Error>().await?;
                let kept = attempts.may_continue().then(|| request.clone());
                let result = inner.call(request).await;
                let (response, later) = shared.judge(result).await?;
                let (Some(kept), Some(later)) = (kept, later) else { return Ok(response) };
                match attempts.next(&later, shared.clock.now(), random::fast(), &shared.allowance) {
                    NextAttempt::After(wait) => {
                        drop(response); // its connection, before the wait
                        tokio::time::sleep(Duration::from(wait)).await;
                        request = kept;
                        std::future::poll_fn(|context| inner.poll_ready(context)).await.map_err(RetryError::Service)?;
                    }
                    NextAttempt::None => return Ok(response),
                }
            }
        })
    }
}

impl Shared {
    fn add_key<B>(&self, request: &mut Request<B>) {
        let needs_one = matches!(*request.method(), Method::POST | Method::PATCH) && self.adds_keys;
        if needs_one && !request.headers().contains_key(IDEMPOTENCY_KEY) {
            let key = format!("{:016x}{:016x}", random::unpredictable(), random::unpredictable());
            if let Ok(key) = HeaderValue::from_str(&key) {
                request.headers_mut().insert(IDEMPOTENCY_KEY, key);
            }
        }
    }

    /// Waits for courtesy, and refuses what the throttle refuses.
    async fn admit<E>(&self) -> Result<(), RetryError<E>> {
        if let Some(courtesy) = &self.courtesy {
            let pause = courtesy.delay(self.clock.now());
            if !pause.is_zero() {
                tokio::time::sleep(Duration::from(pause)).await;
            }
        }
        match &self.throttle {
            Some(throttle) if !throttle.lock().admits(self.clock.now(), random::fast()) => Err(RetryError::Throttled),
            _ => Ok(()),
        }
    }

    /// Reads a response: what it says of the limit, and whether it says "later".
    async fn judge<R, E>(
        &self,
        result: Result<Response<R>, E>,
    ) -> Result<(Response<PeekedBody<R>>, Option<Later>), RetryError<E>>
    where
        R: Body<Data = Bytes> + Unpin,
    {
        let mut response = result.map_err(RetryError::Service)?.map(PeekedBody::unread);
        let wall = self.clock.wall();
        let later = match response.status() {
            StatusCode::BAD_REQUEST => self.judge_body(&mut response, wall).await,
            _ => Later::read(&response, wall),
        };
        if let Some(courtesy) = &self.courtesy {
            courtesy.observe_fields(response.headers(), &*self.clock);
        }
        if let (Some(throttle), None) = (&self.throttle, later) {
            throttle.lock().accepted(self.clock.now());
        }
        Ok((response, later))
    }

    async fn judge_body<R>(&self, response: &mut Response<PeekedBody<R>>, wall: Time) -> Option<Later>
    where
        R: Body<Data = Bytes> + Unpin,
    {
        // A body that breaks off, or takes longer than a call may, names nothing.
        let peek = response.body_mut().peek();
        let seen = tokio::time::timeout(Duration::from(self.policy.deadline), peek).await.ok()?.ok()?;
        Later::read_body(response.status(), response.headers(), &seen, wall)
    }
}

impl fmt::Debug for RetryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("policy", &self.0.policy).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for RetryService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<E: fmt::Display> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RetryError::Throttled => f.write_str("the API refuses most calls; this one was not sent"),
            RetryError::Service(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RetryError::Throttled => None,
            RetryError::Service(error) => Some(error),
        }
    }
}
