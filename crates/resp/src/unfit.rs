//! Error replies to unknown commands and to wrong numbers of arguments, with the texts of Redis.

use crate::reply_writer::{ReplyWriter, excerpt};
use crate::request::Arguments;

/// Most bytes of arguments that the reply to an unknown command quotes.
const QUOTED_MAX: usize = 128;

/// Replies that a command has too few or too many arguments.
pub fn wrong_number_of_arguments(name: &[u8], out: &mut ReplyWriter<'_>) {
    out.error(&[b"ERR wrong number of arguments for '", name, b"' command"]);
}

/// Replies that there is no such command, and quotes the start of the request.
pub fn unknown_command(arguments: Arguments<'_>, out: &mut ReplyWriter<'_>) {
    let mut quoted = Vec::new();
    for argument in arguments.from(1) {
        if quoted.len() >= QUOTED_MAX {
            break;
        }
        quoted.push(b'\'');
        quoted.extend_from_slice(excerpt(argument));
        quoted.extend_from_slice(b"' ");
    }
    let name = excerpt(arguments.get(0).unwrap_or_default());
    out.error(&[b"ERR unknown command '", name, b"', with args beginning with: ", &quoted]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProtocolVersion, RequestLimits, RequestParser};

    #[test]
    fn unknown_commands_are_quoted_up_to_a_limit() {
        let request = format!("NOSUCH a {} {} last\r\n", "b".repeat(200), "c");
        let (mut parser, mut out) = (RequestParser::default(), Vec::new());
        parser.next(request.as_bytes(), &RequestLimits::AUTHENTICATED).unwrap().unwrap();
        let arguments = parser.arguments(request.as_bytes());
        unknown_command(arguments, &mut ReplyWriter::new(&mut out, ProtocolVersion::Resp2));
        let expected =
            format!("-ERR unknown command 'NOSUCH', with args beginning with: 'a' '{}' \r\n", "b".repeat(128));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
