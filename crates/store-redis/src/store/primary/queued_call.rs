//! Calls to a primary, as they wait in the queue.

use std::sync::Arc;

use tollgate_core::Receipt;
use tollgate_resp::RespValue;
use tollgate_store::StoreError;

use crate::client::pending::{PendingCall, Retry};
use crate::client::queue::Queued;
use crate::store::script::{ScriptAnswer, ScriptRequest};

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
