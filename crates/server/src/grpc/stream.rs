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

use super::call::{NO_TOKEN, Presented};
use super::convert;
use super::decide::{Decided, decide};
use crate::api::Shared;
use crate::api::read::Fault;
use crate::api::tokens::Pass;

/// Checks of one stream that may wait for the store at the same time; meanwhile no more are read.
const UNDER_WAY_MAX: usize = 64;

/// How often the token of a stream is looked at, while it is used.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The answers of one stream.
pub(super) struct Answers {
    shared: Arc<Shared>,
    pass: Pass,
    /// Looked at again while the stream goes on: tokens are revoked, and expire.
    token: Option<Presented>,
    looked_at: Instant,
    questions: Streaming<StreamChecksRequest>,
    under_way: VecDeque<(u64, Answer)>,
    /// How the questions ended.
    end: Option<Result<(), Status>>,
}

enum Answer {
    Ready(Checked),
    Awaited(Pin<Box<dyn Future<Output = Checked> + Send>>),
}

impl Answers {
    pub(super) fn new(
        shared: Arc<Shared>,
        pass: Pass,
        token: Option<Presented>,
        questions: Streaming<StreamChecksRequest>,
    ) -> Answers {
        let looked_at = Instant::now();
        Answers { shared, pass, token, looked_at, questions, under_way: VecDeque::new(), end: None }
    }

    /// Whether the caller's token still opens what it did when the stream began.
    fn is_admitted(&mut self) -> bool {
        let (Some(tokens), Some(Presented(token))) = (&self.shared.tokens, &self.token) else { return true };
        if self.looked_at.elapsed() < LOOK_EVERY {
            return true;
        }
        self.looked_at = Instant::now();
        let admitted = tokens.admit(Some(token));
        self.pass = admitted.unwrap_or(Pass::NONE);
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
                    let answer = begin(&self.shared, self.pass, request.unwrap_or_default());
                    self.under_way.push_back((id, answer));
                    if matches!(self.under_way.front(), Some((_, Answer::Ready(_)))) {
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
            if let Answer::Awaited(awaited) = answer
                && let Poll::Ready(checked) = awaited.as_mut().poll(cx)
            {
                *answer = Answer::Ready(checked);
            }
        }
        match self.under_way.pop_front() {
            Some((id, Answer::Ready(checked))) => {
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
fn begin(shared: &Arc<Shared>, pass: Pass, request: CheckRequest) -> Answer {
    let is_other = || convert::asked(&request).is_ok_and(|asked| !shared.may_ask(pass, asked.namespace()));
    if !pass.is_for_all() && is_other() {
        let detail = "is not one of those that this token is for".to_owned();
        return Answer::Ready(convert::faulty(Fault {
            code: "other_namespace",
            field: "namespace".to_owned(),
            detail,
        }));
    }
    match decide(shared, request, convert::checked) {
        Ok(Decided::Now(checked)) => Answer::Ready(checked),
        Ok(Decided::Later(later)) => {
            let shared = shared.clone();
            Answer::Awaited(Box::pin(async move {
                let _room = shared.in_batches.acquire().await; // one for all that wait: each takes some kilobytes
                later.decide(&shared, convert::checked).await
            }))
        }
        Err(fault) => Answer::Ready(convert::faulty(fault)),
    }
}
