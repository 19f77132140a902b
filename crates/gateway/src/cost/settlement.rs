//! What is settled for a request: read from its response as it passes, and settled when it is dropped, which is how every
//! request ends.

use std::sync::Arc;

use http::{HeaderMap, header};
use tokio::time::Instant;
use tollgate_cost::llm::{LlmRequest, OnExhausted, OutputBudget, TokenUsage, UsageReader};
use tollgate_cost::{CostSpec, MeterAmounts, ResponseCost};
use tollgate_service::HeldRequest;

use crate::route_figures::RouteFigures;
use crate::upstream::BodyProgress;

/// The amounts of a request that are settled when its response ends, however it ends.
pub(crate) struct CostSettlement {
    spec: Arc<CostSpec>,
    response: ResponseCost,
    call: Option<LlmRequest>,
    /// What is reserved; `None` if the request passed although a limit refused it.
    held: Option<HeldRequest>,
    /// Whether the bytes of the request's body are known only when they have passed.
    counts_request: bool,
    request: BodyProgress,
    progress: ExchangeProgress,
    usage: Option<TokenUsage>,
    figures: Arc<RouteFigures>,
}

/// How far the exchange with the server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExchangeProgress {
    Unsent,
    /// Sent at this time.
    Sent(Instant),
    /// Sent at this time, and a head has come.
    Answered(Instant),
}

/// A call of a language model whose response is read.
pub(crate) struct MeteredCall {
    pub(super) on_exhausted: OnExhausted,
    pub(super) reader: UsageReader,
    /// What is reserved of a stream, which can be extended; `None` for other responses.
    pub(super) budget: Option<OutputBudget>,
}

impl CostSettlement {
    pub(super) fn new(
        spec: Arc<CostSpec>,
        response: ResponseCost,
        call: Option<LlmRequest>,
        held: Option<HeldRequest>,
        counts_request: bool,
        figures: Arc<RouteFigures>,
    ) -> CostSettlement {
        let (request, progress) = (BodyProgress::default(), ExchangeProgress::Unsent);
        CostSettlement { spec, response, call, held, counts_request, request, progress, usage: None, figures }
    }

    /// The request is on its way to a server.
    pub(crate) fn sent(&mut self, request: BodyProgress) {
        (self.request, self.progress) = (request, ExchangeProgress::Sent(Instant::now()));
    }

    /// No server was asked: everything is given back, also what the request itself costs.
    pub(crate) fn cancel(mut self) {
        if let Some(held) = self.held.take() {
            held.cancel();
        }
    }

    /// No server was given anything of the request.
    pub(crate) fn unsent(&mut self) {
        self.progress = ExchangeProgress::Unsent;
    }

    /// The head of the response.
    pub(crate) fn head(&mut self, headers: &HeaderMap) {
        if let ExchangeProgress::Sent(at) = self.progress {
            self.progress = ExchangeProgress::Answered(at);
        }
        self.response.head(headers);
    }

    /// A chunk of the response.
    pub(crate) fn chunk(&mut self, chunk: &[u8]) {
        self.response.chunk(chunk);
    }

    /// How the response of a language model is read; `None` if the request is no call.
    pub(crate) fn metered_call(&self, status: u16, headers: &HeaderMap) -> Option<MeteredCall> {
        let (spec, call) = (self.spec.llm.as_ref()?, self.call.as_ref()?);
        let is_coded = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
        let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = if is_coded { Some("application/octet-stream") } else { media };
        let is_events =
            media.is_some_and(|media| media.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
        let is_stream = (call.stream || is_events) && (200..300).contains(&status);
        let reader = UsageReader::new(call, spec, status, media);
        let budget = is_stream.then(|| OutputBudget::new(call.output_reservation(spec), spec.step));
        Some(MeteredCall { on_exhausted: spec.on_exhausted, reader, budget })
    }

    /// Tokens so far.
    pub(super) fn used(&mut self, usage: TokenUsage) {
        self.usage = Some(usage);
    }

    /// Reserves further output tokens; `None` if there is nothing to reserve them from.
    pub(super) fn extend(&self, tokens: u64) -> Option<impl Future<Output = bool> + Send + use<>> {
        let (held, llm) = (self.held.as_ref()?, self.spec.llm.as_ref()?);
        let amounts = llm.meters.amounts(&TokenUsage { output: tokens, ..TokenUsage::default() });
        let amounts = named(&amounts).filter(|(_, amount)| *amount > 0).collect::<Vec<_>>();
        (!amounts.is_empty()).then(|| held.extend(amounts))
    }

    /// The request ends before its turn in a queue, and gives its place back.
    pub(crate) fn leave(mut self) {
        if let Some(held) = self.held.take() {
            held.leave(named(&self.amounts()).collect());
        }
    }

    /// Every meter with what was counted; those that are not here keep what was reserved.
    fn amounts(&mut self) -> MeterAmounts {
        match self.progress {
            ExchangeProgress::Unsent => {
                self.response.unsent();
                self.usage = Some(TokenUsage::default());
            }
            ExchangeProgress::Sent(_) => {}
            ExchangeProgress::Answered(at) => self.response.end(at.elapsed()),
        }
        if self.counts_request {
            self.response.request_bytes(self.request.bytes());
        }
        let mut amounts = self.response.amounts();
        if let (Some(llm), Some(_), Some(usage)) = (&self.spec.llm, &self.call, &self.usage) {
            amounts.extend(&llm.meters.amounts(usage));
        }
        amounts
    }
}

impl Drop for CostSettlement {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let amounts = self.amounts();
            amounts.iter().for_each(|(meter, amount)| self.figures.settled(meter, amount));
            held.settle(named(&amounts).collect());
        }
    }
}

fn named(amounts: &MeterAmounts) -> impl Iterator<Item = (String, u64)> {
    amounts.iter().map(|(meter, amount)| (meter.to_owned(), amount))
}
