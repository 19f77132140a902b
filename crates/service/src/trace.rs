//! W3C Trace Context: the trace that a request belongs to, from the transport that read it to the decision.
//!
//! A transport reads `traceparent` once ([`Service::trace`](crate::Service::trace)) and sets the context while it asks
//! ([`during`], [`Traced`]); the observer of the engine, which is called on the same thread, finds it there. So no call of
//! the service has a parameter for it, and nothing is read, set or allocated while tracing is off.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tollgate_core::{Clock, Request, Time};
use tollgate_engine::{Decision, Verdict, random};
use tollgate_telemetry::{DecisionSpan, SpanQueue};

thread_local! { static CURRENT: Cell<Option<TraceContext>> = const { Cell::new(None) }; }

/// The field `traceparent`, as a caller sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace; never zero.
    pub trace: u128,
    /// The span of the caller; never zero.
    pub span: u64,
    /// Whether the caller records it.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Reads version, trace, span and flags; later versions may have more behind them. `None` for anything else: a value
    /// that cannot be read belongs to no trace.
    pub fn parse(text: &[u8]) -> Option<TraceParent> {
        let parts: Vec<&[u8]> = text.splitn(5, |byte| *byte == b'-').collect();
        let [version, trace, span, flags, rest @ ..] = parts.as_slice() else { return None };
        if *version == b"ff" || (*version == b"00" && !rest.is_empty()) {
            return None;
        }
        hex(version, 2)?;
        let trace = hex(trace, 32).filter(|trace| *trace != 0)?;
        let span = u64::try_from(hex(span, 16)?).ok().filter(|span| *span != 0)?;
        Some(TraceParent { trace, span, is_sampled: hex(flags, 2)? & 1 == 1 })
    }
}

/// So many lower-case hexadecimal digits.
fn hex(text: &[u8], length: usize) -> Option<u128> {
    let is_hex = text.len() == length && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u128::from_str_radix(str::from_utf8(text).ok().filter(|_| is_hex)?, 16).ok()
}

/// The trace of one request here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    /// The span of the caller; zero for a trace that begins here.
    parent: u64,
    /// That of the first decision of this request.
    span: u64,
    is_taken: bool,
    is_sampled: bool,
    started: Time,
}

impl TraceContext {
    /// `traceparent` for what is called on behalf of the request: its parent is the decision.
    pub fn onward(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Runs `ask` within a context.
pub fn during<T>(context: Option<TraceContext>, ask: impl FnOnce() -> T) -> T {
    if context.is_none() {
        return ask();
    }
    let _end = ContextEnd;
    CURRENT.set(context);
    ask()
}

/// Takes the context off the thread, also after a panic: the next request has another.
struct ContextEnd;

impl Drop for ContextEnd {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// A future that is polled within a context.
#[derive(Debug)]
pub struct Traced<F> {
    context: Option<TraceContext>,
    inner: Pin<Box<F>>,
}

impl<F: Future> Traced<F> {
    /// The future, in this context.
    pub fn new(context: TraceContext, inner: F) -> Traced<F> {
        Traced { context: Some(context), inner: Box::pin(inner) }
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _end = ContextEnd;
        CURRENT.set(self.context);
        let polled = self.inner.as_mut().poll(cx);
        self.context = CURRENT.take();
        polled
    }
}

/// Samples decisions, and puts their spans into a queue.
pub struct DecisionTracer {
    queue: Arc<SpanQueue>,
    /// Of a hundred traces that begin here, how many are recorded.
    percent: u64,
    clock: Arc<dyn Clock>,
}

impl DecisionTracer {
    /// A tracer; requests of a trace are recorded if their caller records them, others by chance.
    pub fn new(queue: Arc<SpanQueue>, percent: usize, clock: Arc<dyn Clock>) -> DecisionTracer {
        DecisionTracer { queue, percent: percent as u64, clock }
    }

    /// The context of a request with these values of `traceparent`; two of them are none.
    pub fn context<'a>(&self, mut sent: impl Iterator<Item = &'a [u8]>) -> TraceContext {
        let one = sent.next().filter(|_| sent.next().is_none());
        let (span, is_taken, started) = (random::fast() | 1, false, self.clock.wall());
        match one.and_then(TraceParent::parse) {
            Some(TraceParent { trace, span: parent, is_sampled }) => {
                TraceContext { trace, parent, span, is_taken, is_sampled, started }
            }
            None => {
                let trace = u128::from(random::fast()) << 64 | u128::from(random::fast() | 1);
                let is_sampled = random::fast() % 100 < self.percent;
                TraceContext { trace, parent: 0, span, is_taken, is_sampled, started }
            }
        }
    }

    /// Records a decision, if its trace is recorded.
    pub(crate) fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        let context = CURRENT.get().unwrap_or_else(|| self.context(std::iter::empty()));
        if !context.is_sampled {
            return;
        }
        let span = if context.is_taken { random::fast() | 1 } else { context.span };
        if CURRENT.get().is_some() {
            CURRENT.set(Some(TraceContext { is_taken: true, ..context }));
        }
        let namespace = requests.first().map_or("", |request| request.namespace);
        self.queue.push(DecisionSpan {
            trace: context.trace,
            span,
            parent: context.parent,
            start: context.started,
            end: self.clock.wall(),
            namespace: namespace.to_owned(),
            rule: decision.deciding_rule().map(|(rule, _)| rule.name.clone()).unwrap_or_default(),
            mode: decision.decided_by.name(),
            outcome: match decision.verdict {
                Verdict::Allow => "allow",
                Verdict::Deny => "deny",
                Verdict::Invalid(_) => "invalid",
            },
            generation: decision.generation(),
        });
    }
}

impl fmt::Debug for DecisionTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionTracer").field("percent", &self.percent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::ManualClock;

    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_what_the_specification_has_is_a_parent() {
        let parent = TraceParent::parse(GIVEN.as_bytes()).unwrap();
        assert_eq!(
            (parent.trace >> 64, parent.span, parent.is_sampled),
            (0x0af7_6519_16cd_43dd, 0xb7ad_6b71_6920_3331, true)
        );
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-what-the-future-brings";
        assert!(TraceParent::parse(later.as_bytes()).is_some_and(|parent| !parent.is_sampled));
        for bad in [
            "",
            "-",
            "nonsense",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
        ] {
            assert_eq!(TraceParent::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(TraceParent::parse(&[0xff; 55]), None);
    }

    #[test]
    fn a_context_is_one_traces_and_goes_on() {
        let tracer = DecisionTracer::new(Arc::default(), 0, Arc::new(ManualClock::at(Time::from_secs(1))));
        let context = tracer.context([GIVEN.as_bytes()].into_iter());
        assert!(context.is_sampled && context.onward().starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
        assert!(!context.onward().contains("b7ad6b7169203331"), "the decision is the parent of what follows");
        assert!(TraceParent::parse(context.onward().as_bytes()).is_some());
        let twice = tracer.context([GIVEN.as_bytes(), GIVEN.as_bytes()].into_iter());
        assert!(twice.parent == 0 && !twice.is_sampled && twice.trace != context.trace);
    }
}
