//! Table of commands, used for lookup, metrics, `COMMAND`, and to reject what is not in it.

use tollgate_resp::{Arguments, ReplyWriter, unknown_command, wrong_number_of_arguments};

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RespCommand {
    /// Throttle with redis-cell's syntax.
    ClThrottle,
    /// Throttle with throttlecrab's syntax.
    Throttle,
    /// Checks a request against the rules.
    TgCheck,
    /// Checks without charging.
    TgPeek,
    /// Refunds a charged request.
    TgRefund,
    /// Deletes throttle keys.
    Del,
    /// Same as `Del`.
    Unlink,
    /// Liveness check.
    Ping,
    /// Replies with its argument.
    Echo,
    /// Selects the protocol version.
    Hello,
    /// Authenticates.
    Auth,
    /// Connection introspection.
    Client,
    /// Command introspection.
    Command,
    /// Server introspection.
    Info,
    /// Configuration, always empty.
    Config,
    /// Selects a database; there is only one.
    Select,
    /// The server's time.
    Time,
    /// Closes the connection.
    Quit,
    /// Resets the session to its initial state.
    Reset,
    /// Begins a transaction: following commands are queued.
    Multi,
    /// Executes the queued commands.
    Exec,
    /// Drops the queued commands.
    Discard,
}

/// Command metadata, in the terms of Redis's `COMMAND INFO`.
#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// The command.
    pub command: RespCommand,
    /// Name in lower case.
    pub name: &'static str,
    /// Number of elements including the name; negative for a minimum.
    pub arity: i8,
    /// Whether the command writes.
    pub writes: bool,
    /// First key, last key and step; zeros without keys.
    pub keys: [i8; 3],
}

const fn spec(command: RespCommand, name: &'static str, arity: i8, writes: bool, keys: [i8; 3]) -> CommandSpec {
    CommandSpec { command, name, arity, writes, keys }
}

impl RespCommand {
    /// All commands, in the order of their discriminants; the most frequent first.
    pub const ALL: [CommandSpec; 22] = [
        spec(RespCommand::ClThrottle, "cl.throttle", -5, true, [1, 1, 1]),
        spec(RespCommand::Throttle, "throttle", -5, true, [1, 1, 1]),
        spec(RespCommand::TgCheck, "tg.check", -2, true, [0; 3]),
        spec(RespCommand::TgPeek, "tg.peek", -2, false, [0; 3]),
        spec(RespCommand::TgRefund, "tg.refund", -2, true, [0; 3]),
        spec(RespCommand::Del, "del", -2, true, [1, -1, 1]),
        spec(RespCommand::Unlink, "unlink", -2, true, [1, -1, 1]),
        spec(RespCommand::Ping, "ping", -1, false, [0; 3]),
        spec(RespCommand::Echo, "echo", 2, false, [0; 3]),
        spec(RespCommand::Hello, "hello", -1, false, [0; 3]),
        spec(RespCommand::Auth, "auth", -2, false, [0; 3]),
        spec(RespCommand::Client, "client", -2, false, [0; 3]),
        spec(RespCommand::Command, "command", -1, false, [0; 3]),
        spec(RespCommand::Info, "info", -1, false, [0; 3]),
        spec(RespCommand::Config, "config", -2, false, [0; 3]),
        spec(RespCommand::Select, "select", 2, false, [0; 3]),
        spec(RespCommand::Time, "time", 1, false, [0; 3]),
        spec(RespCommand::Quit, "quit", -1, false, [0; 3]),
        spec(RespCommand::Reset, "reset", 1, false, [0; 3]),
        spec(RespCommand::Multi, "multi", 1, false, [0; 3]),
        spec(RespCommand::Exec, "exec", 1, false, [0; 3]),
        spec(RespCommand::Discard, "discard", 1, false, [0; 3]),
    ];

    /// Finds a command by name, ignoring case.
    #[inline]
    pub fn find(name: &[u8]) -> Option<&'static CommandSpec> {
        RespCommand::ALL.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
    }

    /// Whether the command executes at once inside a transaction.
    pub fn is_never_queued(self) -> bool {
        matches!(
            self,
            RespCommand::Multi | RespCommand::Exec | RespCommand::Discard | RespCommand::Quit | RespCommand::Reset
        )
    }

    /// Whether the command is allowed before authentication.
    pub fn is_allowed_unauthenticated(self) -> bool {
        matches!(self, RespCommand::Auth | RespCommand::Hello | RespCommand::Quit | RespCommand::Reset)
    }
}

impl CommandSpec {
    /// Whether this number of elements matches the arity.
    #[inline]
    pub fn accepts_arity(&self, elements: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { elements >= arity } else { elements == arity }
    }
}

/// Writes an error for an unknown command or a wrong number of arguments; true if it did.
pub(super) fn reject_malformed(
    found: Option<&CommandSpec>,
    arguments: Arguments<'_>,
    out: &mut ReplyWriter<'_>,
) -> bool {
    let Some(spec) = found else {
        unknown_command(arguments, out);
        return true;
    };
    if spec.accepts_arity(arguments.len()) {
        return false;
    }
    let name = spec.name.as_bytes();
    match spec.command {
        RespCommand::TgCheck | RespCommand::TgPeek | RespCommand::TgRefund => out.error(&[
            b"ERR wrong number of arguments for '",
            name,
            b"' command; usage: ",
            name,
            b" client_key=<key> [endpoint=<method and path>] [<name>=<value> ...] [COST <n>]",
        ]),
        _ => wrong_number_of_arguments(name, out),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_discriminant_order() {
        for (number, spec) in RespCommand::ALL.iter().enumerate() {
            assert_eq!(spec.command as usize, number, "{}", spec.name);
            assert_eq!(
                RespCommand::find(spec.name.to_uppercase().as_bytes()).map(|found| found.command),
                Some(spec.command)
            );
        }
        assert!(RespCommand::find(b"flushall").is_none());
    }
}
