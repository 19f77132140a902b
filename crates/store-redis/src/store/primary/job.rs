//! What is asked of a primary, as it waits in the queue.

use std::sync::Arc;

use tollgate_core::Receipt;
use tollgate_resp::RespValue;
use tollgate_store::StoreError;

use crate::client::pending::{Setback, Ticket};
use crate::client::queue::Queued;
use crate::store::script::{Answer, Question};

/// A question and its answer.
pub(super) type Asked = Ticket<Question, Answer>;
/// Receipts, and how many of them gave something back.
pub(super) type Returned = Ticket<Vec<Receipt>, usize>;
/// Plain commands and their replies.
pub(super) type Commanded = Ticket<Commands, Vec<RespValue>>;

/// Commands as bytes, and how many replies they have.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) bytes: Vec<u8>,
    pub(super) replies: usize,
}

/// One piece of work.
#[derive(Debug)]
pub(super) enum Job {
    Ask(Arc<Asked>),
    GiveBack(Arc<Returned>),
    Command(Arc<Commanded>),
}

impl Queued for Job {
    fn is_over(&self) -> bool {
        match self {
            Job::Ask(ticket) => ticket.is_over(),
            Job::GiveBack(ticket) => ticket.is_over(),
            Job::Command(ticket) => ticket.is_over(),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Job::Ask(ticket) => ticket.answer(Err(Setback::Failed(error.clone()))),
            Job::GiveBack(ticket) => ticket.answer(Err(Setback::Failed(error.clone()))),
            Job::Command(ticket) => ticket.answer(Err(Setback::Failed(error.clone()))),
        }
    }
}
