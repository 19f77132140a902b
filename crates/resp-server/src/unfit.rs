//! Rejects unknown commands and wrong argument counts.

use super::command::{CommandSpec, RespCommand};
use super::session::Session;
use tollgate_resp::{Arguments, ReplyWriter, unknown_command, wrong_number_of_arguments};

impl Session<'_> {
    /// Writes an error for an unknown command or a wrong number of arguments; true if it did.
    pub(super) fn reject_malformed(
        &self,
        found: Option<&'static CommandSpec>,
        arguments: Arguments<'_>,
        out: &mut ReplyWriter<'_>,
    ) -> bool {
        match found {
            Some(spec) if spec.accepts_arity(arguments.len()) => return false,
            Some(CommandSpec {
                command: RespCommand::TgCheck | RespCommand::TgPeek | RespCommand::TgRefund,
                name,
                ..
            }) => {
                usage(name.as_bytes(), out);
            }
            Some(spec) => wrong_number_of_arguments(spec.name.as_bytes(), out),
            None => unknown_command(arguments, out),
        }
        self.resp.metrics.failed();
        true
    }
}

/// Argument count error with a usage hint.
fn usage(name: &[u8], out: &mut ReplyWriter<'_>) {
    out.error(&[
        b"ERR wrong number of arguments for '",
        name,
        b"' command; usage: ",
        name,
        b" client_key=<key> [endpoint=<method and path>] [<name>=<value> ...] [COST <n>]",
    ]);
}
