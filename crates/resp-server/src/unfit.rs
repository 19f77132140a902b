//! Commands that there are not, or that have too few or too many arguments.

use super::command::{Facts, RespCommand};
use super::frame::Arguments;
use super::session::Session;
use super::writer::{Writer, shown};

impl Session<'_> {
    /// Refuses a command that there is not, or that has too few or too many arguments.
    pub(super) fn refuse_unfit(
        &self,
        found: Option<&'static Facts>,
        arguments: Arguments<'_>,
        out: &mut Writer<'_>,
    ) -> bool {
        match found {
            Some(facts) if facts.suits(arguments.len()) => return false,
            Some(Facts {
                command: RespCommand::TgCheck | RespCommand::TgPeek | RespCommand::TgRefund, name, ..
            }) => {
                usage(name.as_bytes(), out);
            }
            Some(facts) => wrong_number(facts.name.as_bytes(), out),
            None => unknown(arguments, out),
        }
        self.resp.metrics.failed();
        true
    }
}

/// Says that a command has too few or too many arguments.
pub(super) fn wrong_number(name: &[u8], out: &mut Writer<'_>) {
    out.error(&[b"ERR wrong number of arguments for '", name, b"' command"]);
}

/// The same where there is more to say about what they are.
fn usage(name: &[u8], out: &mut Writer<'_>) {
    out.error(&[
        b"ERR wrong number of arguments for '",
        name,
        b"' command; usage: ",
        name,
        b" client_key=<key> [endpoint=<method and path>] [<name>=<value> ...] [COST <n>]",
    ]);
}

fn unknown(arguments: Arguments<'_>, out: &mut Writer<'_>) {
    let mut told = Vec::new();
    for argument in arguments.from(1) {
        if told.len() >= 128 {
            break;
        }
        told.push(b'\'');
        told.extend_from_slice(shown(argument));
        told.extend_from_slice(b"' ");
    }
    let name = shown(arguments.get(0).unwrap_or_default());
    out.error(&[b"ERR unknown command '", name, b"', with args beginning with: ", &told]);
}
