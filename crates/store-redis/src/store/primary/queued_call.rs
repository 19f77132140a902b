//! What is asked of a primary, as it waits in the queue.

use std::sync::Arc;

use tollgate_core::Receipt;
use tollgate_resp::RespValue;
use tollgate_store::StoreError;

use crate::client::pending::{PendingCall, Retry};
use crate::client::queue::Queued;
use crate::store::script::{ScriptAnswer, ScriptRequest};

/// A question and its answer.
pub(super) type PendingAsk = PendingCall<ScriptRequest, ScriptAnswer>;
/// Receipts, and how many of them gave something back.
pub(super) type PendingReturn = PendingCall<Vec<Receipt>, usize>;
/// Plain commands and their replies.
pub(super) type PendingCommands = PendingCall<Commands, Vec<RespValue>>;

/// Commands as bytes, and how many replies they have.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) bytes: Vec<u8>,
    pub(super) replies: usize,
}

/// One piece of work.
#[derive(Debug)]
pub(super) enum QueuedCall {
    Ask(Arc<PendingAsk>),
    GiveBack(Arc<PendingReturn>),
    Command(Arc<PendingCommands>),
}

impl Queued for QueuedCall {
    fn is_over(&self) -> bool {
        match self {
            QueuedCall::Ask(ticket) => ticket.is_over(),
            QueuedCall::GiveBack(ticket) => ticket.is_over(),
            QueuedCall::Command(ticket) => ticket.is_over(),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            QueuedCall::Ask(ticket) => ticket.answer(Err(Retry::Failed(error.clone()))),
            QueuedCall::GiveBack(ticket) => ticket.answer(Err(Retry::Failed(error.clone()))),
            QueuedCall::Command(ticket) => ticket.answer(Err(Retry::Failed(error.clone()))),
        }
    }
}
