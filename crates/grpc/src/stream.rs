//! Many checks on one stream: decided as they come, answered in their order.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::time::Instant;
use tollgate_proto::v1::{CheckRequest, Checked, StreamChecksRequest, StreamChecksResponse};
use tonic::{Status, Streaming};

use super::call::{NO_TOKEN, PresentedToken};
use super::convert;
use super::decide::{Decided, decide};
use tollgate_service::Service;
use tollgate_service::check_request::BodyError;
use tollgate_service::data_tokens::TokenScope;

/// Checks of one stream that may wait for the store at the same time; meanwhile no more are read.
const UNDER_WAY_MAX: usize = 64;

/// How often the token of a stream is looked at, while it is used.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The answers of one stream.
pub(super) struct Answers {
    service: Arc<Service>,
    scope: TokenScope,
    /// Looked at again while the stream goes on: tokens are revoked, and expire.
    token: Option<PresentedToken>,
    looked_at: Instant,
    questions: Streaming<StreamChecksRequest>,
    under_way: VecDeque<(u64, StreamAnswer)>,
    /// How the questions ended.
    end: Option<Result<(), Status>>,
}

enum StreamAnswer {
    Ready(Checked),
    Awaited(Pin<Box<dyn Future<Output = Checked> + Send>>),
}

impl Answers {
    pub(super) fn new(
        service: Arc<Service>,
        scope: TokenScope,
        token: Option<PresentedToken>,
        questions: Streaming<StreamChecksRequest>,
    ) -> Answers {
        let looked_at = Instant::now();
        Answers { service, scope, token, looked_at, questions, under_way: VecDeque::new(), end: None }
    }

    /// Whether the caller's token still opens what it did when the stream began.
    fn is_admitted(&mut self) -> bool {
        let (Some(tokens), Some(PresentedToken(token))) = (&self.service.tokens, &self.token) else { return true };
        if self.looked_at.elapsed() < LOOK_EVERY {
            return true;
        }
        self.looked_at = Instant::now();
        let admitted = tokens.authorize(Some(token));
        self.scope = admitted.unwrap_or(TokenScope::NONE);
        admitted.is_some()
    }

    /// Takes in what was asked, as far as there is room.
    fn take_in(&mut self, cx: &mut Context<'_>) {
        while self.end.is_none() && self.under_way.len() < UNDER_WAY_MAX {
            match Pin::new(&mut self.questions).poll_next(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(_))) if !self.is_admitted() => {
                    self.end = Some(Err(Status::unauthenticated(NO_TOKEN)));
                }
                Poll::Ready(Some(Ok(StreamChecksRequest { id, request }))) => {
                    let answer = begin(&self.service, self.scope, request.unwrap_or_default());
                    self.under_way.push_back((id, answer));
                    if matches!(self.under_way.front(), Some((_, StreamAnswer::Ready(_)))) {
                        return; // answered before the next is read: nothing piles up
                    }
                }
                Poll::Ready(Some(Err(status))) => self.end = Some(Err(status)),
                Poll::Ready(None) => self.end = Some(Ok(())),
            }
        }
    }
}

impl Stream for Answers {
    type Item = Result<StreamChecksResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.take_in(cx);
        for (_, answer) in &mut self.under_way {
            if let StreamAnswer::Awaited(awaited) = answer
                && let Poll::Ready(checked) = awaited.as_mut().poll(cx)
            {
                *answer = StreamAnswer::Ready(checked);
            }
        }
        match self.under_way.pop_front() {
            Some((id, StreamAnswer::Ready(checked))) => {
                Poll::Ready(Some(Ok(StreamChecksResponse { id, checked: Some(checked) })))
            }
            Some(waiting) => {
                self.under_way.push_front(waiting);
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

/// Decides a question, at once where nobody has to be waited for.
fn begin(service: &Arc<Service>, scope: TokenScope, request: CheckRequest) -> StreamAnswer {
    let is_other = || convert::check_request(&request).is_ok_and(|check| !service.may_ask(scope, check.namespace()));
    if !scope.is_for_all() && is_other() {
        let detail = "is not one of those that this token is for".to_owned();
        return StreamAnswer::Ready(convert::faulty(BodyError {
            code: "other_namespace",
            field: "namespace".to_owned(),
            detail,
        }));
    }
    match decide(service, request, convert::checked) {
        Ok(Decided::Now(checked)) => StreamAnswer::Ready(checked),
        Ok(Decided::Later(later)) => {
            let service = service.clone();
            StreamAnswer::Awaited(Box::pin(async move {
                let _permit = service.batch_permit().await; // each check that waits takes some kilobytes
                later.decide(&service, convert::checked).await
            }))
        }
        Err(fault) => StreamAnswer::Ready(convert::faulty(fault)),
    }
}
