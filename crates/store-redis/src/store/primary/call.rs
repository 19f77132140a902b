//! Calls to a primary: as they wait in the queue, and as they are sent, batched, and completed for their callers.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tollgate_core::{Receipt, Span, Time};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::{StoreError, StoreErrorKind};

use crate::client::clock::ClockEstimate;
use crate::client::failure::{ErrorCode, Redirect, Treatment, error, meaning_of};
use crate::client::queue::{PendingCall, Queued, Retry, SendMode};
use crate::store::script::{self, Batch, BatchReply, ReturnReply, Returns, Script, ScriptAnswer, ScriptRequest};

/// A request and its answer.
pub(super) type PendingAsk = PendingCall<ScriptRequest, ScriptAnswer>;
/// Receipts, and how many of them were given back.
pub(super) type PendingReturn = PendingCall<Vec<Receipt>, usize>;
/// Plain commands and their replies.
pub(super) type PendingCommands = PendingCall<Commands, Vec<RespValue>>;

/// Encoded commands, and the number of their replies.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) bytes: Vec<u8>,
    pub(super) replies: usize,
}

/// A call in the queue.
#[derive(Debug)]
pub(super) enum QueuedCall {
    Ask(Arc<PendingAsk>),
    GiveBack(Arc<PendingReturn>),
    Command(Arc<PendingCommands>),
}

impl Queued for QueuedCall {
    fn is_over(&self) -> bool {
        match self {
            QueuedCall::Ask(call) => call.is_over(),
            QueuedCall::GiveBack(call) => call.is_over(),
            QueuedCall::Command(call) => call.is_over(),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            QueuedCall::Ask(call) => call.answer(Err(Retry::Failed(error.clone()))),
            QueuedCall::GiveBack(call) => call.answer(Err(Retry::Failed(error.clone()))),
            QueuedCall::Command(call) => call.answer(Err(Retry::Failed(error.clone()))),
        }
    }
}

/// Requests per script call: the server does nothing else meanwhile.
const REQUESTS_MAX: usize = 64;
/// Requests with a deadline this much later do not join a call: the call charges nothing after its earliest deadline,
/// and one short deadline must not expire the requests of all others.
const SPREAD_MAX: Span = Span::from_millis(5);

/// One call.
pub(super) enum PipelinedCall {
    /// Requests decided together.
    Batch { batch: Batch, callers: SmallVec<[Arc<PendingAsk>; 4]>, deadline: Time },
    /// Receipts given back.
    Returns { returns: Returns, caller: Arc<PendingReturn> },
    /// Plain commands.
    Commands { commands: Commands, caller: Arc<PendingCommands> },
}

/// The outcome of a call.
pub(super) enum CallOutcome {
    /// Executed, at this store time if it was reported; with the number of verdicts that differ from the replay, and of
    /// values that were not buckets.
    Done { time: Option<Time>, disagreed: u64, foreign: u64 },
    /// It arrived after its deadline and did nothing.
    Expired(Time),
    /// The server replied with an error.
    Error(ErrorCode),
    /// The server does not know the script: the call must be sent with its text.
    Unknown(PipelinedCall),
    /// The reply does not belong to this call, so nothing on this connection can be trusted.
    OutOfStep(&'static str),
}

/// Builds calls from queued calls, batching requests where possible.
pub(super) struct BatchBuilder<'a> {
    pub(super) clustered: bool,
    pub(super) now: Time,
    pub(super) estimate: &'a ClockEstimate,
}

impl BatchBuilder<'_> {
    /// Claims a queued call, unless its caller has gone, and adds it.
    pub(super) fn add(&self, queued: QueuedCall, calls: &mut Vec<PipelinedCall>) {
        match queued {
            QueuedCall::Ask(caller) => {
                if let Some(request) = self.claim(&caller) {
                    self.batch(caller, request, calls);
                }
            }
            QueuedCall::GiveBack(caller) => {
                if let Some(receipts) = self.claim(&caller) {
                    let returns = Returns::new(self.by_the_store(caller.deadline), receipts);
                    calls.push(PipelinedCall::Returns { returns, caller });
                }
            }
            QueuedCall::Command(caller) => {
                if let Some(commands) = self.claim(&caller) {
                    calls.push(PipelinedCall::Commands { commands, caller });
                }
            }
        }
    }

    /// A call past its deadline would only expire at the store: its caller is about to withdraw it.
    fn claim<W, A>(&self, caller: &PendingCall<W, A>) -> Option<W> {
        if caller.deadline <= self.now { None } else { caller.claim() }
    }

    fn batch(&self, caller: Arc<PendingAsk>, mut request: ScriptRequest, calls: &mut Vec<PipelinedCall>) {
        for call in calls.iter_mut().rev() {
            let PipelinedCall::Batch { batch, callers, deadline } = call else { continue };
            if callers.len() >= REQUESTS_MAX || !self.may_join(&caller, callers, *deadline) {
                continue;
            }
            match batch.try_push(request) {
                Ok(()) => return callers.push(caller),
                Err(returned) => request = returned,
            }
        }
        let about = self.estimate.about(self.now).unwrap_or(self.now);
        let mut batch = Batch::new(self.by_the_store(caller.deadline), about);
        match batch.try_push(request) {
            Ok(()) => calls.push(PipelinedCall::Batch { batch, deadline: caller.deadline, callers: smallvec![caller] }),
            Err(_) => {
                caller.answer(Err(Retry::Failed(error(StoreErrorKind::Refused, "no script accepts this request"))))
            }
        }
    }

    fn may_join(&self, caller: &PendingAsk, callers: &[Arc<PendingAsk>], deadline: Time) -> bool {
        let same_slot = |first: &Arc<PendingAsk>| !self.clustered || first.slot == caller.slot;
        let joined = |caller: &PendingAsk| caller.mode == SendMode::Joined;
        let close = caller.deadline >= deadline && caller.deadline.since(deadline) <= SPREAD_MAX;
        close && joined(caller) && callers.first().is_some_and(|first| joined(first) && same_slot(first))
    }

    fn by_the_store(&self, deadline: Time) -> Time {
        self.estimate.at_least(deadline).unwrap_or(deadline)
    }
}

impl PipelinedCall {
    /// The script that it calls.
    pub(super) fn script(&self) -> Option<Script> {
        match self {
            PipelinedCall::Batch { batch, .. } => Some(batch.script()),
            PipelinedCall::Returns { .. } => Some(Script::GiveBack),
            PipelinedCall::Commands { .. } => None,
        }
    }

    /// Number of requests in it.
    pub(super) fn requests(&self) -> usize {
        if let PipelinedCall::Batch { callers, .. } = self { callers.len() } else { 0 }
    }

    /// When its last caller stops waiting.
    pub(super) fn until(&self) -> Time {
        match self {
            PipelinedCall::Batch { callers, .. } => {
                callers.iter().map(|caller| caller.deadline).max().unwrap_or(Time::ZERO)
            }
            PipelinedCall::Returns { caller, .. } => caller.deadline,
            PipelinedCall::Commands { caller, .. } => caller.deadline,
        }
    }

    /// Approximate size of its reply.
    pub(super) fn reply_bytes(&self) -> usize {
        if let PipelinedCall::Batch { batch, .. } = self { batch.reply_bytes() } else { 0 }
    }

    /// Number of its replies.
    pub(super) fn replies(&self) -> usize {
        match self {
            PipelinedCall::Batch { .. } | PipelinedCall::Returns { .. } => 1 + usize::from(self.is_asking()),
            PipelinedCall::Commands { commands, .. } => commands.replies,
        }
    }

    fn is_asking(&self) -> bool {
        match self {
            PipelinedCall::Batch { callers, .. } => callers.first().is_some_and(|first| first.mode == SendMode::Asking),
            PipelinedCall::Returns { caller, .. } => caller.mode == SendMode::Asking,
            PipelinedCall::Commands { .. } => false,
        }
    }

    /// Appends the encoded call.
    pub(super) fn encode(&self, how: script::ScriptCall<'_>, out: &mut Vec<u8>) {
        if self.is_asking() {
            write_request(out, &[b"ASKING"]);
        }
        match self {
            PipelinedCall::Batch { batch, .. } => batch.encode(how, out),
            PipelinedCall::Returns { returns, .. } => returns.encode(how, out),
            PipelinedCall::Commands { commands, .. } => out.extend_from_slice(&commands.bytes),
        }
    }

    /// Completes the call: passes the replies to its callers. `answered` is the host that replied.
    pub(super) fn settle(self, replies: &mut Vec<RespValue>, answered: &str) -> CallOutcome {
        if let PipelinedCall::Commands { caller, .. } = self {
            caller.answer(Ok(std::mem::take(replies)));
            return CallOutcome::Done { time: None, disagreed: 0, foreign: 0 };
        }
        let Some(reply) = replies.pop() else { return self.out_of_step("no reply") };
        match ErrorCode::of(&reply) {
            None => self.decide(&reply),
            Some(code) => match code.treatment() {
                Treatment::Reload => CallOutcome::Unknown(self),
                _ => {
                    self.on_error(code, &reply, answered);
                    CallOutcome::Error(code)
                }
            },
        }
    }

    fn decide(self, reply: &RespValue) -> CallOutcome {
        match self {
            PipelinedCall::Batch { batch, callers, deadline } => match batch.decode(reply) {
                Ok(BatchReply::Answers { now, answers, disagreed, foreign }) if answers.len() == callers.len() => {
                    callers.iter().zip(answers).for_each(|(caller, answer)| caller.answer(Ok(answer)));
                    CallOutcome::Done { time: Some(now), disagreed, foreign }
                }
                Ok(BatchReply::Answers { .. }) => PipelinedCall::Batch { batch, callers, deadline }
                    .out_of_step("number of answers differs from number of requests"),
                Ok(BatchReply::Expired { now }) => {
                    give_back(callers, batch.into_requests(), Retry::Expired);
                    CallOutcome::Expired(now)
                }
                Err(bad) => PipelinedCall::Batch { batch, callers, deadline }.misread(bad),
            },
            PipelinedCall::Returns { returns, caller } => match returns.decode(reply) {
                Ok(ReturnReply::Done { now, given, foreign }) => {
                    caller.answer(Ok(given));
                    CallOutcome::Done { time: Some(now), disagreed: 0, foreign }
                }
                Ok(ReturnReply::Expired { now }) => {
                    caller.answer(Err(Retry::Expired(returns.into_receipts())));
                    CallOutcome::Expired(now)
                }
                Err(bad) => PipelinedCall::Returns { returns, caller }.misread(bad),
            },
            commands @ PipelinedCall::Commands { .. } => commands.out_of_step("no script was called"),
        }
    }

    fn on_error(self, code: ErrorCode, reply: &RespValue, answered: &str) {
        match code.treatment() {
            Treatment::Again => match self {
                PipelinedCall::Batch { batch, callers, .. } => {
                    give_back(callers, batch.into_requests(), Retry::TryAgain)
                }
                PipelinedCall::Returns { returns, caller } => {
                    caller.answer(Err(Retry::TryAgain(returns.into_receipts())))
                }
                PipelinedCall::Commands { .. } => {}
            },
            Treatment::Redirect => match Redirect::of(code, reply, answered) {
                Some(to) => self.redirect(&to),
                None => self.fail(&error(StoreErrorKind::Unavailable, code.meaning())),
            },
            Treatment::GiveUp(kind) => self.fail(&error(kind, code.meaning())),
            Treatment::Reload => self.fail(&error(StoreErrorKind::Unavailable, code.meaning())),
            Treatment::Unknown => self.fail(&error(StoreErrorKind::Indeterminate, meaning_of(code, reply))),
        }
    }

    fn redirect(self, to: &Redirect) {
        match self {
            PipelinedCall::Batch { batch, callers, .. } => {
                give_back(callers, batch.into_requests(), |request| Retry::Redirected(to.clone(), request));
            }
            PipelinedCall::Returns { returns, caller } => {
                caller.answer(Err(Retry::Redirected(to.clone(), returns.into_receipts())));
            }
            PipelinedCall::Commands { .. } => {}
        }
    }

    fn misread(self, bad: script::BadReply) -> CallOutcome {
        if !bad.charged_nothing {
            return self.out_of_step(bad.detail);
        }
        match self {
            // One of the requests touches a value that is not a bucket. Each is sent again alone, so that the others do
            // not fail with it.
            PipelinedCall::Batch { batch, callers, .. } if callers.len() > 1 => {
                give_back(callers, batch.into_requests(), Retry::Suspect);
            }
            call => call.fail(&error(StoreErrorKind::Refused, bad.detail)),
        }
        CallOutcome::Error(ErrorCode::Foreign)
    }

    fn out_of_step(self, what: &'static str) -> CallOutcome {
        self.fail(&error(StoreErrorKind::Indeterminate, what));
        CallOutcome::OutOfStep(what)
    }

    /// Fails the call for all its callers.
    pub(super) fn fail(self, error: &StoreError) {
        match self {
            PipelinedCall::Batch { callers, .. } => {
                callers.iter().for_each(|caller| caller.answer(Err(Retry::Failed(error.clone()))));
            }
            PipelinedCall::Returns { caller, .. } => caller.answer(Err(Retry::Failed(error.clone()))),
            PipelinedCall::Commands { caller, .. } => caller.answer(Err(Retry::Failed(error.clone()))),
        }
    }
}

fn give_back(
    callers: SmallVec<[Arc<PendingAsk>; 4]>,
    requests: Vec<ScriptRequest>,
    why: impl Fn(ScriptRequest) -> Retry<ScriptRequest>,
) {
    callers.iter().zip(requests).for_each(|(caller, request)| caller.answer(Err(why(request))));
}
