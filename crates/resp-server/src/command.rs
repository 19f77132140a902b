//! Which commands there are. One table: how they are found, counted and told of.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RespCommand {
    /// A limit as redis-cell takes it.
    ClThrottle,
    /// A limit as throttlecrab takes it.
    Throttle,
    /// May this request pass the rules?
    TgCheck,
    /// Would it?
    TgPeek,
    /// Gives back what a request was charged.
    TgRefund,
    /// Forgets keys of the throttles.
    Del,
    /// The same.
    Unlink,
    /// Is anybody there?
    Ping,
    /// Says it again.
    Echo,
    /// Chooses the version of the protocol.
    Hello,
    /// Gives the password.
    Auth,
    /// About the connection.
    Client,
    /// About the commands.
    Command,
    /// About the server.
    Info,
    /// About its configuration, of which nothing is told here.
    Config,
    /// Chooses a database, of which there is one.
    Select,
    /// The server's time.
    Time,
    /// Ends the connection.
    Quit,
    /// Back to how the connection began.
    Reset,
    /// Begins a transaction: commands are queued.
    Multi,
    /// Answers what was queued.
    Exec,
    /// Forgets what was queued.
    Discard,
}

/// What clients are told of a command, in the terms of Redis.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The command.
    pub command: RespCommand,
    /// Its name, in lower case.
    pub name: &'static str,
    /// How many elements it has; at least so many, if negative.
    pub arity: i8,
    /// Whether it changes something.
    pub writes: bool,
    /// Where its keys begin, end, and how far apart they are; zero if it has none.
    pub keys: [i8; 3],
}

const fn facts(command: RespCommand, name: &'static str, arity: i8, writes: bool, keys: [i8; 3]) -> Facts {
    Facts { command, name, arity, writes, keys }
}

impl RespCommand {
    /// All of them, in the order of their numbers: those first that are asked most.
    pub const ALL: [Facts; 22] = [
        facts(RespCommand::ClThrottle, "cl.throttle", -5, true, [1, 1, 1]),
        facts(RespCommand::Throttle, "throttle", -5, true, [1, 1, 1]),
        facts(RespCommand::TgCheck, "tg.check", -2, true, [0; 3]),
        facts(RespCommand::TgPeek, "tg.peek", -2, false, [0; 3]),
        facts(RespCommand::TgRefund, "tg.refund", -2, true, [0; 3]),
        facts(RespCommand::Del, "del", -2, true, [1, -1, 1]),
        facts(RespCommand::Unlink, "unlink", -2, true, [1, -1, 1]),
        facts(RespCommand::Ping, "ping", -1, false, [0; 3]),
        facts(RespCommand::Echo, "echo", 2, false, [0; 3]),
        facts(RespCommand::Hello, "hello", -1, false, [0; 3]),
        facts(RespCommand::Auth, "auth", -2, false, [0; 3]),
        facts(RespCommand::Client, "client", -2, false, [0; 3]),
        facts(RespCommand::Command, "command", -1, false, [0; 3]),
        facts(RespCommand::Info, "info", -1, false, [0; 3]),
        facts(RespCommand::Config, "config", -2, false, [0; 3]),
        facts(RespCommand::Select, "select", 2, false, [0; 3]),
        facts(RespCommand::Time, "time", 1, false, [0; 3]),
        facts(RespCommand::Quit, "quit", -1, false, [0; 3]),
        facts(RespCommand::Reset, "reset", 1, false, [0; 3]),
        facts(RespCommand::Multi, "multi", 1, false, [0; 3]),
        facts(RespCommand::Exec, "exec", 1, false, [0; 3]),
        facts(RespCommand::Discard, "discard", 1, false, [0; 3]),
    ];

    /// The command of that name, in whatever case.
    #[inline]
    pub fn find(name: &[u8]) -> Option<&'static Facts> {
        RespCommand::ALL.iter().find(|facts| name.eq_ignore_ascii_case(facts.name.as_bytes()))
    }

    /// Whether it is answered at once in a transaction too.
    pub fn is_never_queued(self) -> bool {
        matches!(
            self,
            RespCommand::Multi | RespCommand::Exec | RespCommand::Discard | RespCommand::Quit | RespCommand::Reset
        )
    }

    /// Whether those may ask it who have yet to give the password.
    pub fn is_open(self) -> bool {
        matches!(self, RespCommand::Auth | RespCommand::Hello | RespCommand::Quit | RespCommand::Reset)
    }
}

impl Facts {
    /// Whether a command of so many elements has as many as it should.
    #[inline]
    pub fn suits(&self, elements: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { elements >= arity } else { elements == arity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (number, facts) in RespCommand::ALL.iter().enumerate() {
            assert_eq!(facts.command as usize, number, "{}", facts.name);
            assert_eq!(
                RespCommand::find(facts.name.to_uppercase().as_bytes()).map(|found| found.command),
                Some(facts.command)
            );
        }
        assert!(RespCommand::find(b"flushall").is_none());
    }
}
