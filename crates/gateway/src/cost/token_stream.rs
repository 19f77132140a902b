//! The response of a language model: its text is passed on only once its tokens are reserved. While a reservation is
//! extended, nothing more is read from the server.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tollgate_cost::llm::{OnExhausted, OutputBudget, Passage, StreamPoint, UsageReader};
use tollgate_web::StreamError;

use super::settlement::{CostSettlement, MeteredCall};

/// What callers read where a stream ends with an error.
const SPENT: &str = "The token budget is spent; the response ends here.";

type Extension = Pin<Box<dyn Future<Output = bool> + Send>>;

/// The response of a language model, held to its budget. Dropping it settles what was passed on.
pub(crate) struct TokenStream<B> {
    /// `None` once the server has nothing more to say, or nothing more is wanted.
    body: Option<B>,
    reader: UsageReader,
    /// `None` for responses that cannot be ended early.
    budget: Option<OutputBudget>,
    on_exhausted: OnExhausted,
    /// Read, and not passed on yet: those of one chunk.
    passages: VecDeque<Passage>,
    /// The last that was passed on.
    passed: StreamPoint,
    extension: Option<(u64, Extension)>,
    trailers: Option<Frame<Bytes>>,
    settlement: CostSettlement,
}

impl<B> TokenStream<B>
where
    B: Body<Data = Bytes, Error = StreamError> + Unpin,
{
    /// Reads the response to a call.
    pub(crate) fn new(body: B, call: MeteredCall, settlement: CostSettlement) -> TokenStream<B> {
        let MeteredCall { on_exhausted, reader, budget } = call;
        let mut stream = TokenStream {
            body: Some(body),
            reader,
            budget,
            on_exhausted,
            passages: VecDeque::new(),
            passed: StreamPoint::default(),
            extension: None,
            trailers: None,
            settlement,
        };
        stream.count();
        stream
    }

    /// Whether the length of the body may change on its way.
    pub(crate) fn changes_length(&self) -> bool {
        self.budget.is_some()
    }

    /// The next frame for the caller.
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        loop {
            if let Some((tokens, extension)) = &mut self.extension {
                let granted = ready!(extension.as_mut().poll(cx));
                let tokens = *tokens;
                self.extension = None;
                if !granted {
                    return Poll::Ready(Some(self.exhaust()));
                }
                self.reserved(tokens);
            }
            if let Some(passage) = self.passages.front() {
                let missing = self.budget.as_ref().and_then(|budget| budget.missing(passage.end.output_tokens));
                if let Some(tokens) = missing {
                    match self.settlement.extend(tokens) {
                        Some(extension) => self.extension = Some((tokens, Box::pin(extension))),
                        None => self.reserved(tokens),
                    }
                    continue;
                }
                return Poll::Ready(self.pass_on().map(Ok));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(self.trailers.take().map(Ok));
            };
            let frame = match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => Some(frame),
                Some(Err(error)) => {
                    self.body = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => None,
            };
            self.read(frame);
        }
    }

    fn read(&mut self, frame: Option<Frame<Bytes>>) {
        let mut out = Vec::new();
        match frame.map(Frame::into_data) {
            Some(Ok(data)) => {
                self.settlement.chunk(&data);
                self.reader.push(data, &mut out);
            }
            Some(Err(trailers)) => self.trailers = Some(trailers),
            None => {
                self.body = None;
                self.reader.end(&mut out);
            }
        }
        self.passages.extend(out);
        self.count();
    }

    fn pass_on(&mut self) -> Option<Frame<Bytes>> {
        let passage = self.passages.pop_front()?;
        self.passed = passage.end;
        self.count();
        Some(Frame::data(passage.bytes))
    }

    fn reserved(&mut self, tokens: u64) {
        if let Some(budget) = &mut self.budget {
            budget.extend(tokens);
        }
    }

    /// Ends the stream: in the provider's form, or where that is not possible, as a response that breaks off. The server
    /// is told by the end of its connection.
    fn exhaust(&mut self) -> Result<Frame<Bytes>, StreamError> {
        self.passages.clear();
        let end = self.reader.exhaust(self.on_exhausted, SPENT, &self.passed);
        (self.body, self.trailers) = (None, None);
        match end.is_empty() {
            true => Err(SPENT.into()),
            false => Ok(Frame::data(end)),
        }
    }

    /// Notes what is to be charged if the response ended now.
    fn count(&mut self) {
        let passed = self.budget.is_some().then_some(self.passed.output_tokens);
        self.settlement.used(self.reader.charge(passed));
    }
}
