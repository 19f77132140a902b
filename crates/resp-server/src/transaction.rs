//! `MULTI`, `EXEC`, `DISCARD`: queued commands, executed together or not at all.
//!
//! Commands are queued as raw bytes. `EXEC` puts them back into the input, so that they take the normal path; nothing
//! is charged before. Unlike Redis, commands of other connections may run in between: each command decides one limit,
//! so isolation would change nothing.

use super::command::CommandSpec;
use super::session::{Session, SessionAction};
use tollgate_resp::{Arguments, ReplyWriter};

/// Maximum queued bytes: the size limit of one command.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Commands queued since `MULTI`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// Raw bytes of the commands.
    commands: Vec<u8>,
    count: usize,
    /// A command could not be queued: `EXEC` will fail.
    is_aborted: bool,
}

/// The queue exceeds its maximum size.
pub(super) struct TransactionTooLarge;

impl Transaction {
    /// Queues the raw bytes of a command.
    pub(super) fn queue(&mut self, command: &[u8]) -> Result<(), TransactionTooLarge> {
        if self.is_aborted {
            return Ok(()); // `EXEC` will fail anyway
        }
        if self.commands.len() + command.len() > QUEUED_BYTES_MAX {
            self.abort();
            return Err(TransactionTooLarge);
        }
        self.commands.extend_from_slice(command);
        self.count += 1;
        Ok(())
    }

    /// Drops the queue; `EXEC` will fail.
    pub(super) fn abort(&mut self) {
        *self = Transaction { is_aborted: true, ..Transaction::default() };
    }

    /// Queued bytes.
    pub(super) fn bytes(&self) -> usize {
        self.commands.len()
    }

    /// The number and bytes of the queued commands; `None` if the transaction was aborted.
    pub(super) fn finish(self) -> Option<(usize, Vec<u8>)> {
        (!self.is_aborted).then_some((self.count, self.commands))
    }
}

impl Session<'_> {
    /// Handles a command inside a transaction; `None` if it executes at once. An invalid command is rejected now and
    /// aborts the transaction.
    #[cold]
    pub(super) fn in_transaction(
        &mut self,
        found: Option<&'static CommandSpec>,
        arguments: Arguments<'_>,
        out: &mut Vec<u8>,
    ) -> Option<SessionAction> {
        if self.reject_malformed(found, arguments, &mut ReplyWriter::new(out, self.version)) {
            self.transaction.iter_mut().for_each(Transaction::abort);
            return Some(SessionAction::Done);
        }
        match found.is_some_and(|spec| spec.command.is_never_queued()) {
            true => None,
            false => Some(SessionAction::Queue),
        }
    }

    /// Queues the raw bytes of a command.
    pub fn queue_command(&mut self, command: &[u8], out: &mut Vec<u8>) {
        let Some(transaction) = &mut self.transaction else { return };
        let mut out = ReplyWriter::new(out, self.version);
        match transaction.queue(command) {
            Ok(()) => out.simple("QUEUED"),
            Err(TransactionTooLarge) => {
                self.resp.metrics.failed();
                out.error(&[b"ERR too much is queued: a transaction takes 1 MiB of commands"]);
            }
        }
    }

    /// True between `MULTI` and `EXEC`, `DISCARD` or `RESET`.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Bytes of queued commands.
    pub fn queued_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, Transaction::bytes)
    }
}
