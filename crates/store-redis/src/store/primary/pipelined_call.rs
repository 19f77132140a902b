//! One call of a flush: what it says, who waits for it, and what its reply means to them.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tollgate_core::{Span, Time};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::{StoreError, StoreErrorKind};

use super::queued_call::{Commands, PendingAsk, PendingCommands, PendingReturn, QueuedCall};
use crate::client::clock::ClockEstimate;
use crate::client::failure::{Redirect, Refusal, Treatment, error, meaning_of};
use crate::client::pending::{PendingCall, Retry, SendMode};
use crate::store::script::{self, Batch, BatchReply, ReturnReply, Returns, Script, ScriptRequest};

/// Questions that one call decides: the server does nothing else meanwhile.
const QUESTIONS_MAX: usize = 64;
/// Questions whose callers leave so much later do not join a call: it may charge nothing after the first has left, and
/// must not come too late for all because of one.
const SPREAD_MAX: Span = Span::from_millis(5);

/// One call.
pub(super) enum PipelinedCall {
    /// Questions decided together.
    Batch { batch: Batch, tickets: SmallVec<[Arc<PendingAsk>; 4]>, deadline: Time },
    /// Receipts given back.
    Returns { returns: Returns, ticket: Arc<PendingReturn> },
    /// Plain commands.
    Commands { commands: Commands, ticket: Arc<PendingCommands> },
}

/// What became of a call after its reply.
pub(super) enum CallOutcome {
    /// It was done, at this time of the store if it told. So many verdicts were others than ours would have been, and so
    /// many values were no buckets.
    Done { time: Option<Time>, disagreed: u64, foreign: u64 },
    /// It came too late and did nothing.
    Expired(Time),
    /// The server said no.
    Refused(Refusal),
    /// The server does not know the script: the call must be sent with its text.
    Unknown(PipelinedCall),
    /// The reply is none to this call, so nothing on this connection can be trusted.
    OutOfStep(&'static str),
}

/// Makes calls of jobs: what may be decided together is.
pub(super) struct BatchBuilder<'a> {
    pub(super) clustered: bool,
    pub(super) now: Time,
    pub(super) estimate: &'a ClockEstimate,
}

impl BatchBuilder<'_> {
    /// Claims a job, unless its caller has gone, and adds it to the calls.
    pub(super) fn add(&self, job: QueuedCall, calls: &mut Vec<PipelinedCall>) {
        match job {
            QueuedCall::Ask(ticket) => {
                if let Some(question) = self.claim(&ticket) {
                    self.place(ticket, question, calls);
                }
            }
            QueuedCall::GiveBack(ticket) => {
                if let Some(receipts) = self.claim(&ticket) {
                    let returns = Returns::new(self.by_the_store(ticket.deadline), receipts);
                    calls.push(PipelinedCall::Returns { returns, ticket });
                }
            }
            QueuedCall::Command(ticket) => {
                if let Some(commands) = self.claim(&ticket) {
                    calls.push(PipelinedCall::Commands { commands, ticket });
                }
            }
        }
    }

    /// What is too late would only be refused over there: its caller is just about to withdraw it.
    fn claim<W, A>(&self, ticket: &PendingCall<W, A>) -> Option<W> {
        if ticket.deadline <= self.now { None } else { ticket.claim() }
    }

    fn place(&self, ticket: Arc<PendingAsk>, mut question: ScriptRequest, calls: &mut Vec<PipelinedCall>) {
        for call in calls.iter_mut().rev() {
            let PipelinedCall::Batch { batch, tickets, deadline } = call else { continue };
            if tickets.len() >= QUESTIONS_MAX || !self.may_join(&ticket, tickets, *deadline) {
                continue;
            }
            match batch.try_push(question) {
                Ok(()) => return tickets.push(ticket),
                Err(returned) => question = returned,
            }
        }
        let about = self.estimate.about(self.now).unwrap_or(self.now);
        let mut batch = Batch::new(self.by_the_store(ticket.deadline), about);
        match batch.try_push(question) {
            Ok(()) => calls.push(PipelinedCall::Batch { batch, deadline: ticket.deadline, tickets: smallvec![ticket] }),
            Err(_) => {
                ticket.answer(Err(Retry::Failed(error(StoreErrorKind::Refused, "no script takes this question"))))
            }
        }
    }

    fn may_join(&self, ticket: &PendingAsk, tickets: &[Arc<PendingAsk>], deadline: Time) -> bool {
        let same_slot = |first: &Arc<PendingAsk>| !self.clustered || first.slot == ticket.slot;
        let joined = |ticket: &PendingAsk| ticket.mode == SendMode::Joined;
        let close = ticket.deadline >= deadline && ticket.deadline.since(deadline) <= SPREAD_MAX;
        close && joined(ticket) && tickets.first().is_some_and(|first| joined(first) && same_slot(first))
    }

    fn by_the_store(&self, deadline: Time) -> Time {
        self.estimate.at_least(deadline).unwrap_or(deadline)
    }
}

impl PipelinedCall {
    /// The script it calls.
    pub(super) fn script(&self) -> Option<Script> {
        match self {
            PipelinedCall::Batch { batch, .. } => Some(batch.script()),
            PipelinedCall::Returns { .. } => Some(Script::GiveBack),
            PipelinedCall::Commands { .. } => None,
        }
    }

    /// Questions in it.
    pub(super) fn questions(&self) -> usize {
        if let PipelinedCall::Batch { tickets, .. } = self { tickets.len() } else { 0 }
    }

    /// When the last of those who wait leaves.
    pub(super) fn until(&self) -> Time {
        match self {
            PipelinedCall::Batch { tickets, .. } => {
                tickets.iter().map(|ticket| ticket.deadline).max().unwrap_or(Time::ZERO)
            }
            PipelinedCall::Returns { ticket, .. } => ticket.deadline,
            PipelinedCall::Commands { ticket, .. } => ticket.deadline,
        }
    }

    /// How long its reply may be, about.
    pub(super) fn reply_bytes(&self) -> usize {
        if let PipelinedCall::Batch { batch, .. } = self { batch.reply_bytes() } else { 0 }
    }

    /// Replies it gets.
    pub(super) fn replies(&self) -> usize {
        match self {
            PipelinedCall::Batch { .. } | PipelinedCall::Returns { .. } => 1 + usize::from(self.is_asking()),
            PipelinedCall::Commands { commands, .. } => commands.replies,
        }
    }

    fn is_asking(&self) -> bool {
        match self {
            PipelinedCall::Batch { tickets, .. } => tickets.first().is_some_and(|first| first.mode == SendMode::Asking),
            PipelinedCall::Returns { ticket, .. } => ticket.mode == SendMode::Asking,
            PipelinedCall::Commands { .. } => false,
        }
    }

    /// Appends it.
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

    /// Tells drain_all who waits what the replies mean; `answered` is the host they came from.
    pub(super) fn settle(self, replies: &mut Vec<RespValue>, answered: &str) -> CallOutcome {
        if let PipelinedCall::Commands { ticket, .. } = self {
            ticket.answer(Ok(std::mem::take(replies)));
            return CallOutcome::Done { time: None, disagreed: 0, foreign: 0 };
        }
        let Some(reply) = replies.pop() else { return self.out_of_step("no reply at all") };
        match Refusal::of(&reply) {
            None => self.decide(&reply),
            Some(refusal) => match refusal.treatment() {
                Treatment::Reload => CallOutcome::Unknown(self),
                _ => {
                    self.refuse(refusal, &reply, answered);
                    CallOutcome::Refused(refusal)
                }
            },
        }
    }

    fn decide(self, reply: &RespValue) -> CallOutcome {
        match self {
            PipelinedCall::Batch { batch, tickets, deadline } => match batch.decode(reply) {
                Ok(BatchReply::Answers { now, answers, disagreed, foreign }) if answers.len() == tickets.len() => {
                    tickets.iter().zip(answers).for_each(|(ticket, answer)| ticket.answer(Ok(answer)));
                    CallOutcome::Done { time: Some(now), disagreed, foreign }
                }
                Ok(BatchReply::Answers { .. }) => PipelinedCall::Batch { batch, tickets, deadline }
                    .out_of_step("another number of answers than of questions"),
                Ok(BatchReply::Expired { now }) => {
                    give_back(tickets, batch.into_questions(), Retry::Expired);
                    CallOutcome::Expired(now)
                }
                Err(bad) => PipelinedCall::Batch { batch, tickets, deadline }.misread(bad),
            },
            PipelinedCall::Returns { returns, ticket } => match returns.decode(reply) {
                Ok(ReturnReply::Done { now, given, foreign }) => {
                    ticket.answer(Ok(given));
                    CallOutcome::Done { time: Some(now), disagreed: 0, foreign }
                }
                Ok(ReturnReply::Expired { now }) => {
                    ticket.answer(Err(Retry::Expired(returns.into_receipts())));
                    CallOutcome::Expired(now)
                }
                Err(bad) => PipelinedCall::Returns { returns, ticket }.misread(bad),
            },
            commands @ PipelinedCall::Commands { .. } => commands.out_of_step("no script was called"),
        }
    }

    fn refuse(self, refusal: Refusal, reply: &RespValue, answered: &str) {
        match refusal.treatment() {
            Treatment::Again => match self {
                PipelinedCall::Batch { batch, tickets, .. } => {
                    give_back(tickets, batch.into_questions(), Retry::TryAgain)
                }
                PipelinedCall::Returns { returns, ticket } => {
                    ticket.answer(Err(Retry::TryAgain(returns.into_receipts())))
                }
                PipelinedCall::Commands { .. } => {}
            },
            Treatment::Redirect => match Redirect::of(refusal, reply, answered) {
                Some(to) => self.redirect(&to),
                None => self.fail(&error(StoreErrorKind::Unavailable, refusal.meaning())),
            },
            Treatment::GiveUp(kind) => self.fail(&error(kind, refusal.meaning())),
            Treatment::Reload => self.fail(&error(StoreErrorKind::Unavailable, refusal.meaning())),
            Treatment::Unknown => self.fail(&error(StoreErrorKind::Indeterminate, meaning_of(refusal, reply))),
        }
    }

    fn redirect(self, to: &Redirect) {
        match self {
            PipelinedCall::Batch { batch, tickets, .. } => {
                give_back(tickets, batch.into_questions(), |question| Retry::Redirected(to.clone(), question));
            }
            PipelinedCall::Returns { returns, ticket } => {
                ticket.answer(Err(Retry::Redirected(to.clone(), returns.into_receipts())));
            }
            PipelinedCall::Commands { .. } => {}
        }
    }

    fn misread(self, bad: script::BadReply) -> CallOutcome {
        if !bad.charged_nothing {
            return self.out_of_step(bad.detail);
        }
        match self {
            // One of them is about a bucket that is none. The others must not suffer for it.
            PipelinedCall::Batch { batch, tickets, .. } if tickets.len() > 1 => {
                give_back(tickets, batch.into_questions(), Retry::Suspect);
            }
            call => call.fail(&error(StoreErrorKind::Refused, bad.detail)),
        }
        CallOutcome::Refused(Refusal::Foreign)
    }

    fn out_of_step(self, what: &'static str) -> CallOutcome {
        self.fail(&error(StoreErrorKind::Indeterminate, what));
        CallOutcome::OutOfStep(what)
    }

    /// Tells drain_all who waits that it is over.
    pub(super) fn fail(self, error: &StoreError) {
        match self {
            PipelinedCall::Batch { tickets, .. } => {
                tickets.iter().for_each(|ticket| ticket.answer(Err(Retry::Failed(error.clone()))));
            }
            PipelinedCall::Returns { ticket, .. } => ticket.answer(Err(Retry::Failed(error.clone()))),
            PipelinedCall::Commands { ticket, .. } => ticket.answer(Err(Retry::Failed(error.clone()))),
        }
    }
}

fn give_back(
    tickets: SmallVec<[Arc<PendingAsk>; 4]>,
    questions: Vec<ScriptRequest>,
    why: impl Fn(ScriptRequest) -> Retry<ScriptRequest>,
) {
    tickets.iter().zip(questions).for_each(|(ticket, question)| ticket.answer(Err(why(question))));
}
