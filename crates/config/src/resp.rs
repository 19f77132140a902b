//! Settings of RESP.

use std::path::PathBuf;
use std::time::Duration;

use tollgate_net::Address;

use crate::choice::{SettingChoice, choice};

/// Settings of the RESP listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RespSettings {
    /// The address of RESP; `None` for no listener.
    pub address: Option<Address>,
    /// The password that callers must give with AUTH or HELLO.
    pub password_file: Option<PathBuf>,
    /// How CL.THROTTLE and THROTTLE round waits to whole seconds.
    pub rounding: RespRounding,
    /// How long a connection may stay open without a command; for ever if none.
    pub idle_timeout: Option<Duration>,
    /// Whether SELECT of any number but 0 is an error; there is one database.
    pub one_database: bool,
}

impl Default for RespSettings {
    fn default() -> Self {
        let rounding = RespRounding::Strict;
        Self { address: None, password_file: None, rounding, idle_timeout: None, one_database: false }
    }
}

choice! {
    /// How waits are rounded to whole seconds.
    RespRounding {
        /// Up: the wait is always sufficient.
        Strict = "strict",
        /// As redis-cell does it: up, after dropping what is below a millisecond.
        RedisCell = "redis-cell",
    }
}
