//! Exit codes, the same for every command.

use std::process::ExitCode;

/// The result of a command. Of several results, the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0, success: allowed, done, no problem found, all tests passed.
    Ok,
    /// 1, negative result: denied, rejected by a server, problems found, a test failed, a file is not formatted.
    No,
    /// 2, failure: wrong usage, unreadable input, no response.
    Unusable,
}

impl Exit {
    /// [`Exit::Ok`] for true, [`Exit::No`] for false.
    pub fn from_success(success: bool) -> Exit {
        if success { Exit::Ok } else { Exit::No }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
