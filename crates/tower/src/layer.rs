//! The layer and its settings.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use tollgate_engine::Engine;
use tollgate_render::RenderConfig;
use tollgate_rules::address::Cidr;
use tollgate_store::Store;
use tower_layer::Layer;
use tower_service::Service;

use crate::backend::LimitBackend;
use crate::body::LimitedBody;
use crate::caller::CallerAttributes;
use crate::embedded::EmbeddedBackend;
use crate::event::LimitEvent;
use crate::future::LimitFuture;
use crate::shared::{LayerShared, LimitAmounts};

/// Limits the requests of the service below it. Cheap to clone: routes may have clones with other settings over one engine
/// or client.
#[derive(Clone)]
pub struct TollgateLayer(Arc<LayerShared>);

impl TollgateLayer {
    /// Limits by an engine in this process.
    pub fn embedded<S: Store + 'static>(engine: impl Into<Arc<Engine<S>>>) -> TollgateLayer {
        TollgateLayer::embedded_with(engine, RenderConfig::default())
    }

    /// The same, with other header fields, jitter or statuses.
    pub fn embedded_with<S: Store + 'static>(engine: impl Into<Arc<Engine<S>>>, render: RenderConfig) -> TollgateLayer {
        TollgateLayer::over(EmbeddedBackend { engine: engine.into(), render })
    }

    /// Limits by a server. Where it gives no decision, the policy of the client decides.
    #[cfg(feature = "client")]
    pub fn remote(client: tollgate_client::Client) -> TollgateLayer {
        TollgateLayer::over(crate::remote::RemoteBackend { client })
    }

    /// Limits by something else that decides.
    pub fn over(backend: impl LimitBackend) -> TollgateLayer {
        TollgateLayer(Arc::new(LayerShared::new(Arc::new(backend))))
    }

    /// What the application has verified about a caller, beside its address.
    pub fn identify<F>(self, identify: F) -> TollgateLayer
    where
        F: for<'a> Fn(&'a Parts) -> CallerAttributes<'a> + Send + Sync + 'static,
    {
        self.with(|shared| shared.identify = Some(Arc::new(identify)))
    }

    /// Networks of proxies that are trusted: `X-Forwarded-For` is walked from the right until an entry that none of them
    /// is. Without any, the field is not read.
    pub fn trusted_proxies(self, networks: impl IntoIterator<Item = Cidr>) -> TollgateLayer {
        let networks = networks.into_iter().collect();
        self.with(|shared| shared.trust.proxies = networks)
    }

    /// The price of a request. Default 1; 0 only looks.
    pub fn cost(self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> TollgateLayer {
        self.with(|shared| shared.cost = Some(Arc::new(cost)))
    }

    /// Amounts of other meters that are reserved before the handler runs. It settles what it used with
    /// [`UsedAmounts`](crate::UsedAmounts) in its response; what it does not name keeps its estimate, unless
    /// [`settle`](TollgateLayer::settle) says otherwise.
    pub fn costs<F>(self, costs: F) -> TollgateLayer
    where
        F: Fn(&Parts) -> Vec<(Cow<'static, str>, u64)> + Send + Sync + 'static,
    {
        self.with(|shared| shared.costs = Some(Arc::new(costs)))
    }

    /// What a response used, from its head: by meter. Also asked for responses that are errors; an application that gives no
    /// response at all keeps the estimates.
    pub fn settle<F>(self, settle: F) -> TollgateLayer
    where
        F: Fn(&http::response::Parts) -> LimitAmounts + Send + Sync + 'static,
    {
        self.with(|shared| shared.settle = Some(Arc::new(settle)))
    }

    /// Requests that are not limited.
    pub fn skip(self, skip: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> TollgateLayer {
        self.with(|shared| shared.skip = Some(Arc::new(skip)))
    }

    /// Decides and reports, and lets everything pass. Malformed paths are still refused.
    pub fn shadow(self) -> TollgateLayer {
        self.with(|shared| shared.shadow = true)
    }

    /// Is called for every decision: for metrics and logs. Must be fast, and never block.
    pub fn on_decision(self, hook: impl Fn(&LimitEvent<'_>) + Send + Sync + 'static) -> TollgateLayer {
        self.with(|shared| shared.hook = Some(Arc::new(hook)))
    }

    /// Changes the response to a refused request. Its fields are there already.
    pub fn on_denied<F>(self, respond: F) -> TollgateLayer
    where
        F: Fn(Response<Full<Bytes>>) -> Response<Full<Bytes>> + Send + Sync + 'static,
    {
        self.with(|shared| shared.on_denied = Some(Arc::new(respond)))
    }

    /// Asks for the matched route (`GET /api/orders/{id}`) where axum knows it: rules then name routes, not paths. A layer
    /// knows the route if it is that of a route or of the router that has it, not of one around it.
    pub fn by_route(self) -> TollgateLayer {
        self.with(|shared| shared.endpoints.by_route = true)
    }

    /// The router takes letters of a path in any case for the same: paths are asked for in lower case, and rules are
    /// written in it.
    pub fn case_insensitive_paths(self) -> TollgateLayer {
        self.with(|shared| shared.endpoints.case_insensitive = true)
    }

    fn with(self, change: impl FnOnce(&mut LayerShared)) -> TollgateLayer {
        let mut shared = self.0;
        change(Arc::make_mut(&mut shared));
        TollgateLayer(shared)
    }
}

impl<S> Layer<S> for TollgateLayer {
    type Service = LimitedService<S>;

    fn layer(&self, inner: S) -> LimitedService<S> {
        LimitedService { inner, shared: self.0.clone() }
    }
}

/// A service whose requests are limited.
#[derive(Clone)]
pub struct LimitedService<S> {
    inner: S,
    shared: Arc<LayerShared>,
}

impl<S, B, R> Service<Request<B>> for LimitedService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
{
    type Response = Response<LimitedBody<R>>;
    type Error = S::Error;
    type Future = LimitFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> LimitFuture<S, B> {
        // The clone that is ready is used, another one takes its place.
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        LimitFuture::start(&self.shared, ready, request)
    }
}

impl fmt::Debug for TollgateLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TollgateLayer").field("shadow", &self.0.shadow).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for LimitedService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
