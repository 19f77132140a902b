//! Exit codes, the same for every command.

use std::process::ExitCode;

/// How a command ended. The worst of several wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: allowed, done, no problem found, all tests passed.
    Ok,
    /// 1: denied, refused by a server, problems found, a test failed, a file is not formatted.
    No,
    /// 2: wrong usage, input that cannot be read, no answer.
    Unusable,
}

impl Exit {
    /// [`Exit::Ok`] if it holds, [`Exit::No`] if not.
    pub fn from_success(success: bool) -> Exit {
        if success { Exit::Ok } else { Exit::No }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
