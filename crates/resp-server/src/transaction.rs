//! `MULTI`, `EXEC`, `DISCARD`: queued commands, executed together or not at all.
//!
//! Commands are queued as raw bytes. `EXEC` puts them back into the input, so that they take the normal path; nothing
//! is charged before. Unlike Redis, commands of other connections may run in between: each command decides one limit,
//! so isolation would change nothing.

use tollgate_resp::ReplyWriter;

/// Maximum queued bytes: the size limit of one command.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// The transaction of a connection.
#[derive(Debug, Default)]
pub(super) enum Transaction {
    /// No `MULTI`.
    #[default]
    Closed,
    /// Commands are queued since `MULTI`.
    Open {
        /// Raw bytes of the commands.
        commands: Vec<u8>,
        count: usize,
    },
    /// A command could not be queued: `EXEC` will fail.
    Aborted,
}

/// The queue exceeds its maximum size.
pub(super) struct TransactionTooLarge;

impl Transaction {
    /// True between `MULTI` and `EXEC`, `DISCARD` or `RESET`.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self, Transaction::Closed)
    }

    /// Bytes of queued commands.
    pub(super) fn queued_bytes(&self) -> usize {
        if let Transaction::Open { commands, .. } = self { commands.len() } else { 0 }
    }

    /// Queues the raw bytes of a command.
    pub(super) fn queue(&mut self, command: &[u8], out: &mut ReplyWriter<'_>) -> Result<(), TransactionTooLarge> {
        if let Transaction::Open { commands, count } = self {
            if commands.len() + command.len() > QUEUED_BYTES_MAX {
                self.abort();
                out.error(&[b"ERR too much is queued: a transaction takes 1 MiB of commands"]);
                return Err(TransactionTooLarge);
            }
            commands.extend_from_slice(command);
            *count += 1;
        }
        out.simple("QUEUED"); // also if aborted: `EXEC` will fail
        Ok(())
    }

    /// Drops the queue; `EXEC` will fail.
    pub(super) fn abort(&mut self) {
        *self = Transaction::Aborted;
    }

    /// `MULTI`.
    pub(super) fn begin(&mut self, out: &mut ReplyWriter<'_>) {
        if self.has_begun() {
            return out.error(&[b"ERR MULTI calls can not be nested"]);
        }
        *self = Transaction::Open { commands: Vec::new(), count: 0 };
        out.simple("OK");
    }

    /// `DISCARD`.
    pub(super) fn discard(&mut self, out: &mut ReplyWriter<'_>) {
        match std::mem::take(self).has_begun() {
            true => out.simple("OK"),
            false => out.error(&[b"ERR DISCARD without MULTI"]),
        }
    }

    /// `EXEC`: the queued commands, whose replies complete the array that this begins.
    pub(super) fn exec(&mut self, out: &mut ReplyWriter<'_>) -> Option<Vec<u8>> {
        match std::mem::take(self) {
            Transaction::Open { commands, count } => {
                out.array(count);
                return Some(commands);
            }
            Transaction::Aborted => out.error(&[b"EXECABORT Transaction discarded because of previous errors."]),
            Transaction::Closed => out.error(&[b"ERR EXEC without MULTI"]),
        }
        None
    }
}
