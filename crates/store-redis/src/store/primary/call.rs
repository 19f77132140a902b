//! One call of a flush: what it says, who waits for it, and what its reply means to them.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tollgate_core::{Span, Time};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::{StoreError, StoreErrorKind};

use super::job::{Asked, Commanded, Commands, Job, Returned};
use crate::client::clock::Estimate;
use crate::client::failure::{Redirect, Refusal, Treatment, error, meaning_of};
use crate::client::pending::{Manner, Setback, Ticket};
use crate::store::script::{self, Batch, Question, Reply, ReturnReply, Returns, Script};

/// Questions that one call decides: the server does nothing else meanwhile.
const QUESTIONS_MAX: usize = 64;
/// Questions whose callers leave so much later do not join a call: it may charge nothing after the first has left, and
/// must not come too late for all because of one.
const SPREAD_MAX: Span = Span::from_millis(5);

/// One call.
pub(super) enum Call {
    /// Questions decided together.
    Batch { batch: Batch, tickets: SmallVec<[Arc<Asked>; 4]>, deadline: Time },
    /// Receipts given back.
    Returns { returns: Returns, ticket: Arc<Returned> },
    /// Plain commands.
    Commands { commands: Commands, ticket: Arc<Commanded> },
}

/// What became of a call after its reply.
pub(super) enum Settled {
    /// It was done, at this time of the store if it told. So many verdicts were others than ours would have been, and so
    /// many values were no buckets.
    Done { time: Option<Time>, disagreed: u64, foreign: u64 },
    /// It came too late and did nothing.
    Expired(Time),
    /// The server said no.
    Refused(Refusal),
    /// The server does not know the script: the call must be sent with its text.
    Unknown(Call),
    /// The reply is none to this call, so nothing on this connection can be trusted.
    OutOfStep(&'static str),
}

/// Makes calls of jobs: what may be decided together is.
pub(super) struct Collector<'a> {
    pub(super) clustered: bool,
    pub(super) now: Time,
    pub(super) estimate: &'a Estimate,
}

impl Collector<'_> {
    /// Claims a job, unless its caller has gone, and adds it to the calls.
    pub(super) fn add(&self, job: Job, calls: &mut Vec<Call>) {
        match job {
            Job::Ask(ticket) => {
                if let Some(question) = self.claim(&ticket) {
                    self.place(ticket, question, calls);
                }
            }
            Job::GiveBack(ticket) => {
                if let Some(receipts) = self.claim(&ticket) {
                    let returns = Returns::new(self.by_the_store(ticket.deadline), receipts);
                    calls.push(Call::Returns { returns, ticket });
                }
            }
            Job::Command(ticket) => {
                if let Some(commands) = self.claim(&ticket) {
                    calls.push(Call::Commands { commands, ticket });
                }
            }
        }
    }

    /// What is too late would only be refused over there: its caller is just about to withdraw it.
    fn claim<W, A>(&self, ticket: &Ticket<W, A>) -> Option<W> {
        if ticket.deadline <= self.now { None } else { ticket.claim() }
    }

    fn place(&self, ticket: Arc<Asked>, mut question: Question, calls: &mut Vec<Call>) {
        for call in calls.iter_mut().rev() {
            let Call::Batch { batch, tickets, deadline } = call else { continue };
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
            Ok(()) => calls.push(Call::Batch { batch, deadline: ticket.deadline, tickets: smallvec![ticket] }),
            Err(_) => {
                ticket.answer(Err(Setback::Failed(error(StoreErrorKind::Refused, "no script takes this question"))))
            }
        }
    }

    fn may_join(&self, ticket: &Asked, tickets: &[Arc<Asked>], deadline: Time) -> bool {
        let same_slot = |first: &Arc<Asked>| !self.clustered || first.slot == ticket.slot;
        let joined = |ticket: &Asked| ticket.manner == Manner::Joined;
        let close = ticket.deadline >= deadline && ticket.deadline.since(deadline) <= SPREAD_MAX;
        close && joined(ticket) && tickets.first().is_some_and(|first| joined(first) && same_slot(first))
    }

    fn by_the_store(&self, deadline: Time) -> Time {
        self.estimate.at_least(deadline).unwrap_or(deadline)
    }
}

impl Call {
    /// The script it calls.
    pub(super) fn script(&self) -> Option<Script> {
        match self {
            Call::Batch { batch, .. } => Some(batch.script()),
            Call::Returns { .. } => Some(Script::GiveBack),
            Call::Commands { .. } => None,
        }
    }

    /// Questions in it.
    pub(super) fn questions(&self) -> usize {
        if let Call::Batch { tickets, .. } = self { tickets.len() } else { 0 }
    }

    /// When the last of those who wait leaves.
    pub(super) fn until(&self) -> Time {
        match self {
            Call::Batch { tickets, .. } => tickets.iter().map(|ticket| ticket.deadline).max().unwrap_or(Time::ZERO),
            Call::Returns { ticket, .. } => ticket.deadline,
            Call::Commands { ticket, .. } => ticket.deadline,
        }
    }

    /// How long its reply may be, about.
    pub(super) fn reply_bytes(&self) -> usize {
        if let Call::Batch { batch, .. } = self { batch.reply_bytes() } else { 0 }
    }

    /// Replies it gets.
    pub(super) fn replies(&self) -> usize {
        match self {
            Call::Batch { .. } | Call::Returns { .. } => 1 + usize::from(self.is_asking()),
            Call::Commands { commands, .. } => commands.replies,
        }
    }

    fn is_asking(&self) -> bool {
        match self {
            Call::Batch { tickets, .. } => tickets.first().is_some_and(|first| first.manner == Manner::Asking),
            Call::Returns { ticket, .. } => ticket.manner == Manner::Asking,
            Call::Commands { .. } => false,
        }
    }

    /// Appends it.
    pub(super) fn encode(&self, how: script::Call<'_>, out: &mut Vec<u8>) {
        if self.is_asking() {
            write_request(out, &[b"ASKING"]);
        }
        match self {
            Call::Batch { batch, .. } => batch.encode(how, out),
            Call::Returns { returns, .. } => returns.encode(how, out),
            Call::Commands { commands, .. } => out.extend_from_slice(&commands.bytes),
        }
    }

    /// Tells everybody who waits what the replies mean; `answered` is the host they came from.
    pub(super) fn settle(self, replies: &mut Vec<RespValue>, answered: &str) -> Settled {
        if let Call::Commands { ticket, .. } = self {
            ticket.answer(Ok(std::mem::take(replies)));
            return Settled::Done { time: None, disagreed: 0, foreign: 0 };
        }
        let Some(reply) = replies.pop() else { return self.out_of_step("no reply at all") };
        match Refusal::of(&reply) {
            None => self.decide(&reply),
            Some(refusal) => match refusal.treatment() {
                Treatment::Reload => Settled::Unknown(self),
                _ => {
                    self.refuse(refusal, &reply, answered);
                    Settled::Refused(refusal)
                }
            },
        }
    }

    fn decide(self, reply: &RespValue) -> Settled {
        match self {
            Call::Batch { batch, tickets, deadline } => match batch.decode(reply) {
                Ok(Reply::Answers { now, answers, disagreed, foreign }) if answers.len() == tickets.len() => {
                    tickets.iter().zip(answers).for_each(|(ticket, answer)| ticket.answer(Ok(answer)));
                    Settled::Done { time: Some(now), disagreed, foreign }
                }
                Ok(Reply::Answers { .. }) => {
                    Call::Batch { batch, tickets, deadline }.out_of_step("another number of answers than of questions")
                }
                Ok(Reply::Expired { now }) => {
                    give_back(tickets, batch.into_questions(), Setback::Expired);
                    Settled::Expired(now)
                }
                Err(bad) => Call::Batch { batch, tickets, deadline }.misread(bad),
            },
            Call::Returns { returns, ticket } => match returns.decode(reply) {
                Ok(ReturnReply::Done { now, given, foreign }) => {
                    ticket.answer(Ok(given));
                    Settled::Done { time: Some(now), disagreed: 0, foreign }
                }
                Ok(ReturnReply::Expired { now }) => {
                    ticket.answer(Err(Setback::Expired(returns.into_receipts())));
                    Settled::Expired(now)
                }
                Err(bad) => Call::Returns { returns, ticket }.misread(bad),
            },
            commands @ Call::Commands { .. } => commands.out_of_step("no script was called"),
        }
    }

    fn refuse(self, refusal: Refusal, reply: &RespValue, answered: &str) {
        match refusal.treatment() {
            Treatment::Again => match self {
                Call::Batch { batch, tickets, .. } => give_back(tickets, batch.into_questions(), Setback::TryAgain),
                Call::Returns { returns, ticket } => ticket.answer(Err(Setback::TryAgain(returns.into_receipts()))),
                Call::Commands { .. } => {}
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
            Call::Batch { batch, tickets, .. } => {
                give_back(tickets, batch.into_questions(), |question| Setback::Redirected(to.clone(), question));
            }
            Call::Returns { returns, ticket } => {
                ticket.answer(Err(Setback::Redirected(to.clone(), returns.into_receipts())));
            }
            Call::Commands { .. } => {}
        }
    }

    fn misread(self, bad: script::BadReply) -> Settled {
        if !bad.charged_nothing {
            return self.out_of_step(bad.detail);
        }
        match self {
            // One of them is about a bucket that is none. The others must not suffer for it.
            Call::Batch { batch, tickets, .. } if tickets.len() > 1 => {
                give_back(tickets, batch.into_questions(), Setback::Suspect);
            }
            call => call.fail(&error(StoreErrorKind::Refused, bad.detail)),
        }
        Settled::Refused(Refusal::Foreign)
    }

    fn out_of_step(self, what: &'static str) -> Settled {
        self.fail(&error(StoreErrorKind::Indeterminate, what));
        Settled::OutOfStep(what)
    }

    /// Tells everybody who waits that it is over.
    pub(super) fn fail(self, error: &StoreError) {
        match self {
            Call::Batch { tickets, .. } => {
                tickets.iter().for_each(|ticket| ticket.answer(Err(Setback::Failed(error.clone()))));
            }
            Call::Returns { ticket, .. } => ticket.answer(Err(Setback::Failed(error.clone()))),
            Call::Commands { ticket, .. } => ticket.answer(Err(Setback::Failed(error.clone()))),
        }
    }
}

fn give_back(
    tickets: SmallVec<[Arc<Asked>; 4]>,
    questions: Vec<Question>,
    why: impl Fn(Question) -> Setback<Question>,
) {
    tickets.iter().zip(questions).for_each(|(ticket, question)| ticket.answer(Err(why(question))));
}
