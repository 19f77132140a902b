//! `MULTI`, `EXEC`, `DISCARD`: commands that are queued, and answered together or not at all.
//!
//! They are queued as they were sent, and `EXEC` puts them back into the input: they are answered by what answers every
//! other command. Nothing is charged before. Unlike Redis, other connections are served between two of them: a limit is
//! decided by one command, so there is nothing that isolation would make right.

use super::command::Facts;
use super::session::{Next, Session};
use tollgate_resp::{Arguments, ReplyWriter};

/// Most that is queued: as much as one command may take.
const QUEUED_BYTES_MAX: usize = 1 << 20;

/// What came since `MULTI`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// The commands, one after the other.
    commands: Vec<u8>,
    count: usize,
    /// A command could not be queued: none will be answered.
    is_aborted: bool,
}

/// More is queued than may be.
pub(super) struct TooMuch;

impl Transaction {
    /// Queues a command, as it was sent.
    pub(super) fn queue(&mut self, command: &[u8]) -> Result<(), TooMuch> {
        if self.is_aborted {
            return Ok(()); // it is not needed any more
        }
        if self.commands.len() + command.len() > QUEUED_BYTES_MAX {
            self.abort();
            return Err(TooMuch);
        }
        self.commands.extend_from_slice(command);
        self.count += 1;
        Ok(())
    }

    /// Makes sure that nothing of it is answered.
    pub(super) fn abort(&mut self) {
        *self = Transaction { is_aborted: true, ..Transaction::default() };
    }

    /// Bytes that are queued.
    pub(super) fn bytes(&self) -> usize {
        self.commands.len()
    }

    /// How many commands are to be answered, and what they are; `None` if one could not be queued.
    pub(super) fn finish(self) -> Option<(usize, Vec<u8>)> {
        (!self.is_aborted).then_some((self.count, self.commands))
    }
}

impl Session<'_> {
    /// What becomes of a command in a transaction; `None` if it is answered as always. A command that cannot be answered
    /// is refused now, and with it the rest.
    #[cold]
    pub(super) fn in_transaction(
        &mut self,
        found: Option<&'static Facts>,
        arguments: Arguments<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Next> {
        if self.refuse_unfit(found, arguments, &mut ReplyWriter::new(out, self.version)) {
            self.transaction.iter_mut().for_each(Transaction::abort);
            return Some(Next::Done);
        }
        match found.is_some_and(|facts| facts.command.is_never_queued()) {
            true => None,
            false => Some(Next::Keep),
        }
    }

    /// Queues a command, as it was sent.
    pub fn keep(&mut self, command: &[u8], out: &mut Vec<u8>) {
        let Some(transaction) = &mut self.transaction else { return };
        let mut out = ReplyWriter::new(out, self.version);
        match transaction.queue(command) {
            Ok(()) => out.simple("QUEUED"),
            Err(TooMuch) => {
                self.resp.metrics.failed();
                out.error(&[b"ERR too much is queued: a transaction takes 1 MiB of commands"]);
            }
        }
    }

    /// True between `MULTI` and its end.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Bytes of commands that are queued.
    pub fn queued_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, Transaction::bytes)
    }
}
