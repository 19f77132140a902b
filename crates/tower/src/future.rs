//! One request through the layer: asked about, delayed, passed on, or refused.
//!
//! Dropping it at any of these steps is an end like any other: what was granted is held by a guard from the moment the
//! decision is there, and a decision that is still under way charges nothing later than its own deadline.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use tokio::time::Sleep;
use tower_service::Service;

use crate::answer::LimitedResponse;
use crate::backend::{Asked, Limited};
use crate::body::LimitedBody;
use crate::hold::{HoldGuard, UsedAmounts};
use crate::shared::{LayerShared, LayerStep, LimitFacts};

pin_project_lite::pin_project! {
    /// One request through the layer.
    pub struct LimitFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        shared: Arc<LayerShared>,
        #[pin]
        state: LimitState<S, B, S::Future>,
    }
}

pin_project_lite::pin_project! {
    #[project = LimitStateProjection]
    enum LimitState<S, B, F> {
        /// Waits for a decision.
        Asking {
            decision: Pin<Box<dyn Future<Output = Limited> + Send>>,
            held_back: Option<HeldBack<S, B>>,
            facts: LimitFacts,
        },
        /// Waits for its turn in a queue.
        Delayed {
            turn: Pin<Box<Sleep>>,
            held_back: Option<HeldBack<S, B>>,
            response: Option<LimitedResponse>,
            held: Option<HoldGuard>,
        },
        /// Runs in the application.
        Passed { #[pin] call: F, response: Option<LimitedResponse>, held: Option<HoldGuard> },
        /// Is answered here.
        Refused { response: Option<Box<Response<http_body_util::Full<bytes::Bytes>>>> },
    }
}

/// A request that was not passed on yet, and the service that is ready for it.
struct HeldBack<S, B> {
    service: S,
    request: Request<B>,
}

impl<S, B, R> LimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    pub(crate) fn start(shared: &Arc<LayerShared>, service: S, request: Request<B>) -> LimitFuture<S, B> {
        let (parts, body) = request.into_parts();
        let admission = shared.admit(&parts);
        let held_back = HeldBack { service, request: Request::from_parts(parts, body) };
        let state = match admission {
            LayerStep::Skipped => held_back.pass(None, None),
            LayerStep::Refused(response) => LimitState::Refused { response: Some(response) },
            LayerStep::Asked(Asked::Now(limited), facts) => shared.continue_with(limited, held_back, &facts),
            LayerStep::Asked(Asked::Later(decision), facts) => {
                LimitState::Asking { decision, held_back: Some(held_back), facts }
            }
        };
        LimitFuture { shared: shared.clone(), state }
    }
}

impl<S, B> HeldBack<S, B>
where
    S: Service<Request<B>>,
{
    fn pass(mut self, response: Option<LimitedResponse>, held: Option<HoldGuard>) -> LimitState<S, B, S::Future> {
        LimitState::Passed { call: self.service.call(self.request), response, held }
    }
}

impl LayerShared {
    /// What follows a decision.
    fn continue_with<S, B>(
        &self,
        limited: Limited,
        held_back: HeldBack<S, B>,
        facts: &LimitFacts,
    ) -> LimitState<S, B, S::Future>
    where
        S: Service<Request<B>>,
    {
        if !self.judge(&limited, facts) {
            let Limited { response, mode, rule, .. } = limited;
            let response = self.refuse(response, &mode, rule.as_deref(), facts);
            return LimitState::Refused { response: Some(Box::new(response)) };
        }
        let Limited { response, delay, held, .. } = limited;
        let held = held.map(HoldGuard::new);
        let response = Some(response).filter(|_| !self.shadow);
        match delay.is_zero() || self.shadow {
            true => held_back.pass(response, held),
            false => {
                let turn = Box::pin(tokio::time::sleep(delay));
                LimitState::Delayed { turn, held_back: Some(held_back), response, held }
            }
        }
    }

    /// A response of the application, with the fields of the decision and what the request holds.
    fn finish<R>(
        &self,
        response: Response<R>,
        limited: Option<LimitedResponse>,
        held: Option<HoldGuard>,
    ) -> Response<LimitedBody<R>> {
        let (mut parts, body) = response.into_parts();
        if let Some(limited) = limited {
            limited.add_to(&mut parts.headers);
        }
        let mut held = held;
        let used = parts.extensions.remove::<UsedAmounts>();
        if let Some(held) = &mut held {
            let settle = self.settle.as_ref().map(|settle| settle(&parts));
            let own = settle.into_iter().flatten().map(|(meter, amount)| (meter.into_owned(), amount));
            held.used(used.map_or_else(|| own.collect(), |UsedAmounts(amounts)| amounts));
        }
        Response::from_parts(parts, LimitedBody::application(body, held))
    }
}

impl<S, B, R> Future for LimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<LimitedBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                LimitStateProjection::Asking { decision, held_back, facts } => {
                    let limited = ready!(decision.as_mut().poll(context));
                    let Some(held_back) = held_back.take() else { return Poll::Pending };
                    this.shared.continue_with(limited, held_back, facts)
                }
                LimitStateProjection::Delayed { turn, held_back, response, held } => {
                    ready!(turn.as_mut().poll(context));
                    let Some(held_back) = held_back.take() else { return Poll::Pending };
                    held_back.pass(response.take(), held.take())
                }
                LimitStateProjection::Passed { call, response, held } => {
                    let answer = ready!(call.poll(context))?;
                    return Poll::Ready(Ok(this.shared.finish(answer, response.take(), held.take())));
                }
                LimitStateProjection::Refused { response } => {
                    let Some(response) = response.take() else { return Poll::Pending };
                    return Poll::Ready(Ok(response.map(LimitedBody::refusal)));
                }
            };
            this.state.set(next);
        }
    }
}
