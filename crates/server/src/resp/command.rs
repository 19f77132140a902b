//! Which commands there are. One table: how they are found, counted and told of.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
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
    pub command: Command,
    /// Its name, in lower case.
    pub name: &'static str,
    /// How many elements it has; at least so many, if negative.
    pub arity: i8,
    /// Whether it changes something.
    pub writes: bool,
    /// Where its keys begin, end, and how far apart they are; zero if it has none.
    pub keys: [i8; 3],
}

const fn facts(command: Command, name: &'static str, arity: i8, writes: bool, keys: [i8; 3]) -> Facts {
    Facts { command, name, arity, writes, keys }
}

impl Command {
    /// All of them, in the order of their numbers: those first that are asked most.
    pub const ALL: [Facts; 22] = [
        facts(Command::ClThrottle, "cl.throttle", -5, true, [1, 1, 1]),
        facts(Command::Throttle, "throttle", -5, true, [1, 1, 1]),
        facts(Command::TgCheck, "tg.check", -2, true, [0; 3]),
        facts(Command::TgPeek, "tg.peek", -2, false, [0; 3]),
        facts(Command::TgRefund, "tg.refund", -2, true, [0; 3]),
        facts(Command::Del, "del", -2, true, [1, -1, 1]),
        facts(Command::Unlink, "unlink", -2, true, [1, -1, 1]),
        facts(Command::Ping, "ping", -1, false, [0; 3]),
        facts(Command::Echo, "echo", 2, false, [0; 3]),
        facts(Command::Hello, "hello", -1, false, [0; 3]),
        facts(Command::Auth, "auth", -2, false, [0; 3]),
        facts(Command::Client, "client", -2, false, [0; 3]),
        facts(Command::Command, "command", -1, false, [0; 3]),
        facts(Command::Info, "info", -1, false, [0; 3]),
        facts(Command::Config, "config", -2, false, [0; 3]),
        facts(Command::Select, "select", 2, false, [0; 3]),
        facts(Command::Time, "time", 1, false, [0; 3]),
        facts(Command::Quit, "quit", -1, false, [0; 3]),
        facts(Command::Reset, "reset", 1, false, [0; 3]),
        facts(Command::Multi, "multi", 1, false, [0; 3]),
        facts(Command::Exec, "exec", 1, false, [0; 3]),
        facts(Command::Discard, "discard", 1, false, [0; 3]),
    ];

    /// The command of that name, in whatever case.
    #[inline]
    pub fn find(name: &[u8]) -> Option<&'static Facts> {
        Command::ALL.iter().find(|facts| name.eq_ignore_ascii_case(facts.name.as_bytes()))
    }

    /// Whether it is answered at once in a transaction too.
    pub fn is_never_queued(self) -> bool {
        matches!(self, Command::Multi | Command::Exec | Command::Discard | Command::Quit | Command::Reset)
    }

    /// Whether those may ask it who have yet to give the password.
    pub fn is_open(self) -> bool {
        matches!(self, Command::Auth | Command::Hello | Command::Quit | Command::Reset)
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
        for (number, facts) in Command::ALL.iter().enumerate() {
            assert_eq!(facts.command as usize, number, "{}", facts.name);
            assert_eq!(
                Command::find(facts.name.to_uppercase().as_bytes()).map(|found| found.command),
                Some(facts.command)
            );
        }
        assert!(Command::find(b"flushall").is_none());
    }
}
