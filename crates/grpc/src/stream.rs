//! `StreamChecks`: decides requests as they arrive, responds in their order.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;
use tollgate_proto::v1::{CheckRequest, Checked, StreamChecksRequest, StreamChecksResponse};
use tonic::{Status, Streaming};

use super::convert::{self, no_token};
use super::decide::{CheckOutcome, OwnedPendingCheck, decide};
use tollgate_service::Service;
use tollgate_service::check_request::BodyError;
use tollgate_service::data_tokens::TokenScope;

/// Checks of one stream that may wait for the store at the same time. No more requests are read meanwhile.
const IN_FLIGHT_MAX: usize = 64;

/// How often the token of an active stream is checked again.
const TOKEN_RECHECK_EVERY: Duration = Duration::from_millis(250);

/// The `Authorization` value of a streaming call. A copy: a reference into the head would keep the whole read buffer
/// alive.
#[derive(Clone, Debug)]
pub(super) struct PresentedToken(pub(super) Arc<[u8]>);

/// Response stream of one call.
pub(super) struct CheckStream {
    service: Arc<Service>,
    scope: TokenScope,
    /// Checked again while the stream is open: tokens are revoked, and expire.
    token: Option<PresentedToken>,
    token_checked_at: Instant,
    requests: Streaming<StreamChecksRequest>,
    in_flight: VecDeque<(u64, StreamedCheck)>,
    /// Of all connections together: each waiting check holds some kilobytes.
    permits: PollSemaphore,
    /// How the request stream ended.
    end: Option<Result<(), Status>>,
}

enum StreamedCheck {
    Ready(Checked),
    /// Not decided at once: waits for a permit. The store was not called.
    Queued(OwnedPendingCheck),
    /// Waits for the store, with a permit.
    Waiting(Pin<Box<dyn Future<Output = Checked> + Send>>),
}

impl StreamedCheck {
    /// Calls the store for a queued check.
    fn start(self, service: &Arc<Service>, permit: Option<OwnedSemaphorePermit>) -> StreamedCheck {
        let StreamedCheck::Queued(pending) = self else { return self };
        let service = service.clone();
        StreamedCheck::Waiting(Box::pin(async move {
            let _permit = permit;
            pending.decide(&service, |decision| convert::checked(decision, &service.render)).await
        }))
    }
}

impl CheckStream {
    pub(super) fn new(
        service: Arc<Service>,
        scope: TokenScope,
        token: Option<PresentedToken>,
        requests: Streaming<StreamChecksRequest>,
    ) -> CheckStream {
        let (token_checked_at, in_flight) = (Instant::now(), VecDeque::new());
        let permits = PollSemaphore::new(service.batch_permits());
        CheckStream { service, scope, token, token_checked_at, requests, in_flight, permits, end: None }
    }

    /// Whether the caller's token is still valid; updates the scope.
    fn is_authorized(&mut self) -> bool {
        let (Some(tokens), Some(PresentedToken(token))) = (&self.service.tokens, &self.token) else { return true };
        if self.token_checked_at.elapsed() < TOKEN_RECHECK_EVERY {
            return true;
        }
        self.token_checked_at = Instant::now();
        let authorized = tokens.authorize(Some(token));
        self.scope = authorized.unwrap_or(TokenScope::NONE);
        authorized.is_some()
    }

    /// Reads requests while fewer than the maximum are in flight.
    fn read_requests(&mut self, cx: &mut Context<'_>) {
        while self.end.is_none() && self.in_flight.len() < IN_FLIGHT_MAX {
            match Pin::new(&mut self.requests).poll_next(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(_))) if !self.is_authorized() => {
                    self.end = Some(Err(no_token()));
                }
                Poll::Ready(Some(Ok(StreamChecksRequest { id, request }))) => {
                    let check = start_check(&self.service, self.scope, request.unwrap_or_default());
                    self.in_flight.push_back((id, check));
                    if matches!(self.in_flight.front(), Some((_, StreamedCheck::Ready(_)))) {
                        return; // respond before the next read, so that responses do not accumulate
                    }
                }
                Poll::Ready(Some(Err(status))) => self.end = Some(Err(status)),
                Poll::Ready(None) => self.end = Some(Ok(())),
            }
        }
    }

    /// Calls the store for queued checks as permits become free, and collects the answers.
    fn poll_checks(&mut self, cx: &mut Context<'_>) {
        let mut may_start = true;
        for (_, check) in &mut self.in_flight {
            if may_start && matches!(check, StreamedCheck::Queued(_)) {
                match self.permits.poll_acquire(cx) {
                    Poll::Ready(permit) => {
                        let queued = std::mem::replace(check, StreamedCheck::Ready(Checked::default()));
                        *check = queued.start(&self.service, permit);
                    }
                    Poll::Pending => may_start = false,
                }
            }
            if let StreamedCheck::Waiting(waiting) = check
                && let Poll::Ready(checked) = waiting.as_mut().poll(cx)
            {
                *check = StreamedCheck::Ready(checked);
            }
        }
    }
}

impl Stream for CheckStream {
    type Item = Result<StreamChecksResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.read_requests(cx);
        self.poll_checks(cx);
        match self.in_flight.pop_front() {
            Some((id, StreamedCheck::Ready(checked))) => {
                Poll::Ready(Some(Ok(StreamChecksResponse { id, checked: Some(checked) })))
            }
            Some(waiting) => {
                self.in_flight.push_front(waiting);
                Poll::Pending
            }
            None => match self.end.take() {
                None => Poll::Pending,
                Some(Ok(())) => {
                    self.end = Some(Ok(()));
                    Poll::Ready(None)
                }
                Some(Err(status)) => {
                    self.end = Some(Ok(()));
                    Poll::Ready(Some(Err(status)))
                }
            },
        }
    }
}

/// Starts a check; ready if the store does not have to be awaited.
fn start_check(service: &Arc<Service>, scope: TokenScope, request: CheckRequest) -> StreamedCheck {
    let is_other = || convert::check_request(&request).is_ok_and(|check| !service.may_ask(scope, check.namespace()));
    if !scope.is_for_all() && is_other() {
        let detail = "is not one of those that this token is for".to_owned();
        return StreamedCheck::Ready(convert::faulty(BodyError {
            code: "other_namespace",
            field: "namespace".to_owned(),
            detail,
        }));
    }
    match decide(service, request, |decision| convert::checked(decision, &service.render)) {
        Ok(CheckOutcome::Ready(checked)) => StreamedCheck::Ready(checked),
        Ok(CheckOutcome::Pending(pending)) => StreamedCheck::Queued(pending),
        Err(fault) => StreamedCheck::Ready(convert::faulty(fault)),
    }
}
