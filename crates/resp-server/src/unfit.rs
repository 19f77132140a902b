//! Commands that there are not, or that have too few or too many arguments.

use super::command::{Facts, RespCommand};
use super::session::Session;
use tollgate_resp::{Arguments, ReplyWriter, unknown_command, wrong_number_of_arguments};

impl Session<'_> {
    /// Refuses a command that there is not, or that has too few or too many arguments.
    pub(super) fn refuse_unfit(
        &self,
        found: Option<&'static Facts>,
        arguments: Arguments<'_>,
        out: &mut ReplyWriter<'_>,
    ) -> bool {
        match found {
            Some(facts) if facts.suits(arguments.len()) => return false,
            Some(Facts {
                command: RespCommand::TgCheck | RespCommand::TgPeek | RespCommand::TgRefund, name, ..
            }) => {
                usage(name.as_bytes(), out);
            }
            Some(facts) => wrong_number_of_arguments(facts.name.as_bytes(), out),
            None => unknown_command(arguments, out),
        }
        self.resp.metrics.failed();
        true
    }
}

/// The same where there is more to say about what they are.
fn usage(name: &[u8], out: &mut ReplyWriter<'_>) {
    out.error(&[
        b"ERR wrong number of arguments for '",
        name,
        b"' command; usage: ",
        name,
        b" client_key=<key> [endpoint=<method and path>] [<name>=<value> ...] [COST <n>]",
    ]);
}
